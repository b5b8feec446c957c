//! `read`: a file's lines, numbered, or the picture that it is.

use std::io::{BufRead as _, BufReader, Read as _, Seek as _};
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use sha2::{Digest as _, Sha256};
use windlass_core::hash::hex;
use windlass_core::outcome::{Fact, Outcome, Recovery};
use windlass_core::policy::{Assessment, Class, Risk};
use windlass_core::tool_name;
use windlass_model::picture::{MAX_FILE_BYTES, PictureError, looks_like_picture};
use windlass_store::Pictures;

use super::{Builtin, path_error, prepare_read, scan_act};
use crate::output::{is_mostly_utf8, readable};
use crate::pictures::keep_picture;
use crate::tool::{Call, Category, Prepared, ToolContext};
use crate::workspace::{self, MAX_HASHED_BYTES, OpenFile, Root, Stop};

/// Lines shown where no limit is asked for.
const DEFAULT_LINES: usize = 2_000;
/// A line longer than this is cut: minified code and data would fill the context.
const MAX_LINE_BYTES: usize = 2_000;
/// Bytes of lines in one result, whatever limit is asked for: of more the model sees nothing anyway.
const MAX_SHOWN_BYTES: usize = 1 << 20;
/// A file whose first bytes hold a NUL is binary; as git judges it.
const SNIFFED_BYTES: usize = 8_000;
/// The beginning of a file by which a picture is known.
const MAGIC_BYTES: u64 = 32;

pub(super) struct Read;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// The file, relative to where you started (or under /skills).
    path: String,
    /// First line to show, counted from 1. Default: 1.
    #[schemars(range(min = 1))]
    offset: Option<u64>,
    /// How many lines to show. Default: 2000.
    #[schemars(range(min = 1))]
    limit: Option<u64>,
}

impl Builtin for Read {
    type Arguments = Arguments;
    const NAME: &'static str = tool_name::READ;
    const DESCRIPTION: &'static str = include_str!("descriptions/read.md");
    const CATEGORY: Category = Category::FileSystem;
    const MIN_CLASS: (Class, Risk) = (Class::Read, Risk::Low);

    fn prepare(
        context: ToolContext,
        _call: Call,
        arguments: Arguments,
    ) -> Result<Prepared, Outcome> {
        let usual = Assessment::of(Class::Read, format!("reads `{}`", arguments.path));
        let (workspace, path) = (Arc::clone(&context.workspace), arguments.path.clone());
        let act = scan_act(move |stop| read(&context, &arguments, stop));
        Ok(prepare_read(&workspace, &path, usual, Recovery::Rerun, act))
    }
}

fn read(context: &ToolContext, arguments: &Arguments, stop: &Stop) -> Outcome {
    let mut opened = match context.workspace.read(&arguments.path) {
        Ok(opened) => opened,
        Err(error) => return path_error(error),
    };
    match begins_like_picture(&mut opened) {
        Ok(true) => return picture(&context.pictures, opened),
        Ok(false) => {}
        Err(source) => return path_error(workspace::Error::Io { path: opened.path, source }),
    }
    if opened.size > MAX_HASHED_BYTES {
        return Outcome::failure(format!(
            "`{}` is too large to read: {} bytes, and at most {MAX_HASHED_BYTES} are read. Use grep \
             to find what you need in it.",
            opened.path, opened.size
        ));
    }
    let (path, place) = (opened.path.clone(), opened.place);
    let first = arguments.offset.unwrap_or(1);
    let limit =
        arguments.limit.map_or(DEFAULT_LINES, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
    match FileScan::of(opened, first, limit, stop) {
        Ok(seen) => {
            let outcome = seen.outcome(&path, first);
            // A file that was named but not shown has not been seen.
            if matches!(place, Root::Workspace | Root::Added(_))
                && !outcome.is_error()
                && seen.binary.is_none()
            {
                outcome.with(Fact::FileRead { path, hash: seen.hash })
            } else {
                outcome
            }
        }
        Err(source) => path_error(workspace::Error::Io { path, source }),
    }
}

/// Whether a file begins like a picture that can be shown. It is read from its beginning again.
fn begins_like_picture(opened: &mut OpenFile) -> std::io::Result<bool> {
    let mut head = Vec::new();
    opened.file.by_ref().take(MAGIC_BYTES).read_to_end(&mut head)?;
    opened.file.rewind()?;
    Ok(looks_like_picture(&head))
}

/// Shows a picture to a model that can see; one that cannot reads what it is.
fn picture(pictures: &Pictures, opened: OpenFile) -> Outcome {
    let (path, size) = (opened.path.clone(), opened.size);
    let bytes = match workspace::read_bounded(opened, MAX_FILE_BYTES) {
        Ok(bytes) => bytes,
        Err(workspace::Error::TooLarge { .. }) => {
            let why = PictureError::TooLarge { bytes: size };
            return Outcome::failure(format!("`{path}` {why}. Make a smaller copy first."));
        }
        Err(error) => return path_error(error),
    };
    match keep_picture(pictures, &bytes, &path) {
        Ok(picture) => {
            let text = format!("{picture} ({size} bytes).");
            let fingerprint = Some(format!("{text} {}", picture.hash));
            Outcome { pictures: vec![picture], fingerprint, ..Outcome::ok(text) }
        }
        Err(why) => Outcome::failure(format!("`{path}` {why}.")),
    }
}

/// What was seen of a file in one pass over all of it.
struct FileScan {
    hash: String,
    size: u64,
    lines: u64,
    /// The lines asked for, numbered.
    shown: String,
    shown_lines: u64,
    cut_lines: u64,
    binary: Option<&'static str>,
}

impl FileScan {
    fn of(opened: OpenFile, first: u64, limit: usize, stop: &Stop) -> std::io::Result<Self> {
        // A file that grows while it is read would have no end.
        let mut reader = BufReader::with_capacity(64 << 10, opened.file.take(opened.size));
        let mut seen = Self {
            hash: String::new(),
            size: 0,
            lines: 0,
            shown: String::new(),
            shown_lines: 0,
            cut_lines: 0,
            binary: kind_of(reader.fill_buf()?),
        };
        let mut hash = Sha256::new();
        let mut line = Vec::new();
        let mut at_line_start = true;
        loop {
            let chunk = reader.fill_buf()?;
            if chunk.is_empty() || stop.is_stopped() {
                break;
            }
            let end = chunk.iter().position(|&byte| byte == b'\n');
            let taken = end.map_or(chunk.len(), |end| end + 1);
            hash.update(&chunk[..taken]);
            if at_line_start {
                seen.lines += 1;
                line.clear();
            }
            // One byte more than is shown, so that a cut is noticed.
            let room = (MAX_LINE_BYTES + 1).saturating_sub(line.len());
            line.extend_from_slice(&chunk[..taken.min(room)]);
            seen.size += taken as u64;
            reader.consume(taken);
            at_line_start = end.is_some();
            if at_line_start {
                seen.show(&line, first, limit);
            }
        }
        if !at_line_start {
            seen.show(&line, first, limit);
        }
        seen.hash = hex(&hash.finalize());
        Ok(seen)
    }

    fn show(&mut self, line: &[u8], first: u64, limit: usize) {
        let full = self.shown_lines >= limit as u64 || self.shown.len() >= MAX_SHOWN_BYTES;
        if self.binary.is_some() || self.lines < first || full {
            return;
        }
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let text = readable(line);
        let cut = windlass_core::text::prefix(&text, MAX_LINE_BYTES);
        let mark = if line.len() > MAX_LINE_BYTES { "… [line cut]" } else { "" };
        self.cut_lines += u64::from(!mark.is_empty());
        self.shown_lines += 1;
        self.shown.push_str(&format!("{:>6}\t{cut}{mark}\n", self.lines));
    }

    fn outcome(&self, path: &str, first: u64) -> Outcome {
        let Self { size, lines, .. } = self;
        if let Some(kind) = self.binary {
            return Outcome::ok(format!(
                "`{path}` is {kind} ({size} bytes); its content is not shown."
            ));
        }
        if *size == 0 {
            return Outcome::ok(format!("`{path}` is empty."));
        }
        if first > *lines {
            return Outcome::failure(format!(
                "`{path}` has only {lines} lines; line {first} is past its end."
            ));
        }
        let mut text = self.shown.clone();
        let last = first + self.shown_lines - 1;
        if last < *lines {
            let next = last + 1;
            text.push_str(&format!(
                "\n[lines {first} to {last} of {lines}; read on with offset {next}]\n"
            ));
        }
        if self.cut_lines > 0 {
            text.push_str(&format!(
                "\n[lines longer than {MAX_LINE_BYTES} bytes were cut: {}]\n",
                self.cut_lines
            ));
        }
        Outcome::ok(text)
    }
}

/// What a file is by its first bytes, when it is not text.
fn kind_of(head: &[u8]) -> Option<&'static str> {
    const KINDS: [(&[u8], &str); 5] = [
        (b"%PDF-", "a PDF document"),
        (b"PK\x03\x04", "a ZIP archive or a document packed as one"),
        (b"\x1f\x8b", "gzip-compressed data"),
        (b"\x7fELF", "an ELF program or library"),
        (b"SQLite format 3\0", "a SQLite database"),
    ];
    let known = KINDS.iter().find(|(magic, _)| head.starts_with(magic)).map(|(_, kind)| *kind);
    let sniffed = &head[..head.len().min(SNIFFED_BYTES)];
    let is_binary = sniffed.contains(&0) || !is_mostly_utf8(sniffed);
    known.or_else(|| is_binary.then_some("a binary file"))
}
