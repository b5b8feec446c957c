//! The arguments of a program, split into options with their values and operands.

use super::state::{Arg, UNKNOWN};
use windlass_core::policy::pattern::glob;

/// A program's arguments.
#[derive(Debug)]
pub(super) struct Invocation<'a> {
    pub program: &'a str,
    pub args: &'a [Arg],
    pub options: Vec<Opt<'a>>,
    pub operands: Vec<&'a Arg>,
}

/// One option: `-r`, `--force`, or `-delete` of programs with long options of one dash.
#[derive(Debug)]
pub(super) struct Opt<'a> {
    pub name: String,
    pub value: Option<&'a str>,
}

/// How a program spells its options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Style {
    /// `-rf` is `-r -f`.
    Bundled,
    /// `-name` is one option.
    OneDash,
}

impl<'a> Invocation<'a> {
    /// Splits arguments; `values` names the options whose value is a word of its own.
    pub(super) fn new(program: &'a str, args: &'a [Arg], values: &str, style: Style) -> Self {
        let takes = |name: &str| values.split_whitespace().any(|known| known == name);
        let mut invocation = Self { program, args, options: Vec::new(), operands: Vec::new() };
        let mut rest = args.iter();
        while let Some(arg) = rest.next() {
            let text = &*arg.text;
            if text == "--" {
                invocation.operands.extend(rest);
                break;
            }
            let next = |rest: &mut std::slice::Iter<'a, Arg>| rest.next().map(|arg| &*arg.text);
            if text.len() < 2 || !text.starts_with('-') {
                invocation.operands.push(arg);
            } else if text.starts_with("--") || style == Style::OneDash {
                let (name, value) = match text.split_once('=') {
                    Some((name, value)) => (name, Some(value)),
                    None if takes(text) => (text, next(&mut rest)),
                    None => (text, None),
                };
                invocation.options.push(Opt { name: name.to_owned(), value });
            } else {
                for (at, letter) in text.char_indices().skip(1) {
                    if letter == UNKNOWN {
                        continue;
                    }
                    let name = format!("-{letter}");
                    if takes(&name) {
                        let glued = &text[at + letter.len_utf8()..];
                        let value = if glued.is_empty() { next(&mut rest) } else { Some(glued) };
                        invocation.options.push(Opt { name, value });
                        break;
                    }
                    invocation.options.push(Opt { name, value: None });
                }
            }
        }
        invocation
    }

    /// The option called one of `names`, separated by `|`.
    pub(super) fn option(&self, names: &str) -> Option<&Opt<'a>> {
        self.options.iter().find(|option| names.split('|').any(|name| option.is(name)))
    }

    /// Whether an option called one of `names` is given.
    pub(super) fn has(&self, names: &str) -> bool {
        self.option(names).is_some()
    }

    /// The values of every option called one of `names`.
    pub(super) fn values<'s>(&'s self, names: &'s str) -> impl Iterator<Item = &'a str> + 's {
        self.options
            .iter()
            .filter(move |option| names.split('|').any(|name| option.is(name)))
            .filter_map(|option| option.value)
    }

    /// The operand at `index`, if it is known.
    pub(super) fn word(&self, index: usize) -> Option<&'a str> {
        self.operands.get(index).and_then(|arg| arg.known())
    }

    /// Whether the arguments have this structure. Terms, separated by blanks, must all hold:
    ///
    /// - `push|pull`: the next operand is one of these (globs allowed); `*` is any operand
    /// - `-f|--force`: one of these options is given; `-X|--request=GET|HEAD` with one of these values
    /// - `!-n|--dry-run`: none of these options is given
    /// - `=*:*`: some operand is one of these
    /// - `.`: no operand is left; `+`: at least one is left
    pub(super) fn matches(&self, pattern: &str) -> bool {
        let mut next = 0;
        pattern.split_whitespace().all(|term| {
            if term == "." {
                return next >= self.operands.len();
            }
            if term == "+" {
                return next < self.operands.len();
            }
            if let Some(wanted) = term.strip_prefix('=') {
                return self.operands.iter().any(|arg| one_of(wanted, &arg.text));
            }
            if let Some(names) = term.strip_prefix('!') {
                return !self.has(names);
            }
            if term.starts_with('-') {
                return match term.split_once('=') {
                    Some((names, wanted)) => self.values(names).any(|value| one_of(wanted, value)),
                    None => self.has(term),
                };
            }
            next += 1;
            self.operands.get(next - 1).is_some_and(|arg| match arg.known() {
                Some(text) => one_of(term, text),
                None => term == "*",
            })
        })
    }
}

impl Opt<'_> {
    /// Whether this is the option `name`, which may be abbreviated when it is long.
    fn is(&self, name: &str) -> bool {
        self.name == name
            || (name.starts_with("--") && self.name.len() >= 4 && name.starts_with(&*self.name))
    }
}

fn one_of(wanted: &str, text: &str) -> bool {
    wanted.split('|').any(|wanted| glob(wanted, text) || wanted.eq_ignore_ascii_case(text))
}
