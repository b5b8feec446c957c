//! Agent steps that another program works on: its task, its questions and its end.
//!
//! Invariants:
//! - What a program asks is a question of its step's task, in the one inbox. An answer is given once.
//! - A program that a crash has interrupted is resumed by its own session, where it has one.

mod attending;
mod paying;
mod starting;
mod edits;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use jiff::Timestamp;
use windlass_core::ending::Ending;
use windlass_core::error::{ErrorDetails, ErrorType};
use windlass_core::event::{Event, RunnerReported, StatusChanged, WorkflowPart};
use windlass_core::id::QuestionId;
use windlass_core::state::TaskState;
use windlass_core::status::{StatusReason, TaskStatus};
use windlass_store::RuntimeRow;

use super::children::NewTask;
use super::journal::RunJournal;
use super::steps::Attempt;
use super::{Engine, Error, Trouble, Wait};
use crate::definition::AgentWork;
use crate::runner::{
    Activity, GivenAnswer, Job, Runner, RunnerEnding, RunnerLimits, RunnerResult, Usage,
};

/// What a program said, or why it said nothing.
pub(super) type Said = Result<String, (String, StatusReason)>;

impl Attempt<'_> {
    /// Has another program work on the step; what it said at its end.
    pub(super) async fn program(
        self,
        work: &AgentWork,
        name: &str,
        prompt: &str,
        directory: &Path,
    ) -> Result<Said, Trouble> {
        let engine = self.engine;
        let wanted = NewTask {
            key: &self.key(),
            goal: prompt.to_owned(),
            directory,
            workspace: None,
            part: WorkflowPart::Program {
                step: self.leaf.path.clone(),
                runner: name.to_owned(),
                about: self.about(work).await,
            },
            timeout_seconds: self.leaf.step.timeout.map(|timeout| timeout.as_secs()),
            model: work.model.clone(),
            profile: work.profile,
        };
        let task = engine.children().create(wanted).await?;
        let state = windlass_agent::History::read(engine.tree.store(), task)?.into_state();
        let has_failed = matches!(state.reason, StatusReason::Timeout | StatusReason::Error);
        if state.status.is_terminal() || (state.status == TaskStatus::Blocked && has_failed) {
            return Ok(said_before(engine, &state)?);
        }
        let command = engine.workflow.runners.get(name).map(Vec::as_slice);
        let runner = match engine.host.runner(directory, name, command) {
            Ok(runner) => runner,
            Err(error) => return Ok(Err((with_hint(error), StatusReason::Error))),
        };
        let journal = RunJournal::open(engine.tree.stream(task)?, state)?;
        let seen_at = directory.to_owned();
        let used = Mutex::default();
        let program = Program { attempt: self, journal, runner, seen_at, used };
        program.work(work, prompt, directory).await
    }
}

/// An answer that a program had not got when it was interrupted.
#[derive(Clone)]
struct LateAnswer {
    question: QuestionId,
    given: GivenAnswer,
}

/// Another program at work on a step.
struct Program<'e> {
    attempt: Attempt<'e>,
    /// Of the step's task.
    journal: RunJournal,
    runner: Arc<dyn Runner>,
    /// The worktree, as its sandbox names it.
    seen_at: PathBuf,
    /// What is journaled of what it has used since it began or was resumed.
    used: Mutex<Usage>,
}

impl Program<'_> {
    async fn work(
        mut self,
        work: &AgentWork,
        prompt: &str,
        directory: &Path,
    ) -> Result<Said, Trouble> {
        let (engine, task) = (self.attempt.engine, self.journal.id());
        self.journal.drain(engine.now()).await?;
        self.check_budget().await?;
        self.check_start().await?;
        let place = self.journal.read(|state, _| state.clone()).await;
        let place = match engine.host.sandbox(&place).await {
            Ok(place) => place,
            Err(error) => return Ok(Err((with_hint(error), StatusReason::Error))),
        };
        self.journal.begin(engine.now(), self.runner.name()).await?;
        self.seen_at = place.sandbox.isolation().workspace;
        let (resume, late) = self.before()?;
        let answers = late.iter().map(|answer| answer.given.clone()).collect();
        let timeout = self.attempt.leaf.step.timeout;
        let job = Job {
            id: task.to_string(),
            prompt: prompt.to_owned(),
            directory: self.seen_at.clone(),
            state: place.state,
            environment: place.environment,
            mcp_servers: place.mcp_servers,
            instructions: place.instructions,
            git_directory: engine.repository.common(),
            model: work.model.clone(),
            resume,
            answers,
            limits: RunnerLimits { stall: place.stall, timeout, ..RunnerLimits::DEFAULT },
        };
        self.show_worker(work.model.clone(), directory).await;
        let ended = self.attend(job, &*place.sandbox, late).await;
        place.sandbox.stop().await;
        // A row that stays behind names a process that has ended.
        let _ = engine.tree.store().owners().runtime().clear(task, std::process::id()).await;
        self.conclude(ended?).await
    }

    fn now(&self) -> Timestamp {
        self.attempt.engine.now()
    }

    /// Shows who works where (MS-140, MS-144). That it is not shown holds up nothing.
    async fn show_worker(&self, current_model: Option<String>, directory: &Path) {
        let runtime = RuntimeRow {
            process_pid: std::process::id(),
            worktree_path: Some(directory.display().to_string()),
            current_model,
            context_usage_percent: None,
            last_heartbeat_at: self.now(),
        };
        let _ = self
            .attempt
            .engine
            .tree
            .store()
            .owners()
            .runtime()
            .set(self.journal.id(), runtime)
            .await;
    }

    async fn block(&self, reason: StatusReason) -> Result<(), Error> {
        let status = self.journal.read(|task, _| task.status).await;
        let moved = StatusChanged::new(status, TaskStatus::Blocked, reason);
        match status {
            TaskStatus::Blocked => Ok(()),
            _ => self.journal.commit(self.now(), vec![Event::StatusChanged(moved)]).await,
        }
    }

    async fn unblock(&self) -> Result<(), Error> {
        let (status, is_open) =
            self.journal.read(|task, _| (task.status, !task.open_questions.is_empty())).await;
        let moved = StatusChanged::new(status, TaskStatus::Running, StatusReason::User);
        match status == TaskStatus::Blocked && !is_open {
            true => self.journal.commit(self.now(), vec![Event::StatusChanged(moved)]).await,
            false => Ok(()),
        }
    }

    /// Its session, and the answers that it has not got, from before a restart.
    fn before(&self) -> Result<(Option<String>, Vec<LateAnswer>), Error> {
        let (mut session, mut asked, mut answers) = (None, Vec::new(), Vec::new());
        for record in self.attempt.engine.tree.store().journal().of(self.journal.id())? {
            match record.event {
                Event::RunnerReported(reported) => {
                    session = reported.session.or(session);
                    let delivered = reported.delivered;
                    answers.retain(|late: &LateAnswer| Some(late.question) != delivered);
                }
                Event::QuestionAsked(question) => asked.push(question),
                Event::QuestionAnswered(answered) => {
                    let question = asked.iter().find(|question| question.id == answered.question);
                    let fingerprint = question.and_then(|question| question.binding.clone());
                    answers.extend(fingerprint.map(|binding| LateAnswer {
                        question: answered.question,
                        given: GivenAnswer {
                            fingerprint: binding.arguments_hash,
                            text: answered.answer.text,
                        },
                    }));
                }
                _ => {}
            }
        }
        Ok((session, answers))
    }

    /// What a person should know about how it ended is part of what it printed.
    async fn note_remarks(&self, notes: &[String]) -> Result<(), Error> {
        if notes.is_empty() {
            return Ok(());
        }
        let lines: String = notes.iter().map(|note| format!("[note] {note}\n")).collect();
        let reported = RunnerReported { output: Some(lines), ..RunnerReported::default() };
        let reported = Event::RunnerReported(Box::new(reported));
        self.journal.commit(self.now(), vec![reported]).await
    }

    async fn conclude(self, ended: RunnerResult) -> Result<Said, Trouble> {
        self.note_remarks(&ended.notes).await?;
        self.pay(ended.usage, Some(Activity::Ended)).await?;
        let (ending, said) = match ended.how {
            RunnerEnding::Finished => (Ending::Done, Ok(ended.text.clone())),
            RunnerEnding::TimedOut(why) => {
                let error = ErrorDetails::new(ErrorType::Timeout, why.clone());
                (
                    Ending::Stuck { reason: StatusReason::Timeout, error },
                    Err((why, StatusReason::Timeout)),
                )
            }
            RunnerEnding::Failed(why) => {
                let error = ErrorDetails::new(ErrorType::Workflow, why.clone());
                (
                    Ending::Stuck { reason: StatusReason::Error, error },
                    Err((why, StatusReason::Error)),
                )
            }
            RunnerEnding::Stopped if self.attempt.halt.is_cancelled() => {
                let ending = Ending::paused(StatusReason::Shutdown);
                self.journal.end(&self.attempt.engine.tree, &ending, None).await?;
                return Err(Trouble::Wait(Wait::Parked));
            }
            // It was stopped by its budget, and continues if a person raises that.
            RunnerEnding::Stopped if self.is_over_budget().await => {
                self.ask_for_budget().await?;
                let tree = &self.attempt.engine.tree;
                self.journal.end(tree, &Ending::OverBudget, None).await?;
                return Err(Trouble::Wait(Wait::Budget(self.journal.id())));
            }
            RunnerEnding::Stopped => {
                let why = "it was stopped".to_owned();
                (Ending::Cancelled(Some(why.clone())), Err((why, StatusReason::Error)))
            }
        };
        self.journal.end(&self.attempt.engine.tree, &ending, Some(ended.text)).await?;
        Ok(said)
    }
}

/// What a program said whose task has ended, as it was said at its end.
fn said_before(engine: &Engine<'_>, task: &TaskState) -> Result<Said, Error> {
    let ends = engine.tree.store().journal().of(task.id())?.into_iter().rev().find_map(|record| {
        match record.event {
            Event::AgentEnd(result) => Some(*result),
            _ => None,
        }
    });
    let reason = match task.reason {
        StatusReason::Timeout => StatusReason::Timeout,
        _ => StatusReason::Error,
    };
    let result = ends.and_then(|result| match result.error_details {
        Some(error) => Some(Err((error.message, reason))),
        None => result.final_message.map(Ok),
    });
    Ok(result.unwrap_or_else(|| Err(("it was cancelled".to_owned(), reason))))
}

fn with_hint(error: ErrorDetails) -> String {
    match error.hint {
        Some(hint) => format!("{}; {hint}", error.message),
        None => error.message,
    }
}
