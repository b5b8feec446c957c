//! The directories every workspace has.

use std::path::Path;

use rustix::fs::{AtFlags, FileType, Mode};
use rustix::io::Errno;

use super::{OpenError, Workspace};

/// Durable notes (ES-037).
pub const MEMO_DIRECTORY: &str = ".memo";
/// Temporary notes and whole outputs (ES-038).
pub const SCRATCH_DIRECTORY: &str = ".scratch";
/// Deliverables for the user (ES-039).
pub const OUTPUT_DIRECTORY: &str = "output";

impl Workspace {
    /// Makes the directories that are missing (ES-173).
    pub(super) fn lay_out(&self, given: &Path) -> Result<(), OpenError> {
        let path = || given.to_owned();
        for name in [MEMO_DIRECTORY, SCRATCH_DIRECTORY, OUTPUT_DIRECTORY] {
            match rustix::fs::mkdirat(&self.root, name, Mode::from_raw_mode(0o777)) {
                Ok(()) => super::write::give_to_owner_of(&self.root, name),
                Err(Errno::EXIST) => {}
                Err(errno @ (Errno::ACCESS | Errno::PERM | Errno::ROFS)) => {
                    return Err(OpenError::NotWritable { path: path(), source: errno.into() });
                }
                Err(errno) => return Err(OpenError::Io { path: path(), source: errno.into() }),
            }
            // A link to a directory is the user's choice; writes through it still cannot leave.
            let stat = rustix::fs::statat(&self.root, name, AtFlags::empty());
            if !stat.is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Directory)
            {
                return Err(OpenError::InTheWay { path: path(), name });
            }
        }
        Ok(())
    }
}
