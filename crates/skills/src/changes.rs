//! Telling a running agent that skills have changed, without touching its system prompt.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::Skills;
use crate::skill::{Skill, Viewer};

/// What an agent was known of: the version of each skill it knows, by name.
pub type SkillVersions = BTreeMap<String, String>;

/// How many changes are known one by one.
const MAX_LINES: usize = 40;

impl Skills {
    /// What an agent knows that was shown all it is offered.
    pub fn versions(&self, viewer: Viewer) -> SkillVersions {
        let one = |skill: &Skill| (skill.meta.name.clone(), skill.version.clone());
        self.offered(viewer).map(one).collect()
    }
}

/// What an agent should hear that knows `known`, and what it knows then; `None` when nothing changed.
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
    let mut text = String::from("The skills have changed.\n");
    for line in lines.iter().take(MAX_LINES) {
        let _ = writeln!(text, "{line}");
    }
    if lines.len() > MAX_LINES {
        let _ = writeln!(text, "- and {} more; `list_skills` shows all", lines.len() - MAX_LINES);
    }
    text.push_str("Read one with `read_skill` when it fits what you are doing.");
    Some((text, now))
}
