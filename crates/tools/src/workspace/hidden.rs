//! Windlass's own data and configuration, which agents do not see even where it lies in the workspace.

use std::path::Path;

use super::{Error, Workspace, identity};

const WHY: &str = "it is windlass's own data or configuration";

/// What agents do not see of one workspace.
#[derive(Clone, Copy)]
pub(super) struct HiddenPlaces<'w> {
    pub(super) workspace: &'w Workspace,
}

impl HiddenPlaces<'_> {
    /// Refuses a path below the top, part by part.
    pub(super) fn refuse(self, parts: &[&str], asked: &str) -> Result<(), Error> {
        let is_named = self.workspace.hidden.iter().any(|names| {
            parts.len() >= names.len()
                && names.iter().zip(parts).all(|(name, part)| name.eq_ignore_ascii_case(part))
        });
        match is_named || self.is_moved(parts) {
            true => Err(Error::Hidden { path: asked.to_owned(), why: WHY }),
            false => Ok(()),
        }
    }

    /// The same for everything on the way to a path.
    pub(super) fn refuse_on_the_way(self, parts: &[&str], asked: &str) -> Result<(), Error> {
        // Names are compared from the top; only what was moved has to be looked for on the way.
        let first = if self.workspace.hidden_files.is_empty() { parts.len() } else { 0 };
        (first..=parts.len()).try_for_each(|end| self.refuse(&parts[..end], asked))
    }

    /// The same for a path in full, in a directory that was added.
    pub(super) fn refuse_full(self, path: &str) -> Result<(), Error> {
        let hidden = &self.workspace.places.hidden;
        match hidden.iter().any(|hidden| Path::new(path).starts_with(hidden)) {
            true => Err(Error::Hidden { path: path.to_owned(), why: WHY }),
            false => Ok(()),
        }
    }

    /// Whether this is what is hidden, at another path than before.
    fn is_moved(self, parts: &[&str]) -> bool {
        let Workspace { hidden_files, real, .. } = self.workspace;
        !hidden_files.is_empty()
            && !parts.is_empty()
            && identity(&real.join(parts.join("/")))
                .is_some_and(|found| hidden_files.contains(&found))
    }
}
