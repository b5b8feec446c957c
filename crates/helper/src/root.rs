//! The root a namespaced sandbox sees: the system read-only, fresh scratch, the workspace, nothing else.
//!
//! Invariants:
//! - What is not mounted here does not exist inside: the old root is detached before the first command.
//! - Nothing but the workspace, what was added to it and the scratch directories is writable, and no mount honours
//!   set-user bits.
//! - A directory is shown before what lies below it, so that nothing that is shown is covered by its parent.
//! - Scratch (`/tmp`, `/var/tmp`, `/run`, `/home`, `/root`) is one file system with one bound. `/dev/shm` is each
//!   command's own.

mod owner_map;

use std::ffi::CString;
use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{
    DirBuilderExt, FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt, chown, symlink,
};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use rustix::mount::{MountFlags, MountPropagationFlags, UnmountFlags};
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use windlass_helper::protocol::{Access, NetworkMode, SYSTEM_DIRECTORIES, Setup};

use crate::{Failure, sys};
pub use owner_map::OwnerMap;

/// What every mount has: no program in it gains rights, no file in it is a device.
const GUARDED: MountFlags = MountFlags::NOSUID.union(MountFlags::NODEV);

const WRITABLE: u64 = libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV;
const READ_ONLY: u64 = WRITABLE | libc::MOUNT_ATTR_RDONLY;

/// Where the system keeps files that only root may read, where nothing else hides them.
const MAY_HOLD_PRIVATE_FILES: [&str; 3] = ["/etc", "/opt", "/usr/local"];

trait FailureContext<T> {
    fn context(self, what: impl FnOnce() -> String) -> Result<T, Failure>;
}

impl<T, E: Into<io::Error>> FailureContext<T> for Result<T, E> {
    fn context(self, what: impl FnOnce() -> String) -> Result<T, Failure> {
        self.map_err(|error| (what(), error.into()))
    }
}

/// Maps this process's own user and group into its new user namespace.
pub fn map_user(uid: u32, gid: u32) -> Result<(), Failure> {
    // The kernel asks for this before a group is mapped; kernels before 3.19 do not know it.
    let _ = fs::write("/proc/self/setgroups", "deny");
    fs::write("/proc/self/uid_map", format!("{uid} {uid} 1")).context(|| "map user".into())?;
    fs::write("/proc/self/gid_map", format!("{gid} {gid} 1")).context(|| "map group".into())
}

/// Builds the new root and makes it the only one.
pub fn enter(setup: &Setup, owners: Option<&OwnerMap>) -> Result<(), Failure> {
    let base = Path::new("/tmp");
    // What the host mounts from now on is seen; what we mount is not seen by the host.
    rustix::mount::mount_change(
        "/",
        MountPropagationFlags::REC | MountPropagationFlags::DOWNSTREAM,
    )
    .context(|| "separate the mounts".into())?;
    mount("tmpfs", base, GUARDED, "size=1m,mode=755").context(|| "mount tmpfs".into())?;
    let building = base.join("new");
    fs::create_dir(&building).context(|| "prepare".into())?;
    fs::create_dir(base.join("old")).context(|| "prepare".into())?;
    let size = format!("size={},mode=755", setup.scratch_bytes);
    mount("tmpfs", &building, GUARDED, &size).context(|| "mount tmpfs".into())?;
    rustix::process::pivot_root(base, base.join("old")).context(|| "pivot".into())?;
    std::env::set_current_dir("/").context(|| "pivot".into())?;

    let root = Root { setup, owners, new: PathBuf::from("/new"), old: PathBuf::from("/old") };
    root.scratch()?;
    root.system()?;
    root.devices()?;
    root.show_directories()?;
    root.alias()?;
    root.hide()?;
    rustix::mount::mount_remount(&root.new, MountFlags::BIND | MountFlags::RDONLY | GUARDED, "")
        .context(|| "seal the root".into())?;

    std::env::set_current_dir(&root.new).context(|| "change root".into())?;
    rustix::process::pivot_root(".", ".").context(|| "change root".into())?;
    rustix::mount::unmount(".", UnmountFlags::DETACH).context(|| "leave the old root".into())?;
    std::env::set_current_dir("/").context(|| "change root".into())
}

struct Root<'a> {
    setup: &'a Setup,
    owners: Option<&'a OwnerMap>,
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
        ] {
            let inside = self.writable(Path::new(path), mode)?;
            if mode != 0o1777 {
                chown(&inside, Some(self.setup.uid), Some(self.setup.gid))
                    .context(|| format!("own {path}"))?;
            }
        }
        let home = Path::new(&self.setup.home);
        if home != Path::new("/root") && home != Path::new("/home") {
            let inside = match home.starts_with("/home") {
                true => self.directory(home)?,
                false => self.writable(home, 0o700)?,
            };
            chown(&inside, Some(self.setup.uid), Some(self.setup.gid))
                .context(|| format!("own {}", home.display()))?;
        }
        for (link, target) in [("var/run", "/run"), ("var/lock", "/run/lock")] {
            symlink(target, self.new.join(link)).context(|| format!("link {link}"))?;
        }
        for empty in
            ["/sys", "/proc", "/var/lib", "/var/cache", "/var/log", "/mnt", "/srv", "/dev/shm"]
        {
            self.directory(Path::new(empty))?;
        }
        mount("proc", &self.new.join("proc"), GUARDED | MountFlags::NOEXEC, "")
            .context(|| "mount proc".into())
    }

    fn writable(&self, path: &Path, mode: u32) -> Result<PathBuf, Failure> {
        let inside = self.directory(path)?;
        fs::set_permissions(&inside, fs::Permissions::from_mode(mode))
            .context(|| format!("permit {}", path.display()))?;
        rustix::mount::mount_bind(&inside, &inside)
            .context(|| format!("mount {}", path.display()))?;
        Ok(inside)
    }

    fn system(&self) -> Result<(), Failure> {
        for path in SYSTEM_DIRECTORIES {
            let there = self.outside(Path::new(path));
            let Ok(found) = fs::symlink_metadata(&there) else { continue };
            if found.is_symlink() {
                let target = fs::read_link(&there).context(|| format!("read {path}"))?;
                symlink(target, self.inside(Path::new(path))).context(|| format!("link {path}"))?;
            } else {
                self.show(Path::new(path), Path::new(path), READ_ONLY)?;
            }
        }
        if self.setup.network == NetworkMode::Everything {
            self.name_servers();
        }
        if rustix::process::geteuid().is_root() && self.setup.uid == 0 {
            // Commands run as root without capabilities, who still owns root's files.
            for directory in MAY_HOLD_PRIVATE_FILES {
                self.hide_private(Path::new(directory))?;
            }
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
            let _ = self.show(&plain, &plain, READ_ONLY);
        }
    }

    /// Covers files that only root may read.
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
            File::create(&inside).context(|| format!("make {}", path.display()))?;
            rustix::mount::mount_bind(self.outside(&path), &inside)
                .context(|| format!("mount {}", path.display()))?;
        }
        for (link, target) in [
            ("dev/fd", "/proc/self/fd"),
            ("dev/stdin", "/proc/self/fd/0"),
            ("dev/stdout", "/proc/self/fd/1"),
            ("dev/stderr", "/proc/self/fd/2"),
            ("dev/ptmx", "pts/ptmx"),
        ] {
            symlink(target, self.new.join(link)).context(|| format!("link {link}"))?;
        }
        let terminals = self.directory(Path::new("/dev/pts"))?;
        let options = "newinstance,ptmxmode=0666,mode=0620";
        // A sandbox without terminals of its own still runs what needs none.
        let _ = mount("devpts", &terminals, MountFlags::NOSUID | MountFlags::NOEXEC, options);
        Ok(())
    }

    /// Shows the workspace and all that lies around it, parents first. The workspace wins over anything else
    /// that would be at its place.
    fn show_directories(&self) -> Result<(), Failure> {
        let setup = self.setup;
        let binds = setup.binds.iter().map(|bind| (&bind.target, false, &bind.source, bind.access));
        let workspace = (&setup.workspace_at, true, &setup.workspace, Access::Writable);
        let mut all: Vec<_> = binds.chain([workspace]).collect();
        all.sort_by(|left, right| (Path::new(left.0), left.1).cmp(&(Path::new(right.0), right.1)));
        for (number, (target, _, source, access)) in all.into_iter().enumerate() {
            let (source, target) = (Path::new(source), Path::new(target));
            match access {
                Access::ReadOnly => self.show(source, target, READ_ONLY)?,
                Access::Writable => self.show(source, target, WRITABLE)?,
                // Where the kernel refuses layers, the directory stays read-only like what is around it.
                Access::Layered => drop(self.layer(number, source, target)),
            }
        }
        Ok(())
    }

    fn alias(&self) -> Result<(), Failure> {
        let alias = &self.setup.workspace_alias;
        if alias.is_empty() {
            return Ok(());
        }
        symlink(&self.setup.workspace_at, self.inside(Path::new(alias)))
            .context(|| format!("link {alias}"))
    }

    /// Shows a host path inside, with everything mounted below it.
    fn show(&self, source: &Path, target: &Path, attributes: u64) -> Result<(), Failure> {
        let what = || format!("show {} at {}", source.display(), target.display());
        let there = self.outside(source);
        let found = fs::metadata(&there).context(what)?;
        let parent = target.parent().unwrap_or(Path::new("/"));
        if found.is_dir() {
            self.directory(target)?;
        } else {
            self.directory(parent)?;
            let inside = self.inside(target);
            if fs::symlink_metadata(&inside).is_err() {
                File::create(&inside).context(what)?;
            }
        }
        let place = self.exact_place(target).context(what)?;
        match self.owners.filter(|_| attributes == WRITABLE) {
            Some(owners) => owners.mount(&there, &place.path).context(what)?,
            None => rustix::mount::mount_bind_recursive(&there, &place.path).context(what)?,
        }
        sys::restrict_mounts(&self.inside(target), attributes).context(what)
    }

    /// Shows a directory with a layer over it that takes all writes, in the scratch that bounds them.
    fn layer(&self, number: usize, source: &Path, target: &Path) -> io::Result<()> {
        let mut lower = self.outside(source);
        let layers = self.new.join(format!(".layers/{number}"));
        let (upper, work) = (layers.join("upper"), layers.join("work"));
        fs::create_dir_all(&upper)?;
        fs::create_dir(&work)?;
        if let Some(owners) = self.owners {
            let mapped = layers.join("lower");
            fs::create_dir(&mapped)?;
            owners.mount(&lower, &mapped)?;
            lower = mapped;
        }
        let found = fs::metadata(&lower)?;
        // The merged directory is its owner's as before.
        fs::set_permissions(&upper, fs::Permissions::from_mode(found.mode() & 0o777))?;
        chown(&upper, Some(found.uid()), Some(found.gid()))?;
        let own = if rustix::process::geteuid().is_root() { "" } else { ",userxattr" };
        let paths = [&lower, &upper, &work].map(|path| path.to_str().unwrap_or(","));
        if paths.iter().any(|path| path.contains([',', ':', '\\'])) {
            return Err(io::Error::from_raw_os_error(libc::EINVAL));
        }
        let [lower, upper, work] = paths;
        let options = format!("lowerdir={lower},upperdir={upper},workdir={work}{own}");
        mount("overlay", &self.inside(target), GUARDED, &options)
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
                false => File::options()
                    .create_new(true)
                    .write(true)
                    .mode(0o444)
                    .open(&nothing)
                    .map(drop),
            };
            made.context(|| "prepare to hide".into())?;
        }
        let what = || format!("hide {}", path.display());
        let place = self.exact_place(path).context(what)?;
        rustix::mount::mount_bind(&nothing, &place.path).context(what)?;
        sys::restrict_mounts(&self.inside(path), READ_ONLY).context(what)
    }

    /// Where to mount over exactly this path. A link that was put there in the meantime is refused, not
    /// followed.
    fn exact_place(&self, target: &Path) -> io::Result<ExactPlace> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = File::from(rustix::fs::open(self.inside(target), flags, Mode::empty())?);
        if file.metadata()?.is_symlink() {
            return Err(io::Error::from_raw_os_error(libc::ELOOP));
        }
        let path = self.old.join(format!("proc/self/fd/{}", file.as_raw_fd()));
        Ok(ExactPlace { path, _file: file })
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
            fs::create_dir(&inside).context(|| format!("make {}", path.display()))?;
            if inside.starts_with(self.inside(Path::new(&self.setup.home))) {
                chown(&inside, Some(self.setup.uid), Some(self.setup.gid))
                    .context(|| format!("own {}", path.display()))?;
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

/// Writes the files of the sandbox's own. What is there stays as it is, and so does a home that is the person's own.
/// One that takes no files has no use for them.
pub fn write_files(setup: &Setup) {
    if Path::new(&setup.home).starts_with(&setup.workspace_at) {
        return;
    }
    for file in &setup.files {
        let write = || -> io::Result<()> {
            make_parents(setup, Path::new(&file.path))?;
            let mut made =
                File::options().write(true).create_new(true).mode(0o644).open(&file.path)?;
            io::Write::write_all(&mut made, file.content.as_bytes())?;
            if rustix::process::geteuid().is_root() {
                std::os::unix::fs::fchown(&made, Some(setup.uid), Some(setup.gid))?;
            }
            Ok(())
        };
        let _ = write();
    }
}

/// Makes the directories above a file of the home directory.
fn make_parents(setup: &Setup, path: &Path) -> io::Result<()> {
    let home = Path::new(&setup.home);
    let parents: Vec<&Path> = path
        .ancestors()
        .skip(1)
        .take_while(|parent| *parent != home && parent.starts_with(home))
        .collect();
    for parent in parents.into_iter().rev() {
        match fs::create_dir(parent) {
            Ok(()) if rustix::process::geteuid().is_root() => {
                chown(parent, Some(setup.uid), Some(setup.gid))?;
            }
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// A place that is held open, and a path that leads to it and nowhere else.
struct ExactPlace {
    path: PathBuf,
    _file: File,
}

/// Covers a socket of the host in the root that is entered already, for commands that start from now on. One that is gone
/// or is something else by now needs no cover.
pub fn cover_socket(path: &Path) -> io::Result<()> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let no_links = ResolveFlags::NO_SYMLINKS;
    let file = match rustix::fs::openat2(CWD, path, flags, Mode::empty(), no_links) {
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(()),
        file => File::from(file?),
    };
    if !file.metadata()?.file_type().is_socket() {
        return Ok(());
    }
    let place = format!("/proc/self/fd/{}", file.as_raw_fd());
    Ok(rustix::mount::mount_bind("/dev/null", place)?)
}

/// A `/proc` of the calling process's own process namespace. Read-only as a whole: nothing a command
/// needs is written there, and everything dangerous is.
pub fn mount_own_proc() -> io::Result<()> {
    mount("proc", Path::new("/proc"), GUARDED | MountFlags::NOEXEC | MountFlags::RDONLY, "")
}

/// A `/dev/shm` of the command's own, gone with its last process.
pub fn mount_own_shared_memory(bytes: u64) -> io::Result<()> {
    mount("tmpfs", Path::new("/dev/shm"), GUARDED, &format!("size={bytes},mode=1777"))
}

/// Mounts a file system of the kernel's own.
fn mount(kind: &str, target: &Path, flags: MountFlags, options: &str) -> io::Result<()> {
    let options = CString::new(options)?;
    Ok(rustix::mount::mount(kind, target, kind, flags, options.as_c_str())?)
}

/// Brings loopback up in a network namespace of its own, where it is always interface 1.
pub fn raise_loopback() -> io::Result<()> {
    const LOOPBACK: i32 = 1;
    const LENGTH: u32 = 32;
    // No protocol given is `NETLINK_ROUTE`.
    let (family, kind) = (AddressFamily::NETLINK, SocketType::RAW);
    let socket = rustix::net::socket_with(family, kind, SocketFlags::CLOEXEC, None)?;
    let up = libc::IFF_UP as u32;
    let wanted = (libc::NLM_F_REQUEST | libc::NLM_F_ACK) as u16;
    let request = [
        // A `nlmsghdr`: length, kind, flags, sequence, sender.
        LENGTH.to_ne_bytes().as_slice(),
        &libc::RTM_NEWLINK.to_ne_bytes(),
        &wanted.to_ne_bytes(),
        &[0; 8],
        // An `ifinfomsg`: family and kind, interface, flags, which of them to change.
        &[0; 4],
        &LOOPBACK.to_ne_bytes(),
        &up.to_ne_bytes(),
        &up.to_ne_bytes(),
    ]
    .concat();
    sys::write(&socket, &request)?;
    // The acknowledgement is a `nlmsghdr` and an error number, 0 or negative.
    let mut reply = [0; 64];
    let count = sys::read(&socket, &mut reply)?;
    match reply[..count].get(16..20).and_then(|bytes| bytes.first_chunk()) {
        Some(bytes) => match i32::from_ne_bytes(*bytes) {
            0 => Ok(()),
            error => Err(io::Error::from_raw_os_error(-error)),
        },
        None => Err(io::ErrorKind::InvalidData.into()),
    }
}
