//! What a tool call would do (its class) and how bad that could be (its risk).

use serde::{Deserialize, Serialize};

use crate::string_enum;

string_enum! {
    /// What a tool call would do, from harmless to catastrophic.
    Class ("class") {
        /// Looks at things, here or on the web.
        Read = "read",
        /// Keeps notes: plan, memo, question, deliverable.
        Note = "note",
        /// Keeps the commitment ledger. Produced by the tools for commitments.
        Ledger = "ledger",
        /// Changes files in the workspace.
        Edit = "edit",
        /// Starts another agent.
        Delegate = "delegate",
        /// Runs a command that stays on this machine.
        LocalCommand = "local command",
        /// Runs tests or linters.
        Test = "test",
        /// Builds, installs, commits locally, runs the project's own code, or acts on a web page.
        Build = "build",
        /// Sends something elsewhere: a push, a pull request, a form, a file's content in a request.
        Publish = "publish",
        /// Touches production: deploys, protected branches, files that change an agent's own rules.
        Production = "production",
        /// Destroys or changes what cannot be restored.
        Destructive = "destructive",
        /// Cannot be read statically.
        Opaque = "opaque",
        /// Could ruin the machine, or asks for more privileges.
        Catastrophic = "catastrophic",
    }
}

string_enum! {
    /// How bad it could be.
    Risk ("risk") {
        /// Nothing to worry about.
        Low = "LOW",
        /// Worth a line in the log.
        Medium = "MEDIUM",
        /// Worth a question.
        High = "HIGH",
        Critical = "CRITICAL",
    }
}

impl Class {
    /// The least risk that a call of this class has.
    pub const fn base_risk(self) -> Risk {
        match self {
            Self::Read | Self::Note | Self::Ledger | Self::Edit => Risk::Low,
            Self::Delegate | Self::LocalCommand | Self::Test | Self::Build => Risk::Medium,
            Self::Publish | Self::Production | Self::Destructive | Self::Opaque => Risk::High,
            Self::Catastrophic => Risk::Critical,
        }
    }
}

/// What one call would do, how bad that could be, and why we think so.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Assessment {
    /// What it would do.
    pub class: Class,
    /// How bad it could be; at least the class's own risk.
    pub risk: Risk,
    /// Why, in words for a person: a predicate for "it" (`removes files`), or a sentence that begins with
    /// its own subject in backquotes.
    pub reason: String,
}

impl Assessment {
    /// An assessment with the class's own risk.
    pub fn of(class: Class, reason: impl Into<String>) -> Self {
        Self { class, risk: class.base_risk(), reason: reason.into() }
    }

    /// The same with at least `risk`.
    pub fn at_least(mut self, risk: Risk) -> Self {
        self.risk = self.risk.max(risk);
        self
    }
}
