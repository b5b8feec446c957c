//! Remembers what the kernel allowed before. Making a sandbox only to see whether it can be made takes longer
//! than all the rest of a start.
//!
//! Invariants:
//! - Only the stronger isolation is remembered. A weaker one is found out, and reported, every time.
//! - It holds under the circumstances it was found in: this boot, this helper, this user with these rights,
//!   these settings of the kernel, this control group. Under any other it is found out again.
//! - Nothing is weakened by it: where the sandbox then cannot be made, no command runs, and it is forgotten.

use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::helper;
use windlass_helper::protocol::{NetworkMode, Ready, Report};
use windlass_helper::wire;

/// What decides whether namespaces are allowed, beside the kernel itself, and may change at any time. Most kernels lack
/// some of it.
const CIRCUMSTANCES: [&str; 4] = [
    "/proc/sys/kernel/unprivileged_userns_clone",
    "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
    "/proc/sys/user/max_user_namespaces",
    "/proc/self/cgroup",
];

/// The same of what stays as it is for as long as this process runs: nothing of ours gives up rights or enters other
/// namespaces later.
const FIXED: [&str; 2] = ["/proc/sys/kernel/random/boot_id", "/proc/self/attr/current"];

/// The lines of `/proc/self/status` that are about rights.
const RIGHTS: [&str; 5] = ["CapEff:", "CapBnd:", "NoNewPrivs:", "Seccomp:", "Seccomp_filters:"];

/// The file that remembers it, and the circumstances under which it holds.
#[derive(Debug)]
pub(super) struct CapabilityCache {
    path: PathBuf,
    circumstances: [u8; 8],
}

/// What is fixed, as a hash; read once.
fn fixed_circumstances() -> u64 {
    static HASH: OnceLock<u64> = OnceLock::new();
    *HASH.get_or_init(|| {
        let mut hash = DefaultHasher::new();
        for path in FIXED {
            fs::read(path).ok().hash(&mut hash);
        }
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let is_right = |line: &&str| RIGHTS.iter().any(|name| line.starts_with(name));
        status.lines().filter(is_right).for_each(|line| line.hash(&mut hash));
        for namespace in ["user", "mnt", "pid"] {
            fs::read_link(format!("/proc/self/ns/{namespace}")).ok().hash(&mut hash);
        }
        hash.finish()
    })
}

impl CapabilityCache {
    pub(super) fn open(data: &Path, workspace: &Path, network: NetworkMode) -> Self {
        let mut hash = DefaultHasher::new();
        helper::HASH.hash(&mut hash);
        // Whether owners can be exchanged depends on the file system and on whose it is.
        fs::metadata(workspace).map(|found| (found.dev(), found.uid() == 0)).ok().hash(&mut hash);
        rustix::process::geteuid().as_raw().hash(&mut hash);
        rustix::process::getegid().as_raw().hash(&mut hash);
        for path in CIRCUMSTANCES {
            fs::read(path).ok().hash(&mut hash);
        }
        fixed_circumstances().hash(&mut hash);
        let name = match network {
            NetworkMode::Nothing => "granted-nothing",
            NetworkMode::Proxy => "granted-proxy",
            NetworkMode::Everything => "granted-everything",
        };
        let path = data.join("helper").join(name);
        Self { path, circumstances: hash.finish().to_le_bytes() }
    }

    /// What the helper could arrange under these circumstances, if that is known.
    pub(super) fn recall(&self) -> Option<Ready> {
        let kept = fs::read(&self.path).ok()?;
        let (circumstances, frame) = kept.split_first_chunk()?;
        if *circumstances != self.circumstances {
            return None;
        }
        let (frame, _) = wire::next_frame(frame).ok()??;
        match Report::read(frame).ok()? {
            Report::Ready(ready) => Some(ready),
            _ => None,
        }
    }

    /// What cannot be written is found out again.
    pub(super) fn remember(&self, ready: &Ready) {
        let mut kept = self.circumstances.to_vec();
        Report::Ready(ready.clone()).write(&mut kept);
        let new = self.path.with_file_name(helper::unique_name("granted"));
        let _ = fs::write(&new, kept).and_then(|()| fs::rename(&new, &self.path));
    }

    pub(super) fn forget(&self) {
        let _ = fs::remove_file(&self.path);
    }
}
