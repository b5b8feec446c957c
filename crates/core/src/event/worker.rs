//! What workers in worktrees record: what they will edit, and the state of their files.

use serde::{Deserialize, Serialize};

use crate::claim::Claim;

use super::Words;

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

impl Words for IntentClaimed {
    fn words(&self) -> String {
        format!("will edit {}", self.claim)
    }
}

impl Words for CheckpointMade {
    fn words(&self) -> String {
        self.checkpoint_ref.clone()
    }
}
