//! What the tasks of a run find in their sandbox besides the directory that they work in.

use std::path::Path;

use windlass_core::event::WorktreeChanged;
use windlass_core::layout::{AddedDirectory, Site};

use crate::definition::Checkout;
use crate::engine::Engine;
use crate::engine::children::NewTask;
use crate::state::RunState;
use crate::worktree;

impl Engine<'_> {
    /// Where a task of the run works: with the port and the shared directories of its worktree, and with the workspace
    /// that it makes or removes.
    pub(in crate::engine) async fn site_for(&self, wanted: &NewTask<'_>) -> Site {
        let mut site = self.host.site(wanted.directory);
        let port = self
            .journal
            .read(|_, run| worktree_at(run, wanted.directory).map(|tree| tree.port))
            .await;
        if let Some(port) = port {
            if let Some(port) = port {
                for name in ["PORT", "WINDLASS_PORT"] {
                    site.variables.insert(name.to_owned(), port.to_string());
                }
            }
            self.share_caches(&mut site).await;
        }
        if let Some(workspace) = wanted.workspace {
            let path = workspace.display().to_string();
            site.variables.insert("WINDLASS_WORKSPACE".to_owned(), path.clone());
            let source = self.directory.display().to_string();
            site.variables.insert("WINDLASS_SOURCE".to_owned(), source);
            site.added.push(AddedDirectory { path, writable: true });
        }
        site
    }

    /// Shows the directories that all worktrees of a repository share. One that cannot be made is left out: the build
    /// is then as slow as without.
    async fn share_caches(&self, site: &mut Site) {
        let Checkout::Worktree(spec) = &self.workflow.place else { return };
        let of_git = self.repository.with(|git| Ok(worktree::repository_name(git))).await;
        let name = of_git.unwrap_or_else(|_| worktree::name_after(&self.directory));
        let caches = self.host.caches().join(name);
        for (variable, directory) in &spec.cache {
            let path = caches.join(directory);
            if std::fs::create_dir_all(&path).is_ok() {
                let path = path.display().to_string();
                site.variables.insert(variable.clone(), path.clone());
                site.added.push(AddedDirectory { path, writable: true });
            }
        }
    }
}

/// The worktree that a directory is, or whose merged work is checked there.
fn worktree_at<'r>(run: &'r RunState, directory: &Path) -> Option<&'r WorktreeChanged> {
    run.worktrees.values().find(|tree| {
        Path::new(&tree.path) == directory || worktree::scratch_of(&tree.path) == directory
    })
}
