//! Lists of tasks, of what they ask, of sub-agents and of conversations.

use windlass_coordinator::Error;
use windlass_coordinator::views::{
    Filter, NextAction, Overview, ScheduleRow, SessionFilter, TaskLine, TaskRow, TaskView,
    in_families,
};
use windlass_core::shown::{shown, shown_line};
use windlass_core::status::{StatusReason, TaskStatus};
use windlass_core::text::{one_line, suffix};
use windlass_term::{numbers, strip_controls};

use super::Reader;
use crate::overlay::{Conversations, Item, List, Target, ViewKind};

/// Tasks and sessions that are listed.
const MOST: usize = 200;
/// Characters of an id that name it well enough.
pub(super) const SHORT_ID: usize = 7;
/// In fewer columns a line says only what matters most.
const NARROW: usize = 50;
/// How long texts get in lists before they are cut for the screen.
pub(super) const WIDE: usize = 160;

impl Reader {
    /// The whole overview: tasks with their sub-agents, questions, background commands, schedules (MS-226).
    pub(super) fn tasks(&self) -> Result<List, Error> {
        let filter = Filter { limit: Some(MOST), ..Filter::default() };
        let overview = Overview::read(&self.coordinator, &filter)?;
        let now = self.coordinator.now();
        let mut items = Vec::new();
        for TaskLine { task, depth } in &in_families(overview.tasks) {
            let indent = "  ".repeat(*depth);
            let status = status_words(task);
            let id = task.row.id.to_string();
            let goal = one_line(&shown(&task.row.goal), WIDE);
            let line = match self.columns < NARROW {
                // What it is about matters most; the preview has the rest.
                true => format!("{indent}{} {goal}", self.status(task, status)),
                false => format!(
                    "{indent}{} {} {:>4} {:>8}  {goal}",
                    suffix(&id, SHORT_ID),
                    self.status(task, &format!("{status:<11}")),
                    numbers::age(task.row.created_at, now),
                    cost(task),
                ),
            };
            items.push(Item {
                target: Target::Task(task.row.id),
                line,
                preview: self.preview(task),
            });
            for command in task.background.values() {
                let line = format!("{indent}    & {}", one_line(&shown(command), WIDE));
                let target = Target::Task(task.row.id);
                items.push(Item { target, line: self.paint.dim(&line), preview: Vec::new() });
            }
        }
        if !overview.schedules.is_empty() {
            let heading = |line: &str| Item {
                target: Target::Heading,
                line: line.to_owned(),
                preview: Vec::new(),
            };
            items.push(heading("Schedules"));
            items.extend(overview.schedules.iter().map(|row| heading(&schedule(row))));
        }
        Ok(List::new(ViewKind::Tasks, "tasks", items))
    }

    pub(super) fn status(&self, task: &TaskView, words: &str) -> String {
        match task.row.status {
            _ if task.waits_for_answer() => self.paint.yellow(words),
            TaskStatus::Running => self.paint.green(words),
            TaskStatus::Failed => self.paint.red(words),
            TaskStatus::Done | TaskStatus::Cancelled => self.paint.dim(words),
            _ => words.to_owned(),
        }
    }

    pub(super) fn preview(&self, task: &TaskView) -> Vec<String> {
        let row = &task.row;
        let mut lines = vec![
            format!("{}  {}", row.id, row.axes),
            one_line(&shown(&row.goal), 4 * WIDE),
            self.paint.dim(&shown_line(&row.workspace)),
        ];
        lines.extend(row.model.as_ref().map(|model| format!("model {}", shown_line(model))));
        if let Some(plan) = &row.plan {
            lines.push(format!("plan {}/{}", plan.done(), plan.steps.len()));
        }
        lines.push(format!("next: {}", next_words(&task.next_action())));
        let last = row.result.as_ref().and_then(|result| result.final_message.as_ref());
        lines.extend(last.map(|text| one_line(&strip_controls(text), 4 * WIDE)));
        lines
    }

    pub(super) fn inbox(&self) -> Result<List, Error> {
        let open = self.coordinator.inbox().open()?;
        let now = self.coordinator.now();
        let questions = open.iter().map(|asked| {
            let question = &asked.row.question;
            let goal = asked.asker.as_ref().map(|task| one_line(&shown(&task.goal), 60));
            Item {
                target: Target::Question(question.id),
                line: format!(
                    "{:>4}  {}  {}",
                    numbers::age(asked.row.asked_at, now),
                    one_line(&shown(&question.question), WIDE),
                    self.paint.dim(&goal.unwrap_or_default()),
                ),
                preview: crate::dialog::Dialog::new(asked.clone()).body(self.columns, self.paint),
            }
        });
        let mut items: Vec<Item> = questions.collect();
        for proposal in self.coordinator.skill_proposals().open()? {
            let reasons = proposal.reasons().into_iter().map(|reason| shown_line(&reason));
            let accept =
                format!("accept it with: windlass skills proposals accept {}", proposal.number);
            items.push(Item {
                target: Target::Proposal(proposal.number),
                line: format!(
                    "{:>4}  {}",
                    numbers::age(proposal.made_at, now),
                    one_line(&shown(&proposal.summary()), WIDE),
                ),
                preview: reasons.chain([accept]).collect(),
            });
        }
        Ok(List::new(ViewKind::Inbox, "waits for you", items))
    }

    pub(super) fn sessions(&self, of: Conversations) -> Result<List, Error> {
        let own = self.workspace.display().to_string();
        let now = self.coordinator.now();
        let filter = match of {
            Conversations::OfDirectory => SessionFilter { workspace: Some(&own), archived: false },
            Conversations::Everywhere => SessionFilter { workspace: None, archived: false },
            Conversations::Archived => SessionFilter { workspace: None, archived: true },
        };
        let mut items = Vec::new();
        for row in self.coordinator.sessions().list(&filter, MOST as u32)? {
            let Some(last) = row.tasks.last() else { continue };
            let Some(task) = self.coordinator.tasks().get(*last)? else { continue };
            let first =
                row.tasks.first().and_then(|first| self.coordinator.tasks().get(*first).ok()?);
            let goal = first.map_or_else(|| task.goal.clone(), |first| first.goal);
            let (age, goal) = (numbers::age(row.updated_at, now), one_line(&shown(&goal), WIDE));
            let line = match self.columns < NARROW {
                true => format!("{age:>4} {goal}"),
                false => format!("{age:>4}  {:<9}  {goal}", row_words(&task)),
            };
            let mut preview = vec![
                format!("{}  {}", row.id, row.axes),
                self.paint.dim(&shown_line(&task.workspace)),
                format!("❯ {}", one_line(&shown(&task.goal), 4 * WIDE)),
            ];
            let said = task.result.as_ref().and_then(|result| result.final_message.as_ref());
            preview.extend(said.map(|text| one_line(&strip_controls(text), 4 * WIDE)));
            items.push(Item { target: Target::Session(row.id), line, preview });
        }
        Ok(List::new(ViewKind::Sessions(of), of.words(), items))
    }

    /// The sub-agents of the conversation and its background commands.
    pub(super) fn agents(&self) -> Result<List, Error> {
        let mut items = Vec::new();
        if let Some(root) = self.followed {
            let filter = Filter { root: Some(root), ..Filter::default() };
            let tasks = self.coordinator.tasks().list(&filter)?;
            for TaskLine { task, depth } in &in_families(tasks) {
                let is_own = task.row.id == root;
                if !is_own {
                    let indent = "  ".repeat(depth.saturating_sub(1));
                    let status = self.status(task, &format!("{:<11}", status_words(task)));
                    let goal = one_line(&shown(&task.row.goal), WIDE);
                    let label = self.labels.get(&task.row.id);
                    let label = label.map(|label| format!("{label}: ")).unwrap_or_default();
                    items.push(Item {
                        target: Target::Task(task.row.id),
                        line: format!("{indent}{status} {label}{goal}"),
                        preview: self.preview(task),
                    });
                }
                items.extend(task.background.iter().map(|(call, command)| Item {
                    target: Target::Text,
                    line: format!("& {}", one_line(&shown(command), WIDE)),
                    preview: background_words(task, &call.to_string()),
                }));
            }
        }
        Ok(List::new(ViewKind::Agents, "sub-agents and background commands", items))
    }
}

pub(super) fn status_words(task: &TaskView) -> &'static str {
    match task.is_interrupted() {
        true => "interrupted",
        false => row_words(&task.row),
    }
}

/// A conversation whose turn has ended is not paused for a person: it waits for their next message.
fn row_words(row: &TaskRow) -> &'static str {
    match (row.status, row.reason) {
        (TaskStatus::Paused, StatusReason::AwaitingMessage) => "waiting",
        (status, _) => status.as_str(),
    }
}

/// What can be done about a command in the background. Its agent alone stops it before its task ends.
fn background_words(task: &TaskView, call: &str) -> Vec<String> {
    vec![
        format!("its output: windlass outputs {call}"),
        "to stop it, tell the agent so; it ends with its task too".to_owned(),
        format!("it belongs to {}", task.row.id),
    ]
}

/// A schedule: its state, when it is due, and what happens then.
fn schedule(row: &ScheduleRow) -> String {
    let next = row.next_at.as_ref().map(|next| next.strftime("%F %H:%M").to_string());
    let about = row.schedule.goal.as_ref().or(row.schedule.check_prompt.as_ref());
    let line = format!(
        "  {}  {:<8} {:<16}  {}",
        suffix(&row.schedule.id.to_string(), SHORT_ID),
        row.state.to_string(),
        next.unwrap_or_default(),
        one_line(&shown(about.map_or("", String::as_str)), WIDE)
    );
    line.trim_end().to_owned()
}

fn cost(task: &TaskView) -> String {
    task.cost_usd.map_or_else(|| "-".to_owned(), numbers::dollars)
}

fn next_words(action: &NextAction) -> String {
    match action {
        NextAction::Answer { .. } => "answer its question".to_owned(),
        NextAction::RaiseBudget { .. } => "raise its budget, or stop it".to_owned(),
        NextAction::WaitForTasks { count } => format!("it waits for {count} other tasks"),
        NextAction::WaitForService => "it waits for `windlass serve`".to_owned(),
        NextAction::WaitForCheck { at } => format!("it is checked on at {}", at.strftime("%H:%M")),
        NextAction::WaitForModel { at } => format!("it asks its model at {}", at.strftime("%H:%M")),
        NextAction::SendMessage => "a message continues it".to_owned(),
        NextAction::Resume => "r resumes it".to_owned(),
        NextAction::Retry { .. } => "r tries it again".to_owned(),
        NextAction::Review => "review what it did".to_owned(),
        NextAction::Follow { .. } => "it works; Enter watches it".to_owned(),
        NextAction::Nothing => "nothing, it has ended".to_owned(),
    }
}
