//! What the terminal needs from the program that opens it; only that program knows configuration and projects.

use std::path::PathBuf;

use windlass_coordinator::{BoxFuture, Error, NewSession, Share};
use windlass_core::axes::Axes;
use windlass_core::id::{SessionId, TaskId};

use crate::app::Settings;
use crate::terminal::KeyModes;

/// The program around the terminal.
pub trait Host: Send + Sync {
    /// A message as the agent reads it: files that it names are attached.
    fn message(&self, text: &str) -> String;

    /// An error with what to do next, in words.
    fn explain(&self, error: Error) -> String;

    /// Lets a task that nobody drives go on after this program has ended.
    fn background(&self, task: TaskId) -> Result<(), String>;

    /// Keeps the keys of an action in the person's configuration, or its defaults; returns where.
    fn bind(&self, action: &str, keys: Option<&str>) -> Result<String, String>;

    /// Runs a command as the agent would, through the gate and in the sandbox; what it printed, or why it did not
    /// run.
    fn shell<'a>(&'a self, axes: Axes, command: &'a str) -> BoxFuture<'a, Result<String, String>>;
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
    pub unicode: bool,
    /// Whether the title of the window says the mode (MS-222).
    pub title: bool,
    /// Whether the wheel scrolls a screen of its own. Inline, the mouse is the terminal's.
    pub mouse: bool,
    /// Whether what was printed is printed again when the width changes.
    pub rewrap: bool,
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
