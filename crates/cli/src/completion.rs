//! What the shell completes: commands, options and their words from the parser, ids from the store.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use clap_complete::CompleteEnv;
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};
use windlass_coordinator::Coordinator;
use windlass_coordinator::views::Filter;
use windlass_core::text::{one_line, suffix};

use crate::args::parser;
use crate::failure::Failure;
use crate::show::SHORT_ID;
use crate::wiring::{self, Environment};

/// Set by the scripts of `windlass completions` when they ask for words.
pub const VARIABLE: &str = "WINDLASS_COMPLETE";

/// How many tasks, questions or sessions are offered, the newest.
const OFFERED: u32 = 50;

/// How much of a goal is shown beside an id.
const GOAL_WIDTH: usize = 60;

/// Answers the shell, if it is the shell that asks. What cannot be completed is left to the shell.
pub fn answers(words: &[OsString]) -> bool {
    let here = std::env::current_dir().ok();
    let asked = CompleteEnv::with_factory(|| with_ids(parser())).var(VARIABLE);
    asked.try_complete(words.iter().cloned(), here.as_deref()).unwrap_or(true)
}

/// Gives each argument that names a task, a question or a session its ids.
fn with_ids(command: clap::Command) -> clap::Command {
    // In a plan's commands a task is one of the plan's own.
    if command.get_name() == "plan" {
        return command;
    }
    let command = command.mut_args(|arg| match arg.get_id().as_str() {
        "task" => arg.add(ArgValueCompleter::new(|typed: &OsStr| complete_ids(typed, tasks))),
        "question" => {
            arg.add(ArgValueCompleter::new(|typed: &OsStr| complete_ids(typed, questions)))
        }
        "session" => arg.add(ArgValueCompleter::new(|typed: &OsStr| complete_ids(typed, sessions))),
        _ => arg,
    });
    command.mut_subcommands(with_ids)
}

/// An id and what is said of it.
type IdLabel = (String, String);

/// The ids that what is typed may become: their ends, as lists show them, or whole ones.
fn complete_ids(
    typed: &OsStr,
    list: fn(&Coordinator) -> Result<Vec<IdLabel>, Failure>,
) -> Vec<CompletionCandidate> {
    let Some(typed) = typed.to_str() else { return Vec::new() };
    let named = open().and_then(|coordinator| list(&coordinator).ok()).unwrap_or_default();
    let candidate = |(id, about): IdLabel| {
        let short = suffix(&id, SHORT_ID).to_owned();
        let value = [short, id].into_iter().find(|id| begins(id, typed))?;
        Some(CompletionCandidate::new(value).help(Some(about.into())))
    };
    named.into_iter().filter_map(candidate).collect()
}

fn begins(id: &str, typed: &str) -> bool {
    id.get(..typed.len()).is_some_and(|start| start.eq_ignore_ascii_case(typed))
}

/// The store as it is: a shell that completes a word creates none.
fn open() -> Option<Coordinator> {
    let environment = Environment::new(data_flag()).ok()?;
    environment.data.is_dir().then_some(())?;
    wiring::coordinator(&environment, windlass_store::Options::default()).ok()
}

/// `--data` on the line that is completed, or its variable.
fn data_flag() -> Option<PathBuf> {
    let words: Vec<OsString> = std::env::args_os().collect();
    let flag = words.iter().position(|word| word == "--data").and_then(|at| words.get(at + 1));
    flag.cloned().or_else(|| std::env::var_os("WINDLASS_DATA")).map(PathBuf::from)
}

fn tasks(coordinator: &Coordinator) -> Result<Vec<IdLabel>, Failure> {
    let filter = Filter { limit: Some(OFFERED as usize), ..Filter::default() };
    let rows = coordinator.tasks().rows(&filter)?;
    let named = rows.into_iter().map(|row| (row.id.to_string(), row.goal_summary(GOAL_WIDTH)));
    Ok(named.collect())
}

fn questions(coordinator: &Coordinator) -> Result<Vec<IdLabel>, Failure> {
    let open = coordinator.inbox().open()?.into_iter().take(OFFERED as usize);
    let named = open.map(|asked| {
        (asked.row.question.id.to_string(), one_line(&asked.row.question.question, GOAL_WIDTH))
    });
    Ok(named.collect())
}

fn sessions(coordinator: &Coordinator) -> Result<Vec<IdLabel>, Failure> {
    let rows = coordinator.sessions().newest(OFFERED)?;
    let named = rows.into_iter().map(|row| (row.id.to_string(), row.workspace.unwrap_or_default()));
    Ok(named.collect())
}
