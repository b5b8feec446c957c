//! The Context Service, embedded: memories in our own store, kept and found by any surface (ES-019).

use std::path::Path;

use windlass_core::command::{ResultStatus, TaskResult};
use windlass_core::event::Event;
use windlass_core::id::TaskId;
use windlass_core::state::TaskState;
use windlass_core::text::one_line;
use windlass_core::tool_name;
use windlass_store::{Memory, NewMemory};

use crate::{Coordinator, Error};

/// How much of a goal is remembered.
const GOAL_CHARS: usize = 300;

/// How much of an answer is remembered.
const ANSWER_CHARS: usize = 1_200;

/// How much of a note is remembered, and of how many, the newest.
const NOTE_CHARS: usize = 600;
const MAX_NOTES: usize = 5;

/// What is worth knowing beyond one task.
#[derive(Clone, Copy)]
pub struct Memories<'a> {
    pub(crate) coordinator: &'a Coordinator,
}

impl Memories<'_> {
    /// Keeps something that is worth knowing beyond one task; returns its number.
    pub async fn add(
        self,
        text: &str,
        tags: &[String],
        task: Option<TaskId>,
    ) -> Result<i64, Error> {
        let row = match task {
            Some(task) => self.coordinator.store.tasks().get(task)?,
            None => None,
        };
        let session = row.map(|row| row.session_id);
        let (text, tags) = (text.to_owned(), tags.to_vec());
        self.keep(NewMemory { text, tags, task, session, project: None }).await
    }

    /// Remembers what a finished task was to do, what came of it and what it noted, for later tasks of its project.
    pub(crate) async fn add_task(
        self,
        state: &TaskState,
        result: &TaskResult,
    ) -> Result<(), Error> {
        let (task, created) = (state.id(), &state.created);
        // A task's own directory is not a project: nobody works there again.
        let own = self.coordinator.store.dir().workspaces();
        let is_project = !Path::new(&created.workspace).starts_with(own);
        let is_finished = result.status == ResultStatus::Completed && created.parent.is_none();
        if !is_project || !is_finished {
            return Ok(());
        }
        // As it was journaled: without keys.
        let Some(result) = self.coordinator.tasks().last_result(task)? else { return Ok(()) };
        let answer = result.final_message.unwrap_or_default();
        let mut text = format!(
            "Goal: {}\nAnswer: {}",
            one_line(&created.command.goal, GOAL_CHARS),
            one_line(&answer, ANSWER_CHARS)
        );
        for (name, note) in self.notes(task)? {
            text.push_str(&format!("\nNote `{name}`: {}", one_line(&note, NOTE_CHARS)));
        }
        let memory = NewMemory {
            text,
            tags: vec!["task".to_owned()],
            task: Some(task),
            session: Some(created.command.session_id),
            project: Some(created.boundary().to_owned()),
        };
        self.keep(memory).await.map(drop)
    }

    /// The newest notes that a task has saved.
    fn notes(self, task: TaskId) -> Result<Vec<(String, String)>, Error> {
        let mut notes = Vec::new();
        for record in self.coordinator.journals().of(task)?.into_iter().rev() {
            let Event::ToolCall(call) = record.event else { continue };
            let text = |field: &str| call.arguments.get(field)?.as_str().map(str::to_owned);
            if call.tool == tool_name::SAVE_MEMO && notes.len() < MAX_NOTES {
                notes.extend(text("filename").zip(text("content")));
            }
        }
        notes.reverse();
        Ok(notes)
    }

    async fn keep(self, memory: NewMemory) -> Result<i64, Error> {
        Ok(self.coordinator.store.memories().add(self.coordinator.now(), memory).await?)
    }

    /// The memories that fit a query best: those of a project and those of all, or every one; of a user's tasks and of
    /// no task, or of everybody's.
    pub fn search(
        self,
        query: &str,
        project: Option<&str>,
        user: Option<&str>,
        limit: u32,
    ) -> Result<Vec<Memory>, Error> {
        Ok(self.coordinator.store.memories().search(query, project, user, limit)?)
    }
}
