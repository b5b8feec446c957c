//! `config`: every setting, its value and its source; where the file is; changing one setting.

use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::{Args, Subcommand};
use windlass_core::shown::shown_line;
use windlass_skills::regular;
use windlass_term::{Table, TerminalStyle};

use super::{Execute, Start};
use crate::args::values;
use crate::config::{Config, ConfigError, ConfigErrors, File, Row, Sources, edit, read};
use crate::failure::Failure;
use crate::show::{self, note, out, out_json};
use crate::wiring::Environment;

/// Show every setting, its value and where it came from; or change one
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub struct ShowConfig {
    /// What to do instead of showing them
    #[command(subcommand)]
    pub action: Option<ConfigAction>,
    /// The directory whose project file is read
    #[arg(long, value_name = "DIR", default_value = ".", value_parser = values::directory())]
    pub workspace: PathBuf,
    /// Show only settings that differ from their default
    #[arg(long)]
    pub changed: bool,
    /// Print each setting as a line of JSON
    #[arg(long)]
    pub json: bool,
}

/// What to do with the configuration.
#[derive(Debug, Subcommand)]
pub enum ConfigAction {
    /// Print where your configuration file is, whether it exists or not
    Path,
    /// Change one setting in your configuration file; its comments stay
    Set {
        /// The setting, such as `models.smart`
        key: String,
        /// Its new value; a list is separated by commas
        #[arg(allow_hyphen_values = true)]
        value: String,
    },
    /// Print the value of one setting
    Get {
        /// The setting, such as `models.smart`
        key: String,
    },
    /// Remove one setting from your configuration file, which restores its default
    Unset {
        /// The setting, such as `models.smart`
        key: String,
    },
}

const EXAMPLES: &str = "\
Examples:
  windlass config                     every setting and where it came from
  windlass config --changed           only what is not at its default
  windlass config set models.smart openai/gpt-4o
  windlass config unset models.smart  restores its default
  windlass config --json | jq .key";

impl Execute for ShowConfig {
    fn execute(self, start: Start) -> Result<u8, Failure> {
        match &self.action {
            None => config(&start.environment()?, &self),
            // Both also help where the file is broken, so nothing else is read.
            Some(ConfigAction::Path) => {
                out(&shown_line(&user_file()?.display().to_string()));
                Ok(0)
            }
            Some(ConfigAction::Set { key, value }) => set(key, value),
            Some(ConfigAction::Unset { key }) => unset(key),
            Some(ConfigAction::Get { key }) => get(&start.environment()?, &self.workspace, key),
        }
    }
}

fn config(environment: &Environment, args: &ShowConfig) -> Result<u8, Failure> {
    let config = environment.config(&args.workspace)?;
    let rows = config.report().into_iter().map(|row| with_data_directory(row, environment));
    let rows = rows.filter(|row| !args.changed || row.source != "default");
    if args.json {
        rows.for_each(|row| out_json(&serde_json::to_string(&row).unwrap_or_default()));
    } else {
        let rows: Vec<_> = rows.collect();
        match rows.is_empty() {
            true => show::note("every setting has its default"),
            false => print(&rows),
        }
    }
    show::print_config_notices(&config);
    Ok(0)
}

/// The data directory is found before any file is read, so the settings alone do not know it.
fn with_data_directory(row: Row, environment: &Environment) -> Row {
    if row.key != "store.data_dir" {
        return row;
    }
    let effective = environment.data.display().to_string();
    let by_variable = environment.variables.get("WINDLASS_DATA").is_some_and(|at| !at.is_empty());
    let source = match by_variable {
        true => "environment WINDLASS_DATA".to_owned(),
        false => row.source,
    };
    Row { value: row.value.or_else(|| Some(effective.clone())), effective, source, ..row }
}

/// A table; on a terminal too narrow for it, the source of a value gets a line of its own.
fn print(rows: &[Row]) {
    let style = TerminalStyle::detect();
    let mut table = Table::new(&["SETTING", "VALUE", "FROM"], &[]);
    for Row { key, effective, source, .. } in rows {
        let cells = [key, effective, source];
        table.row(cells.map(|cell| shown_line(cell)).to_vec());
    }
    if !style.is_stdout_terminal || table.width() <= style.line_width() {
        return show::print_table(&table);
    }
    for Row { key, effective, source, .. } in rows {
        let line = format!("{} = {}", shown_line(key), shown_line(effective));
        out(&windlass_term::wrap::wrap(&line, style.line_width()));
        if source != "default" {
            let from = if source.starts_with("follows") { "" } else { "from " };
            out(&style.results.dim(&format!("    {from}{}", shown_line(source))));
        }
    }
}

fn user_file() -> Result<PathBuf, Failure> {
    read::user_file(&read::environment()).ok_or_else(|| {
        let hint = "set `HOME`, or `XDG_CONFIG_HOME` to an absolute path";
        Failure::usage("there is no home directory for a configuration file", hint)
    })
}

fn set(key: &str, value: &str) -> Result<u8, Failure> {
    let (path, config) = change_user_file(|text| edit::set(text, key, value))?;
    let row = config.report().into_iter().find(|row| row.key == key);
    let effective = row.map(|row| row.effective).unwrap_or_else(|| value.to_owned());
    let place = shown_line(&path.display().to_string());
    note(&format!("set {key} to `{}` in {place}", shown_line(&effective)));
    note_winner(key, &effective);
    Ok(0)
}

/// A variable or the project's file wins over the user's. What is wrong with those is said elsewhere.
fn note_winner(key: &str, effective: &str) {
    let here = Environment::new(None).and_then(|environment| environment.config(Path::new(".")));
    let rows = here.map(|config| config.report()).unwrap_or_default();
    let wins = rows.into_iter().find(|row| row.key == key);
    if let Some(row) = wins.filter(|row| row.effective != effective) {
        let source = shown_line(&row.source);
        note(&format!("notice: here {source} wins, with {}", shown_line(&row.effective)));
    }
}

fn unset(key: &str) -> Result<u8, Failure> {
    let (path, config) = change_user_file(|text| edit::unset(text, key))?;
    let row = config.report().into_iter().find(|row| row.key == key);
    let effective = row.map(|row| row.effective);
    let now = effective.as_deref().map(|now| format!("; it is `{}` now", shown_line(now)));
    let place = shown_line(&path.display().to_string());
    note(&format!("removed {key} from {place}{}", now.unwrap_or_default()));
    note_winner(key, &effective.unwrap_or_default());
    Ok(0)
}

fn get(environment: &Environment, workspace: &Path, key: &str) -> Result<u8, Failure> {
    let config = environment.config(workspace)?;
    let rows = config.report().into_iter().map(|row| with_data_directory(row, environment));
    let row = rows.into_iter().find(|row| row.key == key);
    let row = row.ok_or_else(|| ConfigErrors::from(edit::unknown(key)))?;
    out(&shown_line(&row.effective));
    Ok(0)
}

/// Changes the user's file. What results must be valid as a whole, or nothing is written.
pub(super) fn change_user_file(
    change: impl FnOnce(&str) -> Result<String, ConfigError>,
) -> Result<(PathBuf, Config), Failure> {
    let path = user_file()?;
    let shown = shown_line(&path.display().to_string());
    let before = match regular::read_text(&path, read::MAX_FILE_BYTES) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => {
            let problem = format!("`{shown}` cannot be read: {error}");
            let hint = "make it a text file that you can read, or move it away";
            return Err(Failure::usage(problem, hint));
        }
    };
    let text = change(&before).map_err(ConfigErrors::from)?;
    let user = File { path: path.clone(), text };
    let config = Config::load(&Sources {
        user: Some(user.clone()),
        project: None,
        env: Default::default(),
        flags: Vec::new(),
    });
    let config = config.map_err(|errors| Failure {
        hint: Some("nothing was changed".to_owned()),
        ..errors.into()
    })?;
    write(&path, &user.text).with_context(|| format!("`{shown}` cannot be written"))?;
    Ok((path, config))
}

/// Replaces the file as a whole, so that a crash leaves the old one. It may hold keys: others cannot read it.
fn write(path: &Path, text: &str) -> std::io::Result<()> {
    // A link to a file kept elsewhere stays a link.
    let path = &path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let directory = path.parent().unwrap_or(Path::new("/"));
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    let mut file = tempfile::NamedTempFile::new_in(directory)?;
    file.write_all(text.as_bytes())?;
    let mode = std::fs::metadata(path).map_or(0o600, |held| held.permissions().mode());
    file.as_file().set_permissions(std::fs::Permissions::from_mode(mode))?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}
