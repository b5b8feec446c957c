//! Which task of a service could run now: the rule that workers use.
//!
//! Invariants:
//! - Pure: facts about one task in, an answer out. Whoever keeps the facts asks when one of them changes, and keeps
//!   the answer.
//! - Total: every status and every reason has its answer.

use jiff::Timestamp;

use crate::injection::{Control, Injection, InjectionType};
use crate::status::{StatusReason, TaskStatus};

/// What is known of a task that has no parent.
#[derive(Clone, Copy, Debug)]
pub struct ReadinessFacts<'a> {
    pub status: TaskStatus,
    /// Why it has this status.
    pub reason: StatusReason,
    /// When it resumes automatically, where it does.
    pub resume_at: Option<Timestamp>,
    /// Whether a task that must be done first is not done.
    pub has_unfinished_blockers: bool,
    /// Whether its session may start one more task; older new tasks come first. (ES-090)
    pub has_session_slot: bool,
    /// Whether a question of it or of a task below it is open.
    pub has_open_questions: bool,
    /// Mail for it and for tasks below it: what waits in the mailbox, and the last event where that is
    /// mail. A process may have died right after it journaled the mail.
    pub mail: &'a [MailKind],
}

/// Whether nothing but a process is missing for a task to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readiness {
    /// It could run now.
    Ready,
    /// It could run from this time on, whatever else happens.
    ReadyAt(Timestamp),
    /// Something has to happen first.
    Waiting,
}

impl Readiness {
    /// Whether the task could run at this moment. Whole seconds are enough.
    pub fn is_ready(self, now: Timestamp) -> bool {
        match self {
            Self::Ready => true,
            Self::ReadyAt(at) => at.as_second() <= now.as_second(),
            Self::Waiting => false,
        }
    }

    fn when(holds: bool) -> Self {
        if holds { Self::Ready } else { Self::Waiting }
    }
}

impl ReadinessFacts<'_> {
    /// When the task could run, if a process took it.
    pub fn readiness(&self) -> Readiness {
        match self.status {
            TaskStatus::Todo => {
                Readiness::when(!self.has_unfinished_blockers && self.has_session_slot)
            }
            TaskStatus::Retrying => Readiness::Ready,
            TaskStatus::Blocked | TaskStatus::Reviewing => {
                Readiness::when(self.is_answered() || self.has_waking_mail())
            }
            TaskStatus::Paused if self.has_waking_mail() => Readiness::Ready,
            TaskStatus::Paused => self.end_of_pause(),
            // A task that says it runs may have lost its process. Its lock shows that, not these facts.
            TaskStatus::Running | TaskStatus::Verifying => Readiness::Waiting,
            TaskStatus::Done | TaskStatus::Failed | TaskStatus::Cancelled => Readiness::Waiting,
        }
    }

    /// Whether the questions that it waits for are all answered.
    fn is_answered(&self) -> bool {
        let waits_for_answer = matches!(self.reason, StatusReason::Question | StatusReason::Budget);
        waits_for_answer && !self.has_open_questions
    }

    /// When a pause ends without mail.
    fn end_of_pause(&self) -> Readiness {
        match self.reason {
            // A worker starts nothing while the disk is full.
            StatusReason::Shutdown | StatusReason::DiskFull => Readiness::Ready,
            StatusReason::RateLimited | StatusReason::ModelOutage => {
                self.resume_at.map_or(Readiness::Waiting, Readiness::ReadyAt)
            }
            StatusReason::User
            | StatusReason::Finished
            | StatusReason::Question
            | StatusReason::Budget
            | StatusReason::Timeout
            | StatusReason::Deadline
            | StatusReason::Error
            | StatusReason::Dependency
            | StatusReason::Schedule
            | StatusReason::MergeConflict
            | StatusReason::AwaitingMessage
            | StatusReason::ContextFull => Readiness::Waiting,
        }
    }

    fn has_waking_mail(&self) -> bool {
        self.mail.iter().any(|mail| mail.wakes(self.reason))
    }
}

/// What a message is for a parked task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MailKind {
    /// A person says something, or something happened elsewhere.
    News,
    /// A person answers a question.
    Answer,
    /// A person, a deadline or a schedule decides whether it runs: resume, cancel, expire.
    Decision,
    /// A schedule speaks, or the harness says what changed.
    Notice,
    /// Control that waits until the task runs for another reason: pause, rules, unwatch, a model, axes.
    Passive,
}

impl MailKind {
    /// Every kind, for tests and tables.
    pub const ALL: &'static [Self] =
        &[Self::News, Self::Answer, Self::Decision, Self::Notice, Self::Passive];

    /// What a message of this type and with this control is.
    pub const fn new(kind: InjectionType, control: Option<&Control>) -> Self {
        match (kind, control) {
            (InjectionType::HitlResponse, _) => Self::Answer,
            (_, Some(Control::Resume | Control::Cancel { .. } | Control::Expire { .. })) => {
                Self::Decision
            }
            (InjectionType::UserMessage | InjectionType::ExternalEvent, _) => Self::News,
            (InjectionType::SystemControl, None | Some(Control::Watch { .. })) => Self::Notice,
            (
                InjectionType::SystemControl,
                Some(
                    Control::Pause
                    | Control::Interrupt
                    | Control::Steer { .. }
                    | Control::Revoke { .. }
                    | Control::Unwatch { .. }
                    | Control::UseModel { .. }
                    | Control::ChangeAxes { .. }
                    | Control::Grant { .. },
                ),
            ) => Self::Passive,
        }
    }

    /// Whether a task that is parked for `reason` runs because of it. Mail alone is not always enough: a
    /// task that a person paused stays paused when somebody writes to it. (ES-076)
    pub const fn wakes(self, reason: StatusReason) -> bool {
        match self {
            Self::Answer | Self::Decision => true,
            Self::News => {
                matches!(reason, StatusReason::Schedule | StatusReason::AwaitingMessage)
            }
            Self::Notice => matches!(reason, StatusReason::Schedule),
            Self::Passive => false,
        }
    }
}

impl From<&Injection> for MailKind {
    fn from(injection: &Injection) -> Self {
        Self::new(injection.injection_type, injection.control.as_ref())
    }
}

impl TaskStatus {
    /// Whether a process should be driving the task.
    pub const fn is_running(self) -> bool {
        matches!(self, Self::Running | Self::Verifying)
    }

    /// Whether the task, once started, holds one of its session's slots. (ES-090)
    pub const fn holds_session_slot(self) -> bool {
        self.is_running() || matches!(self, Self::Blocked | Self::Reviewing | Self::Retrying)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::{InjectionId, QuestionId, ScheduleId};
    use crate::schedule::Expiry;

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    /// A task for which everything else is in favour of running.
    fn facts(status: TaskStatus, reason: StatusReason, mail: &[MailKind]) -> ReadinessFacts<'_> {
        ReadinessFacts {
            status,
            reason,
            resume_at: None,
            has_unfinished_blockers: false,
            has_session_slot: true,
            has_open_questions: true,
            mail,
        }
    }

    #[test]
    fn every_status_and_reason_has_its_answer() {
        let mut table = String::new();
        for &status in TaskStatus::ALL {
            for &reason in StatusReason::ALL {
                let is_ready =
                    |mail: &[MailKind]| facts(status, reason, mail).readiness().is_ready(NOW);
                let woken_by: Vec<_> = MailKind::ALL
                    .iter()
                    .filter(|mail| is_ready(&[**mail]) && !is_ready(&[]))
                    .map(|mail| format!("{mail:?}").to_lowercase())
                    .collect();
                let line = match (is_ready(&[]), &*woken_by) {
                    (true, _) => "ready".to_owned(),
                    (false, []) => continue,
                    (false, woken_by) => format!("by {}", woken_by.join(", ")),
                };
                table.push_str(&format!("{status} {reason}: {line}\n"));
            }
        }
        insta::assert_snapshot!(table);
    }

    #[test]
    fn a_new_task_waits_for_other_tasks_and_for_a_slot() {
        let new = facts(TaskStatus::Todo, StatusReason::User, &[]);
        assert_eq!(new.readiness(), Readiness::Ready);
        let waits = |facts: ReadinessFacts<'_>| facts.readiness() == Readiness::Waiting;
        assert!(waits(ReadinessFacts { has_unfinished_blockers: true, ..new }));
        assert!(waits(ReadinessFacts { has_session_slot: false, ..new }));
    }

    #[test]
    fn a_blocked_task_runs_when_all_its_questions_are_answered() {
        for reason in [StatusReason::Question, StatusReason::Budget] {
            let blocked = facts(TaskStatus::Blocked, reason, &[]);
            assert_eq!(blocked.readiness(), Readiness::Waiting);
            let answered = ReadinessFacts { has_open_questions: false, ..blocked };
            assert_eq!(answered.readiness(), Readiness::Ready);
        }
        let dependent = facts(TaskStatus::Blocked, StatusReason::Dependency, &[]);
        let answered = ReadinessFacts { has_open_questions: false, ..dependent };
        assert_eq!(answered.readiness(), Readiness::Waiting);
    }

    /// ES-378
    #[test]
    fn a_task_that_waits_for_its_time_runs_when_that_has_come() {
        for reason in [StatusReason::RateLimited, StatusReason::ModelOutage] {
            let waiting = facts(TaskStatus::Paused, reason, &[]);
            let at = |second| ReadinessFacts {
                resume_at: Timestamp::from_second(second).ok(),
                ..waiting
            };
            let is_ready = |second| at(second).readiness().is_ready(NOW);
            assert_eq!(waiting.readiness(), Readiness::Waiting, "{reason}");
            assert!(is_ready(-1) && is_ready(0) && !is_ready(1), "{reason}");
        }
    }

    #[test]
    fn each_injection_has_the_kind_of_what_it_does() {
        let id = InjectionId::new(NOW);
        let (question, schedule) = (QuestionId::new(NOW), ScheduleId::new(NOW));
        let control = |control| Injection::control(id, control);
        for (injection, kind) in [
            (Injection::message(id, "x"), MailKind::News),
            (Injection::event(id, "x"), MailKind::News),
            (Injection::answer(id, question, "x"), MailKind::Answer),
            (Injection::notice(id, "x", None), MailKind::Notice),
            (control(Control::Watch { schedule, next: None }), MailKind::Notice),
            (control(Control::Unwatch { schedule }), MailKind::Passive),
            (control(Control::Pause), MailKind::Passive),
            (control(Control::Interrupt), MailKind::Passive),
            (control(Control::Resume), MailKind::Decision),
            (control(Control::Cancel { reason: None }), MailKind::Decision),
            (control(Control::Expire { action: Expiry::Fail }), MailKind::Decision),
        ] {
            assert_eq!(MailKind::from(&injection), kind, "{injection:?}");
        }
    }

    /// ES-090
    #[test]
    fn a_session_counts_tasks_that_began_and_are_not_parked() {
        let holding: Vec<_> =
            TaskStatus::ALL.iter().filter(|status| status.holds_session_slot()).collect();
        assert_eq!(
            holding.iter().map(|status| status.as_str()).collect::<Vec<_>>().join(" "),
            "running verifying reviewing blocked retrying"
        );
    }
}
