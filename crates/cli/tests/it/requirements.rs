//! Every row of docs/requirements.md has a test that names it, or a reason why there is none.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Rows whose feature is being built. A row leaves this list with its first test.
const OPEN: &str = "
AX-009, AX-075, MS-026
";

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

/// The ids that tests name.
fn tested() -> BTreeSet<String> {
    let mut open = vec![repository().join("crates")];
    let mut found = BTreeSet::new();
    while let Some(directory) = open.pop() {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let kind = path.extension().and_then(|kind| kind.to_str()).unwrap_or_default();
            if path.is_dir() {
                open.push(path);
            } else if matches!(kind, "rs" | "py") && !path.ends_with("it/requirements.rs") {
                let text = String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned();
                found.extend(ids(&tests_of(&path, text)));
            }
        }
    }
    found
}

/// The ids at the beginning of the rows of some sections.
fn rows(document: &str, is_wanted: impl Fn(&str) -> bool) -> BTreeSet<String> {
    let sections = document.split("\n## ").filter(|section| is_wanted(section));
    let lines = sections.flat_map(str::lines).filter_map(|line| line.strip_prefix("| "));
    lines.filter_map(|line| ids(line.split(" |").next()?).into_iter().next()).collect()
}

#[test]
fn every_requirement_has_a_test_or_a_reason() {
    let document = std::fs::read_to_string(repository().join("docs/requirements.md")).unwrap();
    let of_group =
        |section: &str| GROUPS.iter().any(|group| section.starts_with(&format!("{group}: ")));
    let (all, tested) = (rows(&document, of_group), tested());
    assert_eq!(all.len(), 898, "no row is added or lost unnoticed");
    let reasons = rows(&document, |section| section.starts_with("Where the design departs"));
    let open = ids(OPEN);
    let has_neither = |row: &&String| !tested.contains(*row) && !reasons.contains(*row);
    let bare: Vec<_> = all.iter().filter(has_neither).filter(|row| !open.contains(*row)).collect();
    assert!(bare.is_empty(), "no test and no reason: {bare:?}");
    let closed: Vec<_> = open.iter().filter(|row| !has_neither(row)).collect();
    assert!(closed.is_empty(), "these are tested now; take them out of `OPEN`: {closed:?}");
}

#[test]
fn lists_and_ranges_of_ids_are_read() {
    let read = |text| ids(text).into_iter().collect::<Vec<_>>().join(" ");
    assert_eq!(read("/// MS-032…034, ES-007"), "ES-007 MS-032 MS-033 MS-034");
    assert_eq!(read("(AX-044…AX-046)"), "AX-044 AX-045 AX-046");
    assert_eq!(read("XMS-001 MS-01 MS-0011 MS-001a"), "");
}
