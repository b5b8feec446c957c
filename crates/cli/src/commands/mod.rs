//! One function per command. Each opens what it needs and nothing more.

mod run;
mod look;
mod mail;
mod gate;

use tokio::runtime::Runtime;
use windlass_coordinator::Coordinator;

use crate::Hooks;
use crate::args::{Args, Command};
use crate::failure::Failure;
use crate::wiring::{self, Surroundings};

/// What every command works with.
struct Setting {
    surroundings: Surroundings,
    coordinator: Coordinator,
    runtime: Runtime,
}

/// Carries out a command line; the number is the exit code.
pub fn dispatch(args: Args, hooks: Hooks) -> Result<u8, Failure> {
    wiring::log_to_stderr(&args.log_format);
    let mut surroundings = Surroundings::new(args.data)?;
    surroundings.sandbox = args.command.sandbox();
    if let Command::Explain(explain) = &args.command {
        return gate::explain(&surroundings, explain);
    }
    let setting = Setting {
        coordinator: wiring::coordinator(&surroundings, hooks.store)?,
        runtime: wiring::runtime()?,
        surroundings,
    };
    match args.command {
        Command::Run(run) => run::run(&setting, run),
        Command::Resume(resume) => run::resume(&setting, resume),
        Command::Retry(resume) => run::retry(&setting, resume),
        Command::Tasks(tasks) => look::tasks(&setting, &tasks),
        Command::Show(one) => look::show(&setting, &one),
        Command::Events(events) => look::events(&setting, &events),
        Command::Result(one) => look::result(&setting, &one),
        Command::Inbox(listing) => look::inbox(&setting, &listing),
        Command::Answer(answer) => mail::answer(&setting, answer),
        Command::Send(send) => mail::send(&setting, &send),
        Command::Pause(one) => mail::pause(&setting, &one),
        Command::Cancel(cancel) => mail::cancel(&setting, &cancel),
        Command::Permissions(permissions) => gate::permissions(&setting, &permissions),
        Command::Explain(explain) => gate::explain(&setting.surroundings, &explain),
    }
}
