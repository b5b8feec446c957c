//! codex, by the JSON-RPC of its `app-server`.
//!
//! It is started with approvals for everything but reading. Inside a sandbox of ours its own is off: two would only
//! hide from each other what they refuse.

mod rpc;

use serde_json::Value;
use windlass_sandbox::{BoxFuture, Sandbox, SandboxKind};

use super::session::{self, Start};
use super::{Ended, Job, Link, Runner};
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

    fn run<'a>(
        &'a self,
        job: Job,
        sandbox: &'a dyn Sandbox,
        mut link: Link,
    ) -> BoxFuture<'a, Ended> {
        Box::pin(async move {
            let start =
                Start { name: self.name(), argv: self.argv(&job), environment: environment(&job) };
            let own_sandbox = match sandbox.isolation().kind {
                SandboxKind::Docker | SandboxKind::Local => "danger-full-access",
                SandboxKind::Host => "workspace-write",
            };
            let mut rpc = Rpc::new(&job, own_sandbox);
            session::run(&mut rpc, start, &job, sandbox, &mut link).await
        })
    }
}

impl Codex {
    fn argv(&self, job: &Job) -> Vec<String> {
        let mut argv = vec![self.program.clone(), "app-server".to_owned()];
        // WF-031: the servers of the task as settings of this run.
        for (name, server) in &job.mcp_servers {
            let setting = format!("mcp_servers.{}={}", key(name), inline(&in_its_words(server)));
            argv.extend(["-c".to_owned(), setting]);
        }
        argv.extend(["-c".to_owned(), "check_for_update_on_startup=false".to_owned()]);
        argv.extend(self.arguments.iter().cloned());
        argv
    }
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
    use serde_json::json;

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
