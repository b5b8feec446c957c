//! The program: arguments, configuration, wiring. It alone reads arguments, environment and config
//! files, and prints results (stdout) and everything else (stderr).

pub mod args;
pub mod config;
pub mod wiring;
pub mod instructions;
pub mod commands;
mod completion;
pub mod show;
mod times;
pub mod own_memory;
pub mod next_action;
pub mod failure;
mod typos;
mod default_action;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use windlass_core::shown;
use windlass_term::TerminalStyle;

use crate::args::Args;

/// What a test may reach into; nothing in everyday use.
#[derive(Clone, Default)]
pub struct Hooks {
    /// How the store is opened.
    pub store: windlass_store::Options,
}

/// Runs one command line to its exit code.
pub fn run(args: impl IntoIterator<Item = OsString>, hooks: Hooks) -> ExitCode {
    let args: Vec<OsString> = args.into_iter().collect();
    if completion::answers(&args) {
        return ExitCode::SUCCESS;
    }
    windlass_coordinator::open_files::raise_limit();
    let words = with_command(args);
    let args = match parse(&words) {
        Ok(args) => args,
        Err(error) => {
            return ExitCode::from(print_parse_error(typos::suggest(error, &words), &words));
        }
    };
    match commands::dispatch(args, hooks).and_then(check_printed) {
        Ok(code) => ExitCode::from(code),
        Err(failure) => {
            show::error(&failure);
            ExitCode::from(failure.code)
        }
    }
}

/// Parses a command line; a command without its subcommand shows what there is.
fn parse(words: &[OsString]) -> Result<Args, clap::Error> {
    Args::parse_words(words).or_else(|error| {
        let completed = default_action::complete(&error, words);
        completed.and_then(|words| Args::parse_words(&words).ok()).ok_or(error)
    })
}

/// A result that did not reach its file must not look as if it had.
fn check_printed(code: u8) -> Result<u8, failure::Failure> {
    match show::lost_results() {
        None => Ok(code),
        Some(error) => Err(failure::Failure {
            error: anyhow::Error::from(error).context("the result could not be printed"),
            hint: Some("print it elsewhere; results of tasks are kept: `windlass result`".into()),
            code: failure::USAGE,
        }),
    }
}

/// `windlass -p GOAL` is short for `windlass run -p GOAL` (MS-192), also after options.
fn with_command(mut args: Vec<OsString>) -> Vec<OsString> {
    let is_option = |word: &OsString| word.as_encoded_bytes().starts_with(b"-");
    if !args.get(1).is_some_and(is_option) {
        return args;
    }
    let parser = args::parser();
    let mut first = 1;
    while let Some(words) = args.get(first).and_then(|word| args::words_of_option(&parser, word)) {
        first += words;
    }
    if args.get(first).is_some_and(|word| word == "-p" || word == "--print") {
        // Options before it are those of the run.
        args.insert(1, "run".into());
    }
    args
}

/// Prints help, the version or what is wrong with a command line, each to its own stream.
fn print_parse_error(error: clap::Error, words: &[OsString]) -> u8 {
    let style = TerminalStyle::detect();
    let paint = if error.use_stderr() { style.notes } else { style.results };
    let text = error.render();
    let is_hidden = |word: &OsString| word.to_string_lossy().chars().any(shown::is_hidden);
    let text = match error.use_stderr() && words.iter().any(is_hidden) {
        // It repeats words of the command line.
        true => shown::shown(&text.to_string()),
        false if paint.on => text.ansi().to_string(),
        false => text.to_string(),
    };
    match error.use_stderr() {
        true => show::note(with_backticks(&text).trim_end()),
        false => show::out(text.trim_end()),
    }
    if let Some(goal) = goal_without_run(&error, words) {
        show::note(&format!("\nhint: a goal is one argument: windlass run {goal:?}"));
    }
    if typos::text_like_option(&error, words).is_some() {
        show::note(
            "\nhint: put `--` before a text that begins with `-`, and options before the `--`",
        );
    }
    if error.kind() == ErrorKind::UnknownArgument
        && words.get(1).is_some_and(|word| word == "explain")
    {
        show::note("\nhint: a command is one argument: windlass explain 'ls -la'");
    }
    if error.use_stderr() { failure::USAGE } else { 0 }
}

/// The same quotes as in our own messages. clap's quotes come in pairs.
fn with_backticks(text: &str) -> String {
    let line = |line: &str| match line.matches('\'').count() % 2 {
        0 => line.replace('\'', "`"),
        _ => line.to_owned(),
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

/// The goal that somebody wrote without `run`, or without quotes.
fn goal_without_run(error: &clap::Error, words: &[OsString]) -> Option<String> {
    let is_help = words.get(1).is_some_and(|word| word == "help");
    if is_help || error.get(ContextKind::SuggestedSubcommand).is_some() {
        return None;
    }
    let (kind, place) = match error.kind() {
        // After a known command it is not a goal.
        ErrorKind::InvalidSubcommand if args::parser().find_subcommand(words.get(1)?).is_some() => {
            return None;
        }
        ErrorKind::InvalidSubcommand => (ContextKind::InvalidSubcommand, 1),
        ErrorKind::UnknownArgument if words.get(1)? == "run" => (ContextKind::InvalidArg, 2),
        _ => return None,
    };
    let Some(ContextValue::String(wrong)) = error.get(kind) else { return None };
    let words: Vec<_> = words.iter().skip(place).map(|word| word.to_string_lossy()).collect();
    let plain = |word: &str| !word.starts_with('-');
    let goal: Vec<_> = words.iter().map(AsRef::as_ref).take_while(|word| plain(word)).collect();
    let goal = goal.join(" ");
    (plain(wrong) && goal.contains(' ') && goal.contains(wrong.as_str())).then_some(goal)
}
