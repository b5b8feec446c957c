//! The bodies of the events that end a question, and of what an accepted plan is. The question itself is the body
//! of `question_asked`, a message from outside that of `injection_received`.

use serde::{Deserialize, Serialize};

use crate::axes::Axes;
use crate::id::QuestionId;
use crate::injection::Injection;
use crate::question::{Answer, Question};

use super::{Note, Words};

/// A person answered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct QuestionAnswered {
    pub question: QuestionId,
    pub answer: Answer,
}

/// A question is no longer open.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct QuestionClosed {
    pub question: QuestionId,
    /// Why it closed without an answer.
    pub reason: String,
}

/// A plan was accepted, and what it is carried out with: the approval as one record (MS-028).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlanAccepted {
    /// The question that was answered; none where nobody is asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<QuestionId>,
    /// Who accepted it.
    pub by: String,
    /// The file that it is in.
    pub path: String,
    pub text: String,
    /// Hash of the text.
    pub digest: String,
    /// Hash of the files that it was made for.
    pub tree: String,
    /// The axes that it is carried out with.
    pub axes: Axes,
    /// What the task may cost in all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget_usd: Option<f64>,
    /// What the agent reads.
    pub message: String,
}

impl Words for Injection {
    fn words(&self) -> String {
        let by = if self.by.is_empty() { "" } else { " by " };
        format!("{}{by}{}: {}", self.injection_type, self.by, self.content)
    }
}

impl Words for Question {
    fn words(&self) -> String {
        format!("{} ({})", self.question, self.id)
    }
}

impl Words for QuestionAnswered {
    fn words(&self) -> String {
        format!("{} ({})", self.answer.text, self.question)
    }
}

impl Words for QuestionClosed {
    fn words(&self) -> String {
        format!("{} ({})", self.reason, self.question)
    }
}

impl Words for PlanAccepted {
    fn words(&self) -> String {
        format!("{} accepted by {}", self.path, self.by)
    }

    fn note(&self) -> Option<Note> {
        Note::new(format!("Plan accepted by {}", self.by))
    }
}
