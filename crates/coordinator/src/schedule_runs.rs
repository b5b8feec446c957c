//! What a run of a schedule does, and the timeout of a monitor (ES-056, ES-099). The coordinator asks no
//! model for any of it (ES-057).

use jiff::{SignedDuration, Timestamp, Zoned};
use windlass_core::command::{Outage, TaskCommand};
use windlass_core::id::{CommandId, InjectionId, ScheduleId, SessionId, TaskId};
use windlass_core::injection::{Control, Injection};
use windlass_core::schedule::{Schedule, ScheduleAction, ScheduleState, TimeoutAction};
use windlass_store::{Advance, Filter, ScheduleRow};

use crate::deadlines::Deadlines;
use crate::router::Router;
use crate::submit::SubmitOptions;
use crate::trigger::{Due, ScheduledTrigger, TriggerStream};
use crate::{Error, Timer, TriggerOutcome};

impl Timer<'_> {
    pub(crate) async fn fire(self, trigger: &ScheduledTrigger) -> Result<TriggerOutcome, Error> {
        let problem = |problem: &str| Error::BadTrigger {
            stream: TriggerStream::ScheduledTrigger,
            problem: problem.to_owned(),
        };
        let row = match trigger.schedule_id {
            Some(id) => {
                let unknown = || windlass_store::Error::UnknownSchedule(id.to_string());
                Some(self.coordinator.store.schedules().get(id)?.ok_or_else(unknown)?)
            }
            None => None,
        };
        match (trigger.trigger_type, row, trigger.task_id) {
            (Due::Cron, Some(row), _) => self.run_of(row, trigger.due_at).await,
            (Due::Cron, None, Some(task)) => {
                let prompt = trigger.check_prompt.as_deref();
                let prompt = prompt.ok_or_else(|| problem("`check_prompt` is missing"))?;
                let id = self
                    .coordinator
                    .triggers()
                    .injection_id(trigger.request_id.as_deref(), "check");
                let check = Injection::notice(id, check_message(prompt), None).from("schedule");
                self.coordinator.messages().inject_in_turn(task, check).await?;
                self.coordinator.queue().wake();
                Ok(TriggerOutcome::Injected { task })
            }
            (Due::Cron, None, None) => Err(problem("neither `schedule_id` nor `task_id` is given")),
            (Due::MonitoringTimeout, Some(row), _) => self.timed_out(row).await,
            (Due::MonitoringTimeout, None, _) => Err(problem("`schedule_id` is missing")),
            (Due::Deadline, _, Some(task)) => Deadlines::of(self.coordinator).act_on(task).await,
            (Due::Deadline, _, None) => Err(problem("`task_id` is missing")),
        }
    }

    /// One run of a schedule; a repeated delivery finds that the row has moved on.
    async fn run_of(
        self,
        row: ScheduleRow,
        due: Option<Timestamp>,
    ) -> Result<TriggerOutcome, Error> {
        let nothing = |reason: &str| Ok(TriggerOutcome::Nothing { reason: reason.to_owned() });
        let (Some(next_at), ScheduleState::Active) = (&row.next_at, row.state) else {
            return nothing("the schedule does not run");
        };
        let now = self.coordinator.now();
        let run = next_at.timestamp();
        if due.is_some_and(|due| due != run) || run > now {
            return nothing("that run is not due");
        }
        let turn = row.schedule.due_run(run, now);
        let handled = match turn.runs {
            true => self.act(&row.schedule, run, turn.next.as_ref()).await,
            false => nothing("no service ran in time"),
        };
        let handled = match handled {
            Err(Error::Store(windlass_store::Error::TaskEnded { status, .. })) => {
                self.coordinator
                    .store
                    .schedules()
                    .end(row.schedule.id, &format!("its task is {status}"))
                    .await?;
                return nothing("its task has ended");
            }
            // It is tried again; nothing of it has happened.
            Err(error) if error.is_transient() => return Err(error),
            // The next run may succeed, and this one will not.
            other => other,
        };
        let ran =
            matches!(handled, Ok(TriggerOutcome::Injected { .. } | TriggerOutcome::Started { .. }));
        let missed = turn.missed + u32::from(turn.runs && !ran);
        let advance = Advance { due: row.next_at, next: turn.next, ran, missed };
        self.coordinator.store.schedules().advance(row.schedule.id, advance, now).await?;
        self.coordinator.queue().wake();
        handled
    }

    async fn act(
        self,
        schedule: &Schedule,
        run: Timestamp,
        next: Option<&Zoned>,
    ) -> Result<TriggerOutcome, Error> {
        let name = format!("{}@{run}", schedule.id);
        let id = InjectionId::derived(&name, "run");
        let prompt = schedule.check_prompt.clone().unwrap_or_default();
        match (schedule.action, schedule.task_id, schedule.session_id) {
            (ScheduleAction::Check, Some(task), _) => {
                if self.has_waiting_check(task, schedule.id)? {
                    let reason = "the task has not read the check before".to_owned();
                    return Ok(TriggerOutcome::Nothing { reason });
                }
                let control = Control::Watch { schedule: schedule.id, next: next.cloned() };
                let check = Injection::control(id, control).with_content(check_message(&prompt));
                self.coordinator.messages().inject_in_turn(task, check).await?;
                self.coordinator.queue().requeue_at(task, next).await?;
                Ok(TriggerOutcome::Injected { task })
            }
            (ScheduleAction::Message, task, session) => {
                let active = match (task, session) {
                    (Some(task), _) => Some(task),
                    (None, Some(session)) => self
                        .coordinator
                        .store
                        .sessions()
                        .get(session)?
                        .and_then(|row| row.active_task_id),
                    (None, None) => None,
                };
                let Some(task) = active else {
                    return Ok(TriggerOutcome::Nothing { reason: "no task is active".to_owned() });
                };
                let message = Injection::message(id, prompt).from("schedule");
                self.coordinator.messages().inject_in_turn(task, message).await?;
                Ok(TriggerOutcome::Injected { task })
            }
            (ScheduleAction::Start, _, session) => self.dispatch(schedule, &name, session).await,
            (ScheduleAction::Check, None, _) => {
                Ok(TriggerOutcome::Nothing { reason: "there is no task to check on".to_owned() })
            }
        }
    }

    /// Whether a check lies in a task's mailbox: it is parked by a person, or nobody drives it. More of the
    /// same would tell it nothing.
    fn has_waiting_check(self, task: TaskId, schedule: ScheduleId) -> Result<bool, Error> {
        let of = |control: &Option<Control>| match control {
            Some(Control::Watch { schedule: of, .. }) => *of == schedule,
            Some(
                Control::Pause
                | Control::Interrupt
                | Control::Resume
                | Control::Revoke { .. }
                | Control::Cancel { .. }
                | Control::Unwatch { .. }
                | Control::UseModel { .. }
                | Control::ChangeAxes { .. }
                | Control::Steer { .. }
                | Control::Grant { .. }
                | Control::Expire { .. },
            )
            | None => false,
        };
        let first = InjectionId::derived(&schedule.to_string(), "watch");
        let mail = self.coordinator.store.mailbox().pending(task)?;
        Ok(mail.iter().any(|one| of(&one.control) && one.id != first))
    }

    /// Starts a task automatically (`autonomous_dispatch`, MS-194), unless the one before still lives.
    async fn dispatch(
        self,
        schedule: &Schedule,
        name: &str,
        session: Option<SessionId>,
    ) -> Result<TriggerOutcome, Error> {
        let id = schedule.id.to_string();
        let session_id = session.unwrap_or_else(|| SessionId::derived(&id, "session"));
        let task_id = TaskId::derived(name, "task");
        let filter =
            Filter { session: Some(session_id), live: true, roots: true, ..Filter::default() };
        let live = self.coordinator.store.tasks().list(&filter)?;
        let goal = schedule.goal.as_deref().unwrap_or_default();
        if let Some(busy) = live.iter().find(|task| task.id != task_id && task.goal == goal) {
            let reason = format!("{} of the run before still lives", busy.id);
            return Ok(TriggerOutcome::Nothing { reason });
        }
        if let Some(reason) = self.autonomous_limit_reached(schedule, session_id, task_id).await? {
            return Ok(TriggerOutcome::Nothing { reason });
        }
        let command = TaskCommand {
            command_id: CommandId::derived(name, "command"),
            session_id,
            task_id,
            goal: schedule.goal.clone().unwrap_or_default(),
            constraints: Vec::new(),
            execution_config: Default::default(),
            resume_context: None,
        };
        let options = SubmitOptions {
            user_id: schedule.user_id.clone(),
            workspace: schedule.workspace.as_ref().map(Into::into),
            outage: Outage::Park,
            ..self.coordinator.tasks().default_options()
        };
        let submitted = self.coordinator.tasks().submit_command(command, options).await?;
        Ok(TriggerOutcome::Started { task: submitted.task, place: submitted.place })
    }

    /// Why a schedule starts nothing more for a while: unattended work has a limit
    /// (MS-207). The person is notified once for each such period.
    async fn autonomous_limit_reached(
        self,
        schedule: &Schedule,
        session: SessionId,
        next: TaskId,
    ) -> Result<Option<String>, Error> {
        let most = self.coordinator.limits.autonomous_tasks;
        let filter =
            Filter { session: Some(session), roots: true, limit: Some(most), ..Filter::default() };
        let started = self.coordinator.store.tasks().list(&filter)?;
        // A repeated delivery of a run that has begun does not count again.
        if started.len() < most || started.iter().any(|task| task.id == next) {
            return Ok(None);
        }
        let window =
            SignedDuration::try_from(self.coordinator.limits.autonomous_time).unwrap_or_default();
        let Some(oldest) =
            started.last().filter(|task| task.created_at + window > self.coordinator.now())
        else {
            return Ok(None);
        };
        let reason = format!(
            "{most} tasks were started by schedule {} within {window:#}; the next may start at {} \
             (`agent.autonomous_max_tasks`, `agent.autonomous_max_hours`)",
            schedule.id,
            oldest.created_at + window
        );
        let once = Some(format!("autonomous-{}-{}", schedule.id, oldest.id));
        Router::of(self.coordinator).notify(session, None, once, reason.clone()).await?;
        Ok(Some(reason))
    }

    /// A monitor's time is up (ES-286).
    async fn timed_out(self, row: ScheduleRow) -> Result<TriggerOutcome, Error> {
        let (now, schedule) = (self.coordinator.now(), &row.schedule);
        let due = schedule.timeout_at.is_some_and(|end| end <= now);
        if row.state == ScheduleState::Ended || !due {
            return Ok(TriggerOutcome::Nothing {
                reason: "its time is not up, or it has ended".to_owned(),
            });
        }
        let action = schedule.timeout_action.unwrap_or(TimeoutAction::Fail);
        let end = schedule.timeout_at.unwrap_or(now);
        let handled = match schedule.task_id {
            Some(task) => {
                let id = InjectionId::derived(&schedule.id.to_string(), "timeout");
                let why = format!("what it waited for did not happen until {end}");
                Deadlines::of(self.coordinator).expire(id, task, action.into(), &why).await?
            }
            None => TriggerOutcome::Nothing { reason: "it has no task".to_owned() },
        };
        self.coordinator.store.schedules().end(schedule.id, "its time is up").await?;
        Ok(handled)
    }
}

/// What an agent reads when a check is due.
fn check_message(prompt: &str) -> String {
    include_str!("prompts/schedule_check.md")
        .trim_end()
        .replace("{monitor}", include_str!("prompts/monitor.md").trim())
        .replace("{prompt}", prompt)
}
