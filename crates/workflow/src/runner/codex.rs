//! codex, by the JSON-RPC of its `app-server`.
//!
//! It is started with approvals for everything but reading. Inside a sandbox of ours its own is off: two would only
//! hide from each other what they refuse.
//!
//! Invariant: it trusts no project. Settings of a project would start commands that nobody here has approved, so what
//! the project says to agents comes from us.

mod rpc;

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::{Value, json};
use windlass_sandbox::{BoxFuture, Sandbox, SandboxKind};

use super::session::{self, Start};
use super::{Job, Link, Runner, RunnerResult};
use rpc::Rpc;

/// codex as a runner.
#[derive(Clone, Debug)]
pub struct Codex {
    /// The program: a name, or a path.
    pub program: String,
    /// Added to its arguments, by the user's configuration: `-c` with settings of its own.
    pub arguments: Vec<String>,
}

impl Default for Codex {
    fn default() -> Self {
        Self { program: "codex".to_owned(), arguments: Vec::new() }
    }
}

impl Runner for Codex {
    fn name(&self) -> &str {
        "codex"
    }

    fn command_line(&self) -> String {
        super::in_a_line(&self.program, &self.arguments)
    }

    fn run<'a>(
        &'a self,
        job: Job,
        sandbox: &'a dyn Sandbox,
        mut link: Link,
    ) -> BoxFuture<'a, RunnerResult> {
        Box::pin(async move {
            let own_sandbox = match sandbox.isolation().kind {
                SandboxKind::Docker | SandboxKind::Local => "danger-full-access",
                SandboxKind::Host => WORKSPACE_WRITE,
            };
            let start = Start {
                name: self.name(),
                argv: self.argv(),
                environment: environment(&job),
                files: vec![(SETTINGS, settings(&job, own_sandbox))],
            };
            let mut rpc = Rpc::new(&job, own_sandbox);
            session::run(&mut rpc, start, &job, sandbox, &mut link).await
        })
    }
}

impl Codex {
    fn argv(&self) -> Vec<String> {
        let mut argv = vec![self.program.clone(), "app-server".to_owned()];
        argv.extend(["-c".to_owned(), "check_for_update_on_startup=false".to_owned()]);
        argv.extend(self.arguments.iter().cloned());
        argv
    }
}

/// The file with its settings, in its own directory.
const SETTINGS: &str = "config.toml";

/// Its own sandbox, where ours has no walls.
const WORKSPACE_WRITE: &str = "workspace-write";

/// WF-031: the servers of the task. Every process of the machine can read arguments, and servers have keys.
fn settings(job: &Job, own_sandbox: &str) -> String {
    let server = |(name, server): (&String, &Value)| {
        format!("mcp_servers.{} = {}\n", key(name), inline(&in_its_words(server)))
    };
    let untrusted = |directory: &Path| {
        format!("projects.{}.trust_level = \"untrusted\"\n", text(&directory.to_string_lossy()))
    };
    let mut lines: String = job.mcp_servers.iter().map(server).collect();
    lines.extend(projects(job).into_iter().map(untrusted));
    // In a worktree the repository is outside of what its sandbox lets it write to, and `git add` would fail.
    if let Some(git) = job.git_directory.as_ref().filter(|_| own_sandbox == WORKSPACE_WRITE) {
        let roots = inline(&json!([git.to_string_lossy()]));
        lines.push_str(&format!("sandbox_workspace_write.writable_roots = {roots}\n"));
    }
    lines
}

/// Every directory that it may take for the project. One that its settings do not name, it trusts by itself as soon as
/// it may write there.
fn projects(job: &Job) -> BTreeSet<&Path> {
    let repository = job.git_directory.as_deref().and_then(Path::parent);
    job.directory.ancestors().chain(repository).collect()
}

fn environment(job: &Job) -> Vec<(String, String)> {
    let state = job.state.to_string_lossy().into_owned();
    vec![("CODEX_HOME".to_owned(), state)]
}

/// A server of `.mcp.json` as codex names its fields.
fn in_its_words(server: &Value) -> Value {
    let Value::Object(fields) = server else { return server.clone() };
    let fields = fields.iter().filter(|(name, _)| *name != "type").map(|(name, value)| {
        let name = if name == "headers" { "http_headers" } else { name };
        (name.to_owned(), value.clone())
    });
    Value::Object(fields.collect())
}

/// A name as a key of TOML.
fn key(name: &str) -> String {
    let is_bare = |char: char| char.is_ascii_alphanumeric() || "-_".contains(char);
    if !name.is_empty() && name.chars().all(is_bare) { name.to_owned() } else { text(name) }
}

/// A value of JSON as an inline value of TOML; a null is left out, for TOML has none.
fn inline(value: &Value) -> String {
    match value {
        Value::Null => text(""),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::String(string) => text(string),
        Value::Array(items) => {
            let items: Vec<String> =
                items.iter().filter(|item| !item.is_null()).map(inline).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Object(fields) => {
            let fields: Vec<String> = fields
                .iter()
                .filter(|(_, value)| !value.is_null())
                .map(|(name, value)| format!("{} = {}", key(name), inline(value)))
                .collect();
            format!("{{{}}}", fields.join(", "))
        }
    }
}

/// A basic string of TOML: its escapes are those of JSON, and serde escapes all control characters but delete.
fn text(text: &str) -> String {
    Value::String(text.to_owned()).to_string().replace('\u{7f}', "\\u007f")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_server_is_valid_toml() {
        let server = json!({"command": "npx", "args": ["-y", "a \"b\"\n\u{7f}"], "env": {"A.B": "1", "c": null}});
        let line = format!("x.{}={}", key("my server"), inline(&server));
        let read: toml::Table = line.parse().unwrap();
        let expected = json!({"my server": {"command": "npx", "args": ["-y", "a \"b\"\n\u{7f}"], "env": {"A.B": "1"}}});
        assert_eq!(serde_json::to_value(&read["x"]).unwrap(), expected);
    }
}
