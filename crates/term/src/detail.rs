//! How much of commands, outputs and changes is shown.

/// How much is shown of what is long.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Detail {
    /// Long commands, outputs and diffs are folded, and say how much is left out.
    #[default]
    Brief,
    /// Everything is shown.
    Full,
}
