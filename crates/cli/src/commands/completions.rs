//! `completions`: a script for the shell, which asks this program for the words that fit.

use clap::Args;
use clap_complete::env::Shells;

use super::{Execute, Start};
use crate::completion;
use crate::failure::Failure;
use crate::show::out;

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
        out(script(self.shell)?.trim());
        Ok(0)
    }
}

fn script(shell: clap_complete::Shell) -> anyhow::Result<String> {
    let shell = shell.to_string();
    let mut script = Vec::new();
    if let Some(completer) = Shells::builtins().completer(&shell) {
        let (name, variable) = ("windlass", completion::VARIABLE);
        completer.write_registration(variable, name, name, name, &mut script)?;
    }
    Ok(String::from_utf8(script)?)
}
