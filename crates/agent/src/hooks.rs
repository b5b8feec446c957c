//! The hooks of the skills that bind an agent, run in its sandbox around its tool calls (AX-022).
//!
//! Invariants:
//! - A hook runs only where its skill is trusted: not a project's own before a person approved it (§15.13).
//! - Closed by default: a hook that fails, hangs or cannot run refuses the call, with its words as reason.
//! - Hooks are part of the call they belong to: a call that starts again after a crash asks them again.

use std::sync::Arc;
use std::time::Duration;

use windlass_core::event::RiskCheck;
use windlass_core::id::TaskId;
use windlass_core::outcome::Outcome;
use windlass_core::policy::Decision;
use windlass_core::policy::denial::Denial;
use windlass_core::state::OpenCall;
use windlass_core::text::one_line;
use windlass_sandbox::{Command, Exit, Stdin};
use windlass_skills::{Skill, When};

use crate::Agent;
use crate::calls::Plan;

/// How long a hook may take; it stands between the agent and every call.
const HOOK_TIMEOUT: Duration = Duration::from_secs(60);

/// How much of what a hook says is kept.
const MAX_WORDS: usize = 2000;

/// Whether a skill's hooks may run.
pub type Trusted = Arc<dyn Fn(&Skill) -> bool + Send + Sync>;

impl Agent {
    /// Asks the hooks about a call that everything else allows; why not, when one refuses.
    pub(crate) async fn refusal(
        &self,
        skills: &[Arc<Skill>],
        task: TaskId,
        open: &OpenCall,
    ) -> Option<String> {
        for (skill, command) in self.asked(skills, When::BeforeTool, open) {
            let said = self.run_hook(skill, When::BeforeTool, command, task, open, None).await;
            if let Err(words) = said {
                return Some(format!("a hook of the skill `{}` refused: {words}", skill.meta.name));
            }
        }
        None
    }

    /// Tells the hooks how a call went; what they say against it, if anything.
    pub(crate) async fn remarks(
        &self,
        skills: &[Arc<Skill>],
        task: TaskId,
        open: &OpenCall,
        outcome: &Outcome,
    ) -> Vec<String> {
        let mut remarks = Vec::new();
        for (skill, command) in self.asked(skills, When::AfterTool, open) {
            let told = Some(outcome);
            let said = self.run_hook(skill, When::AfterTool, command, task, open, told).await;
            if let Err(words) = said {
                remarks.push(format!("A hook of the skill `{}` says: {words}", skill.meta.name));
            }
        }
        remarks
    }

    /// The commands to run around a call, skill by skill.
    fn asked<'a>(
        &self,
        skills: &'a [Arc<Skill>],
        when: When,
        open: &OpenCall,
    ) -> Vec<(&'a Skill, String)> {
        let tool = self.tool_names(&open.request.name);
        let of = |skill: &'a Arc<Skill>| {
            let commands = skill.hooks(when, &tool).into_iter();
            commands.map(move |command| (skill.as_ref(), command))
        };
        skills.iter().flat_map(of).collect()
    }

    async fn run_hook(
        &self,
        skill: &Skill,
        when: When,
        script: String,
        task: TaskId,
        open: &OpenCall,
        outcome: Option<&Outcome>,
    ) -> Result<(), String> {
        let sandbox = self.parts.world.shell.sandbox();
        let name = &skill.meta.name;
        let (tool, arguments) = (&open.request.name, &open.request.arguments);
        let mut told = serde_json::json!({
            "event": when.name(),
            "skill": name,
            "task_id": task,
            "tool_name": tool,
            "tool_input": serde_json::from_str::<serde_json::Value>(arguments).unwrap_or_default(),
        });
        if let Some(outcome) = outcome {
            told["tool_result"] = outcome.text.as_str().into();
        }
        let id = format!("{}-{}", open.request.id, when.name());
        let command = Command {
            env: vec![("WINDLASS_SKILL_DIR".to_owned(), format!("/skills/{name}"))],
            timeout: Some(HOOK_TIMEOUT),
            stdin: Stdin::Piped,
            ..Command::script(id, script, sandbox.isolation().workspace)
        };
        let mut running = sandbox.start(command).await.map_err(|error| error.to_string())?;
        let input = running.take_input();
        let feed = async move {
            if let Some(mut input) = input {
                input.write(told.to_string().as_bytes()).await;
            }
        };
        let mut words = Vec::new();
        let listen = async {
            while let Some(chunk) = running.next().await {
                let room = MAX_WORDS.saturating_sub(words.len());
                words.extend(chunk.bytes.into_iter().take(room));
            }
            running.wait().await
        };
        let ((), ended) = tokio::join!(feed, listen);
        let words = one_line(&String::from_utf8_lossy(&words), MAX_WORDS);
        match ended.exit {
            Exit::Code(0) => Ok(()),
            Exit::Code(code) if words.is_empty() => Err(format!("exit code {code}")),
            Exit::Code(_) => Err(words),
            other => Err(format!("it did not end by itself ({other:?}) {words}").trim().to_owned()),
        }
    }
}

/// What becomes of a call that a hook refused.
pub(crate) fn refused(check: &RiskCheck, reason: String) -> Plan {
    let denial = Denial {
        tool: check.tool.clone(),
        reason: reason.clone(),
        suggestions: vec!["do it in the way that the skill's hook asks for".to_owned()],
        can_retry: true,
    };
    let check = RiskCheck { decision: Decision::Deny, reason, ..check.clone() };
    Plan::Settled { check: Some(check), outcome: Outcome::denied(denial) }
}
