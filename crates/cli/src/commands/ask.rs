//! Asking a person at the terminal: a question of a task, or whether to go on.

use std::io::{self, BufRead as _, Write as _};

use tokio::signal::unix::Signal;
use tokio::sync::oneshot;
use windlass_coordinator::Error;
use windlass_core::command::HitlRequest;

use super::Setting;
use crate::failure::Failure;
use crate::show::{self, pages};

/// Whether a question got its answer.
pub(super) enum Answered {
    /// The task can go on.
    Yes,
    /// The person left; the command that answers has been printed.
    No,
}

/// Shows a question, reads the answer and hands it in. Ctrl-C and the end of input leave it open.
pub(super) async fn inline(
    setting: &Setting,
    asked: &HitlRequest,
    interrupts: &mut Signal,
) -> Result<Answered, Failure> {
    for line in pages::question_lines(asked, setting.look) {
        show::note(&line);
    }
    forget_what_was_typed();
    loop {
        prompt("> ");
        let line = tokio::select! {
            line = line() => line,
            _ = interrupts.recv() => None,
        };
        let Some(line) = line else {
            show::note(&format!("\n{}", pages::answer_with(asked)));
            return Ok(Answered::No);
        };
        let Some(answer) = chosen(&line, &asked.options) else { continue };
        let user = setting.surroundings.user();
        match setting.coordinator.answer(asked.request_id, &answer, &user).await {
            Ok(_) => return Ok(Answered::Yes),
            Err(error @ Error::NotAnOption { .. }) => show::note(&error.to_string()),
            Err(error) => return Err(error.into()),
        }
    }
}

/// What was typed before a question was seen is no answer to it.
fn forget_what_was_typed() {
    // Where that cannot be done, nothing was typed: it is no terminal.
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

/// One line of standard input; `None` at its end. Read on a thread of its own: nothing can interrupt
/// a read from a terminal, and the program must be able to end in spite of it.
async fn line() -> Option<String> {
    let (send, receive) = oneshot::channel();
    std::thread::spawn(move || {
        let mut line = String::new();
        let read = io::stdin().lock().read_line(&mut line);
        let _ = send.send(read.ok().filter(|&bytes| bytes > 0).map(|_| line));
    });
    receive.await.ok().flatten()
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
