//! Working on one message: the task is driven here, or watched where a service drives it.

use anyhow::Context as _;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use windlass_coordinator::slash::{self, SlashInput};
use windlass_coordinator::{Coordinator, Update};
use windlass_core::command::{ResultStatus, TaskResult};
use windlass_core::event::{Driver, Event, Record};
use windlass_core::id::{QuestionId, TaskId};
use windlass_core::injection::InjectionType;
use windlass_core::shown::shown_line;
use windlass_core::status::StatusReason;

use super::super::interrupts::Interrupts;
use super::super::wait::{self, WaitOutcome};
use super::ChatLoop;
use super::input::ChatInput;
use crate::failure::{self, Failure};
use crate::show::{self, Screen, note, out, replies, task_page};

/// Commands that are about running work; they do not wait for its end.
const AT_ONCE: &[&str] = &["steer", "pause", "interrupt", "stop", "cancel", "remote", "inbox"];

/// How the work on a message ended.
pub(super) enum WorkEnd {
    /// It waits for the next message, or is over; the exit code that this would be.
    Waits(u8),
    /// It waits for an answer.
    Asks(QuestionId),
}

/// Works on a task until it waits for the person.
pub(super) async fn work(
    chat: &ChatLoop<'_>,
    task: TaskId,
    input: &mut ChatInput,
    interrupts: &mut Interrupts,
) -> Result<WorkEnd, Failure> {
    let (tasks, style) = (chat.opening.coordinator.tasks(), chat.app.style);
    let task = tasks.root(task)?;
    let state = tasks.state(task)?;
    let mut screen = Screen::new(&chat.printing, style, task, &state);
    if state.attempts.started {
        screen.skip_introduction();
    }
    loop {
        let stop = CancellationToken::new();
        let result =
            segment(chat, task, &mut screen, &stop, (&mut *input, &mut *interrupts)).await?;
        if let Some(until) = wait::parked_until(chat.app, &result, &stop)? {
            match wait::until(chat.app, task, until, &mut screen, interrupts).await? {
                WaitOutcome::Due => continue,
                WaitOutcome::Interrupted | WaitOutcome::Elsewhere => {}
            }
        }
        screen.clear();
        return end(chat, &result);
    }
}

/// One segment, to its result.
async fn segment(
    chat: &ChatLoop<'_>,
    task: TaskId,
    screen: &mut Screen,
    stop: &CancellationToken,
    (input, interrupts): (&mut ChatInput, &mut Interrupts),
) -> Result<TaskResult, Failure> {
    let coordinator = &chat.opening.coordinator;
    let from = coordinator.tasks().get(task)?.map_or(0, |row| row.last_seq);
    let mut feed = match screen.shows_sub_agents() {
        true => coordinator.feed().follow_all(task, from)?,
        false => coordinator.feed().follow(task, from),
    };
    let mut frames = tokio::time::interval(show::FRAME);
    let live = screen.is_live();
    let mut driving = drive(coordinator, task, from, stop)?;
    // What a pipe says next waits for its turn.
    let mut held: Option<String> = None;
    let sharing = coordinator.feed().share_previews();
    tokio::pin!(sharing);
    let result = loop {
        tokio::select! {
            Some(ended) = driving.join_next() => {
                break ended.context("the task's job ended badly")??;
            }
            () = &mut sharing => {}
            update = feed.next(), if screen.shows_events() => match update? {
                // The person who typed it knows it.
                Update::Event(record) if is_own(chat, &record) => {}
                Update::Event(record) => screen.event(&record),
                Update::Preview(preview) => screen.preview(&preview),
            },
            _ = frames.tick(), if live => screen.tick(),
            line = input.next_line_during_work(screen), if held.is_none() => {
                let is_typed = input.is_typed();
                held = handle_line_during_work(chat, line, is_typed, screen).await;
            }
            _ = interrupts.recv() => {
                if stop.is_cancelled() {
                    return Err(Failure::usage("stopped", "the next message continues the work"));
                }
                screen.say("pausing; the next message continues the work");
                stop.cancel();
            }
        }
    };
    while let Some(record) = feed.next_committed()? {
        screen.event(&record);
    }
    if let Some(line) = held {
        input.put_back(line);
    }
    Ok(result)
}

/// Whether an event is a message from this very conversation.
fn is_own(chat: &ChatLoop<'_>, record: &Record) -> bool {
    match &record.event {
        Event::InjectionReceived(injection) => {
            injection.injection_type == InjectionType::UserMessage && injection.by == chat.user
        }
        _ => false,
    }
}

/// Drives the task here; one of a service is watched until its segment ends.
fn drive(
    coordinator: &Coordinator,
    task: TaskId,
    from: u64,
    stop: &CancellationToken,
) -> Result<JoinSet<Result<TaskResult, windlass_coordinator::Error>>, Failure> {
    let mut driving = JoinSet::new();
    let (driver, stopped) = (coordinator.clone(), stop.clone());
    let row = coordinator.tasks().get(task)?;
    match row.map(|row| row.driver) {
        Some(Driver::Service) => driving.spawn(async move {
            let mut feed = driver.feed().follow(task, from);
            loop {
                if let Update::Event(record) = feed.next().await?
                    && let Event::AgentEnd(result) = record.event
                {
                    return Ok(*result);
                }
            }
        }),
        Some(Driver::Foreground) | None => {
            driving.spawn(async move { driver.tasks().drive(task, &stopped).await })
        }
    };
    Ok(driving)
}

/// Takes a line that came while the agent works; a line that has to wait is handed back.
async fn handle_line_during_work(
    chat: &ChatLoop<'_>,
    line: String,
    is_typed: bool,
    screen: &mut Screen,
) -> Option<String> {
    let text = line.trim().to_owned();
    if text.is_empty() {
        return None;
    }
    let name = text.trim_start_matches('/').split_whitespace().next().unwrap_or_default();
    let is_command = slash::is_command(&text);
    if is_command && (is_typed || AT_ONCE.contains(&name)) {
        let input = SlashInput { share: chat.opening.share, ..SlashInput::here(&text, &chat.user) };
        match chat.session().run(input).await {
            Ok(reply) => {
                screen.clear();
                replies::print(&reply, chat.app.style);
            }
            Err(error) => {
                let failure = Failure::from(error);
                screen.clear();
                show::error(&failure);
            }
        }
        return None;
    }
    if is_command || !is_typed {
        return Some(line);
    }
    match chat.session().conversation().send(chat.message(text.clone())).await {
        Ok(_) => screen.say(&format!("→ {} (read after the current step)", shown_line(&text))),
        Err(error) => screen.say(&format!("not sent: {}", shown_line(&error.to_string()))),
    }
    None
}

/// Shows what came out, and says what the conversation waits for.
fn end(chat: &ChatLoop<'_>, result: &TaskResult) -> Result<WorkEnd, Failure> {
    if let Some(text) = &result.final_message {
        out(&task_page::answer(text, chat.app.style));
    }
    let row = chat.opening.coordinator.tasks().get(result.task_id)?;
    let reason = row.map(|row| row.reason);
    if result.status == ResultStatus::BlockedUser
        && let Some(asked) = &result.hitl_request
    {
        return Ok(WorkEnd::Asks(asked.request_id));
    }
    if result.status == ResultStatus::Paused && reason == Some(StatusReason::AwaitingMessage) {
        return Ok(WorkEnd::Waits(0));
    }
    let style = chat.app.style;
    for line in show::ending_lines(result, style, reason) {
        note(&line);
    }
    Ok(WorkEnd::Waits(failure::exit_code(result)))
}
