//! The container engine: where it is, and the few things asked of it.
//!
//! Invariants:
//! - A socket without a server, or one that hangs, costs at most [`PING_TIMEOUT`].
//! - An engine that does not answer and one that says no are different errors: the first is waited for.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bollard::container::LogOutput;
use bollard::errors::Error as Refusal;
use bollard::exec::{CreateExecOptions, StartExecOptions, StartExecResults};
use bollard::models::ContainerCreateBody;
use bollard::query_parameters::{
    CreateContainerOptions, InspectContainerOptions, ListContainersOptions, RemoveContainerOptions,
    StartContainerOptions,
};
use futures_util::StreamExt as _;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;
use tokio_util::io::StreamReader;

use crate::Error;
use crate::docker::address;

/// How long an engine may take to answer a ping.
const PING_TIMEOUT: Duration = Duration::from_secs(2);

/// How long it may take to describe itself: podman looks at the whole machine for that.
const INFO_TIMEOUT: Duration = Duration::from_secs(20);

/// How long it may take for anything else except building images: a busy disk makes it slow.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(120);

/// The exit code of a main process that was killed.
const KILLED_CODE: i64 = 128 + 9;

/// Where the bytes of an attached command come from.
pub(super) type From = Box<dyn AsyncRead + Send + Unpin>;
/// Where the bytes for an attached command go.
pub(super) type To = std::pin::Pin<Box<dyn AsyncWrite + Send>>;

/// A container engine that answered.
#[derive(Clone, Debug)]
pub struct Engine {
    pub(super) api: bollard::Docker,
    name: String,
    /// What it reports about itself.
    pub(super) about: About,
}

/// What an engine reports about itself.
#[derive(Clone, Debug, Default)]
pub(super) struct About {
    pub version: String,
    /// It is podman, which differs in what a directory in memory begins with.
    pub podman: bool,
    /// It runs as an ordinary user, who is root in its containers.
    pub rootless: bool,
    /// It maps the users of a container to other ones outside, unless that is switched off.
    pub remapped: bool,
    /// It labels files, and containers may not touch what has no label of theirs.
    pub labels_files: bool,
    pub memory: bool,
    pub processes: bool,
    pub cpus: bool,
}

/// A container as the engine sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Condition {
    Running,
    OutOfMemory,
    /// Ended, with what is known of it.
    Ended(String),
    Gone,
}

/// An image as the engine knows it.
#[derive(Clone, Debug, Default)]
pub struct Image {
    /// `NAME=value`, as its makers want it.
    pub env: Vec<String>,
    /// What it was built for, in the engine's words.
    pub architecture: String,
    /// Bytes on disk.
    pub size: u64,
    /// Whether the engine is to run a health check in it.
    pub checks_itself: bool,
}

impl Engine {
    /// The engine of this environment: `DOCKER_HOST`, the current context, else the usual sockets of docker
    /// and podman. The first that answers.
    pub async fn find(environment: &[(String, String)], home: &Path) -> Result<Self, Error> {
        let mut first = None;
        for host in address::candidates(environment, home) {
            match Self::at(&host).await {
                Ok(engine) => return Ok(engine),
                Err(error) => first = first.or(Some(error)),
            }
        }
        Err(first.unwrap_or(Error::Unreachable {
            engine: address::DEFAULT.to_owned(),
            source: io::ErrorKind::NotFound.into(),
        }))
    }

    /// The engine at an address such as `unix:///var/run/docker.sock`.
    pub async fn at(host: &str) -> Result<Self, Error> {
        let none = |source| Error::Unreachable { engine: host.to_owned(), source };
        let failed = |error: Refusal| none(io::Error::other(error.to_string()));
        let late = |_| none(io::ErrorKind::TimedOut.into());
        let api =
            bollard::Docker::connect_with_host(host).map_err(failed)?.with_timeout(REQUEST_TIMEOUT);
        timeout(PING_TIMEOUT, api.ping()).await.map_err(late)?.map_err(failed)?;
        let introduction = async {
            // The version is negotiated, so that a client library that begins to send it sends the right one.
            let api = api.negotiate_version().await?;
            let (info, version) = (api.info().await?, api.version().await?);
            Ok::<_, Refusal>((api, info, version))
        };
        let (api, info, version) =
            timeout(INFO_TIMEOUT, introduction).await.map_err(late)?.map_err(failed)?;
        let options = info.security_options.unwrap_or_default();
        let has = |word: &str| options.iter().any(|option| option.contains(word));
        let parts = version.components.unwrap_or_default();
        let about = About {
            podman: parts.iter().any(|part| part.name.contains("Podman")),
            version: info.server_version.unwrap_or_default(),
            rootless: has("name=rootless"),
            remapped: has("name=userns"),
            labels_files: has("name=selinux"),
            memory: info.memory_limit.unwrap_or(true),
            processes: info.pids_limit.unwrap_or(true),
            cpus: info.cpu_cfs_quota.unwrap_or(true),
        };
        Ok(Self { api, name: host.to_owned(), about })
    }

    /// Where it answers.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its version, as it reports it.
    pub fn version(&self) -> &str {
        &self.about.version
    }

    /// Whether it answers now.
    pub(super) async fn answers(&self) -> bool {
        matches!(timeout(PING_TIMEOUT, self.api.ping()).await, Ok(Ok(_)))
    }

    /// An image, if it is there.
    pub async fn image(&self, name: &str) -> Result<Option<Image>, Error> {
        match self.api.inspect_image(name).await {
            Ok(found) => Ok(Some(Image {
                checks_itself: found.config.as_ref().is_some_and(|made| made.healthcheck.is_some()),
                env: found.config.and_then(|made| made.env).unwrap_or_default(),
                architecture: found.architecture.unwrap_or_default(),
                size: found.size.unwrap_or_default().try_into().unwrap_or_default(),
            })),
            Err(error) if is_missing(&error) => Ok(None),
            Err(error) => Err(self.engine_error("look at the image", error)),
        }
    }

    pub(super) async fn create(
        &self,
        name: &str,
        body: ContainerCreateBody,
    ) -> Result<String, Error> {
        let image = body.image.clone().unwrap_or_default();
        let options = CreateContainerOptions { name: Some(name.to_owned()), ..Default::default() };
        match self.api.create_container(Some(options), body).await {
            Ok(made) => Ok(made.id),
            Err(error) if is_missing(&error) => Err(Error::ImageMissing { image }),
            Err(error) => Err(self.engine_error("make the container", error)),
        }
    }

    pub(super) async fn start(&self, id: &str) -> Result<(), Error> {
        let started = self.api.start_container(id, None::<StartContainerOptions>).await;
        started.map_err(|error| self.engine_error("start the container", error))
    }

    /// Ends and removes a container; one that is gone is removed already.
    pub(super) async fn remove(&self, id: &str) -> Result<(), Error> {
        let options = RemoveContainerOptions { force: true, v: true, link: false };
        match self.api.remove_container(id, Some(options)).await {
            Ok(()) => Ok(()),
            // Somebody else is removing it, which is as good.
            Err(Refusal::DockerResponseServerError { status_code: 404 | 409, .. }) => Ok(()),
            Err(error) => Err(self.engine_error("remove the container", error)),
        }
    }

    pub(super) async fn condition(&self, id: &str) -> Result<Condition, Error> {
        let found = match self.api.inspect_container(id, None::<InspectContainerOptions>).await {
            Ok(found) => found.state.unwrap_or_default(),
            Err(error) if is_missing(&error) => return Ok(Condition::Gone),
            Err(error) => return Err(self.engine_error("look at the container", error)),
        };
        Ok(if found.running == Some(true) {
            Condition::Running
        } else if found.oom_killed == Some(true) && found.exit_code == Some(KILLED_CODE) {
            // The mark alone may come from a command that was killed long before.
            Condition::OutOfMemory
        } else {
            Condition::Ended(format!("it ended with code {}", found.exit_code.unwrap_or_default()))
        })
    }

    /// The containers that have these labels: id, and the value of the label `wanted`.
    pub(super) async fn labelled(
        &self,
        labels: &[String],
        wanted: &str,
    ) -> Result<Vec<(String, String)>, Error> {
        let filters = HashMap::from([("label".to_owned(), labels.to_vec())]);
        let options =
            ListContainersOptions { all: true, filters: Some(filters), ..Default::default() };
        let found = self.api.list_containers(Some(options)).await;
        let found = found.map_err(|error| self.engine_error("list containers", error))?;
        let pair = |one: bollard::models::ContainerSummary| {
            let value = one.labels.and_then(|mut labels| labels.remove(wanted));
            Some((one.id?, value.unwrap_or_default()))
        };
        Ok(found.into_iter().filter_map(pair).collect())
    }

    /// Runs a program in a container with its streams attached; its standard error is dropped.
    pub(super) async fn attach(
        &self,
        id: &str,
        program: Vec<String>,
    ) -> Result<(From, To, String), Error> {
        let (exec, output, input) = self.exec(id, program, None, Vec::new()).await?;
        let bytes = output.filter_map(|item| async {
            match item {
                Ok(LogOutput::StdOut { message }) => Some(Ok(message)),
                Ok(LogOutput::StdErr { .. } | LogOutput::StdIn { .. }) => None,
                // Not framed: the engine's own message about why it could not run it.
                Ok(LogOutput::Console { message }) => {
                    Some(Err(io::Error::other(String::from_utf8_lossy(&message).trim().to_owned())))
                }
                Err(error) => Some(Err(io::Error::other(error.to_string()))),
            }
        });
        Ok((Box::new(StreamReader::new(Box::pin(bytes))), input, exec))
    }

    /// Runs a program in a container; its output as the engine frames it.
    pub(super) async fn exec(
        &self,
        id: &str,
        program: Vec<String>,
        cwd: Option<String>,
        env: Vec<String>,
    ) -> Result<(String, Output, To), Error> {
        let failed = |error| self.engine_error("run a program in the container", error);
        let options = CreateExecOptions {
            attach_stdin: Some(true),
            attach_stdout: Some(true),
            attach_stderr: Some(true),
            cmd: Some(program),
            env: Some(env),
            working_dir: cwd,
            ..Default::default()
        };
        let made = self.api.create_exec(id, options).await.map_err(failed)?;
        let options = StartExecOptions { output_capacity: Some(64 * 1024), ..Default::default() };
        match self.api.start_exec(&made.id, Some(options)).await.map_err(failed)? {
            StartExecResults::Attached { output, input } => Ok((made.id, output, input)),
            StartExecResults::Detached => Err(Error::Lost),
        }
    }

    /// The exit code of a program that ran in a container, once it has one.
    pub(super) async fn exit_code(&self, exec: &str) -> Result<Option<i64>, Error> {
        let found = self.api.inspect_exec(exec).await;
        Ok(found.map_err(|error| self.engine_error("look at a program", error))?.exit_code)
    }

    pub(super) fn engine_error(&self, doing: &str, error: Refusal) -> Error {
        match error {
            Refusal::DockerResponseServerError { message, .. }
            | Refusal::DockerStreamError { error: message } => {
                let doing = doing.to_owned();
                match message.contains("no space left on device") {
                    true => Error::DiskFull { doing },
                    false => Error::Engine { doing, source: io::Error::other(message) },
                }
            }
            other => Error::Unreachable {
                engine: self.name.clone(),
                source: io::Error::other(other.to_string()),
            },
        }
    }
}

/// The output of an attached program, as the engine frames it.
pub(super) type Output =
    std::pin::Pin<Box<dyn futures_util::Stream<Item = Result<LogOutput, Refusal>> + Send>>;

fn is_missing(error: &Refusal) -> bool {
    matches!(error, Refusal::DockerResponseServerError { status_code: 404, .. })
}

/// A path as the engine takes it: texts only.
pub(super) fn text(path: &Path) -> Result<String, Error> {
    path.to_str().map(str::to_owned).ok_or_else(|| Error::Path {
        path: PathBuf::from(path),
        source: io::ErrorKind::InvalidFilename.into(),
    })
}
