//! `exec`: one command in the sandbox, its output kept like that of an agent's command (AX-102), without keys.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow};
use clap::Args;
use serde_json::json;
use windlass_coordinator::Coordinator;
use windlass_coordinator::outputs::{Stream, TruncatedOutput};
use windlass_core::axes::{Axes, PermissionProfile};
use windlass_core::id::{CallId, TaskId};
use windlass_core::layout::AddedDirectory;
use windlass_core::policy::Decision;
use windlass_core::shown::shown_line;
use windlass_core::text::suffix;
use windlass_sandbox::{Command, Exit, KILL_GRACE, Running, Stream as From};
use windlass_term::{numbers, strip_controls};
use windlass_tui::host::{ShellEnd, ShellRun};

use super::{AppContext, Execute, Start, explain};
use crate::args::{PlaceArgs, SandboxArgs};
use crate::failure::Failure;
use crate::show::{note, out, out_json};
use crate::wiring::place::{self, TaskDirectories};
use crate::wiring::{self, Environment, sandbox};

/// The end of the output that is seen while a command runs: enough for its last line.
const TAIL_BYTES: usize = 4 * 1024;

/// Run one command in the sandbox, without asking; it can change this directory
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Exec {
    /// The command and its arguments; one argument alone is read by bash
    #[arg(
        value_name = "COMMAND",
        trailing_var_arg = true,
        allow_hyphen_values = true,
        required_unless_present = "test"
    )]
    pub command: Vec<String>,
    /// The command as one text, read by bash
    #[arg(long, value_name = "COMMAND", conflicts_with = "command")]
    pub test: Option<String>,
    /// The directory to work in
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub workspace: PathBuf,
    /// What belongs to it
    #[command(flatten)]
    pub place: PlaceArgs,
    /// Print how it ended and what it printed, as JSON
    #[arg(long)]
    pub json: bool,
    /// Where it runs
    #[command(flatten)]
    pub sandbox: SandboxArgs,
}

const EXAMPLES: &str = "\
Examples:
  windlass exec ls -la
  windlass exec --sandbox local -- cargo test
  windlass exec \"find / | head -10000\"

A command that would be asked about or denied in a task runs here at once:
you typed it. Like an agent's commands, it gets no standard input.
Exits as the command does; 128 plus the signal if one ended it, 124 if it
timed out.";

impl Execute for Exec {
    fn execute(self, start: Start) -> Result<u8, Failure> {
        exec(&start.sandbox(&self.sandbox).app_for_work()?, &self)
    }
}

/// Runs it, prints what the store keeps of it, and says where the rest is.
pub(super) fn exec(app: &AppContext, args: &Exec) -> Result<u8, Failure> {
    let workspace = args
        .workspace
        .canonicalize()
        .and_then(|whole| match whole.is_dir() {
            true => Ok(whole),
            false => Err(std::io::ErrorKind::NotADirectory.into()),
        })
        .with_context(|| format!("workspace `{}` cannot be used", args.workspace.display()));
    let workspace = workspace.map_err(|error| Failure {
        hint: Some("name a directory that exists with `--workspace DIR`".into()),
        ..error.into()
    })?;
    place::check(&app.environment, &workspace, args.place.confirm_workspace)?;
    let added = place::added_directories(&app.environment, &args.place.add_dir)?;
    let request = ExecRequest { workspace: &workspace, added, text: args.text() };
    let ran = app.runtime.block_on(run(&app.environment, &app.coordinator, request, None))?;
    if args.json {
        ran.print_json()
    } else {
        ran.print()
    }
    Ok(ran.code())
}

/// A command, and where it runs.
struct ExecRequest<'a> {
    workspace: &'a Path,
    added: Vec<AddedDirectory>,
    text: String,
}

async fn run(
    environment: &Environment,
    coordinator: &Coordinator,
    request: ExecRequest<'_>,
    watched: Option<ShellRun<'_>>,
) -> Result<Ran, Failure> {
    let ExecRequest { workspace, added, text } = request;
    let config = environment.config(workspace)?;
    wiring::hide_keys(environment, &config, &|named| coordinator.storage().hide_secrets(named));
    let now = coordinator.now();
    // The sandbox shows a task its trace. There is no trace here, but the directory must exist.
    let root = TaskId::new(now);
    let trace = coordinator.storage().trace_directory(root);
    std::fs::create_dir_all(&trace).context("the data directory cannot be written to")?;
    let placed =
        TaskDirectories { added, ..TaskDirectories::of_directory(environment, workspace, root) };
    let opened = sandbox::open_with(environment, &config, &placed, root, None).await;
    let opened = opened.map_err(|details| Failure::of_details(&details))?.sandbox;
    let top = opened.isolation().workspace.display().to_string();
    let start = placed.layout.clone().seen_at(top).start();
    let id = CallId::new(now).to_string();
    let command = Command {
        timeout: Some(config.agent.bash_max_timeout_seconds),
        ..Command::script(&id, text, start)
    };
    let started = opened.start(command).await.map_err(|error| anyhow!(error));
    let ran = match started.context("the command did not start") {
        Ok(running) => keep(coordinator, &id, running, watched).await,
        Err(error) => Err(error.into()),
    };
    opened.stop().await;
    let _ = std::fs::remove_dir(&trace);
    ran
}

/// Runs a command that a person typed in a conversation. What the gate denies does not run; what it would ask about
/// does: the person has just said so.
pub(super) async fn for_person(
    environment: &Environment,
    coordinator: &Coordinator,
    workspace: &Path,
    axes: Axes,
    shell: ShellRun<'_>,
) -> Result<ShellEnd, Failure> {
    let text = shell.command;
    let explained = explain::judge(environment, coordinator, workspace, axes, text)?;
    let decisions = explained.decisions;
    let decision = match axes.permission_profile {
        PermissionProfile::Restricted => decisions.restricted,
        PermissionProfile::Normal => decisions.normal,
        PermissionProfile::Trusted => decisions.trusted,
        PermissionProfile::Unrestricted => decisions.unrestricted,
    };
    if decision == Decision::Deny {
        let hint = format!("`windlass explain {}` says more", quoted(text));
        return Err(Failure::usage(format!("denied: {}", explained.reason), hint));
    }
    let request = ExecRequest { workspace, added: Vec::new(), text: text.to_owned() };
    let ran = run(environment, coordinator, request, Some(shell)).await?;
    let mut printed = String::new();
    for (_, kept) in ran.kept.iter().filter(|(_, kept)| kept.original_size > 0) {
        printed += kept.content.trim_end();
        printed.push('\n');
    }
    ran.refused.iter().for_each(|refusal| printed += &format!("{}\n", shown_line(refusal)));
    Ok(ShellEnd { printed, words: ran.words(), is_success: ran.code() == 0, id: ran.id })
}

impl Exec {
    /// The command as bash reads it. Several arguments reach the program as they are.
    fn text(&self) -> String {
        match (&self.test, self.command.as_slice()) {
            (Some(text), _) => text.clone(),
            (None, [text]) => text.clone(),
            (None, words) => words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" "),
        }
    }
}

/// A word that bash takes as it is.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./=:,+@%".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

/// What one command came to.
struct Ran {
    id: String,
    exit: Exit,
    /// Connections that windlass refused meanwhile, a sentence each.
    refused: Vec<String>,
    kept: [(Stream, TruncatedOutput); 2],
}

async fn keep(
    coordinator: &Coordinator,
    id: &str,
    mut running: Running,
    watched: Option<ShellRun<'_>>,
) -> Result<Ran, Failure> {
    let killer = running.killer();
    let mut is_stopping = false;
    let writer = |stream| coordinator.artifacts().outputs().writer(id, stream);
    let (mut stdout, mut stderr) = (writer(Stream::Stdout)?, writer(Stream::Stderr)?);
    let redacted = || coordinator.artifacts().outputs().redacted();
    let (mut clean_out, mut clean_err) = (redacted(), redacted());
    loop {
        let chunk = tokio::select! {
            chunk = running.next() => chunk,
            () = wait_for_stop(watched), if !is_stopping => {
                is_stopping = true;
                killer.kill(KILL_GRACE);
                continue;
            }
        };
        let Some(chunk) = chunk else { break };
        let (writer, clean) = match chunk.stream {
            From::Out => (&mut stdout, &mut clean_out),
            From::Err => (&mut stderr, &mut clean_err),
        };
        let bytes = clean.push(&chunk.bytes);
        writer.write(&bytes)?;
        if let Some(shell) = watched {
            show(shell, &bytes);
        }
    }
    // What waited because it could have been the beginning of a key.
    stdout.write(&clean_out.finish())?;
    stderr.write(&clean_err.finish())?;
    let ended = running.wait().await;
    let now = coordinator.now();
    let kept =
        [(Stream::Stdout, stdout.finish(now).await?), (Stream::Stderr, stderr.finish(now).await?)];
    Ok(Ran { id: id.to_owned(), exit: ended.exit, refused: ended.refused, kept })
}

/// Waits until the person ends the command; never, where nobody watches it.
async fn wait_for_stop(watched: Option<ShellRun<'_>>) {
    match watched {
        Some(shell) => shell.stop.cancelled().await,
        None => std::future::pending().await,
    }
}

/// Adds to the end of the output that is seen.
fn show(shell: ShellRun<'_>, bytes: &[u8]) {
    shell.tail.send_modify(|tail| {
        tail.push_str(&String::from_utf8_lossy(bytes));
        *tail = suffix(tail, TAIL_BYTES).to_owned();
    });
}

impl Ran {
    /// The exit code of the command, or what a shell would make of how it ended.
    fn code(&self) -> u8 {
        match self.exit {
            Exit::Code(code) => u8::try_from(code).unwrap_or(1),
            Exit::Signal(signal) => u8::try_from(128 + signal).unwrap_or(1),
            Exit::TimedOut => 124,
            Exit::OutOfMemory | Exit::Killed => 137,
            Exit::Lost => 1,
        }
    }

    fn words(&self) -> String {
        match self.exit {
            Exit::Code(code) => format!("exit {code}"),
            Exit::Signal(signal) => format!("ended by signal {signal}"),
            Exit::TimedOut => "timed out".to_owned(),
            Exit::Killed => "stopped".to_owned(),
            Exit::OutOfMemory => "ran out of memory".to_owned(),
            Exit::Lost => "lost with its sandbox".to_owned(),
        }
    }

    fn print(&self) {
        for (stream, kept) in self.kept.iter().filter(|(_, kept)| kept.original_size > 0) {
            let text = strip_controls(&kept.content);
            match stream {
                Stream::Stdout => out(text.trim_end()),
                Stream::Stderr => note(text.trim_end()),
            }
        }
        self.refused.iter().for_each(|refusal| note(&shown_line(refusal)));
        let size: u64 = self.kept.iter().map(|(_, kept)| kept.original_size).sum();
        let whole = match self.kept.iter().any(|(_, kept)| kept.truncated) {
            true => format!(" · all of it: windlass outputs {}", self.id),
            false => String::new(),
        };
        note(&format!("{} · {}{whole}", self.words(), numbers::plural(size, "byte")));
    }

    fn print_json(&self) {
        let streams = self.kept.iter().map(|(stream, kept)| (stream.to_string(), json!(kept)));
        let streams: serde_json::Map<_, _> = streams.collect();
        let (exit, code) = (self.words(), self.code());
        let ended = json!({
            "id": self.id, "exit": exit, "exit_code": code, "refused": self.refused, "streams": streams,
        });
        out_json(&ended.to_string());
    }
}
