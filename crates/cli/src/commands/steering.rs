//! What a person types while a task runs: each line is a message to it, or a slash command.

use windlass_coordinator::slash::{self, SlashInput};
use windlass_core::id::TaskId;
use windlass_core::shown::{shown, shown_line};
use windlass_term::{EditOutcome, LineEditor};

use super::AppContext;
use super::goal::Goal;
use super::keyboard::Keyboard;
use crate::failure::Failure;
use crate::show::Screen;
use crate::wiring::skills;

/// Sends what is typed to a task, while it lives.
pub(super) struct Steering<'a> {
    app: &'a AppContext,
    task: TaskId,
    keyboard: Option<Keyboard>,
    editor: LineEditor,
}

impl<'a> Steering<'a> {
    /// Listens, where a person sees what they type.
    pub(super) fn begin(app: &'a AppContext, task: TaskId, is_live: bool) -> Self {
        let can_type = is_live && app.style.can_ask;
        let keyboard = can_type.then(Keyboard::by_key_in_foreground).flatten();
        Self { app, task, keyboard, editor: LineEditor::default() }
    }

    /// The next keys; may be dropped while it waits.
    pub(super) async fn keys(&mut self) -> Option<Vec<u8>> {
        match &mut self.keyboard {
            Some(keyboard) => keyboard.keys().await,
            None => std::future::pending().await,
        }
    }

    /// Shows keys, and sends what they complete.
    pub(super) async fn take(&mut self, keys: Option<Vec<u8>>, screen: &mut Screen) {
        let Some(keys) = keys else {
            // The terminal is gone, or another program has it.
            self.keyboard = None;
            return;
        };
        for key in keys {
            let line = match self.editor.push(key) {
                EditOutcome::Line(line) if !line.trim().is_empty() => line,
                EditOutcome::Line(_) | EditOutcome::Typing | EditOutcome::End => continue,
            };
            if slash::is_known(&line) {
                match self.run(&line).await {
                    Ok(reply) => screen.say(&shown(&reply)),
                    Err(why) => screen.say(&format!("not done: {}", shown_line(&why))),
                }
                continue;
            }
            match self.send(&line).await {
                Ok(()) => {
                    let line = shown_line(&line);
                    screen.say(&format!("→ {line} (read after the current step)"));
                }
                Err(why) => screen.say(&format!("not sent: {}", shown_line(&why))),
            }
        }
        screen.show_typing(&self.editor.text());
    }

    /// Carries out a slash command of the task's session.
    async fn run(&self, line: &str) -> Result<String, String> {
        let app = self.app;
        let coordinator = app.service().map_err(|failure| failure.error.to_string())?;
        let state = coordinator.tasks().state(self.task).map_err(|error| error.to_string())?;
        let session = coordinator.session(state.command().session_id);
        let reply = session.run(SlashInput::here(line, app.environment.user())).await;
        reply.map(|reply| reply.to_string()).map_err(|error| error.to_string())
    }

    async fn send(&self, line: &str) -> Result<(), String> {
        let (environment, messages) = (&self.app.environment, self.app.coordinator.messages());
        let state =
            self.app.coordinator.tasks().state(self.task).map_err(|error| error.to_string())?;
        let workspace = std::path::Path::new(&state.created.workspace);
        let message_of = |failure: Failure| format!("{:#}", failure.error);
        let mut message = Goal::of_message(line, std::path::Path::new("."));
        let pictures =
            message.keep_pictures(&self.app.coordinator, Some(true)).map_err(message_of)?;
        message.text = skills::message(environment, workspace, &state.axes, message.text)
            .map_err(message_of)?;
        let (text, user) = (message.with_attachments(), environment.user());
        let sent = messages.send_with_pictures(self.task, &text, pictures, &user).await;
        sent.map(drop).map_err(|error| error.to_string())
    }
}
