//! The root a namespaced sandbox sees: the system read-only, fresh scratch, the workspace, nothing else.
//!
//! Invariants:
//! - What is not mounted here does not exist inside: the old root is detached before the first command.
//! - Nothing but the workspace and the scratch directories is writable, and no mount honours set-user bits.
//! - Scratch (`/tmp`, `/var/tmp`, `/run`, `/home`, `/root`, `/dev/shm`) is one file system with one bound.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{
    DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt, chown, symlink,
};
use std::path::{Component, Path, PathBuf};

use crate::confine::SYSTEM;
use crate::protocol::{Reach, Setup};
use crate::sys;

const RDONLY: u64 = 1;
const NOSUID: u64 = 2;
const NODEV: u64 = 4;

/// What went wrong, and while doing what.
pub type Failure = (String, io::Error);

trait Doing<T> {
    fn doing(self, what: impl FnOnce() -> String) -> Result<T, Failure>;
}

impl<T> Doing<T> for io::Result<T> {
    fn doing(self, what: impl FnOnce() -> String) -> Result<T, Failure> {
        self.map_err(|error| (what(), error))
    }
}

/// Names this process's own user and group in its new user namespace.
pub fn name_user(uid: u32, gid: u32) -> Result<(), Failure> {
    // Without this the group may not be named; kernels before 3.19 do not know it.
    let _ = fs::write("/proc/self/setgroups", "deny");
    fs::write("/proc/self/uid_map", format!("{uid} {uid} 1")).doing(|| "map user".into())?;
    fs::write("/proc/self/gid_map", format!("{gid} {gid} 1")).doing(|| "map group".into())
}

/// Builds the new root and makes it the only one.
pub fn enter(setup: &Setup) -> Result<(), Failure> {
    let base = Path::new("/tmp");
    sys::attach(Path::new("none"), Path::new("/"), "none", sys::MS_REC | sys::MS_SLAVE, "")
        .doing(|| "take mounts over".into())?;
    let flags = sys::MS_NOSUID | sys::MS_NODEV;
    sys::attach(Path::new("tmpfs"), base, "tmpfs", flags, "size=1m,mode=755")
        .doing(|| "mount tmpfs".into())?;
    let building = base.join("new");
    fs::create_dir(&building).doing(|| "prepare".into())?;
    fs::create_dir(base.join("old")).doing(|| "prepare".into())?;
    let size = format!("size={},mode=755", setup.scratch_bytes);
    sys::attach(Path::new("tmpfs"), &building, "tmpfs", flags, &size)
        .doing(|| "mount tmpfs".into())?;
    sys::pivot_root(base, &base.join("old")).doing(|| "pivot".into())?;
    std::env::set_current_dir("/").doing(|| "pivot".into())?;

    let root = Root { setup, new: PathBuf::from("/new"), old: PathBuf::from("/old") };
    root.scratch()?;
    root.system()?;
    root.devices()?;
    root.workspace()?;
    for (number, bind) in setup.binds.iter().enumerate() {
        let (source, target) = (Path::new(&bind.source), Path::new(&bind.target));
        // Where layers cannot be had, what is shown below is read-only like its surroundings.
        if !bind.layered {
            root.show(source, target, RDONLY | NOSUID | NODEV)?;
        } else if root.layer(number, source, target).is_err() {
            continue;
        }
    }
    root.hide()?;
    let seal = sys::MS_REMOUNT | sys::MS_BIND | sys::MS_RDONLY | flags;
    sys::attach(Path::new("none"), &root.new, "none", seal, "").doing(|| "seal the root".into())?;

    std::env::set_current_dir(&root.new).doing(|| "change root".into())?;
    sys::pivot_root(Path::new("."), Path::new(".")).doing(|| "change root".into())?;
    sys::detach(Path::new(".")).doing(|| "leave the old root".into())?;
    std::env::set_current_dir("/").doing(|| "change root".into())
}

struct Root<'a> {
    setup: &'a Setup,
    new: PathBuf,
    old: PathBuf,
}

impl Root<'_> {
    /// Directories commands may write to; each is a mount of its own, so that it survives the seal.
    fn scratch(&self) -> Result<(), Failure> {
        for (path, mode) in [
            ("/tmp", 0o1777),
            ("/var/tmp", 0o1777),
            ("/run", 0o755),
            ("/home", 0o755),
            ("/root", 0o700),
            ("/dev/shm", 0o1777),
        ] {
            let inside = self.writable(Path::new(path), mode)?;
            if mode != 0o1777 {
                chown(&inside, Some(self.setup.uid), Some(self.setup.gid))
                    .doing(|| format!("own {path}"))?;
            }
        }
        let home = Path::new(&self.setup.home);
        if home != Path::new("/root") && home != Path::new("/home") {
            let inside = match home.starts_with("/home") {
                true => self.directory(home)?,
                false => self.writable(home, 0o700)?,
            };
            chown(&inside, Some(self.setup.uid), Some(self.setup.gid))
                .doing(|| format!("own {}", home.display()))?;
        }
        for (link, target) in [("var/run", "/run"), ("var/lock", "/run/lock")] {
            symlink(target, self.new.join(link)).doing(|| format!("link {link}"))?;
        }
        for empty in ["/sys", "/proc", "/var/lib", "/var/cache", "/var/log", "/mnt", "/srv"] {
            self.directory(Path::new(empty))?;
        }
        let proc = self.new.join("proc");
        let flags = sys::MS_NOSUID | sys::MS_NODEV | sys::MS_NOEXEC;
        sys::attach(Path::new("proc"), &proc, "proc", flags, "").doing(|| "mount proc".into())
    }

    fn writable(&self, path: &Path, mode: u32) -> Result<PathBuf, Failure> {
        let inside = self.directory(path)?;
        fs::set_permissions(&inside, fs::Permissions::from_mode(mode))
            .doing(|| format!("permit {}", path.display()))?;
        sys::attach(&inside, &inside, "none", sys::MS_BIND, "")
            .doing(|| format!("mount {}", path.display()))?;
        Ok(inside)
    }

    fn system(&self) -> Result<(), Failure> {
        for path in SYSTEM {
            let there = self.outside(Path::new(path));
            let Ok(found) = fs::symlink_metadata(&there) else { continue };
            if found.is_symlink() {
                let target = fs::read_link(&there).doing(|| format!("read {path}"))?;
                symlink(target, self.inside(Path::new(path))).doing(|| format!("link {path}"))?;
            } else {
                self.show(Path::new(path), Path::new(path), RDONLY | NOSUID | NODEV)?;
            }
        }
        if self.setup.reach == Reach::Everything {
            self.name_servers();
        }
        if sys::geteuid() == 0 {
            // Root's commands may be root without capabilities, which still owns what root owns.
            self.hide_private(Path::new("/etc"))?;
        }
        Ok(())
    }

    /// `/etc/resolv.conf` often points into `/run`, which is fresh; names resolve all the same.
    fn name_servers(&self) {
        let Ok(target) = fs::read_link(self.outside(Path::new("/etc/resolv.conf"))) else { return };
        let target = Path::new("/etc").join(target);
        let plain = target.components().fold(PathBuf::new(), |mut plain, part| {
            match part {
                Component::ParentDir => drop(plain.pop()),
                part => plain.push(part),
            }
            plain
        });
        if plain.starts_with("/run") {
            let _ = self.show(&plain, &plain, RDONLY | NOSUID | NODEV);
        }
    }

    /// Covers what only root may read, as it stands in the system's configuration.
    fn hide_private(&self, directory: &Path) -> Result<(), Failure> {
        let Ok(entries) = fs::read_dir(self.inside(directory)) else { return Ok(()) };
        for entry in entries.flatten() {
            let Ok(found) = entry.metadata() else { continue };
            let path = directory.join(entry.file_name());
            let others = found.mode() & 0o7;
            if found.is_dir() && others & 0o5 == 0o5 {
                self.hide_private(&path)?;
            } else if found.is_dir() || (!found.is_symlink() && others & 0o4 == 0) {
                self.cover(&path)?;
            }
        }
        Ok(())
    }

    fn devices(&self) -> Result<(), Failure> {
        for name in ["null", "zero", "full", "random", "urandom", "tty"] {
            let path = Path::new("/dev").join(name);
            let inside = self.inside(&path);
            File::create(&inside).doing(|| format!("make {}", path.display()))?;
            sys::attach(&self.outside(&path), &inside, "none", sys::MS_BIND, "")
                .doing(|| format!("mount {}", path.display()))?;
        }
        for (link, target) in [
            ("dev/fd", "/proc/self/fd"),
            ("dev/stdin", "/proc/self/fd/0"),
            ("dev/stdout", "/proc/self/fd/1"),
            ("dev/stderr", "/proc/self/fd/2"),
            ("dev/ptmx", "pts/ptmx"),
        ] {
            symlink(target, self.new.join(link)).doing(|| format!("link {link}"))?;
        }
        let terminals = self.directory(Path::new("/dev/pts"))?;
        let flags = sys::MS_NOSUID | sys::MS_NOEXEC;
        // A sandbox without terminals of its own still runs what needs none.
        let _ = sys::attach(
            Path::new("devpts"),
            &terminals,
            "devpts",
            flags,
            "newinstance,ptmxmode=0666,mode=0620",
        );
        Ok(())
    }

    fn workspace(&self) -> Result<(), Failure> {
        self.show(Path::new(&self.setup.workspace), Path::new("/workspace"), NOSUID | NODEV)
    }

    /// Shows a host path inside, with everything mounted below it.
    fn show(&self, source: &Path, target: &Path, attributes: u64) -> Result<(), Failure> {
        let what = || format!("show {} at {}", source.display(), target.display());
        let there = self.outside(source);
        let found = fs::metadata(&there).doing(what)?;
        let parent = target.parent().unwrap_or(Path::new("/"));
        if found.is_dir() {
            self.directory(target)?;
        } else {
            self.directory(parent)?;
            let inside = self.inside(target);
            if fs::symlink_metadata(&inside).is_err() {
                File::create(&inside).doing(what)?;
            }
        }
        self.over(&there, target, sys::MS_REC).doing(what)?;
        sys::restrict_mounts(&self.inside(target), attributes).doing(what)
    }

    /// Shows a directory with a layer over it that takes all writes, in the scratch that bounds them.
    fn layer(&self, number: usize, source: &Path, target: &Path) -> io::Result<()> {
        let lower = self.outside(source);
        let found = fs::metadata(&lower)?;
        let layers = self.new.join(format!(".layers/{number}"));
        let (upper, work) = (layers.join("upper"), layers.join("work"));
        fs::create_dir_all(&upper)?;
        fs::create_dir(&work)?;
        // The merged directory is its owner's as before.
        fs::set_permissions(&upper, fs::Permissions::from_mode(found.mode() & 0o777))?;
        chown(&upper, Some(found.uid()), Some(found.gid()))?;
        let own = if sys::geteuid() == 0 { "" } else { ",userxattr" };
        let paths = [&lower, &upper, &work].map(|path| path.to_str().unwrap_or(","));
        if paths.iter().any(|path| path.contains([',', ':', '\\'])) {
            return Err(io::Error::from_raw_os_error(22));
        }
        let [lower, upper, work] = paths;
        let options = format!("lowerdir={lower},upperdir={upper},workdir={work}{own}");
        let flags = sys::MS_NOSUID | sys::MS_NODEV;
        let target = self.inside(target);
        sys::attach(Path::new("overlay"), &target, "overlay", flags, &options)
    }

    fn hide(&self) -> Result<(), Failure> {
        self.setup.hidden.iter().try_for_each(|path| self.cover(Path::new(path)))
    }

    /// Puts something empty over a path; one that is not there needs nothing.
    fn cover(&self, path: &Path) -> Result<(), Failure> {
        let Ok(found) = fs::symlink_metadata(self.inside(path)) else { return Ok(()) };
        if found.is_symlink() {
            return Ok(());
        }
        let nothing = Path::new("/").join(if found.is_dir() { "nothing" } else { "empty" });
        if fs::symlink_metadata(&nothing).is_err() {
            let made = match found.is_dir() {
                true => fs::DirBuilder::new().mode(0o555).create(&nothing),
                false => {
                    File::options().create(true).write(true).mode(0o444).open(&nothing).map(drop)
                }
            };
            made.doing(|| "prepare to hide".into())?;
        }
        let what = || format!("hide {}", path.display());
        self.over(&nothing, path, 0).doing(what)?;
        sys::restrict_mounts(&self.inside(path), RDONLY | NOSUID | NODEV).doing(what)
    }

    /// Mounts over exactly this path: a link put there in the meantime is refused, not followed.
    fn over(&self, source: &Path, target: &Path, flags: u64) -> io::Result<()> {
        const O_PATH: i32 = 0o10_000_000;
        const O_NOFOLLOW: i32 = if cfg!(target_arch = "aarch64") { 0o100_000 } else { 0o400_000 };
        let handle = File::options()
            .read(true)
            .custom_flags(O_PATH | O_NOFOLLOW)
            .open(self.inside(target))?;
        if handle.metadata()?.is_symlink() {
            return Err(io::Error::from_raw_os_error(40));
        }
        let place = self.old.join(format!("proc/self/fd/{}", handle.as_raw_fd()));
        sys::attach(source, &place, "none", sys::MS_BIND | flags, "")
    }

    /// Makes sure of a directory inside; what is made belongs to the user of the sandbox below home.
    fn directory(&self, path: &Path) -> Result<PathBuf, Failure> {
        let mut inside = self.new.clone();
        for part in path.components() {
            let Component::Normal(part) = part else { continue };
            inside.push(part);
            if fs::symlink_metadata(&inside).is_ok() {
                continue;
            }
            fs::create_dir(&inside).doing(|| format!("make {}", path.display()))?;
            if inside.starts_with(self.inside(Path::new(&self.setup.home))) {
                chown(&inside, Some(self.setup.uid), Some(self.setup.gid))
                    .doing(|| format!("own {}", path.display()))?;
            }
        }
        Ok(inside)
    }

    fn inside(&self, path: &Path) -> PathBuf {
        self.new.join(path.strip_prefix("/").unwrap_or(path))
    }

    fn outside(&self, path: &Path) -> PathBuf {
        self.old.join(path.strip_prefix("/").unwrap_or(path))
    }
}

/// A `/proc` of the calling process's own process namespace. Read-only as a whole: nothing a command
/// needs is written there, and everything dangerous is.
pub fn own_proc() -> io::Result<()> {
    let flags = sys::MS_NOSUID | sys::MS_NODEV | sys::MS_NOEXEC | sys::MS_RDONLY;
    sys::attach(Path::new("proc"), Path::new("/proc"), "proc", flags, "")
}

/// Brings loopback up in a network namespace of its own.
pub fn raise_loopback() -> io::Result<()> {
    let socket = std::net::UdpSocket::bind("0.0.0.0:0")?;
    let mut request = [0u8; 40];
    request[..2].copy_from_slice(b"lo");
    sys::interface_flags(&socket, &mut request, false)?;
    request[16] |= 1;
    sys::interface_flags(&socket, &mut request, true)
}
