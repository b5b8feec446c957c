//! What a command gives up before it runs: identity, capabilities, files (Landlock), calls (seccomp), limits.
//!
//! Invariants:
//! - Everything here is irreversible and inherited: what is given up stays so for the whole tree.
//! - The order is limits, identity, capabilities, no-new-privileges, Landlock, filter.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use crate::protocol::{Isolation, Reach, Setup};
use crate::sys::{self, number};

/// What was prepared once and is put on by each command.
pub struct Confinement {
    uid: u32,
    gid: u32,
    root: bool,
    rules: Option<OwnedFd>,
    filter: Vec<Instruction>,
    limits: [(u32, u64); 5],
    /// Landlock's version, 0 where there is none.
    pub landlock: u32,
}

impl Confinement {
    /// Prepares the rules; paths are those commands will see.
    pub fn prepare(setup: &Setup, bounded: Bounded, proxy_port: u16) -> io::Result<Self> {
        const CORE: u32 = 4;
        const DATA: u32 = 2;
        const FSIZE: u32 = 1;
        const NPROC: u32 = 6;
        const NOFILE: u32 = 7;
        let landlock = landlock_version();
        let (rules, landlock) = match landlock {
            0 => (None, 0),
            version => (Some(landlock_rules(setup, version, proxy_port)?), version),
        };
        Ok(Self {
            uid: setup.uid,
            gid: setup.gid,
            root: sys::geteuid() == 0,
            rules,
            landlock,
            filter: filter(setup, landlock),
            limits: [
                (CORE, 0),
                (FSIZE, setup.file_bytes),
                (NOFILE, setup.open_files),
                (DATA, if bounded.memory { u64::MAX } else { setup.memory_bytes }),
                (NPROC, if bounded.processes { u64::MAX } else { setup.processes }),
            ],
        })
    }

    /// Gives everything up, for this process and all it will start.
    pub fn put_on(&self) -> Result<(), (&'static str, io::Error)> {
        for (resource, value) in self.limits {
            sys::limit(resource, value);
        }
        if self.root {
            become_owner(self.uid, self.gid).map_err(|error| ("change user", error))?;
        }
        drop_capabilities().map_err(|error| ("drop capabilities", error))?;
        sys::set_process(sys::PR_SET_NO_NEW_PRIVS, 1)
            .map_err(|error| ("no new privileges", error))?;
        // A process that changed its user is shown as root's in /proc; keep it unreadable all the same.
        let _ = sys::set_process(sys::PR_SET_DUMPABLE, 0);
        if let Some(rules) = &self.rules {
            let rules = rules.as_raw_fd() as usize;
            // SAFETY: a ruleset descriptor and no flags.
            unsafe { sys::raw(number::LANDLOCK_RESTRICT_SELF, [rules, 0, 0, 0, 0]) }
                .map_err(|error| ("landlock", error))?;
        }
        install(&self.filter).map_err(|error| ("seccomp", error))
    }
}

/// What a control group bounds already.
#[derive(Clone, Copy)]
pub struct Bounded {
    pub memory: bool,
    pub processes: bool,
}

impl Bounded {
    /// Tells a process that waits to hear it.
    pub fn tell(self, to: &OwnedFd) -> io::Result<()> {
        sys::send(to, &[self.memory.into(), self.processes.into()]).map(drop)
    }

    /// Waits to be told.
    pub fn told(from: &OwnedFd) -> io::Result<Self> {
        let mut told = [0; 2];
        match sys::receive(from, &mut told)? {
            2 => Ok(Self { memory: told[0] != 0, processes: told[1] != 0 }),
            _ => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
}

fn become_owner(uid: u32, gid: u32) -> io::Result<()> {
    let already = sys::geteuid() == uid && sys::getegid() == gid;
    let (uid, gid) = (uid as usize, gid as usize);
    // SAFETY: numbers only; an empty group list needs no pointer.
    unsafe {
        match sys::raw(number::SETGROUPS, [0, 0, 0, 0, 0]) {
            // Root of a container without the right to change anything is whom it shall be already.
            Err(_) if already => return Ok(()),
            done => done?,
        };
        sys::raw(number::SETRESGID, [gid, gid, gid, 0, 0])?;
        sys::raw(number::SETRESUID, [uid, uid, uid, 0, 0])?;
    }
    Ok(())
}

/// Closes the ways by which a program could gain capabilities. What this process holds now stays, so
/// it is done once, by the one who starts the commands.
pub fn bar_capabilities() {
    const NOROOT_NOFIXUP_AND_LOCKS: u64 = 0b1111 | 0b11 << 6;
    // Both need a capability themselves; without it there is nothing to bar.
    let _ = sys::set_process(sys::PR_SET_SECUREBITS, NOROOT_NOFIXUP_AND_LOCKS);
    for capability in 0..64 {
        if sys::set_process(sys::PR_CAPBSET_DROP, capability).is_err() {
            break;
        }
    }
    let _ = sys::set_process(sys::PR_CAP_AMBIENT, 4);
}

fn drop_capabilities() -> io::Result<()> {
    let header = [0x2008_0522u32, 0];
    let none = [0u32; 6];
    // SAFETY: a version 3 header and two empty sets.
    unsafe {
        sys::raw(number::CAPSET, [header.as_ptr() as usize, none.as_ptr() as usize, 0, 0, 0])
            .map(drop)
    }
}

fn landlock_version() -> u32 {
    const VERSION: usize = 1;
    // SAFETY: asks for the version, as documented: no attributes, size 0.
    unsafe { sys::raw(number::LANDLOCK_CREATE_RULESET, [0, 0, VERSION, 0, 0]) }
        .map_or(0, |version| version as u32)
}

const EXECUTE: u64 = 1;
const WRITE_FILE: u64 = 1 << 1;
const READ_FILE: u64 = 1 << 2;
const READ_DIR: u64 = 1 << 3;
const TRUNCATE: u64 = 1 << 14;
const IOCTL_DEV: u64 = 1 << 15;
const READ: u64 = EXECUTE | READ_FILE | READ_DIR;
/// What may be allowed on a plain file; the rest is about directories.
const ON_FILES: u64 = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV;

fn landlock_rules(setup: &Setup, version: u32, proxy_port: u16) -> io::Result<OwnedFd> {
    const CONNECT_TCP: u64 = 2;
    // Each version knows more kinds of access: 13 at first, then refer, truncate, ioctl.
    let all: u64 = match version {
        1 => (1 << 13) - 1,
        2 => (1 << 14) - 1,
        3 | 4 => (1 << 15) - 1,
        _ => (1 << 16) - 1,
    };
    let walled = setup.isolation == Isolation::Landlock && setup.reach != Reach::Everything;
    let net = if walled && version >= 4 { CONNECT_TCP } else { 0 };
    // Abstract sockets and signals stay within, from version 6 on.
    let attributes = [all, net, if version >= 6 { 3 } else { 0 }];
    let size = if version >= 6 {
        24
    } else if version >= 4 {
        16
    } else {
        8
    };
    // SAFETY: a `landlock_ruleset_attr` of the size its version knows.
    let fd = unsafe {
        sys::raw(number::LANDLOCK_CREATE_RULESET, [attributes.as_ptr() as usize, size, 0, 0, 0])?
    };
    // SAFETY: just made.
    let rules = unsafe { OwnedFd::from_raw_fd(fd as i32) };
    let allow = |path: &str, access: u64| allow_below(&rules, Path::new(path), access & all);

    if matches!(setup.isolation, Isolation::Namespaces | Isolation::Container) {
        // What lies outside is not there at all; here only the read-only mounts are doubled.
        allow("/", READ)?;
        for path in
            ["/workspace", "/tmp", "/var/tmp", "/run", "/home", "/root", "/dev", &setup.home]
        {
            allow(path, u64::MAX)?;
        }
    } else {
        for path in SYSTEM.iter().chain(&["/proc", "/sys/devices/system/cpu"]) {
            allow(path, READ)?;
        }
        for bind in &setup.binds {
            allow(&bind.source, READ)?;
        }
        for path in [setup.workspace.as_str(), setup.home.as_str()] {
            allow(path, u64::MAX)?;
        }
        for path in ["null", "zero", "full", "random", "urandom", "tty", "ptmx", "pts", "shm"] {
            allow(&format!("/dev/{path}"), u64::MAX)?;
        }
    }
    if net != 0 && proxy_port != 0 {
        // The attribute is packed to 16 bytes: access, port.
        let rule = [CONNECT_TCP, u64::from(proxy_port)];
        let (fd, rule) = (rules.as_raw_fd() as usize, rule.as_ptr() as usize);
        // SAFETY: a `landlock_net_port_attr`, kind 2.
        unsafe { sys::raw(number::LANDLOCK_ADD_RULE, [fd, 2, rule, 0, 0])? };
    }
    Ok(rules)
}

/// The directories that make up a system, as far as they exist.
pub const SYSTEM: [&str; 12] = [
    "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/nix", "/gnu",
    "/snap",
];

/// Allows access below a path; one that does not exist needs no rule.
fn allow_below(rules: &OwnedFd, path: &Path, access: u64) -> io::Result<()> {
    const O_PATH: i32 = 0o10_000_000;
    #[repr(C, packed)]
    struct Rule {
        access: u64,
        parent: i32,
    }
    let Ok(parent) = File::options().read(true).custom_flags(O_PATH).open(path) else {
        return Ok(());
    };
    let access = if parent.metadata()?.is_dir() { access } else { access & ON_FILES };
    let rule = Rule { access, parent: parent.as_raw_fd() };
    let (fd, rule) = (rules.as_raw_fd() as usize, (&raw const rule) as usize);
    // SAFETY: a `landlock_path_beneath_attr`, kind 1.
    unsafe { sys::raw(number::LANDLOCK_ADD_RULE, [fd, 1, rule, 0, 0]).map(drop) }
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Instruction {
    code: u16,
    yes: u8,
    no: u8,
    value: u32,
}

const LOAD: u16 = 0x20;
const EQUAL: u16 = 0x15;
const AT_LEAST: u16 = 0x35;
const ANY_BIT: u16 = 0x45;
const RETURN: u16 = 0x06;
const ALLOW: u32 = 0x7fff_0000;
const fn fail(errno: i32) -> u32 {
    0x0005_0000 | errno as u32
}

#[cfg(target_arch = "x86_64")]
mod calls {
    pub const ARCHITECTURE: u32 = 0xc000_003e;
    pub const CLONE: u32 = 56;
    pub const SOCKET: u32 = 41;
    pub const IOCTL: u32 = 16;
    /// mount umount2 pivot_root chroot swapon swapoff reboot sethostname setdomainname iopl ioperm
    /// init_module delete_module quotactl acct settimeofday clock_settime adjtimex clock_adjtime syslog
    /// ptrace lookup_dcookie add_key request_key keyctl unshare setns perf_event_open
    /// name_to_handle_at open_by_handle_at process_vm_readv process_vm_writev kcmp finit_module
    /// kexec_load kexec_file_load bpf userfaultfd vhangup
    pub const REFUSED: &[u32] = &[
        165, 166, 155, 161, 167, 168, 169, 170, 171, 172, 173, 175, 176, 179, 163, 164, 227, 159,
        305, 103, 101, 212, 248, 249, 250, 272, 308, 298, 303, 304, 310, 311, 312, 313, 246, 320,
        321, 323, 153,
    ];
}

#[cfg(target_arch = "aarch64")]
mod calls {
    pub const ARCHITECTURE: u32 = 0xc000_00b7;
    pub const CLONE: u32 = 220;
    pub const SOCKET: u32 = 198;
    pub const IOCTL: u32 = 29;
    /// The same as on x86-64, as far as they exist here.
    pub const REFUSED: &[u32] = &[
        40, 39, 41, 51, 224, 225, 142, 161, 162, 105, 106, 60, 89, 170, 112, 171, 266, 116, 117,
        18, 217, 218, 219, 97, 268, 241, 264, 265, 270, 271, 272, 273, 104, 294, 280, 282, 58,
    ];
}

/// Newer calls have one number everywhere: io_uring (3), open_tree move_mount fsopen fsconfig fsmount
/// fspick, pidfd_getfd, mount_setattr, quotactl_fd, open_tree_attr.
const REFUSED_EVERYWHERE: &[u32] =
    &[425, 426, 427, 428, 429, 430, 431, 432, 433, 438, 442, 443, 467];
const CLONE3: u32 = 435;
const NEW_NAMESPACES: u32 = 0x7e02_0000;

fn filter(setup: &Setup, landlock: u32) -> Vec<Instruction> {
    const NUMBER: u32 = 0;
    const ARCHITECTURE: u32 = 4;
    const FIRST: u32 = 16;
    const SECOND: u32 = 24;
    let op = |code, value, yes, no| Instruction { code, yes, no, value };
    let load = |offset| op(LOAD, offset, 0, 0);
    let give = |value| op(RETURN, value, 0, 0);

    let mut program = vec![
        load(ARCHITECTURE),
        op(EQUAL, calls::ARCHITECTURE, 1, 0),
        give(fail(sys::EPERM)),
        load(NUMBER),
    ];
    if cfg!(target_arch = "x86_64") {
        // The x32 numbers would pass by every comparison below.
        program.extend([op(AT_LEAST, 0x4000_0000, 0, 1), give(fail(sys::EPERM))]);
    }
    for &call in calls::REFUSED.iter().chain(REFUSED_EVERYWHERE) {
        program.extend([op(EQUAL, call, 0, 1), give(fail(sys::EPERM))]);
    }
    // The C library falls back to `clone`, whose flags can be looked at.
    program.extend([op(EQUAL, CLONE3, 0, 1), give(fail(sys::ENOSYS))]);
    program.extend([
        op(EQUAL, calls::CLONE, 0, 4),
        load(FIRST),
        op(ANY_BIT, NEW_NAMESPACES, 0, 1),
        give(fail(sys::EPERM)),
        give(ALLOW),
    ]);
    // Typing into a terminal: TIOCSTI and TIOCLINUX.
    program.extend([
        op(EQUAL, calls::IOCTL, 0, 5),
        load(SECOND),
        op(EQUAL, 0x5412, 1, 0),
        op(EQUAL, 0x541c, 0, 1),
        give(fail(sys::EPERM)),
        give(ALLOW),
    ]);
    program.extend(socket_filter(setup, landlock));
    program.push(give(ALLOW));
    program
}

/// Which kinds of sockets there may be. Without a network namespace of its own, the kinds that would
/// reach out past the proxy are refused; sockets to a hypervisor (vsock) know no namespaces at all.
fn socket_filter(setup: &Setup, landlock: u32) -> Vec<Instruction> {
    const UNIX: u32 = 1;
    const INET: u32 = 2;
    const INET6: u32 = 10;
    const NETLINK: u32 = 16;
    const FIRST: u32 = 16;
    const SECOND: u32 = 24;
    const KIND: u32 = 0xf;
    const STREAM: u32 = 1;
    const AND: u16 = 0x54;
    let op = |code, value, yes, no| Instruction { code, yes, no, value };
    let give = |value| op(RETURN, value, 0, 0);

    let walled = setup.isolation == Isolation::Landlock;
    let streams_only = walled && setup.reach == Reach::Proxy && landlock >= 4;
    let families: &[u32] = match (walled, setup.reach) {
        (true, Reach::Proxy) if landlock >= 4 => &[INET],
        (true, Reach::Proxy | Reach::Nothing) => &[],
        (true, Reach::Everything) => &[INET, INET6, NETLINK],
        (false, _) => &[UNIX, INET, INET6, NETLINK],
    };
    let mut inner = vec![op(LOAD, FIRST, 0, 0)];
    for (at, &family) in families.iter().enumerate() {
        // Jumps over the remaining comparisons and the refusal.
        inner.push(op(EQUAL, family, (families.len() - at) as u8, 0));
    }
    inner.push(give(fail(sys::EAFNOSUPPORT)));
    if streams_only {
        inner.extend([
            op(LOAD, SECOND, 0, 0),
            op(AND, KIND, 0, 0),
            op(EQUAL, STREAM, 1, 0),
            give(fail(sys::EPERM)),
        ]);
    }
    inner.push(give(ALLOW));
    let mut program = vec![op(EQUAL, calls::SOCKET, 0, inner.len() as u8)];
    program.append(&mut inner);
    program
}

fn install(filter: &[Instruction]) -> io::Result<()> {
    #[repr(C)]
    struct Program {
        length: u16,
        instructions: *const Instruction,
    }
    const SET_MODE_FILTER: usize = 1;
    let program = Program { length: filter.len() as u16, instructions: filter.as_ptr() };
    let program = (&raw const program) as usize;
    // SAFETY: the program lives through the call and is as long as said.
    unsafe { sys::raw(number::SECCOMP, [SET_MODE_FILTER, 0, program, 0, 0]).map(drop) }
}
