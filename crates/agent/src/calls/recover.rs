//! After a crash: a call that was started is brought to its result by what it declared (§15.6).

use tokio_util::sync::CancellationToken;
use windlass_core::event::ToolCall;
use windlass_core::outcome::{Ending as CallEnding, Outcome, Recovery};
use windlass_core::state::OpenCall;
use windlass_tools::workspace::Happened;

use super::Plan;
use crate::Agent;
use crate::journal::Journal;
use crate::prompt::UNKNOWN_OUTCOME;

impl Agent {
    /// After a crash: a started call is brought to its result by its declared recovery (§15.6).
    pub(super) async fn recover(
        &self,
        task: &Journal,
        open: &OpenCall,
        started: &ToolCall,
        stop: &CancellationToken,
    ) -> Plan {
        let unknown = || Plan::Settled {
            check: None,
            outcome: Outcome::ended(CallEnding::Unknown, UNKNOWN_OUTCOME.trim_end()),
        };
        match &started.recovery {
            Recovery::Rerun => {}
            Recovery::Verify { change, outcome } => {
                match self.parts.world.workspace.recover(open.request.id, change) {
                    Ok(Happened::Yes) => {
                        return Plan::Settled { check: None, outcome: outcome.as_ref().clone() };
                    }
                    Ok(Happened::No) => {}
                    Ok(Happened::Unknown) | Err(_) => return unknown(),
                }
            }
            // Its sub-agent was journaled with it: go on waiting for that one.
            Recovery::Reattach { .. } => {
                return match task.state().sub_agents.get(&open.request.id) {
                    Some(spawn) => {
                        Plan::Spawn { check: None, call: started.clone(), spawn: spawn.clone() }
                    }
                    None => unknown(),
                };
            }
            Recovery::Unknown => return unknown(),
        }
        match self.prepare(task, open, started.arguments.clone(), stop).await {
            Ok(prepared) => Plan::Run { check: None, call: started.clone(), prepared },
            Err(outcome) => Plan::Settled { check: None, outcome },
        }
    }
}
