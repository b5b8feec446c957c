//! Finding and listing conversations, and their limit per user.

use windlass_core::id::{SessionId, TaskId};
use windlass_core::policy::AllowRule;
use windlass_store::{Filter, ModeTransition, SessionFilter, SessionPlace, SessionRow};

use crate::views::{SessionSummary, SessionView, TaskEntry};
use crate::{Coordinator, Error};

/// Tasks of a session that are listed, the newest.
const MAX_TASKS: usize = 1000;

/// A rule from `Allow All`, and where it holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionRule {
    pub session: SessionId,
    /// The one task that it holds for, unless it holds for the session.
    pub task: Option<TaskId>,
    pub rule: AllowRule,
}

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

    /// Those that pass a filter and have a task, the last used first.
    pub fn list(self, filter: &SessionFilter<'_>, limit: u32) -> Result<Vec<SessionRow>, Error> {
        Ok(self.coordinator.store.sessions().list(filter, limit)?)
    }

    /// The newest ones as lists show them.
    pub fn summaries(self, limit: u32) -> Result<Vec<SessionSummary>, Error> {
        self.newest(limit)?.into_iter().map(|row| self.summarize(row)).collect()
    }

    /// One session as lists show it; nothing, where nobody has used it.
    pub fn summary(self, session: SessionId) -> Result<Option<SessionSummary>, Error> {
        let row = self.coordinator.store.sessions().get(session)?;
        row.map(|row| self.summarize(row)).transpose()
    }

    fn summarize(self, row: SessionRow) -> Result<SessionSummary, Error> {
        let first = row.tasks.first().map(|&task| self.coordinator.tasks().get(task));
        let (goal, workspace) =
            first.transpose()?.flatten().map(|task| (task.goal, task.workspace)).unzip();
        let directory = row.workspace.clone().or(workspace);
        Ok(SessionSummary { row, goal, directory })
    }

    /// The same, beginning after a place in that order.
    pub fn newest_after(
        self,
        place: Option<SessionPlace>,
        limit: u32,
    ) -> Result<Vec<SessionRow>, Error> {
        self.newest_of(None, place, limit)
    }

    /// The same: those of a user, or everybody's.
    pub fn newest_of(
        self,
        user: Option<&str>,
        place: Option<SessionPlace>,
        limit: u32,
    ) -> Result<Vec<SessionRow>, Error> {
        Ok(self.coordinator.store.sessions().newest_after(user, place, limit)?)
    }

    /// The newest session in which a person worked in this directory.
    pub fn newest_in(self, workspace: &str) -> Result<Option<SessionId>, Error> {
        Ok(self.coordinator.store.sessions().newest_in(workspace)?.map(|row| row.id))
    }

    /// The session of this directory that was used last: a conversation, or that of a task which nobody attended.
    pub fn last_in(self, workspace: &str) -> Result<Option<SessionId>, Error> {
        let sessions = self.coordinator.store.sessions();
        let filter = SessionFilter { workspace: Some(workspace), archived: false };
        let of_tasks = sessions.list(&filter, 1)?;
        let of_both = sessions.newest_in(workspace)?.into_iter().chain(of_tasks);
        Ok(of_both.max_by_key(|row| (row.updated_at, row.id)).map(|row| row.id))
    }

    /// What is allowed in sessions and for single tasks, by `Allow All`.
    pub fn rules(self) -> Result<Vec<SessionRule>, Error> {
        let sessions = self.coordinator.store.sessions();
        let mut rules = Vec::new();
        for session in sessions.with_granted_rules()? {
            let state = sessions.state(session)?;
            let own = state.map(|(state, _)| state.rules).unwrap_or_default();
            rules.extend(own.into_iter().map(|rule| SessionRule { session, task: None, rule }));
        }
        let of_sessions = rules.len();
        let live = Filter { live: true, ..Filter::default() };
        for task in self.coordinator.tasks().rows(&live)? {
            let of_session = |rule: &&AllowRule| {
                let session = task.session_id;
                rules[..of_sessions].iter().any(|one| one.session == session && one.rule == **rule)
            };
            let state = self.coordinator.tasks().state(task.id)?;
            let own: Vec<_> = state.allow_rules.iter().filter(|rule| !of_session(rule)).collect();
            rules.extend(own.into_iter().cloned().map(|rule| SessionRule {
                session: task.session_id,
                task: Some(task.id),
                rule,
            }));
        }
        Ok(rules)
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
