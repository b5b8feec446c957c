use std::collections::BTreeSet;

use super::*;

const ALLOWED: u32 = libc::SECCOMP_RET_ALLOW;

fn refused(errno: libc::c_int) -> u32 {
    SeccompAction::Errno(errno as u32).into()
}

fn setup(isolation: Isolation, network: NetworkMode) -> Setup {
    Setup {
        isolation,
        network,
        uid: 0,
        gid: 0,
        workspace: String::new(),
        home: String::new(),
        binds: Vec::new(),
        hidden: Vec::new(),
        memory_bytes: 0,
        processes: 0,
        open_files: 0,
        file_bytes: 0,
        scratch_bytes: 0,
        control_group: String::new(),
    }
}

fn usual() -> SyscallFilter {
    SyscallFilter::new(&setup(Isolation::Namespaces, NetworkMode::Proxy), 6).unwrap()
}

/// What the kernel would answer to a call with these first two arguments: the newest refusal of all programs.
fn answer(filter: &SyscallFilter, number: c_long, arguments: [u32; 2]) -> u32 {
    let architecture = match TargetArch::try_from(std::env::consts::ARCH).unwrap() {
        TargetArch::x86_64 => 0xc000_003e,
        TargetArch::aarch64 => 0xc000_00b7,
        TargetArch::riscv64 => 0xc000_00f3,
    };
    let mut data = [0u32; 16];
    data[0] = number as u32;
    data[1] = architecture;
    (data[4], data[6]) = (arguments[0], arguments[1]);
    let answers = filter.programs.iter().rev().map(|program| run(program, &data));
    answers.into_iter().find(|&answer| answer != ALLOWED).unwrap_or(ALLOWED)
}

/// Runs a filter program as the kernel does; knows the instructions that filters are made of.
fn run(program: &[sock_filter], data: &[u32; 16]) -> u32 {
    let (mut at, mut accumulator) = (0, 0u32);
    loop {
        let sock_filter { code, jt, jf, k } = program[at].clone();
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
            code if code == libc::BPF_JMP | libc::BPF_JGT | libc::BPF_K => jump(accumulator > k),
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

#[test]
fn ordinary_calls_are_allowed() {
    let filter = usual();
    for number in [libc::SYS_read, libc::SYS_openat, libc::SYS_execve, libc::SYS_futex] {
        assert_eq!(answer(&filter, number, [0, 0]), ALLOWED);
    }
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
        let filter = SyscallFilter::new(&setup(isolation, network), 4).unwrap();
        let socket = |(family, kind): (i32, i32)| {
            answer(&filter, libc::SYS_socket, [family as u32, kind as u32])
        };
        assert_eq!(socket(allowed), ALLOWED, "{isolation:?} {network:?}");
        assert_eq!(socket(denied), refused(libc::EAFNOSUPPORT), "{isolation:?} {network:?}");
    }
    let nothing = SyscallFilter::new(&setup(Isolation::Landlock, Nothing), 4).unwrap();
    let inet = [libc::AF_INET as u32, libc::SOCK_STREAM as u32];
    assert_eq!(answer(&nothing, libc::SYS_socket, inet), refused(libc::EAFNOSUPPORT));
}

#[test]
fn only_streams_pass_where_ports_alone_are_guarded() {
    let filter = SyscallFilter::new(&setup(Isolation::Landlock, NetworkMode::Proxy), 4).unwrap();
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
