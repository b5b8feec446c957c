//! The class table: what each known program does, as data.
//!
//! A program's rows go from general to special and **the last row that matches decides**. A row's
//! pattern is written as [`Invocation::matches`] explains. Every row has examples that match it and
//! examples that must not be judged like it; a test checks them all.

mod coreutils;
mod files;
mod archives;
mod git;
mod packages;
mod languages;
mod build;
mod containers;
mod network;
mod databases;
mod cloud;
mod system;

use super::invocation::{Invocation, Style};
use windlass_core::policy::class::{Class, Risk};
use windlass_core::policy::pattern::Pattern;

/// A class from the configuration, for commands with this structure.
#[derive(Clone, Debug)]
pub struct CustomRule {
    /// Which commands.
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
    /// Commands this row decides.
    #[cfg_attr(not(test), expect(dead_code, reason = "examples are for readers and the test"))]
    pub yes: &'static [&'static str],
    /// Commands that look alike and are not of this class.
    #[cfg_attr(not(test), expect(dead_code, reason = "examples are for readers and the test"))]
    pub no: &'static [&'static str],
}

/// One program, or several that behave alike.
#[derive(Debug)]
pub(super) struct Program {
    pub names: &'static [&'static str],
    /// Options whose value is a word of its own.
    pub values: &'static str,
    /// Options whose value is a file that it writes.
    pub outputs: &'static str,
    pub style: Style,
    pub files: Files,
    pub rows: &'static [Row],
}

/// A program without options that matter, of which every use is alike.
const fn all(names: &'static [&'static str], files: Files, rows: &'static [Row]) -> Program {
    Program { names, values: "", outputs: "", style: Style::Bundled, files, rows }
}

/// A program that is told what to do by its first words, and whose files say nothing.
const fn subcommands(
    names: &'static [&'static str],
    values: &'static str,
    rows: &'static [Row],
) -> Program {
    Program { names, values, outputs: "", style: Style::Bundled, files: Files::None, rows }
}

const fn row(
    pattern: &'static str,
    class: Class,
    reason: &'static str,
    yes: &'static [&'static str],
    no: &'static [&'static str],
) -> Row {
    Row { pattern, class, risk: None, reason, yes, no }
}

const fn risky(
    pattern: &'static str,
    class: Class,
    risk: Risk,
    reason: &'static str,
    yes: &'static [&'static str],
    no: &'static [&'static str],
) -> Row {
    Row { pattern, class, risk: Some(risk), reason, yes, no }
}

/// Every topic, in reading order.
const TOPICS: &[&[Program]] = &[
    coreutils::PROGRAMS,
    files::PROGRAMS,
    archives::PROGRAMS,
    git::PROGRAMS,
    packages::PROGRAMS,
    languages::PROGRAMS,
    build::PROGRAMS,
    containers::PROGRAMS,
    network::PROGRAMS,
    databases::PROGRAMS,
    cloud::PROGRAMS,
    system::PROGRAMS,
];

/// The entry of a program.
pub(super) fn program(name: &str) -> Option<&'static Program> {
    TOPICS.iter().flat_map(|topic| topic.iter()).find(|program| program.names.contains(&name))
}

/// Whether the table, the shell or a wrapper knows this name.
pub(super) fn knows(name: &str) -> bool {
    program(name).is_some()
}

/// The row that decides this call.
pub(super) fn row_of(program: &Program, invocation: &Invocation) -> Option<&'static Row> {
    let rows: &'static [Row] = program.rows;
    rows.iter().rfind(|row| invocation.matches(row.pattern))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Context, analyze};

    fn class(command: &str) -> Class {
        analyze(command, &Context::new("/workspace", "/home/user")).assessment.class
    }

    #[test]
    fn every_row_has_examples_and_they_hold() {
        let mut wrong = Vec::new();
        for program in TOPICS.iter().flat_map(|topic| topic.iter()) {
            for row in program.rows {
                let name = program.names[0];
                if row.yes.is_empty() || row.no.is_empty() {
                    wrong.push(format!("{name} {}: needs examples of both kinds", row.pattern));
                }
                for example in row.yes {
                    if class(example) != row.class {
                        wrong.push(format!("`{example}` is {}, not {}", class(example), row.class));
                    }
                }
                for example in row.no {
                    if class(example) == row.class {
                        wrong.push(format!("`{example}` must not be {}", row.class));
                    }
                }
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    #[test]
    fn no_name_is_listed_twice() {
        let mut names: Vec<_> = TOPICS
            .iter()
            .flat_map(|topic| topic.iter())
            .flat_map(|program| program.names)
            .collect();
        names.sort();
        let twice: Vec<_> = names.windows(2).filter(|pair| pair[0] == pair[1]).collect();
        assert!(twice.is_empty(), "{twice:?}");
    }
}
