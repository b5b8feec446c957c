//! `answer`, `send`, `pause`, `cancel`: messages for tasks, whoever drives them.

use std::time::{Duration, Instant};

use windlass_coordinator::Handled;
use windlass_core::event::Driver;
use windlass_core::id::{QuestionId, SessionId, TaskId};
use windlass_core::injection::Control;
use windlass_core::status::TaskStatus;
use windlass_core::trigger::UserMessageReceived;
use windlass_term::strip_controls;

use super::{Setting, ask, run};
use crate::args::{Answer, Cancel, Pause, Send};
use crate::failure::Failure;
use crate::show;
use crate::wiring::skills;

pub(super) fn answer(setting: &Setting, args: Answer) -> Result<u8, Failure> {
    let coordinator = &setting.coordinator;
    let question = find(setting, &args.question)?;
    let open = coordinator.store().questions().open()?;
    let asked = open.into_iter().find(|row| row.question.id == question);
    let options = asked.map(|row| row.question.options).unwrap_or_default();
    let Some(text) = ask::chosen(&args.text, &options) else {
        return Err(Failure::usage("the answer is empty", "say what it should be"));
    };
    setting.runtime.block_on(async {
        let task = coordinator.answer(question, &text, &setting.surroundings.user()).await?;
        if args.resume {
            let driven = run::drive(setting, task, &args.printing).await;
            let Some(pid) = driven.as_ref().err().and_then(Failure::driver) else { return driven };
            // Somebody is there already: what was asked for happens.
            show::note(&format!("answered {question}; process {pid} goes on with it"));
            return Ok(0);
        }
        show::note(&format!("answered {question}"));
        tell_who_drives(setting, task)
    })
}

/// A question by its own id, or by the id of the task that waits for it.
fn find(setting: &Setting, text: &str) -> Result<QuestionId, Failure> {
    let store = setting.coordinator.store();
    let unknown = match store.ids().question(text) {
        Ok(question) => return Ok(question),
        Err(error @ windlass_store::Error::UnknownQuestion(_)) => error,
        Err(error) => return Err(error.into()),
    };
    let Ok(task) = store.ids().task(text) else { return Err(unknown.into()) };
    let open = ask::open_below(setting, task)?;
    match open.as_slice() {
        [only] => Ok(only.question.id),
        [] => {
            let none = || Failure::usage(format!("`{task}` asks nothing"), "see `windlass inbox`");
            // The last one, so that a second answer hears the first.
            store.questions().of(task)?.last().map(|row| row.question.id).ok_or_else(none)
        }
        several => {
            let ids: Vec<_> = several.iter().map(|row| format!("`{}`", row.question.id)).collect();
            let message = format!("`{task}` waits for {} answers", ids.len());
            Err(Failure::usage(message, format!("name the question: {}", ids.join(", "))))
        }
    }
}

pub(super) fn send(setting: &Setting, args: &Send) -> Result<u8, Failure> {
    let coordinator = &setting.coordinator;
    if args.text.trim().is_empty() {
        return Err(Failure::usage("the message is empty", "say what the task should know"));
    }
    if args.task.starts_with(SessionId::PREFIX) {
        return say(setting, args);
    }
    let task = coordinator.store().ids().task(&args.task)?;
    let state = coordinator.state(task)?;
    let workspace = std::path::Path::new(&state.created.workspace);
    let text = args.text.clone();
    let text = skills::message(&setting.surroundings, workspace, &state.axes, text)?;
    setting.runtime.block_on(coordinator.send(task, &text, &setting.surroundings.user()))?;
    show::note(&format!("sent to {task}"));
    tell_who_drives(setting, task)
}

/// Says something in a session: the router decides which of its tasks hears it, or what else it means.
fn say(setting: &Setting, args: &Send) -> Result<u8, Failure> {
    let known = setting.coordinator.store().ids().session(&args.task)?;
    let session_id = match known {
        Some(session) => session,
        // A whole id that nobody has used yet begins a conversation.
        None => args.task.parse::<SessionId>().map_err(|_| {
            let hint = "list them with `windlass sessions`";
            Failure::usage(format!("there is no session `{}`", args.task), hint)
        })?,
    };
    let coordinator = setting.service()?;
    let message = UserMessageReceived {
        session_id,
        user_id: setting.surroundings.user(),
        request_id: None,
        message: args.text.clone(),
        deadline: None,
        deadline_action: None,
    };
    match setting.runtime.block_on(coordinator.user_message_received(message))? {
        Handled::Said { message } => show::out(&strip_controls(&message)),
        Handled::Started { task, place } => {
            let place = place.map(|place| format!(", number {place} in line")).unwrap_or_default();
            show::note(&format!("{task} is queued for `windlass serve`{place}"));
        }
        Handled::Injected { task } => {
            show::note(&format!("sent to {task}"));
            return tell_who_drives(setting, task);
        }
        Handled::Steered { task, words } => show::note(&format!("{task} {words}")),
        Handled::Nothing { reason } => show::note(&reason),
    }
    Ok(0)
}

pub(super) fn pause(setting: &Setting, args: &Pause) -> Result<u8, Failure> {
    control(setting, &args.task, Control::Pause)
}

pub(super) fn cancel(setting: &Setting, args: &Cancel) -> Result<u8, Failure> {
    control(setting, &args.task, Control::Cancel { reason: args.reason.clone() })
}

fn control(setting: &Setting, task: &str, control: Control) -> Result<u8, Failure> {
    let coordinator = &setting.coordinator;
    let task = coordinator.store().ids().task(task)?;
    let status =
        setting.runtime.block_on(coordinator.steer(task, control, &setting.surroundings.user()))?;
    show::note(&format!("{task} {status}"));
    Ok(0)
}

/// How long a process that drives a task is given to take what was said to it, or to leave.
const PATIENCE: Duration = Duration::from_secs(1);
/// How long somebody who waits for it is given to go on with a task that nobody drives.
const UPTAKE: Duration = Duration::from_millis(200);
/// How often it is looked whether they have.
const LOOK: Duration = Duration::from_millis(20);

/// A message to a task that nobody drives waits; the person should know.
pub(super) fn tell_who_drives(setting: &Setting, task: TaskId) -> Result<u8, Failure> {
    let store = setting.coordinator.store();
    let since = Instant::now();
    loop {
        let driven = store.driving_process(task)?.is_some();
        let runs = store.tasks().get(task)?.is_some_and(|row| row.status == TaskStatus::Running);
        // What came before a segment ends is heard by it.
        if driven && runs || !store.mailbox().has_mail(task)? {
            return Ok(0);
        }
        // A process that is about to end drives the task still, and takes nothing any more; a terminal that
        // shows the question goes on when it sees the answer.
        let patience = if driven { PATIENCE } else { UPTAKE };
        if since.elapsed() > patience {
            break;
        }
        std::thread::sleep(LOOK);
    }
    if store.driving_process(task)?.is_some() {
        return Ok(0);
    }
    let Some(row) = store.tasks().get(task)?.filter(|row| !row.status.is_terminal()) else {
        return Ok(0);
    };
    // What a person has parked, a person goes on with.
    let serves = row.driver == Driver::Service && row.status != TaskStatus::Paused;
    show::note(&match serves {
        true => "nobody drives it now; `windlass serve` goes on with it".to_owned(),
        false => format!("nobody drives it now; go on with `windlass resume {task}`"),
    });
    Ok(0)
}
