//! Anything that waits for a person: asked by the agent, by the gate or by a limit.

mod answers;
mod plan;
mod review;

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::id::{CallId, QuestionId};
use crate::policy::allow::AllowRule;
use crate::policy::permission_request::PermissionRequest;
use crate::string_enum;

pub use plan::{Acceptance, PLAN_OPTIONS, PlanAnswer, ProposedPlan};
pub use review::{REVIEW_OPTIONS, ReviewAnswer};

string_enum! {
    QuestionKind ("question kind") {
        /// The agent, by `ask_user`.
        AskUser = "ask_user",
        /// The gate, before a risky call.
        Permission = "permission",
        /// A limit of money or work.
        Budget = "budget",
        /// An agent that proposes a plan: plan mode ends in this question (MS-022).
        Plan = "plan",
        /// A completion contract: somebody judges the finished work.
        Review = "review",
        /// A program that a workflow step runs. Produced by CLI runners.
        Runner = "runner",
        /// The health gate, before a dispatch that is not safe (MS-044).
        Repair = "repair",
    }
}

string_enum! {
    /// Whether a question needs an answer.
    QuestionStatus ("question state") {
        Open = "open",
        Answered = "answered",
        /// Nobody needs to answer it now.
        Closed = "closed",
    }
}

string_enum! {
    /// What counts as an answer to a question that its kind does not say.
    AcceptedAnswers ("accepted answers") {
        /// An option, or a person's own words.
        Words = "words",
        /// One of the options; other words would be taken for an answer that nobody gave.
        Options = "options",
        /// One of two options: the first is a yes, the second a no.
        YesNo = "yes_no",
        /// One of the options, or how many rounds, such as `5 more rounds`.
        Rounds = "rounds",
        /// An option, or by how many dollars the budget is raised.
        Dollars = "dollars",
    }
}

impl AcceptedAnswers {
    /// What a question accepts that does not say it, as those of old journals.
    fn words() -> Self {
        Self::Words
    }

    fn are_words(&self) -> bool {
        *self == Self::Words
    }
}

/// Dollars that a task may be given at a time, and tokens, turns or seconds.
pub const MAX_DOLLARS: f64 = 1_000_000.0;
const MAX_UNITS: f64 = 1e12;

/// Rounds that a loop of a workflow may have, and that an answer may add.
pub const MAX_ROUNDS: u32 = 100;

/// Answers to a permission question.
pub const PERMISSION_OPTIONS: [&str; 3] = ["Allow", "Deny", "Allow All"];

/// Answers to a repair question. The second is offered only where work may continue with what is wrong.
pub const REPAIR_OPTIONS: [&str; 2] = ["Repair", "Continue"];

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    /// Its id, in the inbox and on the wire.
    pub id: QuestionId,
    pub kind: QuestionKind,
    /// The call that waits for it, if one does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<CallId>,
    /// What is asked.
    pub question: String,
    /// Answers to choose from; free text when empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
    #[serde(
        default = "AcceptedAnswers::words",
        skip_serializing_if = "AcceptedAnswers::are_words"
    )]
    pub accepts: AcceptedAnswers,
    /// What the person should know first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    /// What a permission is bound to: the arguments, the working directory and the files of a call, and when it was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub binding: Option<Binding>,
    /// The change of a file that is asked about, whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
    /// The rule that `Allow All` would give.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grants: Option<AllowRule>,
    /// Why a permission is asked for, as data for whoever shows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<Box<PermissionRequest>>,
    /// The plan that is asked about, and what accepting it is bound to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<Box<ProposedPlan>>,
}

/// What a person said to a permission question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Permission {
    Allow,
    /// Not this call.
    Deny {
        /// Why, or what to do instead; may be empty.
        comment: String,
    },
    /// This call, and by a rule those like it.
    AllowAll,
}

/// What an approval holds for, and nothing else.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Binding {
    /// Hash of the arguments as the model wrote them.
    pub arguments_hash: String,
    /// Where the command would run.
    pub cwd: String,
    /// The files it would change or run, as they were when it was asked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<BoundFile>,
    /// When it was asked, where the call may depend on more files than these.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mark: Option<ChangeMark>,
}

/// A moment, by which is found what has changed since.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangeMark {
    /// The time of each tree by its own file system, in nanoseconds.
    pub trees: BTreeMap<String, i64>,
    /// How often the person was asked again because something had changed.
    pub asked_again: u8,
}

/// One file that an approval holds for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BoundFile {
    /// The path that was walked, links resolved; for a script the path that is run.
    pub path: String,
    /// Hash of its content; `None` where there is no such file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hash: Option<String>,
}

impl Binding {
    /// Whether what was approved is still the same, the moment aside.
    pub fn holds(&self, now: &Self) -> bool {
        (&self.arguments_hash, &self.cwd, &self.files)
            == (&now.arguments_hash, &now.cwd, &now.files)
    }

    /// What is different in `now`, in words.
    pub fn changes(&self, now: &Self) -> Vec<String> {
        let mut changes = Vec::new();
        if self.arguments_hash != now.arguments_hash {
            changes.push("its arguments".to_owned());
        }
        if self.cwd != now.cwd {
            changes.push(format!("the directory, now `{}`", now.cwd));
        }
        let was = |path: &str| self.files.iter().find(|file| file.path == path);
        for file in &now.files {
            match was(&file.path) {
                Some(before) if before.hash == file.hash => {}
                Some(before) if before.hash.is_none() => {
                    changes.push(format!("`{}` exists now", file.path));
                }
                Some(_) if file.hash.is_none() => {
                    changes.push(format!("`{}` is gone", file.path));
                }
                Some(_) => changes.push(format!("the content of `{}`", file.path)),
                None => changes.push(format!("the path now leads to `{}`", file.path)),
            }
        }
        changes
    }
}

/// An answer, given once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// What was said.
    pub text: String,
    /// Who said it.
    pub by: String,
    pub at: Timestamp,
}
