//! The hooks of the skills that bind an agent, run in its sandbox around its tool calls (AX-022).
//!
//! Invariants:
//! - A hook runs only where its skill is trusted: not a project's own before a person approved it (§15.13).
//! - Closed by default: a hook that fails, hangs or cannot run refuses the call, and its output is the reason.
//! - The hooks before a call run before it is journaled as started, and not again once it is: a call that starts again
//!   after a crash does not run them again. The hooks after it run each time it ends.

use std::sync::Arc;
use std::time::Duration;

use windlass_core::id::TaskId;
use windlass_core::model_text::neutralize;
use windlass_core::outcome::Outcome;
use windlass_core::state::OpenCall;
use windlass_core::text::one_line;
use windlass_sandbox::{Command, Exit, Sandbox, Stdin};
use windlass_skills::{HookTime, Skill};

use crate::prompt;

/// How long a hook may take; the call waits for it.
const HOOK_TIMEOUT: Duration = Duration::from_secs(60);

/// How much of a hook's output is kept.
const MAX_OUTPUT_BYTES: usize = 2000;

/// Whether a skill's hooks may run.
pub type HookTrust = Arc<dyn Fn(&Skill) -> bool + Send + Sync>;

/// Runs hooks in the agent's sandbox.
pub(super) struct Hooks {
    pub sandbox: Arc<dyn Sandbox>,
}

impl Hooks {
    /// Asks the hooks about a call; the reason, when one refuses.
    pub async fn run_before(
        &self,
        skills: &[Arc<Skill>],
        names: &[&str],
        task: TaskId,
        open: &OpenCall,
    ) -> Option<String> {
        for (skill, command) in commands(skills, HookTime::BeforeTool, names) {
            let said = self.run_hook(skill, HookTime::BeforeTool, command, task, open, None).await;
            if let Err(words) = said {
                return Some(prompt::hook_refused(&skill.meta.name, &words));
            }
        }
        None
    }

    /// Reports to the hooks how a call went; what they say against it, if anything.
    pub async fn run_after(
        &self,
        skills: &[Arc<Skill>],
        names: &[&str],
        task: TaskId,
        open: &OpenCall,
        outcome: &Outcome,
    ) -> Vec<String> {
        let mut remarks = Vec::new();
        for (skill, command) in commands(skills, HookTime::AfterTool, names) {
            let outcome = Some(outcome);
            let said =
                self.run_hook(skill, HookTime::AfterTool, command, task, open, outcome).await;
            if let Err(words) = said {
                remarks.push(prompt::hook_remark(&skill.meta.name, &words));
            }
        }
        remarks
    }

    async fn run_hook(
        &self,
        skill: &Skill,
        when: HookTime,
        script: String,
        task: TaskId,
        open: &OpenCall,
        outcome: Option<&Outcome>,
    ) -> Result<(), String> {
        let sandbox = &self.sandbox;
        let name = &skill.meta.name;
        let (tool, arguments) = (&open.request.name, &open.request.arguments);
        let mut input = serde_json::json!({
            "event": when.name(),
            "skill": name,
            "task_id": task,
            "tool_name": tool,
            "tool_input": serde_json::from_str::<serde_json::Value>(arguments).unwrap_or_default(),
        });
        if let Some(outcome) = outcome {
            input["tool_result"] = outcome.text.as_str().into();
        }
        let id = format!("{}-{}", open.request.id, when.name());
        let command = Command {
            env: vec![("WINDLASS_SKILL_DIR".to_owned(), format!("/skills/{name}"))],
            timeout: Some(HOOK_TIMEOUT),
            stdin: Stdin::Piped,
            ..Command::script(id, script, sandbox.isolation().workspace)
        };
        let mut running = sandbox.start(command).await.map_err(|error| error.to_string())?;
        let stdin = running.take_input();
        let feed = async move {
            if let Some(mut stdin) = stdin {
                stdin.write(input.to_string().as_bytes()).await;
            }
        };
        let mut words = Vec::new();
        let listen = async {
            while let Some(chunk) = running.next().await {
                let room = MAX_OUTPUT_BYTES.saturating_sub(words.len());
                words.extend(chunk.bytes.into_iter().take(room));
            }
            running.wait().await
        };
        let ((), ended) = tokio::join!(feed, listen);
        let words = neutralize(&one_line(&String::from_utf8_lossy(&words), MAX_OUTPUT_BYTES));
        match ended.exit {
            Exit::Code(0) => Ok(()),
            Exit::Code(code) if words.is_empty() => Err(format!("exit code {code}")),
            Exit::Code(_) => Err(words),
            other => Err(format!("it did not exit normally ({other:?}) {words}").trim().to_owned()),
        }
    }
}

/// The commands to run around a call of a tool with these names, skill by skill.
fn commands<'a>(
    skills: &'a [Arc<Skill>],
    when: HookTime,
    names: &'a [&'a str],
) -> impl Iterator<Item = (&'a Skill, String)> {
    let of = move |skill: &'a Arc<Skill>| {
        let commands = skill.hooks(when, names).into_iter();
        commands.map(move |command| (skill.as_ref(), command))
    };
    skills.iter().flat_map(of)
}
