//! The seam every tool stands behind.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde_json::Value;
use windlass_core::id::CallId;
use windlass_core::outcome::{Outcome, Recovery};
use windlass_core::policy::Assessment;

use crate::workspace::Workspace;
use windlass_skills::Skills;

/// What one agent's tools work with; the same for all its calls.
#[derive(Clone)]
pub struct World {
    /// The files it may touch.
    pub workspace: Arc<Workspace>,
    /// The skills it may read.
    pub skills: Arc<Skills>,
}

/// What the task's state knows that tools need.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// The version of each file that the agent has last seen or made, by path.
    pub known_files: BTreeMap<String, String>,
    /// The shell's directory, as the agent sees it.
    pub working_directory: Option<String>,
}

/// One call, its arguments already checked against the tool's schema.
#[derive(Clone, Debug)]
pub struct Call {
    /// Our id of it.
    pub id: CallId,
    /// Its arguments.
    pub arguments: Value,
    /// What the state knows.
    pub facts: Arc<Facts>,
}

/// The part of a call that changes things; run at most once.
pub type Act = Box<dyn FnOnce() -> BoxFuture<'static, Outcome> + Send>;

/// A call that is ready to be decided and run.
pub struct Prepared {
    /// What it would do.
    pub assessment: Assessment,
    /// How it is brought to a result after a crash.
    pub recovery: Recovery,
    /// Does it.
    pub act: Act,
}

/// One tool.
pub trait Tool: Send + Sync {
    /// The name the model calls it by.
    fn name(&self) -> &'static str;

    /// What it is for, in words for the model.
    fn description(&self) -> &'static str;

    /// The JSON schema of its arguments.
    fn parameters(&self) -> Value;

    /// Looks before it leaps: gathers what policy and recovery need and changes nothing. An `Err` is
    /// an outcome the model can act on; the call then never starts.
    fn prepare(&self, world: &World, call: Call) -> BoxFuture<'_, Result<Prepared, Outcome>>;
}
