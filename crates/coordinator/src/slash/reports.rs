//! The commands that show something and change nothing.

use std::collections::BTreeMap;

use jiff::Zoned;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use windlass_core::id::TaskId;
use windlass_core::schedule::ScheduleState;
use windlass_core::text::one_line;
use windlass_store::Filter;

use super::forensics::{forensics, log};
use super::run::Invocation;
use super::{Block, Reply};
use crate::parallel::WorkerView;
use crate::views::cost::used_by;
use crate::views::{CostSum, Overview, TaskView, Totals};
use crate::{Coordinator, Error, Session};

/// Characters of an event or a goal in a row.
const WIDTH: usize = 80;
/// Tasks that `/tasks` shows, the newest.
const TASKS: usize = 50;

/// What one of these commands answers.
#[derive(Clone, Copy)]
pub(super) struct Report<'a> {
    invocation: Invocation<'a>,
    session: Session<'a>,
    coordinator: &'a Coordinator,
}

impl<'a> Report<'a> {
    pub(super) fn new(invocation: Invocation<'a>) -> Self {
        let session = invocation.session;
        Self { invocation, session, coordinator: session.coordinator }
    }

    pub(super) fn answer(self) -> Result<Reply, Error> {
        let rest = self.invocation.rest;
        let blocks = match self.invocation.command.name {
            "tasks" => self.tasks_report()?,
            "status" => self.status_report()?,
            "queue" => self.queue_report()?,
            "schedule" => self.schedule_report()?,
            "commitments" => self.invocation.commitments(rest)?,
            "parallel" => self.parallel_report()?,
            "logs" => log(self.coordinator, self.shown_task(rest)?)?,
            "forensics" => forensics(self.coordinator, self.shown_task(rest)?)?,
            "cost" => self.cost_report(rest)?,
            "session-report" => self.session_report(rest)?,
            _ => vec![
                self.invocation.skill_block()?.unwrap_or_else(|| words("There are no skills.")),
            ],
        };
        Ok(self.invocation.reply(blocks))
    }

    /// The task that is named, else the active one, else the last one.
    fn shown_task(self, named: &str) -> Result<TaskId, Error> {
        let last = || {
            self.coordinator
                .sessions()
                .view(self.session.id())
                .ok()?
                .tasks
                .last()
                .map(|t| t.task_id)
        };
        match self.session.target(named) {
            Err(error @ Error::NothingActive { .. }) => last().ok_or(error),
            found => found,
        }
    }

    /// Who works in a worktree now, and what each has claimed (MS-147).
    fn parallel_report(self) -> Result<Vec<Block>, Error> {
        let workers = self.coordinator.parallel().workers()?;
        if workers.is_empty() {
            return Ok(vec![words("No worker works in a worktree now.")]);
        }
        let row = |worker: &WorkerView| {
            vec![
                worker.task.to_string(),
                worker.runner.clone(),
                worker.activity.clone().unwrap_or_else(|| worker.status.to_string()),
                worker.heartbeat(),
                worker.worktree_path.clone(),
                worker.claims.join(", "),
            ]
        };
        let rows = workers.iter().map(row).collect();
        let head = ["TASK", "RUNNER", "DOES", "HEARTBEAT", "WORKTREE", "CLAIMS"];
        Ok(vec![Block::table(&head, &[], rows)])
    }

    fn tasks_report(self) -> Result<Vec<Block>, Error> {
        let filter = Filter { limit: Some(TASKS), ..Filter::default() };
        let overview = Overview::read(self.coordinator, &filter)?;
        if overview.tasks.is_empty() && overview.schedules.is_empty() {
            return Ok(vec![words("There are no tasks.")]);
        }
        let row = |task: &TaskView| {
            vec![
                task.row.id.to_string(),
                status_words(task),
                task.cost_usd.map_or_else(|| "unknown".to_owned(), dollars),
                one_line(&task.row.goal, WIDTH),
                task.row.checkpoint_ref.clone().unwrap_or_default(),
            ]
        };
        let rows = overview.tasks.iter().map(row).collect();
        let head = ["TASK", "STATUS", "COST", "GOAL", "CHECKPOINT"];
        let mut blocks = vec![Block::table(&head, &[2], rows)];
        if !overview.schedules.is_empty() {
            blocks.push(Block::heading("Schedules"));
            blocks.extend(self.schedule_report()?);
        }
        Ok(blocks)
    }

    fn status_report(self) -> Result<Vec<Block>, Error> {
        let totals = Totals::read(self.coordinator)?;
        let service = match self.coordinator.queue().has_service()? {
            true => "running",
            false => "not running",
        };
        let cost = totals.cost_usd.map_or_else(|| "unknown".to_owned(), dollars);
        let mut fields = vec![
            ("running", totals.running.to_string()),
            ("queued", totals.queued.to_string()),
            ("waiting for an answer", totals.asking.to_string()),
            ("waiting for you", totals.resumable.to_string()),
            ("questions", totals.questions.to_string()),
            ("schedules", totals.active_schedules.to_string()),
            ("cost of live tasks", cost),
            ("service", service.to_owned()),
        ];
        if let Ok(state) = self.session.state() {
            fields.insert(0, ("session", format!("{}  {}", self.session.id(), state.axes)));
        }
        Ok(vec![Block::fields(fields)])
    }

    fn queue_report(self) -> Result<Vec<Block>, Error> {
        let mut rows = Vec::new();
        for row in self.session.live_tasks()? {
            let place = self.coordinator.queue().place(row.id)?;
            let place = place.map_or_else(|| "-".to_owned(), |place| place.to_string());
            rows.push(vec![
                place,
                row.id.to_string(),
                row.status.to_string(),
                one_line(&row.goal, WIDTH),
            ]);
        }
        Ok(vec![match rows.is_empty() {
            true => words("The queue is empty."),
            false => Block::table(&["PLACE", "TASK", "STATUS", "GOAL"], &[0], rows),
        }])
    }

    fn schedule_report(self) -> Result<Vec<Block>, Error> {
        let mut rows = Vec::new();
        for row in self.coordinator.schedules().list()? {
            if row.state == ScheduleState::Ended {
                continue;
            }
            let about = row.schedule.goal.clone().or(row.schedule.check_prompt.clone());
            rows.push(vec![
                row.schedule.id.to_string(),
                row.state.to_string(),
                row.next_at.map_or_else(|| "-".to_owned(), |next| clock(&next)),
                one_line(&about.unwrap_or_default(), WIDTH),
            ]);
        }
        Ok(vec![match rows.is_empty() {
            true => words("Nothing is scheduled."),
            false => Block::table(&["SCHEDULE", "STATE", "NEXT", "WHAT"], &[], rows),
        }])
    }

    fn cost_report(self, named: &str) -> Result<Vec<Block>, Error> {
        let report = match named {
            "" => self.coordinator.costs().total(0)?,
            named => self.coordinator.costs().of(self.shown_task(named)?)?,
        };
        let mut rows: Vec<_> =
            report.models.iter().map(|(model, sum)| cost_row(model, sum)).collect();
        rows.push(cost_row("total", &report.total));
        let head = ["MODEL", "REPLIES", "INPUT", "OUTPUT", "COST"];
        let mut blocks = vec![Block::table(&head, &[1, 2, 3, 4], rows)];
        if report.simulated.replies > 0 {
            let replies = report.simulated.replies;
            blocks.push(words(&format!(
                "Not counted: {replies} replies of scripts, whose cost is simulated."
            )));
        }
        Ok(blocks)
    }

    /// Tokens and cost of the session, in all and for each civil date (MS-148, MS-184, MS-188).
    fn session_report(self, rest: &str) -> Result<Vec<Block>, Error> {
        let only: Option<Date> = match rest {
            "" => None,
            date => Some(date.parse().map_err(|_| {
                self.invocation.usage_error(format!("`{date}` is not a date such as 2026-12-24"))
            })?),
        };
        let report = self.session.spending()?;
        let mut rows = Vec::new();
        let mut total = CostSum::default();
        for (date, sum) in report.iter().filter(|(date, _)| only.is_none_or(|only| only == **date))
        {
            rows.push(cost_row(&date.to_string(), sum));
            total.merge(sum);
        }
        rows.push(cost_row("total", &total));
        let state = self.session.state()?;
        let mut fields = vec![
            ("session", self.session.id().to_string()),
            ("axes", state.axes.to_string()),
            ("tasks", self.coordinator.sessions().view(self.session.id())?.tasks.len().to_string()),
            (
                "mode changes",
                self.coordinator.store.sessions().transitions(self.session.id())?.len().to_string(),
            ),
        ];
        fields.extend(state.ratings.iter().map(|rated| {
            ("rated", format!("{} of 5 {}", rated.stars, rated.note).trim_end().to_owned())
        }));
        let table =
            Block::table(&["DATE", "REPLIES", "INPUT", "OUTPUT", "COST"], &[1, 2, 3, 4], rows);
        Ok(vec![Block::fields(fields), table])
    }
}

impl Session<'_> {
    /// What the session's replies took, by the civil date of each here.
    pub fn spending(self) -> Result<BTreeMap<Date, CostSum>, Error> {
        let zone = TimeZone::system();
        let mut days: BTreeMap<Date, CostSum> = BTreeMap::new();
        let all = Filter { session: Some(self.id()), ..Filter::default() };
        for row in self.coordinator.store.tasks().list(&all)? {
            for record in self.coordinator.journals().of(row.id)? {
                if let Some(used) = used_by(&record.event) {
                    let date = record.at.to_zoned(zone.clone()).date();
                    days.entry(date).or_default().add(&used);
                }
            }
        }
        Ok(days)
    }
}

fn words(text: &str) -> Block {
    Block::Words { text: text.to_owned() }
}

fn status_words(task: &TaskView) -> String {
    match (task.queue_place, task.is_interrupted()) {
        (Some(place), _) => format!("queued {place}"),
        (None, true) => "interrupted".to_owned(),
        (None, false) if task.waits_for_message() => "waiting for you".to_owned(),
        (None, false) => task.row.status.to_string(),
    }
}

fn cost_row(name: &str, sum: &CostSum) -> Vec<String> {
    let cost = match (sum.cost_usd, sum.unpriced_replies) {
        (None, 0) => dollars(0.0),
        (None, _) => "unknown".to_owned(),
        (Some(cost), 0) => dollars(cost),
        (Some(cost), unknown) => format!("{} + {unknown} unknown", dollars(cost)),
    };
    vec![
        name.to_owned(),
        sum.replies.to_string(),
        sum.input_tokens.to_string(),
        sum.output_tokens.to_string(),
        cost,
    ]
}

fn dollars(amount: f64) -> String {
    format!("${amount:.4}")
}

/// A moment as people read it, with the name of its zone.
fn clock(at: &Zoned) -> String {
    at.strftime("%F %H:%M:%S %Z").to_string()
}
