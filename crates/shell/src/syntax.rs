//! Shell text to a small syntax tree. The only module that knows `brush_parser`.
//!
//! Invariants:
//! - Bounded: text that would cost the grammar exponential time, a deep stack or a panic is refused
//!   before it is parsed; the refusal is an [`ParseFailure`] with the reason.
//! - Nothing is dropped: every word, assignment and redirection of the text is in the tree.

use std::rc::Rc;

use brush_parser::ast;
use brush_parser::{ParserOptions, Token};

use super::guard;

/// Why a text has no tree; words for a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ParseFailure(pub String);

impl ParseFailure {
    pub(super) fn because(reason: impl Into<String>) -> Self {
        Self(reason.into())
    }
}

/// One command of the tree, simple or compound.
#[derive(Debug)]
pub(super) enum Node {
    Simple(Vec<CommandPart>),
    Pipeline(Vec<Node>),
    /// The first runs, the others perhaps: `a && b || c`.
    AndOr(Vec<Node>),
    /// Its changes to variables and directory end with it: `( … )`, `… &`, `coproc`.
    Subshell(Vec<Node>, Vec<Redirect>),
    Braces(Vec<Node>, Vec<Redirect>),
    /// Words that are expanded, then lists of which each may run: `if`, `case`.
    Choice(Vec<String>, Vec<Vec<Node>>, Vec<Redirect>),
    Loop {
        /// The variable and its words; no words means the positional parameters.
        each: Option<(String, Option<Vec<String>>)>,
        lists: Vec<Vec<Node>>,
        redirects: Vec<Redirect>,
    },
    Function(String, Rc<Vec<Node>>),
    /// Words that are expanded and compared, never run: `[[ … ]]`.
    Test(Vec<String>, Vec<Redirect>),
    Arithmetic(String, Vec<Redirect>),
}

/// What a simple command is made of, in order.
#[derive(Debug)]
pub(super) enum CommandPart {
    Assign(Assign),
    Word(String),
    Redirect(Redirect),
    /// `<( … )` and `>( … )`.
    Process(Vec<Node>),
}

/// `name=value`, `name+=value`, `name=(a b)`, `name[i]=value`.
#[derive(Debug)]
pub(super) struct Assign {
    pub name: String,
    pub index: Option<String>,
    pub append: bool,
    pub value: Value,
    /// The text as a word, for commands that take it as an argument (`dd of=x`).
    pub raw: String,
}

#[derive(Debug)]
pub(super) enum Value {
    One(String),
    /// The elements of an array, each with its key where it has one.
    Many(Vec<(Option<String>, String)>),
}

#[derive(Debug)]
pub(super) enum Redirect {
    From(String),
    /// A file that is written, and whether what it held stays.
    To(String, Append),
    /// `<( … )` or `>( … )` as the target; `true` when the command reads from it.
    Process(Vec<Node>, bool),
    /// A here-document, and whether its text is expanded.
    Document(String, bool),
    /// A here-string: one word.
    Text(String),
    /// `>&2`, `<&3`, `2>&-`, or a file when it is neither number nor dash.
    Duplicate(String),
}

/// Whether a written file keeps what it held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Append {
    Yes,
    No,
}

/// Parses `text`, or says why not.
pub(super) fn parse(text: &str) -> Result<Vec<Node>, ParseFailure> {
    guard::before_tokens(text)?;
    // The tokenizer takes the `)` of a pattern for the end of the substitution around it.
    if text.contains("case")
        && text.contains("$(")
        && let Ok(nodes) = parse_with(&with_open_patterns(text), false)
    {
        return Ok(nodes);
    }
    // Bash reads `!(x)` as a negated subshell unless `extglob` is on, so that comes first.
    parse_with(text, false).or_else(|error| parse_with(text, true).map_err(|_| error))
}

/// `case x in a) …;; b) …` with the optional parenthesis before each pattern.
fn with_open_patterns(text: &str) -> String {
    let mut result = String::with_capacity(text.len() + 16);
    let mut rest = text;
    while let Some((at, length)) = [" in ", " in\n", ";;"]
        .iter()
        .filter_map(|opener| rest.find(opener).map(|at| (at, opener.len())))
        .min()
    {
        let (before, after) = rest.split_at(at + length);
        result.push_str(before);
        let pattern = after.trim_start();
        result.push_str(&after[..after.len() - pattern.len()]);
        let stop = pattern.find([')', '(', '\n', ';']);
        if stop.is_some_and(|stop| pattern[stop..].starts_with(')')) && !pattern.starts_with("esac")
        {
            result.push('(');
        }
        rest = pattern;
    }
    result.push_str(rest);
    result
}

/// Parses, and takes a panic of the grammar's, which is not ours, for one more thing that it cannot read.
fn parse_with(text: &str, extended_globs: bool) -> Result<Vec<Node>, ParseFailure> {
    std::panic::catch_unwind(|| parse_once(text, extended_globs))
        .unwrap_or_else(|_| Err(ParseFailure::because("it breaks the reader of commands")))
}

fn parse_once(text: &str, extended_globs: bool) -> Result<Vec<Node>, ParseFailure> {
    let options =
        ParserOptions { enable_extended_globbing: extended_globs, ..ParserOptions::default() };
    let mut tokens = brush_parser::uncached_tokenize_str(text, &options.tokenizer_options())
        .map_err(|error| ParseFailure::because(format!("it does not parse: {error}")))?;
    guard::before_grammar(&tokens)?;
    part_parentheses(&mut tokens);
    part_semicolons(&mut tokens);
    let program = brush_parser::parse_tokens(&tokens, &options)
        .map_err(|error| ParseFailure::because(format!("it does not parse: {error}")))?;
    Ok(program.complete_commands.into_iter().flat_map(list).collect())
}

/// Puts a line break between two opening parentheses that bash does not read as arithmetic.
///
/// The grammar takes any two for `((`. To bash `( (a) )` and `((a) )` are subshells: arithmetic needs
/// both pairs without a blank between them.
fn part_parentheses(tokens: &mut Vec<Token>) {
    let mut at = 0;
    let mut in_test = false;
    while at + 1 < tokens.len() {
        match token_text(&tokens[at]) {
            ("[[", false) => in_test = true,
            ("]]", false) => in_test = false,
            ("(", true) if !in_test && token_text(&tokens[at + 1]) == ("(", true) => {
                let arithmetic = are_adjacent(&tokens[at], &tokens[at + 1])
                    && closing(tokens, at + 1).is_some_and(|end| {
                        let next = tokens.get(end + 1);
                        next.is_some_and(|next| {
                            token_text(next) == (")", true) && are_adjacent(&tokens[end], next)
                        })
                    });
                if !arithmetic {
                    let place = tokens[at].location().clone();
                    tokens.insert(at + 1, Token::Operator("\n".to_owned(), place));
                }
            }
            _ => {}
        }
        at += 1;
    }
}

/// In the head of `for ((;;))` two semicolons are two, not the end of a `case` arm.
fn part_semicolons(tokens: &mut Vec<Token>) {
    let mut at = 0;
    while at + 2 < tokens.len() {
        let head = token_text(&tokens[at]) == ("for", false)
            && token_text(&tokens[at + 1]) == ("(", true)
            && token_text(&tokens[at + 2]) == ("(", true);
        at += 1;
        let end = if head { closing(tokens, at).unwrap_or(at) } else { at };
        let found = (at..end).find(|&index| token_text(&tokens[index]) == (";;", true));
        if let Some(index) = found {
            let one = Token::Operator(";".to_owned(), tokens[index].location().clone());
            tokens[index] = one.clone();
            tokens.insert(index, one);
        }
    }
}

/// Whether two tokens touch.
fn are_adjacent(left: &Token, right: &Token) -> bool {
    left.location().end.index == right.location().start.index
}

/// The index of the parenthesis that closes the one at `open`.
fn closing(tokens: &[Token], open: usize) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate().skip(open) {
        match token_text(token) {
            ("(", true) => depth += 1,
            (")", true) => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(at);
                }
            }
            _ => {}
        }
    }
    None
}

fn list(items: ast::CompoundList) -> Vec<Node> {
    items
        .0
        .into_iter()
        .map(|ast::CompoundListItem(and_or, separator)| {
            let node = and_or_list(and_or);
            match separator {
                ast::SeparatorOperator::Async => Node::Subshell(vec![node], Vec::new()),
                ast::SeparatorOperator::Sequence => node,
            }
        })
        .collect()
}

fn and_or_list(and_or: ast::AndOrList) -> Node {
    let first = pipeline(and_or.first);
    if and_or.additional.is_empty() {
        return first;
    }
    let rest = and_or.additional.into_iter().map(|item| match item {
        ast::AndOr::And(next) | ast::AndOr::Or(next) => pipeline(next),
    });
    Node::AndOr(std::iter::once(first).chain(rest).collect())
}

fn pipeline(pipeline: ast::Pipeline) -> Node {
    let mut nodes: Vec<Node> = pipeline.seq.into_iter().map(command).collect();
    match nodes.len() {
        1 => nodes.remove(0),
        _ => Node::Pipeline(nodes),
    }
}

fn command(command: ast::Command) -> Node {
    match command {
        ast::Command::Simple(simple) => Node::Simple(parts(simple)),
        ast::Command::Compound(compound, redirects) => {
            self::compound(compound, self::redirects(redirects))
        }
        ast::Command::Function(function) => {
            let ast::FunctionBody(body, redirects) = function.body;
            let body = compound(body, self::redirects(redirects));
            Node::Function(function.fname.value, Rc::new(vec![body]))
        }
        ast::Command::ExtendedTest(test, redirects) => {
            let mut words = Vec::new();
            test_words(test.expr, &mut words);
            Node::Test(words, self::redirects(redirects))
        }
    }
}

fn compound(compound: ast::CompoundCommand, redirects: Vec<Redirect>) -> Node {
    use ast::CompoundCommand as C;
    match compound {
        C::Arithmetic(arithmetic) => Node::Arithmetic(arithmetic.expr.value, redirects),
        C::ArithmeticForClause(clause) => {
            let head = [clause.initializer, clause.condition, clause.updater];
            let head = head.into_iter().flatten().map(|part| part.value).collect::<Vec<_>>();
            let head = Node::Arithmetic(head.join(";"), Vec::new());
            Node::Loop { each: None, lists: vec![vec![head], list(clause.body.list)], redirects }
        }
        C::BraceGroup(group) => Node::Braces(list(group.list), redirects),
        C::Subshell(subshell) => Node::Subshell(list(subshell.list), redirects),
        C::ForClause(clause) => {
            let words = clause.values.map(|words| words.into_iter().map(|w| w.value).collect());
            let each = Some((clause.variable_name, words));
            Node::Loop { each, lists: vec![list(clause.body.list)], redirects }
        }
        C::CaseClause(clause) => {
            let mut words = vec![clause.value.value];
            let mut arms = vec![Vec::new()];
            for item in clause.cases {
                words.extend(item.patterns.into_iter().map(|pattern| pattern.value));
                arms.extend(item.cmd.map(list));
            }
            Node::Choice(words, arms, redirects)
        }
        C::IfClause(clause) => {
            let mut lists = vec![list(clause.condition), list(clause.then)];
            for part in clause.elses.into_iter().flatten() {
                lists.extend(part.condition.map(list));
                lists.push(list(part.body));
            }
            Node::Choice(Vec::new(), lists, redirects)
        }
        C::WhileClause(clause) | C::UntilClause(clause) => {
            let ast::WhileOrUntilClauseCommand(condition, body, _) = clause;
            Node::Loop { each: None, lists: vec![list(condition), list(body.list)], redirects }
        }
        C::Coprocess(process) => Node::Subshell(vec![command(*process.body)], redirects),
    }
}

fn parts(simple: ast::SimpleCommand) -> Vec<CommandPart> {
    let prefix = simple.prefix.into_iter().flat_map(|prefix| prefix.0).map(part);
    let name = simple.word_or_name.into_iter().map(|word| CommandPart::Word(word.value));
    let suffix = simple.suffix.into_iter().flat_map(|suffix| suffix.0).map(part);
    prefix.chain(name).chain(suffix).collect()
}

fn part(item: ast::CommandPrefixOrSuffixItem) -> CommandPart {
    use ast::CommandPrefixOrSuffixItem as Item;
    match item {
        Item::IoRedirect(redirect) => CommandPart::Redirect(self::redirect(redirect)),
        Item::Word(word) => CommandPart::Word(word.value),
        Item::AssignmentWord(assignment, word) => {
            let (name, index) = match assignment.name {
                ast::AssignmentName::VariableName(name) => (name, None),
                ast::AssignmentName::ArrayElementName(name, index) => (name, Some(index)),
            };
            let value = match assignment.value {
                ast::AssignmentValue::Scalar(word) => Value::One(word.value),
                ast::AssignmentValue::Array(elements) => Value::Many(
                    elements
                        .into_iter()
                        .map(|(key, word)| (key.map(|key| key.value), word.value))
                        .collect(),
                ),
            };
            let append = assignment.append;
            CommandPart::Assign(Assign { name, index, append, value, raw: word.value })
        }
        Item::ProcessSubstitution(_, subshell) => CommandPart::Process(list(subshell.list)),
    }
}

fn redirects(redirects: Option<ast::RedirectList>) -> Vec<Redirect> {
    redirects.into_iter().flat_map(|list| list.0).map(redirect).collect()
}

fn redirect(redirect: ast::IoRedirect) -> Redirect {
    use ast::IoFileRedirectKind as Kind;
    use ast::IoFileRedirectTarget as Target;
    match redirect {
        ast::IoRedirect::File(_, kind, target) => match target {
            Target::Filename(word) => match kind {
                Kind::Read => Redirect::From(word.value),
                Kind::Write | Kind::Clobber => Redirect::To(word.value, Append::No),
                Kind::Append | Kind::ReadAndWrite => Redirect::To(word.value, Append::Yes),
                Kind::DuplicateInput | Kind::DuplicateOutput => Redirect::Duplicate(word.value),
            },
            Target::Fd(number) => Redirect::Duplicate(number.to_string()),
            Target::Duplicate(word) => Redirect::Duplicate(word.value),
            Target::ProcessSubstitution(kind, subshell) => {
                let read = matches!(kind, ast::ProcessSubstitutionKind::Read);
                Redirect::Process(list(subshell.list), read)
            }
        },
        ast::IoRedirect::HereDocument(_, document) => {
            Redirect::Document(document.doc.value, document.requires_expansion)
        }
        ast::IoRedirect::HereString(_, word) => Redirect::Text(word.value),
        ast::IoRedirect::OutputAndError(word, false) => Redirect::To(word.value, Append::No),
        ast::IoRedirect::OutputAndError(word, true) => Redirect::To(word.value, Append::Yes),
    }
}

fn test_words(test: ast::ExtendedTestExpr, words: &mut Vec<String>) {
    use ast::ExtendedTestExpr as E;
    match test {
        E::And(left, right) | E::Or(left, right) => {
            test_words(*left, words);
            test_words(*right, words);
        }
        E::Not(inner) | E::Parenthesized(inner) => test_words(*inner, words),
        E::UnaryTest(_, word) => words.push(word.value),
        E::BinaryTest(_, left, right) => words.extend([left.value, right.value]),
    }
}

/// The text of an operator or word token, for [`guard`].
pub(super) fn token_text(token: &Token) -> (&str, bool) {
    match token {
        Token::Operator(text, _) => (text, true),
        Token::Word(text, _) => (text, false),
    }
}
