//! The workspace.
/// x
pub struct Workspace;
