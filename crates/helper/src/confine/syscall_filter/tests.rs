use std::collections::BTreeSet;

use libc::{c_int, c_long};

use super::*;

const ALLOWED: u32 = libc::SECCOMP_RET_ALLOW;

fn refused(errno: c_int) -> u32 {
    refusal(errno)
}

fn setup(isolation: Isolation, network: NetworkMode) -> Setup {
    Setup { isolation, network, ..Setup::for_host(String::new()) }
}

const COUNTED: CgroupLimits = CgroupLimits { memory: true, processes: true };

fn usual() -> SyscallFilter {
    filter(Isolation::Namespaces, NetworkMode::Proxy)
}

fn filter(isolation: Isolation, network: NetworkMode) -> SyscallFilter {
    SyscallFilter::new(&setup(isolation, network), 6, COUNTED)
}

/// What the kernel would answer to a call with these first arguments.
fn answer<const N: usize>(filter: &SyscallFilter, number: c_long, arguments: [u32; N]) -> u32 {
    let mut data = [0u32; 16];
    data[0] = number as u32;
    data[1] = if cfg!(target_arch = "x86_64") { 0xc000_003e } else { 0xc000_00b7 };
    for (at, argument) in arguments.into_iter().enumerate() {
        data[4 + 2 * at] = argument;
    }
    run(&filter.program, &data)
}

/// Runs a filter program as the kernel does; knows the instructions that filters are made of.
fn run(program: &[sock_filter], data: &[u32; 16]) -> u32 {
    let (mut at, mut accumulator) = (0, 0u32);
    loop {
        let sock_filter { code, jt, jf, k } = program[at];
        let mut jump = |holds: bool| at += usize::from(if holds { jt } else { jf });
        match u32::from(code) {
            code if code == libc::BPF_RET | libc::BPF_K => return k,
            code if code == libc::BPF_LD | libc::BPF_W | libc::BPF_ABS => {
                accumulator = data[k as usize / 4];
            }
            code if code == libc::BPF_ALU | libc::BPF_AND | libc::BPF_K => accumulator &= k,
            code if code == libc::BPF_JMP | libc::BPF_JA => at += k as usize,
            code if code == libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K => jump(accumulator == k),
            code if code == libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K => jump(accumulator >= k),
            code => panic!("instruction {code:#x}"),
        }
        at += 1;
    }
}

#[test]
fn every_listed_call_is_refused_and_listed_once() {
    let filter = usual();
    let mut numbers = BTreeSet::new();
    for &(name, number) in REFUSED.iter().chain(REFUSED_HERE) {
        assert_eq!(answer(&filter, number, [0, 0]), refused(libc::EPERM), "{name}");
        assert!(numbers.insert(number), "{name} is listed twice");
    }
}

/// Whatever the halving does, a number that no table names is allowed.
#[test]
fn calls_that_no_table_names_are_allowed() {
    let filter = usual();
    let tables = [REFUSED, REFUSED_HERE, UNKNOWN];
    let named =
        |number: c_long| tables.iter().any(|calls| calls.iter().any(|(_, named)| *named == number));
    for number in (0..600).filter(|&number| !named(number)) {
        // A stream of the usual family; to other calls these are numbers like others.
        let arguments = [libc::AF_INET as u32, libc::SOCK_STREAM as u32, 0, 0];
        assert_eq!(answer(&filter, number, arguments), ALLOWED, "{number}");
    }
}

#[test]
fn another_architecture_is_killed() {
    let mut data = [0u32; 16];
    data[1] = 0x4000_0003;
    assert_eq!(run(&usual().program, &data), libc::SECCOMP_RET_KILL_PROCESS);
}

#[test]
fn clone_makes_processes_and_no_namespaces() {
    let filter = usual();
    assert_eq!(answer(&filter, libc::SYS_clone, [libc::SIGCHLD as u32, 0]), ALLOWED);
    for flag in NAMESPACE_FLAGS {
        let flags = (flag | libc::SIGCHLD) as u32;
        assert_eq!(answer(&filter, libc::SYS_clone, [flags, 0]), refused(libc::EPERM));
    }
    assert_eq!(answer(&filter, libc::SYS_clone3, [0, 0]), refused(libc::ENOSYS));
}

#[test]
fn no_call_sets_a_set_id_bit() {
    let filter = usual();
    for &(name, number, at) in MODE_CALLS {
        let with = |mode: u32| {
            let mut arguments = [0; 4];
            arguments[usize::from(at)] = mode;
            answer(&filter, number, arguments)
        };
        for mode in [0o4755, 0o2755, 0o6000] {
            assert_eq!(with(mode), refused(libc::EPERM), "{name}");
        }
        assert_eq!(with(0o1777), ALLOWED, "{name}");
    }
    for &(name, number, flags_at, mode_at) in OPEN_CALLS {
        let with = |flags: i32, mode: u32| {
            let mut arguments = [0; 4];
            arguments[usize::from(flags_at)] = flags as u32;
            arguments[usize::from(mode_at)] = mode;
            answer(&filter, number, arguments)
        };
        for flags in [libc::O_CREAT | libc::O_WRONLY, libc::O_TMPFILE | libc::O_RDWR] {
            assert_eq!(with(flags, 0o4755), refused(libc::EPERM), "{name}");
            assert_eq!(with(flags, 0o2600), refused(libc::EPERM), "{name}");
            assert_eq!(with(flags, 0o755), ALLOWED, "{name}");
        }
        // Without a file to create there is no mode, and anything may be in its place.
        assert_eq!(with(libc::O_RDONLY | libc::O_DIRECTORY, 0o7777), ALLOWED, "{name}");
    }
    assert_eq!(answer(&filter, libc::SYS_openat2, [0]), refused(libc::ENOSYS));
}

#[test]
fn on_the_host_modes_and_times_are_asked_about_and_owners_refused() {
    let filter = filter(Isolation::Landlock, NetworkMode::Proxy);
    for &(name, number) in ANSWERED_ON_THE_HOST.iter().chain(ANSWERED_HERE) {
        assert_eq!(answer(&filter, number, [0; 4]), libc::SECCOMP_RET_USER_NOTIF, "{name}");
    }
    assert_eq!(answer(&filter, libc::SYS_fchmodat, [0, 0, 0o4755]), refused(libc::EPERM));
    assert_eq!(answer(&filter, libc::SYS_fchownat, [0; 4]), refused(libc::EPERM));
    assert_eq!(answer(&filter, libc::SYS_setxattr, [0; 4]), refused(libc::EOPNOTSUPP));
    assert_eq!(answer(&filter, libc::SYS_shmget, [0; 4]), refused(libc::ENOSYS));
    assert_eq!(answer(&filter, libc::SYS_listen, [0; 4]), refused(libc::EPERM));
    let pair = |kind: i32| answer(&filter, libc::SYS_socketpair, [1, kind as u32]);
    assert_eq!(pair(libc::SOCK_STREAM | libc::SOCK_CLOEXEC), ALLOWED);
    assert_eq!(pair(libc::SOCK_DGRAM), refused(libc::EPERM));
    for &(name, request) in ATTRIBUTE_REQUESTS {
        let asked = [3, request];
        assert_eq!(answer(&filter, libc::SYS_ioctl, asked), refused(libc::EPERM), "{name}");
        assert_eq!(answer(&usual(), libc::SYS_ioctl, asked), ALLOWED, "{name}");
    }
}

#[test]
fn without_landlocks_guard_no_file_is_emptied() {
    let host = setup(Isolation::Landlock, NetworkMode::Proxy);
    for (landlock, refusal) in [(2, refused(libc::EPERM)), (3, ALLOWED)] {
        let filter = SyscallFilter::new(&host, landlock, COUNTED);
        assert_eq!(answer(&filter, libc::SYS_truncate, [0, 0]), refusal);
        for &(name, number, flags_at, _) in OPEN_CALLS {
            let open = |flags: i32| {
                let mut arguments = [0; 4];
                arguments[usize::from(flags_at)] = flags as u32;
                answer(&filter, number, arguments)
            };
            for flags in [libc::O_RDONLY, libc::O_ACCMODE] {
                assert_eq!(open(flags | libc::O_TRUNC | libc::O_CLOEXEC), refusal, "{name}");
                assert_eq!(open(flags), ALLOWED, "{name}");
            }
            for flags in [libc::O_WRONLY, libc::O_RDWR] {
                assert_eq!(open(flags | libc::O_TRUNC | libc::O_CREAT), ALLOWED, "{name}");
            }
        }
    }
}

#[test]
fn memory_that_nobody_counts_cannot_be_made() {
    let setup = setup(Isolation::Namespaces, NetworkMode::Proxy);
    let uncounted = SyscallFilter::new(&setup, 6, CgroupLimits::NOTHING);
    assert_eq!(answer(&uncounted, libc::SYS_memfd_create, [0]), refused(libc::ENOSYS));
    assert_eq!(answer(&usual(), libc::SYS_memfd_create, [0]), ALLOWED);
}

#[test]
fn no_terminal_is_typed_into() {
    let filter = usual();
    for request in TYPING_REQUESTS {
        assert_eq!(answer(&filter, libc::SYS_ioctl, [1, request as u32]), refused(libc::EPERM));
    }
    assert_eq!(answer(&filter, libc::SYS_ioctl, [1, libc::TCGETS as u32]), ALLOWED);
}

#[test]
fn sockets_are_those_that_the_network_mode_leaves() {
    use NetworkMode::{Everything, Nothing, Proxy};
    let stream = |family| (family, libc::SOCK_STREAM);
    for (isolation, network, allowed, denied) in [
        (Isolation::Namespaces, Proxy, stream(libc::AF_UNIX), stream(libc::AF_VSOCK)),
        (Isolation::Landlock, Proxy, stream(libc::AF_INET), stream(libc::AF_UNIX)),
        (Isolation::Landlock, Everything, stream(libc::AF_INET6), stream(libc::AF_UNIX)),
    ] {
        let filter = filter(isolation, network);
        let socket = |(family, kind): (i32, i32)| {
            answer(&filter, libc::SYS_socket, [family as u32, kind as u32])
        };
        assert_eq!(socket(allowed), ALLOWED, "{isolation:?} {network:?}");
        assert_eq!(socket(denied), refused(libc::EAFNOSUPPORT), "{isolation:?} {network:?}");
    }
    let nothing = filter(Isolation::Landlock, Nothing);
    let inet = [libc::AF_INET as u32, libc::SOCK_STREAM as u32];
    assert_eq!(answer(&nothing, libc::SYS_socket, inet), refused(libc::EAFNOSUPPORT));
}

#[test]
fn only_streams_pass_where_ports_alone_are_guarded() {
    let filter = filter(Isolation::Landlock, NetworkMode::Proxy);
    let kind = |kind: i32| {
        let kind = (kind | libc::SOCK_CLOEXEC) as u32;
        answer(&filter, libc::SYS_socket, [libc::AF_INET as u32, kind])
    };
    assert_eq!(kind(libc::SOCK_STREAM), ALLOWED);
    assert_eq!(kind(libc::SOCK_DGRAM), refused(libc::EPERM));
    assert_eq!(kind(libc::SOCK_RAW), refused(libc::EPERM));
}

#[cfg(target_arch = "x86_64")]
#[test]
fn x32_numbers_pass_by_no_rule() {
    let x32 = 0x4000_0000 + libc::SYS_mount;
    assert_eq!(answer(&usual(), x32, [0, 0]), refused(libc::EPERM));
}
