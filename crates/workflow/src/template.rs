//! Go templates: `{{.bead.title}}`, `{{if .previous.failed}}…{{end}}`. The one module that knows the template library.
//!
//! Invariants:
//! - A variable that nobody has set is an error that names it (O-35). Under `default` it counts as empty.
//! - In a command, whatever comes of a value is one word for the shell. Conditions and functions see the value itself.
//! - What a template would drop without a word is refused when it is read: a stray `{{end}}`, an unknown function.

mod shell;

use std::collections::BTreeSet;

use gotmpl::parse::{BranchNode, DefineNode, Expr, ListNode, Node, PipeNode};
use gotmpl::{MissingKey, Template, TemplateError, Value as GoValue};
use serde_json::{Map, Value};

pub use shell::quote;

/// Names that templates have for something else than steps, inputs and outputs.
pub const RESERVED: [&str; 8] =
    ["bead", "inputs", "loop", "previous", "request", "spell_content", "workflow", "worktree"];

/// Behind every template while it is checked: where it does not come out last, something was dropped.
const SENTINEL: &str = "\u{e000}end of template\u{e000}";

/// What the text itself is called beside the templates that it defines. No text can write this name.
const MAIN: &str = "\u{e000}main\u{e000}";

/// The most that a template may print; a prompt of more does not fit into any window.
const MAX_BYTES: usize = 4 << 20;

/// How often `range` may repeat in one template.
const MAX_ROUNDS: u64 = 100_000;

/// The functions that templates have, besides those of the language.
const FUNCTIONS: [&str; 17] = [
    "and", "or", "not", "eq", "ne", "lt", "le", "gt", "ge", "len", "index", "slice", "print",
    "printf", "println", "default", "urlquery",
];

/// Why a template cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("{0}")]
    Syntax(String),
    /// Nobody has set this variable.
    #[error("the variable `{0}` is not set")]
    Unknown(String),
    #[error("{0}")]
    Render(String),
}

/// Checks a template without rendering it.
pub fn check(text: &str) -> Result<(), Error> {
    parsed(text).map(drop)
}

/// A condition as a template: `.previous.failed` is short for `{{if .previous.failed}}true{{end}}`.
pub fn condition(text: &str) -> String {
    match text.contains("{{") {
        true => text.to_owned(),
        false if text.trim().is_empty() => "false".to_owned(),
        false => format!("{{{{if {}}}}}true{{{{end}}}}", text.trim()),
    }
}

/// A condition for people: the short form where there is one.
pub fn short_condition(condition: &str) -> &str {
    let short = condition.strip_prefix("{{if ").and_then(|rest| rest.strip_suffix("}}true{{end}}"));
    short.filter(|short| !short.contains("{{")).unwrap_or(condition)
}

/// Whether a rendered condition holds.
pub fn is_true(rendered: &str) -> bool {
    !matches!(
        rendered.trim().to_ascii_lowercase().as_str(),
        "" | "false" | "0" | "no" | "<no value>"
    )
}

/// Renders a template with these variables.
pub fn render(text: &str, variables: &Map<String, Value>) -> Result<String, Error> {
    parsed(text)?.render(variables)
}

/// Renders a template of a command: what an agent said cannot become a part of it.
pub fn render_command(text: &str, variables: &Map<String, Value>) -> Result<String, Error> {
    let template = parsed(text)?;
    Parsed { template: shell::quoting(&template), ..template }.render(variables)
}

/// A template that is read.
struct Parsed {
    template: Template,
    tree: ListNode,
    defines: Vec<DefineNode>,
}

impl Parsed {
    fn render(&self, variables: &Map<String, Value>) -> Result<String, Error> {
        let mut data = Value::Object(variables.clone());
        for path in defaulted(&self.tree) {
            fill(&mut data, &path);
        }
        let values = gotmpl::to_value(&data).map_err(|error| Error::Render(error.to_string()))?;
        let printed = self.template.execute_template_to_string(MAIN, &values);
        let printed = printed.map_err(|error| match error {
            TemplateError::MissingKey { key, .. } => Error::Unknown(named(&self.tree, &key, &data)),
            other => Error::Render(words(&other)),
        })?;
        match printed.strip_suffix(SENTINEL) {
            Some(text) if text.len() <= MAX_BYTES => Ok(text.to_owned()),
            Some(_) => Err(Error::Render(format!("it prints more than {MAX_BYTES} bytes"))),
            None => Err(stray()),
        }
    }
}

fn stray() -> Error {
    Error::Syntax("an `{{end}}` or `{{else}}` belongs to nothing".to_owned())
}

/// The template with the sentinel behind it.
fn parsed(text: &str) -> Result<Parsed, Error> {
    let whole = format!("{text}{SENTINEL}");
    // Whoever meets the sentinel is still inside of braces.
    let syntax = |error: TemplateError| match words(&error) {
        said if said.contains("u{e000}") || said.contains('\u{e000}') => {
            Error::Syntax("a `{{` has no `}}`".to_owned())
        }
        said => Error::Syntax(said),
    };
    let (tree, defines) = gotmpl::parse::Parser::new(&whole, "{{", "}}")
        .and_then(|parser| parser.parse())
        .map_err(syntax)?;
    let is_last = |node: &Node| matches!(node, Node::Text(text) if text.text.ends_with(SENTINEL));
    if !tree.nodes.last().is_some_and(is_last) {
        return Err(stray());
    }
    let mut seen = Seen::default();
    seen.list(&tree);
    defines.iter().for_each(|define| seen.list(&define.body));
    if let Some(unknown) = seen.functions.iter().find(|name| !FUNCTIONS.contains(&name.as_str())) {
        let reason = format!("there is no function `{unknown}`; allowed: {}", FUNCTIONS.join(", "));
        return Err(Error::Syntax(reason));
    }
    let template = Template::new("")
        .missing_key(MissingKey::Error)
        .max_range_iters(MAX_ROUNDS)
        .func("default", default)
        .parse(&whole)
        .map_err(syntax)?;
    let template = template.add_parse_tree(MAIN, tree.clone());
    Ok(Parsed { template, tree, defines })
}

/// `default "none" .x`, and `.x | default "none"`: the first where the second is empty.
fn default(args: &[GoValue]) -> gotmpl::Result<GoValue> {
    match args {
        [_, value] if gotmpl::is_true(value) => Ok(value.clone()),
        [fallback, _] | [fallback] => Ok(fallback.clone()),
        _ => Err(TemplateError::Exec("default takes a fallback and a value".to_owned())),
    }
}

/// What a tree uses.
#[derive(Default)]
struct Seen {
    functions: BTreeSet<String>,
    /// Fields, in the order of the text.
    fields: Vec<Vec<String>>,
    /// Fields of a pipeline with `default`.
    defaulted: Vec<Vec<String>>,
}

impl Seen {
    fn list(&mut self, list: &ListNode) {
        for node in &list.nodes {
            match node {
                Node::List(list) => self.list(list),
                Node::Action(action) => self.pipe(&action.pipe),
                Node::If(branch) | Node::Range(branch) | Node::With(branch) => self.branch(branch),
                Node::Template(call) => call.pipe.iter().for_each(|pipe| self.pipe(pipe)),
                Node::Define(define) => self.list(&define.body),
                Node::Text(_) | Node::Break(_) | Node::Continue(_) => {}
            }
        }
    }

    fn branch(&mut self, branch: &BranchNode) {
        self.pipe(&branch.pipe);
        self.list(&branch.body);
        branch.else_body.iter().for_each(|list| self.list(list));
    }

    fn pipe(&mut self, pipe: &PipeNode) {
        let mut inner = Self::default();
        pipe.commands.iter().flat_map(|command| &command.args).for_each(|arg| inner.expr(arg));
        if inner.functions.contains("default") {
            self.defaulted.extend(inner.fields.iter().cloned());
        }
        self.functions.append(&mut inner.functions);
        self.fields.append(&mut inner.fields);
        self.defaulted.append(&mut inner.defaulted);
    }

    fn expr(&mut self, expr: &Expr) {
        match expr {
            Expr::Field(_, path) => {
                self.fields.push(path.iter().map(ToString::to_string).collect())
            }
            Expr::Identifier(_, name) => drop(self.functions.insert(name.to_string())),
            Expr::Pipe(_, pipe) => self.pipe(pipe),
            Expr::Chain(_, inner, _) => self.expr(inner),
            Expr::Variable(_, name, path) if name.as_str() == "$" && !path.is_empty() => {
                self.fields.push(path.iter().map(ToString::to_string).collect());
            }
            Expr::Variable(..)
            | Expr::Dot(_)
            | Expr::String(..)
            | Expr::Number(..)
            | Expr::Bool(..)
            | Expr::Nil(_) => {}
        }
    }
}

fn seen(tree: &ListNode) -> Seen {
    let mut seen = Seen::default();
    seen.list(tree);
    seen
}

fn defaulted(tree: &ListNode) -> Vec<Vec<String>> {
    seen(tree).defaulted
}

/// The whole name of a missing key: `fix.outputs.branch`, where the library says `branch`.
fn named(tree: &ListNode, key: &str, data: &Value) -> String {
    let is_missing = |path: &Vec<String>| {
        let mut at = Some(data);
        let first = path.iter().find(|part| {
            at = at.and_then(|value| value.get(part.as_str()));
            at.is_none()
        });
        first.is_some_and(|part| part == key)
    };
    let fields = seen(tree).fields;
    let known = fields.iter().find(|path| is_missing(path)).cloned();
    // Inside of `range` and `with` a field does not begin at the top.
    let found =
        known.or_else(|| fields.into_iter().find(|path| path.iter().any(|part| part == key)));
    found.map_or_else(|| key.to_owned(), |path| path.join("."))
}

/// Puts nothing where a path leads to nothing.
fn fill(data: &mut Value, path: &[String]) {
    let mut at = data;
    for (place, part) in path.iter().enumerate() {
        let Some(object) = at.as_object_mut() else { return };
        let is_last = place + 1 == path.len();
        let empty = || if is_last { Value::Null } else { Value::Object(Map::new()) };
        at = object.entry(part.clone()).or_insert_with(empty);
    }
}

fn words(error: &TemplateError) -> String {
    let text = error.to_string();
    let text = text.strip_prefix("template: ").unwrap_or(&text);
    text.replace(SENTINEL, "")
}
