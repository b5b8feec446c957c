//! `skills eval`: does a skill help? Each case with and without it, decided by its grader (MS-168…171).
//!
//! Invariants:
//! - A trial has a directory, a data directory and a workspace of its own; its agent sees a copy of
//!   `work/` and, with the skill, the skill without its evals. `hidden/` is for the grader alone.
//! - A grader runs in the sandbox, without our environment; a project's only when a person has approved it.
//! - What a passing trial leaves is removed; what a failing one leaves is kept and named.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use serde_json::json;
use tokio_util::sync::CancellationToken;
use windlass_coordinator::{Share, TaskDraft};
use windlass_core::axes::Axes;
use windlass_core::command::{ExecutionConfig, Outage, ResultStatus, TaskResult};
use windlass_core::event::Driver;
use windlass_core::id::TaskId;
use windlass_core::shown::{shown, shown_line};
use windlass_sandbox::{Command, Exit, Sandbox};
use windlass_skills::eval::{Case, cases};
use windlass_skills::{Scope, Skill, SkillMirror, Skills, Viewer, invoke};
use windlass_term::Table;

use super::skills::unknown;
use crate::Hooks;
use crate::args::{SandboxArgs, values};
use crate::config::{Config, Trust};
use crate::failure::Failure;
use crate::show::{self, note, out_json};
use crate::wiring::place::TaskDirectories;
use crate::wiring::trust::ApprovableFile;
use crate::wiring::{self, Environment, mcp, sandbox, skills};

/// Arguments of `skills eval`.
#[derive(Debug, Args)]
pub struct Eval {
    /// The skill's name, as `windlass skills list` shows it
    pub name: String,
    /// Run only the case with this name
    #[arg(long, value_name = "CASE")]
    pub case: Option<String>,
    /// How often each case is tried
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100), allow_hyphen_values = true)]
    pub trials: u32,
    /// Model to use: PROVIDER/NAME or script:FILE
    #[arg(long, value_name = "MODEL")]
    pub model: Option<String>,
    /// Limit of active time of each trial: seconds, or such as `30m`
    #[arg(long, value_name = "TIME", default_value = "600", value_parser = values::seconds, allow_hyphen_values = true)]
    pub timeout: u64,
    /// Run the cases only with the skill, not without it
    #[arg(long)]
    pub only_with: bool,
    /// Print a JSON line for each trial
    #[arg(long)]
    pub json: bool,
    /// Where effects happen
    #[command(flatten)]
    pub sandbox: SandboxArgs,
}

/// How long a grader may take; it is deterministic and looks at files.
const GRADER_TIME: Duration = Duration::from_secs(120);

/// Limit of active time of a trial of a proposed skill.
const PROOF_SECONDS: u64 = 600;

/// How much of a grader's words is kept.
const MAX_WORDS_CHARS: usize = 200;

/// How much of what a grader prints is looked at for them, from its end.
const MAX_SAID_BYTES: usize = 16 << 10;

/// Whether a trial's agent has the skill.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Arm {
    With,
    Without,
}

/// What a trial came to.
struct TrialResult {
    passed: bool,
    words: String,
    rounds: u32,
    tokens: u64,
}

pub(super) fn eval(
    environment: &Environment,
    workspace: &Path,
    args: &Eval,
    hooks: Hooks,
) -> Result<u8, Failure> {
    let found = skills::now(environment, workspace);
    let skill = found.get(&args.name).ok_or_else(|| unknown(&found, &args.name))?;
    let cases = choose_cases(skill, args)?;
    refuse_unapproved(environment, workspace, skill, &cases)?;
    let config = environment.config(workspace)?;
    let model = args.model.clone();
    let config = config.for_task(&ExecutionConfig { model, ..ExecutionConfig::default() })?;
    let model = config.models.for_mode(Axes::headless().model_mode)?.model.to_string();
    let examiner =
        Examiner { environment, skill, found: &found, args, model, hooks, config: &config };
    let arms: &[Arm] = if args.only_with { &[Arm::With] } else { &[Arm::With, Arm::Without] };
    let runtime = wiring::runtime(wiring::Load::One)?;
    let mut table = Table::new(&["CASE", "WITH", "WITHOUT"], &[]);
    let (mut all_pass, mut kept) = (true, Vec::new());
    for case in &cases {
        let mut cells = vec![shown_line(&case.name)];
        for &arm in arms {
            let mut passes = 0;
            for number in 1..=args.trials {
                let tried = runtime.block_on(examiner.trial(case, arm, number))?;
                passes += u32::from(tried.0.passed);
                if args.json {
                    out_json(&line(case, arm, number, &tried.0, tried.1.as_deref()));
                }
                if let Some(directory) = tried.1 {
                    kept.push((directory, tried.0.words));
                }
            }
            all_pass &= arm == Arm::Without || passes == args.trials;
            cells.push(format!("{passes}/{}", args.trials));
        }
        table.row(cells);
    }
    if !args.json {
        show::print_table(&table);
    }
    for (directory, words) in kept {
        let words =
            if words.trim().is_empty() { "the grader said nothing" } else { words.as_str() };
        note(&shown(&format!("kept {}: {words}", directory.display())));
    }
    Ok(u8::from(!all_pass))
}

/// Tries a skill that is not in use yet, from the directory that holds its folder. It helps where a case fails without it
/// and every case passes with it; else the error says why not.
pub(super) fn prove(
    environment: &Environment,
    project: &Path,
    directory: &Path,
    name: &str,
    hooks: &Hooks,
) -> Result<(), Failure> {
    let places = vec![(directory.to_owned(), Scope::User)];
    let environment = Environment { skill_directories: Some(places), ..environment.clone() };
    let found = skills::now(&environment, project);
    let skill = found.get(name).ok_or_else(|| unknown(&found, name))?;
    let args = Eval {
        name: name.to_owned(),
        case: None,
        trials: 1,
        model: None,
        timeout: PROOF_SECONDS,
        only_with: false,
        json: false,
        sandbox: SandboxArgs { sandbox: None },
    };
    let cases = choose_cases(skill, &args)?;
    let config = environment.config(project)?;
    let model = config.models.for_mode(Axes::headless().model_mode)?.model.to_string();
    let examiner = Examiner {
        environment: &environment,
        skill,
        found: &found,
        args: &args,
        model,
        hooks: hooks.clone(),
        config: &config,
    };
    let runtime = wiring::runtime(wiring::Load::One)?;
    let mut helps = false;
    for case in &cases {
        let tried = |arm| -> Result<TrialResult, Failure> {
            let (tried, kept) = runtime.block_on(examiner.trial(case, arm, 1))?;
            kept.map(fs::remove_dir_all);
            Ok(tried)
        };
        let without = tried(Arm::Without)?;
        let with = tried(Arm::With)?;
        if !with.passed {
            let why = format!("`{}` fails with the skill: {}", case.name, shown_line(&with.words));
            return Err(unproven_failure(&why));
        }
        helps |= !without.passed;
    }
    match helps {
        true => Ok(()),
        false => Err(unproven_failure("every case passes without the skill too")),
    }
}

fn unproven_failure(why: &str) -> Failure {
    Failure::usage(
        format!("nothing was written: the skill does not help. {why}"),
        "write it yourself with `windlass skills new NAME`, or decline the proposal",
    )
}

fn choose_cases(skill: &Skill, args: &Eval) -> Result<Vec<Case>, Failure> {
    let folder = skill.folder().ok_or_else(|| {
        let message = format!("`{}` is a lone file and has no evals", skill.meta.name);
        Failure::usage(message, "make it a folder with a `SKILL.md` and `evals/`")
    })?;
    let (mut found, problems) = cases(folder, skill.scope);
    problems.iter().for_each(|problem| note(&shown(&problem.to_string())));
    if let Some(wanted) = &args.case {
        found.retain(|case| case.name == *wanted);
    }
    if found.is_empty() {
        let message = format!("`{}` has no eval case to run", skill.meta.name);
        let hint = format!(
            "write one: {}/evals/case-1/ with task.md, a grader, and perhaps work/ and hidden/",
            folder.display()
        );
        return Err(Failure::usage(message, hint));
    }
    Ok(found)
}

fn line(case: &Case, arm: Arm, number: u32, tried: &TrialResult, kept: Option<&Path>) -> String {
    json!({
        "case": case.name, "with_skill": arm == Arm::With, "trial": number,
        "passed": tried.passed, "words": tried.words, "rounds": tried.rounds,
        "tokens": tried.tokens, "kept": kept,
    })
    .to_string()
}

struct Examiner<'a> {
    environment: &'a Environment,
    skill: &'a Skill,
    found: &'a Skills,
    args: &'a Eval,
    model: String,
    hooks: Hooks,
    config: &'a Config,
}

impl Examiner<'_> {
    /// One trial: what it came to, and where it is kept when it failed.
    async fn trial(
        &self,
        case: &Case,
        arm: Arm,
        number: u32,
    ) -> Result<(TrialResult, Option<PathBuf>), Failure> {
        let directory = self.directory(case, arm, number)?;
        let tried = self.run_trial(case, arm, &directory).await?;
        if tried.passed {
            let _ = fs::remove_dir_all(&directory);
            return Ok((tried, None));
        }
        Ok((tried, Some(directory)))
    }

    fn directory(&self, case: &Case, arm: Arm, number: u32) -> Result<PathBuf, Failure> {
        let word = if arm == Arm::With { "with" } else { "without" };
        let stamp = jiff::Timestamp::now().as_millisecond();
        let name = format!("{stamp}-{}-{word}-{number}", case.name);
        let all = self.environment.data.join("evals").join(&self.skill.meta.name);
        let directory = all.join(name);
        fs::create_dir_all(&directory)
            .with_context(|| format!("`{}` cannot be made", directory.display()))?;
        Ok(directory.canonicalize().unwrap_or(directory))
    }

    async fn run_trial(
        &self,
        case: &Case,
        arm: Arm,
        directory: &Path,
    ) -> Result<TrialResult, Failure> {
        let work = directory.join("work");
        case.stage(&work).with_context(|| format!("`{}` cannot be copied", case.name))?;
        let result = self.run(case, arm, directory, &work).await?;
        let trace = directory.join("data/traces").join(result.task_id.to_string());
        let trace = trace.join(format!("{}.jsonl", result.task_id));
        let _ = fs::copy(trace, directory.join("trace.jsonl"));
        let text = serde_json::to_vec_pretty(&result).unwrap_or_default();
        fs::write(directory.join("result.json"), text).context("the result cannot be kept")?;
        let (rounds, tokens) = (result.usage.iterations, result.usage.total_tokens);
        if result.status == ResultStatus::BlockedUser {
            let words = "the task waits for a person, but nobody answers in an eval".to_owned();
            return Ok(TrialResult { passed: false, words, rounds, tokens });
        }
        let (passed, words) = self.grade(case, directory, &work).await?;
        Ok(TrialResult { passed, words, rounds, tokens })
    }

    /// The agent's run, in a data directory of its own.
    async fn run(
        &self,
        case: &Case,
        arm: Arm,
        directory: &Path,
        work: &Path,
    ) -> Result<TaskResult, Failure> {
        let environment = Environment {
            skill_directories: Some(self.skill_directories(arm, directory)?),
            ..self.environment_in(directory)
        };
        let coordinator = wiring::coordinator(&environment, self.hooks.store.clone())?;
        let axes = Axes::headless();
        let goal = self.goal(case, arm, &axes);
        let execution_config = ExecutionConfig {
            model: Some(self.model.clone()),
            timeout_seconds: Some(self.args.timeout),
            outage: Some(Outage::Fail),
            ..ExecutionConfig::default()
        };
        let draft = TaskDraft {
            user_id: None,
            goal,
            pictures: Vec::new(),
            constraints: Vec::new(),
            workspace: work.to_owned(),
            added: Vec::new(),
            share: Share::Alone,
            axes,
            execution_config,
            resume_context: None,
            driver: Driver::Foreground,
            cost_budget: None,
            deadline: None,
            dependency_blockers: Vec::new(),
        };
        let task = coordinator.tasks().submit(draft).await?;
        Ok(coordinator.tasks().drive(task, &CancellationToken::new()).await?)
    }

    /// A trial keeps its data in its own directory.
    fn environment_in(&self, directory: &Path) -> Environment {
        Environment { data: directory.join("data"), ..self.environment.clone() }
    }

    /// The skill alone and without its evals, or nothing at all.
    fn skill_directories(
        &self,
        arm: Arm,
        directory: &Path,
    ) -> Result<Vec<(PathBuf, Scope)>, Failure> {
        if arm == Arm::Without {
            return Ok(Vec::new());
        }
        let merged =
            SkillMirror::open(directory.join("skills")).context("the skill cannot be copied")?;
        let problems = merged.sync(&self.found.only(&self.skill.meta.name));
        match problems.first() {
            Some(problem) => Err(anyhow::anyhow!("{problem}").into()),
            None => Ok(vec![(merged.shown().to_owned(), Scope::User)]),
        }
    }

    /// The goal of a trial. A skill that agents do not choose themselves is called by its name.
    fn goal(&self, case: &Case, arm: Arm, axes: &Axes) -> String {
        let (viewer, name) = (Viewer::of(axes), &self.skill.meta.name);
        if arm == Arm::Without || self.skill.is_offered_to(viewer) {
            return case.task.clone();
        }
        let called = invoke(&format!("/{name} {}", case.task), self.found, viewer);
        called.and_then(Result::ok).map_or_else(|| case.task.clone(), |invocation| invocation.text)
    }

    /// Runs the grader in a sandbox of its own, on the workspace that the agent left; its exit code decides
    /// (MS-170). It gets none of our environment.
    async fn grade(
        &self,
        case: &Case,
        directory: &Path,
        work: &Path,
    ) -> Result<(bool, String), Failure> {
        let room = directory.join("grading");
        let kept = || format!("`{}` cannot be made ready for its grader", case.name);
        case.stage_grader(&room.join("grader")).with_context(kept)?;
        for name in ["trace.jsonl", "result.json"] {
            // A run that ended early has no trace.
            let _ = fs::copy(directory.join(name), room.join(name));
        }
        fs::rename(work, room.join("work")).with_context(kept)?;
        let graded = self.grade_in(case, directory, &room).await;
        fs::rename(room.join("work"), work).with_context(kept)?;
        let _ = fs::remove_dir_all(&room);
        graded
    }

    async fn grade_in(
        &self,
        case: &Case,
        directory: &Path,
        room: &Path,
    ) -> Result<(bool, String), Failure> {
        let environment = self.environment_in(directory);
        let root = TaskId::new(jiff::Timestamp::now());
        // The sandbox shows a task its trace. There is no trace here, but the directory must exist.
        let trace = environment.data.join("traces").join(root.to_string());
        fs::create_dir_all(&trace).context("the data directory cannot be written to")?;
        let placed = TaskDirectories::without_repository(room, root);
        let opened = sandbox::open_with(&environment, self.config, &placed, root, None).await;
        let opened = opened.map_err(|details| Failure::of_details(&details))?.sandbox;
        let inside = opened.isolation().workspace;
        let graded = run_grader(&*opened, case, &inside).await;
        opened.stop().await;
        let _ = fs::remove_dir_all(&trace);
        Ok(graded)
    }
}

/// A project's graders are programs of whoever wrote them (§15.13).
fn refuse_unapproved(
    environment: &Environment,
    workspace: &Path,
    skill: &Skill,
    cases: &[Case],
) -> Result<(), Failure> {
    for case in cases.iter().filter(|_| skill.scope == Scope::Project) {
        let cannot = |why: &str| format!("the grader `{}` {why}", case.grader.display());
        let file = mcp::open(&case.grader).with_context(|| cannot("cannot be read"))?;
        let is_approved = file.is_some_and(|file| {
            ApprovableFile::new(workspace, file).trust(&environment.data) == Trust::Approved
        });
        if !is_approved {
            let hint = "it is a program of this project; look at it with `windlass trust`";
            return Err(Failure::usage(cannot("is not approved"), hint));
        }
    }
    Ok(())
}

/// Whether the grader passes the work, and its last words.
async fn run_grader(sandbox: &dyn Sandbox, case: &Case, inside: &Path) -> (bool, String) {
    let place = |name: &str| inside.join(name).display().to_string();
    let mut argv = case.grader_command(&inside.join("grader"));
    argv.push(inside.join("work"));
    let hidden = case.hidden.as_ref().map(|_| ("WINDLASS_EVAL_HIDDEN", "grader/hidden"));
    let env = [
        ("WINDLASS_EVAL_WORKSPACE", "work"),
        ("WINDLASS_EVAL_TRACE", "trace.jsonl"),
        ("WINDLASS_EVAL_RESULT", "result.json"),
    ];
    let command = Command {
        argv: Some(argv.iter().map(|word| word.display().to_string()).collect()),
        env: env.into_iter().chain(hidden).map(|(key, at)| (key.to_owned(), place(at))).collect(),
        timeout: Some(GRADER_TIME),
        ..Command::script("grader", "", inside.join("work"))
    };
    let mut running = match sandbox.start(command).await {
        Ok(running) => running,
        Err(error) => return (false, format!("the grader does not run: {error}")),
    };
    let mut said = Vec::new();
    while let Some(chunk) = running.next().await {
        said.extend(chunk.bytes);
        // Its last words count.
        said.drain(..said.len().saturating_sub(MAX_SAID_BYTES));
    }
    let exit = running.wait().await.exit;
    let said = String::from_utf8_lossy(&said);
    let last = said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let words = match exit {
        Exit::Code(_) => windlass_core::text::one_line(last, MAX_WORDS_CHARS),
        Exit::TimedOut => format!("the grader took over {} s", GRADER_TIME.as_secs()),
        Exit::OutOfMemory => "the grader ran out of memory".to_owned(),
        Exit::Signal(signal) => format!("the grader was ended by signal {signal}"),
        Exit::Killed | Exit::Lost => "the grader was stopped".to_owned(),
    };
    (exit == Exit::Code(0), words)
}
