use super::*;
use crate::{Context, analyze};

/// The files of the table with their examples, in the order in which `build.rs` joins them.
const TOPICS: &[&str] = &[
    include_str!("commands/coreutils.txt"),
    include_str!("commands/files.txt"),
    include_str!("commands/archives.txt"),
    include_str!("commands/git.txt"),
    include_str!("commands/packages.txt"),
    include_str!("commands/languages.txt"),
    include_str!("commands/build.txt"),
    include_str!("commands/containers.txt"),
    include_str!("commands/network.txt"),
    include_str!("commands/databases.txt"),
    include_str!("commands/cloud.txt"),
    include_str!("commands/system.txt"),
];

fn class(command: &str) -> Class {
    analyze(command, &Context::new("/workspace", "/home/user")).assessment.class
}

/// Each row of a topic, with the examples below it.
fn rows_with_examples(topic: &'static str) -> Vec<(Row, Vec<String>, Vec<String>)> {
    let mut rows: Vec<(Row, Vec<String>, Vec<String>)> = Vec::new();
    for line in topic.lines() {
        if let Some(example) = line.strip_prefix("    ") {
            let (_, yes, no) = rows.last_mut().unwrap_or_else(|| panic!("{line}: of no row"));
            let (kind, example) = example.split_once(' ').unwrap_or_else(|| panic!("{line}"));
            let example = example.trim_start().replace('⏎', "\n");
            match kind {
                "yes" => yes.push(example),
                "no" => no.push(example),
                _ => panic!("{line}: neither yes nor no"),
            }
        } else if let Some(row) = line.strip_prefix("  ").filter(|line| line.contains(" | ")) {
            let row = parse::row(row).unwrap_or_else(|wrong| panic!("{line}: {wrong}"));
            rows.push((row, Vec::new(), Vec::new()));
        }
    }
    rows
}

#[test]
fn the_whole_table_is_read() {
    let programs = parse::programs(RULES).unwrap_or_else(|wrong| panic!("{wrong}"));
    assert!(programs.len() > 50, "{}", programs.len());
    assert!(programs.iter().all(|program| !program.rows.is_empty()));
}

#[test]
fn the_program_carries_the_rules_without_their_examples() {
    let example = |line: &str| line.starts_with("    ");
    assert!(!RULES.lines().any(example));
    let rules = |text: &'static str| text.lines().filter(|line| !example(line) && !line.is_empty());
    let written: Vec<_> = TOPICS.iter().flat_map(|topic| rules(topic)).collect();
    let written = written.into_iter().filter(|line| !line.starts_with('#'));
    assert!(written.eq(rules(RULES)));
}

#[test]
fn every_row_has_examples_and_they_hold() {
    let mut wrong = Vec::new();
    for (row, yes, no) in TOPICS.iter().flat_map(|topic| rows_with_examples(topic)) {
        if yes.is_empty() || no.is_empty() {
            wrong.push(format!("{row:?} needs examples of both kinds"));
        }
        let own = row.class;
        let unlike = yes.iter().filter(|example| class(example) != own);
        wrong.extend(unlike.map(|example| format!("`{example}` is {}, not {own}", class(example))));
        let alike = no.iter().filter(|example| class(example) == own);
        wrong.extend(alike.map(|example| format!("`{example}` must not be {own}")));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn no_name_is_listed_twice() {
    let mut names: Vec<_> = TABLE.programs.iter().flat_map(|program| &program.names).collect();
    names.sort();
    let twice: Vec<_> = names.windows(2).filter(|pair| pair[0] == pair[1]).collect();
    assert!(twice.is_empty(), "{twice:?}");
}

#[test]
fn a_line_that_is_wrong_is_named() {
    for (text, wrong) in [
        ("  read | | x", "belongs to no program"),
        ("x\n  read | y", "a row has three columns"),
        ("x\n  reed | y | z", "`reed` is not a class"),
        ("x\n  read HUGE | y | z", "`HUGE` is not a risk"),
        ("x\n  files: eats", "`eats` says nothing about files"),
    ] {
        let error = parse::programs(text).expect_err(text);
        assert!(error.contains(wrong), "{error}");
    }
}
