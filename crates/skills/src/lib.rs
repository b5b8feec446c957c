//! Finding, checking and reading skills.
/// x
pub struct Skills;
