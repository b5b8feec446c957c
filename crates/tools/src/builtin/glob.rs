//! `glob`: files by name pattern.

use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use globset::GlobBuilder;
use regex_automata::meta;
use regex_automata::nfa::thompson::WhichCaptures;
use regex_automata::util::syntax;
use schemars::JsonSchema;
use serde::Deserialize;
use windlass_core::layout::{Layout, WORKSPACE};
use windlass_core::outcome::Outcome;
use windlass_core::policy::{Class, Risk};
use windlass_core::text::plural;
use windlass_core::tool_name;

use super::{Builtin, path_error, read_only, scan_act, unseen};
use crate::output::shown_name;
use crate::tool::{Call, Category, Prepared, ToolContext};
use crate::workspace::{ScanFilter, Stop, Workspace};

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

    fn prepare(
        context: ToolContext,
        _call: Call,
        arguments: Arguments,
    ) -> Result<Prepared, Outcome> {
        let pattern = PathPattern::parse(&arguments.pattern, context.workspace.layout())?;
        let reason = format!("lists files that match `{}`", arguments.pattern);
        let act = scan_act(move |stop| list(&context.workspace, &arguments, &pattern, stop));
        Ok(read_only(reason, act))
    }
}

/// A pattern of paths that a model wrote.
///
/// `globset` reads the pattern; its own matcher compiles whole automata ahead, which takes longer than most searches.
/// This one compiles what a search comes to.
pub(super) struct PathPattern {
    regex: meta::Regex,
}

impl PathPattern {
    pub(super) fn parse(pattern: &str, layout: &Layout) -> Result<Self, Outcome> {
        let tops = [&*layout.start(), layout.top(), WORKSPACE, "."].map(|top| format!("{top}/"));
        let below =
            tops.iter().find_map(|top| pattern.strip_prefix(top.as_str())).unwrap_or(pattern);
        let anywhere = match below {
            directory if directory.ends_with('/') => format!("{directory}**"),
            path if path.contains('/') => path.to_owned(),
            name => format!("**/{name}"),
        };
        let invalid = |why: &dyn std::fmt::Display| {
            Outcome::failure(format!("`{pattern}` is not a valid pattern: {why}."))
        };
        let glob = GlobBuilder::new(&anywhere).literal_separator(true).build();
        let glob = glob.map_err(|error| invalid(error.kind()))?;
        let config = meta::Config::new()
            .dfa(false)
            .onepass(false)
            .which_captures(WhichCaptures::Implicit)
            .utf8_empty(false);
        // File names are bytes, and may hold line breaks.
        let syntax = syntax::Config::new().utf8(false).dot_matches_new_line(true);
        let regex = meta::Builder::new().configure(config).syntax(syntax).build(glob.regex());
        Ok(Self { regex: regex.map_err(|error| invalid(&error))? })
    }

    pub(super) fn is_match(&self, path: impl AsRef<Path>) -> bool {
        self.regex.is_match(path.as_ref().as_os_str().as_bytes())
    }
}

/// Where a pattern without `path` is looked for: one that is written in full may mean all of the workspace.
fn start_of(pattern: &str, layout: &Layout) -> String {
    let is_in = |top: &str| pattern.starts_with(&format!("{top}/"));
    if !is_in(&layout.start()) && (is_in(layout.top()) || is_in(WORKSPACE)) {
        return layout.top().to_owned();
    }
    ".".to_owned()
}

fn list(
    workspace: &Workspace,
    arguments: &Arguments,
    pattern: &PathPattern,
    stop: &Stop,
) -> Outcome {
    let names_hidden =
        arguments.pattern.split('/').any(|part| part.starts_with('.') && part.len() > 1);
    let shown = ScanFilter {
        hidden: arguments.hidden.unwrap_or(names_hidden),
        ignored: arguments.ignored.unwrap_or(false),
    };
    let start =
        arguments.path.clone().unwrap_or_else(|| start_of(&arguments.pattern, workspace.layout()));
    let mut paths = Vec::new();
    let mut total = 0;
    let scanned = workspace.scan(&start, shown, stop, &mut |entry| {
        if pattern.is_match(entry.below) {
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
        0 => format!("No file matches `{}`.", arguments.pattern),
        _ => paths.join("\n"),
    };
    if total > paths.len() {
        let more = plural(total - paths.len(), "file");
        text.push_str(&format!("\n[and {more} more; narrow the pattern or the path]"));
    }
    text.push_str(&unseen(scanned));
    Outcome::ok(text)
}
