//! Which system calls commands may not make.
//!
//! A list of what is refused, not of what is allowed: agents run compilers, browsers and databases. Refused is
//! what changes the machine (mounts, time, modules), makes namespaces, looks into other processes, or is known
//! for ways around the other walls (io_uring, user faults, bpf).
//!
//! A seccompiler filter has one answer, so there is one filter for each; the kernel asks all of them, and the
//! strictest answer counts. A program for another architecture (32 bit on a 64 bit kernel) is killed by the first.

mod tables;

use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;

use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition,
    SeccompFilter, SeccompRule, TargetArch, sock_filter,
};
use windlass_helper::protocol::{Isolation, NetworkMode, Setup};

use super::Bounded;
use crate::sys;
use tables::{
    ANSWERED_HERE, ANSWERED_ON_THE_HOST, ATTRIBUTE_REQUESTS, CREATING_FLAGS, Call, KIND_MASK,
    MODE_CALLS, NAMED_PAIRS, NAMESPACE_FLAGS, OLDER_FORMS, OPEN_CALLS, OWNER_CALLS_HERE, REFUSED,
    REFUSED_HERE, REFUSED_ON_THE_HOST, SET_ID_BITS, TYPING_REQUESTS, UNKNOWN, UNKNOWN_ON_THE_HOST,
    UNKNOWN_UNCOUNTED, UNSUPPORTED_ON_THE_HOST,
};

/// The programs that together make up the filter.
pub struct SyscallFilter {
    programs: Vec<BpfProgram>,
    /// Hands some calls to the init instead of refusing them.
    answered: Option<BpfProgram>,
}

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

impl SyscallFilter {
    /// `landlock` is its version: from 4 on it guards ports.
    pub fn new(setup: &Setup, landlock: u32, bounded: Bounded) -> Result<Self, BackendError> {
        let on_the_host = setup.isolation == Isolation::Landlock;
        let (sockets, kinds) = socket_rules(setup, landlock)?;
        let mut not_permitted = always(REFUSED.iter().chain(REFUSED_HERE));
        let mut unknown = always(UNKNOWN);
        let mut unsupported = Rules::new();
        let mut requests = each(&TYPING_REQUESTS, |&request| when(1, SeccompCmpOp::Eq, request))?;
        if !bounded.memory {
            unknown.extend(always(UNKNOWN_UNCOUNTED));
        }
        if on_the_host {
            not_permitted.extend(always(REFUSED_ON_THE_HOST.iter().chain(OWNER_CALLS_HERE)));
            unknown.extend(always(UNKNOWN_ON_THE_HOST.iter().chain(OLDER_FORMS)));
            unsupported.extend(always(UNSUPPORTED_ON_THE_HOST));
            requests
                .extend(each(&ATTRIBUTE_REQUESTS, |&request| when(1, SeccompCmpOp::Eq, request))?);
            not_permitted.insert(
                libc::SYS_socketpair,
                each(&NAMED_PAIRS, |&kind| {
                    when(1, SeccompCmpOp::MaskedEq(KIND_MASK), kind as u64)
                })?,
            );
            if setup.network != NetworkMode::Everything {
                // A socket that listens without a name gets a port on every interface.
                not_permitted.insert(libc::SYS_listen, Vec::new());
            }
        }
        not_permitted.extend(set_id_rules()?);
        not_permitted.insert(libc::SYS_ioctl, requests);
        not_permitted.insert(
            libc::SYS_clone,
            each(&NAMESPACE_FLAGS, |&flag| {
                when(0, SeccompCmpOp::MaskedEq(flag as u64), flag as u64)
            })?,
        );
        if !kinds.is_empty() {
            not_permitted.insert(libc::SYS_socket, kinds);
        }
        let refusals = [
            (not_permitted, libc::EPERM),
            (unknown, libc::ENOSYS),
            (unsupported, libc::EOPNOTSUPP),
            (Rules::from([(libc::SYS_socket, sockets)]), libc::EAFNOSUPPORT),
        ];
        let mut programs = refusals
            .into_iter()
            .filter(|(rules, _)| !rules.is_empty())
            .map(|(rules, errno)| compile(rules, SeccompAction::Errno(errno as u32)))
            .collect::<Result<Vec<_>, _>>()?;
        if cfg!(target_arch = "x86_64") {
            programs.push(refuse_x32());
        }
        let answered = on_the_host.then(ask_the_init).transpose()?;
        Ok(Self { programs, answered })
    }

    /// Installs it in this process, for good; returns what the calls to be answered are read from.
    pub fn install(&self) -> io::Result<Option<OwnedFd>> {
        for program in &self.programs {
            seccompiler::apply_filter(program).map_err(|error| match error {
                seccompiler::Error::Prctl(error) | seccompiler::Error::Seccomp(error) => error,
                other => io::Error::other(other),
            })?;
        }
        self.answered.as_deref().map(sys::listen_to_calls).transpose()
    }
}

/// Refuses set-id bits in every call that gives a file its mode.
fn set_id_rules() -> Result<Rules, BackendError> {
    let has = |argument: u8, bits: u64| condition(argument, SeccompCmpOp::MaskedEq(bits), bits);
    let mut rules = Rules::new();
    for &(_, number, mode) in MODE_CALLS {
        rules.insert(number, each(&SET_ID_BITS, |&bit| SeccompRule::new(vec![has(mode, bit)?]))?);
    }
    for &(_, number, flags, mode) in OPEN_CALLS {
        let both = CREATING_FLAGS.iter().flat_map(|flag| SET_ID_BITS.map(|bit| (*flag, bit)));
        let both: Vec<(u64, u64)> = both.collect();
        rules.insert(
            number,
            each(&both, |&(flag, bit)| SeccompRule::new(vec![has(flags, flag)?, has(mode, bit)?]))?,
        );
    }
    Ok(rules)
}

/// Has the kernel ask whoever reads the listener about these calls.
fn ask_the_init() -> Result<BpfProgram, BackendError> {
    // seccompiler does not know this answer, so another one stands for it.
    let stand_in = SeccompAction::Trace(0);
    let mut program =
        compile(always(ANSWERED_ON_THE_HOST.iter().chain(ANSWERED_HERE)), stand_in.clone())?;
    let stand_in = u32::from(stand_in);
    for instruction in &mut program {
        if instruction.code == RETURN && instruction.k == stand_in {
            instruction.k = libc::SECCOMP_RET_USER_NOTIF;
        }
    }
    Ok(program)
}

/// These calls, whatever their arguments.
fn always<'a>(calls: impl IntoIterator<Item = &'a Call>) -> Rules {
    calls.into_iter().map(|&(_, number)| (number, Vec::new())).collect()
}

fn each<T>(
    items: &[T],
    rule: impl Fn(&T) -> Result<SeccompRule, BackendError>,
) -> Result<Vec<SeccompRule>, BackendError> {
    items.iter().map(rule).collect()
}

/// Which sockets are refused: by their family, and by their kind.
///
/// Without a network namespace, whatever would reach out past the proxy is refused. Sockets to a hypervisor
/// (vsock) know no namespaces at all, so families are listed everywhere.
fn socket_rules(
    setup: &Setup,
    landlock: u32,
) -> Result<(Vec<SeccompRule>, Vec<SeccompRule>), BackendError> {
    const FAMILY: u8 = 0;
    const KIND: u8 = 1;
    let on_the_host = setup.isolation == Isolation::Landlock;
    let ports_are_guarded = landlock >= 4;
    let families: &[libc::c_int] = match (on_the_host, setup.network) {
        (true, NetworkMode::Proxy) if ports_are_guarded => &[libc::AF_INET],
        (true, NetworkMode::Proxy | NetworkMode::Nothing) => &[],
        (true, NetworkMode::Everything) => &[libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK],
        (false, _) => &[libc::AF_UNIX, libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK],
    };
    let none_of_them = families
        .iter()
        .map(|&family| condition(FAMILY, SeccompCmpOp::Ne, family as u64))
        .collect::<Result<Vec<_>, _>>()?;
    // A call without rules is always refused.
    let by_family = match none_of_them.as_slice() {
        [] => Vec::new(),
        _ => vec![SeccompRule::new(none_of_them)?],
    };
    let streams_only = on_the_host && setup.network == NetworkMode::Proxy && ports_are_guarded;
    let by_kind = match streams_only {
        false => Vec::new(),
        true => (0..=KIND_MASK)
            .filter(|&kind| kind != libc::SOCK_STREAM as u64)
            .map(|kind| when(KIND, SeccompCmpOp::MaskedEq(KIND_MASK), kind))
            .collect::<Result<_, _>>()?,
    };
    Ok((by_family, by_kind))
}

/// A rule that matches when this argument compares so. The kernel reads the low half of each of them.
fn when(argument: u8, operator: SeccompCmpOp, value: u64) -> Result<SeccompRule, BackendError> {
    SeccompRule::new(vec![condition(argument, operator, value)?])
}

fn condition(
    argument: u8,
    operator: SeccompCmpOp,
    value: u64,
) -> Result<SeccompCondition, BackendError> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operator, value)
}

/// Answers what the rules match so; everything else is allowed.
fn compile(rules: Rules, answer: SeccompAction) -> Result<BpfProgram, BackendError> {
    let architecture: TargetArch = std::env::consts::ARCH.try_into()?;
    SeccompFilter::new(rules, SeccompAction::Allow, answer, architecture)?.try_into()
}

const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;

/// Refuses the x32 numbers of all calls: they have the architecture of 64 bit, and no rule above names them.
fn refuse_x32() -> BpfProgram {
    const X32_BIT: u32 = 0x4000_0000;
    const LOAD_WORD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
    const JUMP_IF_AT_LEAST: u16 = (libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K) as u16;
    let refuse = u32::from(SeccompAction::Errno(libc::EPERM as u32));
    vec![
        sock_filter { code: LOAD_WORD, jt: 0, jf: 0, k: 0 },
        sock_filter { code: JUMP_IF_AT_LEAST, jt: 0, jf: 1, k: X32_BIT },
        sock_filter { code: RETURN, jt: 0, jf: 0, k: refuse },
        sock_filter { code: RETURN, jt: 0, jf: 0, k: u32::from(SeccompAction::Allow) },
    ]
}

#[cfg(test)]
mod tests;
