//! `edit`: one piece of text in a file for another.

use schemars::JsonSchema;
use serde::Deserialize;
use windlass_core::outcome::Outcome;
use windlass_core::policy::{Assessment, Class, Risk};
use windlass_core::text::plural;
use windlass_core::tool_name;

use super::rewrite::{Rewrite, refuse_marks};
use super::{Builtin, diff, path_error};
use crate::tool::{Call, Category, Prepared, ToolContext};
use crate::workspace::{FileVersion, Purpose, content_hash};

/// The largest file that is edited; larger ones are data, not text someone edits.
pub(super) const MAX_EDITED_BYTES: u64 = 16 << 20;

pub(super) struct Edit;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// The file, relative to where you started.
    path: String,
    /// The text to replace, exactly as it is in the file, without line numbers.
    #[schemars(length(min = 1))]
    old_string: String,
    /// The text to put in its place; must differ from old_string.
    new_string: String,
    /// Replace every occurrence instead of exactly one. Default: false.
    replace_all: Option<bool>,
}

impl Builtin for Edit {
    type Arguments = Arguments;
    const NAME: &'static str = tool_name::EDIT;
    const DESCRIPTION: &'static str = include_str!("descriptions/edit.md");
    const CATEGORY: Category = Category::FileSystem;
    const MIN_CLASS: (Class, Risk) = (Class::Edit, Risk::Low);

    fn prepare(
        context: ToolContext,
        call: Call,
        arguments: Arguments,
    ) -> Result<Prepared, Outcome> {
        refuse_marks(&arguments.new_string)?;
        let workspace = context.workspace;
        let target = workspace.write_target(&arguments.path, Purpose::Agent).map_err(path_error)?;
        let FileVersion { path, kind, .. } = target;
        let bytes = workspace.read_all(&arguments.path, MAX_EDITED_BYTES).map_err(path_error)?;
        let before = content_hash(&bytes);
        refuse_unseen(&path, call.facts.known_files.get(&path), &before, "edit")?;
        let old = String::from_utf8(bytes).map_err(|_| {
            Outcome::failure(format!("`{path}` is not UTF-8 text and cannot be edited."))
        })?;
        let (new, count) = replaced(&path, &old, &arguments)?;
        let usual = Assessment::of(Class::Edit, format!("edits `{path}`"));
        let rewrite = Rewrite {
            assessment: kind.change("edits", &path, usual),
            text: format!("Edited `{path}` in {}.", plural(count, "place")),
            current: FileVersion { path, hash: Some(before), kind },
            diff: Some(diff::whole(&old, &new)),
            content: new.into_bytes(),
            purpose: Purpose::Agent,
            fact: None,
        };
        Ok(rewrite.prepare(workspace, call.id))
    }
}

/// A change starts from what the agent has seen: a matching fragment says nothing about the rest, and a whole new
/// content loses what was there. `what` is the change that the agent wants.
pub(super) fn refuse_unseen(
    path: &str,
    known: Option<&String>,
    now: &String,
    what: &str,
) -> Result<(), Outcome> {
    match known {
        Some(known) if known == now => Ok(()),
        Some(_) => Err(Outcome::failure(format!(
            "`{path}` has changed since you last read it. Read it again, then repeat the {what}."
        ))),
        None => Err(Outcome::failure(format!(
            "`{path}` has not been read in this task. Read it first, then repeat the {what}."
        ))),
    }
}

/// The new content and how many places changed.
fn replaced(path: &str, content: &str, arguments: &Arguments) -> Result<(String, usize), Outcome> {
    let [old, new] =
        [&arguments.old_string, &arguments.new_string].map(|text| with_endings_of(content, text));
    if old == new {
        return Err(Outcome::failure("old_string and new_string are the same; nothing to edit."));
    }
    let all = arguments.replace_all.unwrap_or(false);
    match content.matches(&*old).count() {
        0 => Err(Outcome::failure(format!(
            "old_string is not in `{path}`. It must match exactly, white space included, and without \
             the line numbers that read shows. Read the place again."
        ))),
        1 => Ok((content.replacen(&*old, &new, 1), 1)),
        count if all => Ok((content.replace(&*old, &new), count)),
        count => Err(Outcome::failure(format!(
            "old_string is in `{path}` {count} times. Give more of the text around it so that it is \
             unique, or set replace_all."
        ))),
    }
}

/// A model writes `\n`; where every line of a file ends in CRLF, so does what is put into it.
fn with_endings_of(content: &str, text: &str) -> String {
    let crlf = content.matches("\r\n").count();
    if crlf > 0 && crlf == content.matches('\n').count() {
        text.replace("\r\n", "\n").replace('\n', "\r\n")
    } else {
        text.to_owned()
    }
}
