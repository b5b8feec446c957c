//! `worker`: drives tasks that arrive on the bus, beside a service or other workers.

use clap::Args;

use super::serve::{self, ServiceRole};
use super::{Execute, Start};
use crate::args::ServeArgs;
use crate::failure::Failure;

/// Run tasks beside a service or other workers
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Worker {
    /// How it serves
    #[command(flatten)]
    pub options: ServeArgs,
}

const EXAMPLES: &str = "\
Examples:
  windlass worker                     help a `serve` of the same data directory
  REDIS_URL=redis://localhost windlass worker --tasks 8

A worker that is stopped hands its tasks back; if it dies, another takes them
within seconds.";

impl Execute for Worker {
    fn execute(self, start: Start) -> Result<u8, Failure> {
        serve::run(&start.app_for_service(&self.options)?, &self.options, ServiceRole::Worker)
    }
}
