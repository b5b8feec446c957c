//! What is known about the shell while its text is read: variables, functions, directory, input.
//!
//! Invariants:
//! - A variable holds every value it may have at this point; more than a few are `UNKNOWN`.
//! - Where paths through the text join, nothing that one of them knew is forgotten.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use super::syntax::{Assign, Node, Value};

/// Replaces text that is only known when the command runs. No argument can hold a NUL.
pub(super) const UNKNOWN: char = '\0';

/// Stands for the search path that commands start with: directories of the system alone.
const USUAL_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// The most values one variable is followed through.
pub(super) const MOST_VALUES: usize = 8;

/// The longest value followed; `a=$a$a` doubles at every step.
pub(super) const LONGEST_VALUE: usize = 16 * 1024;

/// The most fields of one value followed; `a=("${a[@]}" "${a[@]}")` doubles too.
pub(super) const MOST_FIELDS: usize = 1_000;

/// One argument, as far as it is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Arg {
    /// The text, with [`UNKNOWN`] for each part that is not known.
    pub text: String,
    /// Whether a part of it was quoted.
    pub quoted: bool,
    /// Whether the shell would still replace it by matching file names.
    pub glob: bool,
}

impl Arg {
    pub(super) fn literal(text: impl Into<String>) -> Self {
        Self { text: text.into(), quoted: true, glob: false }
    }

    pub(super) fn unknown() -> Self {
        Self { text: UNKNOWN.to_string(), quoted: false, glob: false }
    }

    /// The text, if every part of it is known.
    pub(super) fn known(&self) -> Option<&str> {
        (!self.text.contains(UNKNOWN)).then_some(&*self.text)
    }

    /// The text without the parts that are not known, which may well be empty.
    pub(super) fn without_unknown(&self) -> String {
        self.text.replace(UNKNOWN, "")
    }

    /// Shell text that reads back as this argument.
    pub(super) fn to_source(&self) -> String {
        match self.known() {
            Some(text) => format!("'{}'", text.replace('\'', r"'\''")),
            None => "$__unknown__".to_owned(),
        }
    }
}

/// What a command would read from its input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Input {
    /// Nothing that this text says.
    Inherited,
    /// The output of another command.
    Pipe,
    /// The contents of a file.
    File(String),
    Text(String),
}

/// The values a variable may have; each is one field, or several of an array.
pub(super) type Values = Vec<Fields>;

/// The words that one expansion gives.
pub(super) type Fields = Vec<Arg>;

/// What the shell knows at one point of the text.
#[derive(Clone, Debug)]
pub(super) struct State {
    pub variables: BTreeMap<String, Values>,
    pub functions: BTreeMap<String, Vec<Rc<Vec<Node>>>>,
    pub aliases: BTreeMap<String, String>,
    /// Every directory this may be; `None` for one that is not known.
    pub directories: Vec<Option<String>>,
    /// What `$1`, `$2` … may be, where the text sets them.
    pub positional: Option<Values>,
    pub input: Input,
    /// Variables whose values are evaluated as arithmetic: `declare -i`.
    pub integers: BTreeSet<String>,
    /// Variables that are other names of variables: `declare -n`.
    pub references: BTreeMap<String, String>,
    /// Whether `IFS` was changed, so that words split at other places than blanks.
    pub splits_elsewhere: bool,
    /// Grows with every change, so that a loop knows whether to look at its body again.
    pub changes: usize,
}

impl State {
    pub(super) fn new(directory: &str, home: &str) -> Self {
        let mut state = Self {
            variables: BTreeMap::new(),
            functions: BTreeMap::new(),
            aliases: BTreeMap::new(),
            directories: vec![Some(directory.to_owned())],
            positional: None,
            input: Input::Inherited,
            integers: BTreeSet::new(),
            references: BTreeMap::new(),
            splits_elsewhere: false,
            changes: 0,
        };
        state.set("HOME", vec![vec![Arg::literal(home)]]);
        state.set("IFS", vec![vec![Arg::literal(" \t\n")]]);
        state.set("PWD", vec![vec![Arg::literal(directory)]]);
        state.set("PATH", vec![vec![Arg::literal(USUAL_PATH)]]);
        state
    }

    /// The variable that a name stands for.
    fn target<'n>(&'n self, name: &'n str) -> &'n str {
        let mut target = name;
        // A reference to itself would go round for ever.
        for _ in 0..MOST_VALUES {
            match self.references.get(target) {
                Some(next) => target = next,
                None => break,
            }
        }
        target
    }

    pub(super) fn set(&mut self, name: &str, mut values: Values) {
        let name = &self.target(name).to_owned();
        let too_much = |fields: &Vec<Arg>| {
            fields.len() > MOST_FIELDS
                || fields.iter().map(|arg| arg.text.len()).sum::<usize>() > LONGEST_VALUE
        };
        if values.len() > MOST_VALUES || values.iter().any(too_much) {
            values = vec![vec![Arg::unknown()]];
        }
        if name == "IFS" {
            let usual = |fields: &Vec<Arg>| {
                fields.iter().all(|arg| arg.text.chars().all(|c| " \t\n".contains(c)))
            };
            self.splits_elsewhere = !values.iter().all(usual);
        }
        if self.variables.get(name) != Some(&values) {
            self.changes += 1;
            self.variables.insert(name.to_owned(), values);
        }
    }

    fn append(&mut self, name: &str, values: Values, array: bool) {
        let old =
            self.variables.get(self.target(name)).cloned().unwrap_or_else(|| vec![Vec::new()]);
        let joined = old.iter().flat_map(|old| {
            values.iter().map(move |new| {
                let mut fields = old.clone();
                match fields.first_mut() {
                    Some(first) if !array => {
                        first.text.extend(new.iter().map(|arg| &*arg.text));
                    }
                    _ => fields.extend(new.iter().cloned()),
                }
                fields
            })
        });
        let joined = joined.collect();
        self.set(name, joined);
    }

    /// The values a variable may have; `None` when the text does not say.
    pub(super) fn value(&self, name: &str) -> Option<Values> {
        let positional = self.positional.as_ref();
        match name {
            "@" | "*" => positional.cloned(),
            _ => match name.parse::<usize>() {
                Ok(0) => None,
                Ok(n) => positional.map(|variants| {
                    let nth = |args: &Vec<Arg>| args.get(n - 1).cloned().into_iter().collect();
                    variants.iter().map(nth).collect()
                }),
                Err(_) => self.variables.get(self.target(name)).cloned(),
            },
        }
    }

    /// Sets what an assignment says, as far as it is known.
    pub(super) fn assign(&mut self, assign: &Assign, values: Values) {
        let array = matches!(assign.value, Value::Many(_));
        match (&assign.index, assign.append) {
            // One element of an array: the whole is no longer known.
            (Some(_), _) => self.set_unknown(&assign.name),
            (None, true) => self.append(&assign.name, values, array),
            (None, false) => self.set(&assign.name, values),
        }
    }

    pub(super) fn set_unknown(&mut self, name: &str) {
        self.set(name, vec![vec![Arg::unknown()]]);
    }

    pub(super) fn set_positional(&mut self, args: &[Arg]) {
        self.positional = Some(vec![args.to_vec()]);
        self.changes += 1;
    }

    pub(super) fn define_function(&mut self, name: &str, body: Rc<Vec<Node>>) {
        self.functions.entry(name.to_owned()).or_default().push(body);
        self.changes += 1;
    }

    pub(super) fn define_alias(&mut self, name: &str, text: &str) {
        self.aliases.insert(name.to_owned(), text.to_owned());
        self.changes += 1;
    }

    pub(super) fn enter(&mut self, directory: Option<String>) {
        self.changes += 1;
        let known = directory.as_deref().map_or_else(Arg::unknown, Arg::literal);
        self.directories = vec![directory];
        self.set("PWD", vec![vec![known]]);
    }

    /// What is known where this path and `other` join.
    pub(super) fn join(&mut self, other: Self) {
        for (name, values) in other.variables {
            let mine = self.variables.entry(name).or_insert_with(|| vec![vec![Arg::unknown()]]);
            for value in values {
                if !mine.contains(&value) {
                    mine.push(value);
                }
            }
            if mine.len() > MOST_VALUES {
                *mine = vec![vec![Arg::unknown()]];
            }
        }
        for (name, bodies) in other.functions {
            let mine = self.functions.entry(name).or_default();
            for body in bodies {
                if !mine.iter().any(|known| Rc::ptr_eq(known, &body)) {
                    mine.push(body);
                }
            }
        }
        self.aliases.extend(other.aliases);
        for directory in other.directories {
            if !self.directories.contains(&directory) {
                self.directories.push(directory);
            }
        }
        self.positional = match (self.positional.take(), other.positional) {
            (None, None) => None,
            (Some(mine), Some(theirs)) => {
                let new = theirs.into_iter().filter(|args| !mine.contains(args));
                let all: Values = mine.iter().cloned().chain(new).collect();
                (all.len() <= MOST_VALUES).then_some(all)
            }
            (Some(mut values), None) | (None, Some(mut values)) => {
                values.push(vec![Arg::unknown()]);
                Some(values)
            }
        };
        self.splits_elsewhere |= other.splits_elsewhere;
        self.integers.extend(other.integers);
        self.references.extend(other.references);
        self.changes = self.changes.max(other.changes);
    }
}
