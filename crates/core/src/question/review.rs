//! The question in which finished work is judged, and what a person says to it.

use std::fmt;

use super::answers::{comment_after, is_no, is_yes};

/// Answers to a review; any other text is a reason to reject the work.
pub const REVIEW_OPTIONS: [&str; 2] = ["Approve", "Reject"];

/// What a person said of finished work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReviewAnswer {
    Approve,
    Reject {
        /// What is wrong; may be empty.
        reason: String,
    },
}

impl ReviewAnswer {
    /// How an answer is read; `None` when it says nothing. Whatever is not clearly an approval rejects.
    pub fn read(text: &str) -> Option<Self> {
        let text = text.trim();
        let [approve, reject] = REVIEW_OPTIONS;
        if text.is_empty() {
            return None;
        }
        if text.eq_ignore_ascii_case(approve) || is_yes(text) {
            return Some(Self::Approve);
        }
        let end = text.find(|char: char| !char.is_alphabetic()).unwrap_or(text.len());
        let (word, rest) = text.split_at(end);
        let reason = match word.eq_ignore_ascii_case(reject) || is_no(word) {
            true => comment_after(rest),
            false => text.to_owned(),
        };
        Some(Self::Reject { reason })
    }
}

impl fmt::Display for ReviewAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [approve, reject] = REVIEW_OPTIONS;
        match self {
            Self::Approve => f.write_str(approve),
            Self::Reject { reason } if reason.is_empty() => f.write_str(reject),
            Self::Reject { reason } => write!(f, "{reject}: {reason}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_clear_words_approve_finished_work() {
        let read = |text| ReviewAnswer::read(text).map(|given| given.to_string());
        for yes in ["y", "Yes", "approve", " Approve "] {
            assert_eq!(read(yes).as_deref(), Some("Approve"), "{yes}");
        }
        for no in ["no, tests are missing", "reject: tests are missing", "tests are missing"] {
            assert_eq!(read(no).as_deref(), Some("Reject: tests are missing"), "{no}");
        }
        assert_eq!(read("approve it later").as_deref(), Some("Reject: approve it later"));
        assert_eq!((read("no").as_deref(), read(" ")), (Some("Reject"), None));
    }
}
