//! What the model asks for, carried out: messages, answers, slash commands, the editor, the clipboard.

use tokio::time::Instant;
use windlass_core::id::{InjectionId, SessionId, TaskId};
use windlass_core::injection::Control;
use windlass_core::shown::{shown, shown_line};
use windlass_core::status::TaskStatus;

use super::jobs::Outgo;
use super::{Done, EDITOR_INTERRUPT, Failed, Ui};
use crate::app::{Binding, Effect, Input, Steered};
use crate::composer::Draft;
use crate::host::{Clipboard, Host, UserMessage};
use crate::keymap::Keymap;
use crate::transcript::Entry;

/// Carries out what the model asks for, and takes in what comes of it.
pub(super) struct Effects<'a>(pub &'a mut Ui);

impl Effects<'_> {
    pub(super) async fn carry_out(&mut self, effect: Effect) -> Result<(), Failed> {
        match effect {
            Effect::Send(draft) => self.send(draft),
            Effect::Steer(draft) => self.steer(draft),
            Effect::Answer { question, text } => self.0.jobs.answer(question, text),
            Effect::Slash(line) => {
                self.0.jobs.slash(line, self.0.app.size.room());
            }
            Effect::Shell(command) => {
                let directory = self.0.options.workspace.clone();
                let columns = self.0.app.size.room();
                self.0.jobs.shell(directory, self.0.app.facts.axes, command, columns);
                self.show_own_commands();
            }
            Effect::StopShell => self.0.jobs.own.stop(self.0.jobs.session),
            // Wherever it is driven: what runs is ended, and the agent waits for the next message.
            Effect::Interrupt => {
                self.0.conversation.task.into_iter().for_each(|task| self.0.jobs.interrupt(task))
            }
            Effect::Withdraw { message, interrupts } => {
                let task = self.0.conversation.task.into_iter();
                task.for_each(|task| self.0.jobs.withdraw(task, message.clone(), interrupts));
            }
            Effect::Leave(how) => self.0.leaving = Some(how),
            Effect::Suspend => {
                self.0.drafts.save(&self.0.app);
                self.0.console.suspend()?;
            }
            Effect::Redraw => self.0.console.painter.redraw(),
            Effect::Edit(text) => self.edit(&text).await?,
            // What is open already is read again: it does not open once more for who has left it meanwhile.
            Effect::Load(kind) => {
                let is_open = self.0.app.overlay.as_ref().is_some_and(|open| *open.kind() == kind);
                if is_open { self.0.refresh(kind) } else { self.0.load(kind) }
            }
            Effect::OpenSession(session) => self.0.open_session(session),
            Effect::Archive(session, is_archived) => self.0.jobs.archive(session, is_archived),
            Effect::OpenTask(task) => self.open_task(task)?,
            Effect::FindQuestion(question) => {
                let asked = self.0.coordinator.inbox().get(question)?.map(Box::new);
                asked.iter().for_each(|asked| self.0.await_answer(asked));
                return self.0.inputs(asked.map(Input::ShowQuestion).into_iter().collect()).await;
            }
            Effect::WriteTo(task) => return self.0.inputs(vec![Input::WriteTo(task)]).await,
            Effect::SteerAgent { task, words } => self.control(task, Control::Steer { words }),
            Effect::Pause(task) => self.control(task, Control::Pause),
            Effect::Resume(task) => {
                let row = self.0.coordinator.tasks().get(task)?;
                match row.is_some_and(|row| row.status == TaskStatus::Failed) {
                    true => self.0.jobs.retry(task),
                    false => self.control(task, Control::Resume),
                }
            }
            Effect::Cancel(task) => self.control(task, Control::Cancel { reason: None }),
            Effect::Bind(binding) => {
                let bound =
                    keep_binding(&*self.0.host, &mut self.0.options.settings.keymap, &binding);
                return self.0.inputs(vec![bound]).await;
            }
            Effect::IndexFiles => self.0.jobs.index_files(self.0.options.workspace.clone()),
            Effect::ListPlace(place) => {
                self.0.jobs.list_place(self.0.options.workspace.clone(), place);
            }
            Effect::Copy(text) => match self.0.options.clipboard.clone() {
                Clipboard::Program(words) => self.0.jobs.copy(words, text, "copied"),
                Clipboard::Tmux(words) => {
                    self.0.jobs.copy(words, text, "copied into tmux's buffer")
                }
                Clipboard::Terminal => {
                    let notice = self.0.console.copy(&text)?.to_owned();
                    self.0.take_in(Input::Notice(notice));
                }
            },
            Effect::Save => self.0.drafts.save_soon(),
            Effect::Remember(text) => self.0.drafts.remember(&text),
            Effect::Notify(words) => self.0.console.notify(words)?,
        }
        Ok(())
    }

    /// Steers a task, which is called by its name where it is a sub-agent of the conversation.
    fn control(&mut self, task: TaskId, control: Control) {
        let label = self.0.app.story.as_ref().and_then(|story| story.label(task));
        let name = label.map_or_else(|| task.to_string(), |label| format!("sub-agent {label}"));
        self.0.jobs.control(task, name, control);
    }

    /// Shows how far the commands are that the person runs.
    pub(super) fn show_own_commands(&mut self) {
        let running = self.0.jobs.own.of(self.0.jobs.session);
        if running != self.0.app.own_commands {
            self.0.take_in(Input::OwnCommands(running));
        }
    }

    /// The effects of an input that the journal brought; none of them needs to be waited for.
    pub(super) fn postponed(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Send(draft) => self.send(draft),
                Effect::Steer(draft) => self.steer(draft),
                Effect::Save => self.0.drafts.save_soon(),
                Effect::Remember(text) => self.0.drafts.remember(&text),
                Effect::Notify(words) => {
                    let _ = self.0.console.notify(words);
                }
                // The journal brings no others.
                _ => {}
            }
        }
    }

    /// Continues the conversation, or begins it.
    pub(super) fn send(&mut self, draft: Draft) {
        let request = self.send_as(&draft);
        if self.0.app.outgoing.sending.as_ref() == Some(&draft) {
            self.0.app.outgoing.request = Some(request);
        }
        self.0.drafts.save_soon();
    }

    /// Passes a message into the turn at work. It can be taken back until the agent reads it.
    fn steer(&mut self, draft: Draft) {
        let request = self.send_as(&draft);
        self.0.app.outgoing.steered.push(Steered { draft, request });
    }

    /// Sends a message; the name that it is sent under.
    fn send_as(&mut self, draft: &Draft) -> String {
        let draft = draft.clone();
        let own_words = draft.own_words();
        let typed = draft.expanded();
        let text = self.0.app.writing.ran.send_with(typed.clone());
        // Kept with the draft: after a crash the journal tells by it whether the message has arrived.
        let request = InjectionId::new(self.0.coordinator.now()).to_string();
        let directory = self.0.options.workspace.clone();
        let written = UserMessage { text, own_words, typed };
        self.0.jobs.send(Outgo { draft, written, directory, request: Some(request.clone()) });
        request
    }

    /// What a job came to.
    pub(super) async fn done(&mut self, session: SessionId, done: Done) -> Result<(), Failed> {
        self.show_own_commands();
        if session != self.0.conversation.session {
            return self.done_elsewhere(session, done).await;
        }
        match done {
            Done::Inputs(inputs) => self.0.inputs(inputs).await,
            Done::Sent(task, notices) => {
                let line = |why: String| self.0.options.settings.paint.yellow(&shown(&why));
                let lines: Vec<String> = notices.into_iter().map(line).collect();
                let said = (!lines.is_empty()).then_some(Input::Print(Entry::Lines(lines)));
                self.0.inputs(said.into_iter().chain([Input::Sent]).collect()).await?;
                self.0.drive(task)?;
                self.0.check_session()
            }
            Done::Work(task) => {
                self.0.drive(task)?;
                self.0.check_session()
            }
            Done::Reported(report, task) => {
                self.0.input(report).await?;
                self.0.drive(task)?;
                self.0.check_session()
            }
            Done::Session(inputs) => {
                self.0.check_session()?;
                self.0.refresh_questions()?;
                self.0.inputs(inputs).await
            }
            Done::Settled(question, task, inputs) => {
                self.0.conversation.settled(question);
                self.0.inputs(inputs).await?;
                let root = self.0.coordinator.tasks().root(task)?;
                // The task continues where it was driven: here, if nowhere else.
                match Some(root) == self.0.conversation.task
                    && self.0.conversation.questions()?.is_empty()
                {
                    true => self.0.drive(root),
                    false => Ok(()),
                }
            }
            Done::Due(task) => self.0.drive(task),
            Done::Listed => {
                let kind = self.0.app.overlay.as_ref().map(|overlay| overlay.kind().clone());
                kind.into_iter().for_each(|kind| self.0.refresh(kind));
                Ok(())
            }
        }
    }

    /// What a job of a conversation that is not shown any more came to: its work continues, and nothing of it is printed
    /// here.
    async fn done_elsewhere(&mut self, session: SessionId, done: Done) -> Result<(), Failed> {
        match done {
            Done::Sent(task, _) => {
                self.0.drafts.arrived(session);
                self.0.drive(task)
            }
            Done::Work(task) | Done::Reported(_, task) | Done::Due(task) => self.0.drive(task),
            Done::Settled(_, task, _) => {
                let root = self.0.coordinator.tasks().root(task)?;
                match self.0.coordinator.inbox().open_in_tree(root)?.is_empty() {
                    true => self.0.drive(root),
                    false => Ok(()),
                }
            }
            Done::Inputs(inputs) | Done::Session(inputs) => {
                for input in inputs {
                    if let Input::NotSent { draft, why } = input {
                        self.0.drafts.put_back(session, draft);
                        let why =
                            format!("a message to {session} was not sent: {}", shown_line(&why));
                        self.0.input(Input::Notice(why)).await?;
                    }
                }
                Ok(())
            }
            Done::Listed => Ok(()),
        }
    }

    fn open_task(&mut self, task: TaskId) -> Result<(), Failed> {
        let row = self.0.coordinator.tasks().get(task)?;
        if let Some(row) = row {
            self.0.open_session(row.session_id);
            if self.0.conversation.task != Some(task) {
                self.0.follow(self.0.coordinator.tasks().root(task)?)?;
            }
        }
        Ok(())
    }

    /// Lets the person write in their own editor, in the session's directory.
    async fn edit(&mut self, text: &str) -> Result<(), Failed> {
        let path = match self.0.drafts.write_edit_file(text) {
            Ok(path) => path,
            Err(error) => {
                let why = format!("the text cannot be handed to the editor: {error}");
                return self.0.inputs(vec![Input::Notice(why), Input::Edited(None)]).await;
            }
        };
        let ran = self.0.console.edit(&path).await?;
        self.0.interrupts_count_from = Instant::now() + EDITOR_INTERRUPT;
        let written = self.0.drafts.take_edit_file(&path);
        let why = match ran {
            Ok(true) => return self.0.inputs(vec![Input::Edited(written)]).await,
            Ok(false) => "the editor ended with an error".to_owned(),
            Err(why) => why,
        };
        // What it has saved is not taken for what the person wants to say, and not lost either.
        let is_kept = written.as_ref().is_some_and(|written| written != text);
        let kept = if is_kept { "; what it left is in the history" } else { "" };
        self.0.app.writing.history.push(written.as_deref().filter(|_| is_kept).unwrap_or_default());
        self.0.inputs(vec![Input::Notice(format!("{why}{kept}")), Input::Edited(None)]).await
    }
}

/// Keeps a binding in the person's configuration, and uses it from now on.
fn keep_binding(host: &dyn Host, keymap: &mut Keymap, binding: &Binding) -> Input {
    let keys = binding.keys.as_deref();
    let kept = keymap.rebound(binding.action, keys).and_then(|rebound| {
        let place = host.bind(binding.action.as_str(), keys)?;
        *keymap = rebound;
        Ok(place)
    });
    Input::Bound { keymap: Box::new(keymap.clone()), kept }
}
