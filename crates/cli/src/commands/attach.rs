//! `attach`: watch a task that another process drives, and steer it.

use anyhow::Context as _;
use clap::Args;
use windlass_coordinator::{TaskFeed, Update, Uptake};
use windlass_core::command::{ResultStatus, TaskResult};
use windlass_core::event::{Event, Record};
use windlass_core::id::TaskId;
use windlass_core::state::TaskState;

use super::interrupts::Interrupts;
use super::steering::Steering;
use super::{AppContext, Execute, Start, ask, drive};
use crate::args::Printing;
use crate::failure::{self, Failure};
use crate::show::{self, Screen, note};

/// Watch a task that runs elsewhere; a line that you type is sent to it
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Attach {
    /// The task: its id or any unique suffix of it
    pub task: String,
    /// How to print
    #[command(flatten)]
    pub printing: Printing,
}

const EXAMPLES: &str = "\
Examples:
  windlass attach 7K2M                as `run` shows it

A line that you type is a message to the task, and its questions can be answered
here. Ctrl-C detaches; the task continues.";

/// Events before now that are shown, so that one sees what it is about.
const RECENT: usize = 20;

impl Execute for Attach {
    fn execute(self, start: Start) -> Result<u8, Failure> {
        let app = start.app()?;
        app.runtime.block_on(attach(&app, &self))
    }
}

/// What the task does next.
enum Stands {
    /// It ended, or stands still until a person resumes it.
    Ended(Box<TaskResult>),
    /// The person has left.
    Detached,
    /// It could continue, and no process drives it.
    Unattended,
}

async fn attach(app: &AppContext, args: &Attach) -> Result<u8, Failure> {
    let tasks = app.coordinator.tasks();
    follow(app, tasks.root(tasks.find(&args.task)?)?, &args.printing, RECENT).await
}

/// Watches a task that another process drives, from so many events before now.
pub(super) async fn follow(
    app: &AppContext,
    task: TaskId,
    printing: &Printing,
    recent: usize,
) -> Result<u8, Failure> {
    let tasks = app.coordinator.tasks();
    let mut interrupts = Interrupts::listen().context("Ctrl-C cannot be listened for")?;
    let records = tasks.journal(task)?;
    let (before, recent) = records.split_at(records.len().saturating_sub(recent).max(1));
    let folded = TaskState::fold(before.iter().map(|record| (record.at, &record.event)));
    let state = folded.ok().flatten().map_or_else(|| tasks.state(task), Ok)?;
    let mut screen = Screen::new(printing, app.style, task, &state);
    // Before anything is shown: who answers what they see types into it.
    let steering = Steering::begin(app, task, screen.is_live());
    recent.iter().for_each(|record| screen.event(record));
    let seen = records.last().map_or(0, |record| record.seq);
    let last = records.iter().rev().find_map(result_of);
    let mut feed = match screen.shows_sub_agents() {
        true => app.coordinator.feed().follow_all(task, seen)?,
        false => app.coordinator.feed().follow(task, seen),
    };
    feed.watch_process(tasks.driving_process(task)?);
    let is_over = |result: &TaskResult| result.status != ResultStatus::BlockedUser;
    let stands = match last.filter(is_over) {
        Some(result) if !is_at_work(app, task)? => Stands::Ended(Box::new(result)),
        Some(_) | None => {
            let watched = Watched { app, task, printing, steering };
            watch(watched, &mut screen, feed, &mut interrupts).await?
        }
    };
    match stands {
        Stands::Detached => {
            screen.clear();
            note(&format!("detached; it continues. Watch it again with: windlass attach {task}"));
            Ok(0)
        }
        Stands::Unattended => {
            screen.clear();
            note(&format!("it is not running; resume it with: windlass resume {task}"));
            Ok(0)
        }
        Stands::Ended(result) => {
            drive::end(app, &mut screen, &result)?;
            Ok(failure::exit_code(&result))
        }
    }
}

/// Whether a process drives it, or will without a person.
fn is_at_work(app: &AppContext, task: TaskId) -> Result<bool, Failure> {
    let details = app.coordinator.tasks().details(task)?;
    let row = &details.view.row;
    Ok(!row.status.is_terminal() && !details.view.is_resumable())
}

/// What is watched, and how a person steers it.
struct Watched<'a> {
    app: &'a AppContext,
    task: TaskId,
    printing: &'a Printing,
    steering: Steering<'a>,
}

async fn watch(
    watched: Watched<'_>,
    screen: &mut Screen,
    mut feed: TaskFeed,
    interrupts: &mut Interrupts,
) -> Result<Stands, Failure> {
    let Watched { app, task, printing, mut steering } = watched;
    let mut frames = tokio::time::interval(show::FRAME);
    let live = screen.is_live();
    let mut ended = open_result(app, task)?;
    loop {
        if let Some(result) = ended.take() {
            let asks = result.status == ResultStatus::BlockedUser;
            match &result.hitl_request {
                Some(asked) if asks && app.style.can_ask && !printing.json => {
                    drop(steering);
                    screen.clear();
                    match ask::inline(app, asked.request_id, interrupts).await? {
                        ask::Answered::Yes => {
                            let uptake = app.coordinator.messages().wait_for_uptake(task).await?;
                            if uptake == Uptake::AfterResume {
                                return Ok(Stands::Unattended);
                            }
                        }
                        ask::Answered::No => return Ok(Stands::Detached),
                        ask::Answered::Over => return Ok(Stands::Ended(Box::new(result))),
                    }
                    steering = Steering::begin(app, task, live);
                }
                _ if is_at_work(app, task)? => {}
                _ => return Ok(Stands::Ended(Box::new(result))),
            }
        }
        tokio::select! {
            update = feed.next() => match update? {
                Update::Event(record) => {
                    screen.event(&record);
                    if record.task == task {
                        ended = result_of(&record);
                        if matches!(record.event, Event::AgentStart(_)) {
                            // Another process may have taken it over.
                            feed.watch_process(app.coordinator.tasks().driving_process(task)?);
                        }
                    }
                }
                Update::Preview(preview) => screen.preview(&preview),
            },
            _ = frames.tick(), if live => screen.tick(),
            keys = steering.keys() => steering.take(keys, screen).await,
            _ = interrupts.recv() => return Ok(Stands::Detached),
        }
    }
}

/// The result of a task that is blocked on a question now; no event announces it again.
fn open_result(app: &AppContext, task: TaskId) -> Result<Option<TaskResult>, Failure> {
    let tasks = app.coordinator.tasks();
    let asked = !app.coordinator.inbox().below(task)?.is_empty();
    let is_driven = tasks.driving_process(task)?.is_some();
    Ok(if asked && !is_driven { tasks.last_result(task)? } else { None })
}

fn result_of(record: &Record) -> Option<TaskResult> {
    match &record.event {
        Event::AgentEnd(result) if result.task_id == record.task => Some(result.as_ref().clone()),
        _ => None,
    }
}
