//! A working day in four real projects, each made by its own tools: edits, tests, installs, commits, a denied push,
//! an approval with a diff, a follow-up. Afterwards `git status` shows only what the goal asked for.
//!
//! Each day is spent as whoever runs the tests, and where that is root once more as an ordinary user. That user can
//! not enter root's own Rust toolchain, so their day has no cargo project.

#![expect(clippy::unwrap_used, reason = "tests fail by panic")]

#[allow(dead_code, reason = "other binaries use the rest")]
#[path = "../it/program.rs"]
mod program;
mod machine;
mod python;
mod rust;
mod npm;
mod worktree;

/// What the tests of this binary run in.
const SANDBOX: program::Tested = program::Tested::Local;
