//! Claude Code, by its stream of JSON messages in both directions.
//!
//! It is started so that every permission it needs comes to us as a `can_use_tool` request. It reads no settings of
//! the project: those could allow commands that nobody here has approved.

mod messages;

use serde_json::json;
use windlass_sandbox::{BoxFuture, Sandbox};

use super::session::{self, Start};
use super::{Job, Link, Runner, RunnerResult};
use messages::Messages;

/// Claude Code as a runner.
#[derive(Clone, Debug)]
pub struct Claude {
    /// The program: a name, or a path.
    pub program: String,
    /// Added to its arguments, by the user's configuration.
    pub arguments: Vec<String>,
}

impl Default for Claude {
    fn default() -> Self {
        Self { program: "claude".to_owned(), arguments: Vec::new() }
    }
}

impl Runner for Claude {
    fn name(&self) -> &str {
        "claude"
    }

    fn command_line(&self) -> String {
        super::in_a_line(&self.program, &self.arguments)
    }

    fn run<'a>(
        &'a self,
        mut job: Job,
        sandbox: &'a dyn Sandbox,
        mut link: Link,
    ) -> BoxFuture<'a, RunnerResult> {
        Box::pin(async move {
            let mut notes = Vec::new();
            loop {
                let start = Start {
                    name: self.name(),
                    argv: self.argv(&job),
                    environment: environment(&job),
                    files: files(&job),
                };
                let mut messages = Messages::new(opening(&job));
                let mut ended = session::run(&mut messages, start, &job, sandbox, &mut link).await;
                // It writes its session a moment after it speaks; one that was killed in between is not there.
                if !messages.is_session_lost() || job.resume.take().is_none() {
                    ended.notes.extend(notes);
                    return ended;
                }
                notes.push(BEGAN_AGAIN.to_owned());
            }
        })
    }
}

impl Claude {
    fn argv(&self, job: &Job) -> Vec<String> {
        let mut argv = vec![self.program.clone()];
        argv.extend(
            [
                "--print",
                "--verbose",
                "--input-format=stream-json",
                "--output-format=stream-json",
                "--include-partial-messages",
                "--permission-prompt-tool=stdio",
                "--permission-mode=default",
                "--setting-sources=user",
                "--strict-mcp-config",
            ]
            .map(str::to_owned),
        );
        // WF-031: the servers of the task, and no others. Every process of the machine can read arguments, and servers
        // have keys.
        argv.push(format!("--mcp-config={}", job.state.join(SERVERS).display()));
        // WF-006: it would read them by itself only together with the project's settings.
        if job.instructions.is_some() {
            let file = job.state.join(INSTRUCTIONS);
            argv.push(format!("--append-system-prompt-file={}", file.display()));
        }
        argv.extend(job.model.iter().map(|model| format!("--model={model}")));
        argv.extend(job.resume.iter().map(|session| format!("--resume={session}")));
        argv.extend(self.arguments.iter().cloned());
        argv
    }
}

/// The file with the servers of the task.
const SERVERS: &str = "windlass-mcp.json";

/// The file with what the project says to agents.
const INSTRUCTIONS: &str = "windlass-instructions.md";

fn files(job: &Job) -> Vec<(&'static str, String)> {
    let servers = json!({"mcpServers": job.mcp_servers}).to_string();
    let instructions = job.project_prompt().map(|text| (INSTRUCTIONS, text));
    [(SERVERS, servers)].into_iter().chain(instructions).collect()
}

/// What a resumed session reads: its last call may not have been answered.
const CONTINUE: &str = "The work was interrupted. Look at what is done in the working directory, then continue \
                        with the task. Ask again for a permission that you were waiting for.";

/// What a person reads about a session that could not be resumed.
const BEGAN_AGAIN: &str =
    "its session was not saved, so it began the task again in the same worktree";

fn opening(job: &Job) -> String {
    match &job.resume {
        Some(_) => CONTINUE.to_owned(),
        None => job.prompt.clone(),
    }
}

/// Its own state stays with the task. A Claude Code that started windlass leaves marks in the environment, by which
/// a second one would think that it runs inside the first; they are emptied.
fn environment(job: &Job) -> Vec<(String, String)> {
    let state = job.state.to_string_lossy().into_owned();
    [
        ("CLAUDE_CONFIG_DIR", state.as_str()),
        ("CLAUDECODE", ""),
        ("CLAUDE_CODE_ENTRYPOINT", ""),
        ("CLAUDE_CODE_SSE_PORT", ""),
        ("DISABLE_AUTOUPDATER", "1"),
        ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .to_vec()
}
