//! `windlass`: runs AI agents on long tasks.

use std::process::ExitCode;

fn main() -> ExitCode {
    windlass_cli::own_memory::hide();
    windlass_cli::run(std::env::args_os(), windlass_cli::Hooks::default())
}
