//! A word to the arguments it may become, as far as the text says.
//!
//! A word has several *variants* where a variable may hold several values, and each variant has
//! several *fields* where it splits. Substitutions found on the way are walked like any command.

mod arithmetic;
mod braces;
mod operators;

use super::guard::LONGEST_TEXT as LONGEST_WORD;
use super::state::{Arg, Fields, MOST_FIELDS, MOST_VALUES, UNKNOWN, Values};
use super::walk::Walk;
use super::word::{self, Operation, Piece};
use super::{Via, output};

/// Characters without which a word is just its text.
const SPECIAL: &[char] = &['$', '`', '\\', '\'', '"', '~', '{', '*', '?', '[', '('];

/// Expands words in the current state of the walk.
pub(super) struct Expander<'w, 'c> {
    pub walk: &'w mut Walk<'c>,
}

impl Expander<'_, '_> {
    /// The arguments `word` may become: variants of fields. Never empty.
    pub(super) fn word(&mut self, word: &str) -> Values {
        if !word.contains(SPECIAL) {
            let text = word.to_owned();
            return vec![vec![Arg { text, quoted: false, glob: false }]];
        }
        let mut variants: Values = vec![Vec::new()];
        for word in braces::expand(word) {
            let next = match word::pieces(&word) {
                Ok(pieces) => self.build(&pieces),
                Err(failure) => {
                    self.walk.findings.note_unreadable(&word, &failure.0);
                    vec![vec![Arg::unknown()]]
                }
            };
            variants = combine(variants, &next);
        }
        variants
    }

    /// The one text `word` becomes, without splitting; unknown where it may be several.
    pub(super) fn text(&mut self, word: &str) -> Arg {
        let variants = self.word(word);
        match &variants[..] {
            [fields] => join_fields(fields),
            _ => Arg::unknown(),
        }
    }

    /// The text of a here-document or an arithmetic expression.
    pub(super) fn document(&mut self, text: &str) -> Arg {
        match word::document_pieces(text) {
            Ok(pieces) => match &self.build(&pieces)[..] {
                [fields] => join_fields(fields),
                _ => Arg::unknown(),
            },
            Err(failure) => {
                self.walk.findings.note_unreadable(text, &failure.0);
                Arg::unknown()
            }
        }
    }

    fn build(&mut self, pieces: &[Piece]) -> Values {
        let mut words = vec![Word::default()];
        for piece in pieces {
            match piece {
                Piece::Text { text, quoted } => {
                    for word in &mut words {
                        word.push(text, *quoted);
                    }
                }
                Piece::Tilde(user) => {
                    let home = self.tilde(user);
                    for word in &mut words {
                        word.push(&home, true);
                    }
                }
                Piece::Arithmetic(text) => {
                    let value = self.arithmetic(text);
                    let number = value.known().filter(|t| t.trim().parse::<i64>().is_ok());
                    let number = number.map_or(UNKNOWN.to_string(), |t| t.trim().to_owned());
                    for word in &mut words {
                        word.push(&number, true);
                    }
                }
                Piece::Command { script, quoted } => {
                    let output = self.substitution(script);
                    words = append(words, &[vec![output]], self.splitting(*quoted));
                }
                Piece::Variable { name, operation, quoted } => {
                    let all = matches!(operation, Operation::All) || matches!(&**name, "@" | "*");
                    let mut values = self.variable(name, operation);
                    if !all {
                        values.iter_mut().for_each(|fields| fields.truncate(1));
                    }
                    words = append(words, &values, self.splitting(*quoted));
                }
            }
        }
        words.into_iter().map(|word| word.fields).collect()
    }

    fn splitting(&self, quoted: bool) -> Splitting {
        let state = &self.walk.state;
        if quoted {
            return Splitting::Never;
        }
        if !state.splits_elsewhere {
            return Splitting::AtBlanks;
        }
        // Where it may be several, each of them may split.
        let values = state.value("IFS").unwrap_or_default();
        let joined: Vec<Arg> = values.iter().map(|fields| join_fields(fields)).collect();
        match joined.iter().map(Arg::known).collect::<Option<String>>() {
            Some(separators) => Splitting::At(separators.into()),
            None => Splitting::Elsewhere,
        }
    }

    /// A line as `read` splits it.
    pub(super) fn fields(&self, line: &str) -> Vec<String> {
        let mut word = Word::default();
        word.push_value(line, &self.splitting(false));
        word.fields.into_iter().map(|arg| arg.text).collect()
    }

    fn tilde(&self, user: &str) -> String {
        let Walk { context, state, .. } = &*self.walk;
        match user {
            "" => context.home.clone(),
            "+" => state.directories.first().cloned().flatten().unwrap_or(UNKNOWN.to_string()),
            "root" => "/root".to_owned(),
            _ => UNKNOWN.to_string(),
        }
    }

    fn variable(&mut self, name: &str, operation: &Operation) -> Values {
        let unknown = || vec![vec![Arg::unknown()]];
        match operation {
            Operation::Plain | Operation::All => {
                self.walk.state.value(name).unwrap_or_else(unknown)
            }
            Operation::Element(index) => {
                let index = self.arithmetic(index);
                let index = index.known().and_then(|text| text.trim().parse::<usize>().ok());
                match (self.walk.state.value(name), index) {
                    (Some(values), Some(index)) => values
                        .into_iter()
                        .map(|fields| fields.into_iter().nth(index).into_iter().collect())
                        .collect(),
                    _ => unknown(),
                }
            }
            Operation::OfElement { index, then } => {
                self.arithmetic(index);
                let values = self.variable(name, then);
                // Which element it is matters to an operator; a word in its place does not.
                if matches!(**then, Operation::Or { .. }) {
                    values.into_iter().chain(unknown()).collect()
                } else {
                    unknown()
                }
            }
            Operation::Or { word, assigns } => {
                let alternative = self.word(word);
                if *assigns {
                    self.walk.state.set(name, alternative.clone());
                }
                let mut values = self.walk.state.value(name).unwrap_or_else(unknown);
                values.extend(alternative.into_iter().map(|fields| vec![join_fields(&fields)]));
                values
            }
            Operation::Prompt => {
                self.prompt(name);
                unknown()
            }
            Operation::Indirect(rest) => self.indirect(name, rest),
            Operation::Computed(text) => self.computed(name, text),
        }
    }

    /// `${!name}`: the variable that the value names. Its index is evaluated.
    fn indirect(&mut self, name: &str, rest: &str) -> Values {
        self.document(rest);
        self.evaluate_index(&Arg::literal(rest));
        let unknown = || vec![vec![Arg::unknown()]];
        let target = self.walk.state.value(name).and_then(|values| match &values[..] {
            [fields] => join_fields(fields).known().map(str::to_owned),
            _ => None,
        });
        let Some(target) = target else { return unknown() };
        self.evaluate_index(&Arg::literal(&*target));
        self.walk.state.value(&target).unwrap_or_else(unknown)
    }

    /// `${name//a/b}` and its like: each value after the operator.
    fn computed(&mut self, name: &str, operator: &str) -> Values {
        // `${#name[index]}` evaluates the index.
        if name == operator {
            self.evaluate_index(&Arg::literal(name));
        }
        // An offset is an expression; of the others, the words are expanded as between quotes.
        let words = match operator.trim_start_matches("[]").strip_prefix(':') {
            Some(offset) => self.arithmetic(offset).text,
            None => self.document(operator).text,
        };
        let operator = match operator.starts_with(':') {
            true => format!(":{words}"),
            false => words,
        };
        let Some(values) = self.walk.state.value(name) else {
            return vec![vec![Arg::unknown()]];
        };
        if matches!(name, "@" | "*") {
            return values.iter().map(|fields| operators::arguments(&operator, fields)).collect();
        }
        let compute = |fields: &Fields| {
            let whole = fields.first().cloned().unwrap_or_else(|| Arg::literal(""));
            let result = match (whole.known(), operator.contains(UNKNOWN)) {
                (Some(value), false) => operators::apply(&operator, value),
                _ => None,
            };
            match result {
                Some(text) => Arg { text, ..whole },
                // Cutting the end off leaves the directory a path is in.
                None if operator.starts_with('%') => cut_end(fields),
                None => Arg::unknown(),
            }
        };
        values.iter().map(|fields| vec![compute(fields)]).collect()
    }

    /// `${name@P}`: what the value holds is executed.
    fn prompt(&mut self, name: &str) {
        for fields in self.walk.state.value(name).unwrap_or_else(|| vec![vec![Arg::unknown()]]) {
            match join_fields(&fields).known() {
                Some(text) => drop(self.document(text)),
                None => self.walk.findings.note_unreadable(
                    &format!("${{{name}@P}}"),
                    "`@P` executes what the variable holds, which is not known",
                ),
            }
        }
    }

    /// Walks a substitution and says what it prints, where that is plain.
    fn substitution(&mut self, script: &str) -> Arg {
        let nodes = match self.walk.parse(script) {
            Ok(nodes) => nodes,
            Err(failure) => {
                self.walk.findings.note_unreadable(script, &failure.0);
                return Arg::unknown();
            }
        };
        self.walk.in_subshell(Via::Substitution, |walk| walk.list(&nodes));
        output::of_list(self.walk, &nodes).map_or_else(Arg::unknown, |text| Arg {
            text: text.trim_end_matches('\n').to_owned(),
            quoted: false,
            glob: false,
        })
    }
}

/// The fields as one text, as between quotes.
pub(super) fn join_fields(fields: &[Arg]) -> Arg {
    let text = fields.iter().map(|arg| &*arg.text).collect::<Vec<_>>().join(" ");
    Arg { text, quoted: fields.iter().any(|arg| arg.quoted), glob: false }
}

/// A path of which the end is not known.
fn cut_end(fields: &[Arg]) -> Arg {
    let whole = join_fields(fields);
    let directory = whole.text.rfind('/').map_or("", |at| &whole.text[..=at]);
    let text = match whole.text.starts_with(UNKNOWN) {
        true => UNKNOWN.to_string(),
        false if directory.is_empty() => format!("./{UNKNOWN}"),
        false => format!("{directory}{UNKNOWN}"),
    };
    Arg { text, quoted: whole.quoted, glob: false }
}

/// Where a value splits into fields.
#[derive(Clone)]
enum Splitting {
    /// Nowhere: it is quoted.
    Never,
    AtBlanks,
    /// At the characters of an `IFS` that is known; nowhere when there are none.
    At(std::rc::Rc<str>),
    /// At characters that are not known.
    Elsewhere,
}

/// Each word with each value appended, split where the shell would split.
fn append(words: Vec<Word>, values: &[Fields], splitting: Splitting) -> Vec<Word> {
    let unknown = [vec![Arg::unknown()]];
    let values = if words.len() * values.len() > MOST_VALUES { &unknown[..] } else { values };
    let mut result = Vec::with_capacity(words.len() * values.len());
    for word in words {
        for value in values {
            let mut word = word.clone();
            for (index, field) in value.iter().enumerate() {
                if index > 0 {
                    word.open = false;
                }
                word.push_value(&field.text, &splitting);
            }
            result.push(word);
        }
    }
    result
}

/// A word under construction.
#[derive(Clone, Default)]
struct Word {
    fields: Vec<Arg>,
    /// Whether the last field may still grow.
    open: bool,
}

impl Word {
    fn push(&mut self, text: &str, quoted: bool) {
        let bracket = || text.find('[').is_some_and(|at| text[at..].contains(']'));
        let extended = || ["!(", "+(", "@("].iter().any(|opener| text.contains(opener));
        let glob = !quoted && (text.contains(['*', '?']) || bracket() || extended());
        if self.fields.len() > MOST_FIELDS {
            self.fields = vec![Arg::unknown()];
        }
        match self.fields.last_mut() {
            Some(last) if self.open && last.text.len() + text.len() > LONGEST_WORD => {
                *last = Arg::unknown();
            }
            Some(last) if self.open => {
                last.text.push_str(text);
                last.quoted |= quoted;
                last.glob |= glob;
            }
            _ => self.fields.push(Arg { text: text.to_owned(), quoted, glob }),
        }
        self.open = true;
    }

    fn push_value(&mut self, text: &str, splitting: &Splitting) {
        match splitting {
            Splitting::Never => self.push(text, true),
            Splitting::At(separators) => {
                let blanks = |c: char| if separators.contains(c) { ' ' } else { c };
                let has_blanks = text.contains(char::is_whitespace)
                    && !text.chars().filter(|c| c.is_whitespace()).all(|c| separators.contains(c));
                match separators.is_empty() {
                    true => self.push(text, false),
                    // Blanks that stay and separators at once: words are not what they seem.
                    false if has_blanks => self.push(&UNKNOWN.to_string(), false),
                    false => self.push_split(&text.chars().map(blanks).collect::<String>()),
                }
            }
            Splitting::Elsewhere if !text.is_empty() => self.push(&UNKNOWN.to_string(), false),
            Splitting::Elsewhere | Splitting::AtBlanks => self.push_split(text),
        }
    }

    fn push_split(&mut self, text: &str) {
        if text.starts_with(char::is_whitespace) {
            self.open = false;
        }
        for (index, field) in text.split_whitespace().enumerate() {
            if index > 0 {
                self.open = false;
            }
            self.push(field, false);
        }
        if text.ends_with(char::is_whitespace) {
            self.open = false;
        }
    }
}

/// Every variant of `left` followed by every variant of `right`, up to a limit.
pub(super) fn combine(left: Values, right: &[Fields]) -> Values {
    if let [only] = right {
        let mut left = left;
        for fields in &mut left {
            fields.extend(only.iter().cloned());
        }
        return left;
    }
    if left.len() * right.len() > MOST_VALUES {
        // Beyond the limit the word is one that is not known, but what it may start with stays.
        let mut left = left;
        for fields in &mut left {
            fields.push(Arg::unknown());
        }
        return left;
    }
    left.iter()
        .flat_map(|fields| right.iter().map(move |more| [&fields[..], &more[..]].concat()))
        .collect()
}
