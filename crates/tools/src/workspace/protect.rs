//! Which names file tools never write, and which they never even show.
//!
//! Invariants:
//! - Judged by the path that was walked, links resolved, not by the path the agent wrote.
//! - Case is ignored: on a file system that folds case `.GIT/Hooks` is the same directory.
//! - All of `.git` is closed to writing, not only hooks and configuration: what makes git run a program
//!   (`config.worktree`, `modules/*/config`, `commondir`, a `.git` file that points elsewhere…) changes
//!   with its versions, and an agent changes a repository with `git`.

use super::Error;

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

/// The file of the working plan.
pub const PLAN_FILE: &str = ".plan.md";
/// Where traces are shown.
pub const TRACE_DIRECTORY: &str = ".trace";

/// Refuses a walked path, relative to the workspace, that `purpose` may not write.
pub(super) fn writable(parts: &[&str], purpose: Purpose) -> Result<(), Error> {
    let refused = |why| Err(Error::Protected { path: parts.join("/"), why });
    let is = |part: &str, name: &str| part.eq_ignore_ascii_case(name);
    if purpose == Purpose::Harness {
        return Ok(());
    }
    if parts.iter().any(|part| is(part, ".git")) {
        return refused("it belongs to git, which runs programs named there; use git commands");
    }
    match parts {
        [] => refused("it is the workspace itself"),
        [first, ..] if is(first, TRACE_DIRECTORY) => refused("traces are read-only"),
        [first, rest @ ..] if is(first, PLAN_FILE) => match purpose {
            Purpose::Plan if rest.is_empty() => Ok(()),
            _ => refused("it is the working plan; use update_plan"),
        },
        _ if purpose == Purpose::Plan => refused("the working plan is kept in `.plan.md` alone"),
        _ => Ok(()),
    }
}
