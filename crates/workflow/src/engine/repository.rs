//! The repository whose worktrees a run works in.

use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::{Trouble, Wait};
use crate::definition::{Checkout, Maker, WorktreeSpec};
use crate::git::{Git, GitError, Lock, Settings};

/// How often a held lock is tried again.
const LOCK_POLL: Duration = Duration::from_millis(50);

/// The repository, where steps work in worktrees of it.
pub(super) struct Repository(Option<Git>);

impl Repository {
    /// None: a run that has not looked, or that works in the directory itself.
    pub(super) const NONE: Self = Self(None);

    /// Looks at the repository of a directory, where the steps of a workflow need one.
    pub(super) async fn open(directory: &Path, place: &Checkout) -> Result<Self, String> {
        match place {
            Checkout::Worktree(WorktreeSpec { maker: Maker::Git(_), .. }) => {}
            Checkout::Worktree(WorktreeSpec { maker: Maker::Command { .. }, .. })
            | Checkout::Here => return Ok(Self::NONE),
        }
        let directory = directory.to_owned();
        let opened = tokio::task::spawn_blocking(move || Git::open(&directory)).await;
        let opened = opened.map_err(|error| error.to_string())?;
        let git = opened.map_err(|error| match error {
            GitError::NoRepository(_) => {
                format!("{error}; run `git init`, or write `worktree: false` into the workflow")
            }
            GitError::Missing => {
                format!("{error}; install it, or write `worktree: false` into the workflow")
            }
            other => other.to_string(),
        })?;
        Ok(Self(Some(git)))
    }

    /// What all its worktrees share; `None` where the run works in no repository.
    pub(super) fn common(&self) -> Option<PathBuf> {
        self.0.as_ref().map(|git| git.common().to_owned())
    }

    /// The repository's own settings, where they have git run commands.
    pub(super) async fn settings(&self, is_fetching: bool) -> Result<Option<Settings>, GitError> {
        let Some(git) = self.0.clone() else { return Ok(None) };
        let read = tokio::task::spawn_blocking(move || git.commanding_settings(is_fetching)).await;
        read.map_err(|error| GitError::Unusable(error.to_string()))?
    }

    /// Waits for a lock of the repository that others hold for longer than git calls take.
    pub(super) async fn wait_for(
        &self,
        lock: &'static str,
        halt: &CancellationToken,
    ) -> Result<Lock, Trouble> {
        loop {
            if let Some(lock) = self.with(move |git| git.try_lock(lock)).await? {
                return Ok(lock);
            }
            tokio::select! {
                () = halt.cancelled() => return Err(Trouble::Wait(Wait::Parked)),
                () = tokio::time::sleep(LOCK_POLL) => {}
            }
        }
    }

    /// Runs git where it holds up nothing else.
    pub(super) async fn with<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Git) -> Result<T, GitError> + Send + 'static,
    ) -> Result<T, Trouble> {
        let Some(git) = self.0.clone() else {
            return Err(Trouble::Failed("the run works in no repository".to_owned()));
        };
        match tokio::task::spawn_blocking(move || work(&git)).await {
            Ok(done) => Ok(done?),
            Err(error) => Err(Trouble::Failed(error.to_string())),
        }
    }
}
