//! The outcome of a tool call, and how it is determined after a crash.

use serde::{Deserialize, Serialize};

use crate::command::{Deliverable, EvidenceType};
use crate::contract::Review;
use crate::id::CallId;
use crate::picture::Picture;
use crate::plan::WorkingPlan;
use crate::policy::denial::Denial;
use crate::string_enum;

string_enum! {
    /// How a call ended.
    CallEnding ("ending") {
        /// It did what it says.
        Ok = "ok",
        /// It failed; the text says how.
        Error = "error",
        /// The gate or a person refused it.
        Denied = "denied",
        /// It was stopped with its task.
        Cancelled = "cancelled",
        /// It may or may not have happened.
        Unknown = "unknown",
    }
}

/// Something that follows from a call and that the task's state keeps.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "fact", rename_all = "snake_case")]
pub enum Fact {
    /// The agent has seen this version of a file.
    FileRead {
        /// Relative to the workspace.
        path: String,
        /// Hash of the content seen.
        hash: String,
    },
    /// The agent has made this version of a file.
    FileChanged {
        /// Relative to the workspace.
        path: String,
        /// Hash of the content written.
        hash: String,
        /// What changed, for people.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        diff: Option<String>,
    },
    /// The agent has been given the instructions of this skill.
    SkillRead {
        name: String,
        /// The hash of what it has read. Journals written before this field existed do not have it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        hash: Option<String>,
    },
    /// The working plan is now this.
    Plan(WorkingPlan),
    /// This file is a deliverable.
    Published(Deliverable),
    /// This proves what was done or read.
    Evidence(Evidence),
    /// An auditor has judged the work that it was started to review.
    Verdict(Review),
    /// A command was left running.
    BackgroundStarted {
        /// The call that started it.
        call: CallId,
        command: String,
    },
    /// The shell is now in this directory.
    WorkingDirectory {
        /// As the agent sees it.
        path: String,
    },
}

/// A piece of proof, as the call that came across it names it (ES-305).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    #[serde(rename = "type")]
    pub kind: EvidenceType,
    /// A file relative to the workspace, or the address of a page.
    pub location: String,
    /// What it shows.
    pub description: String,
}

impl Evidence {
    /// A page that was read.
    pub fn of_page(url: &str, title: &str) -> Self {
        let title = if title.trim().is_empty() { "a page that was read" } else { title };
        Self {
            kind: EvidenceType::Url,
            location: crate::text::one_line(url, MAX_EVIDENCE_CHARS),
            description: crate::text::one_line(title, 200),
        }
    }
}

/// The longest address that is kept as evidence, in characters.
const MAX_EVIDENCE_CHARS: usize = 2_000;

/// The outcome of a call: a text for the model, a text for people where it differs, and the rest as data,
/// so that nobody has to parse a text that was written for someone else.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// How it ended.
    pub ending: CallEnding,
    /// What the model reads.
    pub text: String,
    /// What people read instead; see [`Outcome::display_text`]. It may hold escape sequences, which the
    /// surface removes or renders. Journals written before this field existed do not have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub display: Option<String>,
    /// Why it was denied and what to try instead, when it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub denial: Option<Denial>,
    /// What follows from it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub facts: Vec<Fact>,
    /// What a model that can see is shown after it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pictures: Vec<Picture>,
    /// The exit code, when it was a command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// What ended the command, when it has no exit code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aborted_by: Option<AbortCause>,
    /// Where the whole text is, when it was cut.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub truncated: Option<Truncation>,
    /// Replaces the text where two results are compared, when the text holds times or counts that
    /// differ in every run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<String>,
}

/// What ended a command before it could exit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AbortCause {
    /// A signal that neither we nor the kernel's memory limit sent.
    Signal(i32),
    /// Its time limit.
    Timeout,
    /// The sandbox's memory limit.
    OutOfMemory,
}

/// That a text was cut, and where the whole of it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Truncation {
    /// The file with the whole text, as the agent reads it.
    pub full_output_path: String,
    /// Its size in bytes.
    pub original_size: u64,
}

impl Outcome {
    pub fn ok(text: impl Into<String>) -> Self {
        Self::ended(CallEnding::Ok, text)
    }

    /// It failed; the model reads why and what to do.
    pub fn error(text: impl Into<String>) -> Self {
        Self::ended(CallEnding::Error, text)
    }

    /// It failed for this reason. The model reads it after `Error: `; people see the failure by its
    /// colour and need no such mark.
    pub fn failure(reason: impl Into<String>) -> Self {
        let reason = reason.into();
        Self { display: Some(reason.clone()), ..Self::error(format!("Error: {reason}")) }
    }

    /// The gate, a hook or a person refused it.
    pub fn denied(denial: Denial) -> Self {
        Self { denial: Some(denial.clone()), ..Self::ended(CallEnding::Denied, denial.render()) }
    }

    /// An outcome without facts.
    pub fn ended(ending: CallEnding, text: impl Into<String>) -> Self {
        Self {
            ending,
            text: text.into(),
            display: None,
            denial: None,
            facts: Vec::new(),
            pictures: Vec::new(),
            exit_code: None,
            aborted_by: None,
            truncated: None,
            fingerprint: None,
        }
    }

    /// Adds a paragraph to both texts.
    pub fn add_note(&mut self, note: &str) {
        for text in std::iter::once(&mut self.text).chain(&mut self.display) {
            *text = format!("{}\n\n{note}", text.trim_end());
        }
    }

    /// What people read: their own text, for a denial the reason, else what the model reads.
    pub fn display_text(&self) -> &str {
        let reason = || self.denial.as_ref().map(|denial| denial.reason.as_str());
        self.display.as_deref().or_else(reason).unwrap_or(&self.text)
    }

    /// What two results of one call are compared by.
    pub fn comparable(&self) -> &str {
        self.fingerprint.as_deref().unwrap_or(&self.text)
    }

    /// The same with something that follows from it.
    pub fn with(mut self, fact: Fact) -> Self {
        self.facts.push(fact);
        self
    }

    /// Whether the model should treat it as a failure.
    pub const fn is_error(&self) -> bool {
        !matches!(self.ending, CallEnding::Ok)
    }
}

/// One file that a call changes, before and after, so that a crash between can be judged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileChange {
    /// Relative to the workspace.
    pub path: String,
    /// Hash before; `None` when there was no file.
    pub before: Option<String>,
    pub after: String,
}

/// How a call that was started but has no result is brought to one after a crash (§15.6).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Recovery {
    /// Running it again does no harm: it only reads, or it is idempotent by the id of its call.
    Rerun,
    /// Compare the file: after → it happened, before → it did not, else unknown.
    Verify {
        /// What it changes.
        change: FileChange,
        /// The outcome if it has happened.
        outcome: Box<Outcome>,
    },
    /// Wait again for a sub-agent, which has its own id.
    Reattach { id: String },
    /// Nobody can tell.
    Unknown,
}

impl Recovery {
    /// Whether the call may have effects that must not happen twice.
    pub const fn has_effects(&self) -> bool {
        !matches!(self, Self::Rerun)
    }
}
