//! `config`: every setting, its value and its source.

use std::path::PathBuf;

use clap::Args;
use windlass_core::shown::shown_line;
use windlass_term::Table;

use super::{Execute, Start};
use crate::failure::Failure;
use crate::show::{self, out_json};
use crate::wiring::Environment;

/// Show every setting, its value and where that came from
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct ShowConfig {
    /// The directory whose project file is read
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub workspace: PathBuf,
    /// Show only settings that differ from their default
    #[arg(long)]
    pub changed: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

const EXAMPLES: &str = "\
Examples:
  windlass config                     every setting and where it came from
  windlass config --changed           only what is not at its default
  windlass config --json | jq .key";

impl Execute for ShowConfig {
    fn execute(self, start: Start) -> Result<u8, Failure> {
        config(&start.environment()?, &self)
    }
}

pub(super) fn config(environment: &Environment, args: &ShowConfig) -> Result<u8, Failure> {
    let config = environment.config(&args.workspace)?;
    let rows = config.report().into_iter().filter(|row| !args.changed || row.source != "default");
    if args.json {
        rows.for_each(|row| out_json(&serde_json::to_string(&row).unwrap_or_default()));
    } else {
        let mut table = Table::new(&["SETTING", "VALUE", "FROM"], &[]);
        rows.for_each(|row| {
            let value = row.value.unwrap_or_else(|| "-".to_owned());
            table.row([row.key, value, row.source].iter().map(|cell| shown_line(cell)).collect());
        });
        show::print_table(&table);
    }
    show::print_config_notices(&config);
    Ok(0)
}
