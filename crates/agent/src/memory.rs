//! Memories of earlier work, fetched once when a task begins (ES-019, ES-134).

use windlass_core::command::TaskCommand;
use windlass_core::error::{ErrorDetails, ErrorType, Remedy};
use windlass_model::ContextService;
use windlass_store::Store;

/// Memories that a task begins with; more would crowd the goal.
const MAX_MEMORIES: u32 = 8;

/// Where memories come from.
#[derive(Clone)]
pub enum MemorySource {
    /// From our own store.
    Embedded(Store),
    /// From a Context Service elsewhere.
    Service(ContextService),
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecalledMemories {
    /// What is worth knowing, best first.
    pub memories: Vec<String>,
    /// What is known of this very task.
    pub task_context: Option<String>,
}

impl MemorySource {
    /// What concerns a task in a project's directory. A service that does not answer fails it (ES-384).
    pub async fn recall(
        &self,
        command: &TaskCommand,
        project: &str,
    ) -> Result<RecalledMemories, ErrorDetails> {
        match self {
            Self::Embedded(store) => {
                let found = store
                    .memories()
                    .recall(&command.goal, project, command.session_id, MAX_MEMORIES)
                    .map_err(|error| ErrorDetails::new(ErrorType::Storage, error.to_string()))?;
                let memories = found.into_iter().map(|memory| memory.text).collect();
                Ok(RecalledMemories { memories, task_context: None })
            }
            Self::Service(service) => {
                let (task, session) = (command.task_id.to_string(), command.session_id.to_string());
                let found = service.fetch(&command.goal, &task, &session).await;
                let mut found = found.map_err(|error| {
                    ErrorDetails::new(ErrorType::ContextServiceUnavailable, error.to_string())
                        .with_remedy(Remedy::CheckContextService)
                })?;
                found.memories.truncate(MAX_MEMORIES as usize);
                Ok(RecalledMemories { memories: found.memories, task_context: found.task_context })
            }
        }
    }
}
