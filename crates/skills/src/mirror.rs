//! The skills as one directory of real files, which agents see read-only as `/skills`.
//!
//! Invariants:
//! - The directory itself stays the same, so that a sandbox that shows it stays live; each skill in it
//!   is whole at every moment: the new one is made aside and exchanged in one step.
//! - Nothing in it is a link, and nothing in it comes from `evals` (MS-169).

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FlockOperation, RenameFlags};
use rustix::io::Errno;

use crate::beneath::{self, Links};
use crate::find::project_of;
use crate::skill::{Scope, Skill};
use crate::{Problem, Skills};

/// How much of one skill agents are given; more is data, not instructions.
const MAX_SKILL_BYTES: u64 = 32 << 20;

/// A directory that holds the mirror skills.
#[derive(Debug)]
pub struct SkillMirror {
    /// Holds `shown`, which agents see, and what only we need.
    root: PathBuf,
    shown: PathBuf,
}

impl SkillMirror {
    /// Makes the directory below `root`, which is ours alone.
    pub fn open(root: PathBuf) -> io::Result<Self> {
        let shown = root.join("shown");
        fs::create_dir_all(&shown)?;
        fs::create_dir_all(root.join("new"))?;
        fs::set_permissions(&shown, fs::Permissions::from_mode(0o755))?;
        Ok(Self { root, shown })
    }

    /// What agents see as `/skills`.
    pub fn shown(&self) -> &Path {
        &self.shown
    }

    /// Makes the directory hold these skills; what could not be done is returned.
    pub fn sync(&self, skills: &Skills) -> Vec<Problem> {
        let mut problems = Vec::new();
        // Several processes may serve one project.
        let lock = match self.lock() {
            Ok(lock) => lock,
            Err(error) => return vec![problem(&self.root, &error)],
        };
        let before = self.versions();
        let mut versions = before.clone();
        for skill in skills.list() {
            let name = &skill.meta.name;
            let there = self.shown.join(name).is_dir();
            if there && versions.get(name) == Some(&skill.version) {
                continue;
            }
            match self.put(skill) {
                Ok(()) => drop(versions.insert(name.clone(), skill.version.clone())),
                Err(error) => problems.push(problem(&skill.path, &error)),
            }
        }
        let gone: Vec<_> =
            versions.keys().filter(|name| skills.get(name).is_none()).cloned().collect();
        for name in gone {
            match self.remove(&name) {
                Ok(()) => drop(versions.remove(&name)),
                Err(error) => problems.push(problem(&self.shown.join(&name), &error)),
            }
        }
        if versions != before
            && let Err(error) = self.keep(&versions)
        {
            problems.push(problem(&self.root, &error));
        }
        drop(lock);
        problems
    }

    fn lock(&self) -> io::Result<File> {
        let path = self.root.join("lock");
        let file = OpenOptions::new().create(true).append(true).mode(0o600).open(path)?;
        rustix::fs::flock(&file, FlockOperation::LockExclusive)?;
        Ok(file)
    }

    /// Which version of each skill is shown.
    fn versions(&self) -> BTreeMap<String, String> {
        let text = fs::read(self.root.join("versions.json")).unwrap_or_default();
        serde_json::from_slice(&text).unwrap_or_default()
    }

    fn keep(&self, versions: &BTreeMap<String, String>) -> io::Result<()> {
        let new = self.root.join("versions.new");
        fs::write(&new, serde_json::to_vec(versions)?)?;
        fs::rename(new, self.root.join("versions.json"))
    }

    fn put(&self, skill: &Skill) -> io::Result<()> {
        let new = self.root.join("new").join(&skill.meta.name);
        discard(&new)?;
        fs::create_dir(&new)?;
        fs::set_permissions(&new, fs::Permissions::from_mode(0o755))?;
        write(&new.join("SKILL.md"), text_of(skill).as_bytes(), 0o644)?;
        if let Some(folder) = skill.folder() {
            copy_resources(skill, folder, &new)?;
        }
        let place = self.shown.join(&skill.meta.name);
        match rustix::fs::renameat_with(CWD, &new, CWD, &place, RenameFlags::EXCHANGE) {
            Ok(()) => discard(&new),
            Err(Errno::NOENT) => fs::rename(&new, &place),
            // Some file systems cannot exchange; there it is away for a moment.
            Err(_) => {
                discard(&place)?;
                fs::rename(&new, &place)
            }
        }
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let aside = self.root.join("new").join(name);
        discard(&aside)?;
        match fs::rename(self.shown.join(name), &aside) {
            Ok(()) => discard(&aside),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
        }
    }
}

fn problem(path: &Path, error: &io::Error) -> Problem {
    let reason = format!("cannot be shown to agents: {error}");
    Problem { path: path.to_owned(), line: None, reason }
}

fn discard(path: &Path) -> io::Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// A skill that is all YAML is shown as every other: frontmatter, then markdown.
fn text_of(skill: &Skill) -> String {
    let is_yaml = skill.path.extension().is_some_and(|ext| ext == "yaml" || ext == "yml");
    if !is_yaml {
        return skill.content.clone();
    }
    let (name, description) = (&skill.meta.name, serde_json::json!(skill.meta.description));
    format!("---\nname: {name}\ndescription: {description}\n---\n\n{}", skill.body)
}

fn copy_resources(skill: &Skill, from: &Path, to: &Path) -> io::Result<()> {
    let folder = match (skill.scope, from.parent().and_then(project_of)) {
        // What a project's links lead to must lie in the project.
        (Scope::Project, Some(project)) => {
            let name = from.strip_prefix(project).unwrap_or(from);
            beneath::open_inside(beneath::directory(project)?, name, Links::Inside)?
        }
        (Scope::Project, None) => {
            return Err(io::Error::other("a project's skill is not in the folder of a project"));
        }
        (Scope::Builtin | Scope::User, _) => beneath::directory(from)?,
    };
    let mut room = MAX_SKILL_BYTES;
    for resource in &skill.resources {
        let target = to.join(&resource.name);
        if let Some(directory) = target.parent() {
            fs::create_dir_all(directory)?;
        }
        let opened = beneath::file(&folder, Path::new(&resource.name), Links::Refused);
        let mut bytes = Vec::new();
        match opened {
            Ok(file) if file.metadata()?.is_file() => {
                file.take(room + 1).read_to_end(&mut bytes)?;
            }
            // It went or was swapped since it was listed; a change like that is seen again.
            Ok(_) | Err(_) => continue,
        }
        room = room.checked_sub(bytes.len() as u64).ok_or_else(|| {
            let limit = MAX_SKILL_BYTES >> 20;
            io::Error::other(format!("its files are larger than {limit} MiB together"))
        })?;
        write(&target, &bytes, if resource.executable { 0o755 } else { 0o644 })?;
    }
    Ok(())
}

fn write(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let mut file = OpenOptions::new().create_new(true).write(true).open(path)?;
    file.write_all(bytes)?;
    file.set_permissions(fs::Permissions::from_mode(mode))
}
