//! `publish_deliverable`: a file of the workspace that goes into the result (ES-223…227).

use std::io::Read as _;
use std::sync::Arc;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use windlass_core::command::{Deliverable, DeliverableType};
use windlass_core::outcome::{Fact, Outcome, Recovery};
use windlass_core::policy::{Assessment, Class, Risk};
use windlass_core::text::plural;
use windlass_core::tool_name;

use super::{Builtin, act, path_error, prepare_read};
use crate::tool::{Call, Category, Prepared, ToolContext};
use crate::workspace::{Error, OpenFile, Root, Workspace};

/// A text up to this size is put into the result itself.
const MAX_INLINE_BYTES: u64 = 32 * 1024;

pub(super) struct PublishDeliverable;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// The file, relative to where you started.
    filepath: String,
    /// What it is, for the user.
    #[schemars(length(min = 1))]
    description: String,
    /// What kind of thing it is.
    #[serde(rename = "type")]
    #[schemars(schema_with = "types")]
    kind: DeliverableType,
}

fn types(_: &mut SchemaGenerator) -> Schema {
    let words: Vec<_> = DeliverableType::ALL.iter().map(|kind| kind.as_str()).collect();
    json_schema!({ "type": "string", "enum": words })
}

impl Builtin for PublishDeliverable {
    type Arguments = Arguments;
    const NAME: &'static str = tool_name::PUBLISH_DELIVERABLE;
    const DESCRIPTION: &'static str = include_str!("descriptions/publish_deliverable.md");
    const CATEGORY: Category = Category::Output;
    const MIN_CLASS: (Class, Risk) = (Class::Note, Risk::Low);
    const IS_ALWAYS_ALLOWED: bool = true;
    const FILE_ARGUMENT: &'static str = "filepath";

    fn prepare(
        context: ToolContext,
        _call: Call,
        arguments: Arguments,
    ) -> Result<Prepared, Outcome> {
        // What cannot be published is said before anything is decided.
        open(&context.workspace, &arguments.filepath)?;
        let usual = Assessment::of(Class::Note, format!("publishes `{}`", arguments.filepath));
        let (workspace, path) = (Arc::clone(&context.workspace), arguments.filepath.clone());
        let act = act(move || publish(&context.workspace, arguments));
        Ok(prepare_read(&workspace, &path, usual, Recovery::Rerun, act))
    }
}

fn open(workspace: &Workspace, path: &str) -> Result<OpenFile, Outcome> {
    match workspace.read(path) {
        Ok(opened) if matches!(opened.place, Root::Workspace | Root::Added(_)) => Ok(opened),
        Ok(_) => Err(Outcome::failure(format!(
            "`{path}` is not a file of the workspace. Copy it there first, then publish the copy."
        ))),
        Err(error @ Error::NotFound { .. }) => {
            Err(Outcome::failure(format!("{error}. Write the file first, then publish it.")))
        }
        Err(error) => Err(path_error(error)),
    }
}

fn publish(workspace: &Workspace, arguments: Arguments) -> Outcome {
    let opened = match open(workspace, &arguments.filepath) {
        Ok(opened) => opened,
        Err(outcome) => return outcome,
    };
    let OpenFile { path, size, file, .. } = opened;
    let mut bytes = Vec::new();
    if size <= MAX_INLINE_BYTES
        && let Err(source) = file.take(MAX_INLINE_BYTES + 1).read_to_end(&mut bytes)
    {
        return path_error(Error::Io { path, source });
    }
    // It may have grown since; what is inline is whole or not there.
    let size = size.max(bytes.len() as u64);
    let content = String::from_utf8(bytes)
        .ok()
        .filter(|text| size <= MAX_INLINE_BYTES && !text.contains('\0'));
    let Arguments { description, kind, .. } = arguments;
    let bytes = plural(usize::try_from(size).unwrap_or(usize::MAX), "byte");
    let text = format!("Published `{path}` as {kind} ({bytes}).");
    let size_bytes = Some(size);
    let deliverable = Deliverable { filepath: path, description, kind, content, size_bytes };
    Outcome::ok(text).with(Fact::Published(deliverable))
}
