//! Steps that work by themselves: agents, commands, questions.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use windlass_core::event::{Event, StepEnded, StepResult, StepStarted, WorkflowPart};
use windlass_core::id::{QuestionId, TaskId};
use windlass_core::question::{AcceptedAnswers, Question};
use windlass_core::status::StatusReason;
use windlass_core::text::one_line;

use super::children::{ChildEnd, NewTask, Script, ScriptEnd};
use super::picking::Tries;
use super::places::{Worktrees, reason_for};
use super::{Engine, Error, StepEnd, Trouble, Wait, decision, question};
use crate::definition::{AgentWork, OWN_RUNNER, Work};
use crate::next::Leaf;
use crate::output::AgentOutput;
use crate::{spell, template, worktree};

/// What a person may say to a command whose end nobody knows.
const INTERRUPTED_OPTIONS: [&str; 3] = ["Run it again", "It succeeded", "It failed"];

/// How much of the last line of a command that failed is in its error.
const LAST_WORDS: usize = 200;

/// What a person has said to the run, for its next agent.
const SAID_PROMPT: &str = include_str!("../prompts/said.md");

/// One attempt at a step.
#[derive(Clone, Copy)]
pub(super) struct Attempt<'e> {
    pub engine: &'e Engine<'e>,
    pub leaf: &'e Leaf,
    pub halt: &'e CancellationToken,
}

/// A command of a step, with its values in it.
pub(super) struct CommandLine<'a> {
    pub text: String,
    pub directory: PathBuf,
    /// The program whose credentials it gets.
    pub program: Option<&'a str>,
    /// Whether it may run again after an interruption.
    pub rerun: bool,
}

impl<'e> Attempt<'e> {
    /// Works on the step until it has ended or waits.
    pub(super) async fn work(self) -> Result<StepEnd, Trouble> {
        match &self.leaf.step.work {
            Work::Agent(work) => self.agent(work).await,
            Work::Script { command, rerun } => self.script(command, *rerun).await,
            Work::Ask { question, options, from } => {
                self.ask(question, options, from.as_deref()).await
            }
            Work::Merge(work) => self.merge(work).await,
            Work::PullRequest(work) => self.pull_request(work).await,
            Work::Parallel(work) => self.join(work).await,
            // A loop is what its rounds are; it never works itself.
            Work::Loop(_) => Ok(StepEnd::Ended(self.leaf.ended(StepResult::Succeeded))),
        }
    }

    /// What names the task of the attempt.
    pub(super) fn key(self) -> String {
        format!("{} #{}", self.leaf.path, self.leaf.attempt)
    }

    pub(super) fn worktrees(self) -> Worktrees<'e> {
        self.engine.worktrees(self.halt, self.leaf.attempt)
    }

    /// Journals that a step begins, unless this attempt has.
    pub(super) async fn start(
        self,
        task: Option<TaskId>,
        text: String,
        with: Option<Question>,
    ) -> Result<(), Error> {
        let (path, attempt) = (self.leaf.path.as_str(), self.leaf.attempt);
        let has_begun = self.engine.journal.read(|_, run| {
            let started = run.step(path).and_then(|step| step.started.as_ref());
            started.is_some_and(|started| started.attempt == attempt)
        });
        if has_begun.await {
            return Ok(());
        }
        let kind = self.leaf.step.work.kind().to_string();
        let started = StepStarted { step: path.to_owned(), attempt, kind, task, text };
        let asked = with.map(Event::QuestionAsked);
        let started = Event::WorkflowStepStarted(Box::new(started));
        self.engine.commit([started].into_iter().chain(asked).collect()).await
    }

    /// What templates find besides what was known when the step was chosen.
    pub(super) async fn variables(self) -> serde_json::Map<String, Value> {
        let mut variables = self.leaf.variables.clone();
        let tree = self
            .engine
            .journal
            .read(|_, run| run.worktrees.get(&self.leaf.worktree).cloned())
            .await;
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
    pub(super) async fn text(self) -> Option<String> {
        let (path, attempt) = (self.leaf.path.as_str(), self.leaf.attempt);
        self.engine
            .journal
            .read(|_, run| {
                let started = run.step(path)?.started.as_ref()?;
                (started.attempt == attempt).then(|| started.text.clone())
            })
            .await
    }

    pub(super) async fn agent(self, work: &AgentWork) -> Result<StepEnd, Trouble> {
        let directory = self.worktrees().place(&self.leaf.worktree).await?;
        let prompt = match self.text().await {
            Some(text) => text,
            None => self.prompt(work).await?,
        };
        let runner = work.runner.as_deref().unwrap_or(&self.engine.workflow.runner);
        self.start(Some(self.engine.children().id(&self.key())), prompt.clone(), None).await?;
        let said = match runner {
            OWN_RUNNER => self.own_agent(work, &prompt, &directory).await?,
            other => self.program(work, other, &prompt, &directory).await?,
        };
        let changed = self.changed_files(&self.leaf.worktree, &directory).await?;
        let ended = match said {
            Ok(text) => agent_end(self.leaf, &text, changed),
            Err((error, reason)) => StepEnded {
                output: json!({ "summary": "", "outputs": {}, "changed_files": changed }),
                error: Some(error),
                reason: Some(reason),
                ..self.leaf.ended(StepResult::Failed)
            },
        };
        Ok(StepEnd::Ended(ended))
    }

    /// What the step asks for, in a line for people.
    pub(super) async fn about(self, work: &AgentWork) -> String {
        spell::about(&self.engine.source, &work.spell, &self.variables().await)
    }

    /// What the agent is given, with what people have said to the run meanwhile.
    async fn prompt(self, work: &AgentWork) -> Result<String, Trouble> {
        let prompt = spell::prompt(&self.engine.source, &work.spell, &self.variables().await)
            .map_err(|error| Trouble::Failed(error.to_string()))?;
        self.engine.journal.drain(self.engine.now()).await?;
        let said = self.engine.journal.read(|_, run| run.messages.join("\n\n")).await;
        Ok(match said.is_empty() {
            true => prompt,
            false => prompt + &SAID_PROMPT.replace("{{said}}", &said),
        })
    }

    /// What our own loop said at its end, or why it said nothing.
    pub(super) async fn own_agent(
        self,
        work: &AgentWork,
        prompt: &str,
        directory: &Path,
    ) -> Result<Result<String, (String, StatusReason)>, Trouble> {
        let wanted = NewTask {
            key: &self.key(),
            goal: prompt.to_owned(),
            directory,
            workspace: None,
            part: WorkflowPart::Agent {
                step: self.leaf.path.clone(),
                is_try: self.engine.workflow.is_try(&self.leaf.path),
                about: self.about(work).await,
            },
            timeout_seconds: self.leaf.step.timeout.map(|timeout| timeout.as_secs()),
            model: work.model.clone(),
            profile: work.profile,
        };
        let task = self.engine.children().create(wanted).await?;
        Ok(match self.engine.children().drive(task, self.halt).await? {
            ChildEnd::Done(state) => Ok(state.last_reply.final_text.clone().unwrap_or_default()),
            ChildEnd::Failed { error, reason } => Err((error, reason_for(reason))),
        })
    }

    /// Files that differ from where the worktree began (WF-026).
    async fn changed_files(self, name: &str, directory: &Path) -> Result<Vec<String>, Trouble> {
        let base = self
            .engine
            .journal
            .read(|_, run| run.worktrees.get(name).map(|tree| tree.base.clone()))
            .await
            // Where a command has made it, git does not know what has changed.
            .filter(|base| !base.is_empty());
        let Some(base) = base else { return Ok(Vec::new()) };
        let directory = directory.to_owned();
        self.engine
            .repository
            .with(move |git| worktree::changed_files(git, &directory, &base))
            .await
    }

    pub(super) async fn script(self, command: &str, rerun: bool) -> Result<StepEnd, Trouble> {
        let directory = self.worktrees().place(&self.leaf.worktree).await?;
        let command = match self.text().await {
            Some(text) => text,
            None => self.command(command, self.variables().await)?,
        };
        self.run_command(CommandLine { text: command, directory, program: None, rerun }).await
    }

    /// A command with its values, quoted for the shell.
    pub(super) fn command(
        self,
        text: &str,
        variables: serde_json::Map<String, Value>,
    ) -> Result<String, Trouble> {
        template::render_command(text, &variables)
            .map_err(|error| Trouble::Failed(error.to_string()))
    }

    /// Runs the command of the step, once.
    pub(super) async fn run_command(self, command: CommandLine<'_>) -> Result<StepEnd, Trouble> {
        let task = self.engine.children().id(&self.key());
        self.start(Some(task), command.text.clone(), None).await?;
        let script = Script {
            key: &self.key(),
            step: &self.leaf.path,
            command: &command.text,
            directory: &command.directory,
            workspace: None,
            program: command.program,
            timeout_seconds: self.leaf.step.timeout.map(|timeout| timeout.as_secs()),
        };
        let ended = match self.engine.children().run_script(script, self.halt).await? {
            ScriptEnd::Exited { code, output } => script_ended(self.leaf, code, &output),
            ScriptEnd::Failed { error, output, reason } => StepEnded {
                output: json!({ "output": output, "exit_code": null }),
                error: Some(error),
                reason: Some(reason_for(reason)),
                ..self.leaf.ended(StepResult::Failed)
            },
            ScriptEnd::Unknown if command.rerun => return self.again().await,
            ScriptEnd::Unknown => return self.interrupted().await,
        };
        Ok(StepEnd::Ended(ended))
    }

    /// Begins the next attempt of a step that may be repeated.
    async fn again(self) -> Result<StepEnd, Trouble> {
        let next = Leaf { attempt: self.leaf.attempt + 1, ..self.leaf.clone() };
        Box::pin(Attempt { leaf: &next, ..self }.work()).await
    }

    /// A command whose end nobody knows is not run again by itself: a person decides.
    async fn interrupted(self) -> Result<StepEnd, Trouble> {
        let id = QuestionId::derived(
            &self.engine.id().to_string(),
            &format!("interrupted {}", self.key()),
        );
        match self.engine.journal.answer_to(id).await.as_deref() {
            None => {
                let text = format!(
                    "The command of step `{}` was interrupted; whether it ended is not known.",
                    self.leaf.path
                );
                let context = self.text().await;
                let asked = Question { context, ..decision(id, text, &INTERRUPTED_OPTIONS) };
                self.engine.ask(asked).await?;
                Err(Trouble::Wait(Wait::Answer(id)))
            }
            Some(text) if text == INTERRUPTED_OPTIONS[0] => self.again().await,
            Some(text) if text == INTERRUPTED_OPTIONS[1] => {
                Ok(StepEnd::Ended(script_ended(self.leaf, 0, "")))
            }
            Some(_) => Ok(StepEnd::Ended(StepEnded {
                error: Some("it was interrupted".to_owned()),
                reason: Some(StatusReason::Error),
                ..self.leaf.ended(StepResult::Failed)
            })),
        }
    }

    pub(super) async fn ask(
        self,
        text: &str,
        options: &[String],
        from: Option<&str>,
    ) -> Result<StepEnd, Trouble> {
        let tries = match from {
            Some(step) => self.tries(step).await?,
            None => Tries::default(),
        };
        if from.is_some() && tries.usable.is_empty() {
            return Err(Trouble::Failed(format!("nothing to pick from\n{}", tries.context)));
        }
        let options = [tries.usable.as_slice(), options].concat();
        let mut number = 0;
        let id = loop {
            let id = self.question_id(number);
            match self.engine.journal.answer_to(id).await {
                None => break id,
                // Of tries only one that is offered can be taken: it is asked again.
                Some(answer) if from.is_some() && !options.contains(&answer) => number += 1,
                Some(answer) => {
                    let output = json!({ "answer": answer });
                    let ended = self.leaf.ended(StepResult::Succeeded);
                    return Ok(StepEnd::Ended(StepEnded { output, ..ended }));
                }
            }
        };
        let text = match self.text().await {
            Some(text) => text,
            None => template::render(text, &self.variables().await)
                .map_err(|error| Trouble::Failed(error.to_string()))?,
        };
        let context = Some(tries.context).filter(|context| !context.is_empty());
        // What follows compares the answer with the options: other words would be taken for a no.
        let accepts = match options.is_empty() {
            true => AcceptedAnswers::Words,
            false => AcceptedAnswers::Options,
        };
        let asked = Question { options, context, accepts, ..question(id, text.clone()) };
        match number {
            0 => self.start(None, text, Some(asked)).await?,
            _ => self.engine.ask(asked).await?,
        }
        Err(Trouble::Wait(Wait::Answer(id)))
    }

    /// The question of an `ask` step; `number` counts the answers to it that were none.
    fn question_id(self, number: u32) -> QuestionId {
        let key = match number {
            0 => format!("ask {}", self.key()),
            number => format!("ask {} {number}", self.key()),
        };
        QuestionId::derived(&self.engine.id().to_string(), &key)
    }
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

/// Why a command failed: its last words say more than its code.
pub(super) fn failure(code: i32, output: &str) -> String {
    match output.lines().rfind(|line| !line.trim().is_empty()) {
        Some(last) => format!("exit code {code}: {}", one_line(last, LAST_WORDS)),
        None => format!("exit code {code}"),
    }
}

fn script_ended(leaf: &Leaf, code: i32, output: &str) -> StepEnded {
    let has_failed = code != 0;
    StepEnded {
        output: json!({ "output": output.trim_end_matches('\n'), "exit_code": code }),
        error: has_failed.then(|| failure(code, output)),
        reason: has_failed.then_some(StatusReason::Error),
        ..leaf.ended(if has_failed { StepResult::Failed } else { StepResult::Succeeded })
    }
}
