//! Drives a task in this process and shows it while it runs; `run`, `resume`, `retry` and `answer` share it.

use anyhow::Context as _;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use windlass_coordinator::Update;
use windlass_core::command::{ResultStatus, TaskResult};
use windlass_core::id::{QuestionId, TaskId};
use windlass_core::status::StatusReason;
use windlass_term::numbers;

use super::interrupts::{Interrupt, Interrupts};
use super::steering::Steering;
use super::wait::{self, WaitOutcome};
use super::{AppContext, ask, attach};
use crate::args::PrintOptions;
use crate::failure::{self, Failure};
use crate::show::{self, Screen, note};

/// Drives a task, prints its progress, and turns its outcome into an exit code. A question is asked
/// inline where a person can answer, and the task continues.
pub(super) async fn drive(
    app: &AppContext,
    task: TaskId,
    printing: &PrintOptions,
) -> Result<u8, Failure> {
    // A sub-agent runs with the task that started it.
    let task = app.coordinator.tasks().root(task)?;
    let stop = CancellationToken::new();
    let mut interrupts = Interrupts::listen().context("Ctrl-C cannot be listened for")?;
    let state = app.coordinator.tasks().state(task)?;
    let mut screen = Screen::new(printing, app.style, task, &state);
    let can_ask = state.created.workflow.is_some() && app.style.can_ask && screen.is_for_people();
    let mut has_asked = false;
    loop {
        let segment = segment(app, task, &mut screen, (&stop, can_ask), &mut interrupts).await;
        if has_asked && segment.as_ref().err().is_some_and(|failure| failure.driver().is_some()) {
            // It was answered in another terminal, and that one has taken it over.
            screen.clear();
            return attach::follow(app, task, printing, 0).await;
        }
        let Some(result) = segment? else { return Ok(failure::INTERRUPTED) };
        if let Some(until) = wait::parked_until(app, &result, &stop)? {
            match wait::until(app, task, until, &mut screen, &mut interrupts).await? {
                WaitOutcome::Due => continue,
                WaitOutcome::Interrupted => return Ok(failure::INTERRUPTED),
                WaitOutcome::Elsewhere => {
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
                    if let Some(question) = asked_at_end(app, &result)? {
                        print_questions(app, question)?;
                    }
                    notify(app, task, end_words(result.status));
                }
                ask::AskOutcome::No
            }
        };
        match answered {
            ask::AskOutcome::Yes => {}
            ask::AskOutcome::No => return code(app, &result, &stop),
            ask::AskOutcome::Over => {
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

fn end_words(status: ResultStatus) -> &'static str {
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

/// Shows what a task asks that was blocked in another process, after how its last segment ended.
pub(super) fn end_with_question(
    app: &AppContext,
    screen: &mut Screen,
    result: Option<&TaskResult>,
    question: QuestionId,
) -> Result<(), Failure> {
    if screen.is_for_people() {
        if let Some(result) = result {
            end(app, screen, result)?;
        }
        return print_questions(app, question);
    }
    match result.map(|result| app.coordinator.tasks().last_end(result.task_id)).transpose()? {
        Some(Some(end)) if !screen.has_end() => screen.event(&end),
        Some(_) | None => {}
    }
    Ok(())
}

/// What waits for an answer at the end of a segment. A run of a workflow may fail and ask: for more rounds of a loop, say.
fn asked_at_end(app: &AppContext, result: &TaskResult) -> Result<Option<QuestionId>, Failure> {
    if let Some(request) = &result.hitl_request {
        return Ok(Some(request.request_id));
    }
    let task = result.task_id;
    let has_failed = result.status == ResultStatus::Failed;
    if !has_failed || app.coordinator.tasks().state(task)?.created.workflow.is_none() {
        return Ok(None);
    }
    let open = app.coordinator.inbox().open_in_tree(task)?;
    Ok(open.first().map(|asked| asked.row.question.id))
}

/// What a blocked task asks, and how to answer. Several agents of a tree may ask; one question is shown.
fn print_questions(app: &AppContext, question: QuestionId) -> Result<(), Failure> {
    let Some(asked) = app.coordinator.inbox().get(question)? else { return Ok(()) };
    ask::show_question(app, &asked);
    note(&format!("\n{}", show::answer_with(&asked.row.question).join("\n")));
    let asker = asked.row.task;
    let root = app.coordinator.tasks().root(asker)?;
    let more = app.coordinator.inbox().open_in_tree(root)?.len().saturating_sub(1);
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
    (stop, can_ask): (&CancellationToken, bool),
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
    // Boxed, so that it can be begun again after each question.
    let mut asking = Box::pin(next_of_program(app, task, None));
    let can_show = can_ask || screen.is_for_people();
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
            asked = &mut asking, if can_show && !stop.is_cancelled() => {
                let asked = asked?;
                screen.clear();
                if !can_ask {
                    // The program waits until somebody answers elsewhere.
                    print_questions(app, asked)?;
                    asking.set(next_of_program(app, task, Some(asked)));
                    continue;
                }
                notify(app, task, "a question waits");
                drop(steering);
                if let ask::AskOutcome::No = ask::inline(app, asked, interrupts).await? {
                    stop.cancel();
                }
                steering = Steering::begin(app, task, live);
                asking.set(next_of_program(app, task, None));
            }
            interrupt = interrupts.recv() => {
                let again = stop.is_cancelled() && interrupt != Interrupt::End;
                if again {
                    screen.say(&format!("stopped; resume with: windlass resume {task}"));
                    return Ok(None);
                }
                if !stop.is_cancelled() {
                    screen.say(&interrupt.words());
                }
                stop.cancel();
            }
        }
    };
    while let Some(record) = feed.next_committed()? {
        screen.event(&record);
    }
    Ok(Some(result))
}

/// The next question of a program that works for a run, after this one is settled.
async fn next_of_program(
    app: &AppContext,
    task: TaskId,
    after: Option<QuestionId>,
) -> Result<QuestionId, windlass_coordinator::Error> {
    let inbox = app.coordinator.inbox();
    if let Some(shown) = after {
        inbox.wait_until_settled(shown).await?;
    }
    inbox.next_of_program(task).await
}

fn last_seq(app: &AppContext, task: TaskId) -> Result<u64, Failure> {
    let row = app.coordinator.tasks().get(task)?;
    Ok(row.map_or(0, |row| row.last_seq))
}

fn code(app: &AppContext, result: &TaskResult, stop: &CancellationToken) -> Result<u8, Failure> {
    if stop.is_cancelled() && result.status == ResultStatus::Paused {
        return Ok(failure::INTERRUPTED);
    }
    match result.status {
        ResultStatus::BlockedUser => blocked_code(app, result.task_id),
        ResultStatus::Completed
        | ResultStatus::Failed
        | ResultStatus::Paused
        | ResultStatus::Cancelled => Ok(failure::exit_code(result)),
    }
}

/// How the program ends where a task waits for an answer.
pub(super) fn blocked_code(app: &AppContext, task: TaskId) -> Result<u8, Failure> {
    let row = app.coordinator.tasks().get(task)?;
    Ok(match row.is_some_and(|row| row.reason == StatusReason::Budget) {
        true => failure::BUDGET,
        false => failure::BLOCKED,
    })
}
