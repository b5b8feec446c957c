//! The repository whose worktrees a run works in.

use std::path::Path;

use super::Trouble;
use crate::definition::Checkout;
use crate::git::{Git, GitError};

/// The repository, where steps work in worktrees of it.
pub(super) struct Repository(Option<Git>);

impl Repository {
    /// None: a run that has not looked, or that works in the directory itself.
    pub(super) const NONE: Self = Self(None);

    /// Looks at the repository of a directory, where the steps of a workflow need one.
    pub(super) async fn open(directory: &Path, place: &Checkout) -> Result<Self, String> {
        if *place == Checkout::Here {
            return Ok(Self::NONE);
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
