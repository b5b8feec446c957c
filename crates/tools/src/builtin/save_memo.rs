//! `save_memo`: a note that outlives the context (ES-174…177).

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use windlass_core::layout::{Layout, Own, WORKSPACE};
use windlass_core::outcome::Outcome;
use windlass_core::policy::{Assessment, Class, Risk};
use windlass_core::text::plural;
use windlass_core::tool_name;

use super::rewrite::Rewrite;
use super::{Builtin, path_error};
use crate::tool::{Call, Category, Prepared, Subject, ToolContext};
use crate::workspace::{Purpose, content_hash};

/// The largest memo; a note that is longer belongs in a file of its own.
pub(super) const MAX_MEMO_BYTES: u64 = 4 << 20;

pub(super) struct SaveMemo;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// Name of the memo, for example findings.md or decisions.md.
    #[schemars(length(min = 1))]
    filename: String,
    /// What to remember.
    content: String,
    /// Add to the memo instead of replacing it. Default: false.
    append: Option<bool>,
}

impl Builtin for SaveMemo {
    type Arguments = Arguments;
    const NAME: &'static str = tool_name::SAVE_MEMO;
    const DESCRIPTION: &'static str = include_str!("descriptions/save_memo.md");
    const CATEGORY: Category = Category::ContextEngineering;
    const MIN_CLASS: (Class, Risk) = (Class::Note, Risk::Low);
    const IS_NOTE: bool = true;

    fn subject(arguments: &Value) -> Subject {
        let text = |key: &str| arguments[key].as_str().unwrap_or_default().to_owned();
        Subject::Note { name: text("filename"), content: text("content") }
    }

    fn prepare(
        context: ToolContext,
        call: Call,
        arguments: Arguments,
    ) -> Result<Prepared, Outcome> {
        let workspace = context.workspace;
        let memos = workspace.layout().path(Own::Memo);
        let asked = memo_path(&arguments.filename, workspace.layout());
        let mut current = workspace.write_target(&asked, Purpose::Agent).map_err(path_error)?;
        if !current.path.starts_with(&format!("{memos}/")) {
            return Err(Outcome::failure(format!(
                "`{}` is not under {memos}/. Give a plain name such as findings.md.",
                arguments.filename
            )));
        }
        let append = arguments.append.unwrap_or(false);
        let mut content = Vec::new();
        if append && current.hash.is_some() {
            content = workspace.read_all(&asked, MAX_MEMO_BYTES).map_err(path_error)?;
            // What was read may be newer than what was looked at.
            current.hash = Some(content_hash(&content));
        }
        if content.last().is_some_and(|&last| last != b'\n') {
            content.push(b'\n');
        }
        content.extend_from_slice(arguments.content.as_bytes());
        let (path, size) = (&current.path, content.len());
        if size as u64 > MAX_MEMO_BYTES {
            return Err(Outcome::failure(format!(
                "`{path}` would be {size} bytes, and a memo has at most {MAX_MEMO_BYTES}. Start \
                 another memo."
            )));
        }
        let verb = if append { "Appended to" } else { "Saved" };
        let rewrite = Rewrite {
            assessment: Assessment::of(Class::Note, format!("saves memo `{path}`")),
            text: format!("{verb} `{path}` ({}).", plural(size, "byte")),
            current,
            content,
            purpose: Purpose::Agent,
            diff: None,
            fact: None,
        };
        Ok(rewrite.prepare(workspace, call.id))
    }
}

/// A memo's path; models like to name the directory too.
fn memo_path(filename: &str, layout: &Layout) -> String {
    let inner = layout.inner(Own::Memo);
    let names = [
        layout.absolute(Own::Memo),
        layout.path(Own::Memo),
        format!("{WORKSPACE}/{inner}"),
        inner.rsplit('/').next().unwrap_or(&inner).to_owned(),
        inner,
    ];
    let below = |directory: &String| filename.strip_prefix(directory.as_str())?.strip_prefix('/');
    let name = names.iter().find_map(below).unwrap_or(filename);
    if name.starts_with('/') {
        name.to_owned()
    } else {
        format!("{}/{name}", layout.path(Own::Memo))
    }
}
