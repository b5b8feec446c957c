//! A container's life: created, connected to, found again, replaced, removed.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::engine::{Condition, Engine};
use super::exec_fallback::ExecFallback;
use super::spec::{self, ContainerOptions, HELPER, HOME, Main};
use super::{Docker, Link, State};
use crate::api::SandboxEvent;
use crate::channel::Channel;
use crate::helper;
use crate::host_sockets::HostSockets;
use crate::{Error, environment};
use windlass_core::layout::{AddedDirectory, WORKSPACE};
use windlass_helper::protocol::{Access, Bind, Isolation, Setup};

/// Attempts to start a container: one, and two retries (ES-380).
const ATTEMPTS: usize = 3;

/// Between two attempts, doubled each time: a moment for a busy engine, short enough that a person does not notice.
const BETWEEN_ATTEMPTS: Duration = Duration::from_millis(250);

/// Between two looks for an engine that is away, at most.
const ENGINE_LOOK: Duration = Duration::from_secs(2);

/// How long to wait for an engine that is away when only the clean-up is left.
const CLEAN_UP_TIMEOUT: Duration = Duration::from_secs(10);

impl Docker {
    /// The way to start commands: the one there is, else a new one into the same container, else into a
    /// new container.
    pub(super) async fn ensure_link<'a>(&self, state: &'a mut State) -> Result<&'a Link, Error> {
        if let Some(Link::Helper(channel)) = state.link.take_if(|link| !link.is_open()) {
            channel.close().await;
        }
        if state.link.is_none()
            && let Some(id) = state.container.clone()
        {
            let again = self.relink(&id).await;
            // While the engine is away, its state is unknown.
            if !matches!(&again, Ok(Some(_)) | Err(Error::Unreachable { .. })) {
                state.container = None;
            }
            state.link = again?;
        }
        if state.link.is_none() {
            let (id, link, sockets) = self.provision().await?;
            state.container = Some(id);
            state.link = Some(link);
            (state.sockets, state.has_new_sockets) = (Some(sockets), false);
        }
        state.link.as_ref().ok_or(Error::Lost)
    }

    /// Gives up a container that shows sockets which other processes have made since. What is mounted in it stays as it is,
    /// so only a new one hides them. While something runs in it, it is kept.
    pub(super) async fn hide_new_sockets(&self, state: &mut State) {
        let found = state.sockets.as_mut().map(HostSockets::find_new).unwrap_or_default();
        state.has_new_sockets |= !found.is_empty();
        if !state.has_new_sockets {
            return;
        }
        let is_idle = match &state.link {
            Some(Link::Helper(channel)) => channel.is_idle().await,
            Some(Link::Exec(fallback)) => fallback.is_idle(),
            None => true,
        };
        if !is_idle {
            return;
        }
        match state.link.take() {
            Some(Link::Helper(channel)) => channel.close().await,
            Some(Link::Exec(fallback)) => fallback.close().await,
            None => {}
        }
        if let Some(id) = state.container.take() {
            // One that cannot be removed now is found by its labels later.
            let _ = self.engine.remove(&id).await;
            let why = "another process has made a socket where commands see it; a new container hides it, and what was \
                       kept in the old one outside the workspace is gone";
            self.record(SandboxEvent::Lost { why: why.to_owned() });
        }
    }

    /// A new link into a container that we already have; `None` when it no longer exists. After a network error the
    /// container stays and only the link is new (ES-382).
    async fn relink(&self, id: &str) -> Result<Option<Link>, Error> {
        let mut patience = Patience::new(self.config.engine_patience);
        let why = loop {
            let condition = match self.engine.condition(id).await {
                Ok(condition) => condition,
                Err(error) => {
                    patience.wait_for(&self.engine, error).await?;
                    continue;
                }
            };
            match condition {
                Condition::Running => match self.link(id).await {
                    Ok(link) => {
                        let why =
                            "the link to the container broke; everything that ran in it ended";
                        self.record(SandboxEvent::Lost { why: why.to_owned() });
                        return Ok(Some(link));
                    }
                    Err(error) if is_away(&error) => {
                        patience.wait_for(&self.engine, error).await?;
                    }
                    Err(error) => break error.to_string(),
                },
                Condition::OutOfMemory => {
                    let limit_bytes = self.config.limits.memory_bytes;
                    let error = Error::ContainerOutOfMemory { limit_bytes };
                    self.record(SandboxEvent::Lost { why: error.to_string() });
                    let _ = self.engine.remove(id).await;
                    return Err(error);
                }
                Condition::Ended(why) => break why,
                Condition::Gone => break "it was removed".to_owned(),
            }
        };
        let _ = self.engine.remove(id).await;
        let why = format!("the container is gone ({why}); everything that ran in it ended");
        self.record(SandboxEvent::Lost { why });
        Ok(None)
    }

    /// A new container with a link into it, tried as often as it makes sense (ES-278, ES-380).
    async fn provision(&self) -> Result<(String, Link, HostSockets), Error> {
        let mut patience = Patience::new(self.config.engine_patience);
        let mut pause = BETWEEN_ATTEMPTS;
        let mut attempts = 0;
        loop {
            match self.bring_up().await {
                Ok((id, link, sockets)) => {
                    let what = format!("container {} of `{}`", short(&id), self.config.image);
                    self.record(SandboxEvent::Started { what, container: Some(id.clone()) });
                    return Ok((id, link, sockets));
                }
                Err(error @ Error::DiskFull { .. }) => return Err(error),
                Err(error) if is_away(&error) => {
                    patience.wait_for(&self.engine, error).await?;
                }
                Err(error) if attempts + 1 == ATTEMPTS => {
                    let attempts = ATTEMPTS;
                    return Err(Error::NoContainer { attempts, source: Box::new(error) });
                }
                Err(_) => {
                    attempts += 1;
                    sleep(pause).await;
                    pause *= 2;
                }
            }
        }
    }

    async fn bring_up(&self) -> Result<(String, Link, HostSockets), Error> {
        let main = match self.uses_fallback() {
            true => Main::Shell,
            false => Main::Helper,
        };
        let mut sockets = spec::host_sockets(&self.config);
        let body = spec::body(&ContainerOptions {
            sockets: &sockets.find_new(),
            config: &self.config,
            about: &self.engine.about,
            image: &self.image,
            program: &self.program,
            owner: self.owner,
            identity: &self.identity,
            main,
        })?;
        // Some engines make an empty directory of what is missing.
        std::fs::metadata(&self.config.workspace)
            .map_err(|source| Error::Path { path: self.config.workspace.clone(), source })?;
        let name = helper::unique_name(&format!("windlass-{}", self.config.task));
        let id = self.engine.create(&name, body).await?;
        let up = async {
            self.engine.start(&id).await?;
            self.link(&id).await
        };
        match up.await {
            Ok(link) => Ok((id, link, sockets)),
            Err(error) => {
                // The helper is the container's main program and runs until it is stopped. A container that has
                // ended already could not run it.
                let ended = self.engine.condition(&id).await;
                let ended = matches!(ended, Ok(Condition::Ended(_)));
                let _ = self.engine.remove(&id).await;
                if main == Main::Helper && (ended || cannot_run(&error)) {
                    // Another architecture, or a file system whose programs may not be run.
                    self.helper_fails.store(true, std::sync::atomic::Ordering::Relaxed);
                    return Box::pin(self.bring_up()).await;
                }
                Err(error)
            }
        }
    }

    /// Starts a helper in a running container. It first ends what an earlier helper left.
    async fn link(&self, id: &str) -> Result<Link, Error> {
        if self.uses_fallback() {
            return Ok(Link::Exec(ExecFallback::new(self.engine.clone(), id.to_owned())));
        }
        let (from, to, _) = self.engine.attach(id, vec![HELPER.to_owned()]).await?;
        let egress = self.config.network.egress();
        Ok(Link::Helper(
            Channel::open(from, to, self.setup(), egress, self.config.limits.lease).await?,
        ))
    }

    fn setup(&self) -> Setup {
        // The engine has mounted them; these only say what commands may write to.
        let as_bind = |added: &AddedDirectory| Bind {
            source: added.path.clone(),
            target: added.path.clone(),
            access: if added.writable { Access::Writable } else { Access::ReadOnly },
        };
        let limits = &self.config.limits;
        let (uid, gid) = spec::inside(&self.engine.about, self.owner);
        Setup {
            isolation: Isolation::Container,
            network: self.config.network.mode(),
            uid,
            gid,
            workspace: WORKSPACE.to_owned(),
            workspace_at: WORKSPACE.to_owned(),
            workspace_alias: String::new(),
            home: HOME.to_owned(),
            binds: self.config.added.iter().map(as_bind).collect(),
            files: self.config.home_files.in_home(HOME),
            hidden: Vec::new(),
            memory_bytes: limits.memory_bytes,
            processes: limits.processes,
            open_files: limits.open_files,
            file_bytes: limits.file_bytes,
            scratch_bytes: limits.scratch_bytes,
            control_group: String::new(),
            dumpable: environment::is_dumpable(&self.config.environment),
        }
    }

    fn uses_fallback(&self) -> bool {
        self.helper_fails.load(std::sync::atomic::Ordering::Relaxed)
    }

    /// Ends everything and removes the container (ES-281). One that cannot be removed now is found by its
    /// labels at the next start, and has ended on its own by then.
    pub(super) async fn clean_up(&self) {
        let mut state = self.state.lock().await;
        match state.link.take() {
            Some(Link::Helper(channel)) => channel.close().await,
            Some(Link::Exec(fallback)) => fallback.close().await,
            None => {}
        }
        if let Some(id) = state.container.take() {
            let mut patience = Patience::new(CLEAN_UP_TIMEOUT);
            while let Err(error) = self.engine.remove(&id).await {
                if patience.wait_for(&self.engine, error).await.is_err() {
                    break;
                }
            }
        }
    }
}

/// A deadline for an engine that does not answer.
struct Patience {
    until: Instant,
    pause: Duration,
}

impl Patience {
    fn new(patience: Duration) -> Self {
        Self { until: Instant::now() + patience, pause: Duration::from_millis(50) }
    }

    /// Waits until the engine answers again; the error itself when that is not what is wrong, or when it
    /// takes too long.
    async fn wait_for(&mut self, engine: &Engine, error: Error) -> Result<(), Error> {
        if !is_away(&error) {
            return Err(error);
        }
        loop {
            if Instant::now() >= self.until {
                return Err(error);
            }
            sleep(self.pause).await;
            self.pause = (self.pause * 2).min(ENGINE_LOOK);
            if engine.answers().await {
                return Ok(());
            }
        }
    }
}

fn is_away(error: &Error) -> bool {
    matches!(error, Error::Unreachable { .. })
}

impl Link {
    fn is_open(&self) -> bool {
        match self {
            Self::Helper(channel) => channel.is_open(),
            Self::Exec(_) => true,
        }
    }
}

/// Whether the engine could not run the helper at all, rather than the helper being unhappy.
fn cannot_run(error: &Error) -> bool {
    let Error::Engine { source, .. } = error else { return false };
    let text = source.to_string();
    text.contains("exec format error")
        || text.contains("permission denied") && text.contains(HELPER)
}

/// An id as people see it.
fn short(id: &str) -> &str {
    id.get(..12).unwrap_or(id)
}
