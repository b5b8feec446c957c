//! The edge: the one place that reads configuration files and the environment.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use windlass_core::hash::sha256;
use windlass_skills::regular;
use windlass_tools::workspace::repository;

use super::error::{ConfigError, ConfigErrors};
use super::settings::Store;
use super::{Config, File, Flag, Sources, Trust};

/// The largest file that is read; a configuration this long is a mistake.
pub const MAX_FILE_BYTES: u64 = 1 << 20;

/// Where the user's file is, whether it exists or not. A relative `XDG_CONFIG_HOME` is ignored, as its
/// specification says.
pub fn user_file(env: &BTreeMap<String, String>) -> Option<PathBuf> {
    let path = |name: &str| env.get(name).filter(|path| !path.is_empty()).map(PathBuf::from);
    let base = path("XDG_CONFIG_HOME").filter(|path| path.is_absolute());
    let base = base.or_else(|| path("HOME").map(|home| home.join(".config")))?;
    Some(base.join("windlass").join("config.toml"))
}

/// Where a project's file is, whether it exists or not.
pub fn project_file(workspace: &Path) -> PathBuf {
    nearest(workspace, ".windlass/config.toml")
}

/// The nearest file of a project by this name, from a directory up to the top of its repository; the place in the
/// directory itself where there is none.
pub fn nearest(workspace: &Path, name: &str) -> PathBuf {
    Upwards::from(workspace).nearest(name)
}

/// The directories of a project from the one where work starts up to the top of its repository.
pub struct Upwards {
    workspace: PathBuf,
    above: Vec<PathBuf>,
}

impl Upwards {
    /// From a directory as a person has named it.
    pub fn from(workspace: &Path) -> Self {
        let directory = fs::canonicalize(workspace).unwrap_or_else(|_| workspace.to_owned());
        let home = std::env::var_os("HOME").map(PathBuf::from);
        let home = home.and_then(|home| fs::canonicalize(home).ok());
        let top = repository::boundary(&directory, home.as_deref());
        let above = directory.ancestors().skip(1).take_while(|above| above.starts_with(&top));
        Self { workspace: workspace.to_owned(), above: above.map(Path::to_owned).collect() }
    }

    /// The nearest file by this name.
    pub fn nearest(&self, name: &str) -> PathBuf {
        let own = self.workspace.join(name);
        let is_there = |path: &PathBuf| fs::symlink_metadata(path).is_ok();
        if is_there(&own) {
            return own;
        }
        self.above.iter().map(|above| above.join(name)).find(is_there).unwrap_or(own)
    }
}

/// What an approval is bound to: the SHA-256 of a file's text, in hexadecimal.
pub fn content_hash(text: &str) -> String {
    sha256(text)
}

/// This process's environment. What is not Unicode is kept as well as it can be, and fails later
/// where it matters.
pub fn environment() -> BTreeMap<String, String> {
    let lossy = |text: std::ffi::OsString| text.to_string_lossy().into_owned();
    std::env::vars_os().map(|(name, value)| (lossy(name), lossy(value))).collect()
}

/// Reads everything and loads it. `trust` says whether a person has approved a project's file.
pub fn load(
    workspace: &Path,
    env: BTreeMap<String, String>,
    flags: Vec<Flag>,
    trust: &dyn Fn(&File) -> Trust,
) -> Result<Config, ConfigErrors> {
    let user = user_file(&env).map(|path| open(&path)).transpose();
    let project = check_entry(workspace).and_then(|()| open(&project_file(workspace)));
    match (user, project) {
        (Ok(user), Ok(project)) => {
            let project = project.map(|file| (file.clone(), trust(&file)));
            Config::load(&Sources { user: user.flatten(), project, env, flags })
        }
        (user, project) => {
            let errors = [user.err(), project.err()].into_iter().flatten();
            Err(ConfigErrors(errors.flat_map(|errors| errors.0).collect()))
        }
    }
}

/// The same with a project's file that was read before.
pub fn load_with(
    workspace: &Path,
    env: BTreeMap<String, String>,
    flags: Vec<Flag>,
    project: &File,
    trust: Trust,
) -> Result<Config, ConfigErrors> {
    debug_assert_eq!(project.path, project_file(workspace));
    let user = user_file(&env).map(|path| open(&path)).transpose()?.flatten();
    Config::load(&Sources { user, project: Some((project.clone(), trust)), env, flags })
}

/// What the user's file says about the data directory, which is needed before anything else is read. A
/// file without a word of it is left alone: what else is wrong with it is said where that matters.
pub fn store(env: &BTreeMap<String, String>) -> Result<Option<Store>, ConfigErrors> {
    let user = user_file(env).and_then(|path| open(&path).ok().flatten());
    let Some(user) = user.filter(|file| file.text.contains("store")) else {
        return Ok(None);
    };
    let (project, env, flags) = (None, BTreeMap::new(), Vec::new());
    Config::load(&Sources { user: Some(user), project, env, flags }).map(|set| Some(set.store))
}

/// Refuses a directory that may not be entered. Every file in it would be refused too, which says less. One that does not
/// exist has no project's file.
fn check_entry(workspace: &Path) -> Result<(), ConfigErrors> {
    let error = match fs::metadata(workspace.join(".")) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => error,
        Ok(_) | Err(_) => return Ok(()),
    };
    let directory = fs::canonicalize(workspace).unwrap_or_else(|_| workspace.to_owned());
    let problem = format!("directory `{}` cannot be opened: {error}", directory.display());
    let hint = "give yourself access with `chmod u+rwx DIR`, or work in another directory";
    Err(ConfigError::missing(problem, hint).into())
}

fn open(path: &Path) -> Result<Option<File>, ConfigErrors> {
    let text = match regular::read_text(path, MAX_FILE_BYTES) {
        Ok(text) => text,
        Err(error) if is_missing(&error) => return Ok(None),
        Err(error) => {
            let problem = format!("`{}` cannot be read: {error}", path.display());
            let hint = "make it a text file that you can read, or move it away";
            return Err(ConfigError::missing(problem, hint).into());
        }
    };
    Ok(Some(File { path: path.to_owned(), text }))
}

/// Whether there is simply no such file.
pub fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}
