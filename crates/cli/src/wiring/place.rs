//! Where a task works: how far its directory reaches, what was added to it, and who the person is to git.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use rustix::event::{PollFd, PollFlags, Timespec};
use windlass_core::event::TaskCreated;
use windlass_core::id::TaskId;
use windlass_core::layout::{AddedDirectory, Layout, LayoutKind, Site, TASKS_DIRECTORY};
use windlass_tools::workspace::repository::{self, repository_of};
use windlass_tools::workspace::working_tree::Identity;

use super::Environment;
use crate::config::kind::ValueKind;
use crate::config::read::MAX_FILE_BYTES;
use crate::config::settings;
use crate::failure::Failure;

/// How long git may take to read its configuration.
const GIT_PATIENCE: Duration = Duration::from_secs(2);

/// The directories of a task, as a sandbox takes them.
#[derive(Clone, Debug)]
pub struct TaskDirectories {
    /// The top of the workspace on the host.
    pub top: PathBuf,
    /// Where the files of the task are, as they are on the host.
    pub layout: Layout,
    /// Directories that a person or a workflow added.
    pub added: Vec<AddedDirectory>,
    /// Variables that a workflow sets.
    pub variables: BTreeMap<String, String>,
}

impl TaskDirectories {
    /// Where a task works.
    pub fn of_task(created: &TaskCreated) -> Self {
        Self {
            top: PathBuf::from(created.boundary()),
            layout: created.layout(),
            added: created.site.added.clone(),
            variables: created.site.variables.clone(),
        }
    }

    /// Where a command works that belongs to no task.
    pub fn of_directory(environment: &Environment, directory: &Path, root: TaskId) -> Self {
        let directory = super::skills::real_path(directory);
        let top = repository::boundary(&directory, home(environment).as_deref());
        let layout = Layout::personal(root, &text(&top), &text(&directory));
        Self { top, layout, added: Vec::new(), variables: BTreeMap::new() }
    }

    /// A directory by itself, whatever repository it lies in.
    pub fn without_repository(directory: &Path, root: TaskId) -> Self {
        let top = super::skills::real_path(directory);
        let layout = Layout::personal(root, &text(&top), &text(&top));
        Self { top, layout, added: Vec::new(), variables: BTreeMap::new() }
    }

    /// What commands see besides the workspace: what was added, and what git needs.
    pub fn shown_directories(&self) -> Vec<AddedDirectory> {
        let git = match self.layout.kind() {
            LayoutKind::Personal => repository::git_directories(&self.top),
            LayoutKind::Service => Vec::new(),
        };
        self.added.iter().cloned().chain(git).collect()
    }
}

/// What belongs to the workspace of a task that starts in a directory (§15.14).
pub fn site(environment: &Environment, directory: &Path) -> Site {
    let own = super::skills::real_path(&environment.data).join("workspaces");
    if directory.starts_with(own) {
        return Site::default();
    }
    let top = repository::boundary(directory, home(environment).as_deref());
    Site {
        layout: LayoutKind::Personal,
        boundary: (top != directory).then(|| text(&top)),
        added: Vec::new(),
        variables: BTreeMap::new(),
    }
}

/// Our own data and configuration, which no agent sees. The file may be a link to where a person keeps all their settings.
pub fn hidden_paths(environment: &Environment) -> Vec<PathBuf> {
    let file = crate::config::read::user_file(&environment.variables);
    let directory = file.as_deref().and_then(Path::parent).map(Path::to_owned);
    let directories = std::iter::once(environment.data.clone()).chain(directory);
    let mut hidden: Vec<_> = directories.map(|path| super::skills::real_path(&path)).collect();
    let file = file.and_then(|file| file.canonicalize().ok());
    let elsewhere = file.filter(|file| !hidden.iter().any(|known| file.starts_with(known)));
    hidden.extend(elsewhere);
    hidden
}

/// The names of the variables that hold our own keys.
pub fn key_names() -> Vec<String> {
    let secret = settings::all().filter(|setting| matches!(setting.kind, ValueKind::Secret));
    // The address of a Redis server may hold its password.
    secret.flat_map(settings::Setting::env_names).chain(["REDIS_URL".to_owned()]).collect()
}

/// Reads the directories of `--add-dir`: `DIR`, or `DIR:ro` for one that is only read.
pub fn added_directories(
    environment: &Environment,
    given: &[String],
) -> Result<Vec<AddedDirectory>, Failure> {
    let hint = "name a directory that exists: `--add-dir ../lib` or `--add-dir ../docs:ro`";
    given
        .iter()
        .map(|text| {
            let (path, writable) = match text.strip_suffix(":ro") {
                Some(path) => (path, false),
                None => (text.strip_suffix(":rw").unwrap_or(text), true),
            };
            let whole = Path::new(path).canonicalize().and_then(|whole| {
                if whole.is_dir() {
                    Ok(whole)
                } else {
                    Err(std::io::ErrorKind::NotADirectory.into())
                }
            });
            let whole = whole.map_err(|error| {
                Failure::usage(format!("`{path}` cannot be added: {error}"), hint)
            })?;
            refuse_vast(environment, &whole)?;
            let path = whole.to_str().map(ToOwned::to_owned);
            let path = path.ok_or_else(|| Failure::usage("its path is not text in UTF-8", hint))?;
            Ok(AddedDirectory { path, writable })
        })
        .collect()
}

/// Refuses the home directory, what is above it and `/` as a workspace until a person has confirmed it once. With
/// `confirm` they do so now.
pub fn check(environment: &Environment, directory: &Path, confirm: bool) -> Result<(), Failure> {
    let directory = super::skills::real_path(directory);
    if confirm && is_vast(environment, &directory) {
        remember(environment, &directory)
            .with_context(|| format!("`{}` cannot be written to", environment.data.display()))?;
        return Ok(());
    }
    refuse_vast(environment, &directory)
}

fn refuse_vast(environment: &Environment, directory: &Path) -> Result<(), Failure> {
    if !is_vast(environment, directory) || is_remembered(environment, directory) {
        return Ok(());
    }
    let what = if home(environment).as_deref() == Some(directory) {
        "is your home directory"
    } else {
        "holds much more than one project"
    };
    Err(Failure::usage(
        format!(
            "`{}` {what}: an agent could read and change everything in it",
            directory.display()
        ),
        "start in the directory of a project; to work here anyway, confirm it once with \
         `windlass exec --confirm-workspace true`",
    ))
}

/// Whether a directory is the home directory or holds it. `/` holds everything.
fn is_vast(environment: &Environment, directory: &Path) -> bool {
    directory == Path::new("/") || home(environment).is_some_and(|home| home.starts_with(directory))
}

fn confirmations_file(environment: &Environment) -> PathBuf {
    environment.data.join("confirmed-workspaces")
}

fn is_remembered(environment: &Environment, directory: &Path) -> bool {
    let list = std::fs::read_to_string(confirmations_file(environment)).unwrap_or_default();
    list.lines().any(|line| Path::new(line) == directory)
}

fn remember(environment: &Environment, directory: &Path) -> std::io::Result<()> {
    if is_remembered(environment, directory) {
        return Ok(());
    }
    std::fs::create_dir_all(&environment.data)?;
    let mut list =
        std::fs::File::options().create(true).append(true).open(confirmations_file(environment))?;
    writeln!(list, "{}", directory.display())
}

/// What git finds in the home directory of a sandbox: who the person is, and what they never commit. Nothing that
/// runs a program or holds a secret.
pub fn git_files(environment: &Environment, directory: &Path) -> Vec<(String, String)> {
    let settings = git_settings(environment, directory);
    let value = |key: &str| {
        let found = settings.iter().rev().find(|(name, _)| name == key);
        found.map(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
    };
    let entry = |section: &str, name: &str, key: &str| {
        Some(format!("[{section}]\n\t{name} = {}\n", quoted(value(key)?)))
    };
    let config: String = [
        entry("user", "name", "user.name"),
        entry("user", "email", "user.email"),
        entry("init", "defaultBranch", "init.defaultbranch"),
    ]
    .into_iter()
    .flatten()
    .collect();
    let home = home(environment).unwrap_or_default();
    let ignored = match value("core.excludesfile") {
        Some(file) => home.join(file.strip_prefix("~/").unwrap_or(file)),
        None => home.join(".config/git/ignore"),
    };
    let ignored = windlass_skills::regular::read_text(&ignored, MAX_FILE_BYTES);
    let ignored = format!("{}\n{TASKS_DIRECTORY}/\n", ignored.unwrap_or_default().trim_end());
    let config = (!config.is_empty()).then(|| (".gitconfig".to_owned(), config));
    config.into_iter().chain([(".config/git/ignore".to_owned(), ignored)]).collect()
}

/// Who the person is to git in a repository: what it says itself, else what their own settings say.
pub fn git_identity(environment: &Environment, top: &Path) -> Option<Identity> {
    let mut settings = git_settings(environment, top);
    if let Some(repository) = repository_of(top) {
        let mut command = Command::new("git");
        // Of this file alone: it may name others, and nothing of it is run.
        command
            .args(["config", "--no-includes", "--null", "--list", "--file"])
            .arg(repository.join("config"))
            .env_clear()
            .env("PATH", environment.search_path());
        settings.extend(entries(&printed_in_time(&mut command).unwrap_or_default()));
    }
    let value = |key: &str| {
        let found = settings.iter().rev().find(|(name, _)| name == key);
        found.map(|(_, value)| value.clone()).filter(|value| !value.is_empty())
    };
    let variable = |name: &str| environment.variables.get(name).cloned();
    Some(Identity {
        name: variable("GIT_AUTHOR_NAME").or_else(|| value("user.name"))?,
        email: variable("GIT_AUTHOR_EMAIL").or_else(|| value("user.email"))?,
    })
}

/// The person's own settings of git that count in a directory, by key in small letters. Git is asked, because it
/// alone knows which of its files count where.
fn git_settings(environment: &Environment, directory: &Path) -> Vec<(String, String)> {
    let wanted = ["PATH", "HOME", "XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL"];
    let variables = environment.variables.iter();
    let mut command = Command::new("git");
    command
        .args(["config", "--global", "--includes", "--null", "--list"])
        .current_dir(directory)
        .env_clear()
        .envs(variables.filter(|(name, _)| wanted.contains(&name.as_str())));
    entries(&printed_in_time(&mut command).unwrap_or_default())
}

/// Settings as `git config --null --list` prints them.
fn entries(text: &str) -> Vec<(String, String)> {
    let entry = |entry: &str| {
        let (key, value) = entry.split_once('\n')?;
        Some((key.to_ascii_lowercase(), value.to_owned()))
    };
    text.split('\0').filter_map(entry).collect()
}

/// What a program prints; `None` where it cannot be started or takes too long. Git waits for ever for a FIFO in
/// place of one of its files.
fn printed_in_time(command: &mut Command) -> Option<String> {
    let command = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().ok()?;
    let mut output = child.stdout.take()?;
    let (deadline, mut bytes) = (Instant::now() + GIT_PATIENCE, Vec::new());
    let whole = loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let left = Timespec::try_from(left).ok();
        let mut waited = [PollFd::new(&output, PollFlags::IN)];
        if !matches!(rustix::event::poll(&mut waited, left.as_ref()), Ok(1..)) {
            break false;
        }
        let mut piece = [0; 8192];
        match output.read(&mut piece) {
            Ok(0) => break true,
            Ok(length) if bytes.len() < MAX_FILE_BYTES as usize => {
                bytes.extend_from_slice(&piece[..length]);
            }
            Ok(_) | Err(_) => break false,
        }
    };
    if !whole {
        child.kill().ok()?;
    }
    child.wait().ok()?;
    whole.then(|| String::from_utf8_lossy(&bytes).into_owned())
}

/// A value as git's configuration writes it.
fn quoted(value: &str) -> String {
    let plain: String = value.chars().filter(|letter| !letter.is_control()).collect();
    format!("\"{}\"", plain.replace('\\', "\\\\").replace('"', "\\\""))
}

/// The home directory, as the file system knows it.
pub fn home(environment: &Environment) -> Option<PathBuf> {
    let home = environment.variables.get("HOME").filter(|home| !home.is_empty())?;
    Some(super::skills::real_path(Path::new(home)))
}

fn text(path: &Path) -> String {
    path.display().to_string()
}
