//! `read_skill`: the instructions of one skill, whole (ES-246, ES-247).

use schemars::JsonSchema;
use serde::Deserialize;
use windlass_core::outcome::Outcome;
use windlass_core::policy::{Class, Risk};
use windlass_skills::{Skill, Skills};

use super::{Builtin, act, looks};
use crate::output::neutralize;
use crate::tool::{Call, Category, Prepared, World};

pub(super) struct ReadSkill;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// The skill's name, as list_skills shows it.
    name: String,
}

impl Builtin for ReadSkill {
    type Arguments = Arguments;
    const NAME: &'static str = "read_skill";
    const DESCRIPTION: &'static str = include_str!("descriptions/read_skill.md");
    const CATEGORY: Category = Category::Skills;
    const LEAST: (Class, Risk) = (Class::Read, Risk::Low);

    fn prepare(world: World, _call: Call, given: Arguments) -> Result<Prepared, Outcome> {
        let reason = format!("reads skill `{}`", given.name);
        Ok(looks(reason, act(move || read(&world.skills, &given.name))))
    }
}

fn read(skills: &Skills, name: &str) -> Outcome {
    match skills.get(name) {
        Some(skill) if skill.meta.model_invocable => Outcome::ok(shown(skill)),
        Some(_) => Outcome::error(format!(
            "Error: skill `{name}` is used only when the user calls for it. Ask the user to run /{name}."
        )),
        None => {
            let names: Vec<_> = skills
                .list()
                .filter(|skill| skill.meta.model_invocable)
                .map(|skill| skill.meta.name.as_str())
                .collect();
            let known = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            Outcome::error(format!("Error: there is no skill `{name}`. The skills are: {known}."))
        }
    }
}

fn shown(skill: &Skill) -> String {
    let mut text = neutralize(&skill.content);
    if !skill.resources.is_empty() {
        let files = skill.resources.join(", ");
        text.push_str(&format!(
            "\n[Other files of this skill, under /skills/{}/: {files}]\n",
            skill.meta.name
        ));
    }
    text
}
