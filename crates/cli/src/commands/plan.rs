//! `plan`: plans, their issues, decisions and snapshots.

mod files;
mod ledger;
mod run;

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use serde::Serialize;
use windlass_coordinator::plans::Notes;
use windlass_coordinator::slash::Block;
use windlass_core::planning::{Resolution, Severity};

use self::run::RunPlan;
use super::{AppContext, Execute, Start, follow_up};
use crate::args::values::{self, one_of};
use crate::failure::Failure;
use crate::show::{self, note, out_json};

/// Make plans, work through them, and keep their issues, decisions and snapshots
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct PlanCommand {
    /// What to do
    #[command(subcommand)]
    pub action: PlanAction,
    /// The project's directory
    #[arg(long, global = true, value_name = "DIR", default_value = ".", value_parser = values::directory())]
    pub workspace: PathBuf,
    /// Print the result as JSON
    #[arg(long, global = true)]
    pub json: bool,
}

const EXAMPLES: &str = "\
Examples:
  windlass plan new checkout --template feature
  windlass plan activate checkout     load exactly what it names
  windlass plan run                   work through it; again after a kill
  windlass plan status                how far it is
  windlass plan log-issue --severity=high --task=t02 --owner=intel \\
      --description=\"typecheck fails on schema\"
  windlass plan log-decision --title=\"NOT NULL\" --reasoning=\"gaps\" \\
      --alternatives=\"optional field,documentation only\"
  windlass plan save-snapshot --task=t02 --from snapshot.json
  windlass plan load-snapshot --task=t03

A plan is `.windlass/plans/NAME/plan.json`, or any file you name. See
docs/plans.md.";

/// What to do with plans.
#[derive(Debug, Subcommand)]
pub enum PlanAction {
    /// Create a new plan
    New {
        /// The new plan's name
        name: String,
        /// The template to start from
        #[arg(long, value_name = "TEMPLATE", default_value = "feature")]
        template: String,
    },
    /// List the plans of this project
    List,
    /// Check a plan and name every mistake; exit code 2 if there is one
    Validate {
        /// The plan: a file, or a name of `.windlass/plans` [default: the active one]
        plan: Option<String>,
    },
    /// Show what a plan says
    Show {
        /// The plan: a file, or a name of `.windlass/plans` [default: the active one]
        plan: Option<String>,
    },
    /// Load exactly the skills and MCP servers that a plan names
    Activate {
        /// The plan: a file, or a name of `.windlass/plans`
        plan: Option<String>,
        /// Work on its finished tasks once more; without it they stay finished
        #[arg(long)]
        again: bool,
    },
    /// Show the progress of a plan
    Status {
        /// The plan's name [default: the active one]
        plan: Option<String>,
    },
    /// Work through the active plan; run it again to continue
    Run(Box<RunPlan>),
    /// Check that every prompt names what to use; exit code 1 if one does not
    ValidatePrompts {
        /// The plan: a file, or a name of `.windlass/plans` [default: the active one]
        plan: Option<String>,
        /// Check all plans of this project and all templates; what is wrong there is a warning
        #[arg(long)]
        all: bool,
        /// Treat warnings as errors
        #[arg(long)]
        strict: bool,
    },
    /// Log an issue that is left open
    #[command(override_usage = "windlass plan log-issue [OPTIONS] --severity <SEVERITY>\n\
                                \x20                              --description <TEXT>")]
    LogIssue {
        /// How bad it is: low, medium, high or critical
        #[arg(long, value_name = "SEVERITY", value_parser = one_of(Severity::ALL, Severity::as_str), hide_possible_values = true)]
        severity: Severity,
        /// The task of the plan that it concerns
        #[arg(long, value_name = "TASK")]
        task: Option<String>,
        /// The team or the person that should look at it
        #[arg(long, value_name = "OWNER")]
        owner: Option<String>,
        /// What is wrong, and where
        #[arg(long, value_name = "TEXT")]
        description: String,
    },
    /// List the issues of this project
    Issues {
        /// Only those of this task
        #[arg(long, value_name = "TASK")]
        task: Option<String>,
        /// Only those of this severity
        #[arg(long, value_name = "SEVERITY", value_parser = one_of(Severity::ALL, Severity::as_str), hide_possible_values = true)]
        severity: Option<Severity>,
        /// Only those of this team or person
        #[arg(long, value_name = "OWNER")]
        owner: Option<String>,
        /// Only those that are not resolved
        #[arg(long)]
        open: bool,
    },
    /// Close an issue and say how it was resolved
    ResolveIssue {
        /// The issue: its id or any unique suffix of it
        issue: String,
        /// What became of it: fixed, not_an_issue, duplicate or wont_fix
        #[arg(long, value_name = "RESOLUTION", value_parser = resolution)]
        resolution: Resolution,
    },
    /// Log a decision with its reasoning and the alternatives
    #[command(override_usage = "windlass plan log-decision [OPTIONS] --title <TEXT>\n\
                                \x20                                 --reasoning <TEXT> --alternatives <LIST>")]
    LogDecision {
        /// What was decided
        #[arg(long, value_name = "TEXT")]
        title: String,
        /// Why it was decided
        #[arg(long, value_name = "TEXT")]
        reasoning: String,
        /// What else was possible, with commas between; may be repeated
        #[arg(long, value_name = "LIST", required = true, value_delimiter = ',')]
        alternatives: Vec<String>,
        /// The task of the plan that it concerns
        #[arg(long, value_name = "TASK")]
        task: Option<String>,
    },
    /// List the decisions of this project
    Decisions {
        /// Only those of this task
        #[arg(long, value_name = "TASK")]
        task: Option<String>,
    },
    /// Save what the next task must know
    SaveSnapshot(Box<ledger::SaveSnapshot>),
    /// Read what a task left, or what the tasks before it left
    LoadSnapshot {
        /// The task [default: the one that was saved last]
        #[arg(long, value_name = "TASK")]
        task: Option<String>,
    },
    /// List the templates of plans, and check them
    ListTemplates {
        /// A template of your own to check; may be repeated
        #[arg(long, value_name = "FILE")]
        check: Vec<PathBuf>,
    },
    /// Show how full a task's context is, and what to do about it
    Budget {
        /// The task [default: the last of this directory]
        task: Option<String>,
    },
    /// Print the JSON Schema of a plan
    Schema,
    /// Print the section on task boundaries for AGENTS.md or CLAUDE.md
    Guidance,
}

/// A resolution; `not-an-issue` is written with either stroke.
fn resolution(text: &str) -> Result<Resolution, String> {
    text.replace('-', "_").parse().map_err(|unknown: windlass_core::axes::UnknownValue| {
        format!("allowed: {}", unknown.allowed)
    })
}

/// What a subcommand works with.
struct PlanContext<'a> {
    app: &'a AppContext,
    directory: &'a Path,
    json: bool,
}

impl PlanContext<'_> {
    /// The issues, decisions and snapshots of the directory's project.
    fn notes(&self) -> Result<Notes<'_>, Failure> {
        Ok(self.app.coordinator.plans().notes(self.directory)?)
    }

    /// Prints an answer: as data, or drawn.
    fn print(&self, data: &impl Serialize, blocks: impl FnOnce() -> Vec<Block>) {
        match self.json {
            true => out_json(&serde_json::json!(data).to_string()),
            false => show::replies::print_blocks(&blocks(), self.app.style),
        }
    }

    /// Says something to a person, and nothing where data is wanted.
    fn note(&self, text: &str) {
        if !self.json {
            note(text);
        }
    }
}

impl Execute for PlanCommand {
    fn execute(self, start: Start) -> Result<u8, Failure> {
        let Self { action, workspace, json } = self;
        let workspace = follow_up::real_directory(&workspace);
        if let PlanAction::Run(run) = action {
            return run::run(start, &workspace, json, *run);
        }
        let (app, _) = start.app_in(&workspace, Vec::new())?;
        let context = PlanContext { app: &app, directory: &workspace, json };
        match action {
            PlanAction::Run(_) => unreachable!("carried out above"),
            PlanAction::New { name, template } => files::new(&context, &name, &template),
            PlanAction::List => files::list(&context),
            PlanAction::Validate { plan } => files::validate(&context, plan.as_deref()),
            PlanAction::Show { plan } => files::show(&context, plan.as_deref()),
            PlanAction::Activate { plan, again } => {
                files::activate(&context, plan.as_deref(), again)
            }
            PlanAction::Status { plan } => run::status(&context, plan.as_deref()),
            PlanAction::ValidatePrompts { plan, all, strict } => {
                files::validate_prompts(&context, plan.as_deref(), all, strict)
            }
            PlanAction::ListTemplates { check } => files::templates(&context, &check),
            PlanAction::Schema => {
                show::out(windlass_coordinator::plans::SCHEMA.trim_end());
                Ok(0)
            }
            PlanAction::Guidance => {
                show::out(windlass_coordinator::plans::GUIDANCE.trim_end());
                Ok(0)
            }
            action => ledger::execute(&context, action),
        }
    }
}
