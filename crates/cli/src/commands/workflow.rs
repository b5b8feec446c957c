//! `workflow`: files of steps that run agents in worktrees.

mod prune;

use std::collections::BTreeMap;

use clap::{Args, Subcommand};
use windlass_coordinator::Error;
use windlass_coordinator::parallel::{TRIES, WORKERS};
use windlass_coordinator::views::NextAction;
use windlass_coordinator::workflows::{
    MAX_ROUNDS, NewRun, RunView, Standing, WorkflowView, schema,
};
use windlass_core::id::TaskId;
use windlass_core::injection::Control;
use windlass_core::shown::{shown, shown_line, shown_path};
use windlass_core::status::TaskStatus;
use windlass_core::text::one_line;
use windlass_term::{Table, numbers};

use super::drive::drive;
use super::worktree_run::{WorktreeRunArgs, here};
use super::{AppContext, Execute, Start};
use crate::args::{PrintOptions, SandboxArgs};
use crate::failure::Failure;
use crate::next_action;
use crate::show::{self, note, out, out_json};

/// Run agents in worktrees, from a file of steps
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Workflows {
    /// What to do
    #[command(subcommand)]
    pub action: WorkflowAction,
}

const EXAMPLES: &str = "\
Examples:
  windlass workflow list
  windlass workflow validate fix-issue
  windlass workflow render fix-issue \"The login is slow\" --input issue=42
  windlass workflow run fix-issue \"The login is slow\" --input issue=42
  windlass workflow status                 every run, the newest first
  windlass workflow status 7K2M --json     one run with its steps and outputs
  windlass workflow resume 7K2M            with the step that failed
  windlass workflow resume 7K2M --rounds 3  more rounds for its loop
  windlass workflow cancel 7K2M
  windlass workflow prune --dry-run        worktrees that ended runs have left

Files are in .windlass/workflows/*.yaml, their prompts in .windlass/spells/*.md.
Commands in them run only after `windlass trust`.";

/// What to do with workflows.
#[derive(Debug, Subcommand)]
pub enum WorkflowAction {
    /// List the workflows of this project
    List {
        /// Print the result as JSON
        #[arg(long)]
        json: bool,
    },
    /// Check a workflow, its spells and its templates; without a name, all of them
    Validate {
        /// The workflow, or a path of its file
        name: Option<String>,
        /// Print the result as JSON
        #[arg(long)]
        json: bool,
    },
    /// Show what each step would be given, without running anything
    Render {
        /// What is rendered
        #[command(flatten)]
        which: WorkflowInputs,
        /// Print the result as JSON
        #[arg(long)]
        json: bool,
    },
    /// Run a workflow
    Run(Box<RunWorkflow>),
    /// Show the runs, or one of them with its steps
    Status {
        /// The run: its id, any unique suffix of it, or the workflow's name for its newest run
        run: Option<String>,
        /// Print the result as JSON
        #[arg(long)]
        json: bool,
    },
    /// Resume a run where it was; a failed step is retried
    Resume {
        /// The run: its id, any unique suffix of it, or the workflow's name for its newest run
        run: String,
        /// More rounds for a loop that has used up its own
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_ROUNDS)), allow_hyphen_values = true)]
        rounds: Option<u32>,
        /// Where commands run
        #[command(flatten)]
        sandbox: SandboxArgs,
        /// How to print
        #[command(flatten)]
        printing: PrintOptions,
    },
    /// Stop a run for good; its worktrees are kept
    Cancel {
        /// The run: its id, any unique suffix of it, or the workflow's name for its newest run
        run: String,
        /// The reason, kept in the journal
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
        /// Print the result as JSON
        #[arg(long)]
        json: bool,
    },
    /// Remove worktrees that ended runs have left; unsaved work is kept
    Prune(prune::PruneWorktrees),
    /// Print the JSON schema of workflow files
    Schema,
}

/// A workflow and what it is given.
#[derive(Debug, Args)]
pub struct WorkflowInputs {
    /// The workflow, or a path of its file
    pub name: String,
    /// What it is for: `{{.bead.title}}` in templates
    #[arg(default_value = "")]
    pub title: String,
    /// A value of the workflow's inputs; may be repeated
    #[arg(long = "input", short, value_name = "NAME=VALUE")]
    pub inputs: Vec<String>,
}

/// How a workflow is run.
#[derive(Debug, Args)]
pub struct RunWorkflow {
    /// What is run
    #[command(flatten)]
    pub which: WorkflowInputs,
    /// How it runs
    #[command(flatten)]
    pub options: WorktreeRunArgs,
}

impl Execute for Workflows {
    fn execute(self, start: Start) -> Result<u8, Failure> {
        match self.action {
            WorkflowAction::List { json } => list(&start.app_for_work()?, json),
            WorkflowAction::Validate { name, json } => {
                validate(&start.app_for_work()?, name.as_deref(), json)
            }
            WorkflowAction::Render { which, json } => render(&start.app_for_work()?, &which, json),
            WorkflowAction::Run(args) => run(start, &args),
            WorkflowAction::Status { run, json } => status(&start.app()?, run.as_deref(), json),
            WorkflowAction::Resume { run, rounds, sandbox, printing } => {
                let app = start.sandbox(&sandbox).app()?;
                let workflows = app.coordinator.workflows();
                let task = workflows.find(&run, &here())?;
                app.runtime.block_on(async {
                    if let Some(count) = rounds {
                        workflows.add_rounds(task, count, &app.environment.user()).await?;
                    }
                    let status = app.coordinator.tasks().state(task)?.status;
                    if status.is_terminal() {
                        return Err(has_ended(&app, task, status));
                    }
                    let by = app.environment.user();
                    app.coordinator.control().resume(task, &by).await?;
                    drive(&app, task, &printing).await
                })
            }
            WorkflowAction::Cancel { run, reason, json } => {
                cancel(&start.app()?, &run, reason, json)
            }
            WorkflowAction::Prune(args) => prune::prune(&start.app()?, &args),
            WorkflowAction::Schema => {
                out(&serde_json::to_string_pretty(&schema()).unwrap_or_default());
                Ok(0)
            }
        }
    }
}

fn list(app: &AppContext, json: bool) -> Result<u8, Failure> {
    let found = app.coordinator.workflows().list(&here());
    if json {
        out_json(&serde_json::to_string(&found).unwrap_or_default());
        return Ok(0);
    }
    if found.is_empty() {
        note("there are no workflows; they are in `.windlass/workflows/*.yaml`");
        return Ok(0);
    }
    let mut table = Table::new(&["WORKFLOW", "STEPS", "COMMANDS", "DESCRIPTION"], &[1]);
    for one in &found {
        let (commands, about) = match one.first_error() {
            Some(error) => ("", format!("broken: {error}")),
            None if one.approved => ("approved", one.description.clone()),
            None => ("not approved", one.description.clone()),
        };
        table.row(vec![
            shown_line(&one.name),
            one.steps.len().to_string(),
            commands.to_owned(),
            shown_line(&one_line(&about, 100)),
        ]);
    }
    show::print_table(&table);
    Ok(0)
}

fn validate(app: &AppContext, name: Option<&str>, json: bool) -> Result<u8, Failure> {
    let workflows = app.coordinator.workflows();
    let names = match name {
        Some(name) => vec![name.to_owned()],
        None => workflows.list(&here()).iter().map(|one| one.path.display().to_string()).collect(),
    };
    let (mut checked, mut wrong): (Vec<WorkflowView>, Vec<String>) = Default::default();
    for name in names {
        match workflows.check(&here(), &name) {
            Ok(view) => checked.push(view),
            Err(error) => wrong.push(error.to_string()),
        }
    }
    if json && !wrong.is_empty() {
        out_json(&serde_json::json!({ "valid": checked, "errors": wrong }).to_string());
        return Ok(crate::failure::USAGE);
    }
    for one in checked.iter().filter(|_| !json) {
        let steps = numbers::plural(one.steps.len(), "step");
        out(&format!("{}: valid, {steps}", shown_path(&one.path)));
        if !one.approved {
            note("its commands are not approved; see `windlass trust`");
        }
    }
    if !wrong.is_empty() {
        let hint = "docs/workflows.md has every key; `windlass workflow schema` is for editors";
        return Err(Failure::usage(wrong.join("\n"), hint));
    }
    if json {
        out_json(&serde_json::to_string(&checked).unwrap_or_default());
    }
    Ok(0)
}

fn inputs(which: &WorkflowInputs) -> Result<BTreeMap<String, String>, Failure> {
    let mut found = BTreeMap::new();
    for given in &which.inputs {
        let Some((name, value)) = given.split_once('=') else {
            let hint = "write it as `--input NAME=VALUE`";
            return Err(Failure::usage(format!("`{given}` is not an input"), hint));
        };
        found.insert(name.trim().to_owned(), value.to_owned());
    }
    Ok(found)
}

fn render(app: &AppContext, which: &WorkflowInputs, json: bool) -> Result<u8, Failure> {
    let rendered =
        app.coordinator.workflows().render(&here(), &which.name, &which.title, inputs(which)?)?;
    let failed = rendered.iter().any(|step| step.error.is_some());
    let code = if failed { crate::failure::USAGE } else { 0 };
    if json {
        out_json(&serde_json::to_string(&rendered).unwrap_or_default());
        return Ok(code);
    }
    let paint = app.style.results;
    for step in &rendered {
        let within = step.within.as_ref().map(|outer| format!(", in {outer}")).unwrap_or_default();
        out(&paint.bold(&format!("{} ({}{within})", step.step, step.kind)));
        for setting in &step.settings {
            out(&format!("  {}: {}", paint.dim(setting.name), shown_line(&setting.value)));
        }
        for line in shown(&step.text).lines() {
            out(format!("  {} {line}", paint.dim("│")).trim_end());
        }
        if let Some(error) = &step.error {
            out(&paint.yellow(&format!("  {}", shown_line(error))));
        }
    }
    Ok(code)
}

fn run(start: Start, args: &RunWorkflow) -> Result<u8, Failure> {
    let (app, run) = args.options.prepare(start)?;
    let run = NewRun {
        workflow: args.which.name.clone(),
        title: args.which.title.clone(),
        inputs: inputs(&args.which)?,
        ..run
    };
    let left_out = app.coordinator.workflows().left_out(&here(), &args.which.name);
    app.runtime.block_on(async {
        let task = app.coordinator.workflows().start(run).await?;
        if !left_out.is_empty() && args.options.printing.shows_progress() {
            let files = numbers::plural(left_out.len(), "file");
            let some = shown_line(&one_line(&left_out.join(", "), 200));
            note(&format!("not in the worktree, because not committed: {files} ({some})"));
        }
        args.options.follow(&app, task).await
    })
}

/// A run that has ended takes no messages, unlike other tasks. What failed in it can be tried again.
pub(super) fn has_ended(app: &AppContext, run: TaskId, status: TaskStatus) -> Failure {
    let name = app.coordinator.workflows().status(run).ok().map(|view| view.workflow);
    let again = match name.as_deref() {
        Some(_) | None if status == TaskStatus::Failed => {
            format!("try what failed in it again with `windlass retry {run}`")
        }
        Some(WORKERS) => "start another one with `windlass parallel run`".to_owned(),
        Some(TRIES) => "start another one with `windlass parallel try`".to_owned(),
        Some(name) => format!("start another one with `windlass workflow run {name}`"),
        None => "start another one with `windlass workflow run`".to_owned(),
    };
    let hint =
        format!("{again}; `windlass workflow prune --dry-run` shows worktrees that were kept");
    Failure::usage(Error::Ended { task: run, status }, hint)
}

fn cancel(app: &AppContext, run: &str, reason: Option<String>, json: bool) -> Result<u8, Failure> {
    let run = app.coordinator.workflows().find(run, &here())?;
    let status = app.coordinator.tasks().state(run)?.status;
    if status.is_terminal() {
        return Err(has_ended(app, run, status));
    }
    let control = Control::Cancel { reason };
    let by = app.environment.user();
    let status = app.runtime.block_on(app.coordinator.control().steer(run, control, &by))?;
    match json {
        true => {
            out_json(&serde_json::json!({ "run": run, "status": status.to_string() }).to_string())
        }
        false => note(&format!("{run} {status}")),
    }
    Ok(0)
}

/// How many runs a list shows.
const RUNS: u32 = 50;

fn status(app: &AppContext, run: Option<&str>, json: bool) -> Result<u8, Failure> {
    let workflows = app.coordinator.workflows();
    let Some(run) = run else {
        let rows = workflows.runs(RUNS)?;
        if json {
            out_json(&serde_json::to_string(&rows).unwrap_or_default());
            return Ok(0);
        }
        if rows.is_empty() {
            note("no workflow has been run; `windlass workflow list` shows those of this project");
            return Ok(0);
        }
        let mut table = Table::new(&["RUN", "WORKFLOW", "STATUS", "STATE", "STEP"], &[]);
        for row in rows {
            let (status, stands) = (row.status.to_string(), row.standing.words().to_owned());
            let step = shown_line(&row.step.unwrap_or_default());
            table.row(vec![row.run.to_string(), shown_line(&row.workflow), status, stands, step]);
        }
        show::print_table(&table);
        return Ok(0);
    };
    let view = workflows.status(workflows.find(run, &here())?)?;
    match json {
        true => out_json(&serde_json::to_string(&view).unwrap_or_default()),
        false => print(app, &view)?,
    }
    Ok(0)
}

fn remark(standing: Standing) -> String {
    standing.remark().map(|remark| format!(", {remark}")).unwrap_or_default()
}

/// Names what builds have left and no commit has.
fn print_left_out(view: &RunView) {
    for step in &view.steps {
        let left_out = step.output["left_out"].as_array().into_iter().flatten();
        let names: Vec<&str> = left_out.filter_map(|name| name.as_str()).collect();
        if !names.is_empty() {
            let names = shown_line(&one_line(&names.join(", "), 200));
            out(&format!("{}: left by builds and not committed: {names}", shown_line(&step.step)));
        }
    }
}

fn print(app: &AppContext, view: &RunView) -> Result<(), Failure> {
    let paint = app.style.results;
    out(&paint.bold(&format!("{} {}", view.run, shown_line(&view.workflow))));
    let detail =
        view.detail.as_ref().map(|detail| format!(": {}", shown_line(&one_line(detail, 200))));
    let (status, detail) = (view.status, detail.unwrap_or_default());
    let does = view.activity.as_ref().map(|does| format!(", {does}")).unwrap_or_default();
    out(&format!("{status} ({}){}{does}{detail}", view.reason, remark(view.standing)));
    let mut table = Table::new(&["STEP", "TYPE", "STATUS", "ATTEMPT", "TASK", "ERROR"], &[3]);
    for step in &view.steps {
        table.row(vec![
            shown_line(&step.step),
            step.kind_word().to_owned(),
            view.attempt_word(step).to_owned(),
            step.attempt.to_string(),
            step.task.map(|task| task.to_string()).unwrap_or_default(),
            shown_line(&one_line(step.error.as_deref().unwrap_or_default(), 60)),
        ]);
    }
    match view.steps.is_empty() {
        true => out("no step has begun"),
        false => show::print_table(&table),
    }
    print_left_out(view);
    for tree in &view.worktrees {
        let why = tree.detail.as_ref().map(|why| format!(" ({})", shown_line(why)));
        let path = shown_line(&tree.path);
        let (state, why) = (&tree.state, why.unwrap_or_default());
        let remarks = tree.remarks().into_iter().map(|one| format!(", {}", shown_line(&one)));
        let remark = format!("{}{}", remark(tree.standing), remarks.collect::<String>());
        let branch = match tree.branch.is_empty() {
            true => String::new(),
            false => format!(" on {}", tree.branch),
        };
        out(&format!("worktree {state}{remark}: {path}{branch}{why}"));
    }
    for link in &view.pull_requests {
        out(&format!("pull request: {}", shown_line(link)));
    }
    for worker in &view.workers {
        let (step, activity) = (worker.step.clone(), worker.activity.clone());
        let step = shown_line(&step.unwrap_or_default());
        let activity = match view.standing == Standing::Stalled {
            true => "not at work".to_owned(),
            false => activity.unwrap_or_else(|| worker.status.to_string()),
        };
        out(&format!("worker {step}: {activity}, heartbeat {}", worker.heartbeat()));
        for claim in &worker.claims {
            out(&format!("worker {step}: will edit {}", shown_line(claim)));
        }
    }
    for merge in &view.merges {
        let files = match merge.files.is_empty() {
            true => String::new(),
            false => format!(": {}", shown_line(&merge.files.join(", "))),
        };
        let state = view.merge_word(merge);
        out(&format!("merge of {} into {}: {state}{files}", merge.branch, merge.target));
    }
    if view.standing == Standing::LeftOver {
        note("`windlass workflow prune --dry-run` says what can go, and why the rest stays");
    }
    print_next(app, view.run)
}

/// What the run asks, or else the command that continues it.
fn print_next(app: &AppContext, run: TaskId) -> Result<(), Failure> {
    let task = app.coordinator.tasks().view(run)?;
    let Some((first, more)) = task.questions.split_first() else {
        let command = match task.next_action() {
            NextAction::Resume => Some(format!("windlass workflow resume {run}")),
            other => next_action::command(&other, run),
        };
        if let Some(command) = command {
            note(&format!("next: {command}"));
        }
        return Ok(());
    };
    out(&format!("asks: {}", shown_line(&one_line(&first.question.question, 200))));
    note(&show::answer_with(&first.question).join("\n"));
    if !more.is_empty() {
        let count = numbers::plural(more.len(), "more question");
        note(&format!("{count} to answer: see `windlass inbox`"));
    }
    Ok(())
}
