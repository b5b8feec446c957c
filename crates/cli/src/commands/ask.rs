//! Asking a person at the terminal: a question of a task, or whether to continue.

use std::io::{self, BufRead as _, Write as _};
use std::sync::mpsc as std_mpsc;

use tokio::sync::mpsc;
use windlass_coordinator::{Error, Settled};
use windlass_core::command::HitlRequest;
use windlass_core::id::QuestionId;
use windlass_core::question::Answer;
use windlass_core::shown::shown;
use windlass_term::question;

use super::AppContext;
use super::interrupts::Interrupts;
use crate::failure::Failure;
use crate::show::{self, task_page};

/// What became of a question.
pub(super) enum Answered {
    /// The task can continue.
    Yes,
    /// The person left; the command that answers has been printed.
    No,
    /// Nobody needs to answer any more: somebody has ended the task.
    Over,
}

/// Shows a question, reads the answer and hands it in. Ctrl-C and the end of input leave it open; an answer
/// from elsewhere is as good as one from here.
pub(super) async fn inline(
    app: &AppContext,
    asked: &HitlRequest,
    typed: &mut Typed,
    interrupts: &mut Interrupts,
) -> Result<Answered, Failure> {
    if let Some(asker) = asking_sub_agent(app, asked.request_id)? {
        show::note(&format!("{asker} asks"));
    }
    for line in question::lines(asked, app.style) {
        show::note(&line);
    }
    forget_what_was_typed();
    loop {
        prompt("> ");
        let line = tokio::select! {
            line = typed.line() => line,
            _ = interrupts.recv() => None,
            settled = settled_elsewhere(app, asked) => return settled,
        };
        let Some(line) = line else {
            show::note(&format!("\n{}", show::answer_with(asked)));
            return Ok(Answered::No);
        };
        let Some(answer) = chosen(&line, &asked.options) else { continue };
        let user = app.environment.user();
        match app.coordinator.inbox().answer(asked.request_id, &answer, &user).await {
            Ok(_) => return Ok(Answered::Yes),
            Err(error @ Error::NotAnOption { .. }) => show::note(&error.to_string()),
            // Somebody was quicker; what became of it is seen at once.
            Err(error) if error.is_settled_elsewhere() => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Resolves when somebody has answered the question from elsewhere, or ended what it is about.
async fn settled_elsewhere(app: &AppContext, asked: &HitlRequest) -> Result<Answered, Failure> {
    match app.coordinator.inbox().wait_until_settled(asked.request_id).await? {
        Settled::Answered(Answer { by, text, .. }) => {
            show::note(&shown(&format!("\nanswered by {by}: {text}")));
            Ok(Answered::Yes)
        }
        Settled::Closed => {
            show::note("");
            Ok(Answered::Over)
        }
    }
}

/// The sub-agent that asks, where it is not the task that a person has started.
pub(super) fn asking_sub_agent(
    app: &AppContext,
    question: QuestionId,
) -> Result<Option<String>, Failure> {
    let asked = app.coordinator.inbox().get(question)?;
    Ok(asked.as_ref().and_then(|asked| asked.sub_agent()).map(task_page::sub_agent))
}

/// What was typed before a question was seen is not an answer to it.
fn forget_what_was_typed() {
    // Where that fails, nothing was typed: it is not a terminal.
    let _ = rustix::termios::tcflush(io::stdin(), rustix::termios::QueueSelector::IFlush);
}

/// A number stands for the option of that number; an empty line for nothing.
pub(super) fn chosen(line: &str, options: &[String]) -> Option<String> {
    let text = line.trim();
    let by_number =
        text.parse::<usize>().ok().and_then(|number| options.get(number.checked_sub(1)?));
    (!text.is_empty()).then(|| by_number.cloned().unwrap_or_else(|| text.to_owned()))
}

/// Asks for a yes; anything else is a no.
pub(super) fn confirmed(question: &str) -> bool {
    forget_what_was_typed();
    prompt(&format!("{question} [y/N] "));
    let mut line = String::new();
    let read = io::stdin().lock().read_line(&mut line);
    read.is_ok() && matches!(line.trim().to_ascii_lowercase().as_str(), "y" | "yes")
}

fn prompt(text: &str) {
    let mut stderr = io::stderr().lock();
    let _ = write!(stderr, "{text}");
    let _ = stderr.flush();
}

/// Lines of standard input, one for each that is asked for. Read on a thread of its own: nothing can
/// interrupt a read from a terminal, and the program must be able to continue and to end in spite of it.
#[derive(Default)]
pub(super) struct Typed {
    reader: Option<(std_mpsc::Sender<()>, mpsc::Receiver<Option<String>>)>,
    /// Whether the reader waits for a line that was asked for before.
    reads: bool,
}

impl Typed {
    /// The next line; `None` at the end of input.
    async fn line(&mut self) -> Option<String> {
        let (wanted, lines) = self.reader.get_or_insert_with(reader);
        if !self.reads {
            wanted.send(()).ok()?;
            self.reads = true;
        }
        let line = lines.recv().await.flatten();
        self.reads = false;
        line
    }
}

fn reader() -> (std_mpsc::Sender<()>, mpsc::Receiver<Option<String>>) {
    let (wanted, asked) = std_mpsc::channel();
    // One line at most is on its way.
    let (send, lines) = mpsc::channel(1);
    std::thread::spawn(move || {
        while asked.recv().is_ok() {
            let mut line = String::new();
            let read = io::stdin().lock().read_line(&mut line);
            let line = read.ok().filter(|&bytes| bytes > 0).map(|_| line);
            if send.blocking_send(line).is_err() {
                return;
            }
        }
    });
    (wanted, lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_stands_for_its_option() {
        let options = ["Allow".to_owned(), "Deny".to_owned()];
        assert_eq!(chosen("2\n", &options).as_deref(), Some("Deny"));
        assert_eq!(chosen("allow\n", &options).as_deref(), Some("allow"));
        assert_eq!(chosen("7\n", &options).as_deref(), Some("7"));
        assert_eq!(chosen("0\n", &options).as_deref(), Some("0"));
        assert_eq!(chosen(" \n", &options), None);
    }
}
