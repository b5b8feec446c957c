//! Where workflows and spells are: `.windlass/`, and `.coven/` as an alias (C-38).

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use windlass_core::event::WorkflowSource;
use windlass_core::shown::shown_path;
use windlass_skills::regular;

use crate::definition::{AgentWork, MAX_FILE_BYTES, Spell, Step, Work, Workflow, nearest};
use crate::{spell, template};

/// The directories that hold them, the first wins.
const DIRECTORIES: [&str; 2] = [".windlass", ".coven"];

/// What is wrong with a file, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FileError {
    #[error("there is no workflow `{name}` in `{directory}`{}", others(.known))]
    NoWorkflow { name: String, directory: String, known: Vec<String> },
    /// The spell of a step does not exist (WF-044).
    #[error("{}: there is no spell `{name}`: `{path}` does not exist{}", place(.workflow, *.line), meant(.near))]
    NoSpell {
        /// The file of the workflow that names it, and the line of the step.
        workflow: String,
        line: Option<u64>,
        name: String,
        path: String,
        /// One that exists and is named nearly so.
        near: Option<String>,
    },
    #[error("{}: {reason}", place(.path, *.line))]
    Wrong { path: String, line: Option<u64>, reason: String },
}

/// Everything that is wrong with a workflow and what it names, one a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileErrors(Vec<FileError>);

impl FileErrors {
    pub fn iter(&self) -> impl Iterator<Item = &FileError> {
        self.0.iter()
    }
}

impl From<FileError> for FileErrors {
    fn from(error: FileError) -> Self {
        Self(vec![error])
    }
}

impl fmt::Display for FileErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<_> = self.0.iter().map(ToString::to_string).collect();
        f.write_str(&lines.join("\n"))
    }
}

impl std::error::Error for FileErrors {}

fn place(path: &str, line: Option<u64>) -> String {
    line.map_or_else(|| path.to_owned(), |line| format!("{path}:{line}"))
}

fn meant(near: &Option<String>) -> String {
    near.as_ref().map_or_else(String::new, |near| format!("; did you mean `{near}`?"))
}

fn others(names: &[String]) -> String {
    match names.is_empty() {
        true => String::new(),
        false => format!("; known: {}", names.join(", ")),
    }
}

/// The files of a project.
#[derive(Clone, Debug)]
pub struct Files {
    root: PathBuf,
    /// The top of the repository. What prompts are made of lies below it.
    top: PathBuf,
    /// The runners that a person has configured; `None` where workflows may name any.
    configured: Option<Vec<String>>,
}

/// A workflow file, read or not.
#[derive(Debug)]
pub struct WorkflowFile {
    pub name: String,
    pub path: PathBuf,
    pub workflow: Result<Workflow, FileErrors>,
}

impl Files {
    /// The files of the project that a directory belongs to: the nearest directory with workflows, up to the top of
    /// its repository.
    pub fn of(directory: &Path) -> Self {
        let has_any =
            |at: &&Path| DIRECTORIES.iter().any(|one| at.join(one).join("workflows").is_dir());
        let top = directory.ancestors().find(|at| at.join(".git").exists()).unwrap_or(directory);
        let within = directory.ancestors().take_while(|at| at.starts_with(top));
        let root = within.into_iter().find(has_any).unwrap_or(top);
        Self { root: root.to_owned(), top: top.to_owned(), configured: None }
    }

    /// The same files, whose workflows may name no other runners than their own, the built-in ones and these.
    pub fn with_runners(self, configured: Vec<String>) -> Self {
        Self { configured: Some(configured), ..self }
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Every workflow, by name.
    pub fn list(&self) -> Vec<WorkflowFile> {
        let mut found: BTreeMap<String, WorkflowFile> = BTreeMap::new();
        for path in self.paths() {
            let stem = stem(&path);
            let workflow = self.read(&path);
            let name = workflow.as_ref().map_or_else(|_| stem.clone(), |one| one.name.clone());
            let (name, workflow) = match found.get(&name) {
                None => (name, workflow),
                // A file of the project's own is in the place of one of the alias.
                Some(first) if first.path.parent() != path.parent() => continue,
                Some(first) => (file_name(&path), Err(same_name(&path, &name, &first.path).into())),
            };
            found.entry(name.clone()).or_insert(WorkflowFile { name, path, workflow });
        }
        found.into_values().collect()
    }

    /// Everything that a run of a workflow is made from. `name` is its name, or a path of a file.
    pub fn source(
        &self,
        name: &str,
        inputs: BTreeMap<String, String>,
    ) -> Result<(Workflow, WorkflowSource), FileErrors> {
        let path = self.path_of(name)?;
        let text = text_of(&path)?;
        let workflow = self.parse(&path, &text)?;
        let (mut spells, mut errors) = (BTreeMap::new(), Vec::new());
        errors.extend(self.namesake(&path, &workflow.name));
        for name in workflow.spells() {
            match self.spell(name, &path, &workflow) {
                Ok(text) => drop(spells.insert(name.to_owned(), text)),
                Err(error) if errors.contains(&error) => {}
                Err(error) => errors.push(error),
            }
        }
        let system_prompt = self.system_prompt().unwrap_or_else(|error| {
            errors.push(error);
            None
        });
        if !errors.is_empty() {
            return Err(FileErrors(errors));
        }
        let source = WorkflowSource {
            name: workflow.name.clone(),
            title: String::new(),
            branch: None,
            path: path.display().to_string(),
            text,
            spells,
            system_prompt,
            inputs,
            approved: false,
        };
        Ok((workflow, source))
    }

    /// A file beside this one whose workflow has the same name, as an error: nobody could name the second.
    fn namesake(&self, path: &Path, name: &str) -> Option<FileError> {
        let real = path.canonicalize().ok()?;
        let beside = self.paths().into_iter().filter_map(|path| path.canonicalize().ok());
        let mut before =
            beside.filter(|one| one.parent() == real.parent()).take_while(|one| *one != real);
        let first = before.find(|one| self.read(one).is_ok_and(|other| other.name == name))?;
        Some(same_name(path, name, &first))
    }

    /// The path of a workflow's file.
    pub fn path_of(&self, name: &str) -> Result<PathBuf, FileError> {
        let given = Path::new(name);
        // What else lies there is named when it is read.
        if is_yaml(given) && given.exists() {
            return Ok(given.to_owned());
        }
        let all = self.list();
        if let Some(found) = all.iter().find(|one| one.name == name || stem(&one.path) == name) {
            return Ok(found.path.clone());
        }
        Err(FileError::NoWorkflow {
            name: name.to_owned(),
            directory: shown_path(&self.root.join(DIRECTORIES[0]).join("workflows")),
            known: all.into_iter().map(|one| one.name).collect(),
        })
    }

    fn paths(&self) -> Vec<PathBuf> {
        let mut paths = Vec::new();
        for directory in DIRECTORIES {
            let directory = self.root.join(directory).join("workflows");
            let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
            let mut here: Vec<_> =
                entries.map(|entry| entry.path()).filter(|path| is_yaml(path)).collect();
            here.sort();
            paths.append(&mut here);
        }
        paths
    }

    fn read(&self, path: &Path) -> Result<Workflow, FileErrors> {
        self.parse(path, &text_of(path)?)
    }

    fn parse(&self, path: &Path, text: &str) -> Result<Workflow, FileErrors> {
        let stem = stem(path);
        let read = match &self.configured {
            Some(configured) => Workflow::check(text, &stem, configured),
            None => Workflow::read(text, &stem),
        };
        read.map_err(|errors| {
            let errors = errors.iter().map(|error| wrong(path, error.line, error.reason.clone()));
            FileErrors(errors.collect())
        })
    }

    /// The text of a spell that a workflow names.
    fn spell(&self, name: &str, file: &Path, workflow: &Workflow) -> Result<String, FileError> {
        let directories = DIRECTORIES.map(|at| self.root.join(at).join("spells"));
        let paths = directories.each_ref().map(|at| at.join(format!("{name}.md")));
        let Some(path) = paths.iter().find(|path| path.exists()) else {
            let spells: Vec<String> = directories.iter().flat_map(|at| spells_in(at)).collect();
            let spells: Vec<&str> = spells.iter().map(String::as_str).collect();
            let names = |step: &&Step| matches!(&step.work, Work::Agent(AgentWork { spell: Spell::Named(one), .. }) if one == name);
            return Err(FileError::NoSpell {
                workflow: shown_path(file),
                line: workflow.all_steps().into_iter().find(names).map(|step| step.line),
                name: name.to_owned(),
                path: shown_path(&paths[0]),
                near: nearest(name, &spells).map(str::to_owned),
            });
        };
        let text = self.prompt_of(path)?;
        template::check(&text).map_err(|error| wrong(path, None, error.to_string()))?;
        Ok(text)
    }

    /// The text of a file that prompts are made of.
    fn prompt_of(&self, path: &Path) -> Result<String, FileError> {
        let read = regular::read_text_in(&self.top, path, MAX_FILE_BYTES);
        read.map_err(|error| wrong(path, None, error.to_string()))
    }

    fn system_prompt(&self) -> Result<Option<String>, FileError> {
        let paths = DIRECTORIES.map(|at| self.root.join(at).join("system-prompt.md"));
        let Some(path) = paths.iter().find(|path| path.exists()) else { return Ok(None) };
        let text = self.prompt_of(path)?;
        spell::check_system_prompt(&text).map_err(|reason| wrong(path, None, reason))?;
        Ok(Some(text))
    }
}

fn wrong(path: &Path, line: Option<u64>, reason: impl Into<String>) -> FileError {
    FileError::Wrong { path: shown_path(path), line, reason: reason.into() }
}

fn same_name(path: &Path, name: &str, first: &Path) -> FileError {
    wrong(path, None, format!("`{name}` is already the name of `{}`", file_name(first)))
}

/// The names of the spells of a directory.
fn spells_in(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let spells = entries.map(|entry| entry.path());
    spells
        .filter(|path| path.extension().is_some_and(|end| end == "md"))
        .map(|path| stem(&path))
        .collect()
}

fn is_yaml(path: &Path) -> bool {
    path.extension().is_some_and(|end| end == "yaml" || end == "yml")
}

fn file_name(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

fn stem(path: &Path) -> String {
    path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default()
}

/// A file's text, if it is an ordinary file of ordinary size.
fn text_of(path: &Path) -> Result<String, FileError> {
    regular::read_text(path, MAX_FILE_BYTES).map_err(|error| wrong(path, None, error.to_string()))
}
