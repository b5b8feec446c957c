//! Walks the syntax tree, following what the shell would know, and records every command found.
//!
//! Invariants:
//! - Where paths join, the state holds what either knew ([`State::join`]); a loop's body is looked at
//!   once more when it changed what the shell knows.
//! - Bounded: every command, nested text and byte is spent from the [`Budget`]; over it, the rest is opaque.

mod nested;
mod redirect;
mod simple;
mod variables;

use super::budget::{Budget, Stack};
use super::expand::Expander;
use super::findings::Findings;
use super::paths::Resolver;
use super::state::{Arg, Input, State, UNKNOWN};
use super::syntax::Node;
use super::written::{Contents, WrittenFiles};
use super::{CommandAnalysis, Context, Via, output};
use variables::Variables;

pub(super) struct Walk<'c> {
    pub context: &'c Context,
    pub state: State,
    pub findings: Findings,
    pub budget: Budget,
    pub written: WrittenFiles,
    /// Functions and aliases being followed, outermost first.
    pub active: Vec<String>,
    /// How many pipes and background jobs are around this point.
    pub forks: usize,
}

/// Reads a whole text.
pub(super) fn analyze(script: &str, context: &Context, stack: Stack) -> CommandAnalysis {
    let mut walk = Walk {
        context,
        state: State::new(&context.directory, &context.home),
        findings: Findings::new(),
        budget: Budget::new(stack),
        written: WrittenFiles::default(),
        active: Vec::new(),
        forks: 0,
    };
    walk.script(script, Via::Direct);
    walk.findings.into_analysis()
}

impl<'c> Walk<'c> {
    /// Expands words here.
    pub(super) fn expander(&mut self) -> Expander<'_, 'c> {
        Expander { walk: self }
    }

    /// Sets variables here.
    pub(super) fn variables(&mut self) -> Variables<'_, 'c> {
        Variables { walk: self }
    }

    /// Paths as they are meant here.
    pub(super) fn paths(&self) -> Resolver<'_> {
        Resolver { context: self.context, directories: &self.state.directories }
    }

    /// Remembers that this text writes a file.
    pub(super) fn mark_written(&mut self, file: &Arg) {
        for path in self.paths().resolve(&file.text).into_iter().flatten() {
            self.written.mark(path);
        }
    }

    /// What a command here would read, where the text says so.
    pub(super) fn input_text(&self) -> Option<String> {
        let known = |text: &str| (!text.contains(UNKNOWN)).then(|| text.to_owned());
        match &self.state.input {
            Input::Text(text) => known(text),
            Input::File(file) => match self.written.find(&self.paths().resolve(file))? {
                Contents::Known(text) => known(text),
                Contents::CopyOf(_) | Contents::Unknown => None,
            },
            Input::Inherited | Input::Pipe => None,
        }
    }

    /// Remembers that this text runs a file.
    pub(super) fn mark_run(&mut self, path: &str) {
        let paths = self.paths().resolve(path);
        self.findings.scripts.extend(paths.into_iter().flatten());
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
                    walk.expander().text(word);
                }
                walk.choices(lists);
            }),
            Node::Loop { each, lists, redirects } => self.with_redirects(redirects, |walk| {
                walk.loop_over(each.as_ref(), lists);
            }),
            Node::Function(name, body) => {
                self.state.define_function(name, body.clone());
                self.follow_function(name, body, None);
            }
            Node::Test(words, redirects) => self.with_redirects(redirects, |walk| {
                for word in words {
                    let text = walk.expander().text(word);
                    walk.expander().evaluate_index(&text);
                    // `-eq` and its like evaluate both sides.
                    walk.expander().evaluate_values(&text);
                }
            }),
            Node::Arithmetic(text, redirects) => self.with_redirects(redirects, |walk| {
                walk.expander().arithmetic(text);
            }),
        }
    }

    fn pipeline(&mut self, nodes: &[Node]) {
        self.forks += 1;
        let mut input = self.state.input.clone();
        for (index, node) in nodes.iter().enumerate() {
            let state = self.state.clone();
            let via = match (index, &self.findings.via) {
                (0, via) => via.clone(),
                (_, Via::Direct) => Via::Pipe,
                (_, via) => via.clone(),
            };
            self.state.input = input;
            let via = std::mem::replace(&mut self.findings.via, via);
            self.node(node);
            self.findings.via = via;
            // Some shells run the last part of a pipe themselves, so what it changes may stay.
            let changed = std::mem::replace(&mut self.state, state);
            if index + 1 == nodes.len() {
                self.state.join(changed);
            }
            input = if let Node::Simple(parts) = node {
                output::of_simple(self, parts).map_or(Input::Pipe, Input::Text)
            } else {
                Input::Pipe
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
                    let fields = words.iter().flat_map(|word| self.expander().word(word)).flatten();
                    fields.map(|field| vec![any_match(field)]).collect()
                }
                None => self.state.positional.clone().map_or_else(
                    || vec![vec![Arg::unknown()]],
                    |args| args.into_iter().flatten().map(|arg| vec![arg]).collect(),
                ),
            };
            self.variables().set(name, values);
        }
        let before = self.state.clone();
        let start = self.findings.commands.len();
        for list in lists {
            self.list(list);
        }
        let changed = self.state.changes != before.changes;
        self.state.join(before);
        if changed {
            let again = self.findings.commands.len();
            for list in lists {
                self.list(list);
            }
            self.findings.remove_repeated(start, again);
        }
    }
}

/// A loop's word, which stands for any file name when it is a glob.
fn any_match(field: Arg) -> Arg {
    if !field.glob {
        return field;
    }
    // What a relative glob matches stays below the directory it starts from.
    let relative = !field.text.starts_with(['/', '~', UNKNOWN]) && !field.text.contains("..");
    let is_sign = |char: char| "*?[]()|!@+^\\".contains(char);
    let (start, end) = (field.text.find(is_sign), field.text.rfind(is_sign));
    let text = match (relative, start, end) {
        (true, Some(start), Some(end)) => {
            let directory = field.text[..start].rfind('/').map_or("", |at| &field.text[..=at]);
            format!("./{directory}{UNKNOWN}{}", &field.text[end + 1..])
        }
        (true, ..) => format!("./{UNKNOWN}"),
        (false, ..) => UNKNOWN.to_string(),
    };
    Arg { text, ..field }
}
