//! What commands may use of the machine.

use std::time::Duration;

/// What commands may use, all together where the kernel lets us count together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResourceLimits {
    /// Memory of the whole task with a control group, of each process without.
    pub memory_bytes: u64,
    /// How many processes may run at once.
    pub processes: u64,
    /// Open files of each process.
    pub open_files: u64,
    /// The largest single file.
    pub file_bytes: u64,
    /// All temporary directories together; they live in memory.
    pub scratch_bytes: u64,
    /// How long commands run on when windlass sends no heartbeat; `None` where they wait for it, as long as
    /// its end of the channel is open.
    pub lease: Option<Duration>,
}

impl ResourceLimits {
    /// Enough for the builds and tests of large projects, too little to take a machine down.
    pub const DEFAULT: Self = Self {
        memory_bytes: 4 << 30,
        processes: 2048,
        open_files: 65_536,
        file_bytes: 16 << 30,
        scratch_bytes: 1 << 30,
        lease: None,
    };
}
