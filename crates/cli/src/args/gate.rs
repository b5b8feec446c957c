//! Arguments of the commands about the gate.

use clap::Args as ClapArgs;

/// Arguments of `explain`.
#[derive(Debug, ClapArgs)]
pub struct Explain {
    /// The command, as for `bash -c`
    pub command: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Read one JSON string a line from standard input, write one JSON object a line
    #[arg(long, conflicts_with = "command")]
    pub stdin: bool,
}

/// Arguments of `permissions`.
#[derive(Debug, ClapArgs)]
pub struct Permissions {
    /// Only this task's: its id or any unique suffix of it
    pub task: Option<String>,
    /// Take back the rule with this number
    #[arg(long, value_name = "N")]
    pub revoke: Option<usize>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}
