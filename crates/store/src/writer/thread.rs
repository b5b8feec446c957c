//! The writer's thread: takes what is queued, commits it as one transaction, answers the callers, and in
//! between looks for other processes' commits and copies the WAL into the database.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use rusqlite::Connection;

use super::{CommitHook, CommitPhase, CommitPoint, Level, WriterJob, WriterMessage};
use crate::changes::ChangeCounters;
use crate::{Error, SCHEMA_VERSION};

/// Work in one transaction; bounds how long another process waits for the write lock.
const BATCH: usize = 512;

/// How often other processes' commits are looked for, while somebody listens (§15.4).
const POLL: Duration = Duration::from_millis(100);

/// The same, while somebody watches.
const FAST_POLL: Duration = Duration::from_millis(10);

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
    messages: Receiver<WriterMessage>,
    counters: ChangeCounters,
    hook: Option<CommitHook>,
    level: Level,
    /// How many transactions were committed.
    commits: u64,
    /// Frames in the WAL after the last commit, as SQLite reports them.
    frames: Arc<AtomicU64>,
    frame_bytes: u64,
    synced_frames: u64,
    data_version: i64,
    polled_at: Instant,
}

impl Thread {
    pub(super) fn prepare(
        mut connection: Connection,
        path: PathBuf,
        messages: Receiver<WriterMessage>,
        counters: ChangeCounters,
        hook: Option<CommitHook>,
    ) -> rusqlite::Result<Self> {
        let page: u32 = connection.query_row("PRAGMA page_size", [], |row| row.get(0))?;
        connection.pragma_update(None, "synchronous", "NORMAL")?;
        connection.pragma_update(None, "journal_size_limit", WAL_KEEP_BYTES)?;
        let frames = Arc::new(AtomicU64::new(0));
        let reported = frames.clone();
        // This replaces SQLite's own checkpoint on commit; `checkpoint` does it after the callers
        // have their answers.
        connection.wal_hook(Some(move |_: &mut rusqlite::hooks::Wal, pages: i32| {
            reported.store(u64::try_from(pages).unwrap_or(0), Ordering::Relaxed);
            Ok(())
        }))?;
        let data_version = data_version(&connection)?;
        let found = wal_frames(&connection)?;
        frames.store(found, Ordering::Relaxed);
        // What an ended process left in the WAL may be unsynced. A hook needs the true number of synced frames, so
        // the WAL is synced now; without a hook the next synced commit does the same.
        let synced_frames = match hook {
            Some(_) if sync_wal(&path).is_ok() => found,
            _ => 0,
        };
        Ok(Self {
            connection,
            path,
            messages,
            counters,
            hook,
            level: Level::Written,
            commits: 0,
            frames,
            frame_bytes: u64::from(page) + FRAME_HEADER_BYTES,
            synced_frames,
            data_version,
            polled_at: Instant::now(),
        })
    }

    pub(super) fn serve(mut self) {
        while let Some(first) = self.next() {
            let mut batch = vec![first];
            let mut compact = None;
            while batch.len() < BATCH {
                match self.messages.try_recv() {
                    Ok(WriterMessage::Work(work)) => batch.push(work),
                    Ok(WriterMessage::Listen) => {}
                    Ok(WriterMessage::Compact(reply)) => {
                        compact = Some(reply);
                        break;
                    }
                    Err(_) => break,
                }
            }
            self.commit(batch);
            if let Some(reply) = compact {
                let _ = reply.send(self.compact());
            }
            self.checkpoint();
        }
    }

    /// The next work; `None` when the store was closed. Looks for other processes' commits while it waits.
    fn next(&mut self) -> Option<Box<dyn WriterJob>> {
        loop {
            let message = match self.counters.has_listeners() {
                true => {
                    let poll = if self.counters.is_watched() { FAST_POLL } else { POLL };
                    let wait = poll.saturating_sub(self.polled_at.elapsed());
                    if wait.is_zero() {
                        // Also when the queue never runs empty.
                        self.poll();
                        continue;
                    }
                    self.messages.recv_timeout(wait)
                }
                false => self.messages.recv().map_err(RecvTimeoutError::from),
            };
            match message {
                Ok(WriterMessage::Work(work)) => return Some(work),
                Ok(WriterMessage::Listen) => self.poll(),
                Ok(WriterMessage::Compact(reply)) => {
                    let _ = reply.send(self.compact());
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return None,
            }
        }
    }

    /// Counts a change when another process has committed since the last poll.
    fn poll(&mut self) {
        self.polled_at = Instant::now();
        // A failure shows when the next read or write meets it.
        let Ok(version) = data_version(&self.connection) else { return };
        if version != self.data_version {
            self.data_version = version;
            self.counters.count_foreign_commit();
        }
    }

    fn commit(&mut self, mut batch: Vec<Box<dyn WriterJob>>) {
        let outcome = self.transact(&mut batch);
        if outcome.is_err() && !self.connection.is_autocommit() {
            // Nothing can be done about a rollback that fails; the next BEGIN says so.
            let _ = self.connection.execute_batch("ROLLBACK");
        }
        if let Ok(true) = outcome {
            self.counters.count_commit();
        }
        let outcome = outcome.map(|_| ());
        for work in batch {
            work.report(outcome.clone());
        }
    }

    /// Another process may have moved the data to a schema that this program does not know. Nothing is written to it.
    fn check_version(&self) -> Result<(), Error> {
        let version = || -> rusqlite::Result<u32> {
            let mut statement = self.connection.prepare_cached("PRAGMA user_version")?;
            statement.query_row([], |row| row.get(0))
        };
        let found = version().map_err(|error| Error::sqlite(&self.path, error))?;
        match found > SCHEMA_VERSION {
            true => Err(Error::Newer { path: self.path.clone(), found, known: SCHEMA_VERSION }),
            false => Ok(()),
        }
    }

    /// Runs a batch and commits it; returns whether anything changed.
    fn transact(&mut self, batch: &mut [Box<dyn WriterJob>]) -> Result<bool, Error> {
        let level = batch.iter().map(|work| work.level()).max().unwrap_or(Level::Written);
        self.set_level(level)?;
        let before = self.connection.total_changes();
        self.execute("BEGIN IMMEDIATE")?;
        self.check_version()?;
        if let [work] = batch {
            // With one piece of work, ROLLBACK undoes just that. So the usual case needs no savepoint, which copies
            // pages.
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
        self.commits += 1;
        self.call_hook(CommitPhase::Before, level);
        let frames_before = self.frames.load(Ordering::Relaxed);
        self.execute("COMMIT")?;
        let frames = self.frames.load(Ordering::Relaxed);
        if level == Level::Synced {
            self.synced_frames = frames;
        } else if frames < frames_before {
            // The WAL was restarted: nothing in it is synced.
            self.synced_frames = 0;
        }
        self.call_hook(CommitPhase::After, level);
        Ok(true)
    }

    /// Runs several, so that one which fails for a reason of its own does not undo the others.
    fn run_each(&self, batch: &mut [Box<dyn WriterJob>]) -> Result<(), Error> {
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

    /// Syncs what was only written: SQLite syncs nothing for a transaction without changes.
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

    fn call_hook(&self, phase: CommitPhase, level: Level) {
        if let Some(hook) = &self.hook {
            hook(CommitPoint {
                number: self.commits,
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
        // On a disk that is nearly full it would take the last space, and fail.
        if frames < CHECKPOINT_FRAMES || free_bytes(&self.path) < self.bytes(frames) {
            return;
        }
        // Passive: it copies what it can without waiting for readers. What it cannot, stays in the
        // WAL for the next time.
        let done = self.connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()));
        if done.is_ok() {
            self.synced_frames = frames;
        }
    }

    /// Gives free pages back to the disk. A database from before that was possible is rewritten once.
    fn compact(&mut self) -> Result<(), Error> {
        let failed = |error| Error::sqlite(&self.path, error);
        let mode: i64 = self
            .connection
            .query_row("PRAGMA auto_vacuum", [], |row| row.get(0))
            .map_err(failed)?;
        match mode {
            0 => self.connection.execute_batch("PRAGMA auto_vacuum = INCREMENTAL; VACUUM"),
            // Each step frees a page.
            _ => self.connection.prepare("PRAGMA incremental_vacuum").and_then(|mut vacuum| {
                let mut steps = vacuum.query([])?;
                while steps.next()?.is_some() {}
                Ok(())
            }),
        }
        .map_err(failed)?;
        // Waits for readers; where one does not end, a later checkpoint does the rest.
        let _ = self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
        self.frames.store(wal_frames(&self.connection).map_err(failed)?, Ordering::Relaxed);
        self.synced_frames = 0;
        Ok(())
    }

    /// Runs a transaction statement; it stays prepared.
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

fn free_bytes(database: &Path) -> u64 {
    let disk = database.parent().and_then(|dir| rustix::fs::statvfs(dir).ok());
    disk.map_or(u64::MAX, |disk| disk.f_bavail.saturating_mul(disk.f_frsize))
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
