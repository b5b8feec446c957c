//! What a server is: a program or an address, as `.mcp.json` and `[mcp.servers.NAME]` have it.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use windlass_core::hash::hex;

use super::approval::ApprovalCheck;
use super::presets;

/// How long a server may take to start and say what it offers.
const STARTUP: Duration = Duration::from_secs(30);
/// How long a call may take when nothing is configured.
const CALL: Duration = Duration::from_secs(120);
/// How long anything may be configured to take.
const MAX_SECONDS: u64 = 3_600;
/// A name is part of each of its tools' names.
const MAX_NAME_CHARS: usize = 40;
/// More servers than anyone uses.
const MAX_SERVERS: usize = 64;

#[derive(Clone, PartialEq, Eq)]
pub struct Definition {
    /// What it is called by.
    pub name: String,
    /// How it is spoken to.
    pub transport: Transport,
    /// Whether a person believes what it says of its tools.
    pub trusted: bool,
    /// How long it may take to start.
    pub startup: Duration,
    /// How long a call may take.
    pub call: Duration,
    /// Looks before each start whether it is still approved, where a person must approve it.
    pub approval: Option<ApprovalCheck>,
}

/// How a server is spoken to.
#[derive(Clone, PartialEq, Eq)]
pub enum Transport {
    /// A program, over its standard input and output.
    Stdio {
        command: String,
        args: Vec<String>,
        /// Added to its environment; may hold keys.
        env: Vec<(String, String)>,
    },
    /// An address, over streamable HTTP.
    Http {
        url: String,
        /// Sent with every request; may hold keys.
        headers: Vec<(String, String)>,
    },
}

/// Keys are not printed.
impl std::fmt::Debug for Definition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Definition")
            .field("name", &self.name)
            .field("transport", &self.summary())
            .finish()
    }
}

impl Definition {
    /// How it is spoken to, without what may be secret.
    pub fn summary(&self) -> String {
        match &self.transport {
            Transport::Stdio { command, args, .. } => format!("{command} {}", args.join(" ")),
            Transport::Http { url, .. } => match url::Url::parse(url) {
                Ok(url) => format!("{}://{}{}", url.scheme(), url.authority_shown(), url.path()),
                Err(_) => "(no address)".to_owned(),
            },
        }
        .trim_end()
        .to_owned()
    }

    /// The program it needs, where it is one.
    pub fn program(&self) -> Option<&str> {
        match &self.transport {
            Transport::Stdio { command, .. } => Some(command),
            Transport::Http { .. } => None,
        }
    }

    /// Tells this server from another of the same name; keys do not count.
    pub fn identity(&self) -> String {
        let mut hash = Sha256::new();
        let mut add = |text: &str| {
            hash.update((text.len() as u64).to_le_bytes());
            hash.update(text);
        };
        add(&self.name);
        match &self.transport {
            Transport::Stdio { command, args, .. } => {
                add(command);
                args.iter().for_each(|arg| add(arg));
            }
            Transport::Http { url, .. } => add(url),
        }
        hex(&hash.finalize()[..8])
    }
}

trait AuthorityShown {
    fn authority_shown(&self) -> String;
}

impl AuthorityShown for url::Url {
    fn authority_shown(&self) -> String {
        let host = self.host_str().unwrap_or_default();
        self.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
    }
}

/// Why a definition cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{reason}", server.as_ref().map_or(String::new(), |name| format!("MCP server `{name}`: ")))]
pub struct DefinitionError {
    /// The server; `None` where the whole list is wrong.
    pub server: Option<String>,
    /// What is wrong.
    pub reason: String,
}

#[derive(Deserialize)]
#[serde(expecting = "an object with `command`, `url` or `preset`")]
struct ServerEntry {
    #[serde(rename = "type")]
    kind: Option<String>,
    preset: Option<String>,
    command: Option<String>,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    url: Option<String>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    #[serde(default)]
    trusted: bool,
    #[serde(default)]
    disabled: bool,
    startup_seconds: Option<u64>,
    timeout_seconds: Option<u64>,
}

/// The servers of a `.mcp.json` or a skill's `mcp.json`, variables expanded. What such a file says of its
/// own trustworthiness does not count.
pub fn parse_file(
    text: &str,
    env: &BTreeMap<String, String>,
) -> (Vec<Definition>, Vec<DefinitionError>) {
    let wrong = |reason: String| DefinitionError { server: None, reason };
    let value: Value = match serde_json::from_str(text) {
        Ok(value) => value,
        Err(error) => {
            let (line, column) = (error.line(), error.column());
            let reason = format!("it is not valid JSON: line {line}, column {column}");
            return (Vec::new(), vec![wrong(reason)]);
        }
    };
    let Some(servers) = value["mcpServers"].as_object() else {
        return (Vec::new(), vec![wrong("there is no `mcpServers` object".to_owned())]);
    };
    let (mut definitions, mut errors) = (Vec::new(), Vec::new());
    for (name, server) in servers.iter().take(MAX_SERVERS) {
        match parse_server(name, server, env) {
            Ok(Some(definition)) => definitions.push(Definition { trusted: false, ..definition }),
            Ok(None) => {}
            Err(error) => errors.push(error),
        }
    }
    (definitions, errors)
}

/// One server as it is written; `None` when it is disabled.
pub fn parse_server(
    name: &str,
    value: &Value,
    env: &BTreeMap<String, String>,
) -> Result<Option<Definition>, DefinitionError> {
    let wrong = |reason: String| DefinitionError { server: Some(name.to_owned()), reason };
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if name.is_empty() || name.chars().count() > MAX_NAME_CHARS || !name.chars().all(allowed) {
        return Err(wrong(format!(
            "a name has 1 to {MAX_NAME_CHARS} letters, digits, `-`, `_` and `.`"
        )));
    }
    let written: ServerEntry =
        serde_json::from_value(value.clone()).map_err(|error| wrong(error.to_string()))?;
    if written.disabled {
        return Ok(None);
    }
    let seconds = |given: Option<u64>, default: Duration| {
        given.map_or(default, |seconds| Duration::from_secs(seconds.clamp(1, MAX_SECONDS)))
    };
    let transport = transport(&written, env).map_err(wrong)?;
    Ok(Some(Definition {
        name: name.to_owned(),
        transport,
        trusted: written.trusted,
        startup: seconds(written.startup_seconds, STARTUP),
        call: seconds(written.timeout_seconds, CALL),
        approval: None,
    }))
}

fn transport(written: &ServerEntry, env: &BTreeMap<String, String>) -> Result<Transport, String> {
    let kind = written.kind.as_deref();
    if kind.is_some_and(|kind| !["stdio", "http", "streamable-http"].contains(&kind)) {
        let kind = kind.unwrap_or_default();
        return Err(format!("type `{kind}` is not spoken; allowed: stdio, http"));
    }
    let all = |map: &BTreeMap<String, String>| -> Result<Vec<(String, String)>, String> {
        map.iter().map(|(name, value)| Ok((name.clone(), expand(value, env)?))).collect()
    };
    match (&written.preset, &written.command, &written.url) {
        (Some(name), None, None) => {
            let preset = presets::find(name).ok_or_else(|| {
                let known: Vec<_> = presets::PRESETS.iter().map(|preset| preset.name).collect();
                format!("there is no preset `{name}`; allowed: {}", known.join(", "))
            })?;
            let written = preset.command(&written.args, &written.env);
            let args: Result<_, _> = written.args.iter().map(|arg| expand(arg, env)).collect();
            Ok(Transport::Stdio { command: written.command, args: args?, env: all(&written.env)? })
        }
        (None, Some(command), None) if kind.is_none_or(|kind| kind == "stdio") => {
            let args: Result<_, _> = written.args.iter().map(|arg| expand(arg, env)).collect();
            let command = expand(command, env)?;
            if command.trim().is_empty() {
                return Err("`command` is empty".to_owned());
            }
            Ok(Transport::Stdio { command, args: args?, env: all(&written.env)? })
        }
        (None, None, Some(url)) if kind.is_none_or(|kind| kind != "stdio") => {
            let url = expand(url, env)?;
            let parsed = url::Url::parse(&url).map_err(|_| "`url` is not an address".to_owned())?;
            if !matches!(parsed.scheme(), "http" | "https") {
                return Err("`url` must begin with http:// or https://".to_owned());
            }
            Ok(Transport::Http { url, headers: all(&written.headers)? })
        }
        _ => {
            Err("it needs exactly one of `command`, `url` and `preset`, fitting its `type`"
                .to_owned())
        }
    }
}

/// `${NAME}` and `${NAME:-default}` replaced by the environment's values. A value may be a key, so only
/// names are ever shown.
fn expand(text: &str, env: &BTreeMap<String, String>) -> Result<String, String> {
    let mut whole = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        whole.push_str(before);
        let (inner, behind) =
            after.split_once('}').ok_or_else(|| "a `${` has no `}`".to_owned())?;
        let (name, default) = match inner.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (inner, None),
        };
        match (env.get(name).filter(|value| !value.is_empty()), default) {
            (Some(value), _) => whole.push_str(value),
            (None, Some(default)) => whole.push_str(default),
            (None, None) => return Err(format!("the variable `{name}` is not set")),
        }
        rest = behind;
    }
    whole.push_str(rest);
    Ok(whole)
}

/// The servers of session, skills and task as one list, later ones winning by name (WF-030, WF-032,
/// WF-033, C-30).
pub fn merge_layers(layers: impl IntoIterator<Item = Vec<Definition>>) -> Vec<Definition> {
    let mut by_name = BTreeMap::new();
    for definition in layers.into_iter().flatten() {
        by_name.insert(definition.name.clone(), definition);
    }
    by_name.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn env() -> BTreeMap<String, String> {
        [("TOKEN", "s3cret"), ("EMPTY", "")].map(|(k, v)| (k.to_owned(), v.to_owned())).into()
    }

    #[test]
    fn variables_are_expanded_with_defaults_and_a_missing_one_is_named() {
        let expand = |text: &str| expand(text, &env());
        assert_eq!(expand("a ${TOKEN} b").unwrap(), "a s3cret b");
        assert_eq!(expand("${NONE:-x y}/${EMPTY:-z}").unwrap(), "x y/z");
        assert_eq!(expand("$HOME {x}").unwrap(), "$HOME {x}");
        assert_eq!(expand("${NONE}").unwrap_err(), "the variable `NONE` is not set");
        assert_eq!(expand("${NONE").unwrap_err(), "a `${` has no `}`");
    }

    #[test]
    fn a_file_gives_its_servers_and_every_mistake_and_cannot_trust_itself() {
        let text = r#"{"mcpServers": {
            "time": {"command": "mcp-time", "args": ["--zone", "${ZONE:-UTC}"], "trusted": true},
            "web": {"type": "http", "url": "https://u:p@mcp.test/x?key=1", "headers": {"Authorization": "Bearer ${TOKEN}"}},
            "files": {"preset": "filesystem", "args": ["/workspace"]},
            "off": {"command": "x", "disabled": true},
            "old": {"type": "sse", "url": "https://mcp.test"},
            "both": {"command": "x", "url": "https://mcp.test"},
            "keyless": {"command": "x", "env": {"K": "${NONE}"}},
            "bad name": {"command": "x"}
        }}"#;
        let (definitions, errors) = parse_file(text, &env());
        let shown: Vec<_> = definitions
            .iter()
            .map(|one| format!("{}: {} trusted={}", one.name, one.summary(), one.trusted))
            .collect();
        insta::assert_snapshot!(shown.join("\n"), @"
        files: npx -y @modelcontextprotocol/server-filesystem /workspace trusted=false
        time: mcp-time --zone UTC trusted=false
        web: https://mcp.test/x trusted=false
        ");
        let errors: Vec<_> = errors.iter().map(ToString::to_string).collect();
        insta::assert_snapshot!(errors.join("\n"), @"
        MCP server `bad name`: a name has 1 to 40 letters, digits, `-`, `_` and `.`
        MCP server `both`: it needs exactly one of `command`, `url` and `preset`, fitting its `type`
        MCP server `keyless`: the variable `NONE` is not set
        MCP server `old`: type `sse` is not spoken; allowed: stdio, http
        ");
        assert!(!format!("{definitions:?}").contains("s3cret"));
    }

    /// WF-030, WF-032, WF-033
    #[test]
    fn servers_of_session_skills_and_task_are_joined_and_the_task_wins() {
        let one = |name: &str, command: &str| {
            let value = serde_json::json!({ "command": command });
            parse_server(name, &value, &env()).unwrap().unwrap()
        };
        let all = merge_layers([
            vec![one("a", "session"), one("b", "session")],
            vec![one("b", "skill"), one("c", "skill")],
            vec![one("c", "task")],
        ]);
        let shown: Vec<_> = all.iter().map(|d| format!("{}={}", d.name, d.summary())).collect();
        assert_eq!(shown, ["a=session", "b=skill", "c=task"]);
    }
}
