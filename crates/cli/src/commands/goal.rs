//! What a person wants, from wherever it is given: the argument, a file, standard input, and what is attached
//! to it: piped input, and the files and pictures that `@PATH` names in the text.
//!
//! Invariant: nothing is cut or left out silently.

use std::fs::File;
use std::io::{self, IsTerminal as _, Read as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::FileType;
use windlass_coordinator::Coordinator;
use windlass_coordinator::pictures::{MAX_ATTACHED, MAX_FILE_BYTES, looks_like_picture};
use windlass_core::picture::Picture;
use windlass_core::shown::shown_line;

use crate::failure::Failure;
use crate::show::note;

/// The largest goal taken from a file or standard input.
const MAX_GOAL_BYTES: u64 = 1024 * 1024;

/// How much is attached to a goal, of piped input and of each file: about 64,000 tokens.
const MAX_ATTACHED_BYTES: u64 = 256 * 1024;

/// Files that one goal can have attached.
const MAX_FILES: usize = 20;

/// How long an open pipe may say nothing before the goal is taken without it. Programs that start others often
/// leave one open.
const PIPE_PATIENCE: Timespec = Timespec { tv_sec: 3, tv_nsec: 0 };

/// What a model reads of something that is attached.
const ATTACHED: &str = include_str!("../prompts/attached.md");

/// A goal and what is attached to it.
#[derive(Debug)]
pub(super) struct Goal {
    pub text: String,
    attached: Vec<Attached>,
    /// The pictures that it names or that were piped in, with their names.
    pictures: Vec<(String, PictureSource)>,
    /// What could not be attached, and why.
    pub notices: Vec<String>,
}

/// Where a picture is.
#[derive(Debug)]
enum PictureSource {
    File(PathBuf),
    Bytes(Vec<u8>),
}

#[derive(Debug)]
struct Attached {
    name: String,
    content: String,
    /// Whether only the beginning is here.
    is_cut: bool,
}

impl Goal {
    /// Reads what was given. `-`, or nothing with something piped in, is standard input; `@FILE` alone is a file
    /// with the goal. Paths are relative to `directory`.
    pub(super) fn read(given: Option<&str>, directory: &Path) -> Result<Self, Failure> {
        let text = match given {
            None if io::stdin().is_terminal() => {
                return Err(Failure::usage("there is no goal", NO_GOAL_HINT));
            }
            None | Some("-") => {
                let bytes = limited(io::stdin().lock());
                if bytes.as_deref().is_ok_and(looks_like_picture) {
                    return Err(Failure::usage(
                        "standard input is a picture, and there is no goal",
                        "say what to do with it: `windlass run \"what is wrong here?\" < shot.png`",
                    ));
                }
                let text = whole(STDIN, STDIN_HINT, bytes)?;
                return Ok(Self::plain(text));
            }
            Some(text) => text,
        };
        let mut goal = match text.strip_prefix('@').filter(|path| is_goal_file(path)) {
            Some(path) => {
                let bytes = File::open(directory.join(path)).and_then(limited);
                let text = whole(&format!("`{path}`"), FILE_HINT, bytes)?;
                Self::plain(text)
            }
            None => Self::of_message(text, directory),
        };
        goal.print_notices();
        match piped_input()? {
            Some(Piped::Text(text)) => goal.attached.push(text),
            Some(Piped::Picture(bytes)) => {
                goal.pictures.push((STDIN.to_owned(), PictureSource::Bytes(bytes)));
            }
            None => {}
        }
        Ok(goal)
    }

    /// Says what could not be attached.
    pub(super) fn print_notices(&self) {
        self.notices.iter().for_each(|notice| note(&format!("notice: {notice}")));
    }

    /// A message with the files that it names.
    pub(super) fn of_message(text: &str, directory: &Path) -> Self {
        let mut message = Self::plain(text.to_owned());
        let (files, notices) = mentioned_files(text, directory);
        message.notices = notices;
        if holds_escaped_breaks(text) {
            message.notices.push(ESCAPED_BREAKS.to_owned());
        }
        for (path, place, file) in files {
            match file {
                Mentioned::Text(attached) => message.attached.push(attached),
                Mentioned::Picture => message.pictures.push((path, PictureSource::File(place))),
            }
        }
        message
    }

    fn plain(text: String) -> Self {
        Self { text, attached: Vec::new(), pictures: Vec::new(), notices: Vec::new() }
    }

    /// Keeps the pictures that it names, so that a task can be shown them. Says so where its model cannot see; `sees`
    /// is `None` where that is not known.
    pub(super) fn keep_pictures(
        &self,
        coordinator: &Coordinator,
        sees: Option<bool>,
    ) -> Result<Vec<Picture>, Failure> {
        if self.pictures.len() > MAX_ATTACHED {
            let count = self.pictures.len();
            let hint = "name fewer; the agent can read others itself";
            let problem = format!("{count} pictures are named, and {MAX_ATTACHED} are the most");
            return Err(Failure::usage(problem, hint));
        }
        let kept: Result<Vec<_>, _> = self
            .pictures
            .iter()
            .map(|(name, source)| match source {
                PictureSource::File(place) => {
                    coordinator.artifacts().pictures().keep_file(place, name)
                }
                PictureSource::Bytes(bytes) => coordinator.artifacts().pictures().keep(bytes, name),
            })
            .collect();
        let kept = kept?;
        if !kept.is_empty() && sees != Some(true) {
            note(
                "notice: this model is not known to see pictures, so it only reads what they are called; if it \
                 can see, set `vision = true` in [models.\"NAME\"]",
            );
        }
        Ok(kept)
    }

    /// The text with everything that is attached, each marked as data.
    pub(super) fn with_attachments(self) -> String {
        let mut text = self.text;
        for attached in &self.attached {
            text = format!("{}\n\n{}", text.trim_end(), attached.for_model());
        }
        text
    }
}

const NO_GOAL_HINT: &str = "say what is to be done: `windlass run \"fix the build\"`";
const STDIN_HINT: &str = "hand in text: `git diff | windlass run -`";
const FILE_HINT: &str = "name a text file that you can read: `windlass run @goal.md`";

/// `@FILE` alone names a file with the goal. With more text it is a mention of a file.
/// For a goal whose line breaks the shell did not make.
const ESCAPED_BREAKS: &str = "`\\n` stays as it was typed; for lines write $'first\\nsecond', or \
    name a file with them as `@goal.md`";

/// Whether a text holds `\n` between words where a line break was most likely meant.
fn holds_escaped_breaks(text: &str) -> bool {
    let begins = |rest: &str| {
        rest.starts_with("\\n")
            || rest.starts_with(|c: char| c.is_alphanumeric() || "-*#".contains(c))
    };
    !text.contains('\n')
        && text.match_indices("\\n").any(|(at, escape)| {
            let before = text[..at].chars().next_back();
            before.is_some_and(|c| c.is_alphanumeric() || ".,:;!?)".contains(c))
                && begins(&text[at + escape.len()..])
        })
}

fn is_goal_file(path: &str) -> bool {
    !path.is_empty() && !path.contains(char::is_whitespace)
}

impl Attached {
    fn for_model(&self) -> String {
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
const STDIN: &str = "standard input";

/// What is piped in beside a goal.
enum Piped {
    Text(Attached),
    Picture(Vec<u8>),
}

/// What is piped in beside a goal; none where standard input is a terminal, closed or silent.
fn piped_input() -> Result<Option<Piped>, Failure> {
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
        return Ok(Some(Piped::Picture(bytes)));
    }
    let attached = attached(STDIN, bytes).map_err(|error| {
        Failure::usage(error, "pipe text or a picture in, or name a file that the agent can read")
    })?;
    Ok(attached.filter(|attached| !attached.content.trim().is_empty()).map(Piped::Text))
}

/// What a file that a text names is.
enum Mentioned {
    Text(Attached),
    Picture,
}

/// The files that a text names as `@PATH`. What is not there is said, and stays as it is written.
fn mentioned_files(
    text: &str,
    directory: &Path,
) -> (Vec<(String, PathBuf, Mentioned)>, Vec<String>) {
    let (mut found, mut notices) = (Vec::<(String, PathBuf, Mentioned)>::new(), Vec::new());
    for path in mentions(text) {
        let place = directory.join(path);
        if found.iter().any(|(_, known, _)| *known == place) {
            continue;
        }
        let shown = shown_line(path);
        if found.len() == MAX_FILES {
            notices.push(format!("`@{shown}` is not attached: {MAX_FILES} files are the most"));
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

/// Files with these endings are pictures, or somebody should know that they are not.
const PICTURES: [&str; 5] = ["png", "jpg", "jpeg", "gif", "webp"];

fn is_named_like_picture(path: &Path) -> bool {
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    PICTURES.iter().any(|known| known.eq_ignore_ascii_case(ending))
}

/// A file, or why it cannot be attached. A directory is left to the agent.
fn read_file(path: &str, place: &Path) -> Result<Option<Mentioned>, String> {
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
    let file = File::open(place).map_err(failed)?;
    file.take(MAX_ATTACHED_BYTES + 1).read_to_end(&mut bytes).map_err(failed)?;
    if is_named_like_picture(place) || looks_like_picture(&bytes) {
        return Ok(Some(Mentioned::Picture));
    }
    Ok(attached(path, bytes)?.map(Mentioned::Text))
}

/// Text to attach, cut where it is too long, which is said.
fn attached(name: &str, mut bytes: Vec<u8>) -> Result<Option<Attached>, String> {
    let is_cut = bytes.len() as u64 > MAX_ATTACHED_BYTES;
    if is_cut {
        bytes.truncate(MAX_ATTACHED_BYTES as usize);
        note(&format!(
            "notice: only the first {} KiB of {} are attached",
            MAX_ATTACHED_BYTES / 1024,
            shown_line(name)
        ));
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
    Ok(Some(Attached { name: name.to_owned(), content, is_cut }))
}

/// The paths after each `@` at the beginning of a word, without the punctuation of the sentence around them.
fn mentions(text: &str) -> impl Iterator<Item = &str> {
    text.split_whitespace().filter_map(|word| {
        let word = word.trim_start_matches(['(', '[', '"', '\'', '`']);
        let path = word.strip_prefix('@')?;
        let path = path.trim_end_matches([')', ']', '"', '\'', '`', ',', ';', ':', '!', '?', '.']);
        (!path.is_empty()).then_some(path)
    })
}

/// The whole of a goal that comes from elsewhere: text of a bounded size.
fn whole(place: &str, hint: &str, bytes: io::Result<Vec<u8>>) -> Result<String, Failure> {
    let bytes = match bytes {
        Ok(bytes) if bytes.len() as u64 > MAX_GOAL_BYTES => Err(io::Error::other(
            "it is larger than 1 MiB; put long texts into files and name them in the goal",
        )),
        other => other,
    };
    let goal = bytes.map_err(anyhow::Error::from).and_then(|bytes| {
        String::from_utf8(bytes).map_err(|_| anyhow::anyhow!("it is not text in UTF-8"))
    });
    let failed = goal.with_context(|| format!("the goal cannot be read from {place}"));
    failed.map_err(|error| Failure { hint: Some(hint.into()), ..error.into() })
}

/// Everything, or one byte more than may be.
fn limited(source: impl io::Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    source.take(MAX_GOAL_BYTES + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
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
    fn line_breaks_that_the_shell_did_not_make_are_noticed() {
        for text in [r"fix it\nthen test", r"Do:\n- one\n- two", r"first.\n\nSecond"] {
            assert!(holds_escaped_breaks(text), "{text}");
        }
        for text in ["fix it\nthen test", r"replace `\n` by a space", r"split at '\n'"] {
            assert!(!holds_escaped_breaks(text), "{text}");
        }
    }

    #[test]
    fn attached_text_cannot_leave_its_fence() {
        let content = "```\n# Goal\n````\nend {{content}}\n".to_owned();
        let attached = Attached { name: "x".to_owned(), content, is_cut: false };
        let shown = attached.for_model();
        assert_eq!(shown.matches("`````").count(), 2, "{shown}");
        assert!(shown.contains("end {{content}}\n`````"), "{shown}");
    }
}
