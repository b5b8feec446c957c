//! Why a task failed, as data that a person and a program can act on (ES-370…373).

use serde::{Deserialize, Serialize};

use crate::string_enum;

string_enum! {
    /// Who could do something about an error.
    ErrorCategory ("error category") {
        /// Goes away without help; worth another attempt.
        Transient = "transient",
        /// Stays until something is changed.
        Permanent = "permanent",
        /// The agent reached a limit or repeated itself.
        Agent = "agent",
    }
}

string_enum! {
    /// Every way a task can fail.
    ErrorType ("error type") {
        /// Ran out of active time (ES-111).
        Timeout = "timeout",
        /// Ran past its deadline.
        Deadline = "deadline",
        /// Used up its tool rounds (ES-122).
        MaxIterationsExceeded = "max_iterations_exceeded",
        /// Kept doing the same thing (ES-269).
        DoomLoop = "doom_loop",
        /// The model server could not be reached or kept failing.
        ModelUnreachable = "model_unreachable",
        /// The model server refused the credentials.
        ModelUnauthorized = "model_unauthorized",
        /// The model is not there (ES-379).
        ModelUnavailable = "model_unavailable",
        /// The model server asked to come back later, too often.
        ModelRateLimited = "model_rate_limited",
        /// The model server answered with something that is not a reply.
        ModelProtocol = "model_protocol",
        /// The request was refused as malformed.
        ModelRefused = "model_refused",
        /// The context did not fit, even shortened.
        ContextLength = "context_length",
        /// The sandbox did not start (ES-380).
        SandboxUnavailable = "sandbox_unavailable",
        /// The sandbox was ended for its memory use (ES-381).
        SandboxOutOfMemory = "sandbox_out_of_memory",
        /// The memory service did not answer (ES-384).
        ContextServiceUnavailable = "context_service_unavailable",
        /// The submission makes no sense (ES-371).
        InvalidCommand = "invalid_command",
        /// The queue of tasks is full; the same submission may be accepted later.
        Overloaded = "overloaded",
        /// The journal could not be written.
        Storage = "storage",
        /// The workspace is gone or cannot be used.
        Workspace = "workspace",
        /// The agent stopped answering (ES-033).
        Hung = "hung",
        /// The budget question was answered with stop.
        Budget = "budget",
        /// A step of a workflow failed.
        Workflow = "workflow",
        /// The agent could not meet the completion contract.
        ContractUnmet = "contract_unmet",
        /// A bug in windlass.
        Internal = "internal",
    }
}

impl ErrorType {
    /// Who could do something about it.
    pub const fn category(self) -> ErrorCategory {
        use ErrorType::*;
        match self {
            Timeout
            | Deadline
            | MaxIterationsExceeded
            | DoomLoop
            | Hung
            | Budget
            | ContractUnmet
            | ContextLength => ErrorCategory::Agent,
            ModelUnreachable
            | ModelRateLimited
            | SandboxUnavailable
            | ContextServiceUnavailable
            | Overloaded
            | Storage => ErrorCategory::Transient,
            ModelUnauthorized | ModelUnavailable | ModelProtocol | ModelRefused
            | SandboxOutOfMemory | InvalidCommand | Workspace | Workflow | Internal => {
                ErrorCategory::Permanent
            }
        }
    }
}

string_enum! {
    /// What a person can do about an error, in no surface's words. A surface says it in its own: with
    /// flags, with buttons.
    Remedy ("remedy") {
        /// See that the model server runs and that its address is right.
        CheckModelServer = "check_model_server",
        /// Wait until the model server works again.
        WaitForModelServer = "wait_for_model_server",
        /// Something that is not a model server answers at the address.
        CheckModelAddress = "check_model_address",
        /// Check the address's scheme and the server's certificate.
        CheckCertificate = "check_certificate",
        /// Set the right API key.
        SetModelKey = "set_model_key",
        /// Check the model's name.
        CheckModelName = "check_model_name",
        /// Use another model, or try again.
        ChangeModel = "change_model",
        /// Wait, or raise the account's limit.
        RaiseAccountLimit = "raise_account_limit",
        /// The server says what is wrong with the request.
        ReadServerMessage = "read_server_message",
        /// Use another model, or put the goal differently.
        RephraseGoal = "rephrase_goal",
        /// Ask for less in one answer.
        AskForLess = "ask_for_less",
        /// Set the model's real window, or use a model with a larger one.
        SetContextWindow = "set_context_window",
        /// Put long texts into files, or use a larger window.
        ShrinkContext = "shrink_context",
        /// Extend or fix the scripted model's script.
        FixScript = "fix_script",
        /// Check the path of the recording.
        CheckRecording = "check_recording",
        /// A retry has as many tool rounds again; the limit can be raised.
        RaiseRounds = "raise_rounds",
        /// A retry has as much time again; the limit can be raised.
        RaiseTimeout = "raise_timeout",
        /// A retry asks again whether the budget is raised.
        RaiseBudget = "raise_budget",
        /// See in the events where it stopped.
        ReadEvents = "read_events",
        /// Start the Context Service, or do without.
        CheckContextService = "check_context_service",
        /// Give the sandbox more memory, or work in smaller pieces.
        RaiseSandboxMemory = "raise_sandbox_memory",
        /// Check the container image, or use the local sandbox.
        CheckSandbox = "check_sandbox",
        /// Build or download the container image.
        GetImage = "get_image",
        /// Start the container engine, or use the local sandbox.
        StartEngine = "start_engine",
        /// Free space where the container engine keeps its data.
        FreeEngineDisk = "free_engine_disk",
        /// Run commands without isolation.
        UseHostSandbox = "use_host_sandbox",
        /// Make a path usable that is gone or is not a directory, or cancel the task.
        RepairPath = "repair_path",
        /// Let somebody else approve what the work has submitted.
        ApproveByAnother = "approve_by_another",
        /// See which step of the workflow failed, and resume the run.
        ResumeRun = "resume_run",
        /// See what each skill needs.
        SeeSkills = "see_skills",
        /// See how windlass is configured, and correct that.
        CheckConfiguration = "check_configuration",
    }
}

impl Remedy {
    /// The remedy for a reader who has no surface of ours, as `error_details.hint`.
    pub const fn neutral_words(self) -> &'static str {
        match self {
            Self::CheckModelServer => {
                "check that the model server runs and that its base URL is right, then retry the task"
            }
            Self::WaitForModelServer => {
                "the model server has a problem; retry the task when it has passed"
            }
            Self::CheckModelAddress => {
                "check the model server's base URL: another program answers there"
            }
            Self::CheckCertificate => "check the base URL's scheme and the server's certificate",
            Self::SetModelKey => "check the API key of the model server",
            Self::CheckModelName => "check the model's name; no other model is used in its place",
            Self::ChangeModel => "try another model, or retry the task",
            Self::RaiseAccountLimit => "wait, or raise the account's limit; then retry the task",
            Self::ReadServerMessage => "the message says what the server did not accept",
            Self::RephraseGoal => "use another model, or start a new task with another wording",
            Self::AskForLess => {
                "ask for less in one answer, or for a file; or use a model with a larger output limit"
            }
            Self::SetContextWindow => {
                "set the model's real context window, or use a model with a larger one"
            }
            Self::ShrinkContext => {
                "use a model with a larger context window, or set its real window; put long texts into \
                 files and name them instead"
            }
            Self::FixScript => "extend the script, or fix its `expect`",
            Self::CheckRecording => "check the path of the recording",
            Self::RaiseRounds => "a retry has as many rounds again; the limit can be raised",
            Self::RaiseTimeout => "a retry has as much time again; the limit can be raised",
            Self::RaiseBudget => "a retry asks again",
            Self::ReadEvents => "the events show where it stopped; then retry the task",
            Self::CheckContextService => {
                "start the Context Service, correct its URL, or do without it; then retry the task"
            }
            Self::RaiseSandboxMemory => {
                "raise the sandbox's memory limit, or let the task work in smaller pieces"
            }
            Self::CheckSandbox => {
                "check the container image; the local sandbox needs no container engine"
            }
            Self::GetImage => "build or download the container image, or choose another one",
            Self::StartEngine => "start the container engine, or use the local sandbox",
            Self::FreeEngineDisk => "free space where the container engine keeps its data",
            Self::UseHostSandbox => {
                "the host sandbox runs commands without isolation, if that is what you want"
            }
            Self::RepairPath => "make the path usable again, or cancel the task",
            Self::ApproveByAnother => "let somebody else approve the commitment",
            Self::ResumeRun => "the steps show what failed; a resumed run tries that step again",
            Self::SeeSkills => "the list of skills shows what each skill needs",
            Self::CheckConfiguration => "check the configuration",
        }
    }
}

/// What went wrong, on results (`docs/design.md` §15.16).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorDetails {
    /// Which of the known ways.
    pub error_type: ErrorType,
    /// Who could do something about it.
    pub category: ErrorCategory,
    /// What happened, to which thing.
    pub message: String,
    /// Whether the same again may work.
    pub retryable: bool,
    /// What the harness saw, for whoever looks into it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diagnostic: Option<String>,
    /// What to do next, in words that fit any surface.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// What to do next, for a surface that has its own words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remedy: Option<Remedy>,
}

impl ErrorDetails {
    /// An error of a known type; transient ones may be tried again.
    pub fn new(error_type: ErrorType, message: impl Into<String>) -> Self {
        let category = error_type.category();
        Self {
            error_type,
            category,
            message: message.into(),
            retryable: category == ErrorCategory::Transient,
            diagnostic: None,
            hint: None,
            remedy: None,
        }
    }

    /// The same with what was seen.
    pub fn with_diagnostic(mut self, diagnostic: impl Into<String>) -> Self {
        self.diagnostic = Some(diagnostic.into());
        self
    }

    /// The same with what to do next.
    pub fn with_remedy(mut self, remedy: Remedy) -> Self {
        self.remedy = Some(remedy);
        self.with_hint(remedy.neutral_words())
    }

    /// The same with what to do next, where only words say it.
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}
