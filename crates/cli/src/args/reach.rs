//! Arguments of `skills` and `mcp`.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand};

use super::Place;

/// Arguments of `skills`.
#[derive(Debug, ClapArgs)]
pub struct Skills {
    /// What to do
    #[command(subcommand)]
    pub what: SkillsWhat,
    /// The project's directory
    #[arg(long, global = true, value_name = "DIR", default_value = ".")]
    pub workspace: PathBuf,
}

/// What to do with skills.
#[derive(Debug, Subcommand)]
pub enum SkillsWhat {
    /// List the skills that can be used here
    List {
        /// Print JSON lines
        #[arg(long)]
        json: bool,
    },
    /// Print one skill as it is now
    Show {
        /// Its name
        name: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Begin a new skill, with a first eval case
    New {
        /// Its name
        name: String,
        /// When to use it
        #[arg(long, value_name = "TEXT", default_value = "Say when to use this.")]
        description: String,
        /// Put it into the home directory, for all projects
        #[arg(long)]
        user: bool,
    },
    /// Say what is wrong with skill files; 1 if something is
    Check {
        /// Only this one
        name: Option<String>,
    },
    /// Run a skill's eval cases, with and without it
    Eval(Eval),
}

/// Arguments of `skills eval`.
#[derive(Debug, ClapArgs)]
pub struct Eval {
    /// The skill
    pub name: String,
    /// Only this case
    #[arg(long, value_name = "CASE")]
    pub case: Option<String>,
    /// How often each case is tried
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub trials: u32,
    /// The model, as `provider/model` or `script:FILE`
    #[arg(long, value_name = "MODEL")]
    pub model: Option<String>,
    /// Limit of active time of each trial: seconds, or such as `30m`
    #[arg(long, value_name = "TIME", default_value = "600", value_parser = super::words::seconds)]
    pub timeout: u64,
    /// Only with the skill
    #[arg(long)]
    pub only_with: bool,
    /// Print a JSON line for each trial
    #[arg(long)]
    pub json: bool,
    /// Where effects happen
    #[command(flatten)]
    pub place: Place,
}

/// Arguments of `mcp`.
#[derive(Debug, ClapArgs)]
pub struct Mcp {
    /// What to do
    #[command(subcommand)]
    pub what: McpWhat,
    /// The project's directory
    #[arg(long, global = true, value_name = "DIR", default_value = ".")]
    pub workspace: PathBuf,
}

/// What to do with MCP servers.
#[derive(Debug, Subcommand)]
pub enum McpWhat {
    /// List the servers that a task would have here
    List {
        /// Print JSON lines
        #[arg(long)]
        json: bool,
    },
    /// Start a server and say what it offers, and how that differs from what is pinned
    Test {
        /// Its name
        name: String,
        /// Accept what it says now
        #[arg(long)]
        pin: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
        /// Where it runs
        #[command(flatten)]
        place: Place,
    },
    /// List the servers that have a name of their own
    Presets,
}
