//! The questions of a task that nobody has answered.

use std::collections::BTreeMap;

use crate::command::HitlRequest;
use crate::id::QuestionId;
use crate::question::{Question, QuestionKind};

/// Questions without an answer, by id.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OpenQuestions(BTreeMap<QuestionId, Question>);

impl OpenQuestions {
    pub fn iter(&self) -> impl Iterator<Item = &Question> {
        self.0.values()
    }

    pub fn get(&self, id: QuestionId) -> Option<&Question> {
        self.0.get(&id)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The one that no call waits for: it is about the whole task.
    pub fn about_task(&self) -> Option<&Question> {
        self.iter().find(|question| question.call.is_none())
    }

    /// Whether finished work waits for somebody to judge it.
    pub fn has_review(&self) -> bool {
        self.iter().any(|question| question.kind == QuestionKind::Review)
    }

    /// What is asked of a person, on the wire.
    pub fn hitl_request(&self) -> Option<HitlRequest> {
        self.iter().next().map(HitlRequest::from)
    }

    pub(super) fn add(&mut self, question: &Question) {
        self.0.insert(question.id, question.clone());
    }

    pub(super) fn remove(&mut self, id: QuestionId) -> Option<Question> {
        self.0.remove(&id)
    }
}
