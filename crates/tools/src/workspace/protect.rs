//! Which names file tools never write, and what writing others means.
//!
//! Invariants:
//! - Judged by the path that was walked, links resolved, not by the path the agent wrote.
//! - Case is ignored: on a file system that folds case `.GIT/Hooks` is the same directory.
//! - All of `.git` is closed to writing, not only hooks and configuration: what makes git run a program
//!   (`config.worktree`, `modules/*/config`, `commondir`, a `.git` file that points elsewhere…) changes
//!   with its versions, and an agent changes a repository with `git`.

use windlass_core::layout::{Layout, Own, Ownership};
use windlass_core::policy::{Assessment, Class, Risk};

use super::Error;
use super::walk::{Root, Spot};

/// On whose behalf something is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// The agent's, by a file tool.
    Agent,
    /// The working plan's, by `update_plan`.
    Plan,
    /// Ours: layout and outputs.
    Harness,
}

/// What a file is beyond its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    Ordinary,
    /// It holds secrets; a person is asked.
    Secret,
    /// It changes what agents may do or read as instructions; a person is asked.
    Rule,
}

impl FileKind {
    /// What changing such a file is: `usual` for an ordinary one.
    pub fn change(self, verb: &str, path: &str, usual: Assessment) -> Assessment {
        match self {
            Self::Ordinary => usual,
            Self::Secret => {
                Assessment::of(Class::Destructive, format!("{verb} `{path}`, which holds secrets"))
            }
            Self::Rule => {
                let reason = format!("{verb} `{path}`, which says what an agent may do");
                Assessment::of(Class::Production, reason)
            }
        }
    }

    /// What reading such a file is: `usual` for one without secrets.
    pub fn read(self, path: &str, usual: Assessment) -> Assessment {
        match self {
            Self::Ordinary | Self::Rule => usual,
            Self::Secret => {
                Assessment::of(Class::Read, format!("`{path}` holds secrets")).at_least(Risk::High)
            }
        }
    }
}

/// Refuses a walked path, relative to the workspace, that `purpose` may not write.
pub(super) fn writable(parts: &[&str], purpose: Purpose, layout: &Layout) -> Result<(), Error> {
    let refused = |why| Err(Error::Protected { path: layout.relative(&parts.join("/")), why });
    if purpose == Purpose::Harness {
        return Ok(());
    }
    refuse_git(parts, || layout.relative(&parts.join("/")))?;
    if parts.is_empty() {
        return refused("it is the workspace itself");
    }
    match layout.ownership(parts) {
        Ownership::This { own: Own::Trace, .. } => refused("traces are read-only"),
        Ownership::This { own: Own::Plan, depth } => match purpose {
            Purpose::Plan if depth == 0 => Ok(()),
            Purpose::Agent | Purpose::Plan | Purpose::Harness => {
                refused("it is the working plan; use update_plan")
            }
        },
        Ownership::This { own: Own::Proposal, .. } => {
            refused("it is the plan that the user decides about; your final message becomes it")
        }
        Ownership::OtherTask => refused("it belongs to another task, whose files are read-only"),
        _ if purpose == Purpose::Plan && !holds(parts, &layout.inner(Own::Plan)) => {
            refused("the working plan is kept in its own file alone")
        }
        Ownership::This { .. } | Ownership::TaskDirectory | Ownership::Nobody => Ok(()),
    }
}

/// Refuses a spot that is none of this task's own files: a link among them leads there.
pub(super) fn refuse_elsewhere(spot: &Spot, layout: &Layout) -> Result<(), Error> {
    let owner = layout.ownership(&spot.parts());
    let is_own = matches!(owner, Ownership::This { .. } | Ownership::TaskDirectory);
    match is_own && spot.place == Root::Workspace {
        true => Ok(()),
        false => {
            let why = "a link among the task's own files leads there";
            Err(Error::Protected { path: spot.path(), why })
        }
    }
}

/// Whether a directory is on the way to a file; it is made with the file.
fn holds(parts: &[&str], file: &str) -> bool {
    let mut names = file.split('/');
    parts.iter().all(|part| names.next().is_some_and(|name| part.eq_ignore_ascii_case(name)))
}

/// The same for a directory that was added to the workspace.
pub(super) fn refuse_git(parts: &[&str], shown: impl FnOnce() -> String) -> Result<(), Error> {
    if parts.iter().any(|part| part.eq_ignore_ascii_case(".git")) {
        let why = "it belongs to git, which runs programs named there; use git commands";
        return Err(Error::Protected { path: shown(), why });
    }
    Ok(())
}
