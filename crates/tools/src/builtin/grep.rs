//! `grep`: lines in files that match a regular expression, by ripgrep's own libraries.

use std::fmt::Write as _;
use std::io::{self, Read};
use std::ops::ControlFlow;
use std::sync::Arc;

use grep_matcher::LineTerminator;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{
    BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkFinish, SinkMatch,
};
use schemars::JsonSchema;
use serde::Deserialize;
use windlass_core::outcome::{Outcome, Recovery};
use windlass_core::policy::{Assessment, Class, Risk};
use windlass_core::text::{plural, prefix};
use windlass_core::tool_name;

use super::glob::PathPattern;
use super::{Builtin, path_error, prepare_read, scan_act, unseen};
use crate::output::{readable, shown_name};
use crate::tool::{Call, Category, Prepared, ToolContext};
use crate::workspace::{FileKind, ScanEntry, ScanFilter, Stop, Workspace};

/// Matches shown where no limit is asked for.
const DEFAULT_MATCHES: usize = 200;
/// The most that can be asked for.
const MAX_MATCHES: u64 = 2_000;
/// The most lines around a match.
const MAX_CONTEXT: u64 = 20;
/// A longer line is cut: it is minified or data.
const MAX_LINE_BYTES: usize = 400;
/// A file with a line longer than this is data, and is not searched to its end.
const MAX_SEARCHED_LINE_BYTES: usize = 16 << 20;
/// How large a compiled pattern may get.
const MAX_REGEX_BYTES: usize = 10 << 20;

pub(super) struct Grep;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// The regular expression (Rust syntax), matched within lines.
    #[schemars(length(min = 1))]
    pattern: String,
    /// The file or directory to search. Default: where you started.
    path: Option<String>,
    /// Search only files that match this pattern, for example *.rs.
    glob: Option<String>,
    /// What to show. Default: `content`.
    output: Option<Output>,
    /// Lines to show before and after each match. Default: 0.
    #[schemars(range(max = 20))]
    context: Option<u64>,
    /// Ignore case. Default: false.
    ignore_case: Option<bool>,
    /// Take the pattern as plain text. Default: false.
    literal: Option<bool>,
    /// How many matching lines (or files) to show. Default: 200.
    #[schemars(range(min = 1, max = 2000))]
    limit: Option<u64>,
    /// Also search hidden files. Default: false.
    hidden: Option<bool>,
    /// Also search what git ignores. Default: false.
    ignored: Option<bool>,
}

#[derive(Clone, Copy, Deserialize, JsonSchema, PartialEq)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
enum Output {
    Content,
    Files,
    Count,
}

impl Builtin for Grep {
    type Arguments = Arguments;
    const NAME: &'static str = tool_name::GREP;
    const DESCRIPTION: &'static str = include_str!("descriptions/grep.md");
    const CATEGORY: Category = Category::FileSystem;
    const MIN_CLASS: (Class, Risk) = (Class::Read, Risk::Low);

    fn prepare(tools: ToolContext, _call: Call, arguments: Arguments) -> Result<Prepared, Outcome> {
        let regex = regex(&arguments)?;
        let layout = tools.workspace.layout();
        let files =
            arguments.glob.as_deref().map(|glob| PathPattern::parse(glob, layout)).transpose()?;
        let usual =
            Assessment::of(Class::Read, format!("searches files for `{}`", arguments.pattern));
        let path = arguments.path.clone().unwrap_or_else(|| ".".to_owned());
        let workspace = Arc::clone(&tools.workspace);
        let act = scan_act(move |stop| {
            Search::new(&arguments, regex, files).run(&tools.workspace, &arguments, stop)
        });
        Ok(prepare_read(&workspace, &path, usual, Recovery::Rerun, act))
    }
}

fn regex(arguments: &Arguments) -> Result<RegexMatcher, Outcome> {
    RegexMatcherBuilder::new()
        .case_insensitive(arguments.ignore_case.unwrap_or(false))
        .fixed_strings(arguments.literal.unwrap_or(false))
        .crlf(true)
        // The searcher looks at many lines at once: without this only the file's ends are line ends.
        .multi_line(true)
        .size_limit(MAX_REGEX_BYTES)
        .build(&arguments.pattern)
        .map_err(|error| {
            // The whole error draws the pattern; its last line says it.
            let text = error.to_string();
            let said = text.lines().last().unwrap_or(&text).trim_start_matches("error: ");
            Outcome::failure(format!(
                "`{}` is not a valid regular expression for single lines: {said}. Escape special \
                 characters, or set `literal`.",
                arguments.pattern
            ))
        })
}

/// A search under way.
struct Search {
    regex: RegexMatcher,
    files: Option<PathPattern>,
    searcher: Searcher,
    output: Output,
    limit: usize,
    text: String,
    /// Lines or files shown so far.
    shown: usize,
    matching_files: usize,
    /// Files that could not be opened or searched to their end.
    skipped: usize,
    /// Files with secrets that were left out.
    secret: usize,
    /// Whether the call names the one file to search.
    is_named: bool,
}

impl Search {
    fn new(arguments: &Arguments, regex: RegexMatcher, files: Option<PathPattern>) -> Self {
        let context = usize::try_from(arguments.context.unwrap_or(0).min(MAX_CONTEXT)).unwrap_or(0);
        let limit = arguments.limit.map(|limit| limit.min(MAX_MATCHES));
        let searcher = SearcherBuilder::new()
            .line_number(true)
            .line_terminator(LineTerminator::crlf())
            .before_context(context)
            .after_context(context)
            .binary_detection(BinaryDetection::quit(0))
            .heap_limit(Some(MAX_SEARCHED_LINE_BYTES))
            .build();
        Self {
            regex,
            files,
            searcher,
            output: arguments.output.unwrap_or(Output::Content),
            limit: limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(DEFAULT_MATCHES),
            text: String::new(),
            shown: 0,
            matching_files: 0,
            skipped: 0,
            secret: 0,
            is_named: false,
        }
    }

    fn run(mut self, workspace: &Workspace, arguments: &Arguments, stop: &Stop) -> Outcome {
        let shown = ScanFilter {
            hidden: arguments.hidden.unwrap_or(false),
            ignored: arguments.ignored.unwrap_or(false),
        };
        let start = arguments.path.as_deref().unwrap_or(".");
        self.is_named = workspace.kind(start) == FileKind::Secret;
        let scanned = workspace.scan(start, shown, stop, &mut |entry| self.file(entry, stop));
        let scanned = match scanned {
            Ok(scanned) => scanned,
            Err(error) => return path_error(error),
        };
        let mut text = self.text;
        if self.matching_files == 0 {
            text = format!("No matches for `{}`.", arguments.pattern);
        } else if self.shown >= self.limit {
            let _ = write!(
                text,
                "\n[stopped after {}; narrow the pattern, `path` or `glob`, or raise `limit`]",
                plural(
                    self.shown,
                    if self.output == Output::Content { "matching line" } else { "file" }
                )
            );
        }
        if self.skipped > 0 {
            let _ = write!(text, "\n[files that could not be searched: {}]", self.skipped);
        }
        if self.secret > 0 {
            let files = plural(self.secret, "file");
            let _ = write!(text, "\n[not searched: {files} with secrets; name one with `path`]");
        }
        text.push_str(&unseen(scanned));
        Outcome::ok(text)
    }

    fn file(&mut self, entry: &ScanEntry<'_>, stop: &Stop) -> ControlFlow<()> {
        let wanted = self.files.as_ref().is_none_or(|files| files.is_match(entry.below));
        if !wanted || !entry.is_file() {
            return ControlFlow::Continue(());
        }
        // A person was asked about one that is named; one that is come across stays closed.
        if !self.is_named && entry.is_secret() {
            self.secret += 1;
            return ControlFlow::Continue(());
        }
        let Ok(opened) = entry.open() else {
            self.skipped += 1;
            return ControlFlow::Continue(());
        };
        let mut found = Matches {
            lines: String::new(),
            count: 0,
            binary: false,
            stop_after: match self.output {
                Output::Content => self.limit - self.shown,
                Output::Files => 1,
                Output::Count => usize::MAX,
            },
            keep: self.output == Output::Content,
        };
        // A file that grows while it is searched would have no end.
        let content = Stoppable { inner: opened.file.take(opened.size), stop };
        let searched = self.searcher.search_reader(&self.regex, content, &mut found);
        self.skipped += usize::from(searched.is_err());
        if searched.is_err() || found.binary || found.count == 0 {
            return ControlFlow::Continue(());
        }
        self.report(&shown_name(entry.path), &found);
        if self.shown >= self.limit { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn report(&mut self, path: &str, found: &Matches) {
        self.matching_files += 1;
        let text = &mut self.text;
        if !text.is_empty() {
            text.push('\n');
        }
        match self.output {
            Output::Content => {
                if !text.is_empty() {
                    text.push('\n');
                }
                let _ = write!(text, "{path}\n{}", found.lines.trim_end_matches('\n'));
                self.shown += found.count;
            }
            Output::Files => {
                text.push_str(path);
                self.shown += 1;
            }
            Output::Count => {
                let _ = write!(text, "{path}: {}", found.count);
                self.shown += 1;
            }
        }
    }
}

/// A file's content that ends when nobody waits for it any more.
struct Stoppable<'a, R> {
    inner: R,
    stop: &'a Stop,
}

impl<R: Read> Read for Stoppable<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.stop.is_stopped() { Ok(0) } else { self.inner.read(buffer) }
    }
}

/// What one file holds.
struct Matches {
    lines: String,
    count: usize,
    binary: bool,
    stop_after: usize,
    keep: bool,
}

impl Matches {
    fn line(&mut self, number: Option<u64>, mark: char, bytes: &[u8]) {
        if !self.keep {
            return;
        }
        let line = bytes.strip_suffix(b"\n").unwrap_or(bytes);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let head = &line[..line.len().min(MAX_LINE_BYTES + 4)];
        let text = readable(head);
        let cut = if line.len() > MAX_LINE_BYTES { "… [line cut]" } else { "" };
        let text = if cut.is_empty() { &text } else { prefix(&text, MAX_LINE_BYTES) };
        let _ = writeln!(self.lines, "{}{mark}{text}{cut}", number.unwrap_or(0));
    }
}

impl Sink for Matches {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> Result<bool, io::Error> {
        self.count += 1;
        self.line(found.line_number(), ':', found.bytes());
        Ok(self.count < self.stop_after)
    }

    fn context(&mut self, _: &Searcher, around: &SinkContext<'_>) -> Result<bool, io::Error> {
        self.line(around.line_number(), '-', around.bytes());
        Ok(true)
    }

    fn context_break(&mut self, _: &Searcher) -> Result<bool, io::Error> {
        if self.keep {
            self.lines.push_str("--\n");
        }
        Ok(true)
    }

    fn finish(&mut self, _: &Searcher, finish: &SinkFinish) -> Result<(), io::Error> {
        self.binary = finish.binary_byte_offset().is_some();
        Ok(())
    }
}
