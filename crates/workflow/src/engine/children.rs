//! The tasks below a run: one for each step that an agent, a command or another program works on.
//!
//! Invariant: a step's task has an id that follows from the run, the step and the attempt. However often a process dies,
//! it is made once.

use std::path::Path;

use tokio_util::sync::CancellationToken;
use windlass_core::axes::{Axes, PermissionProfile, RunControl, Surface, WorkMode};
use windlass_core::command::{ExecutionConfig, TaskCommand};
use windlass_core::event::{Event, ScriptWork, TaskCreated, WorkflowPart};
use windlass_core::id::{CommandId, InjectionId, TaskId};
use windlass_core::injection::{Control, Injection};
use windlass_core::outcome::{AbortCause, CallEnding, Outcome};
use windlass_core::state::TaskState;
use windlass_core::status::{StatusReason, TaskStatus};

use super::{Engine, Error, Trouble, Wait};

/// How often a command may be lost by the process that started it; then something is wrong with its sandbox.
const MAX_LOST: u32 = 2;

/// A task that is to be made.
pub(super) struct NewTask<'a> {
    /// What is worked on, in the run: a step's path and attempt, say.
    pub key: &'a str,
    pub goal: String,
    pub directory: &'a Path,
    /// A workspace that it makes or removes.
    pub workspace: Option<&'a Path>,
    pub part: WorkflowPart,
    pub timeout_seconds: Option<u64>,
    pub model: Option<String>,
    pub profile: Option<PermissionProfile>,
}

/// A command of the workflow's file.
#[derive(Clone, Copy)]
pub(super) struct Script<'a> {
    pub key: &'a str,
    pub step: &'a str,
    pub command: &'a str,
    pub directory: &'a Path,
    /// The workspace that it makes or removes.
    pub workspace: Option<&'a Path>,
    /// The program whose credentials it gets, where the person's configuration names some.
    pub program: Option<&'a str>,
    pub timeout_seconds: Option<u64>,
}

/// How a command ended.
pub(super) enum ScriptEnd {
    Exited {
        code: i32,
        output: String,
    },
    /// It did not get to exit: the gate refused it, its time was up, a signal ended it.
    Failed {
        error: String,
        output: String,
        reason: StatusReason,
    },
    /// Whether it ended, nobody knows.
    Unknown,
}

/// How a task ended.
pub(super) enum ChildEnd {
    Done(Box<TaskState>),
    Failed { error: String, reason: StatusReason },
}

/// The tasks below a run.
#[derive(Clone, Copy)]
pub(super) struct Children<'e> {
    pub engine: &'e Engine<'e>,
}

impl Children<'_> {
    /// The id of a step's task.
    pub(super) fn id(&self, key: &str) -> TaskId {
        TaskId::derived(&self.engine.id().to_string(), key)
    }

    /// Makes a task below the run, once.
    pub(super) async fn create(&self, wanted: NewTask<'_>) -> Result<TaskId, Error> {
        let id = self.id(wanted.key);
        if self.engine.tree.store().tasks().get(id)?.is_some() {
            return Ok(id);
        }
        let site = self.engine.site_for(&wanted).await;
        let created = self
            .engine
            .journal
            .read(|run, _| created(run, id, wanted, site, self.engine.now()))
            .await;
        Ok(self.engine.tree.create(created).await?)
    }

    /// Has our own loop work on a task of the run, until it has ended.
    pub(super) async fn drive(
        &self,
        task: TaskId,
        halt: &CancellationToken,
    ) -> Result<ChildEnd, Trouble> {
        let state = windlass_agent::History::read(self.engine.tree.store(), task)?.into_state();
        let state = match state.status.is_terminal() {
            true => state,
            false => self.engine.host.drive(task, halt).await?,
        };
        if state.status == TaskStatus::Cancelled && self.engine.is_ending().await {
            // Not a failure of its step: nothing comes after it.
            return Err(Trouble::Wait(Wait::Parked));
        }
        let error = || {
            let said = state.error.as_ref().map(|error| error.message.clone());
            said.unwrap_or_else(|| format!("its task is {}", state.status))
        };
        match (state.status, state.reason) {
            (TaskStatus::Done, _) => Ok(ChildEnd::Done(Box::new(state))),
            (TaskStatus::Failed, reason) => Ok(ChildEnd::Failed { error: error(), reason }),
            (TaskStatus::Cancelled, _) => Ok(ChildEnd::Failed {
                error: "it was cancelled".to_owned(),
                reason: StatusReason::Error,
            }),
            (TaskStatus::Blocked, StatusReason::Timeout | StatusReason::Error) => {
                Ok(ChildEnd::Failed { error: error(), reason: state.reason })
            }
            (TaskStatus::Blocked, StatusReason::Budget) => Err(Trouble::Wait(Wait::Budget(task))),
            (TaskStatus::Blocked, _) => Err(Trouble::Wait(Wait::Child(task))),
            (TaskStatus::Paused, reason) if reason.resumes_at_a_time() => {
                let until = state.until.unwrap_or_else(|| self.engine.now());
                Err(Trouble::Wait(Wait::Until(reason, until)))
            }
            _ => Err(Trouble::Wait(Wait::Parked)),
        }
    }

    /// Runs a command of the workflow's file, through the gate and in the sandbox of its directory, once.
    pub(super) async fn run_script(
        &self,
        script: Script<'_>,
        halt: &CancellationToken,
    ) -> Result<ScriptEnd, Trouble> {
        let part = WorkflowPart::Script(ScriptWork {
            step: script.step.to_owned(),
            command: script.command.to_owned(),
            program: script.program.map(str::to_owned),
            timeout_seconds: script.timeout_seconds,
        });
        let wanted = NewTask {
            key: script.key,
            goal: script.command.to_owned(),
            directory: script.directory,
            workspace: script.workspace,
            part,
            // The command has its own limit; the task around it only starts and ends it.
            timeout_seconds: None,
            model: None,
            profile: None,
        };
        let task = self.create(wanted).await?;
        let ended = self.drive(task, halt).await?;
        let records = self.engine.tree.store().journal().of(task)?;
        let outcome = records.into_iter().rev().find_map(|record| match record.event {
            Event::ToolResult(result) => Some(result.outcome),
            _ => None,
        });
        Ok(match (outcome, ended) {
            (Some(outcome), _) => script_end(outcome),
            (None, ChildEnd::Failed { error, reason }) => {
                ScriptEnd::Failed { error, output: String::new(), reason }
            }
            (None, ChildEnd::Done(_)) => ScriptEnd::Unknown,
        })
    }

    /// The same for a command that may be repeated: one whose end no process saw is run again. `number` counts the tasks
    /// that were made for it.
    pub(super) async fn run_repeatable(
        &self,
        script: Script<'_>,
        number: &mut u32,
        halt: &CancellationToken,
    ) -> Result<ScriptEnd, Trouble> {
        let mut lost = 0;
        loop {
            *number += 1;
            let key = format!("{}{number}", script.key);
            let is_new = self.engine.tree.store().tasks().get(self.id(&key))?.is_none();
            match self.run_script(Script { key: &key, ..script }, halt).await? {
                // An earlier process was killed while it ran, which says nothing about the command.
                ScriptEnd::Unknown if !is_new => {}
                ScriptEnd::Unknown if lost + 1 < MAX_LOST => lost += 1,
                ended => return Ok(ended),
            }
        }
    }

    /// Ends what works for the run: a running command is killed, as for every task that is cancelled.
    pub(super) async fn cancel(&self, why: &str) -> Result<(), Error> {
        let (tree, now) = (&self.engine.tree, self.engine.now());
        for row in tree.live_descendants(self.engine.id())? {
            let control = Control::Cancel { reason: Some(why.to_owned()) };
            let injection = Injection::control(InjectionId::new(now), control);
            match tree.store().mailbox().inject(row.id, injection, now).await {
                // It has just ended.
                Ok(_) | Err(windlass_store::Error::TaskEnded { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Whether something waits for a task or for one below it.
    pub(super) fn has_mail_below(&self, task: TaskId) -> Result<bool, Error> {
        let store = self.engine.tree.store();
        if store.mailbox().has_mail(task)? {
            return Ok(true);
        }
        for row in self.engine.tree.live_descendants(task)? {
            if store.mailbox().has_mail(row.id)? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

fn script_end(outcome: Outcome) -> ScriptEnd {
    let output = outcome.display_text().to_owned();
    // There was no command, so what people read is not its output.
    let without_output = || ScriptEnd::Failed {
        error: output.clone(),
        output: String::new(),
        reason: StatusReason::Error,
    };
    let failed = |error: &str, reason| ScriptEnd::Failed {
        error: error.to_owned(),
        output: output.clone(),
        reason,
    };
    match (outcome.exit_code, outcome.aborted_by, outcome.ending) {
        (Some(code), _, _) => ScriptEnd::Exited { code, output },
        (None, Some(AbortCause::Timeout), _) => failed("it took too long", StatusReason::Timeout),
        (None, Some(AbortCause::OutOfMemory), _) => {
            failed("it used up its memory", StatusReason::Error)
        }
        (None, Some(AbortCause::Signal(signal)), _) => {
            failed(&format!("signal {signal} ended it"), StatusReason::Error)
        }
        (None, None, CallEnding::Denied | CallEnding::Error) => without_output(),
        (None, None, CallEnding::Unknown | CallEnding::Cancelled) => ScriptEnd::Unknown,
        (None, None, CallEnding::Ok) => ScriptEnd::Exited { code: 0, output },
    }
}

fn created(
    run: &TaskState,
    id: TaskId,
    wanted: NewTask<'_>,
    site: windlass_core::layout::Site,
    now: jiff::Timestamp,
) -> TaskCreated {
    // Never looser than the run.
    let own = run.axes.permission_profile;
    let axes = Axes {
        work_mode: WorkMode::Build,
        run_control: RunControl::Autonomous,
        permission_profile: wanted.profile.map_or(own, |wanted| wanted.min(own)),
        surface: Surface::Headless,
        ..run.axes
    };
    let model = wanted.model.or_else(|| run.execution_config().model);
    let command = TaskCommand {
        command_id: CommandId::derived(&run.id().to_string(), wanted.key),
        task_id: id,
        execution_config: ExecutionConfig {
            timeout_seconds: wanted.timeout_seconds,
            model,
            ..run.execution_config()
        },
        ..TaskCommand::new(now, run.command().session_id, wanted.goal)
    };
    let place = wanted.directory.display().to_string();
    TaskCreated {
        parent: Some(run.id()),
        root: run.id(),
        site,
        user_id: run.created.user_id.clone(),
        outage: run.created.outage,
        session_rules: run.allow_rules.clone(),
        workflow: Some(Box::new(wanted.part)),
        // Its depth is 0: it is the main agent of its step.
        ..TaskCreated::new(command, axes, place, run.created.driver)
    }
}
