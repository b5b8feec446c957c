//! `save_memo`: a note under `.memo/` that outlives the context (ES-174…177).

use schemars::JsonSchema;
use serde::Deserialize;
use windlass_core::outcome::{Fact, FileChange, Outcome, Recovery};
use windlass_core::policy::{Assessment, Class, Risk};

use super::{Builtin, act, counted, failed};
use crate::tool::{Call, Category, Prepared, World};
use crate::workspace::{MEMO_DIRECTORY, Purpose, Replacement, content_hash};

/// The largest memo; a note that is longer belongs into a file of its own.
pub(super) const MAX_MEMO_BYTES: u64 = 4 << 20;

pub(super) struct SaveMemo;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// Name of the memo under .memo/, for example findings.md or decisions.md.
    #[schemars(length(min = 1))]
    filename: String,
    /// What to remember.
    content: String,
    /// Add to the memo instead of replacing it. Default: false.
    append: Option<bool>,
}

impl Builtin for SaveMemo {
    type Arguments = Arguments;
    const NAME: &'static str = "save_memo";
    const DESCRIPTION: &'static str = include_str!("descriptions/save_memo.md");
    const CATEGORY: Category = Category::ContextEngineering;
    const LEAST: (Class, Risk) = (Class::Note, Risk::Low);

    fn prepare(world: World, call: Call, given: Arguments) -> Result<Prepared, Outcome> {
        let workspace = world.workspace;
        let asked = memo_path(&given.filename);
        let current = workspace.look(&asked, Purpose::Agent).map_err(failed)?;
        let (path, before) = (current.path, current.hash);
        if !path.starts_with(&format!("{MEMO_DIRECTORY}/")) {
            return Err(Outcome::error(format!(
                "Error: `{}` is not under {MEMO_DIRECTORY}/. Give a plain name such as findings.md.",
                given.filename
            )));
        }
        let append = given.append.unwrap_or(false);
        let mut content = match before {
            Some(_) if append => workspace.read_all(&asked, MAX_MEMO_BYTES).map_err(failed)?,
            _ => Vec::new(),
        };
        // What was read may be newer than what was looked at; the hash is of what is appended to.
        let before = if content.is_empty() { before } else { Some(content_hash(&content)) };
        if content.last().is_some_and(|&last| last != b'\n') {
            content.push(b'\n');
        }
        content.extend_from_slice(given.content.as_bytes());
        if content.len() as u64 > MAX_MEMO_BYTES {
            return Err(Outcome::error(format!(
                "Error: `{path}` would be {} bytes, and a memo has at most {MAX_MEMO_BYTES}. Start another \
                 memo.",
                content.len()
            )));
        }
        let after = content_hash(&content);
        let verb = if append { "Appended to" } else { "Saved" };
        let outcome = Outcome::ok(format!("{verb} `{path}` ({}).", counted(content.len(), "byte")))
            .with(Fact::FileChanged { path: path.clone(), hash: after.clone(), diff: None });
        let change = FileChange { path: path.clone(), before: before.clone(), after };
        let recovery = Recovery::Verify { change, outcome: Box::new(outcome.clone()) };
        let act = act(move || {
            let new = Replacement {
                call: call.id,
                path: &asked,
                before: before.as_deref(),
                content: &content,
                purpose: Purpose::Agent,
            };
            workspace.replace(new).map_or_else(failed, |()| outcome)
        });
        let assessment = Assessment::of(Class::Note, format!("saves memo `{path}`"));
        Ok(Prepared { assessment, recovery, act })
    }
}

/// A memo's path; models like to name the directory too.
fn memo_path(filename: &str) -> String {
    let name = filename.strip_prefix("/workspace/").unwrap_or(filename);
    let name = name.strip_prefix(".memo/").unwrap_or(name);
    if name.starts_with('/') { name.to_owned() } else { format!("{MEMO_DIRECTORY}/{name}") }
}
