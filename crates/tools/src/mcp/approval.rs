//! A check that what a person approved is still what a server would run.

use std::sync::Arc;

/// Looks, before each start of a server, whether the approval that it was offered by still holds. The error says what
/// changed.
#[derive(Clone)]
pub struct ApprovalCheck(Arc<dyn Fn() -> Result<(), String> + Send + Sync>);

impl ApprovalCheck {
    /// A check by this function, which may read files.
    pub fn new(check: impl Fn() -> Result<(), String> + Send + Sync + 'static) -> Self {
        Self(Arc::new(check))
    }

    /// Whether the approval still holds, and if not, why.
    pub fn run(&self) -> Result<(), String> {
        (self.0)()
    }
}

impl PartialEq for ApprovalCheck {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for ApprovalCheck {}
