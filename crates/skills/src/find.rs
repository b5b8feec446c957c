//! The skills of one directory.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use crate::Problem;
use crate::parse::{ParseError, parse_markdown, parse_yaml};
use crate::skill::{Scope, Skill};

/// The longest skill file: instructions that a model is to read whole.
const MAX_FILE_BYTES: u64 = 1 << 20;
/// How many entries of a directory are looked at.
const MAX_ENTRIES: usize = 1_000;
/// How many other files of a skill are named.
const MAX_RESOURCES: usize = 50;
/// How deep they may lie.
const MAX_RESOURCE_DEPTH: usize = 3;

/// What one directory holds.
pub(crate) struct Found {
    pub skills: Vec<Skill>,
    pub problems: Vec<Problem>,
}

enum Form {
    Folder,
    Markdown,
    Yaml,
}

/// Reads every skill of a directory, in order of file names.
pub(crate) fn in_directory(directory: &Path, scope: Scope) -> Found {
    let mut found = Found { skills: Vec::new(), problems: Vec::new() };
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return found,
        Err(error) => {
            found.problems.push(problem(directory, format!("cannot be read: {error}")));
            return found;
        }
    };
    let mut paths: Vec<_> =
        entries.take(MAX_ENTRIES + 1).flatten().map(|entry| entry.path()).collect();
    paths.sort();
    if paths.len() > MAX_ENTRIES {
        paths.truncate(MAX_ENTRIES);
        let reason = format!("holds more than {MAX_ENTRIES} entries; the rest is not looked at");
        found.problems.push(problem(directory, reason));
    }
    for path in paths {
        let Some((name, form)) = form_of(&path) else { continue };
        match read_one(directory, &path, &name, &form, scope) {
            Ok(skill) => found.add(skill),
            Err(problem) => found.problems.push(problem),
        }
    }
    found
}

impl Found {
    fn add(&mut self, skill: Skill) {
        if let Some(first) = self.skills.iter().find(|other| other.meta.name == skill.meta.name) {
            let reason =
                format!("`{}` is already the name of {}", skill.meta.name, first.path.display());
            self.problems.push(problem(&skill.path, reason));
        } else {
            self.skills.push(skill);
        }
    }
}

fn problem(path: &Path, reason: String) -> Problem {
    Problem { path: path.to_owned(), line: None, reason }
}

/// What an entry could be, and the name it gives; `None` for what is no skill at all.
fn form_of(path: &Path) -> Option<(String, Form)> {
    let file_name = path.file_name()?.to_str()?;
    if file_name.starts_with('.') {
        return None;
    }
    if path.is_dir() {
        return path.join("SKILL.md").exists().then(|| (file_name.to_owned(), Form::Folder));
    }
    let (stem, extension) = file_name.rsplit_once('.')?;
    match extension {
        "md" if !stem.eq_ignore_ascii_case("readme") => Some((stem.to_owned(), Form::Markdown)),
        "yaml" | "yml" => Some((stem.to_owned(), Form::Yaml)),
        _ => None,
    }
}

fn read_one(
    directory: &Path,
    path: &Path,
    name: &str,
    form: &Form,
    scope: Scope,
) -> Result<Skill, Problem> {
    let file = match form {
        Form::Folder => path.join("SKILL.md"),
        Form::Markdown | Form::Yaml => path.to_owned(),
    };
    let content = read_text(directory, &file, scope).map_err(|reason| problem(&file, reason))?;
    let parsed = match form {
        Form::Folder | Form::Markdown => parse_markdown(&content, name),
        Form::Yaml => parse_yaml(&content, name),
    };
    let (meta, body) = parsed.map_err(|ParseError { line, reason }| Problem {
        path: file.clone(),
        line,
        reason,
    })?;
    let mut resources = Vec::new();
    if let Form::Folder = form {
        list_resources(path, "", MAX_RESOURCE_DEPTH, &mut resources);
        resources.sort();
    }
    Ok(Skill { meta, content, body, scope, path: file, resources })
}

fn read_text(directory: &Path, file: &Path, scope: Scope) -> Result<String, String> {
    let said = |error: io::Error| format!("cannot be read: {error}");
    if scope == Scope::Project && !is_within_project(directory, file) {
        return Err("is a link to outside the project, which is not followed".to_owned());
    }
    let metadata = fs::metadata(file).map_err(said)?;
    if !metadata.is_file() {
        return Err("is not a regular file".to_owned());
    }
    let mut bytes = Vec::new();
    File::open(file)
        .and_then(|file| file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes))
        .map_err(said)?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err(format!("is larger than {MAX_FILE_BYTES} bytes"));
    }
    String::from_utf8(bytes).map_err(|_| "is not UTF-8 text".to_owned())
}

/// Whether a file, links followed, is in the project that holds `<project>/.windlass/skills`.
fn is_within_project(directory: &Path, file: &Path) -> bool {
    let project = |path: &Path| path.ancestors().nth(2).map(Path::to_owned);
    let real = |path: &Path| fs::canonicalize(path).ok();
    let top: Option<PathBuf> = project(directory).and_then(|path| real(&path));
    match (top, real(file)) {
        (Some(top), Some(file)) => file.starts_with(top),
        _ => false,
    }
}

fn list_resources(folder: &Path, below: &str, depth: usize, names: &mut Vec<String>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let Ok(name) = entry.file_name().into_string() else { continue };
        // Evals hold the answers to their own questions (MS-169).
        let hidden = name.starts_with('.') || (below.is_empty() && name == "evals");
        if hidden || names.len() >= MAX_RESOURCES {
            continue;
        }
        let whole = if below.is_empty() { name } else { format!("{below}/{name}") };
        match entry.file_type() {
            Ok(kind) if kind.is_dir() && depth > 1 => {
                list_resources(&entry.path(), &whole, depth - 1, names);
            }
            Ok(kind) if kind.is_file() && whole != "SKILL.md" => names.push(whole),
            _ => {}
        }
    }
}
