//! Finding, checking and reading skills.
/// Skills.
#[derive(Debug, Default)]
pub struct Skills;

impl Skills {
    /// None at all.
    pub fn empty() -> Self {
        Self
    }
}
