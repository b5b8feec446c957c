//! Why the loop cannot work on a task at all.

use std::io;

use windlass_core::id::TaskId;
use windlass_core::state::FoldError;

/// Why the loop could not continue at all; the task is left as its journal says.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The journal could not be read or written.
    #[error("the journal could not be read or written")]
    Store(#[from] windlass_store::Error),
    /// The trace could not be written.
    #[error("the trace could not be written")]
    Trace(#[from] io::Error),
    /// The journal contradicts itself.
    #[error("the journal of `{task}` contradicts itself")]
    Corrupt { task: TaskId, source: FoldError },
    /// There is no such journal.
    #[error("`{task}` has no journal")]
    Empty { task: TaskId },
}
