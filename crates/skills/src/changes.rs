//! What a running agent reads when skills change. Its system prompt stays as it is.

use std::collections::BTreeMap;

use crate::Skills;
use crate::skill::{Skill, Viewer};

/// The version of each skill that an agent knows, by name.
pub type SkillVersions = BTreeMap<String, String>;

/// How many changes are listed one by one.
const MAX_LINES: usize = 40;

impl Skills {
    /// The versions of all skills that an agent is offered.
    pub fn versions(&self, viewer: Viewer) -> SkillVersions {
        let one = |skill: &Skill| (skill.meta.name.clone(), skill.version.clone());
        self.offered(viewer).map(one).collect()
    }
}

/// What an agent that knows `known` should read, and what it knows then; `None` when nothing changed.
pub fn change_notice(
    known: &SkillVersions,
    skills: &Skills,
    viewer: Viewer,
) -> Option<(String, SkillVersions)> {
    let now = skills.versions(viewer);
    if *known == now {
        return None;
    }
    let mut lines = Vec::new();
    for skill in skills.offered(viewer) {
        let (name, what) = (&skill.meta.name, &skill.meta.description);
        match known.get(name) {
            None => lines.push(format!("- new: `{name}`: {what}")),
            Some(version) if *version != skill.version => {
                lines.push(format!(
                    "- changed: `{name}`: {what} (if you have read it, read it again)"
                ));
            }
            Some(_) => {}
        }
    }
    let gone = known.keys().filter(|name| !now.contains_key(*name));
    lines.extend(gone.map(|name| format!("- gone: `{name}`")));
    let more = lines.len().saturating_sub(MAX_LINES);
    lines.truncate(MAX_LINES);
    if more > 0 {
        lines.push(format!("- and {more} more; `list_skills` shows all"));
    }
    let text = include_str!("prompts/changed.md").trim_end();
    Some((text.replace("{changes}", &lines.join("\n")), now))
}
