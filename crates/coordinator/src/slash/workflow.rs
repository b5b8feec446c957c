//! `/workflow`: the workflows of the session's directory, their runs, and starting one.

use windlass_core::command::ExecutionConfig;
use windlass_core::id::TaskId;
use windlass_core::text::one_line;

use super::run::Invocation;
use super::{Block, Effect, Reply, SlashInput};
use crate::workflows::{NewRun, RunView, StepView};
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

    /// `/workflow` lists, `/workflow run NAME TITLE` starts, `/workflow RUN` shows one.
    pub(super) async fn carry_out(self) -> Result<Reply, Error> {
        let workflows = self.session.coordinator.workflows();
        match self
            .invocation
            .rest
            .split_once(char::is_whitespace)
            .unwrap_or((self.invocation.rest, ""))
        {
            ("", _) => self.list(),
            ("run", rest) => {
                let (name, title) =
                    rest.trim().split_once(char::is_whitespace).unwrap_or((rest.trim(), ""));
                self.start(name, title).await
            }
            (named, _) => {
                let run = workflows.find(named)?;
                match self.may_see_task(run)? {
                    true => Ok(self.invocation.reply(run_blocks(&workflows.status(run)?))),
                    false => Err(windlass_store::Error::UnknownTask(named.to_owned()).into()),
                }
            }
        }
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
                    let about = one.error.as_ref().unwrap_or(&one.description);
                    vec![one.name.clone(), one.steps.len().to_string(), one_line(about, WIDTH)]
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
            blocks.push(Block::table(&["RUN", "WORKFLOW", "STATUS", "STANDS", "STEP"], &[], rows));
        }
        Ok(self.invocation.reply(blocks))
    }

    async fn start(self, name: &str, title: &str) -> Result<Reply, Error> {
        if name.is_empty() {
            return Err(self.invocation.bad("the name of a workflow is missing"));
        }
        let wanted = NewRun {
            workflow: name.to_owned(),
            title: title.to_owned(),
            inputs: Default::default(),
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

fn run_blocks(view: &RunView) -> Vec<Block> {
    let mut fields = vec![
        ("run", view.run.to_string()),
        ("workflow", view.workflow.clone()),
        ("status", format!("{} ({})", view.status, view.reason)),
    ];
    fields.extend(view.detail.clone().map(|detail| ("why", detail)));
    fields.extend(view.standing.remark().map(|remark| ("stands", remark.to_owned())));
    fields.extend(
        view.worktrees.iter().map(|tree| ("worktree", format!("{} {}", tree.path, tree.state))),
    );
    let row = |step: &StepView| {
        let error = one_line(step.error.as_deref().unwrap_or_default(), WIDTH);
        vec![step.step.clone(), step.kind.clone(), step.status.clone(), error]
    };
    let rows = view.steps.iter().map(row).collect();
    vec![Block::fields(fields), Block::table(&["STEP", "TYPE", "STATUS", "ERROR"], &[], rows)]
}
