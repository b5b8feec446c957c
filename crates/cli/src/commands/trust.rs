//! `trust`: approves the files of a project that act only when approved (§15.13).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;
use windlass_core::shown::{shown_line, shown_path};
use windlass_skills::{Scope, Skill, eval};
use windlass_term::{Table, TerminalStyle, numbers};

use super::{Execute, Start, ask};
use crate::config::report::Row;
use crate::config::{self, Config, File, Sources, Trust};
use crate::failure::Failure;
use crate::show::{self, note, out};
use crate::wiring::trust::ApprovableFile;
use crate::wiring::{self, Environment, contract, mcp};

/// Approve what this project's files set and run, as they are now
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
  windlass trust                      show what the files set and run, then ask
  windlass trust ../other --yes

A file must be approved again when it, or a script that it runs, has changed.";

impl Execute for ApproveProject {
    fn execute(self, start: Start) -> Result<u8, Failure> {
        trust(&start.environment()?, &self)
    }
}

/// Shows what a project's files would be allowed to do, and approves them exactly as shown: its settings, its MCP
/// servers, its workflows, the commands of its repository's settings, its skills that bring servers or hooks or take the
/// name of another, their graders, and its plans with their agents (§15.13).
pub(super) fn trust(environment: &Environment, args: &ApproveProject) -> Result<u8, Failure> {
    if !args.workspace.is_dir() {
        return Err(Failure::usage(
            format!("there is no directory `{}`", args.workspace.display()),
            "name the directory of a project, or leave it out for this one",
        ));
    }
    let entries = approvable(environment, &args.workspace)?;
    let (outside, entries): (Vec<_>, Vec<_>) =
        entries.into_iter().partition(ApprovableFile::leaves_project);
    if !outside.is_empty() {
        note(&format!("{} leads out of the project and is never approved", names(&outside)));
        if entries.is_empty() {
            let hint = "put a copy in the project in place of the link";
            return Err(Failure::usage("there is nothing to approve", hint));
        }
    }
    let problem = |entry: &ApprovableFile| mcp::problem_of(environment, &entry.file);
    let (broken, entries): (Vec<_>, Vec<_>) =
        entries.into_iter().partition(|entry| problem(entry).is_some());
    for entry in &broken {
        let (name, why) = (shown_path(&entry.file.path), problem(entry).unwrap_or_default());
        note(&format!("`{name}` cannot be approved: {}", shown_line(&why)));
    }
    if entries.is_empty() && !broken.is_empty() {
        return Err(Failure::usage("there is nothing to approve", "correct the file first"));
    }
    if entries.is_empty() {
        let path = config::read::project_file(&args.workspace);
        return Err(Failure::usage(
            format!("there is nothing to approve: no `{}`, and no commands", path.display()),
            "contracts, plans, workflows, MCP servers and skills need an approval only for commands that they bring",
        ));
    }
    let unknown = |entry: &ApprovableFile| entry.trust(&environment.data) == Trust::Unknown;
    let (entries, known): (Vec<_>, Vec<_>) = entries.into_iter().partition(unknown);
    if entries.is_empty() {
        note(&format!("already approved: {}", names(&known)));
        return Ok(0);
    }
    for entry in &entries {
        show_entry(environment, &args.workspace, entry)?;
    }
    let count = numbers::plural(entries.len(), "file");
    if !args.yes && !TerminalStyle::detect().can_ask {
        return Err(Failure::usage(
            format!("{count} not approved ({}): nobody is there to ask", plain_names(&entries)),
            "read what is shown, then run `windlass trust --yes`",
        ));
    }
    let question = match entries.len() {
        1 => format!("Approve {}, as shown?", names(&entries)),
        _ => format!("Approve these {count}, as shown ({})?", names(&entries)),
    };
    if !args.yes && !ask::confirm(&question) {
        note("not approved");
        return Ok(1);
    }
    for entry in &entries {
        entry
            .approve(&environment.data)
            .with_context(|| format!("`{}` cannot be written to", environment.data.display()))?;
        let until = match entry.runs.is_empty() {
            true => "until it changes",
            false => "until it or a file that it runs changes",
        };
        note(&format!("approved `{}`, {until}", shown_path(&entry.file.path)));
    }
    Ok(0)
}

fn names(entries: &[ApprovableFile]) -> String {
    shown_line(&plain_names(entries))
}

fn plain_names(entries: &[ApprovableFile]) -> String {
    let names = entries.iter().map(|entry| format!("`{}`", entry.file.path.display()));
    names.collect::<Vec<_>>().join(", ")
}

/// Files of a project that do nothing, or not all they say, before a person has approved them.
fn approvable(environment: &Environment, workspace: &Path) -> Result<Vec<ApprovableFile>, Failure> {
    let skills = wiring::skills::now(environment, workspace);
    let of_project = |skill: &&Skill| skill.scope == Scope::Project;
    let servers = mcp::skill_files(&skills).into_iter();
    let servers = servers.filter(|(_, scope)| *scope == Scope::Project).map(|(path, _)| path);
    let hooked = skills.list().filter(of_project).filter(|skill| skill.meta.hooks.is_some());
    let graders = skills.list().chain(skills.contested()).filter(of_project);
    let graders =
        graders.filter_map(Skill::folder).flat_map(|folder| eval::cases(folder, Scope::Project).0);
    let paths = [config::read::project_file(workspace), mcp::project_file(workspace)]
        .into_iter()
        .chain(contract::files(workspace))
        .chain(servers)
        .chain(hooked.chain(skills.contested()).map(|skill| skill.path.clone()))
        .chain(graders.map(|case| case.grader))
        .chain(wiring::workflows::files(workspace))
        .chain(wiring::plan_files(workspace));
    let mut entries: Vec<ApprovableFile> = Vec::new();
    for path in paths {
        if entries.iter().any(|entry| entry.file.path == path) {
            continue;
        }
        let file =
            mcp::open(&path).with_context(|| format!("`{}` cannot be read", path.display()))?;
        entries.extend(file.map(|file| ApprovableFile::new(workspace, file)));
    }
    let settings = wiring::workflows::git_settings(workspace);
    entries.extend(settings.map(|file| ApprovableFile::new(workspace, file)));
    Ok(entries)
}

/// Everything that an approval of this entry would be for.
fn show_entry(
    environment: &Environment,
    workspace: &Path,
    entry: &ApprovableFile,
) -> Result<(), Failure> {
    let paint = TerminalStyle::detect().results;
    let file = &entry.file;
    out(&paint.bold(&format!("{}:", shown_path(&file.path))));
    for line in file.text.strip_suffix('\n').unwrap_or(&file.text).split('\n') {
        out(format!("  {} {}", paint.dim("│"), shown_line(line)).trim_end());
    }
    if !entry.runs.is_empty() {
        let files: Vec<_> = entry.runs.keys().map(String::as_str).collect();
        out(&format!("  it runs, as they are now: {}", files.join(", ")));
    }
    let changed = entry.changes(&environment.data);
    if !changed.is_empty() {
        let changed = shown_line(&changed.join(", "));
        out(&paint.yellow(&format!("  changed since you approved it: {changed}")));
    }
    if file.path == config::read::project_file(workspace) {
        show_settings(environment, workspace, file)?;
    }
    out("");
    Ok(())
}

/// Every setting of the project's file, in force or not, and what it would change here.
fn show_settings(environment: &Environment, workspace: &Path, file: &File) -> Result<(), Failure> {
    let place = format!("{}:", file.path.display());
    let (env, flags) = (environment.variables.clone(), environment.flags.clone());
    let load =
        |trust: Trust| config::read::load_with(workspace, env.clone(), flags.clone(), file, trust);
    let (now, then) = (load(Trust::Unknown)?, load(Trust::Approved)?);
    let alone = Sources {
        user: None,
        project: Some((file.clone(), Trust::Approved)),
        env: BTreeMap::new(),
        flags: Vec::new(),
    };
    // Where the file is not complete without the others, its settings are those that hold with them.
    let alone = Config::load(&alone).unwrap_or_else(|_| then.clone());
    let (now, then) = (rows(&now), rows(&then));
    let mut table = Table::new(&["SETTING", "THE FILE SAYS", "EFFECT"], &[]);
    for row in alone.report().into_iter().filter(|row| row.source.contains(&place)) {
        let (before, after) = (now.get(&row.key), then.get(&row.key));
        let value = |row: Option<&Row>| {
            let value = row.and_then(|row| row.value.clone());
            value.unwrap_or_else(|| "not set".to_owned())
        };
        let is_used = after.is_some_and(|after| after.source.contains(&place));
        let effect = match (after, is_used) {
            (Some(_), true) if value(before) == value(after) => "no change".to_owned(),
            (Some(_), true) => format!("changes it from: {}", value(before)),
            (Some(after), false) => {
                format!("not in force here: {} says {}", after.source, value(Some(after)))
            }
            (None, _) => "not in force here".to_owned(),
        };
        let cells = [row.key.clone(), value(Some(&row)), effect];
        table.row(cells.iter().map(|cell| shown_line(cell)).collect());
    }
    show::print_table(&table);
    Ok(())
}

fn rows(config: &Config) -> BTreeMap<String, Row> {
    config.report().into_iter().map(|row| (row.key.clone(), row)).collect()
}
