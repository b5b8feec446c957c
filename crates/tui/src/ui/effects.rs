//! What the model asks for, carried out: messages, answers, slash commands, the editor, the clipboard.

use windlass_core::id::TaskId;
use windlass_core::injection::Control;

use super::{Done, Failed, Ui};
use crate::app::{Binding, Effect, Input};
use crate::composer::Draft;
use crate::host::{Clipboard, Host};
use crate::keymap::Keymap;

impl Ui {
    pub(super) async fn carry_out(&mut self, effect: Effect) -> Result<(), Failed> {
        match effect {
            Effect::Send(draft) | Effect::Steer(draft) => self.send(draft),
            Effect::Answer { question, text } => self.jobs.answer(question, text),
            Effect::Slash(line) => {
                self.jobs.slash(self.conversation.session, line, self.app.size.room());
            }
            Effect::Shell(command) => self.jobs.shell(self.app.facts.axes, command),
            // Wherever it is driven: what runs is ended, and the agent waits for the next message.
            Effect::Interrupt => {
                self.conversation.task.into_iter().for_each(|task| self.jobs.interrupt(task))
            }
            Effect::Leave(how) => self.leaving = Some(how),
            Effect::Suspend => {
                self.drafts.save(&self.app, self.conversation.session);
                self.console.suspend()?;
            }
            Effect::Redraw => self.console.painter.redraw(),
            Effect::Edit(text) => self.edit(&text).await?,
            Effect::Load(kind) => self.load(kind),
            Effect::OpenSession(session) => self.open_session(session),
            Effect::Archive(session, is_archived) => self.jobs.archive(session, is_archived),
            Effect::OpenTask(task) => self.open_task(task)?,
            Effect::FindQuestion(question) => {
                let asked = self.coordinator.inbox().get(question)?.map(Box::new);
                return self.inputs(asked.map(Input::ShowQuestion).into_iter().collect()).await;
            }
            Effect::WriteAbout(task) => {
                let words = self.conversation.words_about(task)?.map(Input::Write);
                return self.inputs(words.into_iter().collect()).await;
            }
            Effect::Pause(task) => self.jobs.control(task, Control::Pause),
            Effect::Resume(task) => self.jobs.control(task, Control::Resume),
            Effect::Cancel(task) => self.jobs.control(task, Control::Cancel { reason: None }),
            Effect::Bind(binding) => {
                let bound = keep_binding(&*self.host, &mut self.options.settings.keymap, &binding);
                return self.inputs(vec![bound]).await;
            }
            Effect::IndexFiles => self.jobs.index_files(self.options.workspace.clone()),
            Effect::Copy(text) => match self.options.clipboard.clone() {
                Clipboard::Program(words) => self.jobs.copy(words, text),
                Clipboard::Terminal => {
                    let notice = self.console.copy(&text)?.to_owned();
                    self.take_in(Input::Notice(notice));
                }
            },
            Effect::Save => self.drafts.save_soon(),
            Effect::Remember(text) => self.drafts.remember(&text),
            Effect::Notify(words) => self.console.notify(words)?,
        }
        Ok(())
    }

    /// The effects of an input that the journal brought; none of them needs to be waited for.
    pub(super) fn postponed(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Send(draft) | Effect::Steer(draft) => self.send(draft),
                Effect::Save => self.drafts.save_soon(),
                Effect::Remember(text) => self.drafts.remember(&text),
                Effect::Notify(words) => {
                    let _ = self.console.notify(words);
                }
                // The journal brings no others.
                _ => {}
            }
        }
    }

    /// Continues the conversation, or begins it.
    pub(super) fn send(&mut self, draft: Draft) {
        let text = self.app.writing.with_ran(draft.expanded());
        self.jobs.send(self.conversation.session, draft, text);
    }

    /// What a job came to.
    pub(super) async fn done(&mut self, done: Done) -> Result<(), Failed> {
        match done {
            Done::Inputs(inputs) => self.inputs(inputs).await,
            Done::Work(task) => {
                self.drive(task)?;
                self.check_session()
            }
            Done::Session(inputs) => {
                self.check_session()?;
                self.refresh_questions()?;
                self.inputs(inputs).await
            }
            Done::Settled(question, task, inputs) => {
                self.conversation.settled(question);
                self.inputs(inputs).await?;
                let root = self.coordinator.tasks().root(task)?;
                // The task continues where it was driven: here, if nowhere else.
                match Some(root) == self.conversation.task
                    && self.conversation.questions()?.is_empty()
                {
                    true => self.drive(root),
                    false => Ok(()),
                }
            }
            Done::Due(task) => self.drive(task),
            Done::Listed => {
                let kind = self.app.overlay.as_ref().map(|overlay| overlay.kind().clone());
                kind.into_iter().for_each(|kind| self.refresh(kind));
                Ok(())
            }
        }
    }

    fn open_task(&mut self, task: TaskId) -> Result<(), Failed> {
        let row = self.coordinator.tasks().get(task)?;
        if let Some(row) = row {
            self.open_session(row.session_id);
            if self.conversation.task != Some(task) {
                self.follow(self.coordinator.tasks().root(task)?)?;
            }
        }
        Ok(())
    }

    /// Lets the person write in their own editor, in the session's directory.
    async fn edit(&mut self, text: &str) -> Result<(), Failed> {
        let path = match self.drafts.write_edit_file(text) {
            Ok(path) => path,
            Err(error) => {
                let why = format!("the text cannot be handed to the editor: {error}");
                return self.inputs(vec![Input::Notice(why), Input::Edited(None)]).await;
            }
        };
        let ran = self.console.edit(&path).await?;
        let written = self.drafts.take_edit_file(&path, ran == Ok(true));
        let why = ran.err().map(Input::Notice);
        self.inputs(why.into_iter().chain([Input::Edited(written)]).collect()).await
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
