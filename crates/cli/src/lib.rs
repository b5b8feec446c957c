//! The program: arguments, configuration, wiring. It alone reads arguments, environment and config
//! files, and prints results (stdout) and everything else (stderr).

pub mod args;
pub mod config;
pub mod wiring;
pub mod instructions;
pub mod commands;
pub mod show;
pub mod failure;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser as _;

use crate::args::Args;

/// What a test may reach into; nothing in everyday use.
#[derive(Clone, Default)]
pub struct Hooks {
    /// How the store is opened.
    pub store: windlass_store::Options,
}

/// Runs one command line to its exit code.
pub fn run(args: impl IntoIterator<Item = OsString>, hooks: Hooks) -> ExitCode {
    let args = match Args::try_parse_from(args) {
        Ok(args) => args,
        Err(error) => {
            // Help and version are no errors; both go where clap means them to.
            let code = if error.use_stderr() { failure::USAGE } else { 0 };
            let _ = error.print();
            return ExitCode::from(code);
        }
    };
    match commands::dispatch(args, hooks) {
        Ok(code) => ExitCode::from(code),
        Err(failure) => {
            show::error(&failure);
            ExitCode::from(failure.code)
        }
    }
}
