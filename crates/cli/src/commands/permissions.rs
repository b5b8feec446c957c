//! `permissions`: what people have allowed, for one session or for good, and taking it back.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use jiff::Timestamp;
use windlass_coordinator::views::Filter;
use windlass_core::id::TaskId;
use windlass_core::injection::Control;
use windlass_core::policy::{AllowRule, Class, Pattern};
use windlass_core::shown::{shown_line, shown_path};
use windlass_shell::{Context, analyze};

use super::{AppContext, Execute, Start};
use crate::args::values::whole;
use crate::failure::Failure;
use crate::show::{self, out, out_json};
use crate::wiring::place::Placed;

/// List what you have allowed, allow more beforehand, and revoke it
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub struct Permissions {
    #[command(subcommand)]
    pub action: Option<Action>,
    /// Show only session rules of this task: its id or any unique suffix of it
    #[arg(long)]
    pub task: Option<String>,
    /// Revoke the session rule with this number in the list
    #[arg(long, value_name = "N")]
    pub revoke: Option<usize>,
    /// Print the result as JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Subcommand)]
pub enum Action {
    /// List standing rules, and what `Allow All` has allowed in sessions
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
    /// Take a standing rule back
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
  windlass permissions revoke 1            ask again from now on

A rule never allows what every profile denies (`sudo`, `rm -rf`), nor what
cannot be read beforehand. Commands that destroy are allowed only where every
path they name lies inside the workspace.";

impl Execute for Permissions {
    fn execute(self, start: Start) -> Result<u8, Failure> {
        let app = start.app()?;
        match &self.action {
            Some(Action::Allow { pattern, project }) => allow(&app, &pattern.join(" "), *project),
            Some(Action::Revoke { number }) => revoke(&app, *number),
            Some(Action::List { json }) => list(&app, None, *json),
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
            Some(Placed::of_directory(&app.environment, &here, task).top)
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
    if app.runtime.block_on(app.coordinator.standing_rules().revoke(number))? {
        show::note(&format!("revoked rule {number}"));
        return Ok(0);
    }
    Err(no_rule(number))
}

fn no_rule(number: impl std::fmt::Display) -> Failure {
    Failure::usage(format!("there is no rule {number}"), "list them with `windlass permissions`")
}

/// The session rules of live tasks, or of one.
fn session_rules(
    app: &AppContext,
    task: Option<&str>,
) -> Result<Vec<(TaskId, AllowRule)>, Failure> {
    let tasks = app.coordinator.tasks();
    let ids = match task {
        Some(task) => vec![tasks.find(task)?],
        None => {
            let live = Filter { live: true, ..Filter::default() };
            tasks.rows(&live)?.into_iter().map(|row| row.id).collect()
        }
    };
    let mut rules = Vec::new();
    for id in ids {
        rules.extend(tasks.state(id)?.allow_rules.into_iter().map(|rule| (id, rule)));
    }
    Ok(rules)
}

fn revoke_session_rule(app: &AppContext, task: Option<&str>, number: usize) -> Result<u8, Failure> {
    let rules = session_rules(app, task)?;
    let found = number.checked_sub(1).and_then(|at| rules.get(at));
    let (task, rule) = found.ok_or_else(|| no_rule(number))?;
    let control = Control::Revoke { rule: rule.clone() };
    let user = app.environment.user();
    let row = app.coordinator.tasks().get(*task)?;
    app.runtime.block_on(async {
        // What was allowed for the session is taken back from all its tasks.
        if let Some(row) = row.filter(|row| row.parent_id.is_none()) {
            app.coordinator.session(row.session_id).revoke(rule, &user).await?;
        }
        app.coordinator.control().steer(*task, control, &user).await
    })?;
    show::note(&format!("revoked for {task}: {rule}"));
    Ok(0)
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
        for (index, (task, rule)) in session.iter().enumerate() {
            let line = serde_json::json!({ "number": index + 1, "task_id": task, "rule": rule });
            out_json(&line.to_string());
        }
        return Ok(0);
    }
    if standing.is_empty() && session.is_empty() {
        show::note(
            "Nothing is allowed beforehand: every question is asked.\n\
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
        out("Rules of sessions, from `Allow All` (revoke with `windlass permissions --revoke N`)");
    }
    for (index, (task, rule)) in session.iter().enumerate() {
        out(&format!("{:>3}  {task}  {}", index + 1, shown_line(&rule.to_string())));
    }
    Ok(0)
}
