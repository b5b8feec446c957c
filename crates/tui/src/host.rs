//! What the terminal needs from the program that opens it; only that program knows configuration and projects.

use std::path::{Path, PathBuf};

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use windlass_coordinator::{BoxFuture, Error, NewSession, Share};
use windlass_core::axes::Axes;
use windlass_core::id::{SessionId, TaskId};
use windlass_core::picture::Picture;

use crate::app::Settings;
use crate::terminal::KeyModes;
use crate::text::Signs;

/// The program around the terminal.
pub trait Host: Send + Sync {
    /// A message as the agent reads it, with the files and pictures that it names. Paths are relative to `directory`;
    /// what was pasted names none.
    fn message(&self, directory: &Path, written: &UserMessage) -> Result<Message, String>;

    /// What a directory holds, by name, named as a message names it: `/tmp/`, `~/`, or relative to `directory`.
    fn entries(&self, directory: &Path, place: &str) -> Vec<String>;

    /// An error with what to do next, in words.
    fn explain(&self, error: Error) -> String;

    /// Lets a task that nobody drives go on after this program has ended.
    fn background(&self, task: TaskId) -> Result<(), String>;

    /// Keeps the keys of an action in the person's configuration, or its defaults; returns where.
    fn bind(&self, action: &str, keys: Option<&str>) -> Result<String, String>;

    /// Runs a command in a directory as the agent would, through the gate and in the sandbox; how it ended, or why it
    /// did not run.
    fn shell<'a>(
        &'a self,
        directory: &'a Path,
        axes: Axes,
        run: ShellRun<'a>,
    ) -> BoxFuture<'a, Result<ShellEnd, String>>;

    /// The files of the repository that a directory is in that differ from its last commit; `None` where there is no
    /// repository. Nothing that the repository names is run for it.
    fn working_tree<'a>(
        &'a self,
        directory: &'a Path,
    ) -> BoxFuture<'a, Result<Option<Vec<ChangedFile>>, String>>;
}

/// A command to be run.
#[derive(Clone, Copy, Debug)]
pub struct ShellRun<'a> {
    pub command: &'a str,
    /// Gets the end of what it has printed.
    pub tail: &'a watch::Sender<String>,
    /// Ends the command early.
    pub stop: &'a CancellationToken,
}

/// A command that has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShellEnd {
    /// The name under which all its output is kept.
    pub id: String,
    pub printed: String,
    /// How it ended, in words.
    pub words: String,
    pub is_success: bool,
}

impl ShellEnd {
    /// What the agent reads of it.
    pub(crate) fn for_agent(&self) -> String {
        match self.is_success && !self.printed.is_empty() {
            true => self.printed.clone(),
            false => format!("{}{}", self.printed, self.words),
        }
    }
}

/// A message as a person wrote it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserMessage {
    /// The whole text.
    pub text: String,
    /// The same without what was pasted as a block.
    pub own_words: String,
    /// What was written now, without what goes along with it.
    pub typed: String,
}

/// A message as it is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    pub text: String,
    /// What people read in place of the text, where that carries more than was typed.
    pub shown: Option<String>,
    pub pictures: Vec<Picture>,
    /// What the person should know, such as what could not be attached.
    pub notices: Vec<String>,
}

/// A file that differs from the last commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedFile {
    pub path: String,
    pub is_new: bool,
    /// The hunks; `None` where it is not text, or too long.
    pub diff: Option<String>,
}

/// How the whole is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// In the terminal's own scrollback.
    Inline,
    /// On the alternate screen.
    Full,
}

impl Layout {
    pub const fn other(self) -> Self {
        match self {
            Self::Inline => Self::Full,
            Self::Full => Self::Inline,
        }
    }
}

/// How a person who looks elsewhere is notified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    Off,
    Bell,
    /// A notification of the desktop (OSC 9).
    Desktop,
}

/// How a text gets into the clipboard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Clipboard {
    /// A program that reads it from its standard input.
    Program(Vec<String>),
    /// The buffer of the tmux that this runs in, by the program that takes it.
    Tmux(Vec<String>),
    /// The terminal's own (OSC 52).
    Terminal,
}

/// What the terminal is opened with.
pub struct Options {
    pub settings: Settings,
    pub layout: Layout,
    pub signal: Signal,
    pub clipboard: Clipboard,
    pub key_modes: KeyModes,
    /// Whether it runs in GNU screen, which hands on to its own terminal only what is wrapped for that.
    pub is_gnu_screen: bool,
    pub signs: Signs,
    /// Whether the title of the window says the mode (MS-222).
    pub title: bool,
    /// Whether the wheel scrolls a screen of its own. Inline, the mouse is the terminal's.
    pub mouse: bool,
    /// Whether what was printed is printed again when the width changes.
    pub rewrap: bool,
    /// Whether the terminal knows links (OSC 8), or ignores them.
    pub has_links: bool,
    /// How many rows are printed again then; terminals keep different numbers of them.
    pub reprinted_rows: usize,
    /// Whether the terminal keeps what a page covers. The console of Linux does not.
    pub has_alternate_screen: bool,
    /// Where drafts and the history are kept.
    pub state: PathBuf,
    pub workspace: PathBuf,
    /// The person's editor and its arguments.
    pub editor: Vec<String>,
    pub session: SessionId,
    /// How the session begins, where it does not exist yet.
    pub new: NewSession,
    /// Whether it may work where another task works.
    pub share: Share,
    /// The model that it will use, for the bottom line.
    pub model: String,
    pub effort: Option<String>,
    /// What to say first.
    pub message: Option<String>,
    /// Lines that are printed at the start.
    pub greeting: Vec<String>,
}

/// What a directory is called in the bottom line and in the title.
pub fn project_name(directory: &Path) -> String {
    let name = directory.file_name().map(|name| name.to_string_lossy().into_owned());
    name.unwrap_or_else(|| "/".to_owned())
}
