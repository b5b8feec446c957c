//! `completions`: a script for the shell, made from the same types as the command line.

use std::io::{self, Write as _};

use clap::Args;

use super::{Execute, Start};
use crate::args::parser;
use crate::failure::Failure;

/// Print a script that completes command lines in your shell
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Completions {
    /// The shell that the script is for
    #[arg(value_enum)]
    pub shell: clap_complete::Shell,
}

const EXAMPLES: &str = "\
Examples:
  windlass completions bash >> ~/.bash_completion
  windlass completions fish > ~/.config/fish/completions/windlass.fish
  windlass completions zsh > \"${fpath[1]}/_windlass\"";

impl Execute for Completions {
    fn execute(self, _: Start) -> Result<u8, Failure> {
        Ok(completions(&self))
    }
}

pub(super) fn completions(args: &Completions) -> u8 {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut parser(), "windlass", &mut script);
    let _ = io::stdout().lock().write_all(&script);
    0
}
