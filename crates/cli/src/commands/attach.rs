//! `attach`: watch a task that another process drives, and steer it.

use anyhow::Context as _;
use clap::Args;
use windlass_coordinator::views::Attendance;
use windlass_coordinator::{MessageReader, TaskFeed, Update};
use windlass_core::command::TaskResult;
use windlass_core::event::Event;
use windlass_core::id::{QuestionId, TaskId};
use windlass_core::state::TaskState;

use super::attendance::{self, Looks};
use super::interrupts::Interrupts;
use super::steering::Steering;
use super::{AppContext, Execute, Start, ask, drive, named_task};
use crate::args::PrintOptions;
use crate::failure::{self, Failure};
use crate::show::{self, Screen, note};

/// Watch a task that runs elsewhere; lines that you type are sent to it
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Attach {
    /// The task: its id or any unique suffix of it; without, the last one of this directory
    pub task: Option<String>,
    /// How to print
    #[command(flatten)]
    pub printing: PrintOptions,
}

const EXAMPLES: &str = "\
Examples:
  windlass attach                     the last task of this directory
  windlass attach 7K2M                shown as `run` shows it

A line that you type is a message to the task, and its questions can be answered
here. Ctrl-C detaches; the task continues. If nobody works on the task, attach
says so and exits: with 3 if the task has a question, else with 4.";

/// Events before now that are shown, so that one sees what it is about.
const RECENT: usize = 20;

impl Execute for Attach {
    fn execute(self, start: Start) -> Result<u8, Failure> {
        let app = start.app()?;
        app.runtime.block_on(attach(&app, &self))
    }
}

/// Why a task is not watched any more.
enum NextStep {
    /// It ended, or is stopped until a person resumes it.
    Ended(Box<TaskResult>),
    /// It waits for an answer. Where a person was asked here and left, the question has been shown.
    Asks { question: QuestionId, is_shown: bool },
    /// The person has left.
    Detached,
    /// It could continue, and nobody works on it.
    Unattended(Attendance),
}

async fn attach(app: &AppContext, args: &Attach) -> Result<u8, Failure> {
    let task = named_task::find_or_last(app, args.task.as_deref())?;
    follow(app, app.coordinator.tasks().root(task)?, &args.printing, RECENT).await
}

/// Watches a task that another process drives, from so many events before now.
pub(super) async fn follow(
    app: &AppContext,
    task: TaskId,
    printing: &PrintOptions,
    recent: usize,
) -> Result<u8, Failure> {
    let tasks = app.coordinator.tasks();
    let mut interrupts = Interrupts::listen().context("Ctrl-C cannot be listened for")?;
    let records = app.coordinator.journals().of(task)?;
    let (before, recent) = records.split_at(records.len().saturating_sub(recent).max(1));
    let folded = TaskState::fold(before.iter().map(|record| (record.at, &record.event)));
    let state = folded.ok().flatten().map_or_else(|| tasks.state(task), Ok)?;
    let mut screen = Screen::new(printing, app.style, task, &state);
    // Before anything is shown: who answers what they see types into it.
    let steering = Steering::begin(app, task, screen.is_live());
    recent.iter().for_each(|record| screen.event(record));
    let seen = records.last().map_or(0, |record| record.seq);
    let mut feed = match screen.shows_sub_agents() {
        true => app.coordinator.feed().follow_all(task, seen)?,
        false => app.coordinator.feed().follow(task, seen),
    };
    feed.watch_process(tasks.driving_process(task)?);
    let watched = AttachedTask { app, task, printing, steering };
    let next = watch(watched, &mut screen, feed, &mut interrupts).await?;
    screen.clear();
    leave(app, task, &mut screen, next)
}

/// Prints the state of a task that is not watched any more, and gives the exit code.
fn leave(
    app: &AppContext,
    task: TaskId,
    screen: &mut Screen,
    next: NextStep,
) -> Result<u8, Failure> {
    let result = app.coordinator.tasks().last_result(task)?;
    match next {
        NextStep::Detached => {
            match attendance::words(app.coordinator.tasks().attendance(task)?, task) {
                Some(words) => note(&format!("detached; {words}")),
                None => note(&format!(
                    "detached; it continues. Watch it again with: windlass attach {task}"
                )),
            }
        }
        NextStep::Unattended(found) => {
            if let Some(words) = attendance::words(found, task) {
                note(&app.style.wrap_note(&words));
            }
            return Ok(failure::PAUSED);
        }
        NextStep::Asks { question, is_shown } => {
            if !is_shown {
                drive::end_with_question(app, screen, result.as_ref(), question)?;
            }
            return drive::blocked_code(app, task);
        }
        NextStep::Ended(result) => {
            drive::end(app, screen, &result)?;
            return Ok(failure::exit_code(&result));
        }
    }
    Ok(0)
}

/// What is watched, and how a person steers it.
struct AttachedTask<'a> {
    app: &'a AppContext,
    task: TaskId,
    printing: &'a PrintOptions,
    steering: Steering<'a>,
}

async fn watch(
    watched: AttachedTask<'_>,
    screen: &mut Screen,
    mut feed: TaskFeed,
    interrupts: &mut Interrupts,
) -> Result<NextStep, Failure> {
    let AttachedTask { app, task, printing, mut steering } = watched;
    let mut frames = tokio::time::interval(show::FRAME);
    let mut looks = Looks::at(task);
    let live = screen.is_live();
    let can_ask = app.style.can_ask && !printing.json;
    loop {
        let attendance = tokio::select! {
            update = feed.next() => {
                match update? {
                    Update::Event(record) => {
                        screen.event(&record);
                        if record.task == task && matches!(record.event, Event::AgentStart(_)) {
                            // Another process may have taken it over.
                            feed.watch_process(app.coordinator.tasks().driving_process(task)?);
                        }
                    }
                    Update::Preview(preview) => screen.preview(&preview),
                }
                continue;
            }
            looked = looks.next(app) => looked?,
            _ = frames.tick(), if live => {
                screen.tick();
                continue;
            }
            keys = steering.keys() => {
                steering.take(keys, screen).await;
                continue;
            }
            _ = interrupts.recv() => return Ok(NextStep::Detached),
        };
        if attendance == Attendance::Attended {
            continue;
        }
        while let Some(record) = feed.next_committed()? {
            screen.event(&record);
        }
        match attendance {
            Attendance::Attended => {}
            Attendance::Asks(question) if can_ask => {
                drop(steering);
                screen.clear();
                match ask::inline(app, question, interrupts).await? {
                    ask::AskOutcome::Yes => {
                        let uptake = app.coordinator.messages().wait_for_uptake(task).await?;
                        if uptake == MessageReader::AfterResume {
                            return Ok(NextStep::Unattended(Attendance::Abandoned));
                        }
                    }
                    ask::AskOutcome::No => return Ok(NextStep::Asks { question, is_shown: true }),
                    ask::AskOutcome::Over => {}
                }
                looks.wait_again();
                steering = Steering::begin(app, task, live);
            }
            Attendance::Asks(question) => return Ok(NextStep::Asks { question, is_shown: false }),
            Attendance::AtRest => {
                let last = app.coordinator.tasks().last_result(task)?;
                return Ok(match last {
                    Some(result) => NextStep::Ended(Box::new(result)),
                    // It was paused before it began.
                    None => NextStep::Unattended(Attendance::Abandoned),
                });
            }
            Attendance::Abandoned | Attendance::NoService => {
                return Ok(NextStep::Unattended(attendance));
            }
        }
    }
}
