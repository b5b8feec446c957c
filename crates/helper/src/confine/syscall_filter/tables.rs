//! The system calls that the filter knows, by name: what is refused always, and what in which case.

use libc::c_long;

/// A system call's name and its number on this architecture.
pub type SystemCall = (&'static str, c_long);

macro_rules! calls {
    ($($name:ident = $number:expr),* $(,)?) => { &[$((stringify!($name), $number)),*] };
}

/// Refused with `EPERM`.
pub const REFUSED: &[SystemCall] = calls![
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
pub const REFUSED_HERE: &[SystemCall] = calls![iopl = libc::SYS_iopl, ioperm = libc::SYS_ioperm];
#[cfg(target_arch = "aarch64")]
pub const REFUSED_HERE: &[SystemCall] = &[];

/// `clone` with any of these makes a namespace.
pub const NAMESPACE_FLAGS: [libc::c_int; 7] = [
    libc::CLONE_NEWNS,
    libc::CLONE_NEWCGROUP,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
];

/// Requests of `ioctl` that type into a terminal.
pub const TYPING_REQUESTS: [libc::Ioctl; 2] = [libc::TIOCSTI, libc::TIOCLINUX];

/// Calls that give a file its mode, with the argument that holds it. Set-user and set-group bits in it are refused:
/// on the host such a file would lend its owner's rights to everyone.
pub const MODE_CALLS: &[(&str, c_long, u8)] = &[
    ("fchmod", libc::SYS_fchmod, 1),
    ("fchmodat", libc::SYS_fchmodat, 2),
    ("fchmodat2", FCHMODAT2, 2),
    ("mkdirat", libc::SYS_mkdirat, 2),
    ("mknodat", libc::SYS_mknodat, 2),
    #[cfg(target_arch = "x86_64")]
    ("chmod", libc::SYS_chmod, 1),
    #[cfg(target_arch = "x86_64")]
    ("creat", libc::SYS_creat, 1),
    #[cfg(target_arch = "x86_64")]
    ("mkdir", libc::SYS_mkdir, 1),
    #[cfg(target_arch = "x86_64")]
    ("mknod", libc::SYS_mknod, 1),
];

/// Calls whose mode counts only when they create a file: with the argument that holds the flags, and the mode.
pub const OPEN_CALLS: &[(&str, c_long, u8, u8)] = &[
    ("openat", libc::SYS_openat, 2, 3),
    #[cfg(target_arch = "x86_64")]
    ("open", libc::SYS_open, 1, 2),
];

/// Set-user and set-group.
pub const SET_ID_BITS: u32 = 0o6000;

/// Flags that make an open create a file. Of `O_TMPFILE` it is the part that is not `O_DIRECTORY`.
pub const CREATING_FLAGS: u32 = (libc::O_CREAT | libc::O_TMPFILE & !libc::O_DIRECTORY) as u32;

const FCHMODAT2: c_long = 452;

/// Unknown to commands (`ENOSYS`): they hide their arguments behind a pointer, and C libraries have another way.
pub const UNKNOWN: &[SystemCall] = calls![clone3 = libc::SYS_clone3, openat2 = libc::SYS_openat2];

/// Unknown where no control group counts memory: what is written into it belongs to no process.
pub const UNKNOWN_UNCOUNTED: &[SystemCall] =
    calls![memfd_create = libc::SYS_memfd_create, memfd_secret = libc::SYS_memfd_secret];

/// Unknown on the host's own root: shared memory, semaphores and queues of the host, and older forms of calls that
/// are answered by the init.
pub const UNKNOWN_ON_THE_HOST: &[SystemCall] = calls![
    shmget = libc::SYS_shmget,
    shmat = libc::SYS_shmat,
    shmctl = libc::SYS_shmctl,
    semget = libc::SYS_semget,
    semctl = libc::SYS_semctl,
    semtimedop = libc::SYS_semtimedop,
    semop = libc::SYS_semop,
    msgget = libc::SYS_msgget,
    msgctl = libc::SYS_msgctl,
    msgsnd = libc::SYS_msgsnd,
    msgrcv = libc::SYS_msgrcv,
    mq_open = libc::SYS_mq_open,
    mq_unlink = libc::SYS_mq_unlink,
    fchmodat2 = FCHMODAT2,
];
#[cfg(target_arch = "x86_64")]
pub const OLDER_FORMS: &[SystemCall] =
    calls![utime = libc::SYS_utime, utimes = libc::SYS_utimes, futimesat = libc::SYS_futimesat];
#[cfg(target_arch = "aarch64")]
pub const OLDER_FORMS: &[SystemCall] = &[];

/// Refused on the host's own root with `EPERM`: Landlock does not guard who owns a file.
pub const REFUSED_ON_THE_HOST: &[SystemCall] =
    calls![fchown = libc::SYS_fchown, fchownat = libc::SYS_fchownat, file_setattr = 469,];
#[cfg(target_arch = "x86_64")]
pub const OWNER_CALLS_HERE: &[SystemCall] =
    calls![chown = libc::SYS_chown, lchown = libc::SYS_lchown];
#[cfg(target_arch = "aarch64")]
pub const OWNER_CALLS_HERE: &[SystemCall] = &[];

/// Not supported (`EOPNOTSUPP`) on the host's own root: nor does Landlock guard attributes of files.
pub const UNSUPPORTED_ON_THE_HOST: &[SystemCall] = calls![
    setxattr = libc::SYS_setxattr,
    lsetxattr = libc::SYS_lsetxattr,
    fsetxattr = libc::SYS_fsetxattr,
    removexattr = libc::SYS_removexattr,
    lremovexattr = libc::SYS_lremovexattr,
    fremovexattr = libc::SYS_fremovexattr,
    setxattrat = 463,
    removexattrat = 466,
];

/// Requests of `ioctl` that change attributes of a file, also of one that is open for reading alone.
pub const ATTRIBUTE_REQUESTS: &[(&str, u32)] = &[
    ("FS_IOC_SETFLAGS", 0x4008_6602),
    ("FS_IOC32_SETFLAGS", 0x4004_6602),
    ("FS_IOC_FSSETXATTR", 0x401c_5820),
    ("FS_IOC_SETVERSION", 0x4008_7602),
    ("FS_IOC32_SETVERSION", 0x4004_7602),
    ("EXT4_IOC_SETVERSION", 0x4008_6604),
    ("FS_IOC_ENABLE_VERITY", 0x4080_6685),
    ("FS_IOC_SET_ENCRYPTION_POLICY", 0x800c_6613),
    ("FAT_IOCTL_SET_ATTRIBUTES", 0x4004_7211),
    ("BTRFS_IOC_SUBVOL_SETFLAGS", 0x4008_941a),
];

/// Empties a file by its path. Landlock guards that from its third version on.
pub const TRUNCATE: SystemCall = ("truncate", libc::SYS_truncate);

/// Flags of an open that empties a file and asks for no right to write to it: with the mode for reading, and with
/// the one that is for neither reading nor writing.
pub const EMPTYING_FLAGS: [libc::c_int; 2] = [libc::O_TRUNC, libc::O_TRUNC | libc::O_ACCMODE];

/// Answered by the init on the host's own root, which makes the change where the task may make it.
pub const ANSWERED_ON_THE_HOST: &[SystemCall] = calls![
    fchmod = libc::SYS_fchmod,
    fchmodat = libc::SYS_fchmodat,
    utimensat = libc::SYS_utimensat,
];
#[cfg(target_arch = "x86_64")]
pub const ANSWERED_HERE: &[SystemCall] = calls![chmod = libc::SYS_chmod];
#[cfg(target_arch = "aarch64")]
pub const ANSWERED_HERE: &[SystemCall] = &[];

/// The calls whose argument holds a socket's kind together with its flags.
pub const KIND_MASK: u32 = 0xf;

/// Kinds of local sockets that can be given another name to send to, even when made in pairs.
pub const NAMED_PAIRS: [libc::c_int; 2] = [libc::SOCK_DGRAM, libc::SOCK_RAW];
