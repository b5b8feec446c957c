//! `read_skill`: the instructions of one skill, whole (ES-246, ES-247).

use schemars::JsonSchema;
use serde::Deserialize;
use windlass_core::outcome::{Fact, Outcome};
use windlass_core::policy::{Class, Risk};
use windlass_core::tool_name;
use windlass_skills::{Context, Skill, Skills};

use super::{Builtin, act, read_only};
use crate::output::neutralize;
use crate::tool::{Call, Category, Prepared, TaskFacts, ToolContext};
use crate::workspace::content_hash;

/// How many other files of a skill are named; the rest can be listed.
const MAX_NAMED: usize = 50;

pub(super) struct ReadSkill;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// The skill's name, as list_skills shows it.
    name: String,
}

impl Builtin for ReadSkill {
    type Arguments = Arguments;
    const NAME: &'static str = tool_name::READ_SKILL;
    const DESCRIPTION: &'static str = include_str!("descriptions/read_skill.md");
    const CATEGORY: Category = Category::Skills;
    const MIN_CLASS: (Class, Risk) = (Class::Read, Risk::Low);
    const IS_ALWAYS_ALLOWED: bool = true;

    fn prepare(
        context: ToolContext,
        call: Call,
        arguments: Arguments,
    ) -> Result<Prepared, Outcome> {
        let reason = format!("reads skill `{}`", arguments.name);
        Ok(read_only(
            reason,
            act(move || read(&context.skills.current(), &arguments.name, &call.facts)),
        ))
    }
}

fn read(skills: &Skills, name: &str, facts: &TaskFacts) -> Outcome {
    let viewer = facts.viewer;
    match skills.get(name) {
        Some(skill)
            if skill.is_offered_to(viewer)
                && skill.meta.context == Context::Fork
                && facts.may_spawn =>
        {
            // Its instructions belong in another conversation (AX-032).
            Outcome::ok(format!(
                "The skill `{name}` is followed by a sub-agent: call `spawn_agent` with the task `/{name} WHAT \
                 IT IS APPLIED TO` and no other words. The sub-agent gets the instructions; you get what it \
                 comes to."
            ))
        }
        Some(skill) if skill.is_offered_to(viewer) => {
            let (name, hash) =
                (skill.meta.name.clone(), Some(content_hash(skill.content.as_bytes())));
            Outcome::ok(skill_text(skill)).with(Fact::SkillRead { name, hash })
        }
        Some(skill) if skill.is_reached_by(viewer) => Outcome::failure(format!(
            "skill `{name}` is used only when the user calls for it. Ask the user to run /{name}."
        )),
        // What is out of reach is not hinted at either.
        Some(_) | None => {
            let names: Vec<_> =
                skills.offered(viewer).map(|skill| skill.meta.name.as_str()).collect();
            let known = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            Outcome::failure(format!("there is no skill `{name}`. The skills are: {known}."))
        }
    }
}

fn skill_text(skill: &Skill) -> String {
    let mut text = neutralize(&skill.content);
    if !skill.resources.is_empty() {
        let names: Vec<_> =
            skill.resources.iter().take(MAX_NAMED).map(|file| file.name.as_str()).collect();
        let more = match skill.resources.len().saturating_sub(MAX_NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let files = names.join(", ") + &more;
        text.push_str(&format!(
            "\n[Other files of this skill, under /skills/{}/: {files}]\n",
            skill.meta.name
        ));
    }
    if let Some(tools) = &skill.meta.allowed_tools {
        let tools = tools.join(", ");
        text.push_str(&format!("\n[While you follow this skill, use only these tools: {tools}]\n"));
    }
    text
}
