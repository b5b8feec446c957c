//! Measures windlass beside a floor, and says which aims are met.
//!
//! `scripts/bench` builds everything and runs it. A measurement that fails is reported and does not keep
//! the others from being made; the exit code then is 1.

mod figures;
mod server;
mod bodies;
mod place;
mod memory;
mod turns;
mod many;
mod service;
mod http;
mod load;
mod looks;
mod helper;
mod docker;
mod gate;
mod terminal;
mod worktrees;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand, ValueEnum};

use figures::Figure;

/// Measures windlass beside a floor.
#[derive(Parser)]
#[command(name = "windlass-bench")]
struct Args {
    /// How much is measured.
    #[arg(value_enum, default_value = "full")]
    effort: Effort,
    /// Run only these measurements.
    #[arg(long, value_enum, value_delimiter = ',')]
    only: Vec<Measurement>,
    /// Print one JSON object instead of a table.
    #[arg(long)]
    json: bool,
    #[command(subcommand)]
    inner: Option<Inner>,
}

/// What this program does when it has started itself as a child.
#[derive(Subcommand)]
enum Inner {
    /// Run many tasks in this process.
    #[command(hide = true)]
    Tasks(many::Tasks),
    /// Print the memory of a terminal after so many events.
    #[command(hide = true)]
    TerminalMemory { events: usize },
}

/// How much is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Effort {
    /// A short run of about a minute.
    Quick,
    /// Every measurement at full length.
    Full,
}

/// What is measured, in the order it is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Measurement {
    /// Start-up to the first request.
    Start,
    /// Turns of one task.
    Turns,
    /// Turns of a model that reasons.
    Reasoning,
    /// Memory of one task.
    Memory,
    /// Many tasks at work.
    Many,
    /// Many tasks of one service.
    Service,
    /// The HTTP surface: readers, requests, scrapes.
    Http,
    /// What many tasks cost: a crowd, a queue, a restart, a steady minute, a year.
    Load,
    /// Many tasks that wait.
    Idle,
    /// The sandbox's helper.
    Helper,
    Docker,
    Gate,
    /// The interactive terminal.
    Terminal,
    /// Many worktrees of one repository.
    Worktrees,
}

impl Effort {
    /// Starts to compare.
    const fn starts(self) -> usize {
        match self {
            Self::Quick => 10,
            Self::Full => 40,
        }
    }

    /// Lengths of tasks in turns, and how often each is run.
    const fn lengths(self) -> &'static [(usize, usize)] {
        match self {
            Self::Quick => &[(20, 5), (100, 1)],
            Self::Full => &[(20, 10), (100, 4), (1000, 2)],
        }
    }

    const fn watched_turns(self) -> usize {
        match self {
            Self::Quick => 50,
            Self::Full => 1000,
        }
    }

    /// Tasks at once, and turns of each.
    const fn crowds(self) -> &'static [(usize, usize)] {
        match self {
            Self::Quick => &[(1, 50), (10, 10), (100, 2)],
            Self::Full => &[(1, 300), (10, 60), (100, 10), (1000, 2)],
        }
    }

    const fn idle(self) -> &'static [usize] {
        match self {
            Self::Quick => &[100],
            Self::Full => &[10, 100, 1000],
        }
    }

    /// Containers brought up one after the other.
    const fn containers(self) -> usize {
        match self {
            Self::Quick => 5,
            Self::Full => 20,
        }
    }

    /// Commands by the engine's own exec.
    const fn execs(self) -> usize {
        match self {
            Self::Quick => 20,
            Self::Full => 100,
        }
    }

    /// Commands through the helper.
    const fn commands(self) -> usize {
        match self {
            Self::Quick => 200,
            Self::Full => 1000,
        }
    }
}

impl Measurement {
    fn measure(self, effort: Effort) -> Result<Vec<Figure>> {
        let each = |measure: fn(Effort, &str, &str) -> Result<Vec<Figure>>| {
            let both = turns::COMMANDS.map(|(name, command)| measure(effort, name, command));
            both.into_iter().collect::<Result<Vec<_>>>().map(|all| all.concat())
        };
        match self {
            Self::Start => turns::start_up(effort),
            Self::Turns => each(turns::turns),
            Self::Reasoning => turns::reasoning(effort),
            Self::Memory => each(turns::peak_memory),
            Self::Many => many::throughput(effort, turns::COMMANDS[0].1),
            Self::Service => service::figures(effort),
            Self::Http => http::figures(effort),
            Self::Load => load::figures(effort),
            Self::Idle => many::idle(effort),
            Self::Helper => tokio::runtime::Runtime::new()?.block_on(helper::figures(effort)),
            Self::Docker => tokio::runtime::Runtime::new()?.block_on(docker::figures(effort)),
            Self::Gate => gate::figures(),
            Self::Terminal => terminal::figures(effort),
            Self::Worktrees => worktrees::figures(),
        }
    }
}

/// What the figures depend on: cores, and who else uses them.
fn machine() -> String {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split(' ').next().unwrap_or_default().to_owned();
    format!("{cores} cores, load {load} before it began")
}

#[expect(clippy::print_stdout, clippy::print_stderr, reason = "its figures are what it prints")]
fn main() -> ExitCode {
    let args = Args::parse();
    if let Some(inner) = &args.inner {
        let ran = match inner {
            Inner::Tasks(tasks) => many::run(tasks),
            Inner::TerminalMemory { events } => {
                terminal::resident_after(*events).map(|kilobytes| println!("{kilobytes}"))
            }
        };
        return match ran {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("error: {error:#}");
                ExitCode::FAILURE
            }
        };
    }
    let parts = match args.only.as_slice() {
        [] => Measurement::value_variants(),
        only => only,
    };
    if !args.json {
        println!("{}\n", machine());
    }
    let (mut all, mut failed) = (Vec::new(), false);
    for part in parts {
        match part.measure(args.effort) {
            Ok(figures) => {
                if !args.json {
                    print!("{}", figures::table(&figures));
                }
                all.extend(figures);
            }
            Err(error) => {
                failed = true;
                eprintln!("error: {part:?} was not measured: {error:#}");
            }
        }
    }
    if args.json {
        println!("{}", serde_json::json!({ "machine": machine(), "figures": all }));
    } else {
        let over = all.iter().filter(|figure| !figure.is_met()).count();
        println!("\n{} figures, {over} over their aim", all.len());
    }
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
