//! The health gate: what is checked before a task is given an agent, and what happens when something is wrong
//! (MS-039…044).

use std::path::Path;
use std::time::Instant;

use windlass_core::axes::{Axes, Surface};
use windlass_core::ending::Ending;
use windlass_core::event::{Event, ModeChanged, QuestionClosed};
use windlass_core::id::{InjectionId, QuestionId};
use windlass_core::injection::Injection;
use windlass_core::question::{AcceptedAnswers, Question, QuestionKind, REPAIR_OPTIONS};
use windlass_core::session::Source;
use windlass_core::state::TaskState;
use windlass_core::status::StatusReason;
use windlass_core::text::with_causes;
use windlass_store::{Level, Owner, QuestionState, SCHEMA_VERSION};

use super::{Check, CheckStatus, Health, RepairPolicy};
use crate::Error;

/// What the gate lets a task do.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    AsItIs,
    /// Its journal has grown, so it is to be read again.
    Changed,
}

impl Health<'_> {
    /// Looks whether a task can be dispatched safely. Where it cannot, the policy of its directory decides: it is
    /// repaired, a person is asked, it is parked, or continues with a line in the log.
    pub(crate) async fn admit(self, owner: &Owner, state: &TaskState) -> Result<Admission, Error> {
        let problems = self.dispatch_problems(state).await;
        let Some(first) = problems.first() else {
            return match self.close_question(owner, state).await? {
                Admission::Changed => Ok(Admission::Changed),
                Admission::AsItIs => self.leave_repair(owner, state).await,
            };
        };
        if state.before_repair.is_some() {
            // An agent that says it is done, and is not, would say so again.
            return match state.last_reply.final_text.is_some() {
                true => self.park(owner, state, words(&problems)).await,
                false => Ok(Admission::AsItIs),
            };
        }
        let directory = Path::new(&state.created.workspace);
        let problem = words(&problems);
        tracing::warn!(task_id = %state.id(), problem, "Health check failed");
        let blocks = problems.iter().any(|check| check.blocks);
        match self.coordinator.agents.repair_policy(directory) {
            RepairPolicy::Auto => self.repair(owner, state, first.name, &problem).await,
            RepairPolicy::LogOnly if !blocks => Ok(Admission::AsItIs),
            RepairPolicy::Ask if can_ask(state, &problems) => {
                self.ask(owner, state, first.name, problem, blocks).await
            }
            RepairPolicy::Ask | RepairPolicy::LogOnly => self.park(owner, state, problem).await,
        }
    }

    /// Does what a person has answered; where nobody was asked yet, asks. Headless work is never asked about: it is
    /// parked (O-10).
    async fn ask(
        self,
        owner: &Owner,
        state: &TaskState,
        name: &str,
        problem: String,
        blocks: bool,
    ) -> Result<Admission, Error> {
        if !blocks && state.tolerated_problem.as_ref() == Some(&problem) {
            return Ok(Admission::AsItIs);
        }
        if let Some(question) = open_question(state) {
            // The task journals the answer when it runs; until then it lies in its mailbox.
            return match self.answer(question)?.as_deref() {
                Some(answer) if answer == REPAIR_OPTIONS[0] => {
                    self.repair(owner, state, name, &problem).await
                }
                Some(_) | None => Ok(Admission::AsItIs),
            };
        }
        let id = QuestionId::new(self.coordinator.now());
        let asked = question(id, problem, blocks);
        self.append(owner, state, vec![Event::QuestionAsked(asked)]).await?;
        Ok(Admission::Changed)
    }

    /// The answer that waits for the task, if somebody has given one.
    fn answer(self, question: QuestionId) -> Result<Option<String>, Error> {
        let row = self.coordinator.store.questions().get(question)?;
        Ok(match row.map(|row| row.state) {
            Some(QuestionState::Waiting(answer) | QuestionState::Answered(answer)) => {
                Some(answer.text)
            }
            Some(QuestionState::Open | QuestionState::Closed { .. }) | None => None,
        })
    }

    /// What is asked about is right again: nobody needs to answer.
    async fn close_question(self, owner: &Owner, state: &TaskState) -> Result<Admission, Error> {
        let Some(question) = open_question(state) else { return Ok(Admission::AsItIs) };
        if self.answer(question)?.is_some() {
            return Ok(Admission::AsItIs);
        }
        let reason = "the health check finds nothing wrong".to_owned();
        let closed = Event::QuestionClosed(QuestionClosed { question, reason });
        self.append(owner, state, vec![closed]).await?;
        Ok(Admission::Changed)
    }

    /// What is wrong that a dispatch should not happen with.
    async fn dispatch_problems(self, state: &TaskState) -> Vec<Check> {
        let began = Instant::now();
        let directory = Path::new(&state.created.workspace);
        let own = [self.version(), self.row(state)];
        let mut checks: Vec<Check> = own.into_iter().flatten().collect();
        checks.extend(self.coordinator.agents.dispatch_checks(directory));
        let wrong = checks.into_iter().filter(|check| check.status == CheckStatus::Wrong);
        wrong.map(|check| check.since(began)).collect()
    }

    /// A later program may have migrated the database while this one runs.
    fn version(self) -> Option<Check> {
        let check = match self.coordinator.store.health().schema_version() {
            Ok(found) if found <= SCHEMA_VERSION => return None,
            Ok(found) => {
                let words = format!(
                    "the database has version {found}, and this program knows {SCHEMA_VERSION}"
                );
                Check::wrong("schema", words)
                    .with_hint("restart windlass: a later version was installed")
            }
            Err(error) => Check::wrong("schema", with_causes(&error)),
        };
        Some(check.blocking())
    }

    /// The task's row is a fold of its journal, and so is its state.
    fn row(self, state: &TaskState) -> Option<Check> {
        let check = match self.coordinator.store.tasks().get(state.id()) {
            Ok(Some(row)) if (row.status, row.axes) == (state.status, state.axes) => return None,
            Ok(Some(row)) => {
                let words = format!(
                    "the tables say `{}` ({}) of {}, and its journal says `{}` ({})",
                    row.status,
                    row.axes,
                    state.id(),
                    state.status,
                    state.axes
                );
                Check::wrong("store", words)
            }
            Ok(None) => Check::wrong("store", format!("the tables do not have {}", state.id())),
            Err(error) => Check::wrong("store", with_causes(&error)),
        };
        Some(check.fixable("rebuild the tables from the journal").blocking())
    }

    /// Repairs: first without a model; what is left is given to the agent, with no more permission than `normal`.
    async fn repair(
        self,
        owner: &Owner,
        state: &TaskState,
        name: &str,
        problem: &str,
    ) -> Result<Admission, Error> {
        let to = state.axes.for_repair();
        if state.axes != to {
            let reason = format!("health check `{name}`: {problem}");
            let change = Event::ModeChanged(mode_change(state.axes, to, reason));
            self.append(owner, state, vec![change]).await?;
        }
        let directory = Path::new(&state.created.workspace);
        for fixed in self.fix(directory).await {
            tracing::info!(task_id = %state.id(), check = fixed.name, outcome = ?fixed.outcome, "Repaired");
        }
        let state = self.coordinator.tasks().state(state.id())?;
        let left = self.dispatch_problems(&state).await;
        if left.is_empty() {
            self.leave_repair(owner, &state).await?;
            return Ok(Admission::Changed);
        }
        if left.iter().any(|check| check.blocks) {
            return self.park(owner, &state, words(&left)).await;
        }
        let report: Vec<_> = left.iter().map(report_line).collect();
        let text =
            format!("{}\n{}", include_str!("../prompts/repair.md").trim_end(), report.join("\n"));
        let notice = Injection::notice(InjectionId::new(self.coordinator.now()), text, None);
        self.append(owner, &state, vec![Event::InjectionReceived(notice)]).await?;
        Ok(Admission::Changed)
    }

    /// A task that was put into repair automatically goes back to what it did before.
    async fn leave_repair(self, owner: &Owner, state: &TaskState) -> Result<Admission, Error> {
        let Some((before, role)) = state.before_repair else { return Ok(Admission::AsItIs) };
        let reason = "the health check finds nothing wrong".to_owned();
        let change = ModeChanged { role, ..mode_change(state.axes, before, reason) };
        let change = Event::ModeChanged(change);
        let text = include_str!("../prompts/repaired.md").trim_end();
        let notice = Injection::notice(InjectionId::new(self.coordinator.now()), text, None);
        let notice_event = state.attempts.started.then_some(Event::InjectionReceived(notice));
        self.append(owner, state, std::iter::once(change).chain(notice_event).collect()).await?;
        Ok(Admission::Changed)
    }

    async fn park(
        self,
        owner: &Owner,
        state: &TaskState,
        problem: String,
    ) -> Result<Admission, Error> {
        let ending = Ending::Paused { reason: StatusReason::Error, detail: Some(problem.clone()) };
        self.coordinator.control().conclude(owner, state, &ending).await?;
        Err(Error::Unhealthy { task: state.id(), problem })
    }

    async fn append(
        self,
        owner: &Owner,
        state: &TaskState,
        events: Vec<Event>,
    ) -> Result<(), Error> {
        owner.append_to(state.id(), self.coordinator.now(), events, Level::Synced).await?;
        Ok(())
    }
}

/// Whether somebody sits at the task's surface, and an answer could help: what only another program or a restart puts
/// right is not asked about.
fn can_ask(state: &TaskState, problems: &[Check]) -> bool {
    let is_helpless = |check: &Check| check.blocks && check.fix.is_none();
    matches!(state.axes.surface, Surface::Tui | Surface::Web) && !problems.iter().any(is_helpless)
}

/// The question of the gate that nobody has answered, as far as the journal knows.
fn open_question(state: &TaskState) -> Option<QuestionId> {
    let mut open = state.open_questions.iter();
    open.find(|asked| asked.kind == QuestionKind::Repair).map(|asked| asked.id)
}

fn question(id: QuestionId, problem: String, blocks: bool) -> Question {
    let [repair, unrepaired] = REPAIR_OPTIONS;
    let (question, options) = match blocks {
        true => ("The health check found something that stops the work. Repair it?", vec![repair]),
        false => {
            ("The health check found something wrong. Repair it first?", vec![repair, unrepaired])
        }
    };
    Question {
        id,
        kind: QuestionKind::Repair,
        call: None,
        question: question.to_owned(),
        options: options.into_iter().map(str::to_owned).collect(),
        context: Some(problem),
        binding: None,
        diff: None,
        grants: None,
        accepts: AcceptedAnswers::Words,
        asked: None,
        plan: None,
    }
}

fn mode_change(from: Axes, to: Axes, reason: String) -> ModeChanged {
    ModeChanged::by_task(from, to, Source::Repair, reason, "health check")
}

/// What is wrong, in one line.
fn words(problems: &[Check]) -> String {
    let all: Vec<_> = problems.iter().map(|check| check.message.as_str()).collect();
    all.join("; ")
}

fn report_line(check: &Check) -> String {
    let details: String = check.details.iter().map(|detail| format!("\n  - {detail}")).collect();
    format!("- {}: {}{details}", check.name, check.message)
}
