//! The project's own files that an entry of a project's file runs: scripts of MCP servers and of hooks, and
//! everything in the folder of a skill that brings them.
//!
//! What such a file names in turn is followed two levels deep, by words and not by meaning. What a program computes
//! is not: the sandbox is what bounds it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Component, Path, PathBuf};

use serde_json::Value;
use sha2::{Digest as _, Sha256};
use windlass_plan::contract_from_value;
use windlass_shell::{Context, analyze};
use windlass_skills::regular;
use windlass_tools::named_files;

use crate::config::File;

/// How many files an approval is bound to; an entry that names more is not read by anybody.
const MAX_FILES: usize = 1_000;
/// How deep the folder of a skill is looked into.
const MAX_DEPTH: usize = 6;
/// Of a longer file the beginning and the length count.
const MAX_HASHED_BYTES: u64 = 16 << 20;

/// How far files that name files are followed.
const MAX_FOLLOWED: usize = 2;
/// The largest text in which names of other files are looked for, and how many of its words.
const MAX_FOLLOWED_BYTES: u64 = 256 << 10;
const MAX_WORDS: usize = 1_000;

/// Names of files that hold code, by their ends.
const CODE: &[&str] = &[
    "py", "pyz", "js", "mjs", "cjs", "jsx", "ts", "mts", "cts", "tsx", "sh", "bash", "zsh", "fish",
    "rb", "pl", "php", "lua", "jar", "wasm", "ps1", "r", "jl", "exs", "go", "kts", "groovy", "awk",
    "tcl",
];

/// The files that a project's file runs, with their hashes.
pub(super) fn of(project: &Path, file: &File) -> BTreeMap<String, String> {
    let started = project.canonicalize().unwrap_or_else(|_| project.to_owned());
    // A file of the repository's root is for every directory below it; what it names may be meant from either.
    let own = file.path.parent().and_then(|own| own.canonicalize().ok());
    let own = own.map(|own| match own.ends_with(".windlass") || own.ends_with(".claude") {
        true => own.parent().unwrap_or(&own).to_owned(),
        false => own,
    });
    let project = own.filter(|own| started.starts_with(own)).unwrap_or_else(|| started.clone());
    let mut found = ProjectPrograms {
        project,
        started,
        files: BTreeMap::new(),
        folders: BTreeSet::new(),
        depth: 0,
    };
    let name = file.path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let folder = file.path.parent().filter(|folder| folder.join("SKILL.md").is_file());
    match name.rsplit('.').next().unwrap_or_default() {
        "json" => {
            let document = serde_json::from_str(&file.text).unwrap_or_default();
            found.json_servers(&document);
            found.plan(&document, file.path.parent().unwrap_or(Path::new("")));
            found.checks(&document);
        }
        "toml" => found.toml_servers(&file.text),
        "yaml" | "yml" if is_workflow(&file.path) => found.workflow(&file.text),
        "md" | "yaml" | "yml" => found.hooks(&file.text, name),
        _ => {}
    }
    if let Some(folder) = folder {
        found.folder(folder, MAX_DEPTH);
    }
    // Its own content is hashed already.
    if let Some(own) = file.path.canonicalize().ok().and_then(|path| found.name(&path)) {
        found.files.remove(&own);
    }
    found.files
}

/// Whether a file lies where workflows are.
fn is_workflow(path: &Path) -> bool {
    path.parent().is_some_and(|parent| parent.ends_with("workflows"))
}

struct ProjectPrograms {
    /// The project's directory, without links in its path.
    project: PathBuf,
    /// The directory that work starts in, the project's own or one below.
    started: PathBuf,
    files: BTreeMap<String, String>,
    /// Folders that were looked into; a link may lead to one again.
    folders: BTreeSet<PathBuf>,
    /// How many files lie between what is read now and the entry.
    depth: usize,
}

impl ProjectPrograms {
    /// `{"mcpServers": {"NAME": {"command": …, "args": […]}}}`
    fn json_servers(&mut self, document: &Value) {
        let servers = document.get("mcpServers").and_then(Value::as_object);
        for server in servers.into_iter().flatten().map(|(_, server)| server) {
            let mut words = Vec::new();
            strings(server.get("command").unwrap_or(&Value::Null), &mut words);
            strings(server.get("args").unwrap_or(&Value::Null), &mut words);
            self.command(&words);
            self.surroundings(server);
        }
    }

    /// The files of a plan's tasks, and what the commands run that check them.
    fn plan(&mut self, document: &Value, directory: &Path) {
        let list = |value: &Value, key: &str| value[key].as_array().cloned().unwrap_or_default();
        for task in list(document, "phases").iter().flat_map(|phase| list(phase, "tasks")) {
            if let Some(name) = task["file"].as_str() {
                self.file(&directory.join(name));
            }
            for command in list(&task, "verification") {
                let command = command.as_str().unwrap_or_default();
                self.script(command);
                self.words(command);
            }
            self.checks(&task["completion"]);
        }
        self.checks(&document["completion"]);
    }

    /// The commands of a completion contract.
    fn checks(&mut self, contract: &Value) {
        let Ok(contract) = contract_from_value(contract) else { return };
        let project = self.project.clone();
        for check in contract.checks {
            if let Some(command) = check.command_in(|file| project.join(file).is_file()) {
                self.script(&command);
                self.words(&command);
            }
        }
    }

    /// Commands of the servers under `[mcp.servers.NAME]`.
    fn toml_servers(&mut self, text: &str) {
        let Ok(document) = text.parse::<toml::Table>() else { return };
        let servers = document.get("mcp").and_then(|mcp| mcp.get("servers"));
        for server in servers.and_then(toml::Value::as_table).into_iter().flatten() {
            let given = |key| server.1.get(key).and_then(|value| serde_json::to_value(value).ok());
            let mut words = Vec::new();
            strings(&given("command").unwrap_or_default(), &mut words);
            strings(&given("args").unwrap_or_default(), &mut words);
            self.command(&words);
            self.surroundings(&serde_json::to_value(server.1).unwrap_or_default());
        }
    }

    /// What a server's variables name, and its program in a directory of its own.
    fn surroundings(&mut self, server: &Value) {
        let mut values = Vec::new();
        strings(server.get("env").unwrap_or(&Value::Null), &mut values);
        values.iter().for_each(|value| self.words(value));
        let Some(directory) = server.get("cwd").and_then(Value::as_str) else { return };
        let mut words = Vec::new();
        strings(server.get("command").unwrap_or(&Value::Null), &mut words);
        strings(server.get("args").unwrap_or(&Value::Null), &mut words);
        let words = words.iter().flat_map(|word| named_files::words(word));
        let below: Vec<String> = words.map(|word| format!("{directory}/{word}")).collect();
        self.words(&below.join(" "));
    }

    /// Every command of a workflow.
    fn workflow(&mut self, text: &str) {
        let read = windlass_workflow::definition::Workflow::read(text, "workflow");
        for (_, command) in read.map(|workflow| workflow.commands()).unwrap_or_default() {
            self.script(&command);
            self.words(&command);
        }
    }

    /// The hooks of a skill: any text in them may be a command.
    fn hooks(&mut self, text: &str, name: &str) {
        let read = match name.ends_with(".md") {
            true => windlass_skills::parse_markdown(text, "skill"),
            false => windlass_skills::parse_yaml(text, "skill"),
        };
        let hooks = read.ok().and_then(|read| read.meta.hooks);
        let mut commands = Vec::new();
        strings(&hooks.unwrap_or_default(), &mut commands);
        for command in commands {
            self.script(&command);
            self.words(&command);
        }
    }

    /// A program with its arguments.
    fn command(&mut self, words: &[String]) {
        let quoted = |word: &String| format!("'{}'", word.replace('\'', r"'\''"));
        self.script(&words.iter().map(quoted).collect::<Vec<_>>().join(" "));
        for word in words {
            // An argument may be a whole command itself, as after `sh -c`.
            self.script(word);
            self.words(word);
        }
    }

    /// What a command text runs, as the gate reads it.
    fn script(&mut self, text: &str) {
        for directory in [&self.project, &self.started].map(|path| path.display().to_string()) {
            let context = Context { directory, ..self.context() };
            for script in analyze(text, &context).scripts {
                self.file(Path::new(&script.path));
            }
        }
    }

    fn context(&self) -> Context {
        Context::new(self.project.display().to_string(), String::new())
    }

    /// The files with code that words of a text name.
    fn words(&mut self, text: &str) {
        for word in named_files::words(text) {
            for manifest in named_files::manifests(word) {
                self.file(Path::new(manifest));
            }
            // A program may be started in a directory that it is given: `npm --prefix web`, `make -C web`.
            for manifest in named_files::all_manifests() {
                self.file(&Path::new(word).join(manifest));
            }
            for path in named_files::candidates(word) {
                if self.resolve(Path::new(&path)).is_some_and(|path| is_code(&path)) {
                    self.file(Path::new(&path));
                }
            }
        }
    }

    /// Takes the files that a file of the project names.
    fn follow(&mut self, path: &Path) {
        if self.depth >= MAX_FOLLOWED || !is_text_of_code(path) {
            return;
        }
        let Ok(text) = regular::read_text(path, MAX_FOLLOWED_BYTES) else { return };
        let own = path.parent().unwrap_or(&self.project).to_owned();
        let known = Names::of([&own, &self.project, &self.started]);
        self.depth += 1;
        for word in named_files::words(&text).take(MAX_WORDS).filter(|word| known.may_mean(word)) {
            let below = word.trim_start_matches('/');
            for path in named_files::candidates(below) {
                for path in [own.join(&path), PathBuf::from(&path)] {
                    if self.resolve(&path).is_some_and(|path| is_code(&path)) {
                        self.file(&path);
                    }
                }
            }
        }
        self.depth -= 1;
    }

    /// Every file of a folder but the evals, which nobody runs while working.
    fn folder(&mut self, folder: &Path, depth: usize) {
        let is_new = folder
            .canonicalize()
            .is_ok_and(|real| real.starts_with(&self.project) && self.folders.insert(real));
        let entries = is_new.then(|| fs::read_dir(folder).ok()).flatten();
        for entry in entries.into_iter().flatten().flatten() {
            // A link counts as what it leads to.
            let Ok(kind) = fs::metadata(entry.path()) else { continue };
            if kind.is_dir() && depth > 1 && entry.file_name() != "evals" {
                self.folder(&entry.path(), depth - 1);
            } else if kind.is_file() {
                self.file(&entry.path());
            }
        }
    }

    /// Takes the hash of a file, where it is one of the project.
    fn file(&mut self, path: &Path) {
        if self.files.len() >= MAX_FILES {
            return;
        }
        if let Some(path) = self.resolve(path)
            && let (Some(name), Some(hash)) = (self.name(&path), hash(&path))
            && self.files.insert(name, hash).is_none()
        {
            self.follow(&path);
        }
    }

    /// An existing file of the project, without links in its path.
    fn resolve(&self, path: &Path) -> Option<PathBuf> {
        let given = [self.started.join(path), self.project.join(path)];
        // `${DIR}/x` leaves `/x` when it is split into words.
        let below: PathBuf =
            path.components().filter(|part| matches!(part, Component::Normal(_))).collect();
        given.into_iter().chain([self.project.join(below)]).find_map(|path| {
            let real = path.canonicalize().ok()?;
            (real.starts_with(&self.project) && real.is_file()).then_some(real)
        })
    }

    fn name(&self, path: &Path) -> Option<String> {
        Some(windlass_core::shown::shown_path(path.strip_prefix(&self.project).ok()?))
    }
}

/// The names in some directories, with and without their endings.
struct Names(BTreeSet<String>);

impl Names {
    fn of<'p>(directories: impl IntoIterator<Item = &'p PathBuf>) -> Self {
        let entries = directories.into_iter().filter_map(|path| fs::read_dir(path).ok()).flatten();
        let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
        Self(names.flat_map(|name| [stem(&name).to_owned(), name]).collect())
    }

    /// Whether a word may be a path that begins with one of them. Most words of a program are not.
    fn may_mean(&self, word: &str) -> bool {
        let path = word.trim_start_matches(['.', '/']);
        let first = path.split('/').next().unwrap_or_default();
        word.starts_with("..") || self.0.contains(first) || self.0.contains(stem(first))
    }
}

/// A name without its endings.
fn stem(name: &str) -> &str {
    let end = name.char_indices().skip(1).find(|(_, char)| *char == '.').map(|(at, _)| at);
    &name[..end.unwrap_or(name.len())]
}

/// Every text in a value.
fn strings(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::String(text) => found.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| strings(item, found)),
        Value::Object(fields) => fields.values().for_each(|item| strings(item, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn is_code(path: &Path) -> bool {
    let end = path.extension().and_then(|end| end.to_str()).unwrap_or_default();
    let is_program = || fs::metadata(path).is_ok_and(|file| file.permissions().mode() & 0o111 != 0);
    CODE.contains(&end.to_ascii_lowercase().as_str()) || is_program()
}

/// Whether a file may name other files that it runs.
fn is_text_of_code(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    is_code(path) || named_files::all_manifests().any(|manifest| manifest == name)
}

fn hash(path: &Path) -> Option<String> {
    let file = regular::open(path).ok()?;
    let length = file.metadata().ok()?.len();
    let mut bytes = Vec::new();
    file.take(MAX_HASHED_BYTES).read_to_end(&mut bytes).ok()?;
    let mut hash = Sha256::new_with_prefix(length.to_le_bytes());
    hash.update(&bytes);
    Some(hash.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect())
}
