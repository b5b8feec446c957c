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
use crate::wiring::{self, Environment, Load};

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

    /// The coordinator with the limits that a service here would have.
    fn service(&self) -> Result<Coordinator, Failure> {
        // No project sets these, so none can get in the way of a list.
        let config = self.environment.config(std::path::Path::new("/"))?;
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
    let mut environment = Environment::new(args.data)?;
    environment.sandbox = args.command.sandbox();
    environment.record = args.command.record();
    match args.command {
        Command::Config(config) => return setup::config(&environment, &config),
        Command::Models(models) => return setup::models(&environment, &models),
        Command::Trust(trust) => return setup::trust(&environment, &trust),
        Command::Explain(explain) => return gate::explain(&environment, &explain),
        Command::Skills(args) => return skills::skills(&environment, &args, hooks),
        Command::Mcp(args) => return mcp::mcp(&environment, &args),
        Command::Image(args) => return image::image(&environment, &args),
        _ => {}
    }
    let serves = matches!(args.command, Command::Serve(_) | Command::Worker(_));
    let load = if serves { Load::Many } else { Load::One };
    let app = AppContext::open(environment, hooks, load)?;
    match args.command {
        Command::Run(run) => run::run(&app, &run.goal, &run.how),
        Command::Headless(headless) => run::headless(&app, headless),
        Command::Resume(resume) => run::resume(&app, &resume),
        Command::Retry(resume) => run::retry(&app, &resume),
        Command::Tasks(tasks) => overview::tasks(&app, &tasks),
        Command::Status(listing) => overview::status(&app, &listing),
        Command::Sessions(args) => events::sessions(&app, &args),
        Command::Schedule(args) => schedule::schedule(&app, args),
        Command::Event(args) => events::event(&app, &args),
        Command::Serve(args) => serve::serve(&app, &args),
        Command::Worker(args) => worker::worker(&app, &args),
        Command::Show(one) => look::show(&app, &one),
        Command::Events(events) => look::events(&app, &events),
        Command::Result(one) => look::result(&app, &one),
        Command::Logs(one) => outputs::logs(&app, &one),
        Command::Trace(trace) => outputs::trace(&app, &trace),
        Command::Outputs(wanted) => outputs::outputs(&app, &wanted),
        Command::Exec(exec) => exec::exec(&app, &exec),
        Command::Cost(wanted) => cost::cost(&app, &wanted),
        Command::Metrics => cost::metrics(&app),
        Command::Inbox(listing) => look::inbox(&app, &listing),
        Command::Answer(answer) => mail::answer(&app, answer),
        Command::Send(send) => mail::send(&app, &send),
        Command::Pause(one) => mail::pause(&app, &one),
        Command::Cancel(cancel) => mail::cancel(&app, &cancel),
        Command::Permissions(permissions) => gate::permissions(&app, &permissions),
        Command::Doctor(doctor) => doctor::doctor(&app, &doctor),
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
