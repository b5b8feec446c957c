//! Which files and ports commands may use, as a Landlock ruleset.
//!
//! The kernel enforces what its version knows; newer kinds of access are left out on older kernels.

use std::path::Path;

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, LandlockStatus, NetPort, PathBeneath, PathFd,
    RestrictSelf, Ruleset, RulesetAttr as _, RulesetCreated, RulesetCreatedAttr as _, RulesetError,
    Scope, make_bitflags,
};
use windlass_helper::protocol::{Access, Isolation, NetworkMode, SYSTEM_DIRECTORIES, Setup};

/// The version whose kinds of access we know and handle.
const KNOWN: ABI = ABI::V6;

const READ: BitFlags<AccessFs> = make_bitflags!(AccessFs::{Execute | ReadFile | ReadDir});

/// Directories inside a root of our own that commands may write to, beside their home and the workspace.
const WRITABLE: [&str; 6] = ["/tmp", "/var/tmp", "/run", "/home", "/root", "/dev"];

/// What commands on the real root may read beside the system's directories.
const READABLE_ON_THE_HOST: [&str; 2] = ["/proc", "/sys/devices/system/cpu"];

/// Devices that commands on the real root may use.
///
/// `/dev/shm` is not among them: it is the host's, and without a mount of our own there is no other.
const DEVICES_ON_THE_HOST: [&str; 8] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
    "/dev/ptmx",
    "/dev/pts",
];

/// Landlock's version in this kernel, 0 where it is not available.
pub fn landlock_version() -> Result<u32, RulesetError> {
    // Restricts nothing: without flags it only reports.
    let status = RestrictSelf::default().no_new_privs(false).apply()?;
    Ok(match status.landlock {
        LandlockStatus::NotEnabled | LandlockStatus::NotImplemented => 0,
        LandlockStatus::Available { effective_abi, kernel_abi } => {
            kernel_abi.map_or(effective_abi as u32, |version| version as u32)
        }
    })
}

pub fn create(setup: &Setup, proxy_port: u16) -> Result<RulesetCreated, RulesetError> {
    // Elsewhere a network namespace guards connections.
    let guards_ports =
        setup.isolation == Isolation::Landlock && setup.network != NetworkMode::Everything;
    let mut ruleset = Ruleset::default()
        .handle_access(AccessFs::from_all(KNOWN))?
        .scope(Scope::from_all(KNOWN))?;
    if guards_ports {
        ruleset = ruleset.handle_access(AccessNet::ConnectTcp | AccessNet::BindTcp)?;
    }
    let mut rules = ruleset.create()?;
    match setup.isolation {
        // Whatever lies outside does not exist here. These rules only repeat what the mounts say.
        Isolation::Namespaces | Isolation::Container => {
            rules = allow(rules, ["/"], READ)?;
            rules = allow(rules, WRITABLE, AccessFs::from_all(KNOWN))?;
            rules = allow(rules, [&setup.home, &setup.workspace_at], AccessFs::from_all(KNOWN))?;
            // A layer takes what is written to it.
            let open = setup.binds.iter().filter(|bind| bind.access != Access::ReadOnly);
            rules = allow(rules, open.map(|bind| &bind.target), AccessFs::from_all(KNOWN))?;
        }
        Isolation::Host | Isolation::Landlock => {
            rules = allow(rules, SYSTEM_DIRECTORIES, READ)?;
            rules = allow(rules, READABLE_ON_THE_HOST, READ)?;
            rules = allow(rules, setup.binds.iter().map(|bind| &bind.source), READ)?;
            let open = setup.binds.iter().filter(|bind| bind.access == Access::Writable);
            rules = allow(rules, open.map(|bind| &bind.source), AccessFs::from_all(KNOWN))?;
            rules = allow(rules, [&setup.workspace, &setup.home], AccessFs::from_all(KNOWN))?;
            rules = allow(rules, DEVICES_ON_THE_HOST, AccessFs::from_all(KNOWN))?;
        }
    }
    if guards_ports && proxy_port != 0 {
        rules = rules.add_rule(NetPort::new(proxy_port, AccessNet::ConnectTcp))?;
    }
    Ok(rules)
}

/// Allows access below each path. One that does not exist needs no rule.
fn allow<P: AsRef<Path>>(
    mut rules: RulesetCreated,
    paths: impl IntoIterator<Item = P>,
    access: BitFlags<AccessFs>,
) -> Result<RulesetCreated, RulesetError> {
    for path in paths {
        if let Ok(parent) = PathFd::new(path) {
            rules = rules.add_rule(PathBeneath::new(parent, access))?;
        }
    }
    Ok(rules)
}
