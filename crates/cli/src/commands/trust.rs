//! `trust`: approves the files of a project that act only when approved (§15.13).

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;
use windlass_core::shown::{shown, shown_line, shown_path};
use windlass_skills::Scope;
use windlass_term::{Table, TerminalStyle};

use super::{Execute, Start, ask};
use crate::config::{self, File, Trust};
use crate::failure::Failure;
use crate::show::{self, note, out};
use crate::wiring::{self, Environment, mcp, trust};

/// Approve the settings of this project's file, as it is now
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct ApproveProject {
    /// The project's directory
    #[arg(value_name = "DIR", default_value = ".")]
    pub workspace: PathBuf,
    /// Approve without asking
    #[arg(long, short)]
    pub yes: bool,
}

const EXAMPLES: &str = "\
Examples:
  windlass trust                      show what the file would set, then ask
  windlass trust ../other --yes

A changed file has to be approved again.";

impl Execute for ApproveProject {
    fn execute(self, start: Start) -> Result<u8, Failure> {
        trust(&start.environment()?, &self)
    }
}

/// Shows what a project's files would be allowed to do, and approves them as they are now: its settings,
/// its MCP servers, and skills that bring servers or hooks along (§15.13).
pub(super) fn trust(environment: &Environment, args: &ApproveProject) -> Result<u8, Failure> {
    let files = approvable(environment, &args.workspace)?;
    let names = |files: &[File]| {
        let names: Vec<_> = files.iter().map(|file| format!("`{}`", file.path.display())).collect();
        names.join(", ")
    };
    if files.is_empty() {
        let path = config::read::project_file(&args.workspace);
        return Err(Failure::usage(
            format!("there is no `{}`", path.display()),
            "a project without that file, MCP servers or skills with hooks needs no approval",
        ));
    }
    let unknown = |file: &File| trust::of(&environment.data, file) == Trust::Unknown;
    let (files, known): (Vec<_>, Vec<_>) = files.into_iter().partition(unknown);
    if files.is_empty() {
        note(&format!("already approved: {}", names(&known)));
        return Ok(0);
    }
    let names = names(&files);
    for file in &files {
        if file.path == config::read::project_file(&args.workspace) {
            show_settings(environment, &args.workspace, file)?;
        } else {
            out(&format!("{}:", shown_path(&file.path)));
            out(&shown(&file.text));
        }
    }
    if !args.yes && !TerminalStyle::detect().can_ask {
        return Err(Failure::usage(
            format!("{names} not approved: nobody is there to ask"),
            "read what it says, then run `windlass trust --yes`",
        ));
    }
    if !args.yes && !ask::confirmed(&format!("Approve {names}, as shown?")) {
        note("not approved");
        return Ok(1);
    }
    for file in &files {
        trust::approve(&environment.data, file)
            .with_context(|| format!("`{}` cannot be written to", environment.data.display()))?;
        note(&format!("approved `{}`, until it changes", file.path.display()));
    }
    Ok(0)
}

/// Files of a project that do nothing, or not all they say, before a person has approved them.
fn approvable(environment: &Environment, workspace: &Path) -> Result<Vec<File>, Failure> {
    let skills = wiring::skills::now(environment, workspace);
    let of_project = |scope: Scope| scope == Scope::Project;
    let servers = mcp::skill_files(&skills).into_iter().filter(|(_, scope)| of_project(*scope));
    let hooked =
        skills.list().filter(|skill| of_project(skill.scope) && skill.meta.hooks.is_some());
    let paths = [config::read::project_file(workspace), mcp::project_file(workspace)]
        .into_iter()
        .chain(servers.map(|(path, _)| path))
        .chain(hooked.map(|skill| skill.path.clone()));
    let mut files = Vec::new();
    for path in paths {
        let file =
            mcp::open(&path).with_context(|| format!("`{}` cannot be read", path.display()))?;
        files.extend(file);
    }
    Ok(files)
}

fn show_settings(environment: &Environment, workspace: &Path, file: &File) -> Result<(), Failure> {
    let approve = |_: &File| Trust::Approved;
    let (env, flags) = (environment.variables.clone(), environment.flags.clone());
    let config = config::read::load(workspace, env, flags, &approve)?;
    let place = format!("{}:", shown_path(&file.path));
    let mut table = Table::new(&["SETTING", "VALUE", "FROM"], &[]);
    for row in config.report().into_iter().filter(|row| row.source.contains(&place)) {
        let value = row.value.unwrap_or_default();
        table.row([row.key, value, row.source].iter().map(|cell| shown_line(cell)).collect());
    }
    show::print_table(&table);
    show::print_config_notices(&config);
    Ok(())
}
