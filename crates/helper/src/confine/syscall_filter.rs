//! Which system calls commands may not make.
//!
//! A list of what is refused, not of what is allowed: agents run compilers, browsers and databases. Refused is
//! what changes the machine (mounts, time, modules), makes namespaces, looks into other processes, or is known
//! for ways around the other walls (io_uring, user faults, bpf).
//!
//! A seccompiler filter has one answer, so there is one filter for each; the kernel asks all of them. A
//! program for another architecture (32 bit on a 64 bit kernel) is killed by the first.

use std::collections::BTreeMap;
use std::io;

use libc::c_long;
use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition,
    SeccompFilter, SeccompRule, TargetArch, sock_filter,
};
use windlass_helper::protocol::{Isolation, NetworkMode, Setup};

/// A system call's name and its number on this architecture.
type Call = (&'static str, c_long);

macro_rules! calls {
    ($($name:ident = $number:expr),* $(,)?) => { &[$((stringify!($name), $number)),*] };
}

/// Refused with `EPERM`.
const REFUSED: &[Call] = calls![
    // The file system as a whole.
    mount = libc::SYS_mount,
    umount2 = libc::SYS_umount2,
    pivot_root = libc::SYS_pivot_root,
    chroot = libc::SYS_chroot,
    open_tree = libc::SYS_open_tree,
    open_tree_attr = 467,
    move_mount = libc::SYS_move_mount,
    fsopen = libc::SYS_fsopen,
    fsconfig = libc::SYS_fsconfig,
    fsmount = libc::SYS_fsmount,
    fspick = libc::SYS_fspick,
    mount_setattr = libc::SYS_mount_setattr,
    quotactl = libc::SYS_quotactl,
    quotactl_fd = libc::SYS_quotactl_fd,
    swapon = libc::SYS_swapon,
    swapoff = libc::SYS_swapoff,
    // Files by number, past every path and rule.
    name_to_handle_at = libc::SYS_name_to_handle_at,
    open_by_handle_at = libc::SYS_open_by_handle_at,
    lookup_dcookie = libc::SYS_lookup_dcookie,
    // Namespaces.
    unshare = libc::SYS_unshare,
    setns = libc::SYS_setns,
    // The machine.
    reboot = libc::SYS_reboot,
    sethostname = libc::SYS_sethostname,
    setdomainname = libc::SYS_setdomainname,
    init_module = libc::SYS_init_module,
    finit_module = libc::SYS_finit_module,
    delete_module = libc::SYS_delete_module,
    kexec_load = libc::SYS_kexec_load,
    kexec_file_load = libc::SYS_kexec_file_load,
    acct = libc::SYS_acct,
    settimeofday = libc::SYS_settimeofday,
    clock_settime = libc::SYS_clock_settime,
    clock_adjtime = libc::SYS_clock_adjtime,
    adjtimex = libc::SYS_adjtimex,
    syslog = libc::SYS_syslog,
    vhangup = libc::SYS_vhangup,
    // Other processes, and keys that outlive a process.
    ptrace = libc::SYS_ptrace,
    process_vm_readv = libc::SYS_process_vm_readv,
    process_vm_writev = libc::SYS_process_vm_writev,
    pidfd_getfd = libc::SYS_pidfd_getfd,
    kcmp = libc::SYS_kcmp,
    add_key = libc::SYS_add_key,
    request_key = libc::SYS_request_key,
    keyctl = libc::SYS_keyctl,
    // The kernel's own machinery.
    bpf = libc::SYS_bpf,
    perf_event_open = libc::SYS_perf_event_open,
    userfaultfd = libc::SYS_userfaultfd,
    io_uring_setup = libc::SYS_io_uring_setup,
    io_uring_enter = libc::SYS_io_uring_enter,
    io_uring_register = libc::SYS_io_uring_register,
];

/// Refused with `EPERM`; only this architecture has them.
#[cfg(target_arch = "x86_64")]
const REFUSED_HERE: &[Call] = calls![iopl = libc::SYS_iopl, ioperm = libc::SYS_ioperm];
#[cfg(target_arch = "aarch64")]
const REFUSED_HERE: &[Call] = &[];

/// `clone` with any of these makes a namespace. `clone3` hides its flags from filters, so all of it is refused
/// as unknown, and C libraries then use `clone`.
const NAMESPACE_FLAGS: [libc::c_int; 7] = [
    libc::CLONE_NEWNS,
    libc::CLONE_NEWCGROUP,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
];

/// Requests of `ioctl` that type into a terminal.
const TYPING_REQUESTS: [libc::Ioctl; 2] = [libc::TIOCSTI, libc::TIOCLINUX];

/// The programs that together make up the filter.
pub struct SyscallFilter {
    programs: Vec<BpfProgram>,
}

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

impl SyscallFilter {
    /// `landlock` is its version: from 4 on it guards ports.
    pub fn new(setup: &Setup, landlock: u32) -> Result<Self, BackendError> {
        let (sockets, kinds) = socket_rules(setup, landlock)?;
        let mut not_permitted: Rules =
            REFUSED.iter().chain(REFUSED_HERE).map(|&(_, number)| (number, Vec::new())).collect();
        not_permitted.insert(
            libc::SYS_clone,
            NAMESPACE_FLAGS
                .map(|flag| when(0, SeccompCmpOp::MaskedEq(flag as u64), flag as u64))
                .into_iter()
                .collect::<Result<_, _>>()?,
        );
        not_permitted.insert(
            libc::SYS_ioctl,
            TYPING_REQUESTS
                .map(|request| when(1, SeccompCmpOp::Eq, request))
                .into_iter()
                .collect::<Result<_, _>>()?,
        );
        if !kinds.is_empty() {
            not_permitted.insert(libc::SYS_socket, kinds);
        }
        let unknown = Rules::from([(libc::SYS_clone3, Vec::new())]);
        let mut programs = vec![
            compile(not_permitted, libc::EPERM)?,
            compile(unknown, libc::ENOSYS)?,
            compile(Rules::from([(libc::SYS_socket, sockets)]), libc::EAFNOSUPPORT)?,
        ];
        if cfg!(target_arch = "x86_64") {
            programs.push(refuse_x32());
        }
        Ok(Self { programs })
    }

    /// Installs it in this process, for good.
    pub fn install(&self) -> io::Result<()> {
        for program in &self.programs {
            seccompiler::apply_filter(program).map_err(|error| match error {
                seccompiler::Error::Prctl(error) | seccompiler::Error::Seccomp(error) => error,
                other => io::Error::other(other),
            })?;
        }
        Ok(())
    }
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
    const KIND_MASK: u64 = 0xf;
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

/// Refuses what the rules match with this error; everything else is allowed.
fn compile(rules: Rules, errno: libc::c_int) -> Result<BpfProgram, BackendError> {
    let architecture: TargetArch = std::env::consts::ARCH.try_into()?;
    let refuse = SeccompAction::Errno(errno as u32);
    SeccompFilter::new(rules, SeccompAction::Allow, refuse, architecture)?.try_into()
}

/// Refuses the x32 numbers of all calls: they have the architecture of 64 bit, and no rule above names them.
fn refuse_x32() -> BpfProgram {
    const X32_BIT: u32 = 0x4000_0000;
    const LOAD_WORD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
    const JUMP_IF_AT_LEAST: u16 = (libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K) as u16;
    const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;
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
