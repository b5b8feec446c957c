//! What the model asks for, carried out: messages, answers, slash commands, the editor, the clipboard.

use std::process::Stdio;

use windlass_core::id::{QuestionId, TaskId};
use windlass_core::injection::Control;
use windlass_core::shown::shown_line;
use windlass_core::text::one_line;

use super::{Done, Failed, Ui};
use crate::app::{Effect, Input};
use crate::completion::Command;
use crate::composer::Draft;
use crate::host::{Clipboard, Signal};
use crate::terminal::Keyboard;

/// The longest text that terminals take for their clipboard.
const CLIPBOARD_BYTES: usize = 100_000;
/// Characters of a goal that name a sub-agent.
const NAME_CHARS: usize = 60;

impl Ui {
    pub(super) async fn carry_out(&mut self, effect: Effect) -> Result<(), Failed> {
        match effect {
            Effect::Send(draft) | Effect::Steer(draft) => self.send(draft),
            Effect::Answer { question, text } => self.jobs.answer(question, text),
            Effect::Slash(line) => {
                self.jobs.slash(self.conversation.session, line, self.app.size.room());
            }
            Effect::Shell(command) => self.jobs.shell(self.app.facts.axes, command),
            Effect::Interrupt => self.interrupt(),
            Effect::Leave(how) => self.leaving = Some(how),
            Effect::Suspend => self.suspend()?,
            Effect::Redraw => self.painter.redraw(),
            Effect::Edit(text) => self.edit(&text).await?,
            Effect::Load(kind) => self.load(kind),
            Effect::OpenSession(session) => self.open_session(session),
            Effect::OpenTask(task) => self.open_task(task)?,
            Effect::FindQuestion(question) => self.find_question(question)?,
            Effect::WriteAbout(task) => self.write_about(task)?,
            Effect::Pause(task) => self.jobs.control(task, Control::Pause),
            Effect::Resume(task) => self.jobs.control(task, Control::Resume),
            Effect::Cancel(task) => self.jobs.control(task, Control::Cancel { reason: None }),
            Effect::IndexFiles => self.jobs.index_files(self.options.workspace.clone()),
            Effect::Copy(text) => self.copy(text)?,
            Effect::Save => self.drafts.save_soon(),
            Effect::Remember(text) => self.drafts.remember(&text),
            Effect::Notify(words) => self.notify(words)?,
        }
        Ok(())
    }

    /// The effects of an input that the journal brought; none of them needs to be waited for.
    pub(super) fn postponed(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Send(draft) | Effect::Steer(draft) => self.send(draft),
                Effect::Save => self.drafts.save_soon(),
                Effect::Notify(words) => {
                    let _ = self.notify(words);
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

    /// Interrupts the turn, wherever it is driven.
    fn interrupt(&mut self) {
        if self.driver.stop().is_none()
            && let Some(task) = self.conversation.task
        {
            self.jobs.control(task, Control::Pause);
        }
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
        }
    }

    /// The commands of the table, the skills, and those of the terminal itself.
    pub(super) fn load_commands(&mut self) {
        let session = self.coordinator.session(self.conversation.session);
        let skills = session.skills().unwrap_or_default();
        let table = windlass_coordinator::slash::TABLE.iter().map(Command::of);
        let skills = skills
            .into_iter()
            .map(|skill| Command::plain(&format!("/{}", skill.name), &skill.description));
        let commands = table.chain(Command::of_terminal()).chain(skills).collect();
        self.take_in(Input::Commands(commands));
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

    fn find_question(&mut self, question: QuestionId) -> Result<(), Failed> {
        if let Some(asked) = self.coordinator.inbox().get(question)? {
            self.take_in(Input::ShowQuestion(Box::new(asked)));
        }
        Ok(())
    }

    /// Begins a message about a sub-agent: it reads no messages itself, the agent that started it does.
    fn write_about(&mut self, task: TaskId) -> Result<(), Failed> {
        if let Some(row) = self.coordinator.tasks().get(task)? {
            let name = one_line(&shown_line(&row.goal), NAME_CHARS);
            self.take_in(Input::Write(format!("About the sub-agent \"{name}\": ")));
        }
        Ok(())
    }

    /// Gives the terminal back to the shell until the person returns.
    fn suspend(&mut self) -> Result<(), Failed> {
        self.painter.give()?;
        self.drafts.save(&self.app, self.conversation.session);
        rustix::process::kill_current_process_group(rustix::process::Signal::TSTP)
            .map_err(std::io::Error::from)?;
        // Here again after `fg`.
        Ok(self.painter.take()?)
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
        self.painter.give()?;
        // Our reader would take its keys.
        let keyboard = std::mem::replace(&mut self.keyboard, Keyboard::closed());
        drop(keyboard);
        let ran = self.run_editor(&path).await;
        self.keyboard = Keyboard::open()?;
        self.painter.take()?;
        let written = self.drafts.take_edit_file(&path, ran == Ok(true));
        let why = ran.err().map(Input::Notice);
        self.inputs(why.into_iter().chain([Input::Edited(written)]).collect()).await
    }

    async fn run_editor(&self, path: &std::path::Path) -> Result<bool, String> {
        let Some((program, arguments)) = self.options.editor.split_first() else {
            return Err("there is no editor: set EDITOR".to_owned());
        };
        let mut command = tokio::process::Command::new(program);
        command.args(arguments).arg(path).current_dir(&self.options.workspace);
        if let Some(stderr) = self.painter.stderr() {
            command.stderr(Stdio::from(stderr));
        }
        let status = command.status().await;
        let status = status.map_err(|error| format!("`{program}` does not start: {error}"))?;
        Ok(status.success())
    }

    fn copy(&mut self, text: String) -> Result<(), Failed> {
        match self.options.clipboard.clone() {
            Clipboard::Program(words) => self.jobs.copy(words, text),
            Clipboard::Terminal => {
                let is_whole = text.len() <= CLIPBOARD_BYTES;
                let text = windlass_core::text::prefix(&text, CLIPBOARD_BYTES);
                self.painter.write(&format!("\u{1b}]52;c;{}\u{7}", base64(text.as_bytes())))?;
                let notice = match is_whole {
                    true => "handed to the terminal's clipboard",
                    false => "only the first 100 kB fit into the terminal's clipboard",
                };
                self.take_in(Input::Notice(notice.to_owned()));
            }
        }
        Ok(())
    }

    fn notify(&self, words: &str) -> Result<(), Failed> {
        let signal = match self.options.signal {
            Signal::Off => return Ok(()),
            Signal::Bell => "\u{7}".to_owned(),
            Signal::Desktop => format!("\u{1b}]9;windlass: {words}\u{7}"),
        };
        Ok(self.painter.write(&signal)?)
    }
}

/// The form that OSC 52 wants.
fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let bits = group.iter().fold(0u32, |bits, byte| bits << 8 | u32::from(*byte));
        let bits = bits << (8 * (3 - group.len()));
        for place in 0..4 {
            let letter = LETTERS[(bits >> (18 - 6 * place) & 63) as usize];
            text.push(if place <= group.len() { char::from(letter) } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::base64;

    #[test]
    fn the_clipboard_gets_the_usual_form() {
        let texts = ["", "f", "fo", "foo", "foob"].map(|text| base64(text.as_bytes()));
        assert_eq!(texts, ["", "Zg==", "Zm8=", "Zm9v", "Zm9vYg=="]);
    }
}
