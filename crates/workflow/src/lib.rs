//! Workflows: files of steps that run agents in git worktrees, ours and others', and merge what they did.
//!
//! A run is a task whose journal holds its steps; the steps that work are tasks below it. So questions, answers,
//! cancelling and resuming are those of every task.
//!
//! Invariants:
//! - Journal first: a step, a worktree and a merge are journaled before anything of them happens.
//! - State is a fold ([`RunState`]); what comes next is a pure function of it ([`next::Run::next`]).
//! - A step that has ended never runs again by itself. One whose end is not known is a person's decision, unless the
//!   file says that it may be repeated.
//! - Nobody's work is lost: a worktree goes only when everything in it is elsewhere.

pub mod definition;
pub mod template;
pub mod spell;
pub mod files;
pub mod output;
pub mod state;
pub mod next;
pub mod git;
pub mod worktree;
pub mod merge;
pub mod changes;
pub mod parallel;
pub mod runner;
mod host;
mod engine;

use std::pin::Pin;

pub use engine::{Engine, Error, Rendered, SegmentResult, Setting, TRUST_OPTIONS, render};
pub use host::{Host, RunnerPlace};
pub use output::AgentOutput;
pub use state::RunState;

/// A future behind an object-safe interface.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;
