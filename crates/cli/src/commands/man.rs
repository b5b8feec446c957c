//! `man`: the manual page, made from the same types as the command line.

use std::io::{self, Write as _};

use anyhow::Context as _;
use clap::{Args, Command};

use super::{Execute, Start};
use crate::args::parser;
use crate::failure::Failure;
use crate::show::out;

/// Print the manual page
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Man {}

const EXAMPLES: &str = "\
Examples:
  windlass man > windlass.1 && man ./windlass.1";

impl Execute for Man {
    fn execute(self, _: Start) -> Result<u8, Failure> {
        man()
    }
}

/// One page for all commands, so that it can be read from one file.
pub(super) fn man() -> Result<u8, Failure> {
    let mut program = parser();
    program.build();
    let page = page(&program).context("the manual page cannot be made")?;
    out(String::from_utf8_lossy(&page).trim_end());
    Ok(0)
}

fn page(program: &Command) -> io::Result<Vec<u8>> {
    let mut page = Vec::new();
    let man = clap_mangen::Man::new(program.clone());
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    writeln!(page, ".SH SYNOPSIS\n.B windlass\n[\\fIOPTIONS\\fR] \\fICOMMAND\\fR ...")?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    writeln!(page, ".SH COMMANDS")?;
    commands(program, &mut page)?;
    examples(program, ".SH EXAMPLES", &mut page)?;
    for command in visible(program) {
        section(command, &mut page)?;
        for below in visible(command) {
            section(below, &mut page)?;
        }
    }
    Ok(page)
}

fn visible(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|command| command.get_name() != "help")
}

/// What there is below a command, a line each.
fn commands(command: &Command, page: &mut Vec<u8>) -> io::Result<()> {
    for below in visible(command) {
        let about = below.get_about().map(ToString::to_string).unwrap_or_default();
        writeln!(page, ".TP\n\\fB{}\\fR\n{}", below.get_name(), escape(&about))?;
    }
    Ok(())
}

/// One command: how it is written, what it does, its own options and its examples. The options that
/// every command has are at the beginning.
fn section(command: &Command, page: &mut Vec<u8>) -> io::Result<()> {
    let own = command
        .clone()
        .mut_args(|arg| if arg.is_global_set() { arg.hide(true) } else { arg })
        .disable_help_flag(true);
    let usage = own.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage: ");
    let name = own.get_bin_name().unwrap_or_default().to_uppercase();
    writeln!(page, ".SH \"{name}\"\n.nf\n\\fB{}\\fR\n.fi\n.PP", escape(usage))?;
    let about = own.get_about().map(ToString::to_string).unwrap_or_default();
    writeln!(page, "{}", escape(&about))?;
    commands(&own, page)?;
    let mut options = Vec::new();
    clap_mangen::Man::new(own.clone()).render_options_section(&mut options)?;
    let options = String::from_utf8_lossy(&options).replace(".SH OPTIONS\n", ".SS Options\n");
    // A heading with nothing below it says nothing.
    if options.contains(".TP") {
        page.extend_from_slice(options.as_bytes());
    }
    examples(&own, ".SS Examples", page)
}

/// What the help of a command teaches, as it is laid out there.
fn examples(command: &Command, heading: &str, page: &mut Vec<u8>) -> io::Result<()> {
    let Some(text) = command.get_after_help().map(ToString::to_string) else { return Ok(()) };
    let text = text.trim_start_matches("Examples:\n");
    writeln!(page, "{heading}\n.nf\n{}\n.fi", escape(text))
}

/// Text that the formatter leaves as it is.
fn escape(text: &str) -> String {
    let text = text.replace('\\', "\\e").replace('-', "\\-");
    let line = |line: &str| match line.starts_with(['.', '\'']) {
        true => format!("\\&{line}"),
        false => line.to_owned(),
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}
