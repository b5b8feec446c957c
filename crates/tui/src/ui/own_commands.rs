//! The commands that the person runs with `!`: watched and ended while they run, and printed at their end.

use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use windlass_core::id::SessionId;
use windlass_core::shown::shown;
use windlass_term::{Detail, Paint, strip_controls, tool_lines};

use crate::app::OwnCommand;
use crate::host::{ShellEnd, ShellRun};

/// Columns of a line of output, at least.
const LEAST_WIDTH: usize = 16;

/// Those that run.
#[derive(Default)]
pub(super) struct OwnCommands {
    running: Vec<Running>,
}

struct Running {
    /// The conversation that it was typed in.
    session: SessionId,
    command: String,
    since: Instant,
    stop: CancellationToken,
    /// The end of what it has printed. Its sender is gone when the command is.
    tail: watch::Receiver<String>,
}

/// What the job that runs a command needs.
pub(super) struct Started {
    tail: watch::Sender<String>,
    stop: CancellationToken,
}

impl Started {
    pub fn run<'a>(&'a self, command: &'a str) -> ShellRun<'a> {
        ShellRun { command, tail: &self.tail, stop: &self.stop }
    }
}

impl OwnCommands {
    pub fn start(&mut self, session: SessionId, command: &str) -> Started {
        let (tail, printed) = watch::channel(String::new());
        let stop = CancellationToken::new();
        self.running.push(Running {
            session,
            command: command.to_owned(),
            since: Instant::now(),
            stop: stop.clone(),
            tail: printed,
        });
        Started { tail, stop }
    }

    /// Those of a conversation as they stand.
    pub fn of(&mut self, session: SessionId) -> Vec<OwnCommand> {
        self.running.retain(|running| running.tail.has_changed().is_ok());
        let own = self.running.iter().filter(|running| running.session == session);
        own.map(|running| OwnCommand {
            command: running.command.clone(),
            time: running.since.elapsed(),
            last_line: last_line(&running.tail.borrow()),
            is_stopping: running.stop.is_cancelled(),
        })
        .collect()
    }

    pub fn stop(&self, session: SessionId) {
        let own = self.running.iter().filter(|running| running.session == session);
        own.for_each(|running| running.stop.cancel());
    }
}

fn last_line(printed: &str) -> Option<String> {
    let printed = strip_controls(printed);
    printed
        .lines()
        .rev()
        .find(|line| !line.trim().is_empty())
        .map(|line| line.replace('\t', "    "))
}

/// A command that has ended, as it is printed: the end of its output, where all of it is, and how it exited, where
/// that is not clear from the output.
pub(super) fn lines(
    command: &str,
    ended: &Result<ShellEnd, String>,
    paint: Paint,
    columns: usize,
) -> Vec<String> {
    let heading = paint.bold(&format!("! {}", shown(command)));
    let rest = match ended {
        Ok(end) => output(end, paint, columns),
        Err(why) => why.lines().map(|line| paint.red(&format!("  {}", shown(line)))).collect(),
    };
    [String::new(), heading].into_iter().chain(rest).collect()
}

fn output(end: &ShellEnd, paint: Paint, columns: usize) -> Vec<String> {
    let text = strip_controls(&end.printed);
    let width = columns.saturating_sub(4).max(LEAST_WIDTH);
    let mut lines = tool_lines::output(&text, paint, width, Detail::Brief);
    let all = text.lines().filter(|line| !line.trim().is_empty()).count();
    let is_folded = lines.len() < all;
    if let Some(fold) = lines.first_mut().filter(|_| is_folded) {
        *fold += &paint.dim(&format!(" (all: windlass outputs {})", end.id));
    }
    match (end.is_success, lines.is_empty()) {
        (true, true) => lines.push(paint.dim(&format!("  {}", end.words))),
        (true, false) => {}
        (false, _) => lines.push(format!("  {}", paint.red(&end.words))),
    }
    lines
}
