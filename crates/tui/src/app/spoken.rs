//! What a screen reader reads to a person, as lines that are printed once: the mode, whether the agent works
//! or waits, questions with their choices, the queue, remarks. Off unless `screen_reader` is set.
//!
//! Invariant: it only compares what is true now with what was said last. Nothing is decided by it.

use std::time::Duration;

use windlass_core::id::QuestionId;
use windlass_core::shown::shown_line;
use windlass_term::{Paint, numbers};

use super::{App, Phase, QuestionKeys};
use crate::Moment;
use crate::composer::Draft;
use crate::keymap::Action;
use crate::mode_line::Mode;
use crate::story::Story;
use crate::transcript::Entry;

/// How often it is said that the agent still works.
pub const STILL_WORKING: Duration = Duration::from_secs(30);

/// What was said last.
#[derive(Default)]
pub struct LastWords {
    mode: Option<Mode>,
    phase: Option<Phase>,
    last_working: Moment,
    question: Option<Asked>,
    queue: Queued,
    notice: Option<(String, Moment)>,
    is_leaving: bool,
}

/// A question, and where the person is in it.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Asked {
    id: QuestionId,
    choice: usize,
    /// Which keys it takes.
    keys: QuestionKeys,
}

/// The messages that wait, and the one that the person looks at.
#[derive(Clone, Default, PartialEq, Eq)]
struct Queued {
    count: usize,
    selected: Option<(usize, String)>,
}

/// Says what has changed since it was last said.
pub(super) fn announce(app: &mut App) {
    let mut said = std::mem::take(&mut app.spoken);
    let mut lines = Vec::new();
    lines.extend(said.mode(app));
    lines.extend(said.queue(app));
    lines.extend(said.notice(app));
    lines.extend(said.phase(app));
    lines.extend(said.question(app));
    lines.extend(said.leaving(app));
    app.spoken = said;
    if !lines.is_empty() {
        app.transcript.push(Entry::Lines(lines));
    }
}

impl LastWords {
    fn mode(&mut self, app: &App) -> Vec<String> {
        let mode = app.facts.mode();
        let before = self.mode.replace(mode.clone());
        if before.as_ref() == Some(&mode) {
            return Vec::new();
        }
        let send = app.settings.keymap.way(Action::Send);
        let first = before.is_none().then(|| {
            format!("write a message; {send} sends it, a slash begins a command, ? lists the keys")
        });
        std::iter::once(format!("mode: {}", mode.words())).chain(first).collect()
    }

    fn phase(&mut self, app: &App) -> Option<String> {
        let before = self.phase.replace(app.phase);
        if before != Some(app.phase) {
            self.last_working = app.now;
            return match (before, app.phase) {
                // How it begins is said by the mode alone.
                (None, Phase::Idle) => None,
                (_, Phase::Idle) => {
                    let parked = app.story.as_ref().and_then(Story::parked_words);
                    Some(parked.unwrap_or_else(|| "the agent waits for you".to_owned()))
                }
                (_, Phase::Working) => Some("the agent works".to_owned()),
                (_, Phase::Stopping) => Some("the agent is asked to stop".to_owned()),
                // The question itself follows.
                (_, Phase::Blocked) => None,
            };
        }
        let is_due = app.now.saturating_sub(self.last_working) >= STILL_WORKING;
        if !app.phase.is_working() || !is_due {
            return None;
        }
        self.last_working = app.now;
        let activity = app.story.as_ref().map_or("starting", |story| story.activity());
        let took = numbers::elapsed(app.elapsed(app.working_since));
        Some(format!("the agent is still working, {took}: {}", shown_line(activity)))
    }

    fn question(&mut self, app: &App) -> Vec<String> {
        let Some(dialog) = app.questions.first() else {
            self.question = None;
            return Vec::new();
        };
        let keys = app.question_keys();
        let asked = Asked { id: dialog.id(), choice: dialog.selected(), keys };
        let before = self.question.replace(asked);
        let plain = Paint { on: false };
        let choices = dialog.choice_lines(plain, false);
        let choices: Vec<&str> = choices.iter().map(|line| line.trim_start()).collect();
        match before {
            Some(before) if before.id == asked.id && before.choice == asked.choice => {
                let words = match keys {
                    _ if keys == before.keys => None,
                    QuestionKeys::Waiting | QuestionKeys::Elsewhere => None,
                    QuestionKeys::Entering => Some(format!(
                        "{} queues your message; the arrow keys lead to the question",
                        app.settings.keymap.way(Action::Send)
                    )),
                    QuestionKeys::Answering if before.keys == QuestionKeys::Entering => {
                        chosen(&choices, asked.choice)
                    }
                    QuestionKeys::Answering => Some("keys count now".to_owned()),
                };
                words.into_iter().collect()
            }
            Some(before) if before.id == asked.id => {
                chosen(&choices, asked.choice).into_iter().collect()
            }
            _ => {
                let several = match app.questions.len() {
                    1 => None,
                    count => Some(format!("{count} questions are open; Tab is the next one")),
                };
                let body = dialog.body(app.size.room(), plain);
                let how = match dialog.asked.row.question.options.is_empty() {
                    true => "write your answer",
                    false => "answer by its number, or by the arrow keys and Enter",
                };
                let how = format!("{how}; keys count after a second without typing");
                let choices = choices.into_iter().map(str::to_owned);
                several.into_iter().chain(body).chain(choices).chain([how]).collect()
            }
        }
    }

    fn queue(&mut self, app: &App) -> Option<String> {
        let queue = &app.outgoing.queue;
        let text = |draft: &Draft| crate::text::prose_line(draft.expanded().trim());
        let selected = queue.selected();
        let selected = selected.and_then(|at| Some((at, text(queue.iter().nth(at)?))));
        let now = Queued { count: queue.len(), selected };
        let before = std::mem::replace(&mut self.queue, now.clone());
        match (&now.selected, now.count > before.count) {
            _ if now == before => None,
            (Some((at, words)), _) => Some(format!(
                "queued message {} of {}: {words}; Enter edits it, x removes it, s sends it now, Escape goes back",
                at + 1,
                now.count
            )),
            (None, true) => {
                let last = queue.iter().last().map(text).unwrap_or_default();
                Some(format!("queued: {last}"))
            }
            (None, false) if now.count == 0 => Some("no message is queued".to_owned()),
            (None, false) if now.count < before.count => {
                Some(format!("{} queued", numbers::plural(now.count, "message")))
            }
            (None, false) => None,
        }
    }

    fn notice(&mut self, app: &App) -> Option<String> {
        let now = app.notice.text().map(str::to_owned).zip(app.notice.until());
        let is_new = now.is_some() && now != self.notice;
        self.notice.clone_from(&now);
        now.filter(|_| is_new).map(|(text, _)| text)
    }

    fn leaving(&mut self, app: &App) -> Option<String> {
        let is_new = app.departure.is_asked && !self.is_leaving;
        self.is_leaving = app.departure.is_asked;
        let stay = app.settings.keymap.way(Action::Interrupt);
        is_new.then(|| {
            format!(
                "the agent is still working: p parks it and leaves, b leaves and it continues in the background, {stay} stays"
            )
        })
    }
}

/// The choice that Enter takes.
fn chosen(choices: &[&str], at: usize) -> Option<String> {
    let chosen = choices.get(at)?;
    Some(format!("chosen of {}: {chosen}; Enter answers", choices.len()))
}
