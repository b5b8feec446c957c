//! Asking a person at the terminal: a question of a task, or whether to continue.

use std::io::{self, BufRead as _};

use anyhow::Context as _;
use windlass_coordinator::views::OpenQuestion;
use windlass_coordinator::{Error, QuestionOutcome};
use windlass_core::id::QuestionId;
use windlass_core::question::Answer;
use windlass_core::shown::shown;

use super::AppContext;
use super::interrupts::Interrupts;
use super::prompt::{self, Prompt};
use crate::failure::Failure;
use crate::show::{self, task_page};

/// What became of a question.
pub(super) enum AskOutcome {
    /// The task can continue.
    Yes,
    /// The person left; the command that answers has been printed.
    No,
    /// Nobody needs to answer it now: somebody has ended the task.
    Over,
}

/// Shows a question, reads the answer and hands it in. Ctrl-C and the end of input leave it open; an answer
/// from elsewhere is as good as one from here.
pub(super) async fn inline(
    app: &AppContext,
    question: QuestionId,
    interrupts: &mut Interrupts,
) -> Result<AskOutcome, Failure> {
    let Some(asked) = app.coordinator.inbox().get(question)? else { return Ok(AskOutcome::Over) };
    show_question(app, &asked);
    let mut prompt = Prompt::open(app.style).context("the terminal cannot be read")?;
    loop {
        let line = tokio::select! {
            line = prompt.line("> ") => line,
            _ = interrupts.recv() => None,
            settled = settled_elsewhere(app, question) => return settled,
        };
        let Some(line) = line else {
            drop(prompt);
            show::note(&format!("\n{}", show::answer_with(&asked.row.question).join("\n")));
            return Ok(AskOutcome::No);
        };
        if line.trim().is_empty() {
            continue;
        }
        let user = app.environment.user();
        match app.coordinator.inbox().answer(question, &line, &user).await {
            Ok(_) => return Ok(AskOutcome::Yes),
            Err(error @ Error::NotAnOption { .. }) => {
                show::note(
                    &app.style
                        .wrap_note(&format!("{} (numbers work too)", shown(&error.to_string()))),
                );
            }
            // Somebody was quicker; what became of it is seen at once.
            Err(error) if error.is_settled_elsewhere() => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Prints a question with everything that it approves, and who asks.
pub(super) fn show_question(app: &AppContext, asked: &OpenQuestion) {
    if let Some(asker) = task_page::sub_agent(asked) {
        show::note(&format!("{asker} asks"));
    }
    let place = show::notes_place(app.style);
    for line in task_page::question_lines(asked, place) {
        show::note(&line);
    }
}

/// Resolves when somebody has answered the question from elsewhere, or ended what it is about.
async fn settled_elsewhere(app: &AppContext, question: QuestionId) -> Result<AskOutcome, Failure> {
    match app.coordinator.inbox().wait_until_settled(question).await? {
        QuestionOutcome::Answered(Answer { by, text, .. }) => {
            show::note(&shown(&format!("\nanswered by {by}: {text}")));
            Ok(AskOutcome::Yes)
        }
        QuestionOutcome::Closed => {
            show::note("");
            Ok(AskOutcome::Over)
        }
    }
}

/// Asks for a yes; anything else is a no.
pub(super) fn confirm(question: &str) -> bool {
    prompt::forget_what_was_typed();
    prompt::print(&format!("{question} [y/N] "));
    let mut line = String::new();
    let read = io::stdin().lock().read_line(&mut line);
    read.is_ok() && matches!(line.trim().to_ascii_lowercase().as_str(), "y" | "yes")
}
