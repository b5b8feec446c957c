//! Listing, checking, rendering and running workflows, and what their runs did.
//!
//! Invariant: a run is a task. Answering, pausing, resuming and cancelling are those of every task.

mod drive;
mod prune;
mod standing;
mod view;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use windlass_core::axes::Axes;
use windlass_core::command::{ExecutionConfig, TaskCommand};
use windlass_core::event::{Driver, StepEnded, TaskCreated, WorkflowPart, WorkflowSource};
use windlass_core::id::{SessionId, TaskId};
use windlass_core::shown::shown_path;
use windlass_core::text::one_line;
use windlass_store::Creation;
use windlass_workflow::RunState;
use windlass_workflow::definition::{Base, Checkout, Maker, Workflow, WorktreeSpec};
use windlass_workflow::files::{FileErrors, Files};
use windlass_workflow::git::Git;
use windlass_workflow::next::{failure_question, more_rounds};
use windlass_workflow::state::QuestionProgress;
use windlass_workflow::worktree;

use crate::workplaces::{Workplaces, usable};
use crate::{Coordinator, Error};

pub use drive::worktrees_beside;
pub use prune::{Fate, OwnWork, Prunable};
pub use standing::Standing;
pub use view::{AttemptStatus, MergeView, RunRow, RunView, StepView, WorktreeView};
pub use windlass_workflow::Rendered;
pub use windlass_workflow::definition::{MAX_ROUNDS, schema};

/// How wide the title of a run is in lists.
const TITLE: usize = 200;

/// Workflows and their runs.
#[derive(Clone, Copy)]
pub struct Workflows<'a> {
    pub(crate) coordinator: &'a Coordinator,
}

/// A workflow file.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct WorkflowView {
    pub name: String,
    pub path: PathBuf,
    pub description: String,
    /// The names and types of its steps, the outer before the inner.
    pub steps: Vec<(String, &'static str)>,
    /// What a run must be given.
    pub required_inputs: Vec<String>,
    /// Whether a person has approved its commands; true for a workflow without commands.
    pub approved: bool,
    /// What is wrong with it.
    pub error: Option<String>,
}

impl WorkflowView {
    /// The first thing that is wrong with it, for lists: without the path of its file, which is long and known.
    pub fn first_error(&self) -> Option<String> {
        let mut lines = self.error.as_deref()?.lines();
        let first = lines.next().unwrap_or_default();
        let first = match first.strip_prefix(&format!("{}:", shown_path(&self.path))) {
            Some(rest) if rest.starts_with(' ') => rest.trim_start().to_owned(),
            Some(rest) => format!("line {rest}"),
            None => first.to_owned(),
        };
        Some(match lines.count() {
            0 => first,
            more => format!("{first} (and {more} more)"),
        })
    }
}

/// A run that is wanted.
#[derive(Clone, Debug)]
pub struct NewRun {
    /// The workflow's name, or a path of its file.
    pub workflow: String,
    /// What it is for; the first line is the title.
    pub title: String,
    pub inputs: BTreeMap<String, String>,
    /// Where it is started.
    pub directory: PathBuf,
    pub axes: Axes,
    pub execution_config: ExecutionConfig,
    pub driver: Driver,
    pub user_id: Option<String>,
    pub cost_budget: Option<f64>,
    /// The conversation that it belongs to; without, one of its own.
    pub session: Option<SessionId>,
}

impl Workflows<'_> {
    /// The files of the project that a directory belongs to, for the runners that are configured there.
    fn files(self, directory: &Path) -> Files {
        Files::of(directory).with_runners(self.coordinator.agents.runners(directory))
    }

    /// That every runner of a workflow can be made, before anything of it works.
    fn check_runners(self, directory: &Path, workflow: &Workflow) -> Result<(), Error> {
        for name in workflow.programs() {
            let command = workflow.runners.get(name).map(Vec::as_slice);
            let found = self.coordinator.agents.runner(directory, name, command);
            found.map_err(|details| Error::Runner(Box::new(details)))?;
        }
        Ok(())
    }

    /// Every workflow of the project that a directory belongs to.
    pub fn list(self, directory: &Path) -> Vec<WorkflowView> {
        let found = self.files(directory).list();
        found
            .into_iter()
            .map(|one| match one.workflow {
                Ok(workflow) => self.view(directory, &workflow, one.path),
                Err(error) => WorkflowView {
                    name: one.name,
                    path: one.path,
                    description: String::new(),
                    steps: Vec::new(),
                    required_inputs: Vec::new(),
                    approved: false,
                    error: Some(error.to_string()),
                },
            })
            .collect()
    }

    fn view(self, directory: &Path, workflow: &Workflow, path: PathBuf) -> WorkflowView {
        let steps = workflow.all_steps();
        let required = workflow.inputs.iter().filter(|(_, input)| input.default.is_none());
        let approved = workflow.commands().is_empty()
            || self.coordinator.agents.is_workflow_approved(directory, &path);
        WorkflowView {
            name: workflow.name.clone(),
            path,
            description: workflow.description.clone(),
            steps: steps
                .iter()
                .map(|step| (step.name.clone(), step.work.kind().as_str()))
                .collect(),
            required_inputs: required.map(|(name, _)| name.clone()).collect(),
            approved,
            error: None,
        }
    }

    /// Checks a workflow and everything that it names: its spells, its system prompt, its templates.
    pub fn check(self, directory: &Path, name: &str) -> Result<WorkflowView, Error> {
        let files = self.files(directory);
        let (workflow, source) = files.source(name, BTreeMap::new()).map_err(file_error)?;
        let failed: Vec<String> = windlass_workflow::render(&workflow, &source)
            .into_iter()
            .filter_map(|step| {
                Some(format!("{}: step `{}`: {}", source.path, step.step, step.error?))
            })
            .collect();
        if !failed.is_empty() {
            return Err(Error::Workflow(failed.join("\n")));
        }
        Ok(self.view(directory, &workflow, PathBuf::from(&source.path)))
    }

    /// What each step would be given, without running anything.
    pub fn render(
        self,
        directory: &Path,
        name: &str,
        title: &str,
        inputs: BTreeMap<String, String>,
    ) -> Result<Vec<Rendered>, Error> {
        let (workflow, mut source) =
            self.files(directory).source(name, inputs).map_err(file_error)?;
        check_inputs(&workflow, &source.inputs, InputCheck::Some)?;
        source.title = title.to_owned();
        Ok(windlass_workflow::render(&workflow, &source))
    }

    /// Files of a checkout that a run would not see in its worktree, because they are not committed.
    pub fn left_out(self, directory: &Path, name: &str) -> Vec<String> {
        let Ok((workflow, source)) = self.files(directory).source(name, BTreeMap::new()) else {
            return Vec::new();
        };
        let begins_here = match &workflow.place {
            Checkout::Worktree(WorktreeSpec { maker: Maker::Git(git), .. }) => {
                git.base == Base::Head
            }
            Checkout::Worktree(WorktreeSpec { maker: Maker::Command { .. }, .. })
            | Checkout::Here => false,
        };
        let look = |git: Git| match git.commanding_settings(false)? {
            // Git would run them to compare files.
            Some(settings) if !self.is_approved(directory, &settings.source(&source)) => {
                Ok(Vec::new())
            }
            Some(_) | None => worktree::changes(&git, git.top()),
        };
        // Where git does not answer, the run itself says why.
        let changes = Git::open(directory).and_then(look);
        changes.unwrap_or_default().into_iter().filter(|_| begins_here).collect()
    }

    fn is_approved(self, directory: &Path, source: &WorkflowSource) -> bool {
        self.coordinator.agents.is_source_approved(directory, source)
    }

    /// Makes a run. It is durable when this returns; whoever drives the task works on it.
    pub async fn start(self, mut wanted: NewRun) -> Result<TaskId, Error> {
        let directory = usable(&wanted.directory)?;
        let files = self.files(&directory);
        let given = std::mem::take(&mut wanted.inputs);
        let (workflow, mut source) = files.source(&wanted.workflow, given).map_err(file_error)?;
        check_inputs(&workflow, &source.inputs, InputCheck::All)?;
        self.check_runners(files.root(), &workflow)?;
        source.title = wanted.title.trim().to_owned();
        source.approved =
            self.coordinator.agents.is_workflow_approved(&directory, Path::new(&source.path));
        self.create(&files, &workflow, source, wanted).await
    }

    /// Makes a run of a workflow that no file has. Its commands are those that the person has just given.
    pub(crate) async fn start_made(
        self,
        mut source: WorkflowSource,
        wanted: NewRun,
    ) -> Result<TaskId, Error> {
        let workflow = Workflow::read(&source.text, &source.name)
            .map_err(|error| Error::Workflow(error.to_string()))?;
        source.approved = true;
        let files = self.files(&usable(&wanted.directory)?);
        for name in workflow.programs() {
            let checked = self.coordinator.agents.check_runner(files.root(), name).await;
            checked.map_err(|details| Error::Runner(Box::new(details)))?;
        }
        self.create(&files, &workflow, source, wanted).await
    }

    /// Gives a loop that has used up its rounds more of them, as an answer to its question.
    pub async fn add_rounds(self, run: TaskId, count: u32, by: &str) -> Result<(), Error> {
        let records = self.coordinator.journals().of(run)?;
        let state = RunState::fold(records.iter().map(|record| &record.event));
        let ended = state.steps().filter_map(|(_, step)| step.ended.as_ref());
        let is_open = |ended: &&StepEnded| {
            state.asked(failure_question(run, ended)) == QuestionProgress::Open
        };
        let Some(ended) = ended.filter(|ended| !ended.output["rounds"].is_null()).find(is_open)
        else {
            let words = format!("no loop of `{run}` waits for more rounds");
            return Err(Error::Workflow(words));
        };
        let question = failure_question(run, ended);
        self.coordinator.inbox().answer(question, &more_rounds(count), by).await.map(drop)
    }

    async fn create(
        self,
        files: &Files,
        workflow: &Workflow,
        mut source: WorkflowSource,
        wanted: NewRun,
    ) -> Result<TaskId, Error> {
        let now = self.coordinator.now();
        let directory = files.root().to_owned();
        source.branch = branch_of(&directory, &workflow.place);
        let site = self.coordinator.agents.site(&directory);
        if workflow.place == Checkout::Here {
            Workplaces::of(self.coordinator).check_alone(&directory, &site)?;
        }
        let session = wanted.session.unwrap_or_else(|| SessionId::new(now));
        let goal = match source.title.is_empty() {
            true => format!("workflow {}", workflow.name),
            false => format!("workflow {}: {}", workflow.name, one_line(&source.title, TITLE)),
        };
        let command = TaskCommand {
            execution_config: wanted.execution_config,
            ..TaskCommand::new(now, session, goal)
        };
        let place = directory.display().to_string();
        let created = TaskCreated {
            site,
            max_retries: self.coordinator.limits.retries,
            cost_budget: wanted.cost_budget,
            user_id: wanted.user_id,
            workflow: Some(Box::new(WorkflowPart::Run(source))),
            ..TaskCreated::new(command, wanted.axes, place, wanted.driver)
        };
        match wanted.driver {
            Driver::Service => Ok(self.coordinator.tasks().create_for_service(created).await?.task),
            Driver::Foreground => {
                let created: Creation = self.coordinator.store.tasks().create(now, created).await?;
                Ok(created.task())
            }
        }
    }
}

/// The branch that is checked out where a run is started. Where git does not answer, the run itself says why.
fn branch_of(directory: &Path, place: &Checkout) -> Option<String> {
    match place {
        Checkout::Worktree(WorktreeSpec { maker: Maker::Git(_), .. }) => {}
        Checkout::Worktree(WorktreeSpec { maker: Maker::Command { .. }, .. }) | Checkout::Here => {
            return None;
        }
    }
    let git = Git::open(directory).ok()?;
    let branch = git.branch_in(git.top()).ok().flatten()?;
    // One without a commit has nothing to begin with.
    git.commit(&format!("refs/heads/{branch}")).ok().flatten().map(|_| branch)
}

/// Whether all inputs must be there.
#[derive(Clone, Copy, PartialEq, Eq)]
enum InputCheck {
    Some,
    All,
}

fn check_inputs(
    workflow: &Workflow,
    given: &BTreeMap<String, String>,
    wanted: InputCheck,
) -> Result<(), Error> {
    let known: Vec<_> = workflow.inputs.keys().map(String::as_str).collect();
    if let Some(unknown) = given.keys().find(|name| !workflow.inputs.contains_key(*name)) {
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        let name = &workflow.name;
        let words = format!("workflow `{name}` has no input `{unknown}`; it has {known}");
        return Err(Error::Workflow(words));
    }
    let is_missing = |(name, input): &(&String, &windlass_workflow::definition::Input)| {
        input.default.is_none() && !given.contains_key(*name)
    };
    let missing = workflow.inputs.iter().find(is_missing).filter(|_| wanted == InputCheck::All);
    match missing {
        Some((name, _)) => {
            Err(Error::MissingInput { workflow: workflow.name.clone(), input: name.clone() })
        }
        None => Ok(()),
    }
}

fn file_error(error: FileErrors) -> Error {
    Error::Workflow(error.to_string())
}
