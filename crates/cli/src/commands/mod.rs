//! One function per command. Each opens what it needs and nothing more.

mod run;
mod ask;
mod interrupts;
mod wait;
mod serve;
mod worker;
mod demo;
mod look;
mod overview;
mod schedule;
mod events;
mod cost;
mod outputs;
mod exec;
mod mail;
mod gate;
mod setup;
mod doctor;
mod skills;
mod eval;
mod mcp;
mod image;
mod help;

use tokio::runtime::Runtime;
use windlass_coordinator::Coordinator;
use windlass_term::TerminalStyle;

use crate::Hooks;
use crate::args::{Args, Command};
use crate::failure::Failure;
use crate::wiring::telemetry::Telemetry;
use crate::wiring::{self, Load, Surroundings};

/// What every command that deals with tasks works with.
struct Setting {
    surroundings: Surroundings,
    coordinator: Coordinator,
    runtime: Runtime,
    style: TerminalStyle,
}

impl Setting {
    fn open(surroundings: Surroundings, hooks: Hooks, load: Load) -> Result<Self, Failure> {
        Ok(Self {
            coordinator: wiring::coordinator(&surroundings, hooks.store)?,
            runtime: wiring::runtime(load)?,
            surroundings,
            style: TerminalStyle::detect(),
        })
    }

    /// The coordinator with the limits that a service here would have.
    fn service(&self) -> Result<Coordinator, Failure> {
        // No project sets these, so none can get in the way of a list.
        let config = self.surroundings.config(std::path::Path::new("/"))?;
        Ok(self.coordinator.clone().with_limits(wiring::limits(&config)))
    }
}

/// Carries out a command line; the number is the exit code.
pub fn dispatch(args: Args, hooks: Hooks) -> Result<u8, Failure> {
    let _telemetry = Telemetry::begin(&args.log_format);
    // These need no data directory, and must not make one.
    match args.command {
        Command::Completions(completions) => return Ok(help::completions(&completions)),
        Command::Man => return help::man(),
        Command::Demo(demo) => return demo::demo(&demo, hooks),
        _ => {}
    }
    let mut surroundings = Surroundings::new(args.data)?;
    surroundings.sandbox = args.command.sandbox();
    surroundings.record = args.command.record();
    match args.command {
        Command::Config(config) => return setup::config(&surroundings, &config),
        Command::Models(models) => return setup::models(&surroundings, &models),
        Command::Trust(trust) => return setup::trust(&surroundings, &trust),
        Command::Explain(explain) => return gate::explain(&surroundings, &explain),
        Command::Skills(args) => return skills::skills(&surroundings, &args, hooks),
        Command::Mcp(args) => return mcp::mcp(&surroundings, &args),
        Command::Image(args) => return image::image(&surroundings, &args),
        _ => {}
    }
    let serves = matches!(args.command, Command::Serve(_) | Command::Worker(_));
    let load = if serves { Load::Many } else { Load::One };
    let setting = Setting::open(surroundings, hooks, load)?;
    match args.command {
        Command::Run(run) => run::run(&setting, &run.goal, &run.how),
        Command::Headless(headless) => run::headless(&setting, headless),
        Command::Resume(resume) => run::resume(&setting, &resume),
        Command::Retry(resume) => run::retry(&setting, &resume),
        Command::Tasks(tasks) => overview::tasks(&setting, &tasks),
        Command::Status(listing) => overview::status(&setting, &listing),
        Command::Sessions(args) => events::sessions(&setting, &args),
        Command::Schedule(args) => schedule::schedule(&setting, args),
        Command::Event(args) => events::event(&setting, &args),
        Command::Serve(args) => serve::serve(&setting, &args),
        Command::Worker(args) => worker::worker(&setting, &args),
        Command::Show(one) => look::show(&setting, &one),
        Command::Events(events) => look::events(&setting, &events),
        Command::Result(one) => look::result(&setting, &one),
        Command::Logs(one) => outputs::logs(&setting, &one),
        Command::Trace(trace) => outputs::trace(&setting, &trace),
        Command::Outputs(wanted) => outputs::outputs(&setting, &wanted),
        Command::Exec(exec) => exec::exec(&setting, &exec),
        Command::Cost(wanted) => cost::cost(&setting, &wanted),
        Command::Metrics => cost::metrics(&setting),
        Command::Inbox(listing) => look::inbox(&setting, &listing),
        Command::Answer(answer) => mail::answer(&setting, answer),
        Command::Send(send) => mail::send(&setting, &send),
        Command::Pause(one) => mail::pause(&setting, &one),
        Command::Cancel(cancel) => mail::cancel(&setting, &cancel),
        Command::Permissions(permissions) => gate::permissions(&setting, &permissions),
        Command::Doctor(doctor) => doctor::doctor(&setting, &doctor),
        Command::Completions(_)
        | Command::Man
        | Command::Demo(_)
        | Command::Config(_)
        | Command::Models(_)
        | Command::Explain(_)
        | Command::Skills(_)
        | Command::Mcp(_)
        | Command::Image(_)
        | Command::Trust(_) => unreachable!("carried out above"),
    }
}
