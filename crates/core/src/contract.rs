//! A completion contract: what must hold before finished work counts as done (AX-008).

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::hash::hex;
use crate::id::CallId;
use crate::string_enum;

/// How long a check may take, where the contract does not say.
pub const DEFAULT_CHECK_SECONDS: u64 = 600;
/// The longest limit that a contract may give a check.
pub const MAX_CHECK_SECONDS: u64 = 3_600;

string_enum! {
    /// Who reviews work that has passed its checks.
    #[derive(Default)]
    Audit ("kind of audit") {
        /// Nobody judges the work; its checks decide.
        #[default]
        None = "none",
        /// A person, by a question.
        Person = "person",
        /// An agent in the auditor role; a person where it gives no verdict.
        Auditor = "auditor",
    }
}

/// What must hold before finished work counts as done.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contract {
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tier: Option<String>,
    /// Files that must exist, relative to the workspace.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub required_files: Vec<String>,
    /// Commands that must succeed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<Check>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commitments: Option<CommitmentRules>,
    #[serde(default, skip_serializing_if = "is_none")]
    pub audit: Audit,
    /// Limit of tool rounds; it wins over the configuration (AX-012).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_iterations: Option<u32>,
}

fn is_none(audit: &Audit) -> bool {
    *audit == Audit::None
}

/// A command that must succeed before the work counts as done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    pub name: String,
    /// What is run; without it the usual command of a check of this name, for the kind of project that is found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<u64>,
}

/// What must hold for the commitments of the work (AX-011).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommitmentRules {
    /// How many there must be.
    pub min_count: usize,
    /// Whether each must be approved.
    pub require_closed: bool,
    /// Whether each must have evidence.
    pub require_evidence: bool,
}

/// A contract that a task brings itself, such as one in a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GivenContract {
    #[serde(flatten)]
    pub contract: Contract,
    /// Whether a person has approved its commands.
    #[serde(default)]
    pub approved: bool,
}

/// The checks whose commands are known, and the files of a project by which they are chosen.
const KNOWN: &[(&str, &[(&str, &str)])] = &[
    (
        "typecheck",
        &[
            ("tsconfig.json", "npx tsc --noEmit"),
            ("Cargo.toml", "cargo check"),
            ("go.mod", "go vet ./..."),
            ("package.json", "npm run typecheck"),
        ],
    ),
    (
        "build",
        &[
            ("Cargo.toml", "cargo build"),
            ("go.mod", "go build ./..."),
            ("package.json", "npm run build"),
            ("Makefile", "make"),
        ],
    ),
    (
        "test",
        &[
            ("Cargo.toml", "cargo test"),
            ("go.mod", "go test ./..."),
            ("package.json", "npm test"),
            ("pyproject.toml", "pytest"),
            ("setup.py", "pytest"),
            ("Makefile", "make test"),
        ],
    ),
    (
        "lint",
        &[
            ("Cargo.toml", "cargo clippy"),
            ("package.json", "npm run lint"),
            ("pyproject.toml", "ruff check"),
        ],
    ),
];

/// Other names of known checks.
const ALIASES: &[(&str, &str)] = &[("tsc", "typecheck"), ("tests", "test"), ("clippy", "lint")];

/// The names of checks whose commands are known.
pub fn known_checks() -> impl Iterator<Item = &'static str> {
    KNOWN.iter().map(|(name, _)| *name)
}

/// Whether a check of this name has a usual command in some kind of project.
pub fn is_known(name: &str) -> bool {
    usual_commands(name).is_some()
}

fn usual_commands(name: &str) -> Option<&'static [(&'static str, &'static str)]> {
    let name = ALIASES.iter().find(|(alias, _)| *alias == name).map_or(name, |(_, known)| known);
    KNOWN.iter().find(|(known, _)| *known == name).map(|(_, commands)| *commands)
}

impl Check {
    /// What is run, in a project that has the files for which `exists` holds; `None` where nothing fits.
    pub fn command_in(&self, exists: impl Fn(&str) -> bool) -> Option<String> {
        let usual = || {
            let found = usual_commands(&self.name)?.iter().find(|(file, _)| exists(file))?;
            Some(found.1.to_owned())
        };
        self.command.clone().or_else(usual)
    }

    /// How long it may take.
    pub fn seconds(&self) -> u64 {
        self.timeout_seconds.unwrap_or(DEFAULT_CHECK_SECONDS)
    }
}

impl Contract {
    /// The hash by which an approval knows it: of the commands that it runs.
    pub fn digest(&self) -> String {
        let text = serde_json::to_string(&self.checks).unwrap_or_default();
        hex(&Sha256::digest(text.as_bytes())[..16])
    }

    /// Whether it asks for nothing.
    pub fn is_empty(&self) -> bool {
        self.required_files.is_empty()
            && self.checks.is_empty()
            && self.commitments.is_none()
            && self.audit == Audit::None
    }
}

/// The outcome of one requirement of a contract.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckResult {
    pub name: String,
    pub passed: bool,
    /// In one line: the command and how it exited, or what is missing.
    pub detail: String,
    /// What it printed, where it failed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub output: String,
    /// The call that ran it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<CallId>,
}

/// The outcome of a contract, as a task's result says it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContractResult {
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Whether everything that it asks for holds.
    pub passed: bool,
    /// How often it was evaluated.
    pub attempts: u32,
    /// The results of the last time.
    pub checks: Vec<CheckResult>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub review: Option<Review>,
}

/// What a person or an auditor said of the finished work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Review {
    pub approved: bool,
    pub by: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}
