//! Every row of docs/requirements.md names a test that carries its id, or has a reason why there is none.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

const GROUPS: [&str; 5] = ["ES", "AX", "PL", "MS", "WF"];

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The ids in a text: single ones, lists such as `ES-001, ES-004`, and ranges such as `MS-032…036`.
fn ids(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for group in GROUPS {
        for (at, _) in text.match_indices(&format!("{group}-")) {
            let begins_word = !text[..at].ends_with(|char: char| char.is_ascii_alphanumeric());
            let rest = &text[at + group.len() + 1..];
            let Some((first, rest)) = number(rest).filter(|_| begins_word) else { continue };
            let last = rest
                .strip_prefix('…')
                .and_then(|rest| number(rest.strip_prefix(&format!("{group}-")).unwrap_or(rest)));
            let last = last.map_or(first, |(last, _)| last);
            found.extend((first..=last).map(|number| format!("{group}-{number:03}")));
        }
    }
    found
}

/// Three digits that nothing is joined to, and what follows them.
fn number(text: &str) -> Option<(u32, &str)> {
    let (digits, rest) = (text.get(..3)?, text.get(3..)?);
    let ends = !rest.starts_with(|char: char| char.is_ascii_alphanumeric());
    let digits = digits.bytes().all(|byte| byte.is_ascii_digit()).then_some(digits)?;
    ends.then_some((digits.parse().ok()?, rest))
}

/// The part of a source file that is tests; nothing for other files.
fn tests_of(path: &Path, text: String) -> String {
    let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let is_test = path.components().any(|part| part.as_os_str() == "tests");
    match is_test || name.starts_with("tests") {
        true => text,
        false => {
            text.split_once("#[cfg(test)]").map_or_else(String::new, |(_, tests)| tests.to_owned())
        }
    }
}

/// The ids that each test carries in its comments and its body, by its crate and name.
fn tests() -> BTreeMap<(String, String), BTreeSet<String>> {
    let crates = repository().join("crates");
    let mut open = vec![crates.clone()];
    let mut found = BTreeMap::new();
    while let Some(directory) = open.pop() {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|kind| kind == "rs")
                && !path.ends_with("it/requirements.rs")
            {
                let below = path.strip_prefix(&crates).unwrap();
                let name = below.iter().next().unwrap().to_string_lossy().into_owned();
                let text = String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned();
                for (test, ids) in tests_in(&tests_of(&path, text)) {
                    let all: &mut BTreeSet<String> = found.entry((name.clone(), test)).or_default();
                    all.extend(ids);
                }
            }
        }
    }
    found
}

/// Each test of a text with the ids that it carries.
fn tests_in(text: &str) -> Vec<(String, BTreeSet<String>)> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let head = line.trim_start();
        let indent = &line[..line.len() - head.len()];
        let head = head.strip_prefix("async ").unwrap_or(head);
        let Some(rest) = head.strip_prefix("fn ") else { continue };
        let is_above = |line: &&&str| line.trim_start().starts_with(['#', '/']);
        let above = lines[..at].iter().rev().take_while(is_above).count();
        let above = &lines[at - above..at];
        let is_test = |line: &&str| {
            let line = line.trim_start();
            line.starts_with("#[test") || line.starts_with("#[tokio::test")
        };
        if !above.iter().any(is_test) {
            continue;
        }
        let end = format!("{indent}}}");
        let body = lines[at..].iter().take_while(|line| **line != end);
        let whole: String = above.iter().chain(body).map(|line| format!("{line}\n")).collect();
        let name = rest.split('(').next().unwrap_or_default().to_owned();
        found.push((name, ids(&whole)));
    }
    found
}

/// The ids at the beginning of the rows of some sections.
fn rows(document: &str, is_wanted: impl Fn(&str) -> bool) -> BTreeSet<String> {
    let sections = document.split("\n## ").filter(|section| is_wanted(section));
    let lines = sections.flat_map(str::lines).filter_map(|line| line.strip_prefix("| "));
    lines.filter_map(|line| ids(line.split(" |").next()?).into_iter().next()).collect()
}

/// The test that a row names in its last cell, as `crate: name`.
fn named(line: &str) -> Option<(String, String)> {
    let cell = line.trim_end_matches(" |").rsplit(" | ").next()?;
    let (name, test) = cell.strip_prefix('`')?.strip_suffix('`')?.split_once(": ")?;
    Some((name.to_owned(), test.to_owned()))
}

/// A row names a test that exists and carries its id, or says why there is none.
#[test]
fn every_requirement_names_a_test_that_carries_it_or_a_reason() {
    let document = std::fs::read_to_string(repository().join("docs/requirements.md")).unwrap();
    let of_group =
        |section: &str| GROUPS.iter().any(|group| section.starts_with(&format!("{group}: ")));
    let all = rows(&document, of_group);
    assert_eq!(all.len(), 898, "no row is added or lost unnoticed");
    let reasons = rows(&document, |section| section.starts_with("Where the design departs"));
    let tests = tests();
    let mut wrong = Vec::new();
    for section in document.split("\n## ").filter(|section| of_group(section)) {
        for line in section.lines().filter(|line| line.starts_with("| ")) {
            let Some(row) = ids(line.split(" |").next().unwrap()).into_iter().next() else {
                continue;
            };
            let carries = named(line).and_then(|named| tests.get(&named));
            if reasons.contains(&row) || carries.is_some_and(|ids| ids.contains(&row)) {
                continue;
            }
            let those = tests.iter().filter(|(_, ids)| ids.contains(&row));
            let those: Vec<_> =
                those.map(|((name, test), _)| format!("`{name}: {test}`")).collect();
            wrong.push(format!("{row} names no test that carries it; these do: {those:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_test_is_found_with_the_ids_in_and_above_it() {
    let text =
        "/// MS-001\n#[test]\nfn one() {\n    // ES-002\n}\n\nfn helper() {\n    // ES-003\n}\n";
    let found = tests_in(text);
    assert_eq!(found, [("one".to_owned(), ids("MS-001 ES-002"))]);
    let row = "| ES-001 | It works \\| fine | trace | loop | `cli: one` |";
    assert_eq!(named(row), Some(("cli".to_owned(), "one".to_owned())));
    assert_eq!(named("| ES-001 | It works | trace | loop |"), None);
}

#[test]
fn lists_and_ranges_of_ids_are_read() {
    let read = |text| ids(text).into_iter().collect::<Vec<_>>().join(" ");
    assert_eq!(read("/// MS-032…034, ES-007"), "ES-007 MS-032 MS-033 MS-034");
    assert_eq!(read("(AX-044…AX-046)"), "AX-044 AX-045 AX-046");
    assert_eq!(read("XMS-001 MS-01 MS-0011 MS-001a"), "");
}
