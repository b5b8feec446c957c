//! `metrics`: counters of the whole journal, for Prometheus.

use clap::Args;

use super::{AppContext, Execute, Start};
use crate::failure::Failure;
use crate::show::out;

/// Print counters and histograms of all tasks in Prometheus format
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Metrics {}

const EXAMPLES: &str = "\
Examples:
  windlass metrics | grep agent_tool_calls";

impl Execute for Metrics {
    fn execute(self, start: Start) -> Result<u8, Failure> {
        metrics(&start.app()?)
    }
}

/// `metrics`: what the journal adds up to.
pub(super) fn metrics(app: &AppContext) -> Result<u8, Failure> {
    // Where nothing can be written they are added up again the next time.
    let _ = app.runtime.block_on(app.coordinator.costs().keep_sums());
    out(app.coordinator.costs().metrics()?.prometheus().trim_end());
    Ok(0)
}
