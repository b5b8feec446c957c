//! The class table: what each known program does, as text.
//!
//! `commands/*.txt` say it, one file per topic. The build leaves out their examples (`build.rs`), so
//! that the program carries the rules only; the tests here read the files as they are.
//!
//! ```text
//! # A comment.
//! git hub                            programs that behave alike, on one line or several
//!   values: -C -c                    options whose value is a word of its own
//!   outputs: --output                options whose value is a file that is written
//!   options: one dash                `-name` is one option; otherwise `-rf` is `-r -f`
//!   files: writes last               what the operands are; otherwise not files
//!   read | status|log | looks at the repository
//!     yes git status                 an example that this row decides
//!     no  git push                   an example that must not have this class
//!   read MEDIUM | ls-remote | asks a remote
//! ```
//!
//! A row is `class [risk] | pattern | reason`; the risk is given only where it is more than the
//! class's own. A program's rows go from general to special, and **the last row that matches decides**. A
//! pattern is written as [`Invocation::matches`] explains.

mod parse;

use std::collections::HashMap;
use std::sync::LazyLock;

use windlass_core::policy::class::{Class, Risk};
use windlass_core::policy::pattern::Pattern;

use super::invocation::{Invocation, Style};

/// A class from the configuration, for commands with this structure.
#[derive(Clone, Debug)]
pub struct CustomRule {
    pub pattern: Pattern,
    /// What they do.
    pub class: Class,
    /// Why, in words for a person.
    pub reason: String,
}

/// What the operands of a program are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Files {
    /// Not files, or files in ways the rows know.
    None,
    /// Files it only reads.
    Reads,
    /// Files it writes.
    Writes,
    /// The last is written, the others are read.
    WritesLast,
    /// The last is written, the others are gone afterwards.
    Moves,
    /// Files it removes.
    Removes,
}

/// One way to call a program.
#[derive(Debug)]
pub(super) struct Row {
    pub pattern: &'static str,
    pub class: Class,
    /// The risk, where it is more than the class's own.
    pub risk: Option<Risk>,
    pub reason: &'static str,
}

/// One program, or several that behave alike.
#[derive(Debug)]
pub(super) struct Program {
    pub names: Vec<&'static str>,
    /// Options whose value is a word of its own.
    pub values: &'static str,
    /// Options whose value is a file that it writes.
    pub outputs: &'static str,
    pub style: Style,
    pub files: Files,
    pub rows: Vec<Row>,
}

/// Every topic without its examples, in reading order.
static RULES: &str = include_str!(concat!(env!("OUT_DIR"), "/commands.txt"));

/// Read at the first command, because most runs of the program look at none.
static TABLE: LazyLock<Table> =
    LazyLock::new(|| Table::new(parse::programs(RULES).expect("a test reads the whole table")));

struct Table {
    programs: Vec<Program>,
    by_name: HashMap<&'static str, usize>,
}

impl Table {
    fn new(programs: Vec<Program>) -> Self {
        let names = programs.iter().enumerate();
        let by_name = names
            .flat_map(|(index, program)| program.names.iter().map(move |name| (*name, index)))
            .collect();
        Self { programs, by_name }
    }
}

/// The entry of a program.
pub(super) fn program(name: &str) -> Option<&'static Program> {
    TABLE.by_name.get(name).map(|index| &TABLE.programs[*index])
}

/// Whether the table knows this name.
pub(super) fn is_known(name: &str) -> bool {
    program(name).is_some()
}

/// The row that decides this call.
pub(super) fn row_of(program: &'static Program, invocation: &Invocation) -> Option<&'static Row> {
    program.rows.iter().rfind(|row| invocation.matches(row.pattern))
}

#[cfg(test)]
mod tests;
