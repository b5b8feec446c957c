//! `mode`: the five axes of a session, and changing them.

use std::path::Path;

use clap::{Args, Subcommand};
use serde_json::json;
use windlass_coordinator::Error;
use windlass_coordinator::slash::SlashInput;
use windlass_coordinator::views::{SessionDetails, SessionSummary};
use windlass_core::axes::Axes;
use windlass_core::id::SessionId;
use windlass_core::shown::{shown, shown_line};
use windlass_core::text::one_line;
use windlass_term::numbers;

use super::named_task::GOAL_WIDTH;
use super::{AppContext, Execute, Start, follow_up};
use crate::failure::Failure;
use crate::show::{self, out, out_json, replies};

/// Show or change the mode of a session: its five axes
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Mode {
    /// What to do; without, show the axes
    #[command(subcommand)]
    pub action: Option<ModeAction>,
    /// The session: its id or any unique suffix of it [default: the last one of this directory]
    // The program's own `--session` would be taken for this one, which its subcommands share.
    #[arg(long = "session", id = "session_of_mode", value_name = "SESSION", global = true)]
    pub session: Option<String>,
    /// Print the result as JSON
    #[arg(long, global = true)]
    pub json: bool,
}

/// What is done with the mode.
#[derive(Debug, Subcommand)]
pub enum ModeAction {
    /// Change axes: MODE, or any of the options
    Set(Set),
    /// List the changes so far
    Log,
}

/// The axes to change.
#[derive(Debug, Args)]
pub struct Set {
    /// Work mode: chat, plan, build, review, repair or research
    pub mode: Option<String>,
    /// How much it does on its own: manual, assisted or autonomous
    #[arg(long, value_name = "CONTROL")]
    pub control: Option<String>,
    /// What it may do without asking: restricted, normal, trusted or unrestricted
    #[arg(long, value_name = "PROFILE")]
    pub permission_profile: Option<String>,
    /// Which configured model it asks: fast, smart or deep
    #[arg(long, value_name = "MODE")]
    pub model_mode: Option<String>,
    /// When: now, after-current-tool, after-current-unit, next-milestone or for-next-unit
    #[arg(long, value_name = "SCOPE")]
    pub scope: Option<String>,
}

const EXAMPLES: &str = "\
Examples:
  windlass mode                       of the last session of this directory
  windlass mode --json                the five axes, for programs
  windlass mode set review            another work mode
  windlass mode set --permission-profile restricted --scope after-current-tool
  windlass mode log                   every change, with who wanted it and why";

impl Execute for Mode {
    fn execute(self, start: Start) -> Result<u8, Failure> {
        mode(&start.app()?, &self)
    }
}

fn mode(app: &AppContext, args: &Mode) -> Result<u8, Failure> {
    let coordinator = app.service()?;
    let id = session(app, args.session.as_deref())?;
    let session = coordinator.session(id);
    if !args.json {
        note_session(app, id)?;
    }
    match &args.action {
        Some(ModeAction::Set(set)) => {
            let input = SlashInput::here(set.line()?, app.environment.user());
            let reply = app.runtime.block_on(session.run(input)).map_err(set_failure)?;
            match args.json {
                true => print_json(&session.details()?),
                false => replies::print(&reply, app.style),
            }
        }
        Some(ModeAction::Log) => log(app, id, args.json)?,
        None if args.json => print_json(&session.details()?),
        None => {
            let input = SlashInput::here("/mode", app.environment.user());
            replies::print(&app.runtime.block_on(session.run(input))?, app.style);
        }
    }
    Ok(0)
}

/// A wrong word is one of this command line, not of the slash command that it becomes.
fn set_failure(error: Error) -> Failure {
    let is_wrong = matches!(error, Error::BadCommand { .. });
    let failure = Failure::from(error);
    match is_wrong {
        true => Failure { hint: Some("see `windlass mode set --help`".to_owned()), ..failure },
        false => failure,
    }
}

impl Set {
    /// The slash command that does the same.
    fn line(&self) -> Result<String, Failure> {
        let options = [
            ("--control", &self.control),
            ("--permission-profile", &self.permission_profile),
            ("--model-mode", &self.model_mode),
            ("--scope", &self.scope),
        ];
        let given =
            options.iter().filter_map(|(name, value)| Some(format!("{name} {}", value.as_ref()?)));
        let given: Vec<_> = given.collect();
        let wants_change = given.iter().any(|option| !option.starts_with("--scope"));
        let words = match &self.mode {
            Some(mode) => format!("{mode} {}", given.join(" ")),
            None if wants_change => given.join(" "),
            None => {
                let hint = "name a work mode, or see `windlass mode set --help`";
                return Err(Failure::usage("there is nothing to change", hint));
            }
        };
        Ok(format!("/mode {words}"))
    }
}

/// The session that is named, else the last one of this directory. One of another directory is only changed by its id.
fn session(app: &AppContext, named: Option<&str>) -> Result<SessionId, Failure> {
    let sessions = app.coordinator.sessions();
    if let Some(text) = named {
        let none =
            || Failure::usage(format!("there is no session `{text}`"), "see `windlass sessions`");
        return sessions.find(text)?.ok_or_else(none);
    }
    let here = follow_up::real_directory(Path::new(".")).display().to_string();
    sessions.last_in(&here)?.ok_or_else(|| {
        let hint = "name one with `--session`: `windlass sessions` lists those of all directories";
        Failure::usage(format!("there is no session of `{here}`"), hint)
    })
}

/// Which session is meant and where it works, on stderr: a change of it reaches nothing else.
fn note_session(app: &AppContext, session: SessionId) -> Result<(), Failure> {
    let Some(SessionSummary { row, goal, directory }) =
        app.coordinator.sessions().summary(session)?
    else {
        return Ok(());
    };
    let age = numbers::age(row.updated_at, app.coordinator.now());
    let goal = goal.map(|goal| format!(" “{}”", one_line(&shown(goal.trim()), GOAL_WIDTH)));
    let place = directory.map(|directory| format!(" in {}", shown_line(&directory)));
    let (goal, place) = (goal.unwrap_or_default(), place.unwrap_or_default());
    show::note(&app.style.wrap_note(&format!("session {session}{place}{goal}, used {age} ago")));
    Ok(())
}

/// Five keys, and what is about to change (MS-004).
fn print_json(details: &SessionDetails) {
    let Axes { work_mode, run_control, permission_profile, model_mode, surface } = details.axes;
    let mut value = json!({
        "workMode": work_mode,
        "runControl": run_control,
        "permissionProfile": permission_profile,
        "modelMode": model_mode,
        "surface": surface,
    });
    if !details.pending.is_empty() {
        value["pending"] = json!(details.pending);
    }
    out_json(&value.to_string());
}

fn log(app: &AppContext, session: SessionId, json: bool) -> Result<(), Failure> {
    let changes = app.coordinator.sessions().transitions(session)?;
    if changes.is_empty() && !json {
        show::note("the axes have not changed");
    }
    for change in changes {
        if json {
            out_json(&serde_json::to_string(&change).unwrap_or_default());
            continue;
        }
        let at = change.timestamp.to_zoned(jiff::tz::TimeZone::system());
        out(&shown_line(&format!(
            "{}  {} → {}  {} ({}): {}",
            at.strftime("%Y-%m-%d %H:%M:%S"),
            change.from,
            change.to,
            change.scope,
            change.source,
            change.reason
        )));
    }
    Ok(())
}
