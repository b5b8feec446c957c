//! Documents and code agree: every id and section that code names is in `docs/`, and every module that the map
//! names is in the code.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn document(path: &str) -> String {
    std::fs::read_to_string(repository().join(path)).unwrap()
}

/// Every text of the repository that may name a requirement or a section, with its path.
fn texts() -> Vec<(PathBuf, String)> {
    let mut open = vec![repository().join("crates"), repository().join("docs")];
    let mut texts = Vec::new();
    while let Some(directory) = open.pop() {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|kind| kind == "rs" || kind == "md") {
                let text = String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned();
                texts.push((path, text));
            }
        }
    }
    texts
}

/// The requirement ids in a text: a group's letters, a hyphen, digits, and nothing joined to either end.
fn ids(text: &str) -> BTreeSet<&str> {
    let words = text.split(|char: char| !char.is_ascii_alphanumeric() && char != '-');
    words.filter(|word| is_id(word)).collect()
}

fn is_id(word: &str) -> bool {
    let Some((group, number)) = word.split_once('-') else { return false };
    let digits = match group {
        "ES" | "AX" | "PL" | "MS" | "WF" => 3,
        "C" | "O" => 2,
        _ => return false,
    };
    number.len() == digits && number.bytes().all(|byte| byte.is_ascii_digit())
}

/// The sections that a text names as `§15.4`.
fn sections(text: &str) -> BTreeSet<String> {
    let named = text.split('§').skip(1).map(|rest| {
        let end = rest.find(|char: char| !char.is_ascii_digit() && char != '.');
        rest[..end.unwrap_or(rest.len())].trim_end_matches('.').to_owned()
    });
    named.filter(|section| !section.is_empty()).collect()
}

#[test]
fn every_requirement_that_code_names_is_listed() {
    let listed: BTreeSet<String> = document("docs/requirements.md")
        .lines()
        .filter_map(|line| line.strip_prefix("| ")?.split(' ').next())
        .filter(|word| is_id(word))
        .map(str::to_owned)
        .collect();
    assert!(listed.len() > 900, "the requirements are there: {}", listed.len());
    for (path, text) in texts() {
        let unknown: Vec<_> = ids(&text).into_iter().filter(|id| !listed.contains(*id)).collect();
        assert!(unknown.is_empty(), "{} names {unknown:?}", path.display());
    }
}

#[test]
fn every_section_that_code_names_is_in_the_design() {
    let design = document("docs/design.md");
    let mut chapter = String::new();
    let mut known = BTreeSet::new();
    for line in design.lines() {
        if let Some(heading) = line.strip_prefix("## ") {
            chapter = heading.split('.').next().unwrap().to_owned();
            known.insert(chapter.clone());
        } else if let Some((number, _)) = line.split_once(". ")
            && number.bytes().all(|byte| byte.is_ascii_digit())
        {
            known.insert(format!("{chapter}.{number}"));
        }
    }
    for (path, text) in texts() {
        let unknown: Vec<_> =
            sections(&text).into_iter().filter(|it| !known.contains(it)).collect();
        assert!(unknown.is_empty(), "{} names {unknown:?}", path.display());
    }
}

/// Whether a text points at a list that is not in the repository.
fn points_outside(text: &str) -> bool {
    let lower = text.to_lowercase();
    let numbered = |(at, word): (usize, &str)| {
        lower[at + word.len()..].starts_with(|next: char| next.is_ascii_digit())
    };
    lower.contains(concat!("must", " show")) || lower.match_indices("issue ").any(numbered)
}

#[test]
fn no_comment_points_at_a_list_outside_the_repository() {
    let code = texts().into_iter().filter(|(path, _)| path.extension() == Some("rs".as_ref()));
    let pointing: Vec<_> = code.filter(|(_, text)| points_outside(text)).map(|it| it.0).collect();
    assert!(pointing.is_empty(), "{pointing:?}");
}

fn source(krate: &str) -> PathBuf {
    repository().join("crates").join(krate).join("src")
}

fn has_module(krate: &str, name: &str) -> bool {
    [name.to_owned(), format!("{name}.rs")].iter().any(|path| source(krate).join(path).exists())
}

/// Whether a crate defines a type or a function of exactly this name.
fn defines(krate: &str, name: &str) -> bool {
    let source = source(krate);
    let is_part_of_name = |char: char| char.is_alphanumeric() || char == '_';
    texts().iter().filter(|(path, _)| path.starts_with(&source)).any(|(_, text)| {
        ["struct", "enum", "trait", "fn"].iter().any(|word| {
            let definition = format!("{word} {name}");
            let mut ends = text.match_indices(&definition).map(|(at, _)| at + definition.len());
            ends.any(|end| !text[end..].starts_with(is_part_of_name))
        })
    })
}

/// Steps read `the request is streamed (`ask`; model)` or `(core `ending`; agent `conclude`)`.
#[test]
fn every_module_in_the_path_of_a_goal_exists() {
    let architecture = document("ARCHITECTURE.md");
    let path = architecture.split("## The path of a goal").nth(1).unwrap();
    let path = path.split("\n## ").next().unwrap();
    let crates: Vec<String> = std::fs::read_dir(repository().join("crates"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    let mut unknown = Vec::new();
    let mut checked = 0;
    for group in path.split('(').skip(1) {
        let group = group.split(')').next().unwrap();
        for part in group.split([';', ',']).filter(|part| part.contains('`')) {
            checked += 1;
            let (krate, name) = part.trim().trim_end_matches('`').split_once('`').unwrap();
            let exists = match krate.trim() {
                "" => crates.iter().any(|krate| has_module(krate, name)),
                krate => has_module(krate, name),
            };
            if !exists {
                unknown.push(part);
            }
        }
    }
    assert!(checked > 10, "the path was read: {checked} names");
    assert!(unknown.is_empty(), "{unknown:?}");
}

/// Rows of the map read `core: `id`, `status`; agent: `run` (`Agent`)`. A name is a module; one in parentheses may
/// also be a type or a function.
#[test]
fn every_name_in_the_map_exists() {
    let architecture = document("ARCHITECTURE.md");
    let map = architecture.split("## Where to find it").nth(1).unwrap();
    let map = map.split("\n## ").next().unwrap();
    let mut unknown = Vec::new();
    let mut checked = 0;
    for line in map.lines().filter(|line| line.starts_with("| ")) {
        let place = line.split('|').nth(2).unwrap();
        for part in place.split(';').filter(|part| part.contains(": `")) {
            let krate = part.split(": `").next().unwrap().trim().rsplit(' ').next().unwrap();
            let pieces: Vec<&str> = part.split('`').collect();
            let mut is_in_parentheses = false;
            for pair in pieces.chunks(2) {
                let [text, name] = pair else { continue };
                if let Some(at) = text.rfind(['(', ')']) {
                    is_in_parentheses = text[at..].starts_with('(');
                }
                checked += 1;
                let is_known =
                    has_module(krate, name) || (is_in_parentheses && defines(krate, name));
                if !is_known {
                    unknown.push(format!("{krate}: {name}"));
                }
            }
        }
    }
    assert!(checked > 100, "the map was read: {checked} names");
    assert!(unknown.is_empty(), "{unknown:?}");
}
