//! The project's own files that an entry of a project's file runs: scripts of MCP servers and of hooks, and
//! everything in the folder of a skill that brings them.
//!
//! An entry is bound to every file that it names, whatever kind of file it is; to the code of the directories in which
//! its program looks for code, by a flag, a variable or because it builds them; and to what such a file names in turn,
//! by words and not by meaning. What a program computes is not followed: the sandbox is what bounds it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Component, Path, PathBuf};

use serde_json::Value;
use sha2::{Digest as _, Sha256};
use windlass_core::hash::hex;
use windlass_core::text::plural;
use windlass_plan::contract_from_value;
use windlass_shell::{Context, analyze};
use windlass_skills::regular;
use windlass_tools::named_files;

use crate::config::File;

/// How many files an approval names; nobody reads more. Of the others their hashes count together.
const MAX_FILES: usize = 1_000;
/// How many others count; an entry that builds a larger tree than that is bounded by the sandbox alone.
const MAX_OTHERS: usize = 50_000;
/// How deep a folder is looked into.
const MAX_DEPTH: usize = 6;
/// In a directory with code: how deep, as packages are nested deeper than the files of a skill.
const MAX_CODE_DEPTH: usize = 16;
/// Of a longer file the beginning and the length count.
const MAX_HASHED_BYTES: u64 = 16 << 20;

/// How far files that name files are followed from an entry that starts a program.
const MAX_FOLLOWED: usize = 8;
/// The same from a command that checks work, and so names the work itself.
const MAX_FOLLOWED_OF_CHECKS: usize = 2;
/// The largest text in which names of other files are looked for, and how many of its words may be such names.
const MAX_FOLLOWED_BYTES: u64 = 256 << 10;
const MAX_WORDS: usize = 5_000;

/// Names of files that hold code, by their ends.
const CODE: &[&str] = &[
    "py", "pyz", "js", "mjs", "cjs", "jsx", "ts", "mts", "cts", "tsx", "sh", "bash", "zsh", "fish",
    "rb", "pl", "php", "lua", "jar", "wasm", "ps1", "r", "jl", "exs", "go", "kts", "groovy", "awk",
    "tcl", "class", "pyc", "pyd", "pm", "rs", "c", "cc", "cpp", "h", "hpp", "cs", "fs", "vb",
    "csproj", "fsproj", "vbproj", "props", "targets", "sln", "java", "kt", "scala", "sbt",
    "gradle", "swift", "zig", "nim", "hs", "ml", "ex", "erl", "clj", "so", "dll", "dylib", "node",
    "cmd", "bat",
];

/// Files that a server keeps its data in, by their ends. It is named in the entry and changed at every use.
const DATA: &[&str] = &["db", "duckdb", "log", "pid", "sqlite", "sqlite3"];

/// Programs that build and run the code of a directory.
const BUILDERS: &[&str] = &[
    "bazel", "cabal", "cargo", "dotnet", "go", "gradle", "gradlew", "lein", "mill", "mix", "mvn",
    "mvnw", "nim", "sbt", "stack", "swift", "zig",
];

/// Flags that are followed by a directory from which code is taken.
const CODE_FLAGS: &[&str] = &[
    "-C",
    "-I",
    "-L",
    "-S",
    "-cp",
    "-p",
    "--chdir",
    "--class-path",
    "--classpath",
    "-classpath",
    "--cwd",
    "--dir",
    "--directory",
    "--include",
    "--manifest-path",
    "--module-path",
    "--prefix",
    "--project",
    "--project-dir",
    "--rootdir",
    "--workdir",
];

/// Where a project has the programs that it has installed for itself: `npx NAME` runs one of them.
const INSTALLED: &[&str] = &["node_modules/.bin", ".venv/bin", "venv/bin", "vendor/bin"];

/// Directories with what programs make at every run, or what is not the project's own.
const MADE: &[&str] = &[".git", ".venv", "__pycache__", "node_modules", "obj", "target"];

/// The files that a project's file runs, with their hashes.
pub(super) fn of(project: &Path, file: &File) -> BTreeMap<String, String> {
    let started = project.canonicalize().unwrap_or_else(|_| project.to_owned());
    // A file of the repository's root is for every directory below it; what it names may be meant from either.
    let own = file.path.parent().and_then(|own| own.canonicalize().ok());
    let own = own.map(|own| {
        let is_ours = |part: &&Path| part.ends_with(".windlass") || part.ends_with(".claude");
        let outside = own.ancestors().find(is_ours).and_then(Path::parent);
        outside.unwrap_or(&own).to_owned()
    });
    let project = own.filter(|own| started.starts_with(own)).unwrap_or_else(|| started.clone());
    let mut found = ProjectPrograms {
        project,
        started,
        files: BTreeMap::new(),
        others: BTreeMap::new(),
        folders: BTreeSet::new(),
        coded: BTreeSet::new(),
        depth: 0,
        most_depth: MAX_FOLLOWED_OF_CHECKS,
        is_server: false,
    };
    let name = file.path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let folder = file
        .path
        .parent()
        .filter(|folder| folder.join("SKILL.md").is_file() || is_grader(&file.path, folder));
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
    found.into_all_files()
}

/// Whether a file decides about an eval case, which it may read all of.
fn is_grader(path: &Path, case: &Path) -> bool {
    path.file_stem().is_some_and(|stem| stem == "grader")
        && case.parent().is_some_and(|evals| evals.ends_with("evals"))
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
    /// Those beyond what is named.
    others: BTreeMap<String, String>,
    /// Folders that were looked into; a link may lead to one again.
    folders: BTreeSet<PathBuf>,
    /// The same of directories whose code counts.
    coded: BTreeSet<PathBuf>,
    /// How many files lie between what is read now and the entry, and how many may.
    depth: usize,
    most_depth: usize,
    /// Whether the entry names what it runs, so that a file counts whatever kind it is.
    is_server: bool,
}

impl ProjectPrograms {
    /// `{"mcpServers": {"NAME": {"command": …, "args": […]}}}`
    fn json_servers(&mut self, document: &Value) {
        let servers = document.get("mcpServers").and_then(Value::as_object);
        servers.into_iter().flatten().for_each(|(_, server)| self.server(server));
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
        for (_, server) in servers.and_then(toml::Value::as_table).into_iter().flatten() {
            self.server(&serde_json::to_value(server).unwrap_or_default());
        }
    }

    /// All that an entry names, also in variables and in a directory of its own.
    fn server(&mut self, server: &Value) {
        (self.is_server, self.most_depth) = (true, MAX_FOLLOWED);
        let mut words = Vec::new();
        strings(server.get("command").unwrap_or(&Value::Null), &mut words);
        strings(server.get("args").unwrap_or(&Value::Null), &mut words);
        self.command(&words);
        let directory = server.get("cwd").and_then(Value::as_str).map(Path::new);
        let mut values = Vec::new();
        strings(server, &mut values);
        for value in values.iter().flat_map(|value| named_files::words(value)) {
            let below = directory.map(|directory| directory.join(value));
            for path in below.as_deref().into_iter().chain([Path::new(value)]) {
                self.add_named_file(path);
            }
        }
        for word in words.iter().flat_map(|word| named_files::words(word)) {
            let below = directory.map(|directory| directory.join(word).display().to_string());
            self.words(&below.unwrap_or_default());
        }
        let directory = directory.unwrap_or(Path::new(""));
        for manifest in words.iter().flat_map(|word| named_files::manifests(word)) {
            self.file(&directory.join(manifest));
        }
        self.code_directories(server, &words, directory);
        (self.is_server, self.most_depth) = (false, MAX_FOLLOWED_OF_CHECKS);
    }

    /// A file that an entry names, whatever kind it is.
    fn add_named_file(&mut self, path: &Path) {
        let text = path.to_string_lossy();
        let installed = INSTALLED.iter().map(|directory| format!("{directory}/{text}"));
        for path in named_files::candidates(&text).into_iter().chain(installed) {
            let is_data = |path: &Path| {
                path.extension().is_some_and(|end| DATA.iter().any(|data| end == *data))
            };
            if self.resolve(Path::new(&path)).is_some_and(|path| !is_data(&path)) {
                self.file(Path::new(&path));
            }
        }
    }

    /// The directories in which a server's program looks for code: by its variables, by its flags, and the one that it
    /// builds.
    fn code_directories(&mut self, server: &Value, words: &[String], directory: &Path) {
        let mut places = Vec::new();
        for (name, value) in server.get("env").and_then(Value::as_object).into_iter().flatten() {
            if ["PATH", "LIB", "HOME", "ROOT"].iter().any(|end| name.contains(end)) {
                places.extend(value.as_str().into_iter().flat_map(named_files::words));
            }
        }
        // An argument may be a whole command.
        let split: Vec<_> = words.iter().flat_map(|word| word.split_whitespace()).collect();
        for (index, word) in split.iter().enumerate() {
            let flag = word.split('=').next().unwrap_or_default();
            if CODE_FLAGS.contains(&flag) {
                let next = split.get(index + 1).copied().unwrap_or_default();
                let value = word.split_once('=').map_or(next, |(_, value)| value);
                places.extend(named_files::words(value));
            }
            // `-Ilib`
            places.extend(["-I", "-L", "-C"].into_iter().find_map(|flag| word.strip_prefix(flag)));
        }
        let builds = split
            .iter()
            .any(|word| BUILDERS.iter().any(|name| word.rsplit('/').next() == Some(*name)));
        let mut taken = false;
        for place in places.iter().filter(|place| !place.is_empty()) {
            for path in [directory.join(place), PathBuf::from(place)] {
                let Some(found) = self.directory(&path) else { continue };
                // The whole project is where its data is, too; there a file counts that something names.
                if found != self.project && found != self.started {
                    self.code(&found, MAX_CODE_DEPTH);
                    taken = true;
                }
            }
        }
        if builds && let Some(found) = self.directory(directory).filter(|_| !taken) {
            self.code(&found, MAX_CODE_DEPTH);
        }
    }

    /// An existing directory of the project, without links in its path.
    fn directory(&self, path: &Path) -> Option<PathBuf> {
        let path = path.strip_prefix("/workspace").unwrap_or(path);
        let below: PathBuf =
            path.components().filter(|part| matches!(part, Component::Normal(_))).collect();
        let given = [self.started.join(path), self.project.join(path), self.project.join(below)];
        given.into_iter().find_map(|path| {
            let real = path.canonicalize().ok()?;
            (real.starts_with(&self.project) && real.is_dir()).then_some(real)
        })
    }

    /// Every file with code of a directory, in the order of their names, so that a bound cuts the same ones each time.
    fn code(&mut self, directory: &Path, depth: usize) {
        for path in entries(directory) {
            let Ok(kind) = fs::metadata(&path) else { continue };
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            let manifest = || named_files::all_manifests().any(|manifest| manifest == name);
            if kind.is_dir() && depth > 1 && !MADE.contains(&name) {
                let is_new =
                    |real: PathBuf| real.starts_with(&self.project) && self.coded.insert(real);
                if path.canonicalize().is_ok_and(is_new) {
                    self.code(&path, depth - 1);
                }
            } else if kind.is_file() && (is_code(&path) || manifest()) {
                self.file(&path);
            }
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
        self.most_depth = MAX_FOLLOWED;
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
        let is_entry = self.is_server && self.depth == 0;
        if self.depth >= self.most_depth || !(is_entry || is_text_of_code(path)) {
            return;
        }
        let Ok(text) = regular::read_text(path, MAX_FOLLOWED_BYTES) else { return };
        let own = path.parent().unwrap_or(&self.project).to_owned();
        let known = Names::of([&own, &self.project, &self.started]);
        let mut seen = BTreeSet::new();
        let words = named_files::words(&text);
        let names = words.filter(|word| known.may_mean(word) && seen.insert(*word));
        self.depth += 1;
        for word in names.take(MAX_WORDS) {
            let below = word.trim_start_matches('/');
            let from = module_directory(&own, below);
            for path in named_files::candidates(below) {
                for path in [from.join(&path), own.join(&path), PathBuf::from(&path)] {
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
        for path in if is_new { entries(folder) } else { Vec::new() } {
            // A link counts as what it leads to.
            let Ok(kind) = fs::metadata(&path) else { continue };
            if kind.is_dir() && depth > 1 && !path.ends_with("evals") {
                self.folder(&path, depth - 1);
            } else if kind.is_file() {
                self.file(&path);
            }
        }
    }

    /// Takes the hash of a file, where it is one of the project.
    fn file(&mut self, path: &Path) {
        if let Some(path) = self.resolve(path)
            && let Some(name) = self.name(&path)
            && !self.files.contains_key(&name)
            && !self.others.contains_key(&name)
            && self.others.len() < MAX_OTHERS
            && let Some(hash) = hash(&path)
        {
            match self.files.len() < MAX_FILES {
                true => self.files.insert(name, hash),
                false => self.others.insert(name, hash),
            };
            self.follow(&path);
        }
    }

    /// All that was found.
    fn into_all_files(mut self) -> BTreeMap<String, String> {
        if !self.others.is_empty() {
            let mut together = Sha256::new();
            for (name, hash) in &self.others {
                together.update(format!("{name}\0{hash}\0"));
            }
            let name = format!("(and {})", plural(self.others.len(), "other file"));
            self.files.insert(name, hex(&together.finalize()[..16]));
        }
        self.files
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

/// What is in a directory, by name.
fn entries(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut paths: Vec<_> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    paths
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

/// Where a relative import of Python begins: `..core` one directory above that of the file.
fn module_directory(own: &Path, word: &str) -> PathBuf {
    let dots = word.len() - word.trim_start_matches('.').len();
    own.ancestors().nth(dots.saturating_sub(1)).unwrap_or(own).to_owned()
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
    Some(hex(&hash.finalize()[..16]))
}
