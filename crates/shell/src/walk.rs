//! Walks the syntax tree, following what the shell would know, and records every command found.
//!
//! Invariants:
//! - Where paths join, the state holds what either knew ([`State::join`]); a loop's body is looked at
//!   once more when it changed what the shell knows.
//! - Bounded: commands, nested texts and bytes parsed have limits; over one, the rest is opaque.

mod redirect;
mod simple;

use std::collections::BTreeMap;

use super::state::{Arg, Input, State, UNKNOWN};
use super::syntax::{Node, ParseFailure};
use super::{CommandAnalysis, Context, ShellCommand, Via, guard};
use windlass_core::policy::class::{Assessment, Class};

/// The most commands followed in one text, loops and function calls counted each time.
const MOST_COMMANDS: usize = 2_000;

/// The most arguments looked into in one text, counted again wherever they may be a command.
const MOST_ARGUMENTS: usize = 20_000;

/// The deepest commands inside commands: `sh -c "env nice sh -c '…'"`. Fits a 2 MiB stack.
const DEEPEST_TEXT: usize = 40;

/// The most bytes parsed for one reading; a text read again in a loop counts again.
const MOST_BYTES: usize = 4 * guard::LONGEST_TEXT;

/// The most lines looked at one by one in text that does not parse as a whole.
const MOST_SALVAGED: usize = 100;

/// How much stack there is to recurse on.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Stack {
    Usual,
    Deep,
}

pub(super) struct Walk<'c> {
    pub context: &'c Context,
    pub state: State,
    /// Commands found at this level so far.
    pub found: Vec<ShellCommand>,
    /// How a command met now is reached.
    pub via: Via,
    /// Functions and aliases being followed, outermost first.
    pub active: Vec<String>,
    /// Files this text has written so far, with their text where it is known.
    pub written: BTreeMap<String, Option<String>>,
    /// How many pipes and background jobs are around this point.
    pub forks: usize,
    depth: usize,
    commands: usize,
    judged: usize,
    bytes: usize,
    stack: Stack,
    /// Whether the whole text could be parsed.
    parsed: bool,
}

/// Reads a whole text.
pub(super) fn analyze(script: &str, context: &Context, stack: Stack) -> CommandAnalysis {
    let mut walk = Walk {
        context,
        state: State::new(&context.directory, &context.home),
        found: Vec::new(),
        via: Via::Direct,
        active: Vec::new(),
        written: BTreeMap::new(),
        forks: 0,
        depth: 0,
        commands: 0,
        judged: 0,
        bytes: 0,
        stack,
        parsed: true,
    };
    walk.script(script, Via::Direct);
    CommandAnalysis { parsed: walk.parsed, ..CommandAnalysis::new(walk.found) }
}

/// An entry for text that cannot be read.
pub(super) fn unreadable(text: &str, reason: &str) -> ShellCommand {
    ShellCommand {
        command: display_text(text),
        via: Via::Direct,
        assessment: Assessment::of(Class::Opaque, format!("cannot be read: {reason}")),
        words: Vec::new(),
        commands: Vec::new(),
    }
}

impl Walk<'_> {
    /// Reads text that a shell would run here, in the current shell.
    pub(super) fn script(&mut self, text: &str, via: Via) {
        match self.parse(text) {
            Ok(nodes) => self.nested(via, |walk| walk.list(&nodes)),
            Err(failure) => {
                self.parsed &= self.depth > 0;
                let via = std::mem::replace(&mut self.via, via);
                self.note_unreadable(text, &failure.0);
                self.salvage(text);
                self.via = via;
            }
        }
    }

    /// Bash runs each line before it reads the next, so lines before an error still run.
    fn salvage(&mut self, text: &str) {
        if text.len() > guard::LONGEST_TEXT {
            return;
        }
        for line in text.lines().take(MOST_SALVAGED).filter(|line| !line.trim().is_empty()) {
            if let Ok(nodes) = self.parse(line) {
                self.in_subshell(self.via.clone(), |walk| walk.list(&nodes));
            }
        }
    }

    /// Counts what is about to be parsed.
    pub(super) fn charge(&mut self, script: &str) -> Result<(), ParseFailure> {
        if script.len() > guard::LONGEST_TEXT {
            return guard::before_tokens(script);
        }
        self.bytes += script.len();
        if self.bytes > MOST_BYTES {
            return Err(ParseFailure::because("there is too much text in it"));
        }
        if self.stack == Stack::Usual && guard::needs_room(script) {
            return Err(ParseFailure::because("it is too deeply nested"));
        }
        Ok(())
    }

    /// Runs `walk` one level deeper, in the same shell.
    pub(super) fn nested(&mut self, via: Via, walk: impl FnOnce(&mut Self)) {
        if self.depth >= DEEPEST_TEXT {
            return self.note_unreadable("…", "commands are nested too deeply");
        }
        self.depth += 1;
        let via = std::mem::replace(&mut self.via, via);
        walk(self);
        self.via = via;
        self.depth -= 1;
    }

    /// The same in a shell of its own: its changes end with it.
    pub(super) fn in_subshell(&mut self, via: Via, walk: impl FnOnce(&mut Self)) {
        let state = self.state.clone();
        self.nested(via, walk);
        self.state = state;
    }

    pub(super) fn note_unreadable(&mut self, text: &str, reason: &str) {
        let via = self.via.clone();
        self.found.push(ShellCommand { via, ..unreadable(text, reason) });
    }

    pub(super) fn list(&mut self, nodes: &[Node]) {
        for node in nodes {
            self.node(node);
        }
    }

    fn node(&mut self, node: &Node) {
        match node {
            Node::Simple(parts) => self.simple(parts),
            Node::Pipeline(nodes) => self.pipeline(nodes),
            Node::AndOr(nodes) => {
                let Some((first, rest)) = nodes.split_first() else { return };
                self.node(first);
                let before = self.state.clone();
                self.list(rest);
                self.state.join(before);
            }
            Node::Subshell(nodes, redirects) => self.with_redirects(redirects, |walk| {
                walk.forks += 1;
                walk.in_subshell(Via::Subshell, |walk| walk.list(nodes));
                walk.forks -= 1;
            }),
            Node::Braces(nodes, redirects) => {
                self.with_redirects(redirects, |walk| walk.list(nodes))
            }
            Node::Choice(words, lists, redirects) => self.with_redirects(redirects, |walk| {
                for word in words {
                    walk.expand_to_text(word);
                }
                walk.choices(lists);
            }),
            Node::Loop { each, lists, redirects } => self.with_redirects(redirects, |walk| {
                walk.loop_over(each.as_ref(), lists);
            }),
            Node::Function(name, body) => {
                self.state.functions.entry(name.clone()).or_default().push(body.clone());
                self.state.changes += 1;
                self.function(name, body, None);
            }
            Node::Test(words, redirects) => self.with_redirects(redirects, |walk| {
                for word in words {
                    let text = walk.expand_to_text(word);
                    walk.names_in(&text);
                }
            }),
            Node::Arithmetic(text, redirects) => self.with_redirects(redirects, |walk| {
                walk.expand_document(text);
            }),
        }
    }

    fn pipeline(&mut self, nodes: &[Node]) {
        self.forks += 1;
        let mut input = self.state.input.clone();
        for (index, node) in nodes.iter().enumerate() {
            let state = self.state.clone();
            let via = match (index, &self.via) {
                (0, via) => via.clone(),
                (_, Via::Direct) => Via::Pipe,
                (_, via) => via.clone(),
            };
            self.state.input = input;
            let via = std::mem::replace(&mut self.via, via);
            self.node(node);
            self.via = via;
            // Some shells run the last part of a pipe themselves, so what it changes may stay.
            let changed = std::mem::replace(&mut self.state, state);
            if index + 1 == nodes.len() {
                self.state.join(changed);
            }
            input = match node {
                Node::Simple(parts) => {
                    self.output_of_simple(parts).map_or(Input::Pipe, Input::Text)
                }
                _ => Input::Pipe,
            };
        }
        self.forks -= 1;
    }

    /// Lists of which the first runs and each other may.
    fn choices(&mut self, lists: &[Vec<Node>]) {
        let Some((first, rest)) = lists.split_first() else { return };
        self.list(first);
        let before = self.state.clone();
        let mut after = before.clone();
        for list in rest {
            // An `elif` is reached with what the conditions before it changed.
            self.state = after.clone();
            self.list(list);
            after.join(std::mem::replace(&mut self.state, before.clone()));
        }
        self.state = after;
    }

    fn loop_over(&mut self, each: Option<&(String, Option<Vec<String>>)>, lists: &[Vec<Node>]) {
        if let Some((name, words)) = each {
            let values = match words {
                Some(words) => {
                    let fields = words.iter().flat_map(|word| self.expand(word)).flatten();
                    fields.map(|field| vec![any_match(field)]).collect()
                }
                None => self.state.positional.clone().map_or_else(
                    || vec![vec![Arg::unknown()]],
                    |args| args.into_iter().flatten().map(|arg| vec![arg]).collect(),
                ),
            };
            self.state.set(name, values);
        }
        let before = self.state.clone();
        let start = self.found.len();
        for list in lists {
            self.list(list);
        }
        let changed = self.state.changes != before.changes;
        self.state.join(before);
        if changed {
            let again = self.found.len();
            for list in lists {
                self.list(list);
            }
            let second = self.found.split_off(again);
            for command in second {
                if !self.found[start..].contains(&command) {
                    self.found.push(command);
                }
            }
        }
    }

    /// Follows a function's body, with the arguments of a call where there is one.
    pub(super) fn function(&mut self, name: &str, body: &[Node], call: Option<&[Arg]>) {
        if self.active.iter().any(|active| active == name) {
            return;
        }
        self.active.push(name.to_owned());
        let forks = std::mem::take(&mut self.forks);
        let positional =
            std::mem::replace(&mut self.state.positional, call.map(|args| vec![args.to_vec()]));
        match call {
            Some(_) => self.nested(Via::Function(name.to_owned()), |walk| walk.list(body)),
            // Defining runs nothing yet, but what it would run is judged where it is written.
            None => self.in_subshell(Via::Function(name.to_owned()), |walk| walk.list(body)),
        }
        self.state.positional = positional;
        self.forks = forks;
        self.active.pop();
    }

    /// Whether one more command is followed; says so when the first is not.
    fn may_follow(&mut self) -> bool {
        self.commands += 1;
        if self.commands == MOST_COMMANDS {
            self.note_unreadable("…", "there are too many commands in it");
        }
        self.commands < MOST_COMMANDS
    }

    /// Whether a command with this many arguments is looked into.
    pub(super) fn may_judge(&mut self, arguments: usize) -> bool {
        self.judged += 1 + arguments;
        self.judged <= MOST_ARGUMENTS
    }
}

/// A loop's word, which stands for any file name when it is a glob.
fn any_match(field: Arg) -> Arg {
    if !field.glob {
        return field;
    }
    // What a relative glob matches stays below the directory it starts from.
    let relative = !field.text.starts_with(['/', '~', UNKNOWN]) && !field.text.contains("..");
    let text = if relative { format!("./{UNKNOWN}") } else { UNKNOWN.to_string() };
    Arg { text, ..field }
}

/// The longest text shown of one word.
const LONGEST_SHOWN: usize = 200;

/// Text for people: unknown parts as `…`, one line, cut when long.
pub(super) fn display_text(text: &str) -> String {
    let mut shown: String = text
        .chars()
        .take(LONGEST_SHOWN)
        .map(|c| match c {
            UNKNOWN => '…',
            c if c.is_control() => ' ',
            c => c,
        })
        .collect();
    if shown.chars().count() == LONGEST_SHOWN {
        shown.push('…');
    }
    shown
}
