//! What tools print: a bounded head in the database, the whole in a file for a while (AX-013…043).
//!
//! Invariants:
//! - A row of `spawn_logs` holds at most [`MAX_OUTPUT_SIZE`] bytes of text and a notice on top.
//! - Outputs are ephemeral: nothing that resumes a task reads them (AX-079).
//! - A file is reached by the id of its command, which is checked; never by a path that a caller gives.

mod clean;

use std::collections::HashMap;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Cursor, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use jiff::{SignedDuration, Timestamp};
use rusqlite::{Connection, OptionalExtension};
use windlass_core::id::TaskId;
use windlass_core::{string_enum, text};

use crate::error::Fault;
use crate::{Error, Level, Store, row};

pub use clean::CleanupReport;

/// Bytes of a stream that the database keeps (AX-028).
pub const MAX_OUTPUT_SIZE: usize = 30 * 1024;

/// Bytes of a stream that its file keeps; the rest is counted and dropped.
pub const HARD_CAP_BYTES: u64 = 64 * 1024 * 1024;

/// The largest version of a file that is kept for people who look at changes.
pub const MAX_CONTENT_BYTES: u64 = 1024 * 1024;

/// How long a file is kept, unless [`Options::keep_outputs`](crate::Options) says otherwise (AX-080).
pub const RETENTION: SignedDuration = SignedDuration::from_hours(7 * 24);

/// Ids of ours have 31 characters; other programs' may be a little longer.
const MAX_ID_BYTES: usize = 128;

string_enum! {
    /// Which of a command's two streams.
    Stream ("stream") {
        /// What it prints.
        Stdout = "stdout",
        /// What it prints as errors.
        Stderr = "stderr",
    }
}

/// Where an output comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The command: letters, digits, `_` and `-`.
    pub command_id: String,
    /// Which of its two streams.
    pub stream: Stream,
    /// The task it ran for.
    pub task: Option<TaskId>,
}

/// An output as the database keeps it (AX-027).
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct TruncatedOutput {
    /// The text, or its beginning and a notice.
    pub content: String,
    /// Whether it was cut.
    pub truncated: bool,
    /// Where the whole is, when it was cut.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub full_output_path: Option<PathBuf>,
    /// How many bytes were printed.
    pub original_size: u64,
}

/// The outputs of one data directory.
#[derive(Clone)]
pub struct Outputs {
    store: Store,
    dir: PathBuf,
}

impl Store {
    /// The outputs of this data directory.
    pub fn outputs(&self) -> Outputs {
        Outputs { store: self.clone(), dir: self.dir().outputs() }
    }
}

impl Outputs {
    /// Stores a whole output: its row, and its file when it is long (AX-038).
    pub async fn write(
        &self,
        origin: Origin,
        at: Timestamp,
        bytes: &[u8],
    ) -> Result<TruncatedOutput, Error> {
        let mut writer = self.writer(origin)?;
        writer.write(bytes)?;
        writer.finish(at).await
    }

    /// Begins an output that comes in pieces.
    pub fn writer(&self, origin: Origin) -> Result<OutputWriter, Error> {
        let path = self.path(&origin.command_id, origin.stream)?;
        let store = self.store.clone();
        Ok(OutputWriter { store, origin, path, head: Vec::new(), file: None, size: 0 })
    }

    /// Opens the whole of an output, by the id of its command (AX-086).
    pub fn open(&self, command_id: &str, stream: Stream) -> Result<OutputReader, Error> {
        let path = self.path(command_id, stream)?;
        let kept = self.get(command_id, stream)?.filter(|kept| !kept.truncated);
        let row = |kept: TruncatedOutput| {
            OutputReader(Source::Row(Cursor::new(kept.content.into_bytes())))
        };
        let kept = match kept {
            Some(kept) if kept.full_output_path.is_none() => return Ok(row(kept)),
            kept => kept,
        };
        match OpenOptions::new().read(true).custom_flags(NO_FOLLOW).open(&path) {
            Ok(file) => Ok(OutputReader(Source::File(file))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                // A file is removed before its row; the row is the next best.
                kept.map(row).ok_or_else(|| Error::UnknownOutput(command_id.to_owned()))
            }
            Err(error) => Err(Error::file(&path, error)),
        }
    }

    /// An output as the database keeps it, or will with the next append to its task.
    pub fn get(&self, command_id: &str, stream: Stream) -> Result<Option<TruncatedOutput>, Error> {
        let found: Option<(String, String)> = self.store.read(|tx| {
            Ok(tx
                .prepare_cached(
                    "SELECT content, meta FROM spawn_logs WHERE command_id = ?1 AND stream = ?2",
                )?
                .query_row((command_id, stream.as_str()), |row| Ok((row.get(0)?, row.get(1)?)))
                .optional()?)
        })?;
        let found = found.or_else(|| self.store.inner.finished_outputs.find(command_id, stream));
        let Some((content, meta)) = found else { return Ok(None) };
        let malformed = |_| Error::Malformed { table: "spawn_logs", value: meta.clone() };
        let meta: serde_json::Value = serde_json::from_str(&meta).map_err(malformed)?;
        Ok(Some(TruncatedOutput {
            content,
            truncated: meta["truncated"].as_bool().unwrap_or(false),
            full_output_path: meta["full_output_path"].as_str().map(PathBuf::from),
            original_size: meta["original_size"].as_u64().unwrap_or(0),
        }))
    }

    /// Keeps a version of a file by its hash. Kept again, it stays for as long again.
    pub fn keep_content(&self, hash: &str, content: &[u8]) -> Result<(), Error> {
        let path = self.content_path(hash)?;
        if content.len() as u64 > MAX_CONTENT_BYTES {
            return Ok(());
        }
        // Written beside and renamed, so that a version is whole or not there.
        let part = path.with_extension(format!("{}.part", std::process::id()));
        OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&part)
            .and_then(|mut file| file.write_all(content))
            .and_then(|()| fs::rename(&part, &path))
            .map_err(|error| Error::file(&path, error))
    }

    /// Whether a version of a file is kept.
    pub fn has_content(&self, hash: &str) -> bool {
        self.content_path(hash).is_ok_and(|path| path.exists())
    }

    /// A version of a file, where it is kept.
    pub fn content(&self, hash: &str) -> Result<Option<Vec<u8>>, Error> {
        let path = self.content_path(hash)?;
        match fs::read(&path) {
            Ok(content) => Ok(Some(content)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Error::file(&path, error)),
        }
    }

    fn content_path(&self, hash: &str) -> Result<PathBuf, Error> {
        match !hash.is_empty() && hash.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
            true => Ok(self.dir.join(format!("{hash}_content"))),
            false => Err(Error::BadOutputId(hash.to_owned())),
        }
    }

    fn path(&self, command_id: &str, stream: Stream) -> Result<PathBuf, Error> {
        let sane = (1..=MAX_ID_BYTES).contains(&command_id.len())
            && command_id
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
        match sane {
            true => Ok(self.dir.join(format!("{command_id}_{stream}.txt"))),
            false => Err(Error::BadOutputId(command_id.to_owned())),
        }
    }
}

const NO_FOLLOW: i32 = rustix::fs::OFlags::NOFOLLOW.bits() as i32;

/// An output that is being printed. Memory stays bounded however long it gets.
pub struct OutputWriter {
    store: Store,
    origin: Origin,
    path: PathBuf,
    /// The beginning, for the row.
    head: Vec<u8>,
    /// The whole, once it is too long for the row.
    file: Option<File>,
    size: u64,
}

impl OutputWriter {
    /// Adds the next piece.
    pub fn write(&mut self, piece: &[u8]) -> Result<(), Error> {
        let whole = self.head.len() as u64 == self.size;
        if whole && self.head.len() + piece.len() <= MAX_OUTPUT_SIZE {
            self.head.extend_from_slice(piece);
            self.size += piece.len() as u64;
            return Ok(());
        }
        self.spill()?;
        let room = MAX_OUTPUT_SIZE - self.head.len();
        if whole {
            self.head.extend_from_slice(&piece[..room.min(piece.len())]);
        }
        let left = HARD_CAP_BYTES.saturating_sub(self.size);
        let fits = usize::try_from(left).unwrap_or(usize::MAX).min(piece.len());
        self.size += piece.len() as u64;
        self.append_file(|file| file.write_all(&piece[..fits]))
    }

    /// How many bytes were added so far.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Ends the output and writes its row.
    pub async fn finish(self, at: Timestamp) -> Result<TruncatedOutput, Error> {
        let store = self.store.clone();
        let (row, output) = self.into_row(at)?;
        store.write(Level::Written, move |tx| row.insert(tx)).await?;
        Ok(output)
    }

    /// Ends both outputs of one command and writes their rows in one transaction.
    pub async fn finish_both(self, other: Self, at: Timestamp) -> Result<(), Error> {
        let store = self.store.clone();
        let ((row, _), (other_row, _)) = (self.into_row(at)?, other.into_row(at)?);
        store
            .write(Level::Written, move |tx| {
                row.insert(tx)?;
                other_row.insert(tx)
            })
            .await
    }

    /// Ends both outputs of one command and leaves their rows to the next append to `task`, so that they cost
    /// no transaction of their own. That append records the command's result. A process that dies before it
    /// has lost both.
    pub fn finish_with_next_append(
        self,
        other: Self,
        task: TaskId,
        at: Timestamp,
    ) -> Result<(), Error> {
        let store = self.store.clone();
        for writer in [self, other] {
            let (row, _) = writer.into_row(at)?;
            store.inner.finished_outputs.add(task, row);
        }
        Ok(())
    }

    /// Ends the file, if there is one, and gives the row to write.
    fn into_row(mut self, at: Timestamp) -> Result<(OutputRow, TruncatedOutput), Error> {
        let mut content = String::from_utf8_lossy(whole_characters(&self.head)).into_owned();
        if self.file.is_none() && content.len() <= MAX_OUTPUT_SIZE {
            // Nothing follows, so a broken character at the end is shown as such.
            content = String::from_utf8_lossy(&self.head).into_owned();
        }
        if content.len() > MAX_OUTPUT_SIZE {
            // Replacing what is not text made it longer.
            self.spill()?;
        }
        let truncated = self.file.is_some();
        if !truncated && std::str::from_utf8(&self.head).is_err() {
            // The row is text; what is not stays as it was beside it.
            self.spill()?;
        }
        if self.file.is_some() {
            self.end_file()?;
        }
        if truncated {
            content.truncate(text::prefix(&content, MAX_OUTPUT_SIZE).len());
            content.push_str(&self.notice());
        }
        let original_size = self.size;
        let full_output_path = self.file.is_some().then(|| self.path.clone());
        let output = TruncatedOutput { content, truncated, full_output_path, original_size };
        Ok((OutputRow::new(self.origin, &output, at), output))
    }

    fn notice(&self) -> String {
        let (size, path) = (self.size, self.path.display());
        let mut notice =
            format!("\n\n[Output truncated at 30KB. Full output ({size} bytes): {path}]");
        if size > HARD_CAP_BYTES {
            notice.push_str(&format!("\n[{}]", size_notice(size)));
        }
        notice
    }

    /// Opens the file and writes into it what came so far.
    fn spill(&mut self) -> Result<(), Error> {
        if self.file.is_some() {
            return Ok(());
        }
        if let Some(dir) = self.path.parent() {
            DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(dir)
                .map_err(|error| Error::file(dir, error))?;
        }
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .custom_flags(NO_FOLLOW)
            .open(&self.path)
            .map_err(|error| Error::file(&self.path, error))?;
        self.file = Some(file);
        let head = std::mem::take(&mut self.head);
        let written = self.append_file(|file| file.write_all(&head));
        self.head = head;
        written
    }

    fn end_file(&mut self) -> Result<(), Error> {
        let size = self.size;
        if size > HARD_CAP_BYTES {
            self.append_file(|file| write!(file, "\n[{}]\n", size_notice(size)))?;
        }
        Ok(())
    }

    fn append_file(
        &mut self,
        write: impl FnOnce(&mut File) -> io::Result<()>,
    ) -> Result<(), Error> {
        let Some(file) = &mut self.file else { return Ok(()) };
        write(file).map_err(|error| match error.kind() {
            io::ErrorKind::StorageFull => Error::Full { path: self.path.clone() },
            _ => Error::file(&self.path, error),
        })
    }
}

/// What the database keeps of an output.
#[derive(Clone)]
pub(crate) struct OutputRow {
    origin: Origin,
    content: String,
    meta: String,
    at: Timestamp,
}

impl OutputRow {
    fn new(origin: Origin, output: &TruncatedOutput, at: Timestamp) -> Self {
        let mut meta = serde_json::json!({
            "truncated": output.truncated,
            "original_size": output.original_size,
        });
        if let Some(path) = &output.full_output_path {
            meta["full_output_path"] = path.to_string_lossy().into();
        }
        if output.original_size > HARD_CAP_BYTES {
            meta["stored_size"] = HARD_CAP_BYTES.into();
        }
        Self { origin, content: output.content.clone(), meta: meta.to_string(), at }
    }

    pub(crate) fn insert(&self, tx: &Connection) -> Result<(), Fault> {
        let Origin { command_id, stream, task } = &self.origin;
        tx.prepare_cached(
            "INSERT OR REPLACE INTO spawn_logs (command_id, stream, task_id, content, meta, at)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        )?
        .execute((
            command_id,
            stream.as_str(),
            task.map(|task| task.to_string()),
            &self.content,
            &self.meta,
            row::instant(self.at),
        ))?;
        Ok(())
    }
}

/// Outputs of commands that have ended, until the append that records their results writes their rows.
#[derive(Default)]
pub(crate) struct FinishedOutputs {
    rows: Mutex<HashMap<TaskId, Vec<OutputRow>>>,
}

impl FinishedOutputs {
    fn add(&self, task: TaskId, row: OutputRow) {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner).entry(task).or_default().push(row);
    }

    /// Takes the rows that go with an append to `task`.
    pub(crate) fn take(&self, task: TaskId) -> Vec<OutputRow> {
        let mut rows = self.rows.lock().unwrap_or_else(PoisonError::into_inner);
        rows.remove(&task).unwrap_or_default()
    }

    /// Keeps rows whose append failed, before those that came meanwhile.
    pub(crate) fn put_back(&self, task: TaskId, kept: &[OutputRow]) {
        if kept.is_empty() {
            return;
        }
        let mut rows = self.rows.lock().unwrap_or_else(PoisonError::into_inner);
        rows.entry(task).or_default().splice(0..0, kept.iter().cloned());
    }

    fn find(&self, command_id: &str, stream: Stream) -> Option<(String, String)> {
        let rows = self.rows.lock().unwrap_or_else(PoisonError::into_inner);
        let is_wanted =
            |row: &&OutputRow| row.origin.command_id == command_id && row.origin.stream == stream;
        let row = rows.values().flatten().find(is_wanted)?;
        Some((row.content.clone(), row.meta.clone()))
    }
}

fn size_notice(size: u64) -> String {
    let mib = HARD_CAP_BYTES / (1024 * 1024);
    format!("Output over the limit: the first {mib} MiB of {size} bytes were stored")
}

/// The bytes without a character that is cut off at their end.
fn whole_characters(bytes: &[u8]) -> &[u8] {
    for back in 1..=bytes.len().min(3) {
        let from = bytes.len() - back;
        let needs = match bytes[from] {
            0b1000_0000..=0b1011_1111 => continue,
            0b1100_0000..=0b1101_1111 => 2,
            0b1110_0000..=0b1110_1111 => 3,
            0b1111_0000..=0b1111_0111 => 4,
            _ => 1,
        };
        return if needs > back { &bytes[..from] } else { bytes };
    }
    bytes
}

/// The whole of an output, or as much as was stored.
pub struct OutputReader(Source);

enum Source {
    File(File),
    Row(Cursor<Vec<u8>>),
}

impl OutputReader {
    /// How many bytes there are to read.
    pub fn len(&self) -> io::Result<u64> {
        match &self.0 {
            Source::File(file) => Ok(file.metadata()?.len()),
            Source::Row(content) => Ok(content.get_ref().len() as u64),
        }
    }

    /// Whether nothing was printed.
    pub fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }
}

impl Read for OutputReader {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match &mut self.0 {
            Source::File(file) => file.read(into),
            Source::Row(content) => content.read(into),
        }
    }
}
