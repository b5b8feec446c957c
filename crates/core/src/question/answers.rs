//! How what a person typed is read as an answer: an option's number or words, yes, no, an amount, or no with a
//! word to the agent.

use std::fmt;

use super::{PERMISSION_OPTIONS, Permission, PlanAnswer, Question, QuestionKind, ReviewAnswer};
use crate::state::spending::{STOP, raise};

impl Question {
    /// The answer that a typed text stands for, in the words that are journaled; `None` when it is none.
    pub fn read_answer(&self, typed: &str) -> Option<String> {
        let text = typed.trim();
        if let Some(option) = self.option(text) {
            return Some(option.clone());
        }
        match self.kind {
            QuestionKind::Permission => self.permission(text).map(|given| given.to_string()),
            QuestionKind::Budget if is_yes(text) => self.options.first().cloned(),
            QuestionKind::Budget if is_no(text) => Some(STOP.to_owned()),
            QuestionKind::Budget => raise(text).map(|_| text.to_owned()),
            QuestionKind::Plan => PlanAnswer::read(text).map(|given| given.to_string()),
            // Without a second option there is no way to continue unrepaired.
            QuestionKind::Repair if is_yes(text) => self.options.first().cloned(),
            QuestionKind::Repair if is_no(text) => self.options.get(1).cloned(),
            QuestionKind::Repair => None,
            QuestionKind::Review => ReviewAnswer::read(text).map(|given| given.to_string()),
            QuestionKind::AskUser | QuestionKind::Runner => {
                let matches = |option: &&String| {
                    is_yes(text) && is_yes(option) || is_no(text) && is_no(option)
                };
                let option = self.options.iter().find(matches).cloned();
                option.or_else(|| (!text.is_empty()).then(|| text.to_owned()))
            }
        }
    }

    /// Whether a program asks that works on a step of a workflow. It waits for the answer while its task runs.
    pub fn is_of_program(&self) -> bool {
        let may_be = matches!(self.kind, QuestionKind::Permission | QuestionKind::Runner);
        may_be && self.call.is_none() && self.binding.is_some()
    }

    /// The option of this number, or of these words in any case.
    fn option(&self, text: &str) -> Option<&String> {
        let number = text.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
        let by_number = number.and_then(|index| self.options.get(index));
        by_number.or_else(|| self.options.iter().find(|option| option.eq_ignore_ascii_case(text)))
    }

    /// How an answer to a permission question is read; `None` when it is none of the answers.
    pub fn permission(&self, text: &str) -> Option<Permission> {
        let text = text.trim();
        let end = text.find(|char: char| !char.is_alphabetic()).unwrap_or(text.len());
        let (word, rest) = text.split_at(end);
        let [allow, deny, allow_all] = PERMISSION_OPTIONS;
        if is_no(word) || word.eq_ignore_ascii_case(deny) {
            let comment = comment_after(rest);
            return Some(Permission::Deny { comment });
        }
        // A yes with a condition is not a yes. What follows a colon is a remark, and `Allow: …` is read so in
        // journals.
        let said = text.split_once(':').map_or(text, |(said, _)| said.trim());
        if said.eq_ignore_ascii_case(allow) || is_yes(text) {
            return Some(Permission::Allow);
        }
        (said.eq_ignore_ascii_case(allow_all) && self.grants.is_some())
            .then_some(Permission::AllowAll)
    }
}

impl fmt::Display for Permission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [allow, deny, allow_all] = PERMISSION_OPTIONS;
        match self {
            Self::Allow => f.write_str(allow),
            Self::Deny { comment } if comment.is_empty() => f.write_str(deny),
            Self::Deny { comment } => write!(f, "{deny}: {comment}"),
            Self::AllowAll => f.write_str(allow_all),
        }
    }
}

/// What is said behind the word that decides.
pub(super) fn comment_after(rest: &str) -> String {
    let is_between = |char: char| char.is_whitespace() || ",:;.!-–—".contains(char);
    rest.trim_start_matches(is_between).trim_end().to_owned()
}

pub(super) fn is_yes(text: &str) -> bool {
    ["y", "yes"].iter().any(|word| word.eq_ignore_ascii_case(text))
}

pub(super) fn is_no(text: &str) -> bool {
    ["n", "no"].iter().any(|word| word.eq_ignore_ascii_case(text))
}
