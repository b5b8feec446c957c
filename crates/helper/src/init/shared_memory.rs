//! Shared memory that commands left behind in a container, where they cannot have a namespace of their own for it.

use std::fs;

use super::Init;
use windlass_helper::protocol::Isolation;

impl Init<'_> {
    /// Removes what is left when no command runs that could still use it.
    pub(super) fn clear_shared_memory(&self) {
        if self.setup.isolation != Isolation::Container || !self.commands.is_empty() {
            return;
        }
        let table = fs::read_to_string("/proc/sysvipc/shm").unwrap_or_default();
        for row in table.lines().skip(1) {
            if let Some(id) = row.split_whitespace().nth(1).and_then(|id| id.parse().ok()) {
                // SAFETY: removing a segment takes its number and no memory of ours.
                unsafe { libc::shmctl(id, libc::IPC_RMID, std::ptr::null_mut()) };
            }
        }
        for entry in fs::read_dir("/dev/shm").into_iter().flatten().flatten() {
            let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
            let _ = match is_directory {
                true => fs::remove_dir_all(entry.path()),
                false => fs::remove_file(entry.path()),
            };
        }
    }
}
