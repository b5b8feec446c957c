//! `modes`: the roles that an agent can work in.

use clap::{Args, Subcommand};
use windlass_core::role::Role;

use super::{Execute, Start};
use crate::args::values;
use crate::failure::Failure;
use crate::show::{out, out_json};

/// Show the roles of agents: architect, executor and auditor
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Modes {
    #[command(subcommand)]
    pub action: ModesAction,
}

#[derive(Debug, Subcommand)]
pub enum ModesAction {
    /// Show a role, or all: its tools, and what its agents read
    Show {
        /// architect, executor or auditor
        #[arg(value_parser = values::one_of(Role::ALL, Role::as_str), hide_possible_values = true)]
        role: Option<Role>,
        /// Print the result as JSON
        #[arg(long)]
        json: bool,
    },
}

const EXAMPLES: &str = "\
Examples:
  windlass modes show                  all three
  windlass modes show auditor --json   for programs

In a conversation, /architect, /executor and /auditor switch to a role.";

impl Execute for Modes {
    fn execute(self, _start: Start) -> Result<u8, Failure> {
        let ModesAction::Show { role, json } = self.action;
        let roles: Vec<Role> = role.map_or_else(|| Role::ALL.to_vec(), |role| vec![role]);
        for (place, role) in roles.into_iter().enumerate() {
            let config = role.config();
            if json {
                out_json(&serde_json::to_string(&config).unwrap_or_default());
                continue;
            }
            if place > 0 {
                out("");
            }
            out(&format!("{role}"));
            out(&format!("  allowed  {}", config.allowed_tools.join(", ")));
            if !config.denied_tools.is_empty() {
                out(&format!("  denied   {}", config.denied_tools.join(", ")));
            }
            if config.requires_commitment {
                out("  needs a claimed commitment");
            }
            for line in config.system_prompt_addition.lines() {
                out(format!("  │ {line}").trim_end());
            }
        }
        Ok(0)
    }
}
