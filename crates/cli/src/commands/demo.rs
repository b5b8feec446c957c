//! `demo`: a real small job on the built-in script, in a throwaway directory. It is `run`
//! with other directories: no key, no network, and of the user's data only the list of tasks is touched.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;
use windlass_coordinator::views::Filter;
use windlass_core::id::TaskId;
use windlass_core::text::suffix;
use windlass_term::TerminalStyle;

use super::{AppContext, Execute, Start, run};
use crate::args::{PrintOptions, RunArgs, SandboxArgs};
use crate::config::types::SandboxMode;
use crate::failure::Failure;
use crate::show::{SHORT_ID, note};
use crate::wiring::{self, Environment, Load, sandbox};

/// Watch a scripted run: no key, no network, no Docker needed
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Demo {
    /// Keep the throwaway directory, so that you can look at it
    #[arg(long)]
    pub keep: bool,
    /// How to print
    #[command(flatten)]
    pub printing: PrintOptions,
}

const EXAMPLES: &str = "\
Examples:
  windlass demo                 a failing test is found, fixed and reported
  windlass demo --keep          keep its directory, to look around in";

impl Execute for Demo {
    fn execute(self, start: Start) -> Result<u8, Failure> {
        demo(&self, start)
    }
}

const GOAL: &str =
    "The test in test.sh fails. Find out why, fix total.sh and write a short report.";

/// The files of the throwaway workspace.
const FILES: [(&str, &str); 3] = [
    ("total.sh", include_str!("../../demo/total.sh")),
    ("test.sh", include_str!("../../demo/test.sh")),
    ("prices.txt", include_str!("../../demo/prices.txt")),
];

/// The replies of the model.
const SCRIPT: &str = include_str!("../../demo/script.yaml");

/// Variables that the demo's commands and its look need; anything else could change what it does.
const ENVIRONMENT: [&str; 6] = ["PATH", "HOME", "USER", "LANG", "LC_ALL", "TERM"];

const NEXT: &str = "
That was windlass on a script: the model, its tokens and its cost were simulated.
Look at what it did:     windlass show {task}
                         windlass events {task}

To use a model of yours, in a directory of yours:

  export OPENAI_API_KEY=…
  windlass models --test
  windlass run \"fix the failing test\"

With Anthropic:          export ANTHROPIC_API_KEY=…
With LiteLLM or Ollama:  export LITELLM_API_BASE=http://localhost:4000 LITELLM_MODEL=NAME
Another model:           windlass run \"…\" --model anthropic/NAME";

fn demo(args: &Demo, start: Start) -> Result<u8, Failure> {
    let directory = tempfile::Builder::new().prefix("windlass-demo-").tempdir();
    let directory = directory.context("there is no place for a throwaway directory");
    let directory = directory.map_err(|error| Failure {
        hint: Some("set `TMPDIR` to a directory that you can write to".into()),
        ..error.into()
    })?;
    let place = directory.path().canonicalize().context("the throwaway directory is gone")?;
    let style = TerminalStyle::detect();
    let (workspace, script) = prepare(&place, style.can_redraw)?;
    let environment = demo_environment(&start, &place, &workspace)?;
    let options = run_args(args, &workspace, &script);
    let (app, project) = AppContext::open_in(
        environment,
        start.hooks,
        &options.workspace,
        super::run::flags(&options),
    )?;
    if args.printing.shows_progress() {
        note(&format!("{}\n", style.notes.bold(&format!("$ windlass run \"{GOAL}\""))));
    }
    let code = run::run(&app, &project, Some(GOAL), &options);
    let newest = Filter { roots: true, limit: Some(1), ..Filter::default() };
    let task =
        app.coordinator.tasks().rows(&newest).ok().and_then(|rows| rows.first().map(|row| row.id));
    drop((app, project));
    if args.keep {
        note(&format!("\nkept in {}", directory.keep().display()));
    }
    let code = code?;
    if let Some(task) = task.filter(|_| code == 0 && args.printing.shows_progress()) {
        let id = task.to_string();
        note(&NEXT.replace("{task}", suffix(&id, SHORT_ID)));
    }
    Ok(code)
}

/// Writes the workspace and the script. Only someone who watches needs pauses to read in.
fn prepare(place: &Path, watched: bool) -> Result<(PathBuf, PathBuf), Failure> {
    let (workspace, script) = (place.join("shop"), place.join("demo.yaml"));
    let wrote = fs::create_dir_all(workspace.join("output")).and_then(|()| {
        for (name, text) in FILES {
            fs::write(workspace.join(name), text)?;
        }
        fs::write(&script, if watched { SCRIPT.to_owned() } else { without_delays(SCRIPT) })
    });
    wrote.context("the demo's files cannot be written")?;
    Ok((workspace, script))
}

fn without_delays(script: &str) -> String {
    let at_once = |line: &str| match line.split_once("delay_ms:") {
        Some((before, _)) => format!("{before}delay_ms: 0\n"),
        None => format!("{line}\n"),
    };
    script.lines().map(at_once).collect()
}

/// An environment without the user's configuration. The task is kept where the user's tasks are, so that
/// `show` finds it afterwards; the demo runs even if the data directory cannot be found or written.
fn demo_environment(start: &Start, place: &Path, workspace: &Path) -> Result<Environment, Failure> {
    let usable = |own: &Environment| wiring::coordinator(own, start.hooks.store.clone()).is_ok();
    let own = start.environment().ok().filter(usable);
    let mut environment = match own {
        Some(own) => own,
        None => Environment::new(Some(place.join("data")))?,
    };
    let kept = |(name, _): &(String, String)| ENVIRONMENT.contains(&name.as_str());
    let mut variables: BTreeMap<_, _> = environment.variables.into_iter().filter(kept).collect();
    variables.insert("XDG_CONFIG_HOME".to_owned(), place.join("config").display().to_string());
    environment.variables = variables;
    environment.keep_outputs = None;
    environment.keep_tasks = None;
    environment.skill_directories = Some(Vec::new());
    environment.sandbox = Some(choose_sandbox(&environment, workspace)?);
    Ok(environment)
}

/// The local sandbox, or the host on a machine without one: these commands are our own.
fn choose_sandbox(environment: &Environment, workspace: &Path) -> Result<SandboxMode, Failure> {
    let local = Environment { sandbox: Some(SandboxMode::Local), ..environment.clone() };
    let config = local.config(workspace)?;
    let runtime = wiring::runtime(Load::One)?;
    let root = TaskId::new(jiff::Timestamp::now());
    let trace = environment.data.join("traces").join(root.to_string());
    fs::create_dir_all(&trace).context("the demo's files cannot be written")?;
    let mode = match runtime.block_on(sandbox::open(&local, &config, workspace, root)) {
        Ok(opened) => {
            runtime.block_on(opened.stop());
            SandboxMode::Local
        }
        Err(_) => {
            note(
                "no isolation on this machine (`windlass doctor` says why); the demo runs without\n",
            );
            SandboxMode::Host
        }
    };
    let _ = fs::remove_dir(&trace);
    Ok(mode)
}

fn run_args(args: &Demo, workspace: &Path, script: &Path) -> RunArgs {
    RunArgs {
        record: None,
        workspace: workspace.to_owned(),
        place: Default::default(),
        model: Some(format!("script:{}", script.display())),
        effort: None,
        model_mode: None,
        constraint: Vec::new(),
        timeout: None,
        max_iterations: None,
        budget: None,
        context_window: None,
        mode: None,
        role: None,
        control: None,
        permission_profile: None,
        mcp_config: None,
        continues: false,
        detach: false,
        session: None,
        share: false,
        sandbox: SandboxArgs { sandbox: None },
        deadline: Default::default(),
        printing: args.printing.clone(),
    }
}
