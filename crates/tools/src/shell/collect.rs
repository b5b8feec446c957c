//! Collecting what a command prints: both streams apart for people, together for the model.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Seek as _, Write as _};

use jiff::Timestamp;
use windlass_core::id::{CallId, TaskId};
use windlass_core::outcome::Truncated;
use windlass_sandbox::{Chunk, Stream as From};
use windlass_store::outputs::{HARD_CAP_BYTES, Origin, OutputWriter, Stream};

use super::Shell;
use crate::output;
use crate::workspace::{SCRATCH_DIRECTORY, Workspace};

/// The output of one command while it comes in.
pub(super) struct Collector {
    call: CallId,
    stdout: OutputWriter,
    stderr: OutputWriter,
    interleaved: Interleaved,
}

impl Collector {
    pub(super) fn new(shell: &Shell, call: CallId) -> Result<Self, windlass_store::Error> {
        let outputs = shell.store.outputs();
        let writer = |stream| {
            let task = Some(shell.task);
            outputs.writer(Origin { command_id: call.to_string(), stream, task })
        };
        let interleaved = Interleaved::new(shell.limits.shown_bytes, shell.store.dir().outputs());
        Ok(Self {
            call,
            stdout: writer(Stream::Stdout)?,
            stderr: writer(Stream::Stderr)?,
            interleaved,
        })
    }

    pub(super) fn take(&mut self, chunk: &Chunk) -> Result<(), windlass_store::Error> {
        self.interleaved.take(&chunk.bytes);
        match chunk.stream {
            From::Out => self.stdout.write(&chunk.bytes),
            From::Err => self.stderr.write(&chunk.bytes),
        }
    }

    /// Writes the rows that people read, for a command that no result of a call waits for.
    pub(super) async fn keep(self, at: Timestamp) -> Result<(), windlass_store::Error> {
        self.stdout.finish_both(self.stderr, at).await
    }

    /// Gives the texts of the call's outcome. The rows that people read are written with its result.
    pub(super) fn finish(
        self,
        task: TaskId,
        at: Timestamp,
        limit_tokens: u64,
        workspace: &Workspace,
    ) -> Result<Printed, windlass_store::Error> {
        let Self { call, stdout, stderr, interleaved } = self;
        stdout.finish_with_next_append(stderr, task, at)?;
        Ok(interleaved.printed(call, limit_tokens, workspace))
    }
}

/// What a command printed, as an outcome carries it.
pub(super) struct Printed {
    /// For the model: harmless, and cut to size.
    pub text: String,
    /// For people: as it was printed, and cut shorter; the whole is in the stored outputs.
    pub display: String,
    /// Whether it has control characters, which only people are shown.
    pub has_controls: bool,
    /// Where the whole is, when `text` was cut.
    pub truncated: Option<Truncated>,
}

impl Printed {
    /// A text of ours in place of the output.
    pub(super) fn instead(text: String) -> Self {
        Self { display: text.clone(), text, has_controls: false, truncated: None }
    }

    /// Puts a line of ours before it.
    pub(super) fn after(self, note: &str) -> Self {
        let put = |text: String| format!("{note}{text}");
        Self { text: put(self.text), display: put(self.display), ..self }
    }
}

/// Both streams as they were written: a head and a tail in memory, the whole in a nameless file once
/// it is longer than both.
struct Interleaved {
    room: usize,
    head: Vec<u8>,
    tail: VecDeque<u8>,
    size: u64,
    directory: std::path::PathBuf,
    whole: Option<File>,
    broken: Option<io::Error>,
}

impl Interleaved {
    fn new(room: usize, directory: std::path::PathBuf) -> Self {
        let (head, tail) = (Vec::new(), VecDeque::new());
        Self { room, head, tail, size: 0, directory, whole: None, broken: None }
    }

    fn take(&mut self, bytes: &[u8]) {
        if self.size + bytes.len() as u64 > self.room as u64
            && let Err(error) = self.spill(bytes)
        {
            self.broken = Some(error);
        }
        self.size += bytes.len() as u64;
        let fits = self.room.saturating_sub(self.head.len()).min(bytes.len());
        let (first, rest) = bytes.split_at(fits);
        self.head.extend_from_slice(first);
        self.tail.extend(rest);
        let over = self.tail.len().saturating_sub(self.room);
        self.tail.drain(..over);
    }

    /// Adds to the file that holds the whole, beginning with what is in memory.
    fn spill(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.broken.is_some() || self.size > HARD_CAP_BYTES {
            return Ok(());
        }
        let file = match &mut self.whole {
            Some(file) => file,
            whole @ None => {
                let mut file = nameless(&self.directory)?;
                file.write_all(&self.head)?;
                whole.insert(file)
            }
        };
        file.write_all(bytes)
    }

    fn printed(self, call: CallId, limit_tokens: u64, workspace: &Workspace) -> Printed {
        let Self { head, mut tail, size, whole, broken, .. } = self;
        let tail = tail.make_contiguous();
        let (raw_head, raw_tail) = (String::from_utf8_lossy(&head), String::from_utf8_lossy(tail));
        let (clean_head, clean_tail) =
            (output::neutralize(&raw_head), output::neutralize(&raw_tail));
        let has_controls = clean_head != raw_head || clean_tail != raw_tail;
        let Some(mut file) = whole else {
            let display = output::preview(&raw_head, &raw_head, size);
            let (text, truncated) = output::fit(clean_head, call, limit_tokens, workspace);
            return Printed { text, display, has_controls, truncated };
        };
        let path = format!("{SCRATCH_DIRECTORY}/tool-output-{call}.txt");
        let kept = match broken {
            Some(error) => Err(error.to_string()),
            None => file
                .rewind()
                .map_err(|error| error.to_string())
                .and_then(|()| workspace.keep(call, &path, &mut file).map_err(|e| e.to_string())),
        };
        let display = output::preview(&raw_head, &raw_tail, size);
        let (text, truncated) = output::cut_pieces(&output::Pieces {
            head: &clean_head,
            tail: &clean_tail,
            size,
            limit_tokens,
            kept: kept.map(|()| format!("/workspace/{path}")),
            capped: size > HARD_CAP_BYTES,
        });
        Printed { text, display, has_controls, truncated }
    }
}

/// A file that vanishes with its last descriptor.
fn nameless(directory: &std::path::Path) -> io::Result<File> {
    use rustix::fs::{Mode, OFlags};
    std::fs::create_dir_all(directory)?;
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    let file = rustix::fs::open(directory, flags, Mode::from_raw_mode(0o600))?;
    Ok(File::from(file))
}
