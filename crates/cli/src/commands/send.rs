//! `send`: a message to a task or a session.

use std::path::Path;

use clap::Args;
use windlass_coordinator::{FollowUp, Handled};
use windlass_core::id::SessionId;
use windlass_core::state::TaskState;
use windlass_core::trigger::UserMessageReceived;
use windlass_term::strip_controls;

use super::goal::Goal;
use super::{AppContext, Execute, Start, follow_up, mail};
use crate::args::{Printing, SandboxArgs};
use crate::failure::Failure;
use crate::show;
use crate::wiring::skills;

/// Send a message to a task; a finished one continues with it
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct SendMessage {
    /// The task: its id or any unique suffix of it; or a session, whose router decides what is meant
    pub task: String,
    /// What to tell the task, or `/status`, `/pause` and the like; an ended task continues with it
    pub text: String,
    /// Another model from now on, as `provider/model` or `script:FILE`
    #[arg(long, value_name = "MODEL")]
    pub model: Option<String>,
    /// Where effects of a follow-up happen
    #[command(flatten)]
    pub sandbox: SandboxArgs,
    /// How a follow-up is printed
    #[command(flatten)]
    pub printing: Printing,
}

const EXAMPLES: &str = "\
Examples:
  windlass send 7K2M \"use tabs, please\"      a task that is not finished
  windlass send 7K2M \"now add a test\"        a finished one continues here";

impl Execute for SendMessage {
    fn execute(self, start: Start) -> Result<u8, Failure> {
        send(&start.sandbox(&self.sandbox).app()?, &self)
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
    let workspace = Path::new(&state.created.workspace);
    let mut message = Goal::of_message(&args.text, Path::new("."));
    message.text = skills::message(&app.environment, workspace, &state.axes, message.text)?;
    let (text, user) = (message.with_attachments(), app.environment.user());
    let is_root = state.created.parent.is_none();
    if state.status.is_terminal() && is_root {
        return continue_ended(app, &state, text, args);
    }
    let sent = app.runtime.block_on(async {
        follow_up::change_model(app, task, args.model.as_deref()).await?;
        Ok::<_, Failure>(coordinator.messages().send(task, &text, &user).await)
    })?;
    match sent {
        Ok(_) => {}
        // It ended while the message was on its way.
        Err(error) if error.is_settled_elsewhere() && is_root => {
            return continue_ended(app, &coordinator.tasks().state(task)?, text, args);
        }
        Err(error) => return Err(error.into()),
    }
    show::note(&format!("sent to {task}"));
    app.runtime.block_on(mail::print_uptake(app, task))
}

/// Continues a task that has ended.
fn continue_ended(
    app: &AppContext,
    before: &TaskState,
    text: String,
    args: &SendMessage,
) -> Result<u8, Failure> {
    let mut wanted = FollowUp::message(text, app.environment.user());
    wanted.execution_config.model.clone_from(&args.model);
    let wishes = wanted.execution_config_after(before.execution_config());
    let (_, choice) = follow_up::check_model(app, before, &wishes)?;
    wanted.execution_config.model = Some(choice.to_string());
    follow_up::follow_up(app, before, wanted, &args.printing)
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
        workspace: Some(follow_up::here(Path::new(".")).display().to_string()),
    };
    match app.runtime.block_on(coordinator.triggers().user_message_received(message))? {
        Handled::Said { message } => show::out(&strip_controls(&message)),
        Handled::Started { task, place } => {
            let place = place.map(|place| format!(", number {place} in line")).unwrap_or_default();
            show::note(&format!("{task} is queued for `windlass serve`{place}"));
            mail::warn_without_service(app)?;
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
