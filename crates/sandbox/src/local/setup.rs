//! What a local sandbox is made of: what commands see, where, and what is hidden.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::PoisonError;

use windlass_helper::protocol::{Access, Bind, Isolation, SYSTEM_DIRECTORIES, Setup};

use super::read_only_mounts::{self, ReadOnlyMount};
use super::{Local, text};
use crate::host_sockets::{HostSockets, VisibleDirectory};
use crate::workspace::{self, canonical};
use crate::{Error, environment, helper};

/// What is known of a sandbox's directories before anything is searched for in them.
pub(super) struct Prepared {
    /// The user and group of its commands.
    owner: (u32, u32),
    /// Skills and traces, as they are shown.
    shown: Vec<Bind>,
    /// What lies outside the workspace and is shown at its own path.
    added: Vec<Bind>,
}

impl Local {
    /// Makes what the workspace needs, and finds out what is wrong with the directories of this sandbox.
    pub(super) fn prepare(&self) -> Result<Prepared, Error> {
        let config = &self.config;
        let owner = workspace::owner(&config.workspace)?;
        workspace::prepare(&config.workspace, &config.layout, owner)?;
        self.refuse_what_cannot_be_hidden()?;
        let trace = workspace::trace_place(&config.workspace, &config.layout)?;
        let trace = trace.map(|place| self.as_seen(&place));
        let shown = [(&config.skills, Some(PathBuf::from("/skills"))), (&config.trace, trace)];
        let shown =
            shown.into_iter().filter_map(|(source, target)| Some((source.as_ref()?, target?)));
        let shown = shown.map(|(source, target)| Ok(bind(&canonical(source)?, &target)));
        let shown = shown.collect::<Result<_, Error>>()?;
        let added = match self.isolation {
            Isolation::Landlock => workspace::without_nested(&config.added),
            Isolation::Namespaces | Isolation::Host | Isolation::Container => config.added.clone(),
        };
        let added = added.iter().map(|added| {
            let path = canonical(Path::new(&added.path))?;
            let access = if added.writable { Access::Writable } else { Access::ReadOnly };
            Ok(Bind { access, ..bind(&path, &path) })
        });
        Ok(Prepared { owner, shown, added: added.collect::<Result<_, Error>>()? })
    }

    /// The description of the sandbox for the helper. What others have in the directories that it shows is searched for here,
    /// when the first command needs it; most tasks of a service never run one.
    pub(super) async fn setup(&self) -> Result<Setup, Error> {
        let config = &self.config;
        let Prepared { owner, shown, added } = self.prepare()?;
        let mut binds = Vec::new();
        let mut hidden = vec![config.data.clone()];
        hidden.extend(config.hidden.iter().cloned());
        let own: Vec<PathBuf> = hidden.clone();
        hidden.extend(workspace::mounts_inside(&config.workspace, &config.added));
        for shown in self.read_only_mounts().await {
            if self.isolation == Isolation::Landlock {
                // Landlock allows and cannot take back: what is hidden is left out of what is allowed.
                let parts = shown.without_hidden();
                binds.extend(parts.iter().map(|source| bind(source, source)));
                continue;
            }
            // A workspace inside a toolchain directory is not part of the toolchain.
            let secrets = shown.hidden.into_iter();
            hidden.extend(secrets.filter(|path| !path.starts_with(&config.workspace)));
            binds.push(bind(&shown.source, &shown.target));
            binds.extend(
                shown.caches.iter().map(|(source, target)| Bind {
                    access: Access::Layered,
                    ..bind(source, target)
                }),
            );
        }
        binds.extend(shown);
        let tasks = workspace::closed_tasks(&config.workspace, &config.layout);
        // Landlock allows and cannot take back.
        if let Some(tasks) = tasks.filter(|_| self.isolation == Isolation::Namespaces) {
            let own = bind(&tasks.own, &self.as_seen(&tasks.own));
            binds.push(bind(&tasks.all, &self.as_seen(&tasks.all)));
            binds.push(Bind { access: Access::Writable, ..own });
        }
        binds.extend(added);
        let sockets = self.all_host_sockets(&binds);
        if self.isolation == Isolation::Namespaces {
            // What is mounted cannot be moved, and so what lies in it stays hidden.
            binds.extend(workspace::above_hidden(&config.workspace, &own).into_iter().map(
                |path| Bind { access: Access::Writable, ..bind(&path, &self.as_seen(&path)) },
            ));
        }
        let home = match &self.scratch {
            Some(scratch) => scratch,
            None => &config.home,
        };
        let (_, alias) = workspace::place_inside(&config.workspace, &config.layout);
        let alias = alias.filter(|_| self.isolation == Isolation::Namespaces);
        Ok(Setup {
            isolation: self.isolation,
            network: config.network.mode(),
            uid: owner.0,
            gid: owner.1,
            workspace: text(&config.workspace),
            workspace_at: text(&self.as_seen(&config.workspace)),
            workspace_alias: alias.unwrap_or_default().to_owned(),
            home: text(home),
            binds,
            files: Vec::new(),
            hidden: hidden
                .iter()
                .map(|path| text(&self.as_seen(path)))
                .chain(sockets.iter().map(|path| text(path)))
                .collect(),
            memory_bytes: config.limits.memory_bytes,
            processes: config.limits.processes,
            open_files: config.limits.open_files,
            file_bytes: config.limits.file_bytes,
            scratch_bytes: config.limits.scratch_bytes,
            control_group: helper::unique_name("task"),
            dumpable: environment::is_dumpable(&config.environment),
        })
    }

    /// What of the home directory is shown. The first search of large toolchains takes seconds: whoever waits for
    /// it can still be interrupted.
    async fn read_only_mounts(&self) -> Vec<ReadOnlyMount> {
        let (home, list) = (self.config.home.clone(), self.config.read_only.clone());
        let data = self.config.data.clone();
        let search = move || read_only_mounts::find(&home, &list, &data);
        // A search that panics shows nothing.
        tokio::task::spawn_blocking(search).await.unwrap_or_default()
    }

    /// Landlock alone cannot hide a part of the workspace.
    fn refuse_what_cannot_be_hidden(&self) -> Result<(), Error> {
        let config = &self.config;
        let inside = |path: &&PathBuf| path.starts_with(&config.workspace);
        match config.hidden.iter().chain([&config.data]).find(inside) {
            Some(path) if self.isolation == Isolation::Landlock => Err(Error::Setup {
                stage: format!("hide `{}` inside the workspace by Landlock alone", path.display()),
                source: io::ErrorKind::Unsupported.into(),
            }),
            Some(_) | None => Ok(()),
        }
    }

    /// All sockets of the host's processes in what this sandbox shows. Later looks find those that were added.
    fn all_host_sockets(&self, binds: &[Bind]) -> Vec<PathBuf> {
        if self.isolation != Isolation::Namespaces {
            return Vec::new();
        }
        let config = &self.config;
        let workspace = VisibleDirectory {
            source: config.workspace.clone(),
            target: self.as_seen(&config.workspace),
        };
        let others = binds.iter().map(|bind| VisibleDirectory {
            source: PathBuf::from(&bind.source),
            target: PathBuf::from(&bind.target),
        });
        let listed: Vec<PathBuf> =
            config.read_only.iter().map(|path| config.home.join(path)).collect();
        let mut sockets = HostSockets::new(others.chain([workspace]).collect(), &listed)
            .with_system(&SYSTEM_DIRECTORIES);
        let found = sockets.find_new();
        *self.host_sockets.lock().unwrap_or_else(PoisonError::into_inner) = Some(sockets);
        found
    }
}

fn bind(source: &Path, target: &Path) -> Bind {
    Bind { source: text(source), target: text(target), access: Access::ReadOnly }
}
