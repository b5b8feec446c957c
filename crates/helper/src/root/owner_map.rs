//! Another owner for commands in a workspace that is root's.
//!
//! A command that runs as root, even without any capability, still owns root's files and reads all of them. So it
//! runs as nobody instead, and the workspace is mounted with both owners exchanged: what is root's on the disk is
//! nobody's inside, and the other way round.

use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::Path;

use rustix::fs::CWD;
use rustix::mount::{MoveMountFlags, OpenTreeFlags};
use rustix::process::{Signal, WaitOptions};
use windlass_helper::protocol::{Access, Isolation, Setup};

use crate::sys;

/// The user and group without rights on every system.
const NOBODY: u32 = 65534;

/// A user namespace whose mapping exchanges root and nobody. Nothing runs in it.
pub struct OwnerMap {
    namespace: OwnedFd,
}

impl OwnerMap {
    /// Makes commands run as nobody where they would run as root, if the kernel can exchange the owners of everything
    /// that they may write to.
    pub fn apply(setup: &mut Setup) -> Option<Self> {
        let is_root = rustix::process::geteuid().is_root() && setup.uid == 0;
        if !is_root || setup.isolation != Isolation::Namespaces {
            return None;
        }
        let map = Self::new().ok()?;
        let added = setup.binds.iter().filter(|bind| bind.access == Access::Writable);
        for source in added.map(|bind| &bind.source).chain([&setup.workspace]) {
            map.clone_mount(Path::new(source)).ok()?;
        }
        (setup.uid, setup.gid) = (NOBODY, NOBODY);
        Some(map)
    }

    fn new() -> io::Result<Self> {
        let Some(holder) = sys::fork(libc::CLONE_NEWUSER)? else {
            loop {
                std::thread::park();
            }
        };
        let process = format!("/proc/{}", holder.as_raw_nonzero());
        // Inside, outside, how many; all but the two stay what they are.
        let (last, rest) = (NOBODY + 1, u32::MAX - NOBODY - 1);
        let map = format!("0 {NOBODY} 1\n1 1 {}\n{NOBODY} 0 1\n{last} {last} {rest}\n", NOBODY - 1);
        let make = || -> io::Result<OwnedFd> {
            fs::write(format!("{process}/uid_map"), &map)?;
            fs::write(format!("{process}/gid_map"), &map)?;
            Ok(fs::File::open(format!("{process}/ns/user"))?.into())
        };
        let namespace = make();
        sys::kill(holder, Signal::KILL);
        let _ = rustix::process::waitpid(Some(holder), WaitOptions::empty());
        Ok(Self { namespace: namespace? })
    }

    /// Shows a directory of the host, with everything mounted below it, at another place.
    pub fn mount(&self, source: &Path, target: &Path) -> io::Result<()> {
        let tree = self.clone_mount(source)?;
        let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_SYMLINKS;
        Ok(rustix::mount::move_mount(&tree, "", CWD, target, flags)?)
    }

    fn clone_mount(&self, source: &Path) -> io::Result<OwnedFd> {
        let flags = OpenTreeFlags::OPEN_TREE_CLONE
            | OpenTreeFlags::OPEN_TREE_CLOEXEC
            | OpenTreeFlags::AT_RECURSIVE;
        let tree = rustix::mount::open_tree(CWD, source, flags)?;
        sys::map_owners(tree.as_fd(), self.namespace.as_raw_fd())?;
        Ok(tree)
    }
}
