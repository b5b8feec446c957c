//! One check and its result.

use std::time::{Duration, Instant};

use windlass_core::string_enum;

/// How many problems of one kind are listed.
const SHOWN: usize = 20;

string_enum! {
    /// What came of a check.
    CheckStatus ("check status") {
        Ok = "ok",
        Wrong = "wrong",
        /// Something that windlass needs is not set up yet.
        Missing = "missing",
        /// It could not be checked, because of something else that is wrong.
        Skipped = "skipped",
    }
}

string_enum! {
    /// What happens when the checks before a dispatch find something wrong (MS-044).
    RepairPolicy ("choice for `policy.auto_repair`") {
        /// Repair starts automatically.
        Auto = "auto",
        /// A person decides; where nobody can be asked, the task is parked (O-10).
        Ask = "ask",
        /// It is logged, and work continues where it is safe.
        LogOnly = "log-only",
    }
}

string_enum! {
    /// What a person can do about what was found, in no surface's words.
    Advice ("advice") {
        /// Remove finished tasks, so that there is space for the journal.
        RemoveTasks = "remove_tasks",
        /// Have finished tasks removed before the database grows larger.
        LimitStore = "limit_store",
        /// Restart the processes that run a program that was replaced.
        RestartProcesses = "restart_processes",
        /// Start the server of the model, or use another model.
        CheckModelServer = "check_model_server",
    }
}

impl Advice {
    /// The advice for a reader who has no surface of ours.
    pub const fn neutral_words(self) -> &'static str {
        match self {
            Self::RemoveTasks => "make room: remove finished tasks",
            Self::LimitStore => "remove finished tasks, or keep them for a limited time",
            Self::RestartProcesses => "restart the service; resume what a terminal drives",
            Self::CheckModelServer => "start its server, or choose another model",
        }
    }
}

/// One thing that was looked at.
#[derive(Clone, Debug)]
pub struct Check {
    pub name: &'static str,
    pub status: CheckStatus,
    /// What was found.
    pub message: String,
    pub details: Vec<String>,
    /// What `doctor fix` would do about it.
    pub fix: Option<String>,
    /// What a person or an agent can do about it, in words that fit any surface.
    pub hint: Option<String>,
    /// The same, for a surface that has its own words.
    pub advice: Option<Advice>,
    /// Whether nothing may be dispatched before it is right.
    pub blocks: bool,
    pub took: Duration,
}

impl Check {
    pub fn new(name: &'static str, status: CheckStatus, message: impl Into<String>) -> Self {
        Self {
            name,
            status,
            message: message.into(),
            details: Vec::new(),
            fix: None,
            hint: None,
            advice: None,
            blocks: false,
            took: Duration::ZERO,
        }
    }

    pub fn ok(name: &'static str, message: impl Into<String>) -> Self {
        Self::new(name, CheckStatus::Ok, message)
    }

    pub fn wrong(name: &'static str, message: impl Into<String>) -> Self {
        Self::new(name, CheckStatus::Wrong, message)
    }

    /// Adds lines, as many as a person reads.
    pub fn with(mut self, details: impl IntoIterator<Item = String>) -> Self {
        self.details.extend(details.into_iter().take(SHOWN));
        self
    }

    /// Says how `doctor fix` would repair it.
    pub fn fixable(self, fix: impl Into<String>) -> Self {
        Self { fix: Some(fix.into()), ..self }
    }

    /// Adds what to do about it.
    pub fn with_hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// Adds advice, which each surface words itself.
    pub fn with_advice(self, advice: Advice) -> Self {
        Self { advice: Some(advice), ..self.with_hint(advice.neutral_words()) }
    }

    /// Lets nothing be dispatched before it is right.
    pub fn blocking(self) -> Self {
        Self { blocks: true, ..self }
    }

    /// Makes a check, and notes how long that took.
    pub fn timed(check: impl FnOnce() -> Self) -> Self {
        let began = Instant::now();
        check().since(began)
    }

    /// Notes how long it took since it began.
    pub fn since(self, began: Instant) -> Self {
        Self { took: began.elapsed(), ..self }
    }

    /// Whether something is wrong or missing.
    pub fn is_problem(&self) -> bool {
        matches!(self.status, CheckStatus::Wrong | CheckStatus::Missing)
    }
}

/// What a fix has done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FixReport {
    /// The check that found it.
    pub name: &'static str,
    /// What was done, or why it could not be.
    pub outcome: Result<String, String>,
}

impl FixReport {
    pub fn done(name: &'static str, what: impl Into<String>) -> Self {
        Self { name, outcome: Ok(what.into()) }
    }

    pub fn failed(name: &'static str, why: impl ToString) -> Self {
        Self { name, outcome: Err(why.to_string()) }
    }
}
