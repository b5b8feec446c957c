//! Drives a task in this process and shows it while it runs; `run`, `resume`, `retry` and `answer` share it.

use anyhow::Context as _;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use windlass_coordinator::Update;
use windlass_core::command::{ResultStatus, TaskResult};
use windlass_core::id::TaskId;
use windlass_core::status::StatusReason;
use windlass_term::numbers;

use super::interrupts::{Interrupt, Interrupts};
use super::steering::Steering;
use super::wait::{self, Waited};
use super::{AppContext, ask, attach};
use crate::args::Printing;
use crate::failure::{self, Failure};
use crate::show::{self, Screen, note};

/// Drives a task, prints its progress, and turns its outcome into an exit code. A question is asked
/// inline where a person can answer, and the task continues.
pub(super) async fn drive(
    app: &AppContext,
    task: TaskId,
    printing: &Printing,
) -> Result<u8, Failure> {
    // A sub-agent runs with the task that started it.
    let task = app.coordinator.tasks().root(task)?;
    let stop = CancellationToken::new();
    let mut interrupts = Interrupts::listen().context("Ctrl-C cannot be listened for")?;
    let mut screen = Screen::new(printing, app.style, task, &app.coordinator.tasks().state(task)?);
    let mut has_asked = false;
    loop {
        let segment = segment(app, task, &mut screen, &stop, &mut interrupts).await;
        if has_asked && segment.as_ref().err().is_some_and(|failure| failure.driver().is_some()) {
            // It was answered in another terminal, and that one has taken it over.
            screen.clear();
            return attach::follow(app, task, printing, 0).await;
        }
        let Some(result) = segment? else { return Ok(failure::INTERRUPTED) };
        if let Some(until) = wait::parked_until(app, &result, &stop)? {
            match wait::until(app, task, until, &mut screen, &mut interrupts).await? {
                Waited::Due => continue,
                Waited::Interrupted => return Ok(failure::INTERRUPTED),
                Waited::Elsewhere => {
                    let result = app.coordinator.tasks().last_result(task)?.unwrap_or(result);
                    return code(app, &result, &stop);
                }
            }
        }
        let asked = result.hitl_request.as_ref().filter(|_| {
            let blocked = result.status == ResultStatus::BlockedUser;
            blocked && app.style.can_ask && !printing.json && !stop.is_cancelled()
        });
        let answered = match asked {
            Some(asked) => {
                screen.clear();
                notify(app, task, "a question waits");
                has_asked = true;
                ask::inline(app, asked.request_id, &mut interrupts).await?
            }
            None => {
                if printing.json
                    && !screen.has_end()
                    && let Some(end) = app.coordinator.tasks().last_end(task)?
                {
                    screen.event(&end);
                }
                end(app, &mut screen, &result)?;
                if !printing.json {
                    print_questions(app, &result)?;
                    notify(app, task, ended(result.status));
                }
                ask::Answered::No
            }
        };
        match answered {
            ask::Answered::Yes => {}
            ask::Answered::No => return code(app, &result, &stop),
            ask::Answered::Over => {
                let result = app.coordinator.tasks().last_result(task)?.unwrap_or(result);
                end(app, &mut screen, &result)?;
                return code(app, &result, &stop);
            }
        }
    }
}

/// Tells the person by the signal that their settings name, where stderr is a terminal.
fn notify(app: &AppContext, task: TaskId, words: &str) {
    let row = app.coordinator.tasks().get(task).ok().flatten().filter(|_| app.style.can_redraw);
    // A configuration that broke meanwhile is reported by the next command, not by a bell.
    let config = row.and_then(|row| app.environment.config(row.workspace.as_ref()).ok());
    if let Some(config) = config {
        show::notify(config.ui.notify, words);
    }
}

fn ended(status: ResultStatus) -> &'static str {
    match status {
        ResultStatus::Completed => "the task is done",
        ResultStatus::Failed => "the task has failed",
        ResultStatus::BlockedUser => "a question waits",
        ResultStatus::Paused => "the task is paused",
        ResultStatus::Cancelled => "the task is cancelled",
    }
}

/// Shows how a run ended, and which files it has changed.
pub(super) fn end(
    app: &AppContext,
    screen: &mut Screen,
    result: &TaskResult,
) -> Result<(), Failure> {
    let changed = match screen.shows_sub_agents() {
        true => app.coordinator.artifacts().changes().files(result.task_id)?,
        false => Vec::new(),
    };
    screen.end(result, &changed);
    Ok(())
}

/// What a blocked task asks, and how to answer. Several agents of a tree may ask; the first is shown.
fn print_questions(app: &AppContext, result: &TaskResult) -> Result<(), Failure> {
    let Some(request) = &result.hitl_request else { return Ok(()) };
    let Some(asked) = app.coordinator.inbox().get(request.request_id)? else { return Ok(()) };
    ask::show_question(app, &asked);
    note(&format!("\n{}", show::answer_with(&asked.row.question).join("\n")));
    let more = app.coordinator.inbox().below(result.task_id)?.len().saturating_sub(1);
    if more > 0 {
        let more = numbers::plural(more, "more question");
        note(&format!("{more} to answer: see `windlass inbox`"));
    }
    Ok(())
}

/// One run segment, to its result; `None` when a second Ctrl-C ended it.
async fn segment(
    app: &AppContext,
    task: TaskId,
    screen: &mut Screen,
    stop: &CancellationToken,
    interrupts: &mut Interrupts,
) -> Result<Option<TaskResult>, Failure> {
    let coordinator = &app.coordinator;
    let from = last_seq(app, task)?;
    let mut feed = match screen.shows_sub_agents() {
        true => coordinator.feed().follow_all(task, from)?,
        false => coordinator.feed().follow(task, from),
    };
    let mut frames = tokio::time::interval(show::FRAME);
    let live = screen.is_live();
    let is_run = coordinator.tasks().state(task)?.created.workflow.is_some();
    let can_ask = is_run && app.style.can_ask && screen.is_for_people();
    // Boxed, so that it can be begun again after each question.
    let mut asking = Box::pin(coordinator.inbox().next_of_program(task));
    let mut steering = Steering::begin(app, task, live);
    // On a worker, where what it waits for arrives: on this thread, which shows, each event would cost a
    // hop and wait for the showing of the one before.
    let mut driving = JoinSet::new();
    let (driver, stopped) = (coordinator.clone(), stop.clone());
    driving.spawn(async move { driver.tasks().drive(task, &stopped).await });
    let sharing = coordinator.feed().share_previews();
    tokio::pin!(sharing);
    let result = loop {
        tokio::select! {
            Some(ended) = driving.join_next() => {
                break ended.context("the task's job ended badly")??;
            }
            () = &mut sharing => {}
            update = feed.next(), if screen.shows_events() => match update? {
                Update::Event(record) => screen.event(&record),
                Update::Preview(preview) => screen.preview(&preview),
            },
            _ = frames.tick(), if live => screen.tick(),
            keys = steering.keys() => steering.take(keys, screen).await,
            asked = &mut asking, if can_ask && !stop.is_cancelled() => {
                screen.clear();
                notify(app, task, "a question waits");
                drop(steering);
                if let ask::Answered::No = ask::inline(app, asked?, interrupts).await? {
                    stop.cancel();
                }
                steering = Steering::begin(app, task, live);
                asking.set(coordinator.inbox().next_of_program(task));
            }
            interrupt = interrupts.recv() => {
                let again = stop.is_cancelled() && interrupt != Interrupt::End;
                if again {
                    screen.say(&format!("stopped; resume with: windlass resume {task}"));
                    return Ok(None);
                }
                if !stop.is_cancelled() {
                    screen.say("pausing; press Ctrl-C again to stop at once");
                }
                stop.cancel();
            }
        }
    };
    while let Some(record) = feed.committed()? {
        screen.event(&record);
    }
    Ok(Some(result))
}

fn last_seq(app: &AppContext, task: TaskId) -> Result<u64, Failure> {
    let row = app.coordinator.tasks().get(task)?;
    Ok(row.map_or(0, |row| row.last_seq))
}

fn code(app: &AppContext, result: &TaskResult, stop: &CancellationToken) -> Result<u8, Failure> {
    if stop.is_cancelled() && result.status == ResultStatus::Paused {
        return Ok(failure::INTERRUPTED);
    }
    let row = app.coordinator.tasks().get(result.task_id)?;
    let blocked = result.status == ResultStatus::BlockedUser;
    if blocked && row.is_some_and(|row| row.reason == StatusReason::Budget) {
        return Ok(failure::BUDGET);
    }
    Ok(failure::exit_code(result))
}
