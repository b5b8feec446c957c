//! No sandbox: commands run on the host as windlass itself does, only by a person's explicit choice.
//!
//! The same helper without isolation: whole process trees still end, output is still bounded, and windlass's
//! keys still stay out of the environment.

use std::path::PathBuf;
use std::time::Duration;

use crate::api::{BoxFuture, Command, IsolationReport, Sandbox, SandboxKind};
use crate::helper::{self, Helper, LazyHelper};
use crate::{Error, Running, environment};
use windlass_helper::protocol::Setup;

/// The host, unguarded.
#[derive(Debug)]
pub struct Host {
    workspace: PathBuf,
    environment: Vec<(String, String)>,
    dumpable: bool,
    program: PathBuf,
    lease: Option<Duration>,
    helper: LazyHelper,
}

impl Host {
    /// Prepares to run commands in this workspace. `environment` is windlass's own; commands get all of it but
    /// `keys`: whoever chooses the host wants it as it is.
    pub fn new(
        data: PathBuf,
        workspace: PathBuf,
        environment: &[(String, String)],
        keys: &[String],
    ) -> Result<Self, Error> {
        let workspace = std::fs::canonicalize(&workspace)
            .map_err(|source| Error::Path { path: workspace, source })?;
        Ok(Self {
            workspace,
            environment: environment::without_keys(environment, keys),
            dumpable: environment::is_dumpable(environment),
            program: helper::install(&data)?,
            lease: None,
            helper: LazyHelper::default(),
        })
    }

    /// The same, with commands that end when windlass sends no heartbeat for so long.
    pub fn with_lease(self, lease: Option<Duration>) -> Self {
        Self { lease, ..self }
    }

    async fn helper(&self) -> Result<Helper, Error> {
        let workspace = self.workspace.to_string_lossy().into_owned();
        let setup = Setup { dumpable: self.dumpable, ..Setup::for_host(workspace) };
        Ok(Helper::start(&self.program, setup, None, self.lease).await?)
    }
}

impl Sandbox for Host {
    fn start(&self, command: Command) -> BoxFuture<'_, Result<Running, Error>> {
        Box::pin(self.helper.start(
            command,
            || self.helper(),
            |_, command| environment::join(&self.environment, &[], &command.env),
            Vec::new,
        ))
    }

    fn isolation(&self) -> IsolationReport {
        IsolationReport {
            kind: SandboxKind::Host,
            workspace: self.workspace.clone(),
            memory_bytes: None,
            has_own_sockets: true,
            facts: vec!["commands run on this machine as the user who runs windlass".to_owned()],
            warnings: vec![
                "no isolation: commands can read and change everything this user can".to_owned(),
            ],
        }
    }

    fn stop(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.helper.stop())
    }
}
