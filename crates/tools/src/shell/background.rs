//! Background commands: started by one call, watched by others, ended with the task.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::task::JoinSet;
use windlass_core::id::CallId;
use windlass_core::outcome::{Fact, Outcome};
use windlass_core::text::one_line;
use windlass_sandbox::{Command, Exit, KillHandle, Running};

use super::collect::Collector;
use super::{Shell, exit_words};
use crate::output;
use crate::tool::LiveOutput;
use crate::workspace::RuleGuard;

/// Background commands of one task at a time.
const MAX_BACKGROUND: usize = 16;
/// Output of one that nobody has read yet; older output is dropped from here, not from its file.
const MAX_UNREAD_BYTES: usize = 256 * 1024;

/// Ended ones that can still be read; of those before them, what they printed is in their files.
const MAX_ENDED: usize = 32;

/// A background command that has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackgroundExit {
    /// The call that started it.
    pub call: CallId,
    pub command: String,
    /// How it ended, in words.
    pub exit: String,
}

/// All of one task's.
#[derive(Default)]
pub(super) struct Background {
    table: Arc<Mutex<BTreeMap<CallId, BackgroundCommand>>>,
    jobs: Mutex<JoinSet<()>>,
}

struct BackgroundCommand {
    /// Later ones have larger numbers.
    number: u64,
    command: String,
    killer: KillHandle,
    unread: Vec<u8>,
    dropped: u64,
    state: CommandState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CommandState {
    Running,
    /// Ended; whether the agent has read or received that.
    Ended {
        exit: Exit,
        reported: bool,
    },
}

/// What there is to read of one.
pub(super) struct Unread {
    pub text: String,
    pub exit: Option<Exit>,
}

impl Shell {
    pub(super) async fn start_background(
        &self,
        call: CallId,
        command: &str,
        cwd: PathBuf,
        live: LiveOutput,
        guard: Option<RuleGuard>,
    ) -> Outcome {
        if self.background.running() >= MAX_BACKGROUND {
            return Outcome::failure(format!(
                "{MAX_BACKGROUND} background commands run already. End one with bash_kill first."
            ));
        }
        let spec = Command { background: true, ..Command::script(call.to_string(), command, cwd) };
        let collector = match Collector::new(self, call, live) {
            Ok(collector) => collector,
            Err(error) => return Outcome::error(format!("Its output cannot be kept: {error}.")),
        };
        let (running, note) = match self.start(spec).await {
            Ok(started) => started,
            Err(outcome) => return outcome,
        };
        self.background.watch((call, command), running, collector, guard, (self.clock)());
        let text = format!(
            "{}Started in the background as `{call}`. Read what it prints with bash_output, end it with \
             bash_kill.",
            note.unwrap_or_default()
        );
        let command = command.to_owned();
        let display = Some("started in the background".to_owned());
        Outcome { display, ..Outcome::ok(text) }.with(Fact::BackgroundStarted { call, command })
    }

    /// What a background command printed since the last look.
    pub(super) fn take_unread(&self, call: CallId) -> Option<Unread> {
        let mut table = self.background.lock();
        let entry = table.get_mut(&call)?;
        let mut text = output::readable(&std::mem::take(&mut entry.unread));
        if entry.dropped > 0 {
            let dropped = std::mem::take(&mut entry.dropped);
            text = format!("[… {dropped} bytes were not read in time and left out …]\n{text}");
        }
        let exit = match &mut entry.state {
            CommandState::Running => None,
            CommandState::Ended { exit, reported } => {
                *reported = true;
                Some(*exit)
            }
        };
        Some(Unread { text, exit })
    }

    /// Ends a background command; `false` if none has that name.
    pub(super) fn kill(&self, call: CallId) -> bool {
        let table = self.background.lock();
        let Some(entry) = table.get(&call) else { return false };
        entry.killer.kill(windlass_sandbox::KILL_GRACE);
        true
    }
}

impl Background {
    fn watch(
        &self,
        (call, command): (CallId, &str),
        running: Running,
        collector: Collector,
        guard: Option<RuleGuard>,
        at: jiff::Timestamp,
    ) {
        let mut entries = self.lock();
        forget_old(&mut entries);
        let entry = BackgroundCommand {
            number: entries.values().map(|entry| entry.number + 1).max().unwrap_or(0),
            command: command.to_owned(),
            killer: running.killer(),
            unread: Vec::new(),
            dropped: 0,
            state: CommandState::Running,
        };
        entries.insert(call, entry);
        drop(entries);
        let table = Arc::clone(&self.table);
        let mut jobs = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        while jobs.try_join_next().is_some() {}
        jobs.spawn(follow(table, call, running, collector, guard, at));
    }

    pub(super) fn exited(&self) -> Vec<BackgroundExit> {
        let mut exited = Vec::new();
        for (&call, entry) in self.lock().iter_mut() {
            if let CommandState::Ended { exit, reported } = &mut entry.state
                && !std::mem::replace(reported, true)
            {
                let exit = exit_words(*exit, None).unwrap_or_else(|| "exit code 0".to_owned());
                exited.push(BackgroundExit { call, command: one_line(&entry.command, 120), exit });
            }
        }
        exited
    }

    /// Those whose end nobody has read of, the running ones as ended in these words.
    pub(super) fn end_running(&self, end: &str) -> Vec<BackgroundExit> {
        let words = |state: CommandState| match state {
            CommandState::Running => Some(end.to_owned()),
            CommandState::Ended { reported: true, .. } => None,
            CommandState::Ended { exit, reported: false } => {
                Some(exit_words(exit, None).unwrap_or_else(|| "exit code 0".to_owned()))
            }
        };
        let table = self.lock();
        let exits = table.iter().filter_map(|(&call, entry)| {
            let command = one_line(&entry.command, 120);
            words(entry.state).map(|exit| BackgroundExit { call, command, exit })
        });
        exits.collect()
    }

    pub(super) fn kill_all(&self) {
        for entry in self.lock().values().filter(|entry| entry.state == CommandState::Running) {
            entry.killer.kill(windlass_sandbox::KILL_GRACE);
        }
    }

    /// Waits for the jobs that watch; the commands have been ended by then.
    pub(super) async fn settle(&self) {
        let mut jobs =
            std::mem::take(&mut *self.jobs.lock().unwrap_or_else(PoisonError::into_inner));
        while jobs.join_next().await.is_some() {}
    }

    fn running(&self) -> usize {
        self.lock().values().filter(|entry| entry.state == CommandState::Running).count()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<CallId, BackgroundCommand>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Keeps the newest of the ended commands that the agent knows to have ended.
fn forget_old(entries: &mut BTreeMap<CallId, BackgroundCommand>) {
    let over = |entry: &BackgroundCommand| {
        matches!(entry.state, CommandState::Ended { reported: true, .. })
    };
    let mut ended: Vec<u64> =
        entries.values().filter(|entry| over(entry)).map(|entry| entry.number).collect();
    ended.sort_unstable_by_key(|&number| std::cmp::Reverse(number));
    if let Some(&newest_forgotten) = ended.get(MAX_ENDED) {
        entries.retain(|_, entry| !over(entry) || entry.number > newest_forgotten);
    }
}

async fn follow(
    table: Arc<Mutex<BTreeMap<CallId, BackgroundCommand>>>,
    call: CallId,
    mut running: Running,
    mut collector: Collector,
    guard: Option<RuleGuard>,
    at: jiff::Timestamp,
) {
    let with = |change: &mut dyn FnMut(&mut BackgroundCommand)| {
        let mut table = table.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(entry) = table.get_mut(&call) {
            change(entry);
        }
    };
    loop {
        let chunk = tokio::select! {
            chunk = running.next() => chunk,
            () = collector.has_news() => {
                collector.show_news();
                continue;
            }
        };
        let Some(chunk) = chunk else { break };
        // A disk that takes no more costs the record, not the command.
        let _ = collector.take(&chunk);
        with(&mut |entry| {
            entry.unread.extend_from_slice(&chunk.bytes);
            let over = entry.unread.len().saturating_sub(MAX_UNREAD_BYTES);
            entry.dropped += over as u64;
            entry.unread.drain(..over);
        });
    }
    let ended = running.wait().await;
    let _ = collector.keep(at).await;
    let refusals = ended.refused.iter().map(|text| format!("[{text}]\n"));
    let put_back = guard.and_then(|guard| guard.put_back(call)).map(|note| format!("{note}\n"));
    let remarks: String = refusals.chain(put_back).collect();
    with(&mut |entry| {
        entry.unread.extend_from_slice(remarks.as_bytes());
        entry.state = CommandState::Ended { exit: ended.exit, reported: false };
    });
}
