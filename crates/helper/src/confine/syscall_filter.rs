//! Which system calls commands may not make.
//!
//! A list of refused calls, not of allowed ones: agents run compilers, browsers and databases. A call is refused if it
//! changes the machine (mounts, time, modules), makes namespaces, looks into other processes, or is known to bypass
//! the other layers (io_uring, user faults, bpf).

mod program;
mod tables;

use std::io;
use std::os::fd::OwnedFd;

use libc::{c_int, sock_filter};
use windlass_helper::protocol::{Isolation, NetworkMode, Setup};

use super::CgroupLimits;
use crate::sys;
use program::{Rule, Rules, Test, assemble};
use tables::{
    ANSWERED_HERE, ANSWERED_ON_THE_HOST, ATTRIBUTE_REQUESTS, CREATING_FLAGS, EMPTYING_FLAGS,
    KIND_MASK, MODE_CALLS, NAMED_PAIRS, NAMESPACE_FLAGS, OLDER_FORMS, OPEN_CALLS, OWNER_CALLS_HERE,
    REFUSED, REFUSED_HERE, REFUSED_ON_THE_HOST, SET_ID_BITS, SystemCall, TRUNCATE, TYPING_REQUESTS,
    UNKNOWN, UNKNOWN_ON_THE_HOST, UNKNOWN_UNCOUNTED, UNSUPPORTED_ON_THE_HOST,
};

/// The filter as the kernel takes it.
pub struct SyscallFilter {
    program: Vec<sock_filter>,
    /// Whether some calls are handed over to the init instead of being refused.
    asks_the_init: bool,
}

impl SyscallFilter {
    /// `landlock` is its version: from 3 on it guards the length of files, from 4 on ports.
    pub fn new(setup: &Setup, landlock: u32, bounded: CgroupLimits) -> Self {
        let on_the_host = setup.isolation == Isolation::Landlock;
        let mut rules = Rules::new();
        always(&mut rules, REFUSED.iter().chain(REFUSED_HERE), refusal(libc::EPERM));
        always(&mut rules, UNKNOWN, refusal(libc::ENOSYS));
        if !bounded.memory {
            always(&mut rules, UNKNOWN_UNCOUNTED, refusal(libc::ENOSYS));
        }
        let eperm = refusal(libc::EPERM);
        let namespaces = NAMESPACE_FLAGS.iter().fold(0, |all, &flag| all | flag as u32);
        add(&mut rules, libc::SYS_clone, vec![Test::has_any(0, namespaces)], eperm);
        for request in TYPING_REQUESTS {
            add(&mut rules, libc::SYS_ioctl, vec![Test::is(1, u32::MAX, request as u32)], eperm);
        }
        refuse_set_id_bits(&mut rules);
        restrict_sockets(&mut rules, setup, landlock);
        if on_the_host {
            guard_the_host(&mut rules, setup, landlock);
        }
        Self { program: assemble(&rules), asks_the_init: on_the_host }
    }

    /// Installs it in this process, for good; returns what the calls for the init are read from, if there are such.
    pub fn install(&self) -> io::Result<Option<OwnedFd>> {
        sys::install_filter(&self.program, self.asks_the_init)
    }
}

/// What Landlock does not guard, where nothing else does.
fn guard_the_host(rules: &mut Rules, setup: &Setup, landlock: u32) {
    let eperm = refusal(libc::EPERM);
    always(rules, REFUSED_ON_THE_HOST.iter().chain(OWNER_CALLS_HERE), eperm);
    always(rules, UNKNOWN_ON_THE_HOST.iter().chain(OLDER_FORMS), refusal(libc::ENOSYS));
    always(rules, UNSUPPORTED_ON_THE_HOST, refusal(libc::EOPNOTSUPP));
    for &(_, request) in ATTRIBUTE_REQUESTS {
        add(rules, libc::SYS_ioctl, vec![Test::is(1, u32::MAX, request)], eperm);
    }
    if landlock < 3 {
        always(rules, &[TRUNCATE], eperm);
        for &(_, number, flags, _) in OPEN_CALLS {
            let mask = (libc::O_TRUNC | libc::O_ACCMODE) as u32;
            for emptying in EMPTYING_FLAGS {
                add(rules, number, vec![Test::is(flags, mask, emptying as u32)], eperm);
            }
        }
    }
    for kind in NAMED_PAIRS {
        add(rules, libc::SYS_socketpair, vec![Test::is(1, KIND_MASK, kind as u32)], eperm);
    }
    // Another process without room for open files or for a file ends as if it were killed. Its own is number 0.
    add(rules, libc::SYS_prlimit64, vec![Test::is_not(0, u32::MAX, 0)], eperm);
    if setup.network != NetworkMode::Everything {
        // A socket that listens without a name gets a port on every interface.
        add(rules, libc::SYS_listen, Vec::new(), eperm);
    }
    // After the rules that refuse set-id bits in the same calls.
    let answered = ANSWERED_ON_THE_HOST.iter().chain(ANSWERED_HERE);
    always(rules, answered, libc::SECCOMP_RET_USER_NOTIF);
}

/// Refuses set-id bits in every call that gives a file its mode.
fn refuse_set_id_bits(rules: &mut Rules) {
    for &(_, number, mode) in MODE_CALLS {
        add(rules, number, vec![Test::has_any(mode, SET_ID_BITS)], refusal(libc::EPERM));
    }
    for &(_, number, flags, mode) in OPEN_CALLS {
        let tests = vec![Test::has_any(flags, CREATING_FLAGS), Test::has_any(mode, SET_ID_BITS)];
        add(rules, number, tests, refusal(libc::EPERM));
    }
}

/// Refuses sockets by their family, and by their kind.
///
/// Without a network namespace, whatever would reach out past the proxy is refused. Sockets to a hypervisor
/// (vsock) know no namespaces at all, so families are listed everywhere.
fn restrict_sockets(rules: &mut Rules, setup: &Setup, landlock: u32) {
    const FAMILY: u8 = 0;
    const KIND: u8 = 1;
    let on_the_host = setup.isolation == Isolation::Landlock;
    let ports_are_guarded = landlock >= 4;
    let families: &[c_int] = match (on_the_host, setup.network) {
        (true, NetworkMode::Proxy) if ports_are_guarded => &[libc::AF_INET],
        (true, NetworkMode::Proxy | NetworkMode::Nothing) => &[],
        (true, NetworkMode::Everything) => &[libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK],
        (false, _) => &[libc::AF_UNIX, libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK],
    };
    let none_of_them =
        families.iter().map(|&family| Test::is_not(FAMILY, u32::MAX, family as u32)).collect();
    add(rules, libc::SYS_socket, none_of_them, refusal(libc::EAFNOSUPPORT));
    if on_the_host && setup.network == NetworkMode::Proxy && ports_are_guarded {
        let tests = vec![Test::is_not(KIND, KIND_MASK, libc::SOCK_STREAM as u32)];
        add(rules, libc::SYS_socket, tests, refusal(libc::EPERM));
    }
}

/// These calls, whatever their arguments, unless an earlier rule has answered.
fn always<'a>(rules: &mut Rules, calls: impl IntoIterator<Item = &'a SystemCall>, answer: u32) {
    for &(_, number) in calls {
        add(rules, number, Vec::new(), answer);
    }
}

fn add(rules: &mut Rules, number: libc::c_long, tests: Vec<Test>, answer: u32) {
    rules.entry(number).or_default().push(Rule { tests, answer });
}

fn refusal(errno: c_int) -> u32 {
    libc::SECCOMP_RET_ERRNO | errno as u32
}

#[cfg(test)]
mod tests;
