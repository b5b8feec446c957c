//! Steps that work by themselves: agents, commands, questions.

use std::path::Path;

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use windlass_core::event::{Event, StepEnded, StepResult, StepStarted, WorkflowPart};
use windlass_core::id::{QuestionId, TaskId};
use windlass_core::question::Question;
use windlass_core::status::StatusReason;

use super::children::{ChildEnd, Script, ScriptEnd, Wanted};
use super::places::{reason_for, with_port};
use super::{Engine, Error, StepEnd, Trouble, Wait, question};
use crate::definition::{AgentWork, OWN_RUNNER};
use crate::next::Leaf;
use crate::output::AgentOutput;
use crate::state::Asked;
use crate::{spell, template, worktree};

/// What a person may say to a command whose end nobody knows.
const INTERRUPTED_OPTIONS: [&str; 3] = ["Run it again", "It succeeded", "It failed"];

impl Engine<'_> {
    /// Journals that a step begins, unless this attempt has.
    pub(super) async fn start(
        &self,
        leaf: &Leaf,
        task: Option<TaskId>,
        text: String,
        with: Option<Question>,
    ) -> Result<(), Error> {
        let (path, attempt) = (leaf.path.as_str(), leaf.attempt);
        let has_begun = self.journal.read(|_, run| {
            let started = run.step(path).and_then(|step| step.started.as_ref());
            started.is_some_and(|started| started.attempt == attempt)
        });
        if has_begun.await {
            return Ok(());
        }
        let kind = leaf.step.work.kind().to_owned();
        let started = StepStarted { step: path.to_owned(), attempt, kind, task, text };
        let asked = with.map(Event::QuestionAsked);
        let started = Event::WorkflowStepStarted(Box::new(started));
        self.journal.commit(self.now(), [started].into_iter().chain(asked).collect()).await
    }

    /// What templates find besides what was known when the step was chosen.
    async fn variables(&self, leaf: &Leaf) -> serde_json::Map<String, Value> {
        let mut variables = leaf.variables.clone();
        let tree = self.journal.read(|_, run| run.worktrees.get(&leaf.worktree).cloned()).await;
        if let Some(tree) = tree {
            variables.insert(
                "worktree".to_owned(),
                json!({
                    "path": tree.path, "branch": tree.branch, "base": tree.base, "port": tree.port,
                }),
            );
        }
        variables
    }

    /// The text of a step that has begun: what was rendered then counts.
    async fn text_of(&self, leaf: &Leaf) -> Option<String> {
        let (path, attempt) = (leaf.path.as_str(), leaf.attempt);
        self.journal
            .read(|_, run| {
                let started = run.step(path)?.started.as_ref()?;
                (started.attempt == attempt).then(|| started.text.clone())
            })
            .await
    }

    pub(super) async fn agent(
        &self,
        leaf: &Leaf,
        work: &AgentWork,
        halt: &CancellationToken,
    ) -> Result<StepEnd, Trouble> {
        let directory = self.place(&leaf.worktree, halt).await?;
        let prompt = match self.text_of(leaf).await {
            Some(text) => text,
            None => spell::prompt(&self.source, &work.spell, &self.variables(leaf).await)
                .map_err(|error| Trouble::Failed(error.to_string()))?,
        };
        let runner = work.runner.as_deref().unwrap_or(&self.workflow.runner);
        self.start(leaf, Some(self.child_id(&key(leaf))), prompt.clone(), None).await?;
        let said = match runner {
            OWN_RUNNER => self.own_agent(leaf, work, &prompt, &directory, halt).await?,
            other => self.program(leaf, work, other, &prompt, &directory, halt).await?,
        };
        let changed = self.changed_files(&leaf.worktree, &directory).await?;
        let ended = match said {
            Ok(text) => agent_end(leaf, &text, changed),
            Err((error, reason)) => StepEnded {
                output: json!({ "summary": "", "outputs": {}, "changed_files": changed }),
                error: Some(error),
                reason: Some(reason),
                ..leaf.ended(StepResult::Failed)
            },
        };
        Ok(StepEnd::Ended(ended))
    }

    /// What our own loop said at its end, or why it said nothing.
    pub(super) async fn own_agent(
        &self,
        leaf: &Leaf,
        work: &AgentWork,
        prompt: &str,
        directory: &Path,
        halt: &CancellationToken,
    ) -> Result<Result<String, (String, StatusReason)>, Trouble> {
        let wanted = Wanted {
            key: &key(leaf),
            goal: prompt.to_owned(),
            directory,
            part: WorkflowPart::Agent {
                step: leaf.path.clone(),
                is_try: self.workflow.is_try(&leaf.path),
            },
            timeout_seconds: leaf.step.timeout.map(|timeout| timeout.as_secs()),
            model: work.model.clone(),
            profile: work.profile,
        };
        let task = self.create(wanted).await?;
        Ok(match self.drive(task, halt).await? {
            ChildEnd::Done(state) => Ok(state.last_reply.final_text.clone().unwrap_or_default()),
            ChildEnd::Failed { error, reason } => Err((error, reason_for(reason))),
        })
    }

    /// Files that differ from where the worktree began (WF-026).
    async fn changed_files(&self, name: &str, directory: &Path) -> Result<Vec<String>, Trouble> {
        let base =
            self.journal.read(|_, run| run.worktrees.get(name).map(|tree| tree.base.clone())).await;
        let Some(base) = base else { return Ok(Vec::new()) };
        let directory = directory.to_owned();
        self.with_git(move |git| worktree::changed_files(git, &directory, &base)).await
    }

    pub(super) async fn script(
        &self,
        leaf: &Leaf,
        command: &str,
        rerun: bool,
        halt: &CancellationToken,
    ) -> Result<StepEnd, Trouble> {
        let directory = self.place(&leaf.worktree, halt).await?;
        let command = match self.text_of(leaf).await {
            Some(text) => text,
            None => {
                let variables = self.variables(leaf).await;
                let port = variables.get("worktree").and_then(|tree| tree["port"].as_u64());
                let quoted = template::quoted_for_shell(&variables);
                let text = template::render(command, &quoted)
                    .map_err(|error| Trouble::Failed(error.to_string()))?;
                with_port(&text, port.and_then(|port| u16::try_from(port).ok()))
            }
        };
        self.start(leaf, Some(self.child_id(&key(leaf))), command.clone(), None).await?;
        let script = Script {
            key: &key(leaf),
            step: &leaf.path,
            command: &command,
            directory: &directory,
            timeout_seconds: leaf.step.timeout.map(|timeout| timeout.as_secs()),
        };
        let ended = match self.run_script(script, halt).await? {
            ScriptEnd::Exited { code, output } => script_ended(leaf, code, &output),
            ScriptEnd::Failed { error, output, reason } => StepEnded {
                output: json!({ "output": output, "exit_code": null }),
                error: Some(error),
                reason: Some(reason_for(reason)),
                ..leaf.ended(StepResult::Failed)
            },
            ScriptEnd::Unknown if rerun => return self.again(leaf, halt).await,
            ScriptEnd::Unknown => return self.interrupted(leaf, halt).await,
        };
        Ok(StepEnd::Ended(ended))
    }

    /// Begins the next attempt of a step that may be repeated.
    async fn again(&self, leaf: &Leaf, halt: &CancellationToken) -> Result<StepEnd, Trouble> {
        let next = Leaf { attempt: leaf.attempt + 1, ..leaf.clone() };
        let crate::definition::Work::Script { command, rerun } = &leaf.step.work else {
            return Ok(StepEnd::Ended(leaf.ended(StepResult::Failed)));
        };
        Box::pin(self.script(&next, command, *rerun, halt)).await
    }

    /// A command whose end nobody knows is not run again by itself: a person decides.
    async fn interrupted(&self, leaf: &Leaf, halt: &CancellationToken) -> Result<StepEnd, Trouble> {
        let id = QuestionId::derived(&self.id().to_string(), &format!("interrupted {}", key(leaf)));
        let answer = self.journal.read(|_, run| match run.asked(id) {
            Asked::Answered(answer) => Some(answer.text.clone()),
            Asked::No | Asked::Open => None,
        });
        match answer.await.as_deref() {
            None => {
                let text = format!(
                    "The command of step `{}` was interrupted; whether it ended is not known.",
                    leaf.path
                );
                let asked = Question {
                    context: self.text_of(leaf).await,
                    options: INTERRUPTED_OPTIONS.map(str::to_owned).to_vec(),
                    ..question(id, text)
                };
                self.journal.ask(self.now(), asked).await?;
                Err(Trouble::Wait(Wait::Answer(id)))
            }
            Some(text) if text == INTERRUPTED_OPTIONS[0] => self.again(leaf, halt).await,
            Some(text) if text == INTERRUPTED_OPTIONS[1] => {
                Ok(StepEnd::Ended(script_ended(leaf, 0, "")))
            }
            Some(_) => Ok(StepEnd::Ended(StepEnded {
                error: Some("it was interrupted".to_owned()),
                reason: Some(StatusReason::Error),
                ..leaf.ended(StepResult::Failed)
            })),
        }
    }

    pub(super) async fn ask(
        &self,
        leaf: &Leaf,
        text: &str,
        options: &[String],
    ) -> Result<StepEnd, Trouble> {
        let id = QuestionId::derived(&self.id().to_string(), &format!("ask {}", key(leaf)));
        let answer = self.journal.read(|_, run| match run.asked(id) {
            Asked::Answered(answer) => Some(answer.text.clone()),
            Asked::No | Asked::Open => None,
        });
        if let Some(answer) = answer.await {
            let output = json!({ "answer": answer });
            return Ok(StepEnd::Ended(StepEnded { output, ..leaf.ended(StepResult::Succeeded) }));
        }
        let text = match self.text_of(leaf).await {
            Some(text) => text,
            None => template::render(text, &self.variables(leaf).await)
                .map_err(|error| Trouble::Failed(error.to_string()))?,
        };
        let asked = Question { options: options.to_vec(), ..question(id, text.clone()) };
        self.start(leaf, None, text, Some(asked)).await?;
        Err(Trouble::Wait(Wait::Answer(id)))
    }
}

/// What names the task of an attempt.
pub(super) fn key(leaf: &Leaf) -> String {
    format!("{} #{}", leaf.path, leaf.attempt)
}

/// What an agent said, by the output contract (WF-053…058).
fn agent_end(leaf: &Leaf, text: &str, changed: Vec<String>) -> StepEnded {
    match AgentOutput::read(text) {
        Ok(said) => StepEnded {
            output: json!({
                "summary": said.summary, "outputs": said.outputs, "error": said.error,
                "changed_files": changed,
            }),
            error: (!said.success).then(|| said.error.unwrap_or(said.summary)),
            reason: (!said.success).then_some(StatusReason::Error),
            ..leaf.ended(if said.success { StepResult::Succeeded } else { StepResult::Failed })
        },
        Err(missing) => StepEnded {
            output: json!({ "summary": "", "outputs": {}, "changed_files": changed, "text": text }),
            error: Some(missing.to_string()),
            reason: Some(StatusReason::Error),
            ..leaf.ended(StepResult::Failed)
        },
    }
}

fn script_ended(leaf: &Leaf, code: i32, output: &str) -> StepEnded {
    let has_failed = code != 0;
    StepEnded {
        output: json!({ "output": output.trim_end_matches('\n'), "exit_code": code }),
        error: has_failed.then(|| format!("exit code {code}")),
        reason: has_failed.then_some(StatusReason::Error),
        ..leaf.ended(if has_failed { StepResult::Failed } else { StepResult::Succeeded })
    }
}
