//! Finding and reading the files of a plan: the manifest, the files of its tasks, the definitions of its agents.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use windlass_plan::{
    AgentDefinition, Document, Plan, Problem, Problems, check, parse_agent, parse_task_file,
    read_plan,
};

use super::Plans;
use crate::Error;

/// The largest file of a plan that is read.
const MAX_BYTES: u64 = 1 << 20;

/// The name of a manifest.
const MANIFEST: &str = "plan.json";

/// Where a project keeps its plans, and the definitions of agents.
const PLANS: &str = ".windlass/plans";
const AGENTS: &str = ".windlass/agents";

/// A plan as its files say it, checked.
#[derive(Clone, Debug)]
pub struct PlanFile {
    pub path: PathBuf,
    /// The directory that the plan belongs to.
    pub project: PathBuf,
    pub plan: Plan,
    /// The manifest with the place of everything in it.
    pub document: Document,
    pub text: String,
    /// The agents of the roster that are defined.
    pub agents: BTreeMap<String, AgentDefinition>,
    /// The files of those that have one.
    pub agent_files: BTreeMap<String, (PathBuf, String)>,
}

impl Plans<'_> {
    /// Reads a plan: the one that is named by a path or by its name, else the active one, else the one there is.
    pub fn read(self, directory: &Path, named: Option<&str>) -> Result<PlanFile, Error> {
        // What is kept of a path must be true from anywhere.
        let directory = directory.canonicalize().unwrap_or_else(|_| directory.to_owned());
        let project = self.project(&directory);
        let path = self.find(&directory, &project, named)?;
        read_file(&project, path)
    }

    fn find(self, directory: &Path, project: &Path, named: Option<&str>) -> Result<PathBuf, Error> {
        let unknown =
            || Error::NoPlan { directory: project.to_owned(), named: named.map(str::to_owned) };
        if let Some(named) = named {
            let plans = project.join(PLANS);
            let mut places = vec![directory.join(named), directory.join(named).join(MANIFEST)];
            places.extend([plans.join(named).join(MANIFEST), plans.join(format!("{named}.json"))]);
            return places.into_iter().find(|path| path.is_file()).ok_or_else(unknown);
        }
        let active = self.active(directory)?.map(|row| PathBuf::from(row.path));
        let usual = [
            active.unwrap_or_default(),
            directory.join(MANIFEST),
            project.join(MANIFEST),
            project.join(".windlass").join(MANIFEST),
        ];
        if let Some(path) = usual.into_iter().find(|path| path.is_file()) {
            return Ok(path);
        }
        let mut all = plan_files(project);
        match (all.pop(), all.is_empty()) {
            (Some(only), true) => Ok(only),
            _ => Err(unknown()),
        }
    }

    /// The manifests that a project keeps, by name.
    pub fn files(self, directory: &Path) -> Vec<PathBuf> {
        let project = self.project(directory);
        let usual = [project.join(MANIFEST), project.join(".windlass").join(MANIFEST)];
        let usual = usual.into_iter().filter(|path| path.is_file());
        usual.chain(plan_files(&project)).collect()
    }

    /// Where a new plan is written: the project, and the path in it.
    pub fn new_place(self, directory: &Path, name: &str) -> (PathBuf, PathBuf) {
        (self.project(directory), Path::new(PLANS).join(name).join(MANIFEST))
    }
}

/// The plans of a project's own directory of plans.
fn plan_files(project: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(project.join(PLANS)).into_iter().flatten().flatten();
    let mut found: Vec<_> = entries
        .filter_map(|entry| {
            let path = entry.path();
            let inner = path.join(MANIFEST);
            let is_json = path.extension().is_some_and(|end| end == "json");
            match (inner.is_file(), is_json) {
                (true, _) => Some(inner),
                (false, true) => Some(path),
                (false, false) => None,
            }
        })
        .collect();
    found.sort();
    found
}

fn read_file(project: &Path, path: PathBuf) -> Result<PlanFile, Error> {
    let text = read_text(&path)?;
    let shown = display_path(project, &path);
    let document = Document::parse(&shown, &text)?;
    let mut plan = read_plan(&document, &name_of(&path))?;
    let directory = path.parent().unwrap_or(project);
    let mut found = Vec::new();
    for (number, phase) in plan.phases.iter_mut().enumerate() {
        for (index, task) in phase.tasks.iter_mut().enumerate() {
            let Some(name) = task.file.clone() else { continue };
            let place = format!("phases[{number}].tasks[{index}].file");
            match read_task(project, &directory.join(&name), &task.id) {
                Ok(read) => *task = std::mem::take(task).filled_by(read),
                Err(TaskError::Unreadable(problem)) => {
                    found.push(document.problem(&place, problem))
                }
                Err(TaskError::Wrong(problems)) => found.extend(problems.0),
            }
        }
    }
    let (agents, agent_files, wrong) = read_agents(project, &plan);
    found.extend(wrong);
    if !found.is_empty() {
        return Err(Problems(found).into());
    }
    check(&plan, &document)?;
    Ok(PlanFile { path, project: project.to_owned(), plan, document, text, agents, agent_files })
}

const NOT_OF_THE_PROJECT: &str = "must be a file of the project";

/// Whether a file that prompts are made of lies elsewhere: whoever wrote the plan must not choose which of a person's
/// other files a model sees.
fn is_outside(project: &Path, path: &Path) -> bool {
    path.exists() && !path.canonicalize().is_ok_and(|whole| whole.starts_with(project))
}

enum TaskError {
    Unreadable(String),
    Wrong(Problems),
}

fn read_task(project: &Path, path: &Path, id: &str) -> Result<windlass_plan::Task, TaskError> {
    if is_outside(project, path) {
        return Err(TaskError::Unreadable(NOT_OF_THE_PROJECT.to_owned()));
    }
    let text = read_text(path).map_err(|error| TaskError::Unreadable(error.to_string()))?;
    parse_task_file(&display_path(project, path), id, &text).map_err(TaskError::Wrong)
}

type Agents =
    (BTreeMap<String, AgentDefinition>, BTreeMap<String, (PathBuf, String)>, Vec<Problem>);

/// The agents of the roster: by their own files, else as the manifest defines them.
fn read_agents(project: &Path, plan: &Plan) -> Agents {
    let (mut agents, mut files, mut wrong) = (BTreeMap::new(), BTreeMap::new(), Vec::new());
    for agent in &plan.assigned_agents {
        let path = project.join(AGENTS).join(format!("{}.md", agent.name));
        let own = AgentDefinition::from(agent);
        let is_bare =
            own == AgentDefinition { name: agent.name.clone(), ..AgentDefinition::default() };
        if is_outside(project, &path) {
            let (file, message) = (display_path(project, &path), NOT_OF_THE_PROJECT.to_owned());
            wrong.push(Problem { file, line: 1, path: String::new(), message });
            continue;
        }
        let text = match read_text(&path) {
            Ok(text) if is_bare => text,
            Ok(_) | Err(_) => {
                agents.insert(agent.name.clone(), own);
                continue;
            }
        };
        match parse_agent(&display_path(project, &path), &agent.name, &text) {
            Ok(definition) => {
                agents.insert(agent.name.clone(), definition);
                files.insert(agent.name.clone(), (path, text));
            }
            Err(problems) => wrong.extend(problems.0),
        }
    }
    (agents, files, wrong)
}

/// A plan's name where it says none: that of its directory or its file.
fn name_of(path: &Path) -> String {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let directory = path.parent();
    let is_own = directory.and_then(Path::parent).is_some_and(|above| above.ends_with(PLANS));
    match (stem.as_str(), directory.and_then(Path::file_name)) {
        ("plan", Some(name)) if is_own => name.to_string_lossy().into_owned(),
        _ => stem,
    }
}

/// A path as messages name it.
fn display_path(project: &Path, path: &Path) -> String {
    path.strip_prefix(project).unwrap_or(path).display().to_string()
}

fn read_text(path: &Path) -> Result<String, Error> {
    let cannot = |error: io::Error| Error::PlanFile {
        path: path.to_owned(),
        problem: format!("cannot be read: {error}"),
    };
    let found = fs::metadata(path).map_err(cannot)?;
    if !found.is_file() || found.len() > MAX_BYTES {
        let problem = format!("is not a file of at most {MAX_BYTES} bytes");
        return Err(Error::PlanFile { path: path.to_owned(), problem });
    }
    fs::read_to_string(path).map_err(cannot)
}
