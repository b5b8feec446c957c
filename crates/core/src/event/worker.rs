//! What workers in worktrees record: what they will edit, and how far their files are.

use serde::{Deserialize, Serialize};

use crate::claim::Claim;

/// A worker says what it will edit, before it does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IntentClaimed {
    #[serde(flatten)]
    pub claim: Claim,
}

/// The state of a task's files was kept under a git ref.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckpointMade {
    /// The ref, in full.
    pub checkpoint_ref: String,
    /// The commit that it names.
    pub commit: String,
}
