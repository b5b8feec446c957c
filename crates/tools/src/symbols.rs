//! The functions and types of a source file, by tree-sitter: what a range of lines belongs to.

use tree_sitter::{Language, Node, Parser};
use windlass_core::claim::LineRange;

/// Larger files are not parsed: nobody edits them by hand.
const MAX_BYTES: usize = 1024 * 1024;

/// How deep definitions are looked for; real code nests far less.
const MAX_DEPTH: usize = 200;

/// A named part of a source file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symbol {
    /// Its name with those around it: `Parser::next`.
    pub name: String,
    pub lines: LineRange,
}

/// The innermost function or type that holds all these lines.
pub fn symbol_at(path: &str, text: &str, lines: LineRange) -> Option<Symbol> {
    let holds =
        |symbol: &Symbol| symbol.lines.first <= lines.first && lines.last <= symbol.lines.last;
    // The innermost comes last: a definition is listed before what is in it.
    symbols(path, text).into_iter().rfind(holds)
}

/// All named parts, outer ones first; none where the language is not known.
pub fn symbols(path: &str, text: &str) -> Vec<Symbol> {
    let mut found = Vec::new();
    let Some(language) = language(path).filter(|_| text.len() <= MAX_BYTES) else { return found };
    let mut parser = Parser::new();
    if parser.set_language(&language).is_err() {
        return found;
    }
    if let Some(tree) = parser.parse(text, None) {
        collect(tree.root_node(), text, "", 0, &mut found);
    }
    found
}

fn language(path: &str) -> Option<Language> {
    let (_, extension) = path.rsplit_once('.')?;
    Some(match extension {
        "rs" => tree_sitter_rust::LANGUAGE.into(),
        "py" | "pyi" => tree_sitter_python::LANGUAGE.into(),
        "ts" | "mts" | "cts" => tree_sitter_typescript::LANGUAGE_TYPESCRIPT.into(),
        "tsx" => tree_sitter_typescript::LANGUAGE_TSX.into(),
        "js" | "jsx" | "mjs" | "cjs" => tree_sitter_javascript::LANGUAGE.into(),
        "go" => tree_sitter_go::LANGUAGE.into(),
        _ => return None,
    })
}

fn collect(node: Node<'_>, text: &str, outer: &str, depth: usize, found: &mut Vec<Symbol>) {
    if depth > MAX_DEPTH {
        return;
    }
    let mut inside = outer.to_owned();
    if let Some(name) = name_of(node, text) {
        inside = if outer.is_empty() { name } else { format!("{outer}::{name}") };
        let line = |row: usize| u32::try_from(row + 1).unwrap_or(u32::MAX);
        let lines = LineRange {
            first: line(node.start_position().row),
            last: line(node.end_position().row),
        };
        // An `impl` is a place where names are, not a place that somebody edits as one.
        if node.kind() != "impl_item" {
            found.push(Symbol { name: inside.clone(), lines });
        }
    }
    let mut cursor = node.walk();
    for child in node.children(&mut cursor) {
        collect(child, text, &inside, depth + 1, found);
    }
}

/// The name that a definition gives.
fn name_of(node: Node<'_>, text: &str) -> Option<String> {
    let field = match node.kind() {
        "impl_item" => "type",
        "function_item"
        | "struct_item"
        | "enum_item"
        | "trait_item"
        | "mod_item"
        | "const_item"
        | "static_item"
        | "type_item"
        | "macro_definition"
        | "function_definition"
        | "class_definition"
        | "function_declaration"
        | "generator_function_declaration"
        | "method_definition"
        | "class_declaration"
        | "abstract_class_declaration"
        | "interface_declaration"
        | "type_alias_declaration"
        | "enum_declaration"
        | "method_declaration"
        | "type_spec"
        | "variable_declarator" => "name",
        _ => return None,
    };
    let name = node.child_by_field_name(field)?;
    // A variable is a definition where it holds a function; others are lines of one.
    if node.kind() == "variable_declarator" {
        let value = node.child_by_field_name("value")?;
        if !["arrow_function", "function_expression", "function"].contains(&value.kind()) {
            return None;
        }
    }
    text.get(name.byte_range()).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(path: &str, text: &str, first: u32, last: u32) -> Option<String> {
        symbol_at(path, text, LineRange { first, last }).map(|symbol| symbol.name)
    }

    #[test]
    fn lines_belong_to_the_innermost_definition() {
        let rust = "struct A;\nimpl A {\n    fn one() {\n        1;\n    }\n    fn two() {}\n}\nfn three() {}\n";
        assert_eq!(at("a.rs", rust, 4, 4).as_deref(), Some("A::one"));
        assert_eq!(at("a.rs", rust, 6, 6).as_deref(), Some("A::two"));
        assert_eq!(at("a.rs", rust, 4, 6), None, "two functions are edited");
        let python = "class A:\n    def one(self):\n        pass\n\ndef two():\n    pass\n";
        assert_eq!(at("a.py", python, 3, 3).as_deref(), Some("A::one"));
        let typescript =
            "export class A {\n  one(): void {\n  }\n}\nexport const two = () => {\n  1;\n};\n";
        assert_eq!(at("a.ts", typescript, 2, 3).as_deref(), Some("A::one"));
        assert_eq!(at("a.ts", typescript, 6, 6).as_deref(), Some("two"));
        let go = "package a\n\nfunc (a A) One() {\n}\n\ntype B struct {\n}\n";
        assert_eq!(at("a.go", go, 3, 4).as_deref(), Some("One"));
        assert_eq!(at("a.go", go, 6, 7).as_deref(), Some("B"));
        assert_eq!(at("a.js", "function one() {\n}\n", 1, 2).as_deref(), Some("one"));
        assert_eq!(at("a.txt", rust, 4, 4), None);
        assert_eq!(at("a.rs", "fn broken( {{{ \0", 1, 1), None);
    }
}
