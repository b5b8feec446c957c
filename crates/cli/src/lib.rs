//! The program: arguments, configuration, wiring. It alone reads arguments, environment and config
//! files, and prints results (stdout) and everything else (stderr).

pub mod args;
pub mod config;
pub mod wiring;
pub mod instructions;
pub mod commands;
pub mod show;
mod times;
pub mod failure;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser as _;
use clap::error::{ContextKind, ContextValue};

use crate::args::Args;

/// What a test may reach into; nothing in everyday use.
#[derive(Clone, Default)]
pub struct Hooks {
    /// How the store is opened.
    pub store: windlass_store::Options,
}

/// Runs one command line to its exit code.
pub fn run(args: impl IntoIterator<Item = OsString>, hooks: Hooks) -> ExitCode {
    let args = match Args::try_parse_from(with_command(args)) {
        Ok(args) => args,
        Err(error) => return ExitCode::from(unparsed(&error)),
    };
    match commands::dispatch(args, hooks).and_then(printed) {
        Ok(code) => ExitCode::from(code),
        Err(failure) => {
            show::error(&failure);
            ExitCode::from(failure.code)
        }
    }
}

/// A result that did not reach its file must not look as if it had.
fn printed(code: u8) -> Result<u8, failure::Failure> {
    match show::lost_results() {
        None => Ok(code),
        Some(error) => Err(failure::Failure {
            error: anyhow::Error::from(error).context("the result could not be printed"),
            hint: Some(
                "print it to another place; what tasks came to is kept: `windlass result`".into(),
            ),
            code: failure::USAGE,
        }),
    }
}

/// `windlass -p GOAL` is short for `windlass run -p GOAL` (MS-192).
fn with_command(args: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let mut args: Vec<OsString> = args.into_iter().collect();
    if args.get(1).is_some_and(|first| first == "-p" || first == "--print") {
        args.insert(1, "run".into());
    }
    args
}

/// Help and version are no errors; both go where clap means them to.
fn unparsed(error: &clap::Error) -> u8 {
    let _ = error.print();
    let unknown = error.kind() == clap::error::ErrorKind::InvalidSubcommand;
    if let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand)
        && unknown
        && word.contains(' ')
    {
        show::note(&format!("\nhint: a goal goes behind `run`: windlass run {word:?}"));
    }
    if error.use_stderr() { failure::USAGE } else { 0 }
}
