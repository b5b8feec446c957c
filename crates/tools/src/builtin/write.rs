//! `write`: a whole file, new or replaced.

use schemars::JsonSchema;
use serde::Deserialize;
use windlass_core::outcome::Outcome;
use windlass_core::policy::{Assessment, Class, Risk};
use windlass_core::text::plural;
use windlass_core::tool_name;

use super::edit::{MAX_EDITED_BYTES, refuse_unseen};
use super::rewrite::{Rewrite, refuse_marks};
use super::{Builtin, diff, path_error};
use crate::tool::{Call, Category, Prepared, ToolContext};
use crate::workspace::{Purpose, Workspace, content_hash};

pub(super) struct Write;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// The file, relative to where you started. Directories above it are made.
    path: String,
    /// The whole new content.
    content: String,
}

impl Builtin for Write {
    type Arguments = Arguments;
    const NAME: &'static str = tool_name::WRITE;
    const DESCRIPTION: &'static str = include_str!("descriptions/write.md");
    const CATEGORY: Category = Category::FileSystem;
    const MIN_CLASS: (Class, Risk) = (Class::Edit, Risk::Medium);

    fn prepare(
        context: ToolContext,
        call: Call,
        arguments: Arguments,
    ) -> Result<Prepared, Outcome> {
        let Arguments { path: asked, content } = arguments;
        refuse_marks(&content)?;
        let current = context.workspace.write_target(&asked, Purpose::Agent).map_err(path_error)?;
        let (path, known) = (&current.path, call.facts.known_files.get(&current.path));
        let verb = match &current.hash {
            None => "creates",
            // Nothing is lost with an empty file.
            Some(now) if *now == content_hash(b"") => "replaces",
            Some(now) => {
                refuse_unseen(path, known, now, "write")?;
                "replaces"
            }
        };
        let usual = Assessment::of(Class::Edit, format!("{verb} `{path}`")).at_least(Risk::Medium);
        let assessment = current.kind.change(verb, path, usual);
        let verb = if current.hash.is_some() { "Replaced" } else { "Created" };
        let bytes = plural(content.len(), "byte");
        let text =
            format!("{verb} `{path}` ({bytes}, {}).", plural(content.lines().count(), "line"));
        let change = change(&context.workspace, &asked, current.hash.is_some(), &content);
        let rewrite = Rewrite {
            current,
            content: content.into_bytes(),
            purpose: Purpose::Agent,
            assessment,
            text,
            diff: Some(change),
            fact: None,
        };
        Ok(rewrite.prepare(context.workspace, call.id))
    }
}

/// What the file loses and gains. A file that is not text, or too large to compare, is named as such.
fn change(workspace: &Workspace, path: &str, exists: bool, new: &str) -> String {
    if !exists {
        return diff::whole("", new);
    }
    let old = workspace.read_all(path, MAX_EDITED_BYTES).ok();
    match old.and_then(|bytes| String::from_utf8(bytes).ok()) {
        Some(old) => diff::whole(&old, new),
        None => format!(
            "[the whole old content, which is not text or too large to show, is replaced]\n{}",
            diff::whole("", new)
        ),
    }
}
