//! The real binary in throwaway directories, talking to a scripted model server.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;
use windlass_testkit::ModelServer;

/// A person's machine: a data directory, a workspace and a model.
pub struct Program {
    pub server: ModelServer,
    pub data: TempDir,
    pub workspace: TempDir,
}

/// Where the tasks of this binary's tests run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(dead_code, reason = "each binary tests one of them")]
pub enum Tested {
    /// In the local sandbox.
    Local,
    /// In containers of the engine that `scripts/test` found or started.
    Docker,
}

/// What `scripts/test` provides.
pub fn needed(variable: &str) -> String {
    std::env::var(variable).unwrap_or_else(|_| panic!("no {variable}: run this by `scripts/test`"))
}

/// The result of one command line.
#[derive(Debug)]
pub struct Ran {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Program {
    /// A machine whose model plays a script.
    pub fn playing(script: &str) -> Self {
        Self::with(ModelServer::start(script))
    }

    pub fn with(server: ModelServer) -> Self {
        let (data, workspace) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        Self { server, data, workspace }
    }

    /// The command, ready to be changed and started.
    pub fn command(&self, args: &[&str]) -> Command {
        // A copy where a test runs as a user who cannot enter the target directory.
        let program = std::env::var_os("WINDLASS_TEST_PROGRAM");
        let mut command =
            Command::new(program.unwrap_or_else(|| env!("CARGO_BIN_EXE_windlass").into()));
        command
            .args(args)
            .current_dir(self.workspace.path())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.data.path())
            .env("USER", "ada")
            .env("WINDLASS_DATA", self.data.path().join("data"))
            .env("LITELLM_API_BASE", self.server.base())
            .env("LITELLM_MODEL", "gpt-4o")
            // What an earlier task of a test did is not in the first message of the next.
            .env("AGENT_MEMORIES", "false")
            // A machine with Chromium offers one tool more; tests of it take this away.
            .env("WINDLASS_BROWSER", "off")
            .stdin(Stdio::null());
        // Not an engine that this machine may have: tests run the same everywhere.
        match crate::SANDBOX {
            Tested::Local => command.env("CONTAINER_MODE", "local"),
            Tested::Docker => command
                .env("CONTAINER_MODE", "docker")
                .env("CONTAINER_IMAGE", needed("WINDLASS_TEST_IMAGE"))
                .env("DOCKER_HOST", needed("WINDLASS_TEST_DOCKER")),
        };
        command
    }

    /// Runs a command line to its end.
    pub fn windlass(&self, args: &[&str]) -> Ran {
        self.command(args).output().unwrap().into()
    }

    /// Starts a command line and leaves it running.
    pub fn start(&self, args: &[&str]) -> Child {
        let mut command = self.command(args);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// The workspace's file of that name.
    pub fn file(&self, name: &str) -> String {
        let path = self.workspace.path().join(name);
        std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    /// The text of a file of the last task's own.
    pub fn own_file(&self, name: &str) -> String {
        self.file(&format!(".windlass/tasks/{}/{name}", self.task()))
    }

    /// The path of the workspace on the host.
    pub fn real_workspace(&self) -> String {
        self.workspace().canonicalize().unwrap().display().to_string()
    }

    /// The path of the workspace as agents see it.
    pub fn seen_workspace(&self) -> String {
        match crate::SANDBOX {
            Tested::Local => self.real_workspace(),
            Tested::Docker => "/workspace".to_owned(),
        }
    }

    pub fn data_directory(&self) -> PathBuf {
        self.data.path().join("data")
    }

    pub fn workspace(&self) -> &Path {
        self.workspace.path()
    }

    /// The only task's id.
    pub fn task(&self) -> String {
        let listed = self.windlass(&["tasks", "--json"]);
        let first = listed.json_lines().into_iter().next().expect("a task");
        first["task_id"].as_str().unwrap().to_owned()
    }

    /// The text of the last message of the last request.
    pub fn last_message_sent(&self) -> String {
        let requests = self.server.requests();
        let body = requests.last().expect("a request").json();
        let messages = body["messages"].as_array().unwrap().clone();
        messages.last().unwrap()["content"].as_str().unwrap_or_default().to_owned()
    }
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

impl Ran {
    /// Standard output as JSON lines.
    pub fn json_lines(&self) -> Vec<Value> {
        self.stdout
            .lines()
            .map(|line| {
                serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))
            })
            .collect()
    }

    /// The kinds of the events printed with `--json`.
    pub fn kinds(&self) -> Vec<String> {
        let events = self.json_lines();
        events.iter().map(|event| event["event_type"].as_str().unwrap().to_owned()).collect()
    }

    /// The `TaskResult` in the last line.
    pub fn result(&self) -> Value {
        let last = self.json_lines().pop().unwrap_or_else(|| panic!("no output: {self:?}"));
        assert_eq!(last["event_type"], "agent_end", "{self:?}");
        last["data"].clone()
    }

    /// Fails unless the program ended with this code.
    pub fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, code, "stdout:\n{}\nstderr:\n{}", self.stdout, self.stderr);
        self
    }
}
