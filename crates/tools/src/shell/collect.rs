//! Collecting what a command prints: both streams apart for people, together for the model.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Seek as _, Write as _};

use jiff::Timestamp;
use windlass_core::id::{CallId, TaskId};
use windlass_core::outcome::Truncation;
use windlass_core::secrets::RedactedStream;
use windlass_sandbox::{Chunk, Stream as From};
use windlass_store::outputs::{HARD_CAP_BYTES, Origin, OutputWriter, Stream};

use super::Shell;
use super::live_tail::LiveTail;
use crate::output;
use crate::tool::LiveOutput;
use crate::workspace::Workspace;

/// The output of one command while it comes in.
pub(super) struct Collector {
    call: CallId,
    stdout: OutputWriter,
    stderr: OutputWriter,
    interleaved: Interleaved,
    /// Both streams without keys, in the same order.
    clean: [RedactedStream; 2],
    tail: LiveTail,
}

impl Collector {
    pub(super) fn new(
        shell: &Shell,
        call: CallId,
        live: LiveOutput,
    ) -> Result<Self, windlass_store::Error> {
        let outputs = shell.store.outputs();
        let writer = |stream| {
            let task = Some(shell.task);
            outputs.writer(Origin { command_id: call.to_string(), stream, task })
        };
        let interleaved = Interleaved::new(shell.limits.shown_bytes, shell.store.dir().outputs());
        let secrets = shell.store.secrets().known();
        Ok(Self {
            call,
            stdout: writer(Stream::Stdout)?,
            stderr: writer(Stream::Stderr)?,
            interleaved,
            clean: [secrets.stream(), secrets.stream()],
            tail: LiveTail::new(live),
        })
    }

    pub(super) fn take(&mut self, chunk: &Chunk) -> Result<(), windlass_store::Error> {
        let [out, err] = &mut self.clean;
        let (clean, writer) = match chunk.stream {
            From::Out => (out, &mut self.stdout),
            From::Err => (err, &mut self.stderr),
        };
        let bytes = clean.push(&chunk.bytes);
        self.tail.take(&bytes);
        self.interleaved.take(&bytes);
        writer.write(&bytes)
    }

    /// Resolves when it is time to show what was printed last.
    pub(super) async fn has_news(&self) {
        self.tail.due().await;
    }

    /// Shows what was printed last to whoever watches.
    pub(super) fn show_news(&mut self) {
        self.tail.show();
    }

    /// Takes what waited because it could have been the beginning of a key.
    fn take_rest(&mut self) -> Result<(), windlass_store::Error> {
        let [out, err] = &mut self.clean;
        for (clean, writer) in [(out, &mut self.stdout), (err, &mut self.stderr)] {
            let rest = clean.finish();
            self.interleaved.take(&rest);
            writer.write(&rest)?;
        }
        Ok(())
    }

    /// Writes the rows that people read, for a command that no result of a call waits for.
    pub(super) async fn keep(mut self, at: Timestamp) -> Result<(), windlass_store::Error> {
        self.take_rest()?;
        self.stdout.finish_both(self.stderr, at).await
    }

    /// Gives the texts of the call's outcome. The rows that people read are written with its result.
    pub(super) fn finish(
        mut self,
        task: TaskId,
        at: Timestamp,
        limit_tokens: u64,
        workspace: &Workspace,
    ) -> Result<Printed, windlass_store::Error> {
        self.take_rest()?;
        let Self { call, stdout, stderr, interleaved, clean: _, tail: _ } = self;
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
    pub truncated: Option<Truncation>,
}

impl Printed {
    /// A text of ours in place of the output.
    pub(super) fn instead(text: String) -> Self {
        Self { display: text.clone(), text, has_controls: false, truncated: None }
    }

    /// Puts a line of ours before it.
    pub(super) fn with_note_before(self, note: &str) -> Self {
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
    /// How many lines have ended.
    lines: u64,
    directory: std::path::PathBuf,
    whole: Option<File>,
    broken: Option<io::Error>,
}

impl Interleaved {
    fn new(room: usize, directory: std::path::PathBuf) -> Self {
        let (head, tail) = (Vec::new(), VecDeque::new());
        Self { room, head, tail, size: 0, lines: 0, directory, whole: None, broken: None }
    }

    fn take(&mut self, bytes: &[u8]) {
        if self.size + bytes.len() as u64 > self.room as u64
            && let Err(error) = self.spill(bytes)
        {
            self.broken = Some(error);
        }
        self.size += bytes.len() as u64;
        self.lines += output::line_ends(bytes);
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
        let Self { head, mut tail, size, lines, whole, broken, .. } = self;
        if output::is_binary(&head) {
            return binary(call, &head, size, whole, workspace);
        }
        let (head, tail) = match whole {
            // The pieces meet, or leave something out, in the middle of a character.
            Some(_) => (without_begun_character(&head), without_rest(tail.make_contiguous())),
            None => (&head[..], &[][..]),
        };
        let (raw_head, raw_tail) = (String::from_utf8_lossy(head), String::from_utf8_lossy(tail));
        let (clean_head, clean_tail) =
            (output::neutralize(&raw_head), output::neutralize(&raw_tail));
        let has_controls = clean_head != raw_head || clean_tail != raw_tail;
        let Some(mut file) = whole else {
            let display = output::preview(&raw_head, &raw_head, size, lines);
            let (text, truncated) = output::fit(clean_head, call, limit_tokens, workspace);
            return Printed { text, display, has_controls, truncated };
        };
        let path = output::output_file(call, "txt", workspace);
        let kept = match broken {
            Some(error) => Err(error.to_string()),
            None => file
                .rewind()
                .map_err(|error| error.to_string())
                .and_then(|()| workspace.keep(call, &path, &mut file).map_err(|e| e.to_string())),
        };
        let display = output::preview(&raw_head, &raw_tail, size, lines);
        let (text, truncated) = output::cut_pieces(&output::Pieces {
            head: &clean_head,
            tail: &clean_tail,
            size,
            lines,
            limit_tokens,
            kept: kept.map(|()| workspace.layout().in_full(&path)),
            capped: size > HARD_CAP_BYTES,
        });
        Printed { text, display, has_controls, truncated }
    }
}

/// Output that is data: named, and kept whole in a file, because as text it would only fill the context.
fn binary(
    call: CallId,
    head: &[u8],
    size: u64,
    whole: Option<File>,
    workspace: &Workspace,
) -> Printed {
    let path = output::output_file(call, "bin", workspace);
    let saved = match whole {
        Some(mut file) => file
            .rewind()
            .map_err(|error| error.to_string())
            .and_then(|()| workspace.keep(call, &path, &mut file).map_err(|e| e.to_string())),
        None => workspace.keep(call, &path, &mut &head[..]).map_err(|error| error.to_string()),
    };
    let place = match saved {
        Ok(()) => format!("it is saved as {}", workspace.layout().in_full(&path)),
        Err(error) => format!("it could not be saved: {error}"),
    };
    Printed::instead(format!("[binary output of {size} bytes is not shown; {place}]\n"))
}

/// The bytes up to the last character that is whole.
fn without_begun_character(bytes: &[u8]) -> &[u8] {
    let begun = (1..=bytes.len().min(3)).find(|back| bytes[bytes.len() - back] >= 0xc0);
    let expected = |first: u8| match first {
        0xf0.. => 4,
        0xe0.. => 3,
        _ => 2,
    };
    match begun {
        Some(back) if expected(bytes[bytes.len() - back]) > back => &bytes[..bytes.len() - back],
        _ => bytes,
    }
}

/// The bytes from the first character that is whole.
fn without_rest(bytes: &[u8]) -> &[u8] {
    let rest = bytes.iter().take(3).take_while(|byte| (0x80..0xc0).contains(*byte)).count();
    &bytes[rest..]
}

/// A file that vanishes with its last descriptor.
fn nameless(directory: &std::path::Path) -> io::Result<File> {
    use rustix::fs::{Mode, OFlags};
    std::fs::create_dir_all(directory)?;
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    let file = rustix::fs::open(directory, flags, Mode::from_raw_mode(0o600))?;
    Ok(File::from(file))
}
