//! `parallel`: workers side by side, each in a worktree of its own.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use windlass_coordinator::Error;
use windlass_coordinator::parallel::{Attempts, SideBySide, TryView, WorkerList};
use windlass_coordinator::workflows::NewRun;
use windlass_core::shown::{shown, shown_line};
use windlass_core::text::one_line;
use windlass_plan::{Phase, Plan, Task as PlanTask};
use windlass_skills::regular;
use windlass_term::{Table, numbers};

use super::drive::drive;
use super::worktree_run::{WorktreeRunArgs, here};
use super::{AppContext, Execute, Start};
use crate::args::{PrintOptions, SandboxArgs};
use crate::failure::Failure;
use crate::show::{self, note, out, out_json};

/// The largest list of tasks that is read.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// Run workers side by side, each in its own worktree
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Parallels {
    /// What to do
    #[command(subcommand)]
    pub action: ParallelAction,
}

const EXAMPLES: &str = "\
Examples:
  windlass parallel run --workers 2 \"fix the lexer\" \"fix the parser\"
  windlass parallel run --workers 4 --file tasks.txt --runner claude
  windlass parallel run --plan plan.json --phase build
  windlass parallel status                 who works on what, who edits which
  windlass parallel try \"fix it\" --runner claude --runner codex --check make
  windlass parallel results 7K2M           diff, cost and checks of each
  windlass parallel pick 7K2M codex        take one; it is merged

A file of tasks has one task a line; a line that begins with `#` is left out.";

/// What to do with workers.
#[derive(Debug, Subcommand)]
pub enum ParallelAction {
    /// Work on a list of tasks, several at once
    Run(Box<RunWorkers>),
    /// Show the workers: their worktrees, their heartbeats, what they will edit
    Status {
        /// Print the result as JSON
        #[arg(long)]
        json: bool,
    },
    /// Give one prompt to several runners
    Try(Box<TryRunners>),
    /// Show what each runner made of the prompt, side by side
    Results {
        /// The run: its id, or any unique suffix of it
        run: String,
        /// Print the result as JSON
        #[arg(long)]
        json: bool,
    },
    /// Take the result of one runner; `none` takes none
    Pick {
        /// The run: its id, or any unique suffix of it
        run: String,
        /// The runner whose result is taken
        name: String,
        /// Continue the run here, so that the result is merged
        #[arg(long)]
        resume: bool,
        /// Where commands run
        #[command(flatten)]
        sandbox: SandboxArgs,
        /// How to print
        #[command(flatten)]
        printing: PrintOptions,
    },
}

/// How workers run.
#[derive(Debug, Args)]
pub struct RunWorkers {
    /// The tasks, a prompt each
    #[arg(value_name = "TASK")]
    pub tasks: Vec<String>,
    /// Tasks from a file, one a line; `-` for standard input
    #[arg(long, value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// Tasks of a plan's phase
    #[arg(long, value_name = "FILE", requires = "phase")]
    pub plan: Option<PathBuf>,
    /// The phase: its name or its number
    #[arg(long, value_name = "PHASE", requires = "plan")]
    pub phase: Option<String>,
    /// How many work at once
    #[arg(long, short, value_name = "N", default_value_t = 3)]
    pub workers: u32,
    /// Who works: windlass, claude, codex, or a name of `[runners]`
    #[arg(long, value_name = "RUNNER", default_value = "windlass")]
    pub runner: String,
    /// A command that must succeed on what is merged; may be repeated
    #[arg(long = "gate", value_name = "COMMAND")]
    pub gates: Vec<String>,
    /// Leave what they did in their worktrees
    #[arg(long)]
    pub no_merge: bool,
    /// How all of it runs
    #[command(flatten)]
    pub options: WorktreeRunArgs,
}

/// Several runners for one prompt.
#[derive(Debug, Args)]
pub struct TryRunners {
    /// What is to be done
    pub prompt: String,
    /// A runner; give at least two
    #[arg(long = "runner", value_name = "RUNNER", required = true)]
    pub runners: Vec<String>,
    /// A command that is run in each worktree afterwards; may be repeated
    #[arg(long = "check", value_name = "COMMAND")]
    pub checks: Vec<String>,
    /// How all of it runs
    #[command(flatten)]
    pub options: WorktreeRunArgs,
}

impl Execute for Parallels {
    fn execute(self, start: Start) -> Result<u8, Failure> {
        match self.action {
            ParallelAction::Run(args) => {
                let (app, run) = args.options.prepare(start)?;
                let crew = WorkerList {
                    tasks: tasks(&app, &args)?,
                    workers: args.workers,
                    runner: args.runner.clone(),
                    gates: args.gates.clone(),
                    merge: !args.no_merge,
                };
                follow(&app, SideBySide::Crew(crew), run, &args.options)
            }
            ParallelAction::Try(args) => {
                let tries = Attempts {
                    prompt: args.prompt.clone(),
                    runners: args.runners.clone(),
                    checks: args.checks.clone(),
                };
                let (app, run) = args.options.prepare(start)?;
                follow(&app, SideBySide::Tries(tries), run, &args.options)
            }
            ParallelAction::Status { json } => status(&start.app()?, json),
            ParallelAction::Results { run, json } => results(&start.app()?, &run, json),
            ParallelAction::Pick { run, name, resume, sandbox, printing } => {
                let app = start.sandbox(&sandbox).app()?;
                pick(&app, &run, &name, resume.then_some(&printing))
            }
        }
    }
}

/// The tasks of a run: from the command line, a file, a plan.
fn tasks(app: &AppContext, args: &RunWorkers) -> Result<Vec<String>, Failure> {
    let mut tasks = args.tasks.clone();
    if let Some(path) = &args.file {
        let text = read(path)?;
        let lines = text.lines().map(str::trim);
        let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
        tasks.extend(lines.map(str::to_owned));
    }
    if let (Some(plan), Some(phase)) = (&args.plan, &args.phase) {
        let file = app.coordinator.plans().read(&here(), Some(&plan.display().to_string()))?;
        tasks.extend(tasks_of_phase(&file.plan, phase)?);
    }
    match tasks.is_empty() {
        true => Err(Failure::usage(
            "there is no task".to_owned(),
            "give tasks as arguments, or `--file FILE`, or `--plan FILE --phase PHASE`",
        )),
        false => Ok(tasks),
    }
}

fn read(path: &Path) -> Result<String, Failure> {
    let mut text = String::new();
    let read = match path.to_str() {
        Some("-") => std::io::stdin().take(MAX_FILE_BYTES).read_to_string(&mut text),
        _ => {
            regular::open(path).and_then(|file| file.take(MAX_FILE_BYTES).read_to_string(&mut text))
        }
    };
    match read {
        Ok(_) => Ok(text),
        Err(error) => {
            let words = format!("`{}` cannot be read: {error}", path.display());
            Err(Failure::usage(words, "name a text file of at most 1 MiB"))
        }
    }
}

/// The prompts of the tasks of a phase, in order. Workers start at once and read a prompt, so a task that says more
/// than that is refused: nothing of a plan may be left out without a word.
fn tasks_of_phase(plan: &Plan, phase: &str) -> Result<Vec<String>, Failure> {
    let is_it = |(at, one): &(usize, &Phase)| {
        one.id == phase
            || one.title == phase
            || phase.parse::<usize>().is_ok_and(|number| number == at + 1)
    };
    let Some((_, found)) = plan.phases.iter().enumerate().find(is_it) else {
        let names: Vec<&str> = plan.phases.iter().map(|phase| phase.id.as_str()).collect();
        let words = format!("plan `{}` has no phase `{phase}`", plan.id);
        return Err(Failure::usage(words, format!("it has {}", names.join(", "))));
    };
    let demands: Vec<String> = found
        .tasks
        .iter()
        .filter_map(|task| {
            let keys = unsupported_settings(plan, found, task);
            (!keys.is_empty()).then(|| format!("task `{}` says {}", task.id, keys.join(", ")))
        })
        .collect();
    match demands.is_empty() {
        true => Ok(found.tasks.iter().map(|task| task.best_pattern_prompt.clone()).collect()),
        false => Err(Failure::usage(
            format!("workers follow nothing but prompts, and {}", demands.join("; ")),
            "`windlass plan run` follows all of a plan",
        )),
    }
}

/// What a task says that workers do not follow, by its keys.
fn unsupported_settings(plan: &Plan, phase: &Phase, task: &PlanTask) -> Vec<&'static str> {
    let completion = task.completion.is_some() || plan.completion.is_some();
    let all = [
        ("`dependsOn`", !task.depends_on.is_empty()),
        ("`approval` or a high `risk`", task.needs_approval()),
        ("`verification`", !task.verification.is_empty()),
        ("`completion`", completion),
        ("`steps`", !task.steps.is_empty()),
        ("`tools`", task.tools.is_some()),
        ("`skills`", task.skills.is_some() || plan.required_skills.is_some()),
        ("`requiredMcpTools`", plan.required_mcp_tools.is_some()),
        ("`assignedAgent`", plan.agent_of(phase, task).is_some()),
    ];
    all.into_iter().filter(|(_, is_said)| *is_said).map(|(key, _)| key).collect()
}

fn follow(
    app: &AppContext,
    what: SideBySide,
    run: NewRun,
    options: &WorktreeRunArgs,
) -> Result<u8, Failure> {
    app.runtime.block_on(async {
        let started = app.coordinator.parallel().start(what, run).await;
        let task = started.map_err(|error| match error {
            Error::Workflow(words) => {
                Failure::usage(words, "`windlass parallel --help` has examples")
            }
            other => Failure::from(other),
        })?;
        options.follow(app, task).await
    })
}

fn status(app: &AppContext, json: bool) -> Result<u8, Failure> {
    let workers = app.coordinator.parallel().workers()?;
    if json {
        out_json(&serde_json::to_string(&workers).unwrap_or_default());
        return Ok(0);
    }
    if workers.is_empty() {
        note("no worker works in a worktree now");
        return Ok(0);
    }
    let mut table =
        Table::new(&["TASK", "RUNNER", "STATUS", "DOES", "HEARTBEAT", "WORKTREE", "GOAL"], &[]);
    for worker in &workers {
        table.row(vec![
            worker.task.to_string(),
            shown_line(&worker.runner),
            worker.status.to_string(),
            worker.activity.clone().unwrap_or_default(),
            worker.heartbeat(),
            shown_line(&worker.worktree_path),
            shown_line(&worker.goal),
        ]);
    }
    show::print_table(&table);
    for worker in &workers {
        for claim in &worker.claims {
            out(&format!("{} will edit {}", worker.task, shown_line(claim)));
        }
    }
    Ok(0)
}

fn results(app: &AppContext, run: &str, json: bool) -> Result<u8, Failure> {
    let run = app.coordinator.workflows().find(run, &here())?;
    let tries = app.coordinator.parallel().results(run)?;
    if json {
        out_json(&serde_json::to_string(&tries).unwrap_or_default());
        return Ok(0);
    }
    let mut table =
        Table::new(&["RUNNER", "STATUS", "FILES", "COST", "TOKENS", "CHECKS", "SUMMARY"], &[2, 4]);
    for one in &tries {
        let checks: Vec<&str> = one.checks.iter().map(|check| check.status.as_str()).collect();
        table.row(vec![
            shown_line(&one.name),
            one.status.to_string(),
            one.changed_files.len().to_string(),
            numbers::known_dollars(one.cost_usd),
            (one.input_tokens + one.output_tokens).to_string(),
            checks.join(", "),
            shown_line(&one_line(summary(one), 60)),
        ]);
    }
    show::print_table(&table);
    let paint = app.style.results;
    for one in tries.iter().filter(|one| !one.diff.is_empty()) {
        out("");
        out(&paint.bold(&one.name));
        out(shown(&one.diff).trim_end());
    }
    // Workers are merged without a choice.
    if app.coordinator.inbox().open()?.iter().any(|asked| asked.row.task == run) {
        note(&format!("take one with `windlass parallel pick {run} NAME --resume`"));
    }
    Ok(0)
}

fn summary(one: &TryView) -> &str {
    one.error.as_deref().unwrap_or(&one.summary)
}

fn pick(
    app: &AppContext,
    run: &str,
    name: &str,
    resume: Option<&PrintOptions>,
) -> Result<u8, Failure> {
    let run = app.coordinator.workflows().find(run, &here())?;
    let open = app.coordinator.inbox().open()?;
    let Some(asked) = open.into_iter().find(|asked| asked.row.task == run) else {
        let words = format!("`{run}` does not ask which result is taken");
        return Err(Failure::usage(words, "`windlass workflow status` shows where it is"));
    };
    let options = &asked.row.question.options;
    if !options.iter().any(|option| option == name) {
        let words = format!("`{name}` is not one of its results");
        return Err(Failure::usage(words, format!("it has {}", options.join(", "))));
    }
    let question = asked.row.question.id;
    app.runtime.block_on(async {
        app.coordinator.inbox().answer(question, name, &app.environment.user()).await?;
        match resume {
            Some(printing) => drive(app, run, printing).await,
            None => {
                note(&format!("continue it with `windlass workflow resume {run}`"));
                Ok(0)
            }
        }
    })
}
