//! `/workflow`: the workflows of the session's directory, their runs, and starting one.

use std::collections::BTreeMap;

use windlass_core::command::ExecutionConfig;
use windlass_core::id::TaskId;
use windlass_core::injection::Control;
use windlass_core::text::one_line;

use super::run::Invocation;
use super::{Block, Effect, Reply, SlashInput};
use crate::workflows::{MAX_ROUNDS, NewRun, RunView, StepView};
use crate::{Error, Session};

/// How many runs a list shows.
const RUNS: u32 = 10;
/// How wide a text gets in a row.
const WIDTH: usize = 60;

/// `/workflow` as a person has called it.
#[derive(Clone, Copy)]
pub(super) struct WorkflowCommand<'a> {
    invocation: Invocation<'a>,
    session: Session<'a>,
    input: &'a SlashInput,
}

impl<'a> WorkflowCommand<'a> {
    pub(super) fn new(invocation: Invocation<'a>) -> Self {
        let Invocation { session, input, .. } = invocation;
        Self { invocation, session, input }
    }

    /// `/workflow` lists, `/workflow RUN` shows a run, and each other word does what it does on the command line.
    pub(super) async fn carry_out(self) -> Result<Reply, Error> {
        let rest = self.invocation.rest;
        let (verb, rest) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        match verb {
            "" | "list" => self.list(),
            "run" => self.start(self.read_request(rest)?).await,
            "validate" => self.validate(rest.trim()),
            "render" => self.render(self.read_request(rest)?),
            "resume" => self.resume(rest.trim()).await,
            "cancel" => {
                let (run, reason) = first_word(rest);
                let reason = (!reason.is_empty()).then(|| reason.to_owned());
                self.invocation.signal_task(self.run(run)?, Control::Cancel { reason }).await
            }
            "status" if rest.trim().is_empty() => self.list(),
            "status" => self.show(rest.trim()),
            named => self.show(named),
        }
    }

    fn show(self, named: &str) -> Result<Reply, Error> {
        let view = self.session.coordinator.workflows().status(self.run(named)?)?;
        Ok(self.invocation.reply(run_blocks(&view)))
    }

    /// A run that whoever typed it may see.
    fn run(self, named: &str) -> Result<TaskId, Error> {
        // A run is found by its id without one.
        let directory = self.invocation.own_directory().unwrap_or_default();
        let found = self.session.coordinator.workflows().find(named, &directory);
        let run = match &found {
            Ok(run) | Err(Error::RunElsewhere { run, .. }) => *run,
            Err(_) => return found,
        };
        match self.may_see_task(run)? {
            true => found,
            false => Err(windlass_store::Error::UnknownTask(named.to_owned()).into()),
        }
    }

    /// The workflow, what it is for, and its inputs: `NAME TITLE --input KEY=VALUE`.
    fn read_request(self, rest: &str) -> Result<RunRequest, Error> {
        let mut wanted = RunRequest::default();
        let (name, rest) = first_word(rest);
        if name.is_empty() {
            return Err(self.invocation.usage_error("the name of a workflow is missing"));
        }
        wanted.name = name.to_owned();
        let (mut title, mut words) = (Vec::new(), rest.split_whitespace());
        while let Some(word) = words.next() {
            if !matches!(word, "--input" | "-i") {
                title.push(word);
                continue;
            }
            let given = words.next().and_then(|given| given.split_once('='));
            let (key, value) = given
                .ok_or_else(|| self.invocation.usage_error("an input is `--input NAME=VALUE`"))?;
            wanted.inputs.insert(key.to_owned(), value.to_owned());
        }
        wanted.title = title.join(" ");
        Ok(wanted)
    }

    fn validate(self, name: &str) -> Result<Reply, Error> {
        let workflows = self.session.coordinator.workflows();
        let directory = self.invocation.own_directory()?;
        let names = match name {
            "" => {
                let path = |one: &crate::workflows::WorkflowView| one.path.display().to_string();
                workflows.list(&directory).iter().map(path).collect()
            }
            name => vec![name.to_owned()],
        };
        let mut rows = Vec::new();
        for name in names {
            rows.push(match workflows.check(&directory, &name) {
                Ok(view) => vec![view.name, "valid".to_owned()],
                Err(error) => vec![name, error.to_string()],
            });
        }
        Ok(self.invocation.reply(vec![Block::table(&["WORKFLOW", "CHECK"], &[], rows)]))
    }

    fn render(self, wanted: RunRequest) -> Result<Reply, Error> {
        let directory = self.invocation.own_directory()?;
        let RunRequest { name, title, inputs } = wanted;
        let steps =
            self.session.coordinator.workflows().render(&directory, &name, &title, inputs)?;
        let mut blocks = Vec::new();
        for step in steps {
            blocks.push(Block::heading(format!("{} ({})", step.step, step.kind)));
            let settings = step.settings.iter();
            let settings = settings.map(|setting| format!("{}: {}", setting.name, setting.value));
            let lines = settings.chain([step.text]).chain(step.error);
            let text = lines.filter(|line| !line.is_empty()).collect::<Vec<_>>().join("\n");
            blocks.push(Block::Words { text });
        }
        Ok(self.invocation.reply(blocks))
    }

    /// `RUN`, or `RUN ROUNDS` with more rounds for its loop.
    async fn resume(self, rest: &str) -> Result<Reply, Error> {
        let (run, rounds) = first_word(rest);
        let run = self.run(run)?;
        if !rounds.is_empty() {
            let count = rounds.parse().ok().filter(|count| (1..=MAX_ROUNDS).contains(count));
            let count = count.ok_or_else(|| {
                self.invocation.usage_error(format!("rounds are from 1 to {MAX_ROUNDS}"))
            })?;
            self.session.coordinator.workflows().add_rounds(run, count, &self.input.by).await?;
        }
        self.invocation.signal_task(run, Control::Resume).await
    }

    /// Whether whoever typed it may see a task.
    fn may_see_task(self, task: TaskId) -> Result<bool, Error> {
        let origin = self.session.coordinator.tasks().origin(task)?;
        Ok(origin.is_some_and(|origin| self.input.may_see(origin.user.as_deref())))
    }

    fn list(self) -> Result<Reply, Error> {
        let workflows = self.session.coordinator.workflows();
        let found = workflows.list(&self.invocation.own_directory()?);
        let mut blocks = vec![match found.is_empty() {
            true => {
                Block::Words { text: "There are no workflows in .windlass/workflows.".to_owned() }
            }
            false => {
                let row = |one: &crate::workflows::WorkflowView| {
                    let error = one.first_error().map(|error| format!("broken: {error}"));
                    let about = error.unwrap_or_else(|| one.description.clone());
                    vec![one.name.clone(), one.steps.len().to_string(), one_line(&about, WIDTH)]
                };
                Block::table(&["WORKFLOW", "STEPS", "ABOUT"], &[1], found.iter().map(row).collect())
            }
        }];
        let mut runs = Vec::new();
        for run in workflows.runs(RUNS)? {
            if self.may_see_task(run.run)? {
                runs.push(run);
            }
        }
        if !runs.is_empty() {
            blocks.push(Block::heading("Runs"));
            let row = |run: crate::workflows::RunRow| {
                vec![
                    run.run.to_string(),
                    run.workflow,
                    run.status.to_string(),
                    run.standing.words().to_owned(),
                    run.step.unwrap_or_default(),
                ]
            };
            let rows = runs.into_iter().map(row).collect();
            blocks.push(Block::table(&["RUN", "WORKFLOW", "STATUS", "STATE", "STEP"], &[], rows));
        }
        Ok(self.invocation.reply(blocks))
    }

    async fn start(self, wanted: RunRequest) -> Result<Reply, Error> {
        let wanted = NewRun {
            workflow: wanted.name,
            title: wanted.title,
            inputs: wanted.inputs,
            directory: self.invocation.own_directory()?,
            axes: self.session.state()?.axes,
            execution_config: ExecutionConfig::default(),
            driver: self.input.driver,
            user_id: Some(self.input.by.clone()),
            cost_budget: None,
            session: None,
        };
        let task = self.session.coordinator.workflows().start(wanted).await?;
        Ok(self.invocation.say(format!("{task} begins")).with(Effect::Work { task }))
    }
}

/// A workflow that is run or rendered.
#[derive(Default)]
struct RunRequest {
    name: String,
    title: String,
    inputs: BTreeMap<String, String>,
}

fn first_word(text: &str) -> (&str, &str) {
    let text = text.trim();
    let (first, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    (first, rest.trim())
}

fn run_blocks(view: &RunView) -> Vec<Block> {
    let mut fields = vec![
        ("run", view.run.to_string()),
        ("workflow", view.workflow.clone()),
        ("status", format!("{} ({})", view.status, view.reason)),
    ];
    fields.extend(view.detail.clone().map(|detail| ("why", detail)));
    fields.extend(view.standing.remark().map(|remark| ("state", remark.to_owned())));
    fields.extend(
        view.worktrees.iter().map(|tree| ("worktree", format!("{} {}", tree.path, tree.state))),
    );
    let row = |step: &StepView| {
        let error = one_line(step.error.as_deref().unwrap_or_default(), WIDTH);
        let status = view.attempt_word(step).to_owned();
        vec![step.step.clone(), step.kind_word().to_owned(), status, error]
    };
    let rows = view.steps.iter().map(row).collect();
    vec![Block::fields(fields), Block::table(&["STEP", "TYPE", "STATUS", "ERROR"], &[], rows)]
}
