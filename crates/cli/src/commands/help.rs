//! `completions` and `man`: made from the same types as the command line itself.

use std::io::{self, Write as _};

use anyhow::Context as _;
use clap::CommandFactory as _;

use crate::args::{Args, Completions};
use crate::failure::Failure;

pub(super) fn completions(args: &Completions) -> u8 {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Args::command(), "windlass", &mut script);
    let _ = io::stdout().lock().write_all(&script);
    0
}

/// One page for all commands, so that it can be read from one file.
pub(super) fn man() -> Result<u8, Failure> {
    let mut page = Vec::new();
    let mut program = Args::command();
    program.build();
    let man = clap_mangen::Man::new(program.clone());
    man.render(&mut page).context("the manual page cannot be made")?;
    for command in program.get_subcommands().filter(|command| command.get_name() != "help") {
        let man = clap_mangen::Man::new(command.clone());
        writeln!(page, ".SH \"WINDLASS {}\"", command.get_name().to_uppercase())
            .and_then(|()| man.render_description_section(&mut page))
            .and_then(|()| man.render_options_section(&mut page))
            .and_then(|()| man.render_extra_section(&mut page))
            .context("the manual page cannot be made")?;
    }
    let _ = io::stdout().lock().write_all(&page);
    Ok(0)
}
