//! Templates of commands: what they print of a value is one word for the shell.

use gotmpl::parse::{BranchNode, CommandNode, Expr, ListNode, Node, PipeNode};
use gotmpl::{Template, Value};

use super::{MAIN, Parsed};

/// The function behind everything that prints a value. No text can write this name.
const WORD: &str = "\u{e000}word\u{e000}";

/// The same template with every printed value quoted.
pub(super) fn quoting(parsed: &Parsed) -> Template {
    let word = |args: &[Value]| match args {
        [] | [Value::Nil] => Ok(Value::String(quote("").into())),
        [value, ..] => Ok(Value::String(quote(&value.to_string()).into())),
    };
    let mut template = parsed.template.clone().func(WORD, word);
    for define in &parsed.defines {
        template = template.add_parse_tree(&define.name, list(&define.body));
    }
    template.add_parse_tree(MAIN, list(&parsed.tree))
}

fn list(from: &ListNode) -> ListNode {
    ListNode { pos: from.pos, nodes: from.nodes.iter().map(node).collect() }
}

fn node(from: &Node) -> Node {
    match from {
        Node::Action(action) if prints_a_value(&action.pipe) => {
            let mut action = action.clone();
            let pos = action.pos;
            let args = vec![Expr::Identifier(pos, WORD.into())];
            action.pipe.commands.push(CommandNode { pos, args });
            Node::Action(action)
        }
        Node::List(inner) => Node::List(list(inner)),
        Node::If(inner) => Node::If(branch(inner)),
        Node::Range(inner) => Node::Range(branch(inner)),
        Node::With(inner) => Node::With(branch(inner)),
        Node::Action(_)
        | Node::Text(_)
        | Node::Template(_)
        | Node::Define(_)
        | Node::Break(_)
        | Node::Continue(_) => from.clone(),
    }
}

fn branch(from: &BranchNode) -> BranchNode {
    let else_body = from.else_body.as_ref().map(list);
    BranchNode { body: list(&from.body), else_body, ..from.clone() }
}

/// Whether a pipeline prints something that its author has not written into it.
fn prints_a_value(pipe: &PipeNode) -> bool {
    pipe.decl.is_empty() && has_value(pipe)
}

fn has_value(pipe: &PipeNode) -> bool {
    pipe.commands.iter().flat_map(|command| &command.args).any(|arg| match arg {
        Expr::Dot(_) | Expr::Field(..) | Expr::Variable(..) | Expr::Chain(..) => true,
        Expr::Pipe(_, inner) => has_value(inner),
        Expr::Identifier(..)
        | Expr::String(..)
        | Expr::Number(..)
        | Expr::Bool(..)
        | Expr::Nil(_) => false,
    })
}

/// A text as one word of a command.
pub fn quote(text: &str) -> String {
    let is_safe = |c: char| c.is_ascii_alphanumeric() || "-_./:=@%+,".contains(c);
    match !text.is_empty() && !text.starts_with('-') && text.chars().all(is_safe) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}
