//! A data directory, a scripted model, perhaps a Redis server, and processes of the real binary.

use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use jiff::Timestamp;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;
use windlass_coordinator::bus::{Bus, EmbeddedBus, InStream, Redis};
use windlass_core::event::Record;
use windlass_core::id::{CommandId, SessionId, TaskId};
use windlass_core::status::TaskStatus;
use windlass_store::{Options, OutStream, Store, TaskRow};
use windlass_testkit::{ModelServer, RedisServer};

/// How long a wait may take: longer than anything here takes on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(120);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum On {
    Embedded,
    Redis,
}

pub struct World {
    pub model: ModelServer,
    pub redis: Option<RedisServer>,
    pub store: Store,
    home: TempDir,
}

/// A running `serve` or `worker`.
pub struct Process {
    child: Child,
    /// What it says on stderr.
    lines: Receiver<String>,
}

/// A command as a client writes it.
pub struct Submission {
    pub task: TaskId,
    pub command: CommandId,
    pub session: SessionId,
    pub json: Value,
}

impl World {
    pub fn new(on: On, model: ModelServer) -> Self {
        let home = tempfile::tempdir().unwrap();
        std::fs::create_dir(home.path().join("project")).unwrap();
        let redis = (on == On::Redis).then(RedisServer::start);
        let store = Store::open(home.path().join("data"), Options::default()).unwrap();
        Self { model, redis, store, home }
    }

    /// The person's home directory.
    pub fn home(&self) -> &std::path::Path {
        self.home.path()
    }

    /// The bus, as another process sees it.
    pub fn bus(&self) -> Box<dyn Bus> {
        match &self.redis {
            Some(redis) => Box::new(Redis::new(&redis.url()).unwrap()),
            None => Box::new(EmbeddedBus::new(self.store.clone(), Arc::new(Timestamp::now))),
        }
    }

    /// The command line, ready to be changed and started.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_windlass"));
        command
            .args(args)
            .current_dir(self.home.path().join("project"))
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.home.path())
            .env("USER", "ada")
            .env("WINDLASS_DATA", self.home.path().join("data"))
            .env("LITELLM_API_BASE", self.model.base())
            .env("LITELLM_MODEL", "gpt-4o")
            .env("CONTAINER_MODE", "local")
            .env("COORDINATOR_CLAIM_AFTER_MS", "1000")
            .stdin(Stdio::null());
        if let Some(redis) = &self.redis {
            command.env("REDIS_URL", redis.url());
        }
        command
    }

    /// Starts `serve` or `worker` and waits until it says that it runs.
    pub fn start(&self, args: &[&str]) -> Process {
        Process::start(self.command(args))
    }

    /// A command for this world's model.
    pub fn submission(&self, goal: &str) -> Submission {
        let now = Timestamp::now();
        let (task, command) = (TaskId::new(now), CommandId::new(now));
        let session = SessionId::new(now);
        let json = json!({
            "command_id": command, "session_id": session, "task_id": task, "goal": goal,
        });
        Submission { task, command, session, json }
    }

    /// Hands a goal in through the bus.
    pub async fn submit(&self, goal: &str) -> Submission {
        let submission = self.submission(goal);
        self.send(InStream::TaskCommand, &submission.json).await;
        submission
    }

    pub async fn send(&self, stream: InStream, json: &Value) {
        self.bus().submit(stream, None, &json.to_string()).await.unwrap();
    }

    pub fn task(&self, task: TaskId) -> Option<TaskRow> {
        self.store.tasks().get(task).unwrap()
    }

    pub fn journal(&self, task: TaskId) -> Vec<Record> {
        self.store.journal().of(task).unwrap()
    }

    /// Waits until something holds, as the store says.
    pub async fn until<T>(&self, what: &str, mut holds: impl FnMut() -> Option<T>) -> T {
        let mut changes = self.store.changes();
        let wait = async {
            loop {
                changes.mark_seen();
                if let Some(value) = holds() {
                    return value;
                }
                changes.changed().await.unwrap();
            }
        };
        let waited = tokio::time::timeout(PATIENCE, wait).await;
        waited.unwrap_or_else(|_| panic!("never: {what}"))
    }

    /// The same for what the store does not announce: it polls Redis.
    pub async fn until_seen<T>(&self, what: &str, mut holds: impl FnMut() -> Option<T>) -> T {
        let wait = async {
            loop {
                if let Some(value) = holds() {
                    return value;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let waited = tokio::time::timeout(PATIENCE, wait).await;
        waited.unwrap_or_else(|_| panic!("never: {what}"))
    }

    pub async fn until_status(&self, task: TaskId, status: TaskStatus) -> TaskRow {
        let what = format!("{task} is {status}");
        self.until(&what, || self.task(task).filter(|row| row.status == status)).await
    }

    /// What was published to a stream, oldest first.
    pub fn published(&self, stream: OutStream) -> Vec<Value> {
        match &self.redis {
            Some(redis) => {
                let text = redis.cli(&["--json", "XRANGE", stream.as_str(), "-", "+"]);
                let entries: Vec<(String, Value)> = serde_json::from_str(&text).unwrap();
                entries.iter().map(|(_, fields)| data(fields)).collect()
            }
            None => {
                let rows = self.store.bus().read(stream.as_str(), 0, 10_000).unwrap();
                rows.iter().map(|row| serde_json::from_str(&row.body).unwrap()).collect()
            }
        }
    }

    /// Waits until a message of a task is in a stream. A Redis stream does not notify us, so this polls it.
    pub async fn until_published(&self, stream: OutStream, task: TaskId) -> Value {
        let ours = |one: &Value| one["task_id"] == task.to_string();
        let what = format!("{stream} of {task} is published");
        self.until_seen(&what, || self.published(stream).into_iter().rfind(ours)).await
    }

    /// The workspace that a service gives a task.
    pub fn workspace(&self, task: TaskId) -> PathBuf {
        self.store.dir().workspaces().join(task.to_string())
    }
}

/// The JSON of an entry; fields come as a list or as an object, by the version of `redis-cli`.
fn data(fields: &Value) -> Value {
    let text = match fields {
        Value::Object(fields) => fields["data"].as_str().map(str::to_owned),
        Value::Array(fields) => {
            let place = fields.iter().position(|field| field == "data").unwrap();
            fields[place + 1].as_str().map(str::to_owned)
        }
        _ => None,
    };
    serde_json::from_str(&text.unwrap()).unwrap()
}

impl Process {
    /// Starts a command line and waits until it says that it runs.
    pub fn start(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let stderr = child.stderr.take().unwrap();
        let (said, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                if said.send(line).is_err() {
                    break;
                }
            }
        });
        let process = Self { child, lines };
        process.until_says(" at once; ");
        process
    }

    /// Waits for a line that holds this.
    pub fn until_says(&self, words: &str) -> String {
        let mut before = Vec::new();
        loop {
            match self.lines.recv_timeout(PATIENCE) {
                Ok(line) if line.contains(words) => return line,
                Ok(line) => before.push(line),
                Err(_) => panic!("it never said `{words}`, but: {before:#?}"),
            }
        }
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    pub fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw).unwrap();
        kill_process(pid, signal).unwrap();
    }

    /// Ends it as a crash would.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Stops it by a signal, and waits until it has ended.
    pub fn stop(self) -> ExitStatus {
        self.signal(Signal::TERM);
        self.ended()
    }

    /// Waits until it has ended.
    pub fn ended(mut self) -> ExitStatus {
        self.child.wait().unwrap()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
