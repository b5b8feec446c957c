//! A question on a screen, and the keys that answer it.

use windlass_core::question::PERMISSION_OPTIONS;

use crate::runner::Asks;

/// A question as a screen shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    pub asks: Asks,
    pub text: String,
    /// What a person chooses from; free text when empty.
    pub options: Vec<String>,
    /// What is shown above the question: the command, the change of a file.
    pub context: String,
    /// What the screen shows for each option, in its order.
    pub(super) shown: Vec<String>,
    /// The option on the screen that each of `options` stands for.
    pub(super) places: Vec<usize>,
    pub(super) reply: Reply,
}

/// How an option is chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Reply {
    /// Move to it with the arrows, then Enter. This one is marked now.
    Arrows { marked: usize, axis: Axis },
    /// Type this for it, then Enter.
    Words(Vec<String>),
    /// Type the text, then Enter.
    Line,
}

/// How options are laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Axis {
    /// One above the other.
    Column,
    /// Side by side.
    Row,
}

impl Axis {
    /// The keys to the option before and to the one after.
    fn keys(self) -> (&'static str, &'static str) {
        match self {
            Self::Column => ("\x1b[A", "\x1b[B"),
            Self::Row => ("\x1b[D", "\x1b[C"),
        }
    }
}

impl Question {
    pub(super) fn new(text: String, context: String, shown: Vec<String>, reply: Reply) -> Self {
        let asks = super::kind_of(&text, &shown);
        let (options, places) = match decisions(&shown).filter(|_| asks == Asks::Permission) {
            Some(places) => places,
            None => (shown.clone(), (0..shown.len()).collect()),
        };
        Self { asks, text, options, context, shown, places, reply }
    }

    /// Whether its answer is a line, and not keys that move in a list.
    pub fn takes_a_line(&self) -> bool {
        match self.reply {
            Reply::Words(_) | Reply::Line => true,
            Reply::Arrows { .. } => false,
        }
    }

    /// What is typed for an answer; `None` when it is none.
    pub fn keys(&self, answer: &str) -> Option<Vec<u8>> {
        let answer = answer.trim();
        if let Reply::Line = self.reply {
            let line = answer.replace(['\r', '\n'], " ");
            return Some(format!("{line}\r").into_bytes());
        }
        let place = self.place_of(answer)?;
        let keys = match &self.reply {
            Reply::Arrows { marked, axis } => match axis.keys() {
                (_, next) if place >= *marked => next.repeat(place - marked),
                (back, _) => back.repeat(marked - place),
            },
            Reply::Words(words) => words.get(place)?.clone(),
            Reply::Line => return None,
        };
        Some(format!("{keys}\r").into_bytes())
    }

    /// The option on the screen that an answer means: by our words, by its own, or by its number.
    fn place_of(&self, answer: &str) -> Option<usize> {
        let is = |option: &String| option.eq_ignore_ascii_case(answer);
        if let Some(at) = self.options.iter().position(is) {
            return self.places.get(at).copied();
        }
        if let Some(at) = self.shown.iter().position(is) {
            return Some(at);
        }
        let number: usize = answer.parse().ok()?;
        self.places.get(number.checked_sub(1)?).copied()
    }
}

/// What says that an option reaches further than the one thing that is asked.
const FURTHER_PHRASES: [&str; 7] = [
    "don't ask",
    "dont ask",
    "auto-accept",
    "auto accept",
    "auto-run",
    "auto-approve",
    "from now on",
];
const FURTHER_WORDS: [&str; 22] = [
    "all",
    "allowlist",
    "always",
    "any",
    "bypass",
    "conversation",
    "every",
    "everything",
    "future",
    "hour",
    "hours",
    "minutes",
    "never",
    "permanently",
    "project",
    "remember",
    "session",
    "similar",
    "today",
    "until",
    "whole",
    "workspace",
];

/// Options that mean yes, no and always, as `Allow`, `Deny` and `Allow All` with their places; `None` when they are
/// something else.
pub(super) fn decisions(shown: &[String]) -> Option<(Vec<String>, Vec<usize>)> {
    let lower: Vec<String> = shown.iter().map(|option| option.to_lowercase()).collect();
    let starts = |option: &str, words: &[&str]| {
        let first = option.split(|char: char| !char.is_alphanumeric()).next().unwrap_or_default();
        words.contains(&first)
    };
    // Whatever reaches further than the one thing that is asked.
    let is_always = |option: &str| {
        let mut words = option.split(|char: char| !char.is_alphanumeric());
        FURTHER_PHRASES.iter().any(|phrase| option.contains(phrase))
            || words.any(|word| FURTHER_WORDS.contains(&word))
    };
    const YES: &[&str] =
        &["yes", "y", "allow", "approve", "accept", "proceed", "ok", "run", "apply", "trust"];
    const NO: &[&str] =
        &["no", "n", "deny", "reject", "decline", "cancel", "abort", "skip", "exit", "don", "quit"];
    let yes = lower.iter().position(|option| starts(option, YES) && !is_always(option))?;
    let no = lower.iter().position(|option| starts(option, NO) && !is_always(option))?;
    let [allow, deny, allow_all] = PERMISSION_OPTIONS.map(str::to_owned);
    let (mut options, mut places) = (vec![allow, deny], vec![yes, no]);
    let always = lower.iter().position(|option| is_always(option) && !starts(option, NO));
    if let Some(always) = always {
        options.push(allow_all);
        places.push(always);
    }
    Some((options, places))
}
