//! Finding and listing conversations, and their limit per user.

use windlass_core::id::SessionId;
use windlass_store::{Filter, ModeTransition, SessionPlace, SessionRow};

use crate::views::{SessionSummary, SessionView, TaskEntry};
use crate::{Coordinator, Error};

/// Tasks of a session that are listed, the newest.
const MAX_TASKS: usize = 1000;

#[derive(Clone, Copy)]
pub struct Sessions<'a> {
    pub(crate) coordinator: &'a Coordinator,
}

impl Sessions<'_> {
    /// A session by its id or by the end of it.
    pub fn find(self, text: &str) -> Result<Option<SessionId>, Error> {
        Ok(self.coordinator.store.ids().session(text)?)
    }

    /// The sessions that changed last.
    pub fn newest(self, limit: u32) -> Result<Vec<SessionRow>, Error> {
        Ok(self.coordinator.store.sessions().newest(limit)?)
    }

    /// The same as lists show them.
    pub fn summaries(self, limit: u32) -> Result<Vec<SessionSummary>, Error> {
        let summary = |row: SessionRow| -> Result<SessionSummary, Error> {
            let first = row.tasks.first().map(|&task| self.coordinator.tasks().get(task));
            let (goal, workspace) =
                first.transpose()?.flatten().map(|task| (task.goal, task.workspace)).unzip();
            let directory = row.workspace.clone().or(workspace);
            Ok(SessionSummary { row, goal, directory })
        };
        self.newest(limit)?.into_iter().map(summary).collect()
    }

    /// The same from behind a place in that order.
    pub fn newest_after(
        self,
        place: Option<SessionPlace>,
        limit: u32,
    ) -> Result<Vec<SessionRow>, Error> {
        Ok(self.coordinator.store.sessions().newest_after(place, limit)?)
    }

    /// The newest session in which a person worked in this directory.
    pub fn newest_in(self, workspace: &str) -> Result<Option<SessionId>, Error> {
        Ok(self.coordinator.store.sessions().newest_in(workspace)?.map(|row| row.id))
    }

    /// The changes of a session's axes, oldest first.
    pub fn transitions(self, session: SessionId) -> Result<Vec<ModeTransition>, Error> {
        Ok(self.coordinator.store.sessions().transitions(session)?)
    }

    /// A session as it stands; one that nobody has used is empty.
    pub fn view(self, session_id: SessionId) -> Result<SessionView, Error> {
        let store = &self.coordinator.store;
        let row = store.sessions().get(session_id)?;
        let filter = Filter {
            session: Some(session_id),
            roots: true,
            limit: Some(MAX_TASKS),
            ..Filter::default()
        };
        let mut tasks = Vec::new();
        for task in store.tasks().list(&filter)?.iter().rev() {
            tasks.push(TaskEntry::of(task, self.coordinator.queue().place(task.id)?));
        }
        Ok(SessionView {
            session_id,
            user_id: row.as_ref().and_then(|row| row.user_id.clone()).unwrap_or_default(),
            tasks,
            active_task_id: row.and_then(|row| row.active_task_id),
        })
    }

    /// Refuses a session too many of one user; a session that has live tasks counts already.
    pub(crate) fn check_limit(self, user: &str, session: SessionId) -> Result<(), Error> {
        let limit = self.coordinator.limits.sessions_per_user;
        match self.coordinator.store.sessions().count_other_live(user, session)? >= limit {
            true => Err(Error::TooManySessions { user: user.to_owned(), limit }),
            false => Ok(()),
        }
    }
}
