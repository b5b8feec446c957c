//! `glob`: files by name pattern.

use std::ops::ControlFlow;

use globset::{GlobBuilder, GlobMatcher};
use schemars::JsonSchema;
use serde::Deserialize;
use windlass_core::layout::{Layout, WORKSPACE};
use windlass_core::outcome::Outcome;
use windlass_core::policy::{Class, Risk};
use windlass_core::tool_name;

use super::{Builtin, counted, path_error, read_only, scanning, unseen};
use crate::output::shown_name;
use crate::tool::{Call, Category, Prepared, ToolContext};
use crate::workspace::{Shown, Stop, Workspace};

/// Paths in one result: a screenful for a model, and a reason to narrow the pattern.
const MAX_PATHS: usize = 500;

pub(super) struct Glob;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// Pattern of the path below `path`; without a slash, of the name at any depth.
    #[schemars(length(min = 1))]
    pattern: String,
    /// The directory to look in. Default: where you started.
    path: Option<String>,
    /// Also hidden files. Default: false, unless the pattern names one.
    hidden: Option<bool>,
    /// Also what git ignores. Default: false.
    ignored: Option<bool>,
}

impl Builtin for Glob {
    type Arguments = Arguments;
    const NAME: &'static str = tool_name::GLOB;
    const DESCRIPTION: &'static str = include_str!("descriptions/glob.md");
    const CATEGORY: Category = Category::FileSystem;
    const MIN_CLASS: (Class, Risk) = (Class::Read, Risk::Low);

    fn prepare(context: ToolContext, _call: Call, given: Arguments) -> Result<Prepared, Outcome> {
        let matcher = matcher(&given.pattern, context.workspace.layout())?;
        let reason = format!("lists files that match `{}`", given.pattern);
        let act = scanning(move |stop| list(&context.workspace, &given, &matcher, stop));
        Ok(read_only(reason, act))
    }
}

/// The matcher of a pattern that a model wrote.
pub(super) fn matcher(pattern: &str, layout: &Layout) -> Result<GlobMatcher, Outcome> {
    let tops = [&*layout.start(), layout.top(), WORKSPACE, "."].map(|top| format!("{top}/"));
    let below = tops.iter().find_map(|top| pattern.strip_prefix(top.as_str())).unwrap_or(pattern);
    let anywhere = match below {
        directory if directory.ends_with('/') => format!("{directory}**"),
        path if path.contains('/') => path.to_owned(),
        name => format!("**/{name}"),
    };
    GlobBuilder::new(&anywhere)
        .literal_separator(true)
        .build()
        .map(|glob| glob.compile_matcher())
        .map_err(|error| {
            Outcome::failure(format!("`{pattern}` is not a valid pattern: {}.", error.kind()))
        })
}

/// Where a pattern without `path` is looked for: one that is written in full may mean all of the workspace.
fn start_of(pattern: &str, layout: &Layout) -> String {
    let is_in = |top: &str| pattern.starts_with(&format!("{top}/"));
    if !is_in(&layout.start()) && (is_in(layout.top()) || is_in(WORKSPACE)) {
        return layout.top().to_owned();
    }
    ".".to_owned()
}

fn list(workspace: &Workspace, given: &Arguments, matcher: &GlobMatcher, stop: &Stop) -> Outcome {
    let names_hidden = given.pattern.split('/').any(|part| part.starts_with('.') && part.len() > 1);
    let shown = Shown {
        hidden: given.hidden.unwrap_or(names_hidden),
        ignored: given.ignored.unwrap_or(false),
    };
    let start = given.path.clone().unwrap_or_else(|| start_of(&given.pattern, workspace.layout()));
    let mut paths = Vec::new();
    let mut total = 0;
    let scanned = workspace.scan(&start, shown, stop, &mut |entry| {
        if matcher.is_match(entry.below) {
            total += 1;
            if paths.len() < MAX_PATHS {
                paths.push(shown_name(entry.path));
            }
        }
        ControlFlow::Continue(())
    });
    let scanned = match scanned {
        Ok(scanned) => scanned,
        Err(error) => return path_error(error),
    };
    let mut text = match total {
        0 => format!("No file matches `{}`.", given.pattern),
        _ => paths.join("\n"),
    };
    if total > paths.len() {
        let more = counted(total - paths.len(), "file");
        text.push_str(&format!("\n[and {more} more; narrow the pattern or the path]"));
    }
    text.push_str(&unseen(scanned));
    Outcome::ok(text)
}
