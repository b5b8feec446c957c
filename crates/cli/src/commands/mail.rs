//! `answer`, `send`, `pause`, `cancel`: messages for tasks, whoever drives them.

use windlass_coordinator::{Handled, Uptake};
use windlass_core::id::{SessionId, TaskId};
use windlass_core::injection::Control;
use windlass_core::trigger::UserMessageReceived;
use windlass_term::strip_controls;

use super::{AppContext, ask, run};
use crate::args::{Answer, Cancel, Pause, Send};
use crate::failure::Failure;
use crate::show;
use crate::wiring::skills;

pub(super) fn answer(app: &AppContext, args: Answer) -> Result<u8, Failure> {
    let coordinator = &app.coordinator;
    let question = coordinator.inbox().find(&args.question)?;
    let asked = coordinator.inbox().get(question)?;
    let options = asked.map(|asked| asked.row.question.options).unwrap_or_default();
    let Some(text) = ask::chosen(&args.text, &options) else {
        return Err(Failure::usage("the answer is empty", "say what it should be"));
    };
    app.runtime.block_on(async {
        let task = coordinator.inbox().answer(question, &text, &app.environment.user()).await?;
        if args.resume {
            let driven = run::drive(app, task, &args.printing).await;
            let Some(pid) = driven.as_ref().err().and_then(Failure::driver) else { return driven };
            // Somebody is there already: what was asked for happens.
            show::note(&format!("answered {question}; process {pid} continues it"));
            return Ok(0);
        }
        show::note(&format!("answered {question}"));
        print_uptake(app, task).await
    })
}

pub(super) fn send(app: &AppContext, args: &Send) -> Result<u8, Failure> {
    let coordinator = &app.coordinator;
    if args.text.trim().is_empty() {
        return Err(Failure::usage("the message is empty", "say what the task should know"));
    }
    if args.task.starts_with(SessionId::PREFIX) {
        return say(app, args);
    }
    let task = coordinator.tasks().find(&args.task)?;
    let state = coordinator.tasks().state(task)?;
    let workspace = std::path::Path::new(&state.created.workspace);
    let text = args.text.clone();
    let text = skills::message(&app.environment, workspace, &state.axes, text)?;
    app.runtime.block_on(coordinator.messages().send(task, &text, &app.environment.user()))?;
    show::note(&format!("sent to {task}"));
    app.runtime.block_on(print_uptake(app, task))
}

/// Says something in a session: the router decides which of its tasks gets it, or what else it means.
fn say(app: &AppContext, args: &Send) -> Result<u8, Failure> {
    let known = app.coordinator.sessions().find(&args.task)?;
    let session_id = match known {
        Some(session) => session,
        // A whole id that nobody has used yet begins a conversation.
        None => args.task.parse::<SessionId>().map_err(|_| {
            let hint = "list them with `windlass sessions`";
            Failure::usage(format!("there is no session `{}`", args.task), hint)
        })?,
    };
    let coordinator = app.service()?;
    let message = UserMessageReceived {
        session_id,
        user_id: app.environment.user(),
        request_id: None,
        message: args.text.clone(),
        deadline: None,
        deadline_action: None,
    };
    match app.runtime.block_on(coordinator.triggers().user_message_received(message))? {
        Handled::Said { message } => show::out(&strip_controls(&message)),
        Handled::Started { task, place } => {
            let place = place.map(|place| format!(", number {place} in line")).unwrap_or_default();
            show::note(&format!("{task} is queued for `windlass serve`{place}"));
        }
        Handled::Injected { task } => {
            show::note(&format!("sent to {task}"));
            return app.runtime.block_on(print_uptake(app, task));
        }
        Handled::Steered { task, words } => show::note(&format!("{task} {words}")),
        Handled::Nothing { reason } => show::note(&reason),
    }
    Ok(0)
}

pub(super) fn pause(app: &AppContext, args: &Pause) -> Result<u8, Failure> {
    control(app, &args.task, Control::Pause)
}

pub(super) fn cancel(app: &AppContext, args: &Cancel) -> Result<u8, Failure> {
    control(app, &args.task, Control::Cancel { reason: args.reason.clone() })
}

fn control(app: &AppContext, task: &str, control: Control) -> Result<u8, Failure> {
    let coordinator = &app.coordinator;
    let task = coordinator.tasks().find(task)?;
    let status = app.runtime.block_on(coordinator.control().steer(
        task,
        control,
        &app.environment.user(),
    ))?;
    show::note(&format!("{task} {status}"));
    Ok(0)
}

/// A message to a task that nobody drives waits; the person should know.
pub(super) async fn print_uptake(app: &AppContext, task: TaskId) -> Result<u8, Failure> {
    match app.coordinator.messages().wait_for_uptake(task).await? {
        Uptake::Read => {}
        Uptake::ByService => show::note("nobody drives it now; `windlass serve` continues it"),
        Uptake::AfterResume => {
            show::note(&format!("nobody drives it now; continue with `windlass resume {task}`"));
        }
    }
    Ok(0)
}
