//! One question of the inbox.

use windlass_store::{QuestionRow, TaskRow};

/// A question, and the task that asks it.
#[derive(Clone, Debug, PartialEq)]
pub struct OpenQuestion {
    /// What is asked.
    pub row: QuestionRow,
    pub asker: Option<TaskRow>,
}

impl OpenQuestion {
    /// The sub-agent that asks, where it is not the task that a person has started.
    pub fn sub_agent(&self) -> Option<&TaskRow> {
        self.asker.as_ref().filter(|task| task.parent_id.is_some())
    }
}
