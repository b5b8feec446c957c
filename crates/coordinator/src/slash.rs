//! Slash commands: one table for every surface, and replies that are data.
//!
//! Invariants:
//! - What a command is called, takes and does is in [`TABLE`] alone; `/help`, completions and docs/commands.md
//!   are made from it.
//! - A reply says what happened in blocks that any surface can draw. No surface parses its words.
//! - A command that is wrong changes nothing, and says what is allowed.

mod table;
mod words;
mod reply;
mod run;
mod modes;
mod roles;
mod reports;
mod forensics;
mod health;
mod workflow;
mod plans;

use windlass_core::event::Driver;

use crate::{Error, Share};

pub use forensics::forensics;
pub use reply::{Block, Effect, Field, Reply};
pub use table::{Availability, Complete, Group, SlashCommand, TABLE, find, markdown};

/// Whether a line is a slash command: a slash and one name. `/etc/hosts is wrong` is a message.
pub fn is_command(line: &str) -> bool {
    let Some(rest) = line.trim_start().strip_prefix('/') else { return false };
    let name = rest.split_whitespace().next().unwrap_or_default();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | ':');
    rest.starts_with(|c: char| !c.is_whitespace()) && name.chars().all(is_plain)
}

/// Whether a line is a command of the table; the name of a skill is not.
pub fn is_known(line: &str) -> bool {
    let name = line.trim_start().trim_start_matches('/').split_whitespace().next();
    is_command(line) && name.and_then(find).is_some()
}

/// Whose things a command shows and changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Everybody's: of whoever owns the data directory, and of an admin.
    Everything,
    /// What belongs to whoever typed it. What is another's does not exist.
    Own,
}

impl Reach {
    /// Refuses a model that is a script: a script is a file of this machine, which only those who reach everything
    /// may name.
    pub fn check_model(self, name: &str) -> Result<(), Error> {
        let is_script = name.trim_start().starts_with("script:");
        match self == Self::Own && is_script {
            true => Err(Error::NotAllowed {
                what: "a script as the model is a file of the server's machine".to_owned(),
            }),
            false => Ok(()),
        }
    }
}

/// A line that a person typed, and where.
#[derive(Clone, Debug)]
pub struct SlashInput {
    /// With or without its slash.
    pub line: String,
    pub by: String,
    pub reach: Reach,
    /// Who drives a task that the command begins.
    pub driver: Driver,
    /// Whether another live task may work in the directory.
    pub share: Share,
    /// The sender's own id, so that a repeated delivery has no further effect.
    pub request: Option<String>,
}

impl SlashInput {
    /// A line from a terminal, which drives its tasks itself.
    pub fn here(line: impl Into<String>, by: impl Into<String>) -> Self {
        let (line, by) = (line.into(), by.into());
        Self {
            line,
            by,
            reach: Reach::Everything,
            driver: Driver::Foreground,
            share: Share::Alone,
            request: None,
        }
    }

    /// A line from a surface whose tasks a service drives.
    pub fn for_service(line: impl Into<String>, by: impl Into<String>) -> Self {
        Self { driver: Driver::Service, ..Self::here(line, by) }
    }

    /// Whether whoever typed it may see what belongs to somebody.
    pub(crate) fn may_see(&self, owner: Option<&str>) -> bool {
        self.reach == Reach::Everything || owner == Some(self.by.as_str())
    }
}
