//! `send`: a message to a task or a session.

use clap::Args;
use windlass_coordinator::Handled;
use windlass_core::id::SessionId;
use windlass_core::trigger::UserMessageReceived;
use windlass_term::strip_controls;

use super::{AppContext, Execute, Start, mail};
use crate::failure::Failure;
use crate::show;
use crate::wiring::skills;

/// Send a message to a running task
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct SendMessage {
    /// The task: its id or any unique suffix of it; or a session, whose router decides what is meant
    pub task: String,
    /// What to tell the task, or `/status`, `/pause` and the like
    pub text: String,
}

const EXAMPLES: &str = "\
Examples:
  windlass send 7K2M \"use tabs, please\"";

impl Execute for SendMessage {
    fn execute(self, start: Start) -> Result<u8, Failure> {
        send(&start.app()?, &self)
    }
}

pub(super) fn send(app: &AppContext, args: &SendMessage) -> Result<u8, Failure> {
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
    app.runtime.block_on(mail::print_uptake(app, task))
}

/// Says something in a session: the router decides which of its tasks gets it, or what else it means.
fn say(app: &AppContext, args: &SendMessage) -> Result<u8, Failure> {
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
            return app.runtime.block_on(mail::print_uptake(app, task));
        }
        Handled::Steered { task, words } => show::note(&format!("{task} {words}")),
        Handled::Nothing { reason } => show::note(&reason),
    }
    Ok(0)
}
