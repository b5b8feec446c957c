//! `write`: a whole file, new or replaced.

use schemars::JsonSchema;
use serde::Deserialize;
use windlass_core::outcome::{Fact, FileChange, Outcome, Recovery};
use windlass_core::policy::{Assessment, Class, Risk};

use super::{Builtin, act, counted, failed};
use crate::tool::{Call, Category, Prepared, World};
use crate::workspace::{Purpose, Replacement, content_hash};

pub(super) struct Write;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// The file, relative to /workspace. Directories above it are made.
    path: String,
    /// The whole new content.
    content: String,
}

impl Builtin for Write {
    type Arguments = Arguments;
    const NAME: &'static str = "write";
    const DESCRIPTION: &'static str = include_str!("descriptions/write.md");
    const CATEGORY: Category = Category::FileSystem;
    const LEAST: (Class, Risk) = (Class::Edit, Risk::Medium);

    fn prepare(world: World, call: Call, given: Arguments) -> Result<Prepared, Outcome> {
        let Arguments { path: asked, content } = given;
        let current = world.workspace.look(&asked, Purpose::Agent).map_err(failed)?;
        let known = call.facts.known_files.get(&current.path);
        let (path, before) = (current.path, current.hash);
        let empty = content_hash(b"");
        let assessment = match &before {
            None => edits(format!("creates `{path}`")),
            Some(now) if known == Some(now) || *now == empty => edits(format!("replaces `{path}`")),
            Some(_) => Assessment::of(
                Class::Opaque,
                format!("replaces `{path}`, whose current version has not been read in this task"),
            ),
        };
        let after = content_hash(content.as_bytes());
        let verb = if before.is_some() { "Replaced" } else { "Created" };
        let outcome = Outcome::ok(format!(
            "{verb} `{path}` ({}, {}).",
            counted(content.len(), "byte"),
            counted(content.lines().count(), "line")
        ))
        .with(Fact::FileChanged { path: path.clone(), hash: after.clone(), diff: None });
        let change = FileChange { path: path.clone(), before: before.clone(), after };
        let recovery = Recovery::Verify { change, outcome: Box::new(outcome.clone()) };
        let act = act(move || {
            let new = Replacement {
                call: call.id,
                path: &asked,
                before: before.as_deref(),
                content: content.as_bytes(),
                purpose: Purpose::Agent,
            };
            world.workspace.replace(new).map_or_else(failed, |()| outcome)
        });
        Ok(Prepared { assessment, recovery, act })
    }
}

fn edits(reason: String) -> Assessment {
    Assessment::of(Class::Edit, reason).at_least(Risk::Medium)
}
