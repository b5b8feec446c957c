//! The skills of one directory.

use std::fs;
use std::io::{self, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::UNIX_EPOCH;

use sha2::{Digest as _, Sha256};
use windlass_core::hash::hex;

use crate::Problem;
use crate::beneath::{self, Links};
use crate::parse::{ParseError, ParsedSkill, parse_markdown, parse_yaml};
use crate::regular;
use crate::skill::{Resource, Scope, Skill};

/// The longest skill file: instructions that a model is to read whole.
const MAX_FILE_BYTES: u64 = 1 << 20;
/// How many entries of a directory are looked at.
const MAX_ENTRIES: usize = 1_000;
/// How many other files a skill may have; more is a project of its own.
const MAX_RESOURCES: usize = 500;
/// How deep they may lie.
const MAX_RESOURCE_DEPTH: usize = 6;
/// The answers to its own exams, which no agent may see (MS-169).
const EVALS: &str = "evals";

/// What one directory holds.
pub(crate) struct SkillScan {
    pub skills: Vec<Skill>,
    pub problems: Vec<Problem>,
}

enum SkillForm {
    Folder,
    Markdown,
    Yaml,
}

/// Reads every skill of a directory, in order of file names.
pub(crate) fn in_directory(directory: &Path, scope: Scope) -> SkillScan {
    let mut found = SkillScan { skills: Vec::new(), problems: Vec::new() };
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
            Ok((skill, warning)) => {
                found.problems.extend(warning);
                // Used all the same: other programs go by the name inside, too.
                if matches!(form, SkillForm::Folder) && skill.meta.name != name {
                    let reason = format!(
                        "`name` `{}` differs from its directory `{name}`; give both the same name",
                        skill.meta.name
                    );
                    found.problems.push(problem(&skill.path, reason));
                }
                found.add(skill);
            }
            Err(problem) => found.problems.push(problem),
        }
    }
    found
}

impl SkillScan {
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

/// What an entry could be, and the name it gives; `None` for what is not a skill at all.
fn form_of(path: &Path) -> Option<(String, SkillForm)> {
    let file_name = path.file_name()?.to_str()?;
    if file_name.starts_with('.') {
        return None;
    }
    if path.is_dir() {
        return path.join("SKILL.md").exists().then(|| (file_name.to_owned(), SkillForm::Folder));
    }
    let (stem, extension) = file_name.rsplit_once('.')?;
    match extension {
        "md" if !stem.eq_ignore_ascii_case("readme") => {
            Some((stem.to_owned(), SkillForm::Markdown))
        }
        "yaml" | "yml" => Some((stem.to_owned(), SkillForm::Yaml)),
        _ => None,
    }
}

fn read_one(
    directory: &Path,
    path: &Path,
    name: &str,
    form: &SkillForm,
    scope: Scope,
) -> Result<(Skill, Option<Problem>), Problem> {
    let file = match form {
        SkillForm::Folder => path.join("SKILL.md"),
        SkillForm::Markdown | SkillForm::Yaml => path.to_owned(),
    };
    let content = read_text(directory, &file, scope).map_err(|reason| problem(&file, reason))?;
    let parsed = match form {
        SkillForm::Folder | SkillForm::Markdown => parse_markdown(&content, name),
        SkillForm::Yaml => parse_yaml(&content, name),
    };
    let placed = |ParseError { line, reason }| Problem { path: file.clone(), line, reason };
    let ParsedSkill { meta, body, warning } = parsed.map_err(placed)?;
    let warning = warning.map(placed);
    let mut resources = Vec::new();
    if let SkillForm::Folder = form {
        list_resources(path, "", MAX_RESOURCE_DEPTH, &mut resources);
        resources.sort_by(|left, right| left.name.cmp(&right.name));
    }
    let version = version(&content, &resources);
    Ok((Skill { meta, content, body, scope, path: file, resources, version }, warning))
}

fn read_text(directory: &Path, file: &Path, scope: Scope) -> Result<String, String> {
    let said = |error: io::Error| format!("cannot be read: {error}");
    let opened = match (scope, project_of(directory)) {
        (Scope::Project, Some(project)) => {
            let name = file.strip_prefix(project).unwrap_or(file);
            let project = beneath::directory(project).map_err(said)?;
            match beneath::file(project, name, Links::Inside) {
                Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {
                    return Err(
                        "is a link to outside the project, which is not followed".to_owned()
                    );
                }
                opened => opened.map_err(said)?,
            }
        }
        (Scope::Project, None) => return Err("is not in the folder of a project".to_owned()),
        (Scope::Builtin | Scope::User, _) => regular::open(file).map_err(said)?,
    };
    if !opened.metadata().map_err(said)?.is_file() {
        return Err("is not a regular file".to_owned());
    }
    let mut bytes = Vec::new();
    opened.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes).map_err(said)?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err(format!("is larger than {MAX_FILE_BYTES} bytes"));
    }
    String::from_utf8(bytes).map_err(|_| "is not UTF-8 text".to_owned())
}

/// The project that holds `<project>/.windlass/skills`.
pub(crate) fn project_of(directory: &Path) -> Option<&Path> {
    directory.ancestors().nth(2)
}

/// Only real files: a link could lead to anything on this machine.
fn list_resources(folder: &Path, below: &str, depth: usize, found: &mut Vec<Resource>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let Ok(name) = entry.file_name().into_string() else { continue };
        let hidden = name.starts_with('.') || (below.is_empty() && name == EVALS);
        if hidden || found.len() >= MAX_RESOURCES {
            continue;
        }
        let name = if below.is_empty() { name } else { format!("{below}/{name}") };
        let Ok(metadata) = entry.metadata() else { continue };
        if metadata.is_dir() && depth > 1 {
            list_resources(&entry.path(), &name, depth - 1, found);
        } else if metadata.is_file() && name != "SKILL.md" {
            let modified = metadata.modified().ok();
            let since = modified.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
            found.push(Resource {
                name,
                bytes: metadata.len(),
                modified: since.map_or(0, |since| since.as_nanos()),
                executable: metadata.permissions().mode() & 0o111 != 0,
            });
        }
    }
}

/// Sixteen characters that are the same for the same skill on every run.
fn version(content: &str, resources: &[Resource]) -> String {
    let mut hash = Sha256::new_with_prefix(content);
    for Resource { name, bytes, modified, executable } in resources {
        hash.update(format!("\0{name}\0{bytes}\0{modified}\0{executable}"));
    }
    hex(&hash.finalize()[..8])
}
