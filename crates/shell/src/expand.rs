//! A word to the arguments it may become, as far as the text says.
//!
//! A word has several *variants* where a variable may hold several values, and each variant has
//! several *fields* where it splits. Substitutions found on the way are walked like any command.

use super::Via;
use super::guard::LONGEST_TEXT as LONGEST_WORD;
use super::state::{Arg, Fields, MOST_FIELDS, MOST_VALUES, UNKNOWN, Values};
use super::syntax;
use super::walk::Walk;
use super::word::{self, Operation, Piece};

/// The most words one brace expansion is followed through.
const MOST_BRACES: usize = 64;

/// Characters without which a word is just its text.
const SPECIAL: &[char] = &['$', '`', '\\', '\'', '"', '~', '{', '*', '?', '[', '('];

impl Walk<'_> {
    /// The arguments `word` may become: variants of fields. Never empty.
    pub(super) fn expand(&mut self, word: &str) -> Values {
        if !word.contains(SPECIAL) {
            let text = word.to_owned();
            return vec![vec![Arg { text, quoted: false, glob: false }]];
        }
        let mut variants: Values = vec![Vec::new()];
        for word in braces(word) {
            let next = match word::pieces(&word) {
                Ok(pieces) => self.build(&pieces),
                Err(failure) => {
                    self.note_unreadable(&word, &failure.0);
                    vec![vec![Arg::unknown()]]
                }
            };
            variants = combine(variants, &next);
        }
        variants
    }

    /// The one text `word` becomes, without splitting; unknown where it may be several.
    pub(super) fn expand_to_text(&mut self, word: &str) -> Arg {
        let variants = self.expand(word);
        match &variants[..] {
            [fields] => join_fields(fields),
            _ => Arg::unknown(),
        }
    }

    /// The text of a here-document or an arithmetic expression.
    pub(super) fn expand_document(&mut self, text: &str) -> Arg {
        match word::document_pieces(text) {
            Ok(pieces) => match &self.build(&pieces)[..] {
                [fields] => join_fields(fields),
                _ => Arg::unknown(),
            },
            Err(failure) => {
                self.note_unreadable(text, &failure.0);
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
                    let value = self.expand_document(text);
                    let number = value.known().filter(|t| t.trim().parse::<i64>().is_ok());
                    let number = number.map_or(UNKNOWN.to_string(), |t| t.trim().to_owned());
                    for word in &mut words {
                        word.push(&number, true);
                    }
                }
                Piece::Command { script, quoted } => {
                    let output = self.substitution(script);
                    words = self.append(words, &[vec![output]], *quoted, false);
                }
                Piece::Variable { name, operation, quoted } => {
                    let all = matches!(operation, Operation::All) || matches!(&**name, "@" | "*");
                    let values = self.variable(name, operation);
                    words = self.append(words, &values, *quoted, all);
                }
            }
        }
        words.into_iter().map(|word| word.fields).collect()
    }

    /// Each word with each value appended, split where the shell would split.
    fn append(&self, words: Vec<Word>, values: &[Fields], quoted: bool, all: bool) -> Vec<Word> {
        let unknown = [vec![Arg::unknown()]];
        let values = if words.len() * values.len() > MOST_VALUES { &unknown[..] } else { values };
        let mut result = Vec::with_capacity(words.len() * values.len());
        for word in words {
            for value in values {
                let mut word = word.clone();
                for (index, field) in
                    value.iter().take(if all { usize::MAX } else { 1 }).enumerate()
                {
                    if index > 0 {
                        word.open = false;
                    }
                    match quoted {
                        true => word.push(&field.text, true),
                        false => word.push_split(&field.text, self.state.splits_elsewhere),
                    }
                }
                result.push(word);
            }
        }
        result
    }

    fn tilde(&self, user: &str) -> String {
        match user {
            "" => self.context.home.clone(),
            "+" => self.state.directories.first().cloned().flatten().unwrap_or(UNKNOWN.to_string()),
            "root" => "/root".to_owned(),
            _ => UNKNOWN.to_string(),
        }
    }

    fn variable(&mut self, name: &str, operation: &Operation) -> Values {
        let unknown = || vec![vec![Arg::unknown()]];
        match operation {
            Operation::Plain | Operation::All => self.value(name).unwrap_or_else(unknown),
            Operation::Element(index) => {
                let index = self.expand_document(index);
                let index = index.known().and_then(|text| text.trim().parse::<usize>().ok());
                match (self.value(name), index) {
                    (Some(values), Some(index)) => values
                        .into_iter()
                        .map(|fields| fields.into_iter().nth(index).into_iter().collect())
                        .collect(),
                    _ => unknown(),
                }
            }
            Operation::Or { word, assigns } => {
                let alternative = self.expand(word);
                if *assigns {
                    self.state.set(name, alternative.clone());
                }
                let mut values = self.value(name).unwrap_or_else(unknown);
                values.extend(alternative.into_iter().map(|fields| vec![join_fields(&fields)]));
                values
            }
            Operation::Prompt => {
                self.prompt(name);
                unknown()
            }
            Operation::Indirect(rest) => {
                self.expand_document(rest);
                let target = self.value(name).and_then(|values| match &values[..] {
                    [fields] => join_fields(fields).known().map(str::to_owned),
                    _ => None,
                });
                target.and_then(|target| self.value(&target)).unwrap_or_else(unknown)
            }
            Operation::Computed(text) => {
                self.expand_document(text);
                match (text.starts_with('%'), self.value(name)) {
                    // Cutting the end off leaves the directory a path is in.
                    (true, Some(values)) => values.iter().map(|fields| vec![cut(fields)]).collect(),
                    _ => unknown(),
                }
            }
        }
    }

    /// The values a variable may have; `None` when the text does not say.
    fn value(&self, name: &str) -> Option<Values> {
        let positional = self.state.positional.as_ref();
        match name {
            "@" | "*" => positional.cloned(),
            _ => match name.parse::<usize>() {
                Ok(0) => None,
                Ok(n) => positional.map(|variants| {
                    let nth = |args: &Vec<Arg>| args.get(n - 1).cloned().into_iter().collect();
                    variants.iter().map(nth).collect()
                }),

                Err(_) => self.state.variables.get(name).cloned(),
            },
        }
    }

    /// `${name@P}`: what the value holds is executed.
    fn prompt(&mut self, name: &str) {
        for fields in self.value(name).unwrap_or_else(|| vec![vec![Arg::unknown()]]) {
            match join_fields(&fields).known() {
                Some(text) => drop(self.expand_document(text)),
                None => self.note_unreadable(
                    &format!("${{{name}@P}}"),
                    "`@P` executes what the variable holds, which is not known",
                ),
            }
        }
    }

    /// Walks a substitution and says what it prints, where that is plain.
    pub(super) fn substitution(&mut self, script: &str) -> Arg {
        let nodes = match self.parse(script) {
            Ok(nodes) => nodes,
            Err(failure) => {
                self.note_unreadable(script, &failure.0);
                return Arg::unknown();
            }
        };
        self.in_subshell(Via::Substitution, |walk| walk.list(&nodes));
        self.output(&nodes).map_or_else(Arg::unknown, |text| Arg {
            text: text.trim_end_matches('\n').to_owned(),
            quoted: false,
            glob: false,
        })
    }

    pub(super) fn parse(
        &mut self,
        script: &str,
    ) -> Result<Vec<syntax::Node>, syntax::ParseFailure> {
        self.charge(script)?;
        syntax::parse(script)
    }
}

/// The fields as one text, as between quotes.
pub(super) fn join_fields(fields: &[Arg]) -> Arg {
    let text = fields.iter().map(|arg| &*arg.text).collect::<Vec<_>>().join(" ");
    Arg { text, quoted: fields.iter().any(|arg| arg.quoted), glob: false }
}

/// A path of which the end is not known.
fn cut(fields: &[Arg]) -> Arg {
    let whole = join_fields(fields);
    let directory = whole.text.rfind('/').map_or("", |at| &whole.text[..=at]);
    let text = match whole.text.starts_with(UNKNOWN) {
        true => UNKNOWN.to_string(),
        false if directory.is_empty() => format!("./{UNKNOWN}"),
        false => format!("{directory}{UNKNOWN}"),
    };
    Arg { text, quoted: whole.quoted, glob: false }
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

    fn push_split(&mut self, text: &str, splits_elsewhere: bool) {
        if splits_elsewhere && !text.is_empty() {
            return self.push(&UNKNOWN.to_string(), false);
        }
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

/// `a{b,c}d` as `abd acd`: textual and first, as the shell does it.
fn braces(word: &str) -> Vec<String> {
    let mut done = Vec::new();
    let mut queue = vec![word.to_owned()];
    while let Some(next) = queue.pop() {
        match first_brace(&next) {
            Some((start, end, choices))
                if done.len() + queue.len() + choices.len() <= MOST_BRACES =>
            {
                for choice in choices.iter().rev() {
                    queue.push(format!("{}{choice}{}", &next[..start], &next[end..]));
                }
            }
            _ => done.push(next),
        }
    }
    done
}

/// Where the first brace expression of `word` starts and ends, and what it may be.
fn first_brace(word: &str) -> Option<(usize, usize, Vec<String>)> {
    let bytes = word.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 1,
            b'\'' | b'"' | b'`' => at = close_quote(bytes, at)?,
            b'$' if matches!(bytes.get(at + 1), Some(b'(' | b'{' | b'[')) => {
                at = close_expansion(bytes, at + 1)?;
            }
            b'{' => {
                if let Some(found) = brace_at(word, at) {
                    return Some(found);
                }
            }
            _ => {}
        }
        at += 1;
    }
    None
}

fn brace_at(word: &str, start: usize) -> Option<(usize, usize, Vec<String>)> {
    let bytes = word.as_bytes();
    let (mut depth, mut from, mut choices) = (0_usize, start + 1, Vec::new());
    let mut at = start + 1;
    loop {
        match *bytes.get(at)? {
            b'\\' => at += 1,
            b'\'' | b'"' | b'`' => at = close_quote(bytes, at)?,
            b'$' if matches!(bytes.get(at + 1), Some(b'(' | b'{' | b'[')) => {
                at = close_expansion(bytes, at + 1)?;
            }
            b'{' => depth += 1,
            b'}' if depth > 0 => depth -= 1,
            b'}' => break,
            b',' if depth == 0 => {
                choices.push(word[from..at].to_owned());
                from = at + 1;
            }
            _ => {}
        }
        at += 1;
    }
    if choices.is_empty() {
        choices = sequence(&word[start + 1..at])?;
    } else {
        choices.push(word[from..at].to_owned());
    }
    Some((start, at + 1, choices))
}

/// `a..e` letter by letter; of numbers only the ends, since no command is named by them.
fn sequence(inner: &str) -> Option<Vec<String>> {
    let (first, last) = inner.split_once("..")?;
    let last = last.split("..").next()?;
    if first.parse::<i64>().is_ok() && last.parse::<i64>().is_ok() {
        return Some(vec![first.to_owned(), last.to_owned()]);
    }
    let (&[first], &[last]) = (first.as_bytes(), last.as_bytes()) else { return None };
    (first.is_ascii_alphabetic() && last.is_ascii_alphabetic()).then(|| {
        (first.min(last)..=first.max(last)).map(|byte| char::from(byte).to_string()).collect()
    })
}

fn close_quote(bytes: &[u8], start: usize) -> Option<usize> {
    let mut at = start + 1;
    while *bytes.get(at)? != bytes[start] {
        at += if bytes[start] != b'\'' && bytes[at] == b'\\' { 2 } else { 1 };
    }
    Some(at)
}

fn close_expansion(bytes: &[u8], start: usize) -> Option<usize> {
    let (open, close) = match bytes[start] {
        b'(' => (b'(', b')'),
        b'{' => (b'{', b'}'),
        _ => (b'[', b']'),
    };
    let (mut depth, mut at) = (0_usize, start);
    loop {
        match *bytes.get(at)? {
            b'\\' => at += 1,
            b'\'' | b'"' | b'`' => at = close_quote(bytes, at)?,
            byte if byte == open => depth += 1,
            byte if byte == close => {
                depth -= 1;
                if depth == 0 {
                    return Some(at);
                }
            }
            _ => {}
        }
        at += 1;
    }
}
