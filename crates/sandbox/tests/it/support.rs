//! Sandboxes to throw away, and one way to run a test as everyone who may run windlass.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tempfile::TempDir;
use tokio::runtime::Handle;
use windlass_core::id::TaskId;
use windlass_core::layout::Layout;
use windlass_sandbox::docker::{self, Engine};
use windlass_sandbox::local::{Config, Namespaces};
use windlass_sandbox::network::{AddressRules, HostRules};
use windlass_sandbox::{
    BoxFuture, Chunk, Command, CommandEnd, ConnectionAttempt, Docker, Egress, Error, Exit,
    HomeFiles, Host, IsolationReport, Local, Network, ResourceLimits, Running, Sandbox,
    SandboxEvent, Stream,
};

use crate::SANDBOX;

/// A user that does not exist on this machine; ordinary in every way.
pub const STRANGER: u32 = 54_321;

const CHILD: &str = "WINDLASS_TEST_AS_USER";

/// Who runs windlass, and whose workspace it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    /// Windlass is root, the workspace root's.
    Root,
    /// Windlass is root, the workspace somebody's.
    RootForStranger,
    /// Windlass is an ordinary user with a workspace of its own.
    User,
}

/// What the tests of this binary run in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tested {
    /// The local sandbox.
    Local,
    /// Containers of the engine that `scripts/test` found or started.
    Docker,
}

/// Runs a test for everyone: twice as root, and once more as an ordinary user in a process of its own.
#[macro_export]
macro_rules! everyone {
    ($body:expr) => {{
        fn here() {}
        $crate::support::everyone(std::any::type_name_of_val(&here), |who| Box::pin($body(who)))
    }};
}

/// The function behind [`everyone!`]; `place` is the test's path with `::here` at its end.
pub fn everyone(place: &str, body: impl Fn(Who) -> Pin<Box<dyn Future<Output = ()>>>) {
    if !is_root() {
        return block_on(body(Who::User));
    }
    if SANDBOX == Tested::Local {
        // A workspace of root's makes no difference to an engine that is root itself.
        block_on(body(Who::Root));
    }
    block_on(body(Who::RootForStranger));
    again_as_user(place);
}

/// Runs the calling test once more, as an ordinary user.
fn again_as_user(place: &str) {
    let name = place.trim_end_matches("::here").split_once("::").unwrap().1;
    let run = |program: &Path| {
        std::process::Command::new(program)
            .args(["--exact", name, "--nocapture", "--test-threads=1"])
            .env(CHILD, "1")
            .env("HOME", "/nonexistent")
            .current_dir("/")
            .uid(STRANGER)
            .gid(STRANGER)
            .output()
    };
    // A target directory that others cannot enter is nothing unusual; a copy is where they can.
    let program = std::env::current_exe().unwrap();
    let output = run(&program).unwrap_or_else(|_| {
        let directory = tempfile::tempdir().unwrap();
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let copy = directory.path().join("it");
        fs::copy(&program, &copy).unwrap();
        run(&copy).unwrap()
    });
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "as an ordinary user:\n{text}{errors}");
    assert!(text.contains("1 passed"), "the test `{name}` was not found:\n{text}");
}

/// Whether this process was started by a test to run it as an ordinary user.
pub fn is_child() -> bool {
    std::env::var_os(CHILD).is_some()
}

/// A duration for `sleep` that nobody else uses, to be found in the arguments of what runs.
pub fn mark() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    format!("9{:07}.{:04}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}

/// The processes on this machine that have the mark in their arguments and are not just waiting to be
/// reaped.
pub fn marked(mark: &str) -> Vec<String> {
    let own = std::process::id().to_string();
    let has = |entry: fs::DirEntry| -> Option<String> {
        let command = fs::read(entry.path().join("cmdline")).ok()?;
        let command = String::from_utf8_lossy(&command).replace('\0', " ");
        let foreign = entry.file_name().to_str() != Some(own.as_str());
        (foreign && command.contains(mark)).then(|| format!("{:?} {command}", entry.file_name()))
    };
    fs::read_dir("/proc").unwrap().flatten().filter_map(has).collect()
}

/// Waits until something holds that is bound to, with a generous end.
pub async fn until(holds: impl Fn() -> bool) {
    for _ in 0..3000 {
        if holds() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("it never came to hold");
}

/// Runs a future to its end, as windlass would.
pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap()
        .block_on(future)
}

/// Whether this test runs as root.
pub fn is_root() -> bool {
    fs::metadata("/proc/self").unwrap().uid() == 0
}

/// Directories for one sandbox, removed with it.
pub struct Place {
    /// Holds all of the following.
    pub top: TempDir,
    /// The workspace on the host.
    pub workspace: PathBuf,
    /// The data directory.
    pub data: PathBuf,
    /// The home directory.
    pub home: PathBuf,
    /// Every connection asked for.
    pub connections: Arc<Mutex<Vec<ConnectionAttempt>>>,
}

impl Place {
    /// Makes the directories for this kind of user.
    pub fn new(who: Who) -> Self {
        let top = tempfile::Builder::new().prefix("windlass-test-").tempdir().unwrap();
        fs::set_permissions(top.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let make = |name: &str| {
            let path = top.path().join(name);
            fs::create_dir(&path).unwrap();
            path
        };
        let (workspace, data, home) = (make("work"), make("data"), make("home"));
        fs::set_permissions(&data, fs::Permissions::from_mode(0o700)).unwrap();
        if who == Who::RootForStranger {
            chown(&workspace, Some(STRANGER), Some(STRANGER)).unwrap();
        }
        Self { top, workspace, data, home, connections: Arc::default() }
    }

    /// A configuration with nothing special about it.
    pub fn config(&self) -> Config {
        Config {
            data: self.data.clone(),
            workspace: self.workspace.clone(),
            layout: Layout::service(),
            added: Vec::new(),
            home_files: HomeFiles::default(),
            home: self.home.clone(),
            environment: vec![
                ("PATH".to_owned(), "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin".to_owned()),
                ("OPENAI_API_KEY".to_owned(), "sk-do-not-show".to_owned()),
            ],
            environment_names: Vec::new(),
            read_only: Vec::new(),
            hidden: Vec::new(),
            skills: None,
            trace: None,
            network: Network::Restricted(self.egress(&[])),
            limits: ResourceLimits::DEFAULT,
            namespaces: Namespaces::IfAvailable,
        }
    }

    /// The same for a workspace that is a person's own directory.
    #[allow(dead_code, reason = "not every binary has tests of personal workspaces")]
    pub fn personal(&self, workspace: &Path) -> Config {
        let path = workspace.to_str().unwrap();
        let layout = Layout::personal(TaskId::new(jiff::Timestamp::UNIX_EPOCH), path, path);
        Config { layout, workspace: workspace.to_owned(), ..self.config() }
    }

    /// What the proxy lets through: public addresses and these ranges.
    pub fn egress(&self, allowed: &[&str]) -> Egress {
        let seen = self.connections.clone();
        Egress {
            addresses: AddressRules {
                allowed: allowed.iter().map(|range| range.parse().unwrap()).collect(),
            },
            hosts: HostRules::Any,
            endpoints: Vec::new(),
            observer: Arc::new(move |connection| seen.lock().unwrap().push(connection.clone())),
        }
    }

    /// The sandbox under test with the plain configuration.
    pub async fn sandbox(&self) -> Any {
        self.open(self.config()).await.unwrap()
    }

    /// The sandbox under test with what of a configuration concerns it.
    pub async fn open(&self, config: Config) -> Result<Any, Error> {
        Ok(Any(match SANDBOX {
            Tested::Local => Arc::new(Local::open(config).await?),
            Tested::Docker => Arc::new(self.docker(config).await?),
        }))
    }

    pub async fn docker(&self, config: Config) -> Result<Docker, Error> {
        Docker::open(engine().await, self.docker_config(config)).await
    }

    /// What of a configuration concerns containers.
    pub fn docker_config(&self, config: Config) -> docker::Config {
        docker::Config {
            data: config.data,
            workspace: config.workspace,
            task: format!("task_{}", self.top.path().file_name().unwrap().to_str().unwrap()),
            image: needed("WINDLASS_TEST_IMAGE"),
            environment: config.environment,
            environment_names: config.environment_names,
            layout: config.layout,
            added: config.added,
            home_files: config.home_files,
            hidden: config.hidden,
            skills: config.skills,
            trace: config.trace,
            network: config.network,
            limits: config.limits,
            nano_cpus: 2_000_000_000,
            engine_patience: Duration::from_secs(30),
        }
    }

    /// A local sandbox with the plain configuration, for what only that has.
    #[allow(dead_code, reason = "not every binary has tests of the local sandbox alone")]
    pub async fn local(&self) -> Local {
        Local::open(self.config()).await.unwrap()
    }

    /// A local sandbox without namespaces.
    pub async fn landlock(&self) -> Local {
        let config = Config { namespaces: Namespaces::Off, ..self.config() };
        Local::open(config).await.unwrap()
    }

    pub fn host(&self) -> Host {
        let environment = [("PATH".to_owned(), std::env::var("PATH").unwrap())];
        Host::new(self.data.clone(), self.workspace.clone(), &environment, &[]).unwrap()
    }
}

/// The sandbox under test, whichever it is. A container is removed with it.
pub struct Any(pub Arc<dyn Sandbox>);

impl Sandbox for Any {
    fn start(&self, command: Command) -> BoxFuture<'_, Result<Running, Error>> {
        self.0.start(command)
    }

    fn isolation(&self) -> IsolationReport {
        self.0.isolation()
    }

    fn stop(&self) -> BoxFuture<'_, ()> {
        self.0.stop()
    }

    fn drain_events(&self) -> Vec<SandboxEvent> {
        self.0.drain_events()
    }
}

impl Drop for Any {
    fn drop(&mut self) {
        if SANDBOX == Tested::Docker {
            let sandbox = self.0.clone();
            tokio::task::block_in_place(|| Handle::current().block_on(sandbox.stop()));
        }
    }
}

/// What `scripts/test` provides.
pub fn needed(variable: &str) -> String {
    std::env::var(variable).unwrap_or_else(|_| panic!("no {variable}: run this by `scripts/test`"))
}

/// The engine that `scripts/test` found or started.
pub async fn engine() -> Engine {
    Engine::at(&needed("WINDLASS_TEST_DOCKER")).await.unwrap()
}

/// Everything a command did that can be seen.
#[derive(Debug)]
pub struct Outcome {
    pub out: String,
    pub err: String,
    /// Both, in written order.
    pub both: String,
    /// How it ended.
    pub ended: CommandEnd,
}

impl Outcome {
    /// The output of a command that must succeed.
    #[track_caller]
    pub fn ok(self) -> String {
        assert_eq!(self.ended.exit, Exit::Code(0), "{}", self.both);
        self.both
    }

    /// Asserts that the command failed on its own.
    #[track_caller]
    pub fn fails(self) -> String {
        assert!(matches!(self.ended.exit, Exit::Code(code) if code != 0), "{self:?}");
        self.both
    }
}

/// A script in the workspace.
pub fn script(sandbox: &dyn Sandbox, text: &str) -> Command {
    Command::script("test", text, sandbox.isolation().workspace)
}

/// Runs a script to its end.
pub async fn run(sandbox: &dyn Sandbox, text: &str) -> Outcome {
    finish(sandbox.start(script(sandbox, text)).await.unwrap()).await
}

/// Reads a command to its end.
pub async fn finish(mut running: Running) -> Outcome {
    let (mut out, mut err, mut both) = (Vec::new(), Vec::new(), Vec::new());
    while let Some(Chunk { stream, bytes }) = running.next().await {
        both.extend_from_slice(&bytes);
        match stream {
            Stream::Out => out.extend(bytes),
            Stream::Err => err.extend(bytes),
        }
    }
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    let ended = running.wait().await;
    Outcome { out: text(out), err: text(err), both: text(both), ended }
}
