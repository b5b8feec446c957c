//! The question in which planning ends, and what a person says to it.
//!
//! Invariant: an acceptance holds for the plan, the files and the budget as they were shown, and for nothing else.

use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::answers::{comment_after, is_no, is_yes};
use crate::hash::sha256;

/// Answers to a plan question; any other text is a comment to revise it by.
pub const PLAN_OPTIONS: [&str; 3] = ["Accept", "Accept and run autonomously", "Revise"];

/// A plan as a person is asked about it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProposedPlan {
    /// The file that it is in, as the agent writes the path; the person may edit it.
    pub path: String,
    /// The whole plan.
    pub text: String,
    /// Hash of the text.
    pub digest: String,
    /// Hash of the files in the workspace that the plan was made for.
    pub tree: String,
    /// When those files were looked at.
    pub at: Timestamp,
    /// What the task may cost in all; `None` without a limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget_usd: Option<f64>,
    /// Why it is asked again: what was different when an accepted plan was about to start.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<String>,
}

// The budget is a number that was parsed, so it equals itself.
impl Eq for ProposedPlan {}

impl ProposedPlan {
    /// The hash that binds an acceptance to a plan's text. Space around the text does not count.
    pub fn digest_of(text: &str) -> String {
        sha256(text.trim())
    }
}

/// How an accepted plan is carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acceptance {
    /// With the run control there is.
    Supervised,
    /// Until it is done, without a person.
    Autonomous,
}

/// What a person said to a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlanAnswer {
    Accept(Acceptance),
    /// The plan has to change first.
    Revise {
        /// What should be different; may be empty.
        comment: String,
    },
}

impl PlanAnswer {
    /// How an answer is read; `None` when it says nothing. Whatever is not clearly an acceptance is a comment.
    pub fn read(text: &str) -> Option<Self> {
        let text = text.trim();
        let [accept, autonomously, revise] = PLAN_OPTIONS;
        if text.is_empty() {
            return None;
        }
        if text.eq_ignore_ascii_case(accept) || is_yes(text) {
            return Some(Self::Accept(Acceptance::Supervised));
        }
        if text.eq_ignore_ascii_case(autonomously) {
            return Some(Self::Accept(Acceptance::Autonomous));
        }
        let end = text.find(|char: char| !char.is_alphabetic()).unwrap_or(text.len());
        let (word, rest) = text.split_at(end);
        let comment = match word.eq_ignore_ascii_case(revise) || is_no(word) {
            true => comment_after(rest),
            false => text.to_owned(),
        };
        Some(Self::Revise { comment })
    }
}

impl fmt::Display for PlanAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [accept, autonomously, revise] = PLAN_OPTIONS;
        match self {
            Self::Accept(Acceptance::Supervised) => f.write_str(accept),
            Self::Accept(Acceptance::Autonomous) => f.write_str(autonomously),
            Self::Revise { comment } if comment.is_empty() => f.write_str(revise),
            Self::Revise { comment } => write!(f, "{revise}: {comment}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_clear_words_accept_a_plan() {
        let read = |text| PlanAnswer::read(text).map(|given| given.to_string());
        for yes in ["y", "YES", "accept", " Accept\n"] {
            assert_eq!(read(yes).as_deref(), Some("Accept"), "{yes}");
        }
        for comment in ["yes, but in Rust", "accept it once tests pass", "Accepted", "ok"] {
            assert_eq!(read(comment), Some(format!("Revise: {comment}")));
        }
        for no in ["Revise: keep the API", "no, keep the API", "revise - keep the API"] {
            assert_eq!(read(no).as_deref(), Some("Revise: keep the API"), "{no}");
        }
        assert_eq!(read("no").as_deref(), Some("Revise"));
        assert_eq!(read(" \n"), None);
    }

    #[test]
    fn what_is_journaled_is_read_as_it_was_meant() {
        for text in ["Accept", "Accept and run autonomously", "Revise", "Revise: in two steps"] {
            assert_eq!(PlanAnswer::read(text).unwrap().to_string(), text);
        }
    }
}
