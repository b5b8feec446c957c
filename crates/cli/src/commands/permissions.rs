//! `permissions`: rules that people have allowed, and revoking them.

use clap::Args;
use windlass_coordinator::views::Filter;
use windlass_core::injection::Control;
use windlass_core::shown::shown_line;

use super::{AppContext, Execute, Start};
use crate::failure::Failure;
use crate::show::{self, out, out_json};

/// List what people have allowed, and revoke it
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Permissions {
    /// Show only rules of this task: its id or any unique suffix of it
    pub task: Option<String>,
    /// Revoke the rule with this number in the list
    #[arg(long, value_name = "N")]
    pub revoke: Option<usize>,
    /// Print the result as JSON
    #[arg(long)]
    pub json: bool,
}

const EXAMPLES: &str = "\
Examples:
  windlass permissions                what `Allow All` has allowed, numbered
  windlass permissions --revoke 1     ask again from now on";

impl Execute for Permissions {
    fn execute(self, start: Start) -> Result<u8, Failure> {
        permissions(&start.app()?, &self)
    }
}

/// Rules in force, and taking them back.
pub(super) fn permissions(app: &AppContext, args: &Permissions) -> Result<u8, Failure> {
    let coordinator = &app.coordinator;
    let tasks = match &args.task {
        Some(task) => vec![coordinator.tasks().find(task)?],
        None => {
            let live = Filter { live: true, ..Filter::default() };
            coordinator.tasks().rows(&live)?.into_iter().map(|row| row.id).collect()
        }
    };
    let mut number = 0;
    for task in tasks {
        for rule in coordinator.tasks().state(task)?.allow_rules {
            number += 1;
            if args.revoke == Some(number) {
                let user = app.environment.user();
                let control = Control::Revoke { rule: rule.clone() };
                app.runtime.block_on(coordinator.control().steer(task, control, &user))?;
                show::note(&format!("revoked for {task}: {}", shown_line(&rule.to_string())));
                return Ok(0);
            }
            if args.revoke.is_none() {
                let json = serde_json::json!({ "number": number, "task_id": task, "rule": rule });
                match args.json {
                    true => out_json(&json.to_string()),
                    false => {
                        out(&format!("{number:>3}  {task}  {}", shown_line(&rule.to_string())))
                    }
                }
            }
        }
    }
    match args.revoke {
        Some(wanted) => Err(Failure::usage(
            format!("there is no rule {wanted}"),
            "list them with `windlass permissions`",
        )),
        None if number == 0 && !args.json => {
            show::note("no rules: every question is asked");
            Ok(0)
        }
        None => Ok(0),
    }
}
