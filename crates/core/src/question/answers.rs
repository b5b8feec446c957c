//! How what a person typed is read as an answer: an option's number or words, yes, no, an amount, or no with a
//! word to the agent.

use std::fmt;

use super::{
    AcceptedAnswers, MAX_DOLLARS, MAX_ROUNDS, MAX_UNITS, PERMISSION_OPTIONS, Permission,
    PlanAnswer, Question, QuestionKind, ReviewAnswer,
};
use crate::state::spending::{STOP, raise};

impl Question {
    /// The answer that a typed text stands for, in the words that are journaled; `None` when it is not an answer.
    pub fn read_answer(&self, typed: &str) -> Option<String> {
        let text = typed.trim();
        if let Some(option) = self.option(text) {
            return Some(option.clone());
        }
        if self.is_missing_number(text) {
            return None;
        }
        match self.kind {
            QuestionKind::Permission => self.permission(text).map(|given| given.to_string()),
            QuestionKind::Budget if is_yes(text) => self.options.first().cloned(),
            QuestionKind::Budget if is_no(text) => Some(STOP.to_owned()),
            QuestionKind::Budget => {
                raise(text).filter(|by| *by <= self.largest_raise()).map(|_| text.to_owned())
            }
            QuestionKind::Plan => PlanAnswer::read(text).map(|given| given.to_string()),
            // Without a second option there is no way to continue unrepaired.
            QuestionKind::Repair if is_yes(text) => self.options.first().cloned(),
            QuestionKind::Repair if is_no(text) => self.options.get(1).cloned(),
            QuestionKind::Repair => None,
            QuestionKind::Review => ReviewAnswer::read(text).map(|given| given.to_string()),
            QuestionKind::AskUser | QuestionKind::Runner => self.choice(text),
        }
    }

    /// By how much one answer may raise a budget.
    fn largest_raise(&self) -> f64 {
        if self.accepts == AcceptedAnswers::Dollars { MAX_DOLLARS } else { MAX_UNITS }
    }

    /// What is answered to a question of an agent, a program or a workflow.
    fn choice(&self, text: &str) -> Option<String> {
        let matches =
            |option: &&String| is_yes(text) && is_yes(option) || is_no(text) && is_no(option);
        if let Some(option) = self.options.iter().find(matches) {
            return Some(option.clone());
        }
        match self.accepts {
            AcceptedAnswers::Words | AcceptedAnswers::Dollars => {
                (!text.is_empty()).then(|| text.to_owned())
            }
            AcceptedAnswers::Options => None,
            AcceptedAnswers::YesNo if is_yes(text) => self.options.first().cloned(),
            AcceptedAnswers::YesNo if is_no(text) => self.options.get(1).cloned(),
            AcceptedAnswers::YesNo => None,
            AcceptedAnswers::Rounds => rounds(text).map(|_| text.to_owned()),
        }
    }

    /// Whether it is a number that the list of options does not have. Not for an amount of money; and if the options
    /// are numbers themselves, another number is an answer.
    fn is_missing_number(&self, text: &str) -> bool {
        let is_number = |text: &str| text.parse::<i64>().is_ok();
        self.kind != QuestionKind::Budget
            && !self.options.is_empty()
            && is_number(text)
            && !self.options.iter().any(|option| is_number(option))
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

    /// What `Allow All` would allow and where, in words; `None` where it is not offered.
    pub fn allow_all_description(&self) -> Option<String> {
        let scope = self.asked.as_ref().map(|asked| asked.rule_scope).unwrap_or_default();
        self.grants.as_ref().map(|rule| rule.describe(scope))
    }

    /// How an answer to a permission question is read; `None` when the text is not one of the answers.
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

/// How many rounds words such as `5 more rounds` name.
fn rounds(text: &str) -> Option<u32> {
    let (count, unit) = text.trim().split_once(' ')?;
    let is_unit = ["round", "rounds", "more", "more round", "more rounds"].contains(&unit.trim());
    count.parse().ok().filter(|count| is_unit && (1..=MAX_ROUNDS).contains(count))
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
