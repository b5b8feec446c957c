//! The container of one task, as the engine is asked for it. Data in, data out.
//!
//! Invariants:
//! - Nothing of the host is shown but the workspace, the skills, the trace and the helper, and of those only
//!   the workspace can be written to. Never the engine's own socket.
//! - The root is read-only; what programs need to write to is in memory, bounded, and gone with the container.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use bollard::models::{
    ContainerCreateBody, HealthConfig, HostConfig, HostConfigLogConfig, Mount, MountType,
};

use super::Config;
use super::engine::{About, Image, text};
use crate::Error;
use crate::host_sockets::{HostSockets, VisibleDirectory};
use crate::network::Network;
use crate::workspace;
use windlass_core::layout::{Own, WORKSPACE};

/// Where the helper is seen.
pub(super) const HELPER: &str = "/.windlass/helper";

/// The home of the user that commands run as, in memory, whatever users the image has.
pub(super) const HOME: &str = "/home/agent";

/// Names the data directory a container belongs to.
pub(super) const LABEL_DATA: &str = "windlass.data";

/// Names the task a container belongs to.
pub(super) const LABEL_TASK: &str = "windlass.task";

/// Which program keeps the container open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Main {
    /// The helper, which ends when it is abandoned.
    Helper,
    /// A shell, where the helper cannot run.
    Shell,
}

/// What differs from one container to the next.
pub(super) struct ContainerOptions<'a> {
    pub config: &'a Config,
    pub about: &'a About,
    pub image: &'a Image,
    /// The helper on the host.
    pub program: &'a Path,
    /// The user and group that commands run as on the host.
    pub owner: (u32, u32),
    /// The data directory, as labels name it.
    pub identity: &'a str,
    /// Sockets of other processes, as commands would name them.
    pub sockets: &'a [PathBuf],
    pub main: Main,
}

/// The container's description.
pub(super) fn body(options: &ContainerOptions<'_>) -> Result<ContainerCreateBody, Error> {
    let ContainerOptions { config, about, .. } = *options;
    let (uid, gid) = inside(about, options.owner);
    let labels = HashMap::from([
        (LABEL_DATA.to_owned(), options.identity.to_owned()),
        (LABEL_TASK.to_owned(), config.task.clone()),
    ]);
    let (entrypoint, cmd) = match options.main {
        Main::Helper => (HELPER, vec!["hold".to_owned()]),
        Main::Shell => {
            let wait = "trap 'exit 0' TERM; while :; do sleep 60 & wait $!; done";
            ("sh", vec!["-c".to_owned(), wait.to_owned()])
        }
    };
    Ok(ContainerCreateBody {
        image: Some(config.image.clone()),
        user: Some(format!("{uid}:{gid}")),
        hostname: Some("windlass".to_owned()),
        working_dir: Some(WORKSPACE.to_owned()),
        entrypoint: Some(vec![entrypoint.to_owned()]),
        cmd: Some(cmd),
        labels: Some(labels),
        // Said only where there is something to switch off: podman makes a check of it.
        healthcheck: options
            .image
            .checks_itself
            .then(|| HealthConfig { test: Some(vec!["NONE".to_owned()]), ..Default::default() }),
        host_config: Some(host_config(options)?),
        ..Default::default()
    })
}

fn host_config(options: &ContainerOptions<'_>) -> Result<HostConfig, Error> {
    let ContainerOptions { config, about, .. } = *options;
    let limits = &config.limits;
    let memory = signed(limits.memory_bytes);
    let network = match config.network {
        // Loopback only; the helper's proxy carries what is permitted.
        Network::Restricted(_) | Network::None => "none",
        Network::Open => "bridge",
    };
    Ok(HostConfig {
        memory: Some(memory),
        // The sum of both: no swap.
        memory_swap: Some(memory),
        nano_cpus: about.cpus.then_some(signed(config.nano_cpus)),
        pids_limit: Some(signed(limits.processes)),
        cap_drop: Some(vec!["ALL".to_owned()]),
        security_opt: Some(security(about)),
        readonly_rootfs: Some(true),
        tmpfs: Some(in_memory(options)?),
        mounts: Some(mounts(options)?),
        network_mode: Some(network.to_owned()),
        ipc_mode: Some("private".to_owned()),
        shm_size: Some(signed(limits.scratch_bytes)),
        userns_mode: (about.remapped && !about.rootless).then(|| "host".to_owned()),
        // Output reaches windlass by the attached helper; the engine is to keep none of it.
        log_config: Some(HostConfigLogConfig { typ: Some("none".to_owned()), config: None }),
        ..Default::default()
    })
}

fn security(about: &About) -> Vec<String> {
    let mut options = vec!["no-new-privileges".to_owned()];
    if about.labels_files {
        // The workspace has the user's labels, and relabelling what is the user's is not ours to do.
        options.push("label=disable".to_owned());
    }
    options
}

/// The user and group that commands run as in the container, so that files belong to the owner.
pub(super) fn inside(about: &About, owner: (u32, u32)) -> (u32, u32) {
    // An engine of an ordinary user has that user as root of its containers.
    if about.rootless { (0, 0) } else { owner }
}

/// Directories in memory: those that can be written to, and empty ones over what is not the agent's to see.
/// Each may fill its bound; the container's memory bounds them all.
fn in_memory(options: &ContainerOptions<'_>) -> Result<HashMap<String, String>, Error> {
    let ContainerOptions { config, about, .. } = *options;
    let (uid, gid) = inside(about, options.owner);
    let scratch = format!("rw,exec,nosuid,nodev,size={}", config.limits.scratch_bytes);
    // Podman takes no owner, and would copy what lies below: what is hidden most of all.
    let (shared, own, hidden) = if about.podman {
        let shared = format!("{scratch},mode=1777,notmpcopyup");
        (shared.clone(), shared, ",notmpcopyup")
    } else {
        let own = format!("{scratch},uid={uid},gid={gid},mode=0755");
        (format!("{scratch},mode=1777"), own, "")
    };
    let mut all: HashMap<String, String> =
        [("/tmp", &shared), ("/var/tmp", &shared), ("/run", &own), (HOME, &own)]
            .map(|(path, options)| (path.to_owned(), options.clone()))
            .into();
    let mounts = workspace::mounts_inside(&config.workspace, &config.added);
    let mounts = mounts.iter().filter(|path| path.is_dir());
    let directories = config.hidden.iter().filter(|path| !path.is_file());
    for path in directories.chain([&config.data]).chain(mounts) {
        for target in seen_at(config, path) {
            let cover = format!("ro,noexec,nosuid,nodev,size=4k,mode=0555{hidden}");
            all.insert(text(&target)?, cover);
        }
    }
    Ok(all)
}

/// Where commands would see a path of this machine: in the workspace, and in a directory that was added.
fn seen_at(config: &Config, path: &Path) -> Vec<PathBuf> {
    let inside = path.strip_prefix(&config.workspace).ok();
    let inside = inside.map(|below| Path::new(WORKSPACE).join(below));
    let is_added = config.added.iter().any(|added| path.starts_with(&added.path));
    inside.into_iter().chain(is_added.then(|| path.to_owned())).collect()
}

fn mounts(options: &ContainerOptions<'_>) -> Result<Vec<Mount>, Error> {
    let config = options.config;
    let bind = |source: &Path, target: &str, read_only: bool| -> Result<Mount, Error> {
        Ok(Mount {
            typ: Some(MountType::BIND),
            source: Some(text(source)?),
            target: Some(target.to_owned()),
            read_only: Some(read_only),
            ..Default::default()
        })
    };
    let mut mounts = vec![bind(&config.workspace, WORKSPACE, false)?];
    if options.main == Main::Helper {
        mounts.push(bind(options.program, HELPER, true)?);
    }
    if let Some(skills) = &config.skills {
        mounts.push(bind(skills, "/skills", true)?);
    }
    let hidden: Vec<_> = config.hidden.iter().chain([&config.data]).cloned().collect();
    for path in workspace::above_hidden(&config.workspace, &hidden) {
        let below = path.strip_prefix(&config.workspace).unwrap_or(&path);
        mounts.push(bind(&path, &text(&Path::new(WORKSPACE).join(below))?, false)?);
    }
    workspace::make_own_task_directory(&config.workspace, &config.layout, options.owner)?;
    if let Some(tasks) = workspace::closed_tasks(&config.workspace, &config.layout) {
        for (path, read_only) in [(&tasks.all, true), (&tasks.own, false)] {
            let below = path.strip_prefix(&config.workspace).unwrap_or(path);
            mounts.push(bind(path, &text(&Path::new(WORKSPACE).join(below))?, read_only)?);
        }
    }
    let place = workspace::trace_place(&config.workspace, &config.layout)?;
    if let (Some(trace), Some(_)) = (&config.trace, place) {
        let target = Path::new(WORKSPACE).join(config.layout.inner(Own::Trace));
        mounts.push(bind(trace, &text(&target)?, true)?);
    }
    for added in &config.added {
        mounts.push(bind(Path::new(&added.path), &added.path, !added.writable)?);
    }
    for path in config.hidden.iter().filter(|path| path.is_file()) {
        for target in seen_at(config, path) {
            mounts.push(bind(Path::new("/dev/null"), &text(&target)?, true)?);
        }
    }
    for socket in options.sockets {
        mounts.push(bind(Path::new("/dev/null"), &text(socket)?, true)?);
    }
    Ok(mounts)
}

/// Looks for sockets of other processes in the workspace and in added directories.
pub(super) fn host_sockets(config: &Config) -> HostSockets {
    let workspace = VisibleDirectory { source: config.workspace.clone(), target: WORKSPACE.into() };
    let added = config.added.iter().map(|added| PathBuf::from(&added.path));
    let added = added.map(|path| VisibleDirectory { source: path.clone(), target: path });
    HostSockets::new(added.chain([workspace]).collect(), &[])
}

/// The engine counts in signed numbers; a number that does not fit means no limit.
fn signed(number: u64) -> i64 {
    number.try_into().unwrap_or(i64::MAX)
}
