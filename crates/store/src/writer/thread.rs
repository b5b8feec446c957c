//! The writer's thread: takes what is queued, commits it as one transaction, tells the callers, and in
//! between looks for other processes' commits and copies the WAL into the database.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

use rusqlite::Connection;

use super::queue::Queue;
use super::{CommitHook, CommitPoint, Level, Message, Phase, Work};
use crate::Error;
use crate::changes::Ticks;

/// Work in one transaction; bounds how long another process waits for the write lock.
const BATCH: usize = 512;

/// How often other processes' commits are looked for, while somebody listens (§15.4).
const POLL: Duration = Duration::from_millis(100);

/// How long work that nobody waits for may wait for company. What goes along comes within a millisecond as a
/// rule, and each transaction less is several pages less.
const COMPANY: Duration = Duration::from_millis(20);

/// Frames in the WAL before they are copied into the database. SQLite's own default; a test that
/// cuts the WAL stays far below it.
const CHECKPOINT_FRAMES: u64 = 1000;

/// The WAL file shrinks to this after a checkpoint.
const WAL_KEEP_BYTES: i64 = 64 * 1024 * 1024;

const WAL_HEADER_BYTES: u64 = 32;
const FRAME_HEADER_BYTES: u64 = 24;

pub(super) struct Thread {
    connection: Connection,
    path: PathBuf,
    messages: Queue<Message>,
    ticks: Ticks,
    hook: Option<CommitHook>,
    level: Level,
    /// Transactions committed.
    number: u64,
    /// Frames in the WAL after the last commit, told by SQLite.
    frames: Arc<AtomicU64>,
    frame_bytes: u64,
    synced_frames: u64,
    data_version: i64,
    looked: Instant,
    /// Work that nobody waits for, and until when it waits for company.
    along: Vec<Box<dyn Work>>,
    along_until: Instant,
}

impl Thread {
    pub(super) fn prepare(
        mut connection: Connection,
        path: PathBuf,
        messages: Queue<Message>,
        ticks: Ticks,
        hook: Option<CommitHook>,
    ) -> rusqlite::Result<Self> {
        let page: u32 = connection.query_row("PRAGMA page_size", [], |row| row.get(0))?;
        connection.pragma_update(None, "synchronous", "NORMAL")?;
        connection.pragma_update(None, "journal_size_limit", WAL_KEEP_BYTES)?;
        let frames = Arc::new(AtomicU64::new(0));
        let told = frames.clone();
        // This replaces SQLite's own checkpoint on commit; `checkpoint` does it after the callers
        // have heard.
        connection.wal_hook(Some(move |_: &mut rusqlite::hooks::Wal, pages: i32| {
            told.store(u64::try_from(pages).unwrap_or(0), Ordering::Relaxed);
            Ok(())
        }))?;
        let data_version = data_version(&connection)?;
        let found = wal_frames(&connection)?;
        frames.store(found, Ordering::Relaxed);
        // What an ended process left in the WAL may be unsynced. Whoever counts needs to know, so it
        // is made true; without a hook the next synced commit does the same.
        let synced_frames = match hook {
            Some(_) if sync_wal(&path).is_ok() => found,
            _ => 0,
        };
        Ok(Self {
            connection,
            path,
            messages,
            ticks,
            hook,
            level: Level::Written,
            number: 0,
            frames,
            frame_bytes: u64::from(page) + FRAME_HEADER_BYTES,
            synced_frames,
            data_version,
            looked: Instant::now(),
            along: Vec::new(),
            along_until: Instant::now(),
        })
    }

    pub(super) fn serve(mut self) {
        while let Some(mut batch) = self.next() {
            while batch.len() < BATCH {
                match self.messages.try_next() {
                    Some(Message::Work(work) | Message::Along(work)) => batch.push(work),
                    Some(Message::Listen) => {}
                    None => break,
                }
            }
            self.commit(batch);
            self.checkpoint();
        }
    }

    /// The next work; looks for other processes' commits while waiting, if somebody listens.
    fn next(&mut self) -> Option<Vec<Box<dyn Work>>> {
        loop {
            let look = self.ticks.must_poll().then(|| self.looked + POLL);
            if look.is_some_and(|look| Instant::now() >= look) {
                // Also when the queue never runs empty.
                self.look();
                continue;
            }
            let leave = (!self.along.is_empty()).then_some(self.along_until);
            match self.messages.next(look.into_iter().chain(leave).min()) {
                Ok(Message::Work(work)) => self.along.push(work),
                Ok(Message::Along(work)) => {
                    if self.along.is_empty() {
                        self.along_until = Instant::now() + COMPANY;
                    }
                    self.along.push(work);
                    if self.along.len() < BATCH {
                        continue;
                    }
                }
                Ok(Message::Listen) => {
                    self.look();
                    continue;
                }
                Err(RecvTimeoutError::Disconnected) if self.along.is_empty() => return None,
                Err(RecvTimeoutError::Disconnected) => {}
                Err(RecvTimeoutError::Timeout) => {
                    if leave.is_none_or(|leave| Instant::now() < leave) {
                        continue;
                    }
                }
            }
            return Some(std::mem::take(&mut self.along));
        }
    }

    /// Ticks when another process has committed since the last look.
    fn look(&mut self) {
        self.looked = Instant::now();
        // A failure shows when the next read or write meets it.
        let Ok(version) = data_version(&self.connection) else { return };
        if version != self.data_version {
            self.data_version = version;
            self.ticks.changed_elsewhere();
        }
    }

    fn commit(&mut self, mut batch: Vec<Box<dyn Work>>) {
        let outcome = self.transact(&mut batch);
        if outcome.is_err() && !self.connection.is_autocommit() {
            // Nothing can be done about a rollback that fails; the next BEGIN says so.
            let _ = self.connection.execute_batch("ROLLBACK");
        }
        if let Ok(true) = outcome {
            self.ticks.committed();
        }
        let outcome = outcome.map(|_| ());
        for work in batch {
            work.done(outcome.clone());
        }
    }

    /// Runs a batch and commits it; tells whether anything changed.
    fn transact(&mut self, batch: &mut [Box<dyn Work>]) -> Result<bool, Error> {
        let level = batch.iter().map(|work| work.level()).max().unwrap_or(Level::Written);
        self.set_level(level)?;
        let before = self.connection.total_changes();
        self.execute("BEGIN IMMEDIATE")?;
        if let [work] = batch {
            // Undone alone by undoing all: the usual case needs no savepoint, which copies pages.
            match work.run(&self.connection, &self.path) {
                Ok(()) => {}
                Err(error) if error.is_storage() => return Err(error),
                Err(_) => {
                    self.execute("ROLLBACK")?;
                    return Ok(false);
                }
            }
        } else {
            self.run_each(batch)?;
        }
        if self.connection.total_changes() == before {
            self.execute("ROLLBACK")?;
            if level == Level::Synced {
                self.sync()?;
            }
            return Ok(false);
        }
        self.number += 1;
        self.tell(Phase::Before, level);
        let frames_before = self.frames.load(Ordering::Relaxed);
        self.execute("COMMIT")?;
        let frames = self.frames.load(Ordering::Relaxed);
        if level == Level::Synced {
            self.synced_frames = frames;
        } else if frames < frames_before {
            // The WAL began anew: nothing in it is synced.
            self.synced_frames = 0;
        }
        self.tell(Phase::After, level);
        Ok(true)
    }

    /// Runs several, so that one which fails for a reason of its own takes nothing else with it.
    fn run_each(&self, batch: &mut [Box<dyn Work>]) -> Result<(), Error> {
        for work in batch {
            self.execute("SAVEPOINT work")?;
            match work.run(&self.connection, &self.path) {
                Ok(()) => {}
                Err(error) if error.is_storage() => return Err(error),
                Err(_) => self.execute("ROLLBACK TO work")?,
            }
            self.execute("RELEASE work")?;
        }
        Ok(())
    }

    /// Makes synced what was only written: SQLite syncs nothing for a transaction without changes.
    fn sync(&mut self) -> Result<(), Error> {
        let frames = self.frames.load(Ordering::Relaxed);
        if frames > self.synced_frames {
            sync_wal(&self.path).map_err(|source| Error::file(&self.path, source))?;
            self.synced_frames = frames;
        }
        Ok(())
    }

    fn set_level(&mut self, level: Level) -> Result<(), Error> {
        if level != self.level {
            let value = match level {
                Level::Written => "NORMAL",
                Level::Synced => "FULL",
            };
            self.connection
                .pragma_update(None, "synchronous", value)
                .map_err(|error| Error::sqlite(&self.path, error))?;
            self.level = level;
        }
        Ok(())
    }

    fn tell(&self, phase: Phase, level: Level) {
        if let Some(hook) = &self.hook {
            hook(CommitPoint {
                number: self.number,
                phase,
                level,
                wal_bytes: self.bytes(self.frames.load(Ordering::Relaxed)),
                synced_bytes: self.bytes(self.synced_frames),
            });
        }
    }

    fn bytes(&self, frames: u64) -> u64 {
        WAL_HEADER_BYTES + frames * self.frame_bytes
    }

    fn checkpoint(&mut self) {
        let frames = self.frames.load(Ordering::Relaxed);
        if frames < CHECKPOINT_FRAMES {
            return;
        }
        // Passive: it copies what it can without waiting for readers. What it cannot, stays in the
        // WAL for the next time.
        let done = self.connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()));
        if done.is_ok() {
            self.synced_frames = frames;
        }
    }

    /// One of the few statements around all work; kept prepared.
    fn execute(&self, sql: &'static str) -> Result<(), Error> {
        let done =
            self.connection.prepare_cached(sql).and_then(|mut statement| statement.execute([]));
        done.map(drop).map_err(|error| Error::sqlite(&self.path, error))
    }
}

/// How many frames of the WAL hold commits.
fn wal_frames(connection: &Connection) -> rusqlite::Result<u64> {
    connection.query_row("PRAGMA wal_checkpoint(NOOP)", [], |row| {
        row.get::<_, i64>(1).map(|frames| u64::try_from(frames).unwrap_or(0))
    })
}

fn sync_wal(database: &Path) -> std::io::Result<()> {
    let mut wal = database.as_os_str().to_owned();
    wal.push("-wal");
    match std::fs::File::open(PathBuf::from(wal)) {
        Ok(file) => file.sync_data(),
        // No WAL: everything is in the database.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

fn data_version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.query_row("PRAGMA data_version", [], |row| row.get(0))
}
