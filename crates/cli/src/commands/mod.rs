//! The commands. Each has a file: its arguments, its examples and its code. `commands!` lists them in the order of
//! `--help`. The last modules below are not commands but parts of them.

mod run;
mod chat;
mod headless;
mod resume;
mod retry;
mod attach;
mod parallel;
mod workflow;
mod demo;
mod tasks;
mod status;
mod sessions;
mod show;
mod events;
mod diff;
mod result;
mod logs;
mod outputs;
mod trace;
mod forensics;
mod assist;
mod cost;
mod metrics;
mod inbox;
mod answer;
mod send;
mod event;
mod pause;
mod cancel;
mod mode;
mod modes;
mod permissions;
mod plan;
mod commitments;
mod schedule;
mod serve;
mod worker;
mod open;
mod config;
mod models;
mod trust;
mod doctor;
mod prune;
mod skills;
mod mcp;
mod image;
mod explain;
mod exec;
mod completions;
mod man;

// Parts of commands: what several share, `skills eval`, and the terminal that opens without a command.
mod terminal;
mod drive;
mod worktree_run;
mod goal;
mod follow_up;
mod named_task;
mod attendance;
mod steering;
mod ask;
mod prompt;
mod proposals;
mod keyboard;
mod interrupts;
mod wait;
mod mail;
mod eval;
mod model_checks;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Subcommand;
use tokio::runtime::Runtime;
use windlass_coordinator::Coordinator;
use windlass_term::TerminalStyle;

use crate::Hooks;
use crate::args::{Args, RunArgs, SandboxArgs, ServeArgs};
use crate::config::Flag;
use crate::config::types::SandboxMode;
use crate::failure::Failure;
use crate::wiring::telemetry::Telemetry;
use crate::wiring::{self, Environment, Load, Project};

/// Makes the type that the command line is parsed into, and the call of each command.
macro_rules! commands {
    ($($group:literal { $($name:ident($module:ident::$arguments:ident),)+ })+) => {
        /// What to do.
        #[derive(Debug, Subcommand)]
        #[expect(missing_docs, reason = "the help of a command is the text of its arguments' type")]
        pub enum Command {
            $($($name($module::$arguments),)+)+
        }

        impl Command {
            fn execute(self, start: Start) -> Result<u8, Failure> {
                match self {
                    $($(Self::$name(command) => command.execute(start),)+)+
                }
            }
        }

        /// The commands by what they are for.
        pub(crate) const GROUPS: &[(&str, &[&str])] =
            &[$(($group, &[$(stringify!($module)),+])),+];
    };
}

commands! {
    "Work on goals" {
        Run(run::Run),
        Chat(chat::Chat),
        Headless(headless::Headless),
        Resume(resume::Resume),
        Retry(retry::Retry),
        Attach(attach::Attach),
        Workflow(workflow::Workflows),
        Parallel(parallel::Parallels),
        Demo(demo::Demo),
    }
    "See what happens" {
        Tasks(tasks::Tasks),
        Status(status::Status),
        Sessions(sessions::Sessions),
        Show(show::Show),
        Diff(diff::Diff),
        Events(events::Events),
        Result(result::PrintResult),
        Logs(logs::Logs),
        Outputs(outputs::Outputs),
        Trace(trace::Trace),
        Forensics(forensics::Forensics),
        Assist(assist::Assist),
        Cost(cost::Cost),
        Metrics(metrics::Metrics),
    }
    "Answer and steer" {
        Inbox(inbox::Inbox),
        Answer(answer::Answer),
        Send(send::SendMessage),
        Event(event::PassEvent),
        Pause(pause::Pause),
        Cancel(cancel::Cancel),
        Mode(mode::Mode),
        Modes(modes::Modes),
        Permissions(permissions::Permissions),
        Commitments(commitments::Commitments),
        Schedule(schedule::Schedules),
        Plan(plan::PlanCommand),
    }
    "Run a service" {
        Serve(serve::Serve),
        Worker(worker::Worker),
        Open(open::Open),
    }
    "Set up and check" {
        Config(config::ShowConfig),
        Models(models::ListModels),
        Trust(trust::ApproveProject),
        Doctor(doctor::Doctor),
        Prune(prune::Prune),
        Skills(skills::Skills),
        Mcp(mcp::Mcp),
        Image(image::Image),
        Explain(explain::Explain),
        Exec(exec::Exec),
        Completions(completions::Completions),
        Man(man::Man),
    }
}

/// A command, as its arguments say.
trait Execute {
    /// Carries it out. The number is the exit code.
    fn execute(self, start: Start) -> Result<u8, Failure>;
}

/// What the program was started with. A command opens what it needs, and nothing more: some must not even
/// create a data directory.
struct Start {
    data: Option<PathBuf>,
    hooks: Hooks,
    sandbox: Option<SandboxMode>,
    record: Option<PathBuf>,
}

impl Start {
    /// Takes over the `--sandbox` flag.
    fn sandbox(self, args: &SandboxArgs) -> Self {
        Self { sandbox: args.sandbox, ..self }
    }

    fn environment(&self) -> Result<Environment, Failure> {
        let mut environment = Environment::new(self.data.clone())?;
        environment.sandbox = self.sandbox;
        environment.record.clone_from(&self.record);
        Ok(environment)
    }

    /// For a command about what exists. A directory that only the flag `--data` names is not made for it: most likely
    /// its name is mistyped.
    fn app(self) -> Result<AppContext, Failure> {
        let environment = self.environment()?;
        let by_variable = environment.variables.get("WINDLASS_DATA").map(Path::new);
        let is_named = self.data.as_deref().is_some_and(|data| by_variable != Some(data));
        if is_named && !environment.data.exists() {
            let what = format!("data directory `{}` does not exist", environment.data.display());
            let hint = "correct `--data`; `windlass run --data DIR` makes a new one";
            return Err(Failure::usage(what, hint));
        }
        self.app_for_work()
    }

    /// For a command that may be the first one of a data directory.
    fn app_for_work(self) -> Result<AppContext, Failure> {
        AppContext::open(self.environment()?, self.hooks, Load::One)
    }

    fn app_for_run(self, options: &RunArgs) -> Result<(AppContext, Arc<Project>), Failure> {
        let start = Self { record: options.record.clone(), ..self }.sandbox(&options.sandbox);
        start.app_in(&options.workspace, run::flags(options))
    }

    /// The same for work in one directory, with what that brings.
    fn app_in(
        self,
        workspace: &Path,
        flags: Vec<Flag>,
    ) -> Result<(AppContext, Arc<Project>), Failure> {
        AppContext::open_in(self.environment()?, self.hooks, workspace, flags)
    }

    fn app_for_service(self, options: &ServeArgs) -> Result<AppContext, Failure> {
        let start = self.sandbox(&options.sandbox);
        AppContext::open(start.environment()?, start.hooks, Load::Many)
    }
}

/// What every command that deals with tasks works with.
struct AppContext {
    environment: Environment,
    coordinator: Coordinator,
    runtime: Runtime,
    style: TerminalStyle,
}

impl AppContext {
    fn open(environment: Environment, hooks: Hooks, load: Load) -> Result<Self, Failure> {
        Ok(Self {
            coordinator: wiring::coordinator(&environment, hooks.store)?,
            runtime: wiring::runtime(load)?,
            environment,
            style: TerminalStyle::detect(),
        })
    }

    /// The same with what a directory brings: loaded now, and kept to the end.
    fn open_in(
        environment: Environment,
        hooks: Hooks,
        workspace: &Path,
        flags: Vec<Flag>,
    ) -> Result<(Self, Arc<Project>), Failure> {
        let with_flags = Environment { flags, ..environment.clone() };
        let project = Arc::new(Project::load(with_flags, workspace)?);
        let (shared, store) = (Arc::clone(&project), hooks.store);
        let app = Self {
            coordinator: wiring::coordinator_for_run(&environment, store, shared)?,
            runtime: wiring::runtime(Load::One)?,
            environment,
            style: TerminalStyle::detect(),
        };
        Ok((app, project))
    }

    /// The coordinator with the limits that a service here would have.
    fn service(&self) -> Result<Coordinator, Failure> {
        // The root has no project file, and no project may set these limits: a broken project file must not
        // break a list.
        let config = self.environment.config(std::path::Path::new("/"))?;
        Ok(self.coordinator.clone().with_limits(wiring::limits(&config)))
    }
}

/// Carries out a command line. The number is the exit code.
pub fn dispatch(args: Args, hooks: Hooks) -> Result<u8, Failure> {
    let _telemetry = Telemetry::begin(&args.log_format);
    let start = Start { data: args.data, hooks, sandbox: None, record: None };
    match args.command {
        Some(command) => command.execute(start),
        None => terminal::open(start, args.conversation),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::parser;

    /// Examples are laid out by hand, so nothing may wrap them.
    #[test]
    fn examples_fit_eighty_columns() {
        let program = parser();
        let texts = program.get_subcommands().chain([&program]);
        let texts = texts.filter_map(|command| command.get_after_help()).map(ToString::to_string);
        for line in texts.flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>()) {
            assert!(line.chars().count() <= 80, "{line}");
        }
    }

    #[test]
    fn every_command_is_in_a_group() {
        let program = parser();
        let names: Vec<_> = program.get_subcommands().map(clap::Command::get_name).collect();
        let grouped: Vec<_> = GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        assert_eq!(names, grouped);
    }
}
