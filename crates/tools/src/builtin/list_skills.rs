//! `list_skills`: the skills a model may use on its own (ES-245).

use std::fmt::Write as _;

use schemars::JsonSchema;
use serde::Deserialize;
use windlass_core::outcome::Outcome;
use windlass_core::policy::{Class, Risk};
use windlass_core::tool_name;

use super::{Builtin, act, read_only};
use crate::tool::{Call, Category, Prepared, ToolContext};

pub(super) struct ListSkills;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {}

impl Builtin for ListSkills {
    type Arguments = Arguments;
    const NAME: &'static str = tool_name::LIST_SKILLS;
    const DESCRIPTION: &'static str = include_str!("descriptions/list_skills.md");
    const CATEGORY: Category = Category::Skills;
    const MIN_CLASS: (Class, Risk) = (Class::Read, Risk::Low);
    const IS_ALWAYS_ALLOWED: bool = true;

    fn prepare(context: ToolContext, call: Call, _given: Arguments) -> Result<Prepared, Outcome> {
        let act = act(move || {
            let mut text = String::new();
            for skill in context.skills.current().offered(call.facts.viewer) {
                let _ = writeln!(text, "- {}: {}", skill.meta.name, skill.meta.description);
            }
            let none = "There are no skills.".to_owned();
            Outcome::ok(if text.is_empty() { none } else { text })
        });
        Ok(read_only("lists the skills".to_owned(), act))
    }
}
