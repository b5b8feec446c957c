//! Patterns that match a command by its structure: program, words and options, never by its text.
//!
//! `git push --force` matches every push with that option, wherever the option is and however it is
//! bundled; `kubectl delete * prod*` matches words in their order. `*` and `?` are globs in a word.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::analysis::{CommandAnalysis, ShellCommand};

/// A command pattern from the configuration: a program and what must be among its arguments.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Pattern(Vec<String>);

impl Pattern {
    /// A pattern from its text; `None` when it is empty.
    pub fn new(text: &str) -> Option<Self> {
        let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
        (!words.is_empty()).then_some(Self(words))
    }

    /// Whether this command has the pattern's structure.
    pub fn matches(&self, command: &ShellCommand) -> bool {
        self.matches_words(&command.words)
    }

    /// Whether any command of an analysis does.
    pub fn matches_any(&self, analysis: &CommandAnalysis) -> bool {
        analysis.flat().into_iter().any(|command| self.matches(command))
    }

    /// The same for the words of a command, of which some may not be known.
    pub fn matches_words(&self, words: &[Option<String>]) -> bool {
        let Some((Some(program), arguments)) = words.split_first() else { return false };
        let Some((wanted, terms)) = self.0.split_first() else { return false };
        let program = program.rsplit('/').next().unwrap_or_default();
        if !glob(wanted, program) {
            return false;
        }
        let known: Vec<&str> =
            arguments.iter().map(|word| word.as_deref().unwrap_or("\0")).collect();
        let mut operands = known.iter().filter(|word| !word.starts_with('-'));
        terms.iter().all(|term| match term.starts_with('-') {
            true => known.iter().any(|word| option_is(term, word)),
            false => match term.as_str() {
                "*" => true,
                term => operands.any(|word| glob(term, word)),
            },
        })
    }
}

impl Pattern {
    /// Whether the pattern names all of a command: each of its options, and each operand in its order, where
    /// `*` is any number of them.
    pub fn names_all(&self, words: &[Option<String>]) -> bool {
        if !self.matches_words(words) {
            return false;
        }
        let terms = self.0.iter().skip(1);
        let (options, operands): (Vec<&String>, Vec<&String>) =
            terms.partition(|term| term.starts_with('-'));
        let mut wanted = operands.iter().peekable();
        words.iter().skip(1).all(|word| match word.as_deref() {
            None => false,
            Some(word) if word.starts_with('-') => {
                options.iter().any(|option| option.as_str() == word)
            }
            Some(word) => match wanted.peek() {
                Some(term) if term.as_str() == "*" => true,
                Some(term) => {
                    let fits = glob(term, word);
                    wanted.next();
                    fits
                }
                None => false,
            },
        })
    }

    /// Whether it says more than which program.
    pub fn has_terms(&self) -> bool {
        self.0.iter().skip(1).any(|term| term != "*")
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join(" "))
    }
}

/// Whether an argument is this option: long, long with a value, or one letter of a bundle.
fn option_is(option: &str, argument: &str) -> bool {
    let name = argument.split('=').next().unwrap_or_default();
    if glob(option, name) || glob(option, argument) {
        return true;
    }
    match (option.strip_prefix('-'), argument.strip_prefix('-')) {
        (Some(letter), Some(bundle)) if letter.len() == 1 => {
            !bundle.starts_with('-') && bundle.contains(letter)
        }
        _ => false,
    }
}

/// Whether `text` is matched by a glob of `*` (anything) and `?` (one character). Linear in space,
/// and in time at most the product of both lengths.
pub fn glob(pattern: &str, text: &str) -> bool {
    let (pattern, text) = (pattern.as_bytes(), text.as_bytes());
    let (mut p, mut t) = (0, 0);
    let mut retry: Option<(usize, usize)> = None;
    while t < text.len() {
        match pattern.get(p) {
            Some(b'*') => {
                retry = Some((p, t));
                p += 1;
            }
            Some(byte) if *byte == b'?' || *byte == text[t] => {
                p += 1;
                t += 1;
            }
            _ => match retry {
                Some((star, from)) => {
                    retry = Some((star, from + 1));
                    p = star + 1;
                    t = from + 1;
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|byte| *byte == b'*')
}
