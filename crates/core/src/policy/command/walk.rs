//! Walks the syntax tree, following what the shell would know, and records every command found.
//!
//! Invariants:
//! - Where paths join, the state holds what either knew ([`State::join`]); a loop's body is looked at
//!   once more when it changed what the shell knows.
//! - Bounded: commands, nested texts and bytes parsed have limits; over one, the rest is opaque.

use std::collections::BTreeMap;

use super::expand::combine;
use super::state::{Arg, Input, State, UNKNOWN, Values};
use super::syntax::{Assign, Node, Part, Redirect, Unreadable, Value};
use super::{Command, Context, How, Reading, environment, guard, paths};
use crate::policy::class::{Assessment, Class};

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
    Roomy,
}

pub(super) struct Walk<'c> {
    pub context: &'c Context,
    pub state: State,
    /// Commands found at this level so far.
    pub found: Vec<Command>,
    /// How a command met now is reached.
    pub how: How,
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
}

/// Reads a whole text.
pub(super) fn read(script: &str, context: &Context, stack: Stack) -> Reading {
    let mut walk = Walk {
        context,
        state: State::new(&context.directory, &context.home),
        found: Vec::new(),
        how: How::Direct,
        active: Vec::new(),
        written: BTreeMap::new(),
        forks: 0,
        depth: 0,
        commands: 0,
        judged: 0,
        bytes: 0,
        stack,
    };
    walk.script(script, How::Direct);
    Reading::of(walk.found)
}

/// A command that stands for text nobody can read.
pub(super) fn unreadable(text: &str, reason: &str) -> Command {
    Command {
        command: shown(text),
        how: How::Direct,
        assessment: Assessment::of(Class::Opaque, format!("cannot be read: {reason}")),
        words: Vec::new(),
        commands: Vec::new(),
    }
}

impl Walk<'_> {
    /// Reads text that a shell would run here, in the current shell.
    pub(super) fn script(&mut self, text: &str, how: How) {
        match self.parse(text) {
            Ok(nodes) => self.deeper(how, |walk| walk.list(&nodes)),
            Err(unreadable) => {
                let how = std::mem::replace(&mut self.how, how);
                self.note_unreadable(text, &unreadable.0);
                self.salvage(text);
                self.how = how;
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
                self.apart(self.how.clone(), |walk| walk.list(&nodes));
            }
        }
    }

    /// Counts what is about to be parsed.
    pub(super) fn charge(&mut self, script: &str) -> Result<(), Unreadable> {
        if script.len() > guard::LONGEST_TEXT {
            return guard::before_tokens(script);
        }
        self.bytes += script.len();
        if self.bytes > MOST_BYTES {
            return Err(Unreadable::because("there is too much text in it"));
        }
        if self.stack == Stack::Usual && guard::needs_room(script) {
            return Err(Unreadable::because("it is too deeply nested"));
        }
        Ok(())
    }

    /// Runs `walk` one level deeper, in the same shell.
    pub(super) fn deeper(&mut self, how: How, walk: impl FnOnce(&mut Self)) {
        if self.depth >= DEEPEST_TEXT {
            return self.note_unreadable("…", "commands are nested too deeply");
        }
        self.depth += 1;
        let how = std::mem::replace(&mut self.how, how);
        walk(self);
        self.how = how;
        self.depth -= 1;
    }

    /// The same in a shell of its own: its changes end with it.
    pub(super) fn apart(&mut self, how: How, walk: impl FnOnce(&mut Self)) {
        let state = self.state.clone();
        self.deeper(how, walk);
        self.state = state;
    }

    pub(super) fn note_unreadable(&mut self, text: &str, reason: &str) {
        let how = self.how.clone();
        self.found.push(Command { how, ..unreadable(text, reason) });
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
            Node::Subshell(nodes, redirects) => self.redirected(redirects, |walk| {
                walk.forks += 1;
                walk.apart(How::Subshell, |walk| walk.list(nodes));
                walk.forks -= 1;
            }),
            Node::Braces(nodes, redirects) => self.redirected(redirects, |walk| walk.list(nodes)),
            Node::Choice(words, lists, redirects) => self.redirected(redirects, |walk| {
                for word in words {
                    walk.expand_to_text(word);
                }
                walk.choices(lists);
            }),
            Node::Loop { each, lists, redirects } => self.redirected(redirects, |walk| {
                walk.loop_over(each.as_ref(), lists);
            }),
            Node::Function(name, body) => {
                self.state.functions.entry(name.clone()).or_default().push(body.clone());
                self.state.changes += 1;
                self.function(name, body, None);
            }
            Node::Test(words, redirects) => self.redirected(redirects, |walk| {
                for word in words {
                    let text = walk.expand_to_text(word);
                    walk.names_in(&text);
                }
            }),
            Node::Arithmetic(text, redirects) => self.redirected(redirects, |walk| {
                walk.expand_document(text);
            }),
        }
    }

    fn pipeline(&mut self, nodes: &[Node]) {
        self.forks += 1;
        let mut input = self.state.input.clone();
        for (index, node) in nodes.iter().enumerate() {
            let state = self.state.clone();
            let how = match (index, &self.how) {
                (0, how) => how.clone(),
                (_, How::Direct) => How::Pipe,
                (_, how) => how.clone(),
            };
            self.state.input = input;
            let how = std::mem::replace(&mut self.how, how);
            self.node(node);
            self.how = how;
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
                    fields.map(|field| vec![globbed(field)]).collect()
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
            Some(_) => self.deeper(How::Function(name.to_owned()), |walk| walk.list(body)),
            // Defining runs nothing yet, but what it would run is judged where it is written.
            None => self.apart(How::Function(name.to_owned()), |walk| walk.list(body)),
        }
        self.state.positional = positional;
        self.forks = forks;
        self.active.pop();
    }

    fn redirected(&mut self, redirects: &[Redirect], walk: impl FnOnce(&mut Self)) {
        let input = self.state.input.clone();
        for redirect in redirects {
            self.redirect(redirect);
        }
        walk(self);
        self.state.input = input;
    }

    fn redirect(&mut self, redirect: &Redirect) {
        match redirect {
            Redirect::From(word) => {
                let file = self.expand_to_text(word);
                self.opened(&file, "<", paths::Use::Read);
                self.state.input = Input::File(file.text);
            }
            Redirect::To(word, _) => {
                let file = self.expand_to_text(word);
                self.opened(&file, ">", paths::Use::Write);
                self.mark_written(&file);
            }
            Redirect::Duplicate(word) => {
                let file = self.expand_to_text(word);
                if !file.text.trim_end_matches('-').bytes().all(|b| b.is_ascii_digit()) {
                    self.opened(&file, ">", paths::Use::Write);
                }
            }
            Redirect::Document(text, expands) => {
                let text = match expands {
                    true => self.expand_document(text),
                    false => Arg::literal(&**text),
                };
                self.state.input = Input::Text(text.text);
            }
            Redirect::Text(word) => {
                self.state.input = Input::Text(self.expand_to_text(word).text);
            }
            Redirect::Process(nodes, read) => {
                self.apart(How::Process, |walk| walk.list(nodes));
                if *read {
                    self.state.input = Input::Pipe;
                }
            }
        }
    }

    /// Records a file that the shell itself opens.
    fn opened(&mut self, file: &Arg, sign: &str, how: paths::Use) {
        if let Some(assessment) = self.judge_path(file, how) {
            self.found.push(Command {
                command: format!("{sign} {}", shown(&file.text)),
                how: How::Redirection,
                assessment,
                words: vec![Some(sign.to_owned()), file.known().map(str::to_owned)],
                commands: Vec::new(),
            });
        }
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

    fn simple(&mut self, parts: &[Part]) {
        if !self.may_follow() {
            return;
        }
        let outer = std::mem::take(&mut self.found);
        let input = self.state.input.clone();
        let mut variants: Values = vec![Vec::new()];
        let (mut assigned, mut declared) = (Vec::new(), Vec::new());
        let named = parts.iter().any(|part| matches!(part, Part::Word(_)));
        for part in parts {
            match part {
                Part::Assign(assign) if variants.iter().all(Vec::is_empty) => {
                    let values = self.assigned(assign);
                    assigned.push((assign, values));
                }
                Part::Assign(assign) => {
                    let values = self.assigned(assign);
                    let text = match &values[..] {
                        [fields] => super::expand::joined(fields).text,
                        _ => UNKNOWN.to_string(),
                    };
                    let raw = format!("{}={text}", assign.name);
                    variants = combine(variants, &[vec![Arg::literal(raw)]]);
                    if self.declares(&variants) {
                        declared.push((assign, values));
                    }
                }
                Part::Word(word) => {
                    let values = self.expand(word);
                    variants = combine(variants, &values);
                }
                Part::Redirect(redirect) => self.redirect(redirect),
                Part::Process(nodes) => {
                    self.apart(How::Process, |walk| walk.list(nodes));
                    variants = combine(variants, &[vec![Arg::unknown()]]);
                }
            }
        }
        for (assign, values) in &assigned {
            environment::assigned(self, &assign.name, values);
        }
        if !named {
            for (assign, values) in assigned {
                self.assign(assign, values);
            }
        }
        let inner = std::mem::replace(&mut self.found, outer);
        self.record_variants(variants, parts, inner);
        for (assign, values) in declared {
            self.assign(assign, values);
        }
        self.keep_written(parts);
        // `exec < file` changes the input of everything after it.
        let words = parts.iter().filter_map(|part| match part {
            Part::Word(word) => Some(&**word),
            Part::Assign(_) | Part::Redirect(_) | Part::Process(_) => None,
        });
        if !words.eq(["exec"]) {
            self.state.input = input;
        }
    }

    /// Records the command once for each way it may read.
    fn record_variants(&mut self, variants: Values, parts: &[Part], mut inner: Vec<Command>) {
        for argv in variants {
            if argv.is_empty() {
                if inner.is_empty() && !parts.iter().any(|part| matches!(part, Part::Assign(_))) {
                    continue;
                }
                let text = parts.iter().filter_map(|part| match part {
                    Part::Assign(assign) => Some(&*assign.raw),
                    Part::Word(_) | Part::Redirect(_) | Part::Process(_) => None,
                });
                let command = shown(&text.collect::<Vec<_>>().join(" "));
                let how = self.how.clone();
                let assessment = Assessment::of(Class::Read, "sets variables of this shell only");
                let commands = std::mem::take(&mut inner);
                self.found.push(Command { command, how, assessment, words: Vec::new(), commands });
            } else {
                let how = self.how.clone();
                self.record(argv, how, std::mem::take(&mut inner));
            }
        }
    }

    /// Judges one command and records it, with what is found in it.
    pub(super) fn record(&mut self, argv: Vec<Arg>, how: How, inner: Vec<Command>) {
        if self.depth >= DEEPEST_TEXT {
            return self.note_unreadable("…", "commands are nested too deeply");
        }
        if !self.may_follow() {
            self.found.extend(inner);
            return;
        }
        let outer = std::mem::replace(&mut self.found, inner);
        let how_inside = std::mem::replace(&mut self.how, how.clone());
        self.depth += 1;
        let assessment = self.judge(&argv);
        self.depth -= 1;
        self.how = how_inside;
        let commands = std::mem::replace(&mut self.found, outer);
        self.found.push(Command {
            command: argv.iter().map(quoted).collect::<Vec<_>>().join(" "),
            how,
            assessment,
            words: argv.iter().map(|arg| arg.known().map(str::to_owned)).collect(),
            commands,
        });
    }

    fn assigned(&mut self, assign: &Assign) -> Values {
        if let Some(index) = &assign.index {
            self.expand_document(index);
        }
        match &assign.value {
            Value::One(word) => vec![vec![self.expand_to_text(word)]],
            Value::Many(words) => {
                let mut all = vec![Vec::new()];
                for word in words {
                    let next = self.expand(word);
                    all = combine(all, &next);
                }
                all
            }
        }
    }

    fn assign(&mut self, assign: &Assign, values: Values) {
        let array = matches!(assign.value, Value::Many(_));
        match (&assign.index, assign.append) {
            // One element of an array: the whole is no longer known.
            (Some(_), _) => self.state.set(&assign.name, vec![vec![Arg::unknown()]]),
            (None, true) => self.state.append(&assign.name, values, array),
            (None, false) => self.state.set(&assign.name, values),
        }
    }

    /// Whether the command that these words begin assigns its arguments.
    fn declares(&self, variants: &Values) -> bool {
        variants.iter().any(|argv| {
            argv.first().is_some_and(|name| {
                matches!(&*name.text, "export" | "declare" | "typeset" | "local" | "readonly")
            })
        })
    }
}

/// A loop's word, which stands for any file name when it is a glob.
fn globbed(field: Arg) -> Arg {
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
pub(super) fn shown(text: &str) -> String {
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

fn quoted(arg: &Arg) -> String {
    let text = shown(&arg.text);
    let plain = |c: char| c.is_alphanumeric() || "-_=./:@%+,~*?…[]{}^".contains(c);
    if !text.is_empty() && text.chars().all(plain) { text } else { format!("'{text}'") }
}
