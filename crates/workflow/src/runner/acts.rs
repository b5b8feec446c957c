//! What follows from something a program did, and the short forms in which dialects say it.

use serde_json::Value;
use windlass_sandbox::Exit;

use super::{Activity, Report, RunnerQuestion};

/// How much of what is not a message is kept to say what it was.
const NOISE_BYTES: usize = 2000;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Act {
    /// Write this to its standard input.
    Send(Vec<u8>),
    Report(Report),
    Ask(RunnerQuestion),
    /// A question is not open any more.
    Withdraw(String),
    /// A tool of this id has begun.
    ToolBegan(String),
    /// It has ended: without another one, the program must say something soon.
    ToolEnded(String),
    /// So many of its own children still work; its result does not count before they are done.
    Children(usize),
    /// It works on something new, although it has given a result.
    Busy,
    Finish(Outcome),
    /// What a person should know at the end.
    Note(String),
}

/// What a program achieved.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Outcome {
    pub text: String,
    pub failure: Option<String>,
}

impl Act {
    pub fn activity(activity: Activity) -> Self {
        Self::Report(Report::Activity(activity))
    }

    pub fn output(text: impl Into<String>) -> Self {
        Self::Report(Report::Output(text.into()))
    }

    /// A message as one line.
    pub fn send(message: &Value) -> Self {
        Self::Send(format!("{message}\n").into_bytes())
    }
}

/// What a program printed that was no message, to say it when nothing else came.
#[derive(Debug, Default)]
pub(super) struct Noise {
    text: String,
    has_message: bool,
}

impl Noise {
    pub fn on_message(&mut self) {
        self.has_message = true;
    }

    pub fn push(&mut self, line: &str) {
        if self.text.len() + line.len() < NOISE_BYTES {
            self.text.push_str(line);
            self.text.push('\n');
        }
    }

    /// Why a program of this name that ended without a result has failed.
    pub fn failure(&self, name: &str, exit: Exit) -> String {
        let what = match (self.has_message, self.text.trim()) {
            (true, _) => "it ended without a result".to_owned(),
            (false, "") => "it printed nothing".to_owned(),
            (false, noise) => format!("it printed no message of {name}, but: {noise}"),
        };
        format!("{what}; {}", exit_words(exit))
    }
}

/// How a process ended, for people.
pub(super) fn exit_words(exit: Exit) -> String {
    match exit {
        Exit::Code(code) => format!("it ended with code {code}"),
        Exit::Signal(signal) => format!("it was ended by signal {signal}"),
        Exit::TimedOut | Exit::Killed => "it was ended".to_owned(),
        Exit::OutOfMemory => "it used up the memory of its sandbox".to_owned(),
        Exit::Lost => "its sandbox was lost".to_owned(),
    }
}

/// The items of a list; none where it is not one.
pub(super) fn array(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// A text; empty where it is not one.
pub(super) fn text_of(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
