//! The bodies of the events that end a question. The question itself is the body of `question_asked`.

use serde::{Deserialize, Serialize};

use crate::id::QuestionId;
use crate::question::Answer;

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
