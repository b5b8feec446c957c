//! What the analysis has found so far: the commands of one level, and how the next level is reached.

use std::collections::BTreeSet;

use super::expand::join_fields;
use super::rules::git::EarlierGit;
use super::state::{Arg, UNKNOWN};
use super::{CommandAnalysis, ShellCommand, Via};
use windlass_core::policy::class::{Assessment, Class};
use windlass_core::policy::{Arrival, Script};
use windlass_core::shown::shown_line;

/// The longest text shown of one word.
const LONGEST_SHOWN: usize = 200;

pub(super) struct Findings {
    /// Commands found at this level so far.
    pub commands: Vec<ShellCommand>,
    /// How a command met now is reached.
    pub via: Via,
    /// Whether the whole text could be parsed.
    pub parsed: bool,
    /// Whether the configuration rates a command as more harmless than the table does.
    pub reclassified: bool,
    /// Files that are run, by absolute path.
    pub scripts: BTreeSet<String>,
    /// What arrives under names that the text does not say.
    pub arrivals: BTreeSet<Arrival>,
    /// What git commands before this point did.
    pub git: EarlierGit,
}

impl Findings {
    pub(super) fn new() -> Self {
        Self {
            commands: Vec::new(),
            via: Via::Direct,
            parsed: true,
            reclassified: false,
            scripts: BTreeSet::new(),
            arrivals: BTreeSet::new(),
            git: EarlierGit::default(),
        }
    }

    /// Starts a level that already holds `commands`, and hands back the level around it.
    pub(super) fn open_level(&mut self, commands: Vec<ShellCommand>) -> Vec<ShellCommand> {
        std::mem::replace(&mut self.commands, commands)
    }

    /// Returns to the level `outer`, and hands back what the inner one found.
    pub(super) fn close_level(&mut self, outer: Vec<ShellCommand>) -> Vec<ShellCommand> {
        std::mem::replace(&mut self.commands, outer)
    }

    /// Records a part of a command that is judged separately.
    pub(super) fn note(&mut self, assessment: Assessment, words: &[Arg]) {
        self.commands.push(ShellCommand {
            command: display_text(&join_fields(words).text),
            via: self.via.clone(),
            assessment,
            words: known_words(words),
            confined: false,
            commands: Vec::new(),
        });
    }

    pub(super) fn note_unreadable(&mut self, text: &str, reason: &str) {
        let via = self.via.clone();
        self.commands.push(ShellCommand { via, ..unreadable(text, reason) });
    }

    /// Records a file that the shell itself opens.
    pub(super) fn note_opened_file(&mut self, file: &Arg, sign: &str, assessment: Assessment) {
        self.commands.push(ShellCommand {
            command: format!("{sign} {}", display_text(&file.text)),
            via: Via::Redirection,
            assessment,
            words: vec![Some(sign.to_owned()), file.known().map(str::to_owned)],
            confined: false,
            commands: Vec::new(),
        });
    }

    /// Removes the commands from `again` on that are already among those from `start` on.
    pub(super) fn remove_repeated(&mut self, start: usize, again: usize) {
        for command in self.commands.split_off(again) {
            if !self.commands[start..].contains(&command) {
                self.commands.push(command);
            }
        }
    }

    pub(super) fn into_analysis(self) -> CommandAnalysis {
        let scripts = self.scripts.into_iter().map(|path| Script { path, hash: None });
        CommandAnalysis {
            parsed: self.parsed,
            reclassified: self.reclassified,
            scripts: scripts.collect(),
            arrivals: self.arrivals.into_iter().collect(),
            ..CommandAnalysis::new(self.commands)
        }
    }
}

/// An entry for text that cannot be read.
pub(super) fn unreadable(text: &str, reason: &str) -> ShellCommand {
    ShellCommand {
        command: display_text(text),
        via: Via::Direct,
        assessment: Assessment::of(Class::Opaque, format!("cannot be read: {reason}")),
        words: Vec::new(),
        confined: false,
        commands: Vec::new(),
    }
}

/// The words as a finding carries them; `None` for one that is only known when it runs.
pub(super) fn known_words(words: &[Arg]) -> Vec<Option<String>> {
    words.iter().map(|arg| arg.known().map(str::to_owned)).collect()
}

/// Text for people: unknown parts as `…`, hidden characters escaped, one line, cut when long.
pub(super) fn display_text(text: &str) -> String {
    let known = |c: char| if c == UNKNOWN { '…' } else { c };
    let cut: String = text.chars().take(LONGEST_SHOWN).map(known).collect();
    let mut shown = shown_line(&cut);
    if text.chars().nth(LONGEST_SHOWN).is_some() {
        shown.push('…');
    }
    shown
}
