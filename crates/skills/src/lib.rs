//! Finding, checking and reading skills: folders with a `SKILL.md`, or lone `.md` and `.yaml` files.
//!
//! Invariants:
//! - A broken file never stops the others: it is skipped, or its last good version stays in use, and it is
//!   reported with file, line and reason.
//! - Of two skills with one name the one from the later directory counts. A project's takes the place of the
//!   user's own, or of a built-in one, only when a person has approved it.
//! - What a project brings is read only from inside the project: a link to elsewhere is not followed.
//! - No agent is shown `evals`: they hold the answers to their own questions (MS-169).

mod skill;
mod parse;
mod beneath;
pub mod inside;
pub mod regular;
mod find;
mod places;
mod registry;
mod watch;
mod mirror;
mod changes;
mod hooks;
mod invoke;
pub mod eval;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use changes::{SkillVersions, change_notice};
pub use hooks::HookTime;
pub use invoke::{Invocation, InvocationError, fork, invoke, skill_of_goal};
pub use mirror::SkillMirror;
pub use parse::{
    MAX_DESCRIPTION_CHARS, MAX_NAME_CHARS, ParseError, ParsedSkill, parse_markdown, parse_yaml,
};
pub use places::{IMAGE_DIRECTORY, places};
pub use registry::SkillRegistry;
pub use skill::{Context, Meta, Resource, Scope, SideEffects, Skill, Viewer};

/// How much of a system prompt the list of skills may take; what is over is cut, then left out.
const MAX_LISTED_BYTES: usize = 16 * 1024;
/// How long a description may be in a list that would be too long otherwise.
const SHORT_DESCRIPTION_CHARS: usize = 100;

/// Whether a person has approved a project's skill as it is now.
pub type ApprovalFn = Arc<dyn Fn(&Skill) -> bool + Send + Sync>;

/// All skills that can be used, by name.
#[derive(Debug, Default)]
pub struct Skills {
    by_name: BTreeMap<String, Arc<Skill>>,
    /// The overridden ones too, in order of directories.
    all: Vec<Arc<Skill>>,
    problems: Vec<Problem>,
}

/// A file that is not a usable skill.
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
    pub fn load(directories: &[(PathBuf, Scope)], approved: &ApprovalFn) -> Self {
        Self::load_over(directories, approved, &Self::empty())
    }

    /// The same, where a file that cannot be read keeps its version of `before`.
    pub fn load_over(
        directories: &[(PathBuf, Scope)],
        approved: &ApprovalFn,
        before: &Self,
    ) -> Self {
        let mut skills = Self::empty();
        for (directory, scope) in directories {
            let found = find::in_directory(directory, *scope);
            let mut of_directory: Vec<Arc<Skill>> =
                found.skills.into_iter().map(Arc::new).collect();
            for problem in &found.problems {
                let kept =
                    before.all.iter().filter(|skill| problem.concerns(&skill.path, directory));
                for skill in kept {
                    if !of_directory.iter().any(|other| other.path == skill.path) {
                        of_directory.push(Arc::clone(skill));
                    }
                }
            }
            skills.problems.extend(found.problems);
            for skill in of_directory {
                if !skills.has_better(&skill) || approved(&skill) {
                    skills.by_name.retain(|_, other| {
                        other.scope == Scope::Project
                            || skill.scope != Scope::Project
                            || !other.has_name_of(&skill)
                    });
                    skills.by_name.insert(skill.meta.name.clone(), Arc::clone(&skill));
                }
                skills.all.push(skill);
            }
        }
        skills
    }

    /// Whether a skill of this name, which a project cannot replace unasked, is there.
    fn has_better(&self, skill: &Skill) -> bool {
        let is_better =
            |other: &Arc<Skill>| other.scope != Scope::Project && other.has_name_of(skill);
        skill.scope == Scope::Project && self.by_name.values().any(is_better)
    }

    /// The skills of a project that have the name of one that is not the project's.
    pub fn contested(&self) -> impl Iterator<Item = &Skill> {
        let is_taken = |skill: &Skill| {
            self.all.iter().any(|other| other.scope != Scope::Project && other.has_name_of(skill))
        };
        let of_project = self.all.iter().filter(|skill| skill.scope == Scope::Project);
        of_project.filter(move |skill| is_taken(skill)).map(AsRef::as_ref)
    }

    /// All of them, by name.
    pub fn list(&self) -> impl Iterator<Item = &Skill> {
        self.by_name.values().map(AsRef::as_ref)
    }

    /// The one of this name.
    pub fn get(&self, name: &str) -> Option<&Skill> {
        self.by_name.get(name).map(AsRef::as_ref)
    }

    /// The same, to be kept while skills change.
    pub fn shared(&self, name: &str) -> Option<Arc<Skill>> {
        self.by_name.get(name).cloned()
    }

    /// The set with these alone.
    pub fn subset(&self, names: &[String]) -> Self {
        let is_wanted = |skill: &&Arc<Skill>| names.contains(&skill.meta.name);
        let all: Vec<_> = self.all.iter().filter(is_wanted).cloned().collect();
        let by_name = self.by_name.iter().filter(|(name, _)| names.contains(name));
        let by_name = by_name.map(|(name, skill)| (name.clone(), Arc::clone(skill))).collect();
        Self { by_name, all, problems: Vec::new() }
    }

    /// The set with this one alone.
    pub fn only(&self, name: &str) -> Self {
        let all: Vec<_> = self.by_name.get(name).cloned().into_iter().collect();
        let by_name = all.iter().map(|skill| (name.to_owned(), Arc::clone(skill))).collect();
        Self { by_name, all, problems: Vec::new() }
    }

    /// Those that an agent may use unasked, by name.
    pub fn offered(&self, viewer: Viewer) -> impl Iterator<Item = &Skill> {
        self.list().filter(move |skill| skill.is_offered_to(viewer))
    }

    /// Names and descriptions for a system prompt, within bounds however many there are.
    pub fn listing(&self, viewer: Viewer) -> Vec<(String, String)> {
        let whole: usize =
            self.offered(viewer).map(|s| s.meta.name.len() + s.meta.description.len()).sum();
        let mut room = MAX_LISTED_BYTES;
        let mut list = Vec::new();
        for Meta { name, description, .. } in self.offered(viewer).map(|skill| &skill.meta) {
            let description = match whole > MAX_LISTED_BYTES {
                true => windlass_core::text::one_line(description, SHORT_DESCRIPTION_CHARS),
                false => description.clone(),
            };
            let bytes = name.len() + description.len();
            if bytes > room {
                break;
            }
            room -= bytes;
            list.push((name.clone(), description));
        }
        list
    }

    /// Those that another of the same name replaces.
    pub fn overridden(&self) -> impl Iterator<Item = &Skill> {
        let counts = |skill: &Arc<Skill>| {
            let counted = self.by_name.get(&skill.meta.name);
            counted.is_some_and(|counted| Arc::ptr_eq(counted, skill))
        };
        self.all.iter().filter(move |skill| !counts(skill)).map(AsRef::as_ref)
    }

    /// What was skipped or keeps its last good version, and why.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }
}

impl Problem {
    /// Whether a file could not be read because of it.
    fn concerns(&self, file: &Path, directory: &Path) -> bool {
        self.path == file || (self.path == directory && file.starts_with(directory))
    }
}
