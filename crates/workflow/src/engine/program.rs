//! Agent steps that another program works on: its task, its questions and its end.
//!
//! Invariants:
//! - What a program asks is a question of its step's task, in the one inbox. An answer is given once.
//! - A program that a crash has interrupted is resumed by its own session, where it has one.

mod attending;
mod edits;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use windlass_core::axes::PermissionProfile;
use windlass_core::ending::Ending;
use windlass_core::error::{ErrorDetails, ErrorType};
use windlass_core::event::{Event, RunnerReported, StatusChanged, WorkflowPart};
use windlass_core::id::{QuestionId, TaskId};
use windlass_core::question::{PERMISSION_OPTIONS, Permission, Question, QuestionKind};
use windlass_core::status::{StatusReason, TaskStatus};
use windlass_store::RuntimeRow;

use super::children::NewTask;
use super::journal::RunJournal;
use super::steps::Attempt;
use super::{Engine, Error, Trouble, Wait, question};
use crate::definition::AgentWork;
use crate::runner::{Activity, Ended, GivenAnswer, Job, Runner, RunnerEnding, RunnerLimits, Usage};

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
            return Ok(said_before(engine, task)?);
        }
        let command = engine.workflow.runners.get(name).map(Vec::as_slice);
        let runner = match engine.host.runner(directory, name, command) {
            Ok(runner) => runner,
            Err(error) => return Ok(Err((with_hint(error), StatusReason::Error))),
        };
        let journal = RunJournal::open(engine.tree.stream(task)?, state)?;
        let seen_at = directory.to_owned();
        Program { attempt: self, journal, runner, seen_at }.work(work, prompt, directory).await
    }
}

/// Another program at work on a step.
struct Program<'e> {
    attempt: Attempt<'e>,
    /// Of the step's task.
    journal: RunJournal,
    runner: Arc<dyn Runner>,
    /// The worktree, as its sandbox names it.
    seen_at: PathBuf,
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
        self.check_start().await?;
        let place = self.journal.read(|state, _| state.clone()).await;
        let place = match engine.host.sandbox(&place).await {
            Ok(place) => place,
            Err(error) => return Ok(Err((with_hint(error), StatusReason::Error))),
        };
        self.journal.begin(engine.now(), self.runner.name()).await?;
        self.seen_at = place.sandbox.isolation().workspace;
        let (resume, answers) = self.before()?;
        let timeout = self.attempt.leaf.step.timeout;
        let job = Job {
            id: task.to_string(),
            prompt: prompt.to_owned(),
            directory: self.seen_at.clone(),
            state: place.state,
            environment: place.environment,
            mcp_servers: place.mcp_servers,
            model: work.model.clone(),
            resume,
            answers,
            limits: RunnerLimits { stall: place.stall, timeout, ..RunnerLimits::DEFAULT },
        };
        self.show_worker(work.model.clone(), directory).await;
        let ended = self.attend(job, &*place.sandbox).await;
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

    /// The gate, for a program: below `trusted` a person says whether it may start.
    async fn check_start(&self) -> Result<(), Trouble> {
        if self.journal.read(|task, _| task.axes.permission_profile).await
            >= PermissionProfile::Trusted
        {
            return Ok(());
        }
        let id = QuestionId::derived(&self.journal.id().to_string(), "start");
        let text = format!("May `{}` work in this worktree?", self.runner.name());
        let asked = Question {
            kind: QuestionKind::Permission,
            options: PERMISSION_OPTIONS.map(str::to_owned).to_vec(),
            ..question(id, text)
        };
        match self.journal.answer_to(id).await.map(|text| asked.permission(&text)) {
            Some(Some(Permission::Allow | Permission::AllowAll)) => Ok(()),
            Some(_) => {
                Err(Trouble::Failed(format!("`{}` was not allowed to start", self.runner.name())))
            }
            None => {
                self.journal.ask(self.now(), asked).await?;
                self.block().await?;
                Err(Trouble::Wait(Wait::Child(self.journal.id())))
            }
        }
    }

    async fn block(&self) -> Result<(), Error> {
        let status = self.journal.read(|task, _| task.status).await;
        let moved = StatusChanged::new(status, TaskStatus::Blocked, StatusReason::Question);
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

    /// Its session and the answers to its questions, from before a restart.
    fn before(&self) -> Result<(Option<String>, Vec<GivenAnswer>), Error> {
        let (mut session, mut asked, mut answers) = (None, Vec::new(), Vec::new());
        for record in self.attempt.engine.tree.store().journal().of(self.journal.id())? {
            match record.event {
                Event::RunnerReported(reported) => session = reported.session.or(session),
                Event::QuestionAsked(question) => asked.push(question),
                Event::QuestionAnswered(answered) => {
                    let question = asked.iter().find(|question| question.id == answered.question);
                    let fingerprint = question.and_then(|question| question.binding.clone());
                    answers.extend(fingerprint.map(|binding| GivenAnswer {
                        fingerprint: binding.arguments_hash,
                        text: answered.answer.text,
                    }));
                }
                _ => {}
            }
        }
        Ok((session, answers))
    }

    async fn conclude(self, ended: Ended) -> Result<Said, Trouble> {
        let done = RunnerReported {
            activity: Some(Activity::Ended.to_string()),
            usage: used(ended.usage),
            ..RunnerReported::default()
        };
        self.journal.commit(self.now(), vec![Event::RunnerReported(Box::new(done))]).await?;
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
            RunnerEnding::Stopped => {
                let why = "it was stopped".to_owned();
                (Ending::Cancelled(Some(why.clone())), Err((why, StatusReason::Error)))
            }
        };
        self.journal.end(&self.attempt.engine.tree, &ending, Some(ended.text)).await?;
        Ok(said)
    }
}

/// What a program said whose task has ended.
fn said_before(engine: &Engine<'_>, task: TaskId) -> Result<Said, Error> {
    let ends = engine.tree.store().journal().of(task)?.into_iter().rev().find_map(|record| {
        match record.event {
            Event::AgentEnd(result) => Some(*result),
            _ => None,
        }
    });
    let result = ends.and_then(|result| match result.error_details {
        Some(error) => Some(Err((error.message, StatusReason::Error))),
        None => result.final_message.map(Ok),
    });
    Ok(result.unwrap_or_else(|| Err(("it was cancelled".to_owned(), StatusReason::Error))))
}

/// What a program used, as a task's sums take it; nothing where it said nothing.
fn used(usage: Usage) -> Option<windlass_core::message::Usage> {
    let said = windlass_core::message::Usage {
        input_tokens: usage.input_tokens,
        output_tokens: usage.output_tokens,
        cost_usd: usage.cost_usd,
        ..Default::default()
    };
    (usage != Usage::default()).then_some(said)
}

fn with_hint(error: ErrorDetails) -> String {
    match error.hint {
        Some(hint) => format!("{}; {hint}", error.message),
        None => error.message,
    }
}
