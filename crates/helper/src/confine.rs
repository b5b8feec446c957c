//! What a supervisor gives up before its command runs: limits, identity, capabilities, files, system calls.
//!
//! Invariants:
//! - Everything here is irreversible and inherited: what is given up stays so for the whole tree.
//! - The order is limits, identity, capabilities, no-new-privileges, Landlock, filter.

mod file_rules;
mod syscall_filter;

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use landlock::{Errno, RulesetCreated, RulesetError};
use rustix::process::{DumpableBehavior, Gid, Resource, Rlimit, Uid};
use rustix::thread::{CapabilitiesSecureBits, CapabilitySet, CapabilitySets};
use windlass_helper::protocol::Setup;

use crate::{Failure, sys};
use syscall_filter::SyscallFilter;

/// What the stacks of threads may reserve beside the memory of a process: a thousand of the usual size. The kernel
/// counts a reservation like use; what is used is watched by the supervisor.
const THREAD_STACK_BYTES: u64 = 1024 * (8 << 20);

/// Prepared once by the init, applied by each supervisor.
pub struct Confinement {
    owner: (Uid, Gid),
    dumpable: bool,
    file_rules: Option<RulesetCreated>,
    filter: SyscallFilter,
    limits: [(Resource, Option<u64>); 5],
    /// Landlock's version, 0 where the kernel has none.
    pub landlock: u32,
}

impl Confinement {
    /// Prepares the rules. Paths are those that commands will see.
    pub fn prepare(setup: &Setup, bounded: CgroupLimits, proxy_port: u16) -> io::Result<Self> {
        let landlock = file_rules::landlock_version().map_err(landlock_error)?;
        let file_rules = match landlock {
            0 => None,
            _ => Some(file_rules::create(setup, proxy_port).map_err(landlock_error)?),
        };
        let unless = |bounded: bool, limit: u64| (!bounded).then_some(limit);
        Ok(Self {
            owner: (Uid::from_raw(setup.uid), Gid::from_raw(setup.gid)),
            dumpable: setup.dumpable,
            file_rules,
            filter: SyscallFilter::new(setup, landlock, bounded),
            limits: [
                (Resource::Core, Some(0)),
                (Resource::Fsize, Some(setup.file_bytes)),
                (Resource::Nofile, Some(setup.open_files)),
                (Resource::Data, unless(bounded.memory, setup.memory_bytes + THREAD_STACK_BYTES)),
                (Resource::Nproc, unless(bounded.processes, setup.processes)),
            ],
            landlock,
        })
    }

    /// Gives everything up, for this process and all it will start. Returns where calls that the init has to
    /// answer are read from, if there are such.
    pub fn apply(&self) -> Result<Option<OwnedFd>, Failure> {
        let fail = |stage: &'static str| move |error: io::Error| (stage.to_owned(), error);
        for (resource, limit) in self.limits {
            lower_limit(resource, limit);
        }
        if rustix::process::geteuid().is_root() {
            become_owner(self.owner).map_err(fail("change user"))?;
        }
        let none = CapabilitySet::empty();
        let no_capabilities =
            CapabilitySets { effective: none, permitted: none, inheritable: none };
        rustix::thread::set_capabilities(None, no_capabilities)
            .map_err(|error| fail("drop capabilities")(error.into()))?;
        rustix::thread::set_no_new_privs(true)
            .map_err(|error| fail("no new privileges")(error.into()))?;
        // A process that changed its user is shown as root's in /proc; keep it unreadable all the same.
        if !self.dumpable {
            let _ = rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable);
        }
        if let Some(rules) = &self.file_rules {
            let rules = rules.try_clone().map_err(fail("landlock"))?;
            rules.restrict_self().map_err(landlock_error).map_err(fail("landlock"))?;
        }
        self.filter.install().map_err(fail("seccomp"))
    }
}

fn landlock_error(error: RulesetError) -> io::Error {
    io::Error::from_raw_os_error(*Errno::from(error))
}

/// Which of a task's bounds a control group enforces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CgroupLimits {
    pub memory: bool,
    pub processes: bool,
}

impl CgroupLimits {
    pub const NOTHING: Self = Self { memory: false, processes: false };

    pub fn send(self, to: &OwnedFd) -> io::Result<()> {
        sys::write(to, &[self.memory.into(), self.processes.into()]).map(drop)
    }

    /// Waits for what the other side sends.
    pub fn receive(from: impl AsFd) -> io::Result<Self> {
        let mut bytes = [0; 2];
        match sys::read(from, &mut bytes)? {
            2 => Ok(Self { memory: bytes[0] != 0, processes: bytes[1] != 0 }),
            _ => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
}

/// Raises how many files this process may have open to its maximum; returns the limit as it was.
pub fn raise_open_files() -> Rlimit {
    let before = rustix::process::getrlimit(Resource::Nofile);
    let raised = Rlimit { current: before.maximum, maximum: before.maximum };
    let _ = rustix::process::setrlimit(Resource::Nofile, raised);
    before
}

/// Sets both ends of a limit, never above the maximum there is. `None` is that maximum.
fn lower_limit(resource: Resource, limit: Option<u64>) {
    let maximum = rustix::process::getrlimit(resource).maximum;
    let lowered = limit.into_iter().chain(maximum).min();
    let _ = rustix::process::setrlimit(resource, Rlimit { current: lowered, maximum: lowered });
}

fn become_owner((uid, gid): (Uid, Gid)) -> io::Result<()> {
    let is_owner = rustix::process::geteuid() == uid && rustix::process::getegid() == gid;
    match rustix::thread::set_thread_groups(&[]) {
        // Root of a container without the right to change its user is the owner already.
        Err(_) if is_owner => return Ok(()),
        done => done?,
    }
    rustix::thread::set_thread_res_gid(gid, gid, gid)?;
    rustix::thread::set_thread_res_uid(uid, uid, uid)?;
    Ok(())
}

/// Keeps the memory of this process from others of the same user, and out of core files.
pub fn hide_memory(setup: &Setup) {
    if !setup.dumpable {
        let _ = rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable);
    }
}

/// Closes the ways by which a program could gain capabilities. This process keeps those it has, so the init
/// does it once for all supervisors.
pub fn drop_bounding_set() {
    use CapabilitiesSecureBits as Bits;
    let no_gain = Bits::NO_ROOT
        | Bits::NO_ROOT_LOCKED
        | Bits::NO_SETUID_FIXUP
        | Bits::NO_SETUID_FIXUP_LOCKED
        | Bits::NO_CAP_AMBIENT_RAISE
        | Bits::NO_CAP_AMBIENT_RAISE_LOCKED;
    // Both need a capability themselves. Without it there is nothing to close.
    let _ = rustix::thread::set_capabilities_secure_bits(no_gain);
    for bit in 0..u64::BITS {
        let capability = CapabilitySet::from_bits_retain(1 << bit);
        if rustix::thread::remove_capability_from_bounding_set(capability).is_err() {
            break;
        }
    }
    let _ = rustix::thread::clear_ambient_capability_set();
}
