//! The commitments that a task has to do with: those claimed for its agent, and those of the same work.

use std::path::Path;

use windlass_core::commitment::{CommitmentState, Party};
use windlass_core::id::SessionId;
use windlass_core::layout::LayoutKind;
use windlass_core::role::Role;
use windlass_core::state::TaskState;
use windlass_store::{CommitmentRow, Store};
use windlass_tools::workspace::repository::repository_of;

use crate::Error;
use crate::journal::Journal;

/// What is claimed in a session for work in a project: by one of its tasks, or there by the owner of the session.
/// `project` is the top of the workspace; without, the work has no project of its own.
pub fn held_for(
    store: &Store,
    session: SessionId,
    user: Option<&str>,
    project: Option<&str>,
) -> Result<Vec<CommitmentRow>, windlass_store::Error> {
    let mut held = store.commitments().claimed_in(session, user)?;
    held.retain(|row| match (&row.claimed_by, &row.project, project) {
        (Some(Party::Person(_)), Some(theirs), Some(own)) => is_same_project(theirs, own),
        (Some(Party::Person(_) | Party::Agent(_)) | None, _, _) => true,
    });
    Ok(held)
}

/// Whether both are one directory, or worktrees of one repository.
fn is_same_project(one: &str, other: &str) -> bool {
    let repository = |top: &str| repository_of(Path::new(top));
    one == other || repository(one).is_some_and(|found| repository(other) == Some(found))
}

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
    pub(crate) fn claimed_commitments(&self) -> Result<Vec<CommitmentRow>, Error> {
        let (session, user) = self.session_and_user();
        let created = &self.state.created;
        let project = match created.site.layout {
            LayoutKind::Personal => Some(created.boundary()),
            LayoutKind::Service => None,
        };
        Ok(held_for(self.store, session, user, project)?)
    }

    /// All commitments of this work.
    pub(crate) fn of_work(&self) -> Result<Vec<CommitmentRow>, Error> {
        let (session, user) = self.session_and_user();
        Ok(self.store.commitments().of_work(session, user)?)
    }

    /// The commitments that an executor reads about; empty for others.
    pub(crate) fn for_prompt(&self) -> String {
        if !self.state.role.is_some_and(Role::requires_commitment) {
            return String::new();
        }
        // Without the list the agent still has its role; the ledger's tools say what is wrong.
        let mut claimed = self.claimed_commitments().unwrap_or_default();
        // What is handed in is not worked on any more.
        if claimed.iter().any(|row| row.state == CommitmentState::Claimed) {
            claimed.retain(|row| row.state == CommitmentState::Claimed);
        }
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

    fn session_and_user(&self) -> (SessionId, Option<&'a str>) {
        (self.state.command().session_id, self.state.created.user_id.as_deref())
    }
}
