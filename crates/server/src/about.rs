//! What the program knows of itself, and the coordinator does not: its configuration, its skills, and how new ones are written.

use std::sync::Arc;

use crate::skill_drafts::SkillWriter;

/// One setting that is in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Such as `agent.max_iterations`.
    pub key: String,
    /// Its value, or what holds where nothing is set. Keys are hidden.
    pub value: String,
    /// Where it comes from.
    pub source: String,
}

/// One skill that agents or people can use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skill {
    pub name: String,
    pub description: String,
    /// Where it comes from.
    pub source: String,
    /// Whether agents use it unasked.
    pub is_for_agents: bool,
    /// Whether people call it by `/name`.
    pub is_for_people: bool,
    /// The instructions of the skill.
    pub text: String,
}

/// The skills as they are now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SkillList {
    pub skills: Vec<Skill>,
    /// Files that are not usable skills, and why.
    pub problems: Vec<String>,
}

/// What the program knows of itself. Cheap to clone.
#[derive(Clone)]
pub struct About {
    pub settings: Arc<[Setting]>,
    /// Reads the skills that are there now.
    pub skills: Arc<dyn Fn() -> SkillList + Send + Sync>,
    /// Writes skills that were proposed; absent where the program cannot.
    pub skill_writer: Option<Arc<dyn SkillWriter>>,
}

impl std::fmt::Debug for About {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("About").field("settings", &self.settings.len()).finish_non_exhaustive()
    }
}
