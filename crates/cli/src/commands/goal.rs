//! What a person wants, from wherever it is given: the argument, a file, standard input, and what is attached
//! to it: piped input, and the files and pictures that `@PATH` names in the text.
//!
//! Invariant: nothing is cut or left out silently.

mod attachments;

use std::fs::File;
use std::io::{self, IsTerminal as _, Read as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use windlass_coordinator::Coordinator;
use windlass_coordinator::pictures::{MAX_ATTACHED, looks_like_picture};
use windlass_core::model_text::neutralize;
use windlass_core::picture::Picture;
use windlass_skills::regular;

use crate::failure::Failure;
use crate::show::note;
pub(super) use attachments::named_place;
use attachments::{Attachment, NamedFile, PipedInput, STDIN, mentioned_files, piped_input};

/// The largest goal taken from a file or standard input.
const MAX_GOAL_BYTES: u64 = 1024 * 1024;

/// A goal and what is attached to it.
#[derive(Debug)]
pub(super) struct Goal {
    pub text: String,
    attached: Vec<Attachment>,
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

impl Goal {
    /// Reads what was given. `-`, or nothing with something piped in, is standard input; `@FILE` alone is a file
    /// with the goal. Paths are relative to `directory`.
    pub(super) fn read(given: Option<&str>, directory: &Path) -> Result<Self, Failure> {
        let text = match given {
            None if io::stdin().is_terminal() => {
                return Err(Failure::usage("there is no goal", NO_GOAL_HINT));
            }
            None | Some("-") => {
                let bytes = read_limited(io::stdin().lock());
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
                let place = directory.join(path);
                let opened = match place.is_dir() {
                    true => File::open(&place),
                    false => regular::open(&place),
                };
                let bytes = opened.and_then(read_limited);
                let text = whole(&format!("`{path}`"), FILE_HINT, bytes)?;
                Self::plain(text)
            }
            None => Self::of_message(text, directory),
        };
        goal.print_notices();
        match piped_input()? {
            Some(PipedInput::Text(text)) => {
                text.cut_notice().iter().for_each(|notice| note(&format!("notice: {notice}")));
                goal.attached.push(text);
            }
            Some(PipedInput::Picture(bytes)) => {
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
        Self::of_pasted(text, text, directory)
    }

    /// The same of a text in which only `own_words` name files; the rest was pasted as a block.
    pub(super) fn of_pasted(text: &str, own_words: &str, directory: &Path) -> Self {
        let mut message = Self::plain(text.to_owned());
        let (files, notices) = mentioned_files(own_words, directory);
        message.notices = notices;
        if holds_escaped_breaks(text) {
            message.notices.push(ESCAPED_BREAKS.to_owned());
        }
        for (path, place, file) in files {
            match file {
                NamedFile::Text(attached) => {
                    message.notices.extend(attached.cut_notice());
                    message.attached.push(attached);
                }
                NamedFile::Picture => message.pictures.push((path, PictureSource::File(place))),
            }
        }
        message
    }

    /// What people read of a message, where it carries more than was typed: files that it names, and what a person ran
    /// before it.
    pub(super) fn shown_text(&self, typed: &str) -> Option<String> {
        let attached = self.attached.iter().map(Attachment::for_people);
        let lines: Vec<_> = std::iter::once(typed.trim_end().to_owned()).chain(attached).collect();
        (lines.len() > 1 || self.text != typed).then(|| lines.join("\n"))
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
            let problem = format!("{count} pictures are named, and the limit is {MAX_ATTACHED}");
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

const NO_GOAL_HINT: &str = "say what to do: `windlass run \"fix the build\"`";
const STDIN_HINT: &str = "hand in text: `git diff | windlass run -`";
const FILE_HINT: &str = "name a text file that you can read: `windlass run @goal.md`";

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

/// `@FILE` alone names a file with the goal. With more text it is a mention of a file.
fn is_goal_file(path: &str) -> bool {
    !path.is_empty() && !path.contains(char::is_whitespace)
}

/// The whole of a goal that comes from elsewhere: text of a bounded size, its hidden characters marked, since no
/// person has typed it.
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
    let goal = goal.map(|text| neutralize(&text));
    let failed = goal.with_context(|| format!("the goal cannot be read from {place}"));
    failed.map_err(|error| Failure { hint: Some(hint.into()), ..error.into() })
}

/// Everything, or one byte more than may be.
fn read_limited(source: impl io::Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    source.take(MAX_GOAL_BYTES + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_breaks_that_the_shell_did_not_make_are_noticed() {
        for text in [r"fix it\nthen test", r"Do:\n- one\n- two", r"first.\n\nSecond"] {
            assert!(holds_escaped_breaks(text), "{text}");
        }
        for text in ["fix it\nthen test", r"replace `\n` by a space", r"split at '\n'"] {
            assert!(!holds_escaped_breaks(text), "{text}");
        }
    }
}
