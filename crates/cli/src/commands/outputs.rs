//! `outputs`: the whole output of one command.

use std::io::{self, Write as _};

use anyhow::Context as _;
use clap::Args;
use windlass_coordinator::outputs::Stream;
use windlass_term::strip_controls;

use super::{AppContext, Execute, Start};
use crate::args::values::one_of;
use crate::failure::Failure;

/// Print the whole output of one command
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Outputs {
    /// The call, as `windlass logs` prints it: its id or any unique suffix of it
    pub id: String,
    /// Print only this stream: stdout or stderr
    #[arg(long, value_name = "STREAM", value_parser = one_of(Stream::ALL, Stream::as_str), hide_possible_values = true)]
    pub stream: Option<Stream>,
}

const EXAMPLES: &str = "\
Examples:
  windlass outputs 7K2M > output.txt
  windlass outputs 7K2M --stream stderr

Whole outputs are kept for 7 days.";

impl Execute for Outputs {
    fn execute(self, start: Start) -> Result<u8, Failure> {
        outputs(&start.app()?, &self)
    }
}

/// Prints a whole output: byte for byte into a pipe, harmless on a terminal.
pub(super) fn outputs(app: &AppContext, args: &Outputs) -> Result<u8, Failure> {
    let wanted: Vec<Stream> = match args.stream {
        Some(stream) => vec![stream],
        None => Stream::ALL.to_vec(),
    };
    let outputs = app.coordinator.artifacts().outputs();
    for mut reader in outputs.open(&outputs.find(&args.id)?, &wanted)? {
        copy(app, &mut reader).context("the output cannot be read")?;
    }
    Ok(0)
}

/// A reader that has gone away is not an error of ours.
fn copy(app: &AppContext, reader: &mut impl io::Read) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    if app.style.is_stdout_terminal {
        let mut bytes = Vec::new();
        reader.read_to_end(&mut bytes)?;
        let _ = stdout.write_all(strip_controls(&String::from_utf8_lossy(&bytes)).as_bytes());
        return Ok(());
    }
    match io::copy(reader, &mut stdout) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error),
        _ => Ok(()),
    }
}
