//! `permissions`: what people have allowed, for one session or for good, and taking it back.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use jiff::Timestamp;
use windlass_coordinator::{Error, SessionRule};
use windlass_core::id::TaskId;
use windlass_core::injection::Control;
use windlass_core::policy::{Class, Pattern};
use windlass_core::shown::{shown_line, shown_path};
use windlass_shell::{Context, analyze};

use super::{AppContext, Execute, Start};
use crate::args::values::whole;
use crate::failure::Failure;
use crate::show::{self, out, out_json};
use crate::wiring::place::TaskDirectories;

/// List what you have allowed, allow more in advance, and revoke it
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub struct Permissions {
    #[command(subcommand)]
    pub action: Option<PermissionsAction>,
    /// Show only session rules of this task: its id or any unique suffix of it
    #[arg(long)]
    pub task: Option<String>,
    /// Revoke session rule N; for a standing rule: `permissions revoke N`
    #[arg(long, value_name = "N")]
    pub revoke: Option<usize>,
    /// Print the result as JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Subcommand)]
pub enum PermissionsAction {
    /// List standing rules, and session rules: what `Allow All` has allowed
    List {
        /// Print the result as JSON
        #[arg(long)]
        json: bool,
    },
    /// Allow commands that match a pattern from now on, without asking
    Allow {
        /// Program, words and options: `cargo test`, `git push origin topic`, `rm -r *`; or a tool's name
        #[arg(required = true, num_args = 1.., trailing_var_arg = true, allow_hyphen_values = true)]
        pattern: Vec<String>,
        /// Only in this project: the repository around this directory, else the directory
        #[arg(long)]
        project: bool,
    },
    /// Revoke a standing rule; for a session rule: `permissions --revoke N`
    Revoke {
        /// Its number in the list
        #[arg(value_parser = whole::<i64>)]
        number: i64,
    },
}

const EXAMPLES: &str = "\
Examples:
  windlass permissions                     what is allowed, numbered
  windlass permissions allow 'git push origin topic'
  windlass permissions allow --project 'cargo test'
  windlass permissions revoke 1            revoke standing rule 1
  windlass permissions --revoke 1          revoke session rule 1

A rule never allows what every profile denies (`sudo`, `rm -rf`), nor what
cannot be read in advance. Commands that destroy are allowed only where every
path they name lies inside the workspace.";

impl Execute for Permissions {
    fn execute(self, start: Start) -> Result<u8, Failure> {
        let app = start.app_for_work()?;
        match &self.action {
            Some(PermissionsAction::Allow { pattern, project }) => {
                allow(&app, &pattern.join(" "), *project)
            }
            Some(PermissionsAction::Revoke { number }) => revoke(&app, *number),
            Some(PermissionsAction::List { json }) => list(&app, None, *json),
            None => match self.revoke {
                Some(number) => revoke_session_rule(&app, self.task.as_deref(), number),
                None => list(&app, self.task.as_deref(), self.json),
            },
        }
    }
}

fn allow(app: &AppContext, text: &str, project: bool) -> Result<u8, Failure> {
    let pattern = parse(text)?;
    let directory: Option<PathBuf> = match project {
        true => {
            let here = std::env::current_dir().map_err(anyhow::Error::from)?;
            // A task that starts here may use the whole repository, and so may the rule.
            let task = TaskId::new(Timestamp::now());
            Some(TaskDirectories::of_directory(&app.environment, &here, task).top)
        }
        false => None,
    };
    let user = app.environment.user();
    let given = app.coordinator.standing_rules().allow(&pattern, directory.as_deref(), &user);
    let number = app.runtime.block_on(given)?;
    let place = match &directory {
        Some(directory) => format!("in {}", shown_path(directory)),
        None => "in every project".to_owned(),
    };
    let pattern = shown_line(&pattern.to_string());
    show::note(&format!(
        "rule {number}: `{pattern}` is allowed {place}, for tasks that start or resume from now on"
    ));
    Ok(0)
}

/// A pattern that a rule can be of.
fn parse(text: &str) -> Result<Pattern, Failure> {
    let example = "name a program and what must be among its words, as in `cargo test`";
    let named =
        text.trim_start().starts_with(|c: char| c.is_ascii_alphanumeric() || c == '.' || c == '/');
    let pattern = Pattern::new(text).filter(|_| named);
    let pattern = pattern.ok_or_else(|| {
        Failure::usage(format!("`{}` is not a pattern of a command", shown_line(text)), example)
    })?;
    let analysis = analyze(text, &Context::new("/workspace", "/home"));
    if analysis.assessment.class == Class::Catastrophic {
        let (text, reason) = (shown_line(text), &analysis.assessment.reason);
        return Err(Failure::usage(
            format!("no rule can allow `{text}`, which is denied under every profile: {reason}"),
            "see `windlass explain` for what would be asked instead",
        ));
    }
    Ok(pattern)
}

fn revoke(app: &AppContext, number: i64) -> Result<u8, Failure> {
    let rules = app.coordinator.standing_rules();
    let found = rules.all()?.into_iter().find(|rule| rule.number == number);
    if let Some(rule) = found
        && app.runtime.block_on(rules.revoke(number))?
    {
        show::note(&format!("revoked standing rule {number}: {}", shown_line(&rule.pattern)));
        return Ok(0);
    }
    Err(Failure::usage(
        format!("there is no standing rule {number}"),
        "list them with `windlass permissions`; for a session rule: `windlass permissions --revoke N`",
    ))
}

/// What `Allow All` has allowed in sessions and for single tasks, or for one task.
fn session_rules(app: &AppContext, task: Option<&str>) -> Result<Vec<SessionRule>, Failure> {
    let tasks = app.coordinator.tasks();
    let Some(task) = task else { return Ok(app.coordinator.sessions().rules()?) };
    let state = tasks.state(tasks.find(task)?)?;
    let (id, session) = (state.id(), state.command().session_id);
    let of_task = |rule| SessionRule { session, task: Some(id), rule };
    Ok(state.allow_rules.into_iter().map(of_task).collect())
}

fn revoke_session_rule(app: &AppContext, task: Option<&str>, number: usize) -> Result<u8, Failure> {
    let rules = session_rules(app, task)?;
    let found = number.checked_sub(1).and_then(|at| rules.get(at));
    let granted = found.ok_or_else(|| {
        Failure::usage(
            format!("there is no session rule {number}"),
            "list them with `windlass permissions`; for a standing rule: \
             `windlass permissions revoke N`",
        )
    })?;
    let (rule, user) = (&granted.rule, app.environment.user());
    app.runtime.block_on(async {
        // What was allowed for the session is taken back from all its tasks.
        let is_of_session = match granted.task {
            Some(task) => {
                app.coordinator.tasks().get(task)?.is_some_and(|row| row.parent_id.is_none())
            }
            None => true,
        };
        let session = app.coordinator.session(granted.session);
        let is_revoked = is_of_session && session.revoke(rule, &user).await?;
        if let Some(task) = granted.task.filter(|_| !is_revoked) {
            let control = Control::Revoke { rule: rule.clone() };
            app.coordinator.control().steer(task, control, &user).await?;
        }
        Ok::<_, Error>(())
    })?;
    show::note(&format!("revoked session rule {number}: {}", line(granted)));
    Ok(0)
}

/// Where a rule holds, and what it allows.
fn line(granted: &SessionRule) -> String {
    let place = granted.task.map_or_else(|| granted.session.to_string(), |task| task.to_string());
    format!("{place}  {}", shown_line(&granted.rule.to_string()))
}

fn list(app: &AppContext, task: Option<&str>, json: bool) -> Result<u8, Failure> {
    let standing = match task {
        Some(_) => Vec::new(),
        None => app.coordinator.standing_rules().all()?,
    };
    let session = session_rules(app, task)?;
    if json {
        for rule in &standing {
            out_json(
                &serde_json::json!({
                    "number": rule.number, "pattern": rule.pattern, "directory": rule.directory,
                    "by": rule.by, "given_at": rule.given_at.to_string(),
                })
                .to_string(),
            );
        }
        for (number, granted) in (1..).zip(&session) {
            let line = serde_json::json!({
                "number": number, "session_id": granted.session, "task_id": granted.task,
                "rule": granted.rule,
            });
            out_json(&line.to_string());
        }
        return Ok(0);
    }
    if standing.is_empty() && session.is_empty() {
        show::note(
            "Nothing is allowed in advance: every question is asked.\n\
             A rule lets matching commands run without a question. Add one with\n  \
             windlass permissions allow --project 'cargo test'",
        );
        return Ok(0);
    }
    if !standing.is_empty() {
        out("Standing rules (revoke with `windlass permissions revoke N`)");
    }
    for rule in &standing {
        let place = rule.directory.as_deref().unwrap_or("every project");
        let (pattern, place) = (shown_line(&rule.pattern.to_string()), shown_line(place));
        out(&format!("{:>3}  {pattern}  ({place})", rule.number));
    }
    if !session.is_empty() {
        out("Session rules, from `Allow All` (revoke with `windlass permissions --revoke N`)");
    }
    for (number, granted) in (1..).zip(&session) {
        out(&format!("{number:>3}  {}", line(granted)));
    }
    Ok(0)
}
