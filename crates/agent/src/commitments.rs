//! The commitments that a task has to do with: those claimed for its agent, and those of the same work.

use windlass_core::id::SessionId;
use windlass_core::role::Role;
use windlass_core::state::TaskState;
use windlass_store::{CommitmentRow, Store};

use crate::Error;
use crate::journal::Journal;

/// The commitments of one task's session and person.
pub(crate) struct Commitments<'a> {
    store: &'a Store,
    state: &'a TaskState,
}

impl<'a> Commitments<'a> {
    pub(crate) fn new(store: &'a Store, state: &'a TaskState) -> Self {
        Self { store, state }
    }

    pub(crate) fn of(task: &'a Journal) -> Self {
        Self::new(task.store(), task.state())
    }

    /// What is claimed for the agent.
    pub(crate) fn claimed(&self) -> Result<Vec<CommitmentRow>, Error> {
        let (session, user) = self.whose();
        Ok(self.store.commitments().held_in(session, user)?)
    }

    /// All commitments of this work.
    pub(crate) fn of_work(&self) -> Result<Vec<CommitmentRow>, Error> {
        let (session, user) = self.whose();
        Ok(self.store.commitments().of_work(session, user)?)
    }

    /// The commitments that an executor reads about; empty for others.
    pub(crate) fn for_prompt(&self) -> String {
        if !self.state.role.is_some_and(Role::requires_commitment) {
            return String::new();
        }
        // Without the list the agent still has its role; the ledger's tools say what is wrong.
        let claimed = self.claimed().unwrap_or_default();
        claimed.iter().map(|row| self.paragraph(row)).collect::<Vec<_>>().join("\n")
    }

    fn paragraph(&self, row: &CommitmentRow) -> String {
        match self.store.commitments().get(row.id) {
            Ok(found) if !found.body.is_empty() => {
                let body = found.body.trim().replace('\n', "\n  ");
                format!("- `{}` {}\n\n  {body}", row.id, row.title)
            }
            Ok(_) | Err(_) => format!("- `{}` {}", row.id, row.title),
        }
    }

    fn whose(&self) -> (SessionId, Option<&'a str>) {
        (self.state.command().session_id, self.state.created.user_id.as_deref())
    }
}
