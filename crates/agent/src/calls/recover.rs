//! After a crash: gives a result to a call that was started and did not end, as its declared `Recovery` says (§15.6).

use tokio_util::sync::CancellationToken;
use windlass_core::event::ToolCall;
use windlass_core::outcome::{CallEnding, Outcome, Recovery};
use windlass_core::state::{OpenCall, TaskState};
use windlass_tools::workspace::ChangeState;

use super::{CallStep, CallWithoutRun, Run, Runner, Spawn};
use crate::prompt::UNKNOWN_OUTCOME;

impl Runner {
    /// What becomes of a call that was started before a crash.
    pub async fn recover(
        &self,
        state: &TaskState,
        open: &OpenCall,
        started: &ToolCall,
        can_spawn: bool,
        stop: &CancellationToken,
    ) -> CallStep {
        let settled =
            |outcome| CallStep::WithoutRun(CallWithoutRun::result(open.clone(), None, outcome));
        let unknown = || {
            let mut outcome = unknown_outcome(&started.tool);
            let world = &self.world;
            // Nobody has approved what the call did to an agent's own rules.
            if let Some(note) = world.shell.put_back_rules(&world.workspace, open.request.id) {
                outcome.add_note(&note);
            }
            settled(outcome)
        };
        match &started.recovery {
            Recovery::Rerun => {}
            Recovery::Verify { change, outcome } => {
                match self.world.workspace.recover(open.request.id, change) {
                    Ok(ChangeState::Applied) => return settled(outcome.as_ref().clone()),
                    Ok(ChangeState::NotApplied) => {}
                    Ok(ChangeState::Unknown) | Err(_) => return unknown(),
                }
            }
            // Its sub-agent was journaled with it: wait for that one.
            Recovery::Reattach { .. } => {
                return match state.sub_agents.get(&open.request.id) {
                    Some(spawn) => CallStep::Spawn(Spawn {
                        open: open.clone(),
                        check: None,
                        call: started.clone(),
                        spawn: spawn.clone(),
                    }),
                    None => unknown(),
                };
            }
            Recovery::Unknown => return unknown(),
        }
        let (open, call) = (open.clone(), started.clone());
        match self.prepare(state, &open, call.arguments.clone(), can_spawn, stop).await {
            Ok(prepared) => CallStep::Run(Run { open, check: None, call, prepared }),
            Err(outcome) => settled(outcome),
        }
    }
}

fn unknown_outcome(tool: &str) -> Outcome {
    let display = format!("{tool} was interrupted; it may have taken effect and was not repeated");
    Outcome {
        display: Some(display),
        ..Outcome::ended(CallEnding::Unknown, UNKNOWN_OUTCOME.trim_end())
    }
}
