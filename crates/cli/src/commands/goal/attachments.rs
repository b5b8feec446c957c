//! What is attached to a goal: what is piped in, and the files and pictures that its text names.

use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::FileType;
use windlass_coordinator::pictures::{MAX_FILE_BYTES, is_named_like_picture, looks_like_picture};
use windlass_core::model_text::neutralize;
use windlass_core::shown::shown_line;
use windlass_skills::regular;
use windlass_term::numbers;

use crate::failure::Failure;
use crate::show::note;

/// How much is attached to a goal, of piped input and of each file: about 64,000 tokens.
const MAX_ATTACHED_BYTES: u64 = 256 * 1024;

/// Files that one goal can have attached.
const MAX_FILES: usize = 20;

/// How long an open pipe may say nothing before the goal is taken without it. Programs that start others often
/// leave one open.
const PIPE_PATIENCE: Timespec = Timespec { tv_sec: 3, tv_nsec: 0 };

/// What a model reads of something that is attached.
const ATTACHED: &str = include_str!("../../prompts/attached.md");

/// A text that goes with a goal.
#[derive(Debug)]
pub(super) struct Attachment {
    name: String,
    content: String,
    /// Whether only the beginning is here.
    is_cut: bool,
}

impl Attachment {
    /// What the person should know where it is not whole.
    pub fn cut_notice(&self) -> Option<String> {
        let (most, name) = (MAX_ATTACHED_BYTES / 1024, shown_line(&self.name));
        self.is_cut.then(|| format!("only the first {most} KiB of {name} are attached"))
    }

    /// What people read of it: they have it themselves.
    pub fn for_people(&self) -> String {
        let lines = numbers::plural(self.content.lines().count(), "line");
        format!("attached {}, {lines}", shown_line(&self.name))
    }

    /// The text as a model reads it, marked as data.
    pub fn for_model(&self) -> String {
        let cut = match self.is_cut {
            true => format!(" Only its first {} KiB are here.", MAX_ATTACHED_BYTES / 1024),
            false => String::new(),
        };
        // The fence is longer than any in the content, so the content cannot end it.
        let longest = self.content.split(|char| char != '`').map(str::len).max().unwrap_or(0);
        let fence = "`".repeat((longest + 1).max(3));
        let values = [
            ("{{name}}", self.name.as_str()),
            ("{{cut}}", &cut),
            ("{{fence}}", &fence),
            ("{{content}}", self.content.trim_end_matches('\n')),
        ];
        let fill = |text: String, (name, value): (&str, &str)| text.replacen(name, value, 1);
        // The second fence is after the content, which is inserted last.
        let (before, after) =
            ATTACHED.trim_end().split_once("{{content}}").unwrap_or((ATTACHED, ""));
        let before = values[..3].iter().copied().fold(before.to_owned(), fill);
        format!("{before}{}{}", values[3].1, after.replacen("{{fence}}", &fence, 1))
    }
}

/// The name of what is piped in.
pub(super) const STDIN: &str = "standard input";

/// What is piped in beside a goal.
pub(super) enum PipedInput {
    Text(Attachment),
    Picture(Vec<u8>),
}

/// What is piped in beside a goal; none where standard input is a terminal, closed or silent.
pub(super) fn piped_input() -> Result<Option<PipedInput>, Failure> {
    let stdin = io::stdin();
    let Ok(stat) = rustix::fs::fstat(&stdin) else { return Ok(None) };
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => {}
        FileType::Fifo | FileType::Socket => {
            let mut polled = [PollFd::new(&stdin, PollFlags::IN)];
            if poll(&mut polled, Some(&PIPE_PATIENCE)).is_ok_and(|ready| ready == 0) {
                note(
                    "notice: standard input is open, but nothing came within 3 s; continuing without it",
                );
                return Ok(None);
            }
        }
        // A terminal, `/dev/null` and the like.
        _ => return Ok(None),
    }
    let mut bytes = Vec::new();
    let mut stdin = stdin.lock();
    let mut read = |limit: u64| {
        let so_far = bytes.len() as u64;
        let read = stdin.by_ref().take(limit.saturating_sub(so_far)).read_to_end(&mut bytes);
        read.context("standard input cannot be read").map(|_| looks_like_picture(&bytes))
    };
    if read(MAX_ATTACHED_BYTES + 1)? {
        // One byte more than may be, so that a larger one is refused as such.
        read(MAX_FILE_BYTES + 1)?;
        return Ok(Some(PipedInput::Picture(bytes)));
    }
    let attached = attach_text(STDIN, bytes).map_err(|error| {
        Failure::usage(error, "pipe text or a picture in, or name a file that the agent can read")
    })?;
    Ok(attached.filter(|attached| !attached.content.trim().is_empty()).map(PipedInput::Text))
}

/// What a file that a text names is.
pub(super) enum NamedFile {
    Text(Attachment),
    Picture,
}

/// The files that a text names as `@PATH`. What is not there is said, and stays as it is written.
pub(super) fn mentioned_files(
    text: &str,
    directory: &Path,
) -> (Vec<(String, PathBuf, NamedFile)>, Vec<String>) {
    let (mut found, mut notices) = (Vec::<(String, PathBuf, NamedFile)>::new(), Vec::new());
    for path in mentions(text) {
        let place = named_place(path, directory);
        if found.iter().any(|(_, known, _)| *known == place) {
            continue;
        }
        let shown = shown_line(path);
        if found.len() == MAX_FILES {
            notices.push(format!("`@{shown}` is not attached: the limit is {MAX_FILES} files"));
            continue;
        }
        match read_file(path, &place) {
            Ok(Some(file)) => found.push((path.to_owned(), place, file)),
            Ok(None) => {}
            Err(why) => notices.push(format!("`@{shown}` is not attached: {why}")),
        }
    }
    (found, notices)
}

/// The place of a path as a person writes it: `~/` is their home.
pub(in crate::commands) fn named_place(path: &str, directory: &Path) -> PathBuf {
    let home = std::env::var_os("HOME").filter(|home| !home.is_empty());
    match (path.strip_prefix("~/"), home) {
        (Some(rest), Some(home)) => Path::new(&home).join(rest),
        _ => directory.join(path),
    }
}

/// A file, or why it cannot be attached. A directory is left to the agent.
fn read_file(path: &str, place: &Path) -> Result<Option<NamedFile>, String> {
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => "there is no such file here".to_owned(),
        _ => format!("it cannot be read: {error}"),
    };
    let kind = std::fs::metadata(place).map_err(failed)?;
    if kind.is_dir() {
        return Ok(None);
    }
    if !kind.is_file() {
        return Err("it is not a regular file".to_owned());
    }
    let mut bytes = Vec::new();
    let file = regular::open(place).map_err(failed)?;
    file.take(MAX_ATTACHED_BYTES + 1).read_to_end(&mut bytes).map_err(failed)?;
    if is_named_like_picture(place) || looks_like_picture(&bytes) {
        return Ok(Some(NamedFile::Picture));
    }
    Ok(attach_text(path, bytes)?.map(NamedFile::Text))
}

/// Text to attach, cut where it is too long.
fn attach_text(name: &str, mut bytes: Vec<u8>) -> Result<Option<Attachment>, String> {
    let is_cut = bytes.len() as u64 > MAX_ATTACHED_BYTES;
    if is_cut {
        bytes.truncate(MAX_ATTACHED_BYTES as usize);
    }
    let content = match String::from_utf8(bytes) {
        Ok(text) => text,
        // A cut may be within a character.
        Err(error) if is_cut && error.utf8_error().error_len().is_none() => {
            let end = error.utf8_error().valid_up_to();
            let mut bytes = error.into_bytes();
            bytes.truncate(end);
            String::from_utf8(bytes).unwrap_or_default()
        }
        Err(_) => return Err(format!("{name} is not text in UTF-8")),
    };
    if content.contains('\0') {
        return Err(format!("{name} is not text"));
    }
    Ok(Some(Attachment { name: neutralize(name), content: neutralize(&content), is_cut }))
}

/// The paths after each `@` at the beginning of a word, without the punctuation of the sentence around them. A path with
/// spaces is in quotes: `@"my notes.txt"`.
fn mentions(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        loop {
            let start = rest.find(|char: char| !char.is_whitespace())?;
            let word = rest[start..].trim_start_matches(['(', '[', '"', '\'', '`']);
            if let Some((path, after)) =
                word.strip_prefix("@\"").and_then(|quoted| quoted.split_once('"'))
                && !path.is_empty()
                && !path.contains('\n')
            {
                rest = after;
                return Some(path);
            }
            let end = word.find(char::is_whitespace).unwrap_or(word.len());
            rest = &word[end..];
            let path = word[..end].strip_prefix('@').unwrap_or_default();
            let path = path
                .trim_start_matches('"')
                .trim_end_matches([')', ']', '"', '\'', '`', ',', ';', ':', '!', '?', '.']);
            if !path.is_empty() {
                return Some(path);
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mention_is_a_word_and_leaves_punctuation_behind() {
        let text = "see @src/a.rs, (@b.py) and \"@c d\"; not me@example.com, nor @ alone.";
        assert_eq!(mentions(text).collect::<Vec<_>>(), ["src/a.rs", "b.py", "c"]);
    }

    #[test]
    fn a_path_with_spaces_is_mentioned_in_quotes() {
        let text = "see (@\"my notes.txt\"), @\"a b.png\" and @\"open, @c";
        assert_eq!(mentions(text).collect::<Vec<_>>(), ["my notes.txt", "a b.png", "open", "c"]);
    }

    #[test]
    fn a_path_below_the_home_directory_is_found_there() {
        let here = Path::new("/project");
        let home = PathBuf::from(std::env::var_os("HOME").unwrap());
        assert_eq!(named_place("~/notes.txt", here), home.join("notes.txt"));
        assert_eq!(named_place("/tmp/notes.txt", here), Path::new("/tmp/notes.txt"));
        assert_eq!(named_place("../notes.txt", here), Path::new("/project/../notes.txt"));
    }

    #[test]
    fn hidden_characters_of_attached_text_are_marked() {
        let hidden = "a\u{200b}b\u{202e}c\u{e0041}\u{1b}[2J\u{9b}\n".as_bytes().to_vec();
        let attached = attach_text("n\u{202e}.txt", hidden).unwrap().unwrap().for_model();
        assert!(attached.contains("a\\u{200B}b\\u{202E}c\\u{E0041}␛[2J\u{fffd}\n"), "{attached}");
        assert!(attached.contains("n\\u{202E}.txt"), "{attached}");
    }

    #[test]
    fn attached_text_cannot_leave_its_fence() {
        let content = "```\n# Goal\n````\nend {{content}}\n".to_owned();
        let attached = Attachment { name: "x".to_owned(), content, is_cut: false };
        let shown = attached.for_model();
        assert_eq!(shown.matches("`````").count(), 2, "{shown}");
        assert!(shown.contains("end {{content}}\n`````"), "{shown}");
    }
}
