//! The project's own files that an entry of a project's file runs: scripts of MCP servers and of hooks, and
//! everything in the folder of a skill that brings them.
//!
//! What such a script loads in turn is not followed: the sandbox is what bounds it.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Component, Path, PathBuf};

use serde_json::Value;
use sha2::{Digest as _, Sha256};
use windlass_plan::contract_from_value;
use windlass_shell::{Context, analyze};
use windlass_skills::regular;

use crate::config::File;

/// How many files an approval is bound to; an entry that names more is not read by anybody.
const MAX_FILES: usize = 1_000;
/// How deep the folder of a skill is looked into.
const MAX_DEPTH: usize = 6;
/// Of a longer file the beginning and the length count.
const MAX_HASHED_BYTES: u64 = 16 << 20;

/// Names of files that hold code, by their ends.
const CODE: &[&str] = &[
    "py", "pyz", "js", "mjs", "cjs", "jsx", "ts", "mts", "cts", "tsx", "sh", "bash", "zsh", "fish",
    "rb", "pl", "php", "lua", "jar", "wasm", "ps1", "r", "jl", "exs", "go", "kts", "groovy", "awk",
    "tcl",
];

/// Programs that run what a file of the project says, and that file.
const MANIFESTS: &[(&str, &str)] = &[
    ("npm", "package.json"),
    ("npx", "package.json"),
    ("pnpm", "package.json"),
    ("yarn", "package.json"),
    ("bun", "package.json"),
    ("deno", "deno.json"),
    ("make", "Makefile"),
    ("just", "justfile"),
    ("task", "Taskfile.yml"),
    ("rake", "Rakefile"),
    ("uv", "pyproject.toml"),
    ("poetry", "pyproject.toml"),
    ("cargo", "Cargo.toml"),
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
    let mut found = ProjectPrograms { project, started, files: BTreeMap::new() };
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
        }
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
        let is_end = |char: char| char.is_whitespace() || "'\"`=;,:|&()<>{}[]$".contains(char);
        for word in text.split(is_end).filter(|word| !word.is_empty()) {
            let program = word.rsplit('/').next().unwrap_or_default();
            for (_, manifest) in MANIFESTS.iter().filter(|(name, _)| *name == program) {
                self.file(Path::new(manifest));
            }
            let path = word.strip_prefix("/workspace/").unwrap_or(word);
            let module = path.replace('.', "/");
            let named = [path.to_owned(), format!("{module}.py"), format!("{module}/__main__.py")];
            let loaded = ["js", "mjs", "cjs", "ts"].map(|end| format!("{path}.{end}"));
            let index = ["js", "mjs", "cjs", "ts"].map(|end| format!("{path}/index.{end}"));
            for path in named.into_iter().chain(loaded).chain(index) {
                if self.resolve(Path::new(&path)).is_some_and(|path| is_code(&path)) {
                    self.file(Path::new(&path));
                }
            }
        }
    }

    /// Every file of a folder but the evals, which nobody runs while working.
    fn folder(&mut self, folder: &Path, depth: usize) {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let Ok(kind) = entry.file_type() else { continue };
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
        {
            self.files.insert(name, hash);
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

fn hash(path: &Path) -> Option<String> {
    let file = regular::open(path).ok()?;
    let length = file.metadata().ok()?.len();
    let mut bytes = Vec::new();
    file.take(MAX_HASHED_BYTES).read_to_end(&mut bytes).ok()?;
    let mut hash = Sha256::new_with_prefix(length.to_le_bytes());
    hash.update(&bytes);
    Some(hash.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect())
}
