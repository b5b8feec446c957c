//! `send`: a message to a task or a session.

use std::path::Path;

use clap::Args;
use windlass_coordinator::slash::{self, Effect, SlashInput};
use windlass_coordinator::trigger::UserMessageReceived;
use windlass_coordinator::{Coordinator, Error, FollowUp, TriggerOutcome};
use windlass_core::id::SessionId;
use windlass_core::injection::Control;
use windlass_core::picture::Picture;
use windlass_core::state::TaskState;
use windlass_term::strip_controls;

use super::goal::Goal;
use super::{AppContext, Execute, Start, follow_up, mail};
use crate::args::{PrintOptions, SandboxArgs};
use crate::failure::Failure;
use crate::show;
use crate::wiring::skills;

/// Send a message to a task; a finished one continues with it
#[derive(Debug, Args)]
#[command(visible_alias = "steer", after_help = EXAMPLES)]
pub struct SendMessage {
    /// The task: its id or any unique suffix of it; or a session, whose router decides what is meant
    pub task: String,
    /// The message, or a command such as `/status` or `/pause`; an ended task continues with it
    pub text: String,
    /// Send the text to this sub-agent alone, which reads it as a control message
    #[arg(long, conflicts_with = "model")]
    pub sub_agent: bool,
    /// Another model from now on: PROVIDER/NAME or script:FILE
    #[arg(long, value_name = "MODEL")]
    pub model: Option<String>,
    /// Where effects of a follow-up happen
    #[command(flatten)]
    pub sandbox: SandboxArgs,
    /// How a follow-up is printed
    #[command(flatten)]
    pub printing: PrintOptions,
}

const EXAMPLES: &str = "\
Examples:
  windlass send 7K2M \"use tabs, please\"      a task that is not finished
  windlass send 7K2M \"now add a test\"        a finished one continues here
  windlass steer 9QXA \"only the tests\" --sub-agent";

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
        return send_to_session(app, args);
    }
    let task = coordinator.tasks().find(&args.task)?;
    let state = coordinator.tasks().state(task)?;
    if slash::is_known(&args.text) {
        return command(app, &app.service()?, state.command().session_id, &args.text);
    }
    let workspace = Path::new(&state.created.workspace);
    let mut message = Goal::of_message(&args.text, Path::new("."));
    message.print_notices();
    message.text = skills::message(&app.environment, workspace, &state.axes, message.text)?;
    let pictures = message.keep_pictures(coordinator, sees(app, &state, args))?;
    let message = OutgoingMessage { text: message.with_attachments(), pictures };
    let user = app.environment.user();
    let is_root = state.created.parent.is_none();
    if state.status.is_terminal() && is_root {
        return continue_ended(app, &state, message, args);
    }
    let sent = app.runtime.block_on(async {
        follow_up::change_model(app, task, args.model.as_deref()).await?;
        let OutgoingMessage { text, pictures } = message.clone();
        let messages = coordinator.messages();
        Ok::<_, Failure>(messages.send_with_pictures(task, &text, pictures, &user).await)
    })?;
    match sent {
        Ok(_) => {}
        // It ended while the message was on its way.
        Err(error) if error.is_settled_elsewhere() && is_root => {
            return continue_ended(app, &coordinator.tasks().state(task)?, message, args);
        }
        Err(Error::SubAgent { .. }) if args.sub_agent && message.pictures.is_empty() => {
            let words = Control::Steer { words: message.text };
            let steered = coordinator.control().steer(task, words, &user);
            let steered = app.runtime.block_on(steered)?;
            show::note(&format!("{task} {steered}"));
            return Ok(0);
        }
        Err(error) => return Err(error.into()),
    }
    show::note(&format!("sent to {task}"));
    app.runtime.block_on(mail::print_uptake(app, task))
}

/// What is sent to a task.
#[derive(Clone)]
struct OutgoingMessage {
    text: String,
    pictures: Vec<Picture>,
}

/// Whether the model that reads a message can see, where that is known.
fn sees(app: &AppContext, state: &TaskState, args: &SendMessage) -> Option<bool> {
    let mut wishes = state.execution_config();
    wishes.model = args.model.clone().or(wishes.model);
    let (config, choice) = follow_up::check_model(app, state, &wishes).ok()?;
    config.facts(&choice.model).vision
}

/// Continues a task that has ended.
fn continue_ended(
    app: &AppContext,
    before: &TaskState,
    message: OutgoingMessage,
    args: &SendMessage,
) -> Result<u8, Failure> {
    let mut wanted = FollowUp::message(message.text, app.environment.user());
    wanted.pictures = message.pictures;
    wanted.execution_config.model.clone_from(&args.model);
    let wishes = wanted.execution_config_after(before.execution_config());
    let (_, choice) = follow_up::check_model(app, before, &wishes)?;
    wanted.execution_config.model = Some(choice.model.to_string());
    wanted.execution_config.effort = choice.effort;
    follow_up::follow_up(app, before, wanted, &args.printing)
}

/// Carries out a slash command of a session.
fn command(
    app: &AppContext,
    coordinator: &Coordinator,
    session: SessionId,
    line: &str,
) -> Result<u8, Failure> {
    let input = SlashInput::for_service(line, app.environment.user());
    let reply = app.runtime.block_on(coordinator.session(session).run(input))?;
    show::replies::print(&reply, app.style);
    match reply.effect {
        Effect::Work { task } => app.runtime.block_on(mail::print_uptake(app, task)),
        Effect::None | Effect::Axes { .. } | Effect::Steered { .. } | Effect::Cleared => Ok(0),
    }
}

/// Says something in a session: the router decides which of its tasks gets it, or what else it means.
fn send_to_session(app: &AppContext, args: &SendMessage) -> Result<u8, Failure> {
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
    if slash::is_command(&args.text) {
        return command(app, &coordinator, session_id, &args.text);
    }
    let goal = Goal::of_message(&args.text, Path::new("."));
    goal.print_notices();
    // Which model will read it is decided later.
    let pictures = goal.keep_pictures(&app.coordinator, Some(true))?;
    let message = UserMessageReceived {
        session_id,
        user_id: app.environment.user(),
        request_id: None,
        message: goal.with_attachments(),
        deadline: None,
        deadline_action: None,
        workspace: Some(follow_up::real_directory(Path::new(".")).display().to_string()),
        pictures,
    };
    match app.runtime.block_on(coordinator.triggers().user_message_received(message))? {
        TriggerOutcome::Said { message } => show::out(&strip_controls(&message)),
        TriggerOutcome::Started { task, place } => {
            let place = place.map(|place| format!(", number {place} in line")).unwrap_or_default();
            show::note(&format!("{task} is queued for `windlass serve`{place}"));
            mail::warn_without_service(app)?;
        }
        TriggerOutcome::Injected { task } => {
            show::note(&format!("sent to {task}"));
            return app.runtime.block_on(mail::print_uptake(app, task));
        }
        TriggerOutcome::Steered { task, words } => show::note(&format!("{task} {words}")),
        TriggerOutcome::Nothing { reason } => show::note(&reason),
    }
    Ok(0)
}
