//! Arguments of the commands that run until they are stopped.

use clap::Args as ClapArgs;

use super::Place;

/// Arguments of `serve` and `worker`.
#[derive(Debug, ClapArgs)]
pub struct Serve {
    /// Tasks that it runs at once [default: `coordinator.worker_tasks`]
    #[arg(long, value_name = "N", value_parser = super::words::whole::<usize>)]
    pub tasks: Option<usize>,
    /// Where effects happen
    #[command(flatten)]
    pub place: Place,
}
