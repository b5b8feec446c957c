//! Finding, checking and reading skills: folders with a `SKILL.md`, or lone `.md` and `.yaml` files.
//!
//! Invariants:
//! - A broken file never stops the others: it is skipped, and reported with file, line and reason.
//! - Of two skills with one name the one from the later directory counts.
//! - What a project brings is read only from inside the project: a link to elsewhere is not followed.

mod find;
mod parse;
mod skill;

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

pub use parse::{MAX_DESCRIPTION_CHARS, MAX_NAME_CHARS, ParseError, parse_markdown, parse_yaml};
pub use skill::{Context, Meta, Scope, SideEffects, Skill};

/// All skills that can be used, by name.
#[derive(Debug, Default)]
pub struct Skills {
    by_name: BTreeMap<String, Skill>,
    problems: Vec<Problem>,
}

/// A file that is no usable skill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The file or directory.
    pub path: PathBuf,
    /// The line, where one is to blame.
    pub line: Option<u64>,
    /// What is wrong.
    pub reason: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.path.display())?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        write!(f, ": {}", self.reason)
    }
}

impl Skills {
    /// None at all.
    pub fn empty() -> Self {
        Self::default()
    }

    /// Reads every skill in these directories; later ones win by name, missing ones hold nothing.
    pub fn load(directories: &[(PathBuf, Scope)]) -> Self {
        let mut skills = Self::empty();
        for (directory, scope) in directories {
            let found = find::in_directory(directory, *scope);
            skills.problems.extend(found.problems);
            skills
                .by_name
                .extend(found.skills.into_iter().map(|skill| (skill.meta.name.clone(), skill)));
        }
        skills
    }

    /// All of them, by name.
    pub fn list(&self) -> impl Iterator<Item = &Skill> {
        self.by_name.values()
    }

    /// The one of this name.
    pub fn get(&self, name: &str) -> Option<&Skill> {
        self.by_name.get(name)
    }

    /// What was skipped, and why.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }
}
