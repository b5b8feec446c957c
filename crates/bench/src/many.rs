//! Many tasks in one process: how many turns a second, and what each further task takes.
//!
//! The process that holds the tasks is this program again, started as `tasks`; it is wired as the real
//! one is, and asks the same server.

use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use windlass_cli::wiring::{self, Environment};
use windlass_coordinator::{Share, TaskDraft};
use windlass_core::axes::Axes;
use windlass_core::command::{ExecutionConfig, ResultStatus};
use windlass_core::event::Driver;
use windlass_testkit::Gate;

use crate::Effort;
use crate::bodies;
use crate::figures::{Figure, Unit};
use crate::memory;
use crate::place::{self, BenchDir, Started};
use crate::server::{Hold, Server};

/// The longest that all tasks may take to come to a turn.
const PATIENCE: Duration = Duration::from_secs(300);
/// More than any task here takes.
const MAX_TURNS: u32 = 100_000;
/// How often the wait checks whether they have.
const LOOK: Duration = Duration::from_millis(1);

/// Arguments of the process that runs many tasks.
#[derive(Clone, Debug, clap::Args)]
pub struct Tasks {
    /// How many tasks run at once.
    #[arg(long)]
    count: usize,
    /// Their data directory.
    #[arg(long)]
    data: PathBuf,
    /// Where each has a workspace of its own.
    #[arg(long)]
    workspaces: PathBuf,
}

/// Runs the tasks at once until all have ended. This is the process that is measured.
pub fn run(tasks: &Tasks) -> Result<()> {
    let failed = |failure: windlass_cli::failure::Failure| failure.error;
    let environment = Environment::new(Some(tasks.data.clone())).map_err(failed)?;
    let options = windlass_store::Options::default();
    let coordinator = wiring::coordinator(&environment, options).map_err(failed)?;
    let runtime = wiring::runtime(wiring::Load::Many).map_err(failed)?;
    runtime.block_on(async {
        let mut running = JoinSet::new();
        for number in 0..tasks.count {
            let workspace = tasks.workspaces.join(number.to_string());
            std::fs::create_dir_all(&workspace)?;
            std::fs::write(workspace.join("notes.txt"), "a short note\n")?;
            let coordinator = coordinator.clone();
            running.spawn(async move {
                let task = coordinator.tasks().submit(draft(workspace)).await?;
                let stop = CancellationToken::new();
                anyhow::Ok(coordinator.tasks().drive(task, &stop).await?.status)
            });
        }
        while let Some(ended) = running.join_next().await {
            match ended?? {
                ResultStatus::Completed => {}
                status => bail!("a task ended {status:?}"),
            }
        }
        Ok(())
    })
}

fn draft(workspace: PathBuf) -> TaskDraft {
    TaskDraft {
        user_id: None,
        goal: "measure".to_owned(),
        pictures: Vec::new(),
        constraints: Vec::new(),
        workspace,
        added: Vec::new(),
        share: Share::Allowed,
        axes: Axes::headless(),
        execution_config: ExecutionConfig {
            max_iterations: Some(MAX_TURNS),
            ..ExecutionConfig::default()
        },
        resume_context: None,
        driver: Driver::Foreground,
        cost_budget: None,
        deadline: None,
        dependency_blockers: Vec::new(),
    }
}

/// Measures turns a second of `count` tasks, compared with as many threads of the floor.
pub fn throughput(effort: Effort, command: &str) -> Result<Vec<Figure>> {
    let mut figures = Vec::new();
    for &(count, turns) in effort.crowds() {
        let place = BenchDir::new()?;
        let measured = crowd(&place, count, turns, command, Side::Windlass)
            .with_context(|| format!("{count} tasks"))?;
        let floor = crowd(&place, count, turns, command, Side::Floor)
            .with_context(|| format!("{count} tasks of the floor"))?;
        let detail = format!(
            "{:.0} turns/s, floor {:.0}; all at work after {:.2} s; {:.2} MB a task with its sandbox",
            measured.per_second,
            floor.per_second,
            measured.ready.as_secs_f64(),
            measured.megabytes / count as f64,
        );
        let what = format!("{count} tasks at once: time of a turn");
        let slower = floor.per_second / measured.per_second;
        figures.push(Figure::new(what, slower, Unit::Times).from(detail));
    }
    Ok(figures)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Windlass,
    Floor,
}

struct Crowd {
    per_second: f64,
    /// From the start until every task has done its first turn.
    ready: Duration,
    /// Proportional memory of the whole tree then.
    megabytes: f64,
}

/// Every task does one turn, which makes its sandbox. Then all continue together.
fn crowd(place: &BenchDir, count: usize, turns: usize, command: &str, side: Side) -> Result<Crowd> {
    let gate = Gate::new();
    let hold = Hold { turn: 1, gate: gate.clone() };
    let server = Server::start(command, turns + 1, Some(hold));
    let mut started = match side {
        Side::Windlass => many(place, &server, count)?,
        Side::Floor => place.floor(&server, command, count)?,
    };
    come_to_turn(&server, 1, count, &mut started)?;
    let ready = started.at.elapsed();
    let (tree, _) = memory::of_tree(started.child.id())?;
    let begun = Instant::now();
    gate.open();
    come_to_turn(&server, turns + 1, count, &mut started)?;
    let took = server.last_received().unwrap_or(begun).saturating_duration_since(begun);
    started.finish()?;
    if side == Side::Windlass {
        // With many tasks at once the server does not know which request belongs to which task.
        let last = server.last_body();
        bodies::write(&place.bodies(), &last, &bodies::lengths(&last))?;
    }
    let per_second = (count * turns) as f64 / took.as_secs_f64();
    Ok(Crowd { per_second, ready, megabytes: memory::megabytes(tree.proportional) })
}

/// What each further task takes that waits for its model and has run no command yet.
pub fn idle(effort: Effort) -> Result<Vec<Figure>> {
    let (one, _) = waiting(1)?;
    let mut figures = Vec::new();
    for &count in effort.idle() {
        let (all, ready) = waiting(count)?;
        let each = all.saturating_sub(one) / (count as u64 - 1);
        let what = format!("{count} idle tasks: memory of each further one");
        let detail = format!(
            "{:.1} MB with one, {:.1} MB with {count}; all waiting after {:.2} s",
            memory::megabytes(one),
            memory::megabytes(all),
            ready.as_secs_f64(),
        );
        let each = Figure::new(what, memory::megabytes(each), Unit::Megabytes);
        figures.push(each.at_most(1.0).from(detail));
    }
    Ok(figures)
}

/// The resident memory of a process whose tasks all wait for the model's first reply.
fn waiting(count: usize) -> Result<(u64, Duration)> {
    let place = BenchDir::new()?;
    let gate = Gate::new();
    let server = Server::start("true", 0, Some(Hold { turn: 0, gate: gate.clone() }));
    let mut started = many(&place, &server, count)?;
    come_to_turn(&server, 0, count, &mut started)?;
    let ready = started.at.elapsed();
    let (tree, _) = memory::of_tree(started.child.id())?;
    gate.open();
    started.finish()?;
    Ok((tree.resident, ready))
}

fn many(place: &BenchDir, server: &Server, count: usize) -> Result<Started> {
    let mut command = Command::new(std::env::current_exe()?);
    command
        .args(["tasks", "--count", &count.to_string(), "--data"])
        .arg(place.data())
        .arg("--workspaces")
        .arg(place.path("workspaces"))
        .env_clear()
        .envs(place::environment(server, place));
    place::start(command)
}

fn come_to_turn(server: &Server, turn: usize, count: usize, started: &mut Started) -> Result<()> {
    let begun = Instant::now();
    while server.at_turn(turn) < count {
        if let Some(ended) = started.child.try_wait()? {
            bail!("it ended with {ended} before all came to turn {turn}");
        }
        if begun.elapsed() > PATIENCE {
            started.child.kill()?;
            bail!("{} of {count} came to turn {turn} in time", server.at_turn(turn));
        }
        std::thread::sleep(LOOK);
    }
    Ok(())
}
