//! From directories to the skills of a task, and from `/name` to what an agent reads.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use sha2::{Digest as _, Sha256};
use windlass_core::axes::Axes;
use windlass_core::error::{ErrorDetails, ErrorType};
use windlass_core::hash::hex;
use windlass_skills::{
    ApprovalFn, Invocation, Scope, Skill, SkillMirror, SkillRegistry, Skills, Viewer, invoke,
    places,
};

use windlass_tools::workspace::repository::boundary;

use super::{Environment, Project, trust};
use crate::config::{File, Trust};
use crate::failure::Failure;

/// Where skills for work in a directory are looked for, the one that wins last.
pub fn directories(environment: &Environment, workspace: &Path) -> Vec<(PathBuf, Scope)> {
    if let Some(only) = &environment.skill_directories {
        return only.clone();
    }
    let home = environment.variables.get("HOME").filter(|home| !home.is_empty()).map(PathBuf::from);
    let directory = real_path(workspace);
    let top = boundary(&directory, home.as_deref());
    let mut all = places(home.as_deref(), &top);
    if top != directory {
        // The nearest wins.
        let own = places(home.as_deref(), &directory).into_iter();
        all.extend(own.filter(|(_, scope)| *scope == Scope::Project));
    }
    all
}

/// The skills for work in a directory, followed while they change; those of these names alone, where some are
/// given.
pub fn registry(
    environment: &Environment,
    workspace: &Path,
    only: Option<&[String]>,
) -> Result<SkillRegistry, ErrorDetails> {
    let mut places = directories(environment, workspace);
    let mut project = real_path(workspace);
    let all = environment.data.join("skills");
    remove_stale_when_due(&all);
    let service = real_path(&environment.data).join("workspaces");
    let mut is_shared = false;
    if project.starts_with(&service) {
        // The workspace of a service task is made for it, and seldom has skills of its own. All that have none share
        // one merged directory: there would be one for each task there ever was.
        places.retain(|(place, scope)| *scope != Scope::Project || place.is_dir());
        if places.iter().all(|(_, scope)| *scope != Scope::Project) {
            project = service;
            is_shared = only.is_none();
        }
    }
    // A project's skills are its own: each set of directories has its merged directory.
    let mut key = Sha256::new();
    for (place, _) in &places {
        key.update(place.as_os_str().as_encoded_bytes());
        key.update([0]);
    }
    // So has each choice of them.
    if let Some(only) = only {
        key.update([1]);
        only.iter().for_each(|name| key.update(format!("{name}\n").as_bytes()));
    }
    let root = all.join(hex(&key.finalize()[..8]));
    let follow = || {
        let open = SkillMirror::open(root.clone());
        let named = open.and_then(|mirror| name_project(&root, &project).map(|()| mirror));
        let mirror = named.map_err(|error| unwritable(&root, &error))?;
        let approved = approval_fn(environment.data.clone(), workspace);
        let only = only.map(<[String]>::to_vec);
        Ok(SkillRegistry::follow_only(only, places, approved, Some(mirror)))
    };
    // Nothing of a project is among them, so no approval differs from task to task.
    if is_shared { environment.kept.shared_skills(&root, follow) } else { follow() }
}

fn unwritable(root: &Path, error: &io::Error) -> ErrorDetails {
    let message = format!("skills cannot be collected in `{}`: {error}", root.display());
    ErrorDetails::new(ErrorType::Workspace, message).with_hint(
        "make that directory writable, or keep data elsewhere with `--data DIR` (WINDLASS_DATA)",
    )
}

/// Names the project that a merged directory is for.
const PROJECT: &str = "project";

/// Writes the name in one step: half a name would look like a project that was removed.
fn name_project(root: &Path, project: &Path) -> io::Result<()> {
    let (path, name) = (root.join(PROJECT), project.as_os_str().as_encoded_bytes());
    if std::fs::read(&path).is_ok_and(|there| there == name) {
        return Ok(());
    }
    let mut new = tempfile::NamedTempFile::new_in(root)?;
    io::Write::write_all(&mut new, name)?;
    new.persist(path)?;
    Ok(())
}

/// How often merged directories are looked through, by whichever process comes first.
const CLEAN_EVERY: Duration = Duration::from_secs(24 * 3600);

/// When that was last done: the time of this file.
const CLEANED_MARK: &str = ".cleaned";

/// Removes what was merged for projects that do not exist any more, unless that was done less than a day ago: the
/// start of a task must not cost more for each project there ever was.
fn remove_stale_when_due(all: &Path) {
    let mark = all.join(CLEANED_MARK);
    let age = std::fs::metadata(&mark).and_then(|found| found.modified());
    let is_due = match age.map(|then| then.elapsed()) {
        Ok(Ok(age)) => age > CLEAN_EVERY,
        // The clock was set back: look again when it has caught up.
        Ok(Err(_)) => false,
        Err(_) => true,
    };
    if is_due && std::fs::create_dir_all(all).is_ok() && std::fs::write(&mark, "").is_ok() {
        remove_stale(all);
    }
}

/// Removes what was merged for projects that do not exist any more.
fn remove_stale(all: &Path) {
    for entry in std::fs::read_dir(all).into_iter().flatten().flatten() {
        let Ok(project) = std::fs::read_to_string(entry.path().join(PROJECT)) else { continue };
        if matches!(Path::new(&project).try_exists(), Ok(false)) {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

/// A directory without links in its path, where it exists.
pub(super) fn real_path(workspace: &Path) -> PathBuf {
    std::fs::canonicalize(workspace).unwrap_or_else(|_| workspace.to_owned())
}

/// The skills as they are at this moment.
pub fn now(environment: &Environment, workspace: &Path) -> Skills {
    let approved = approval_fn(environment.data.clone(), workspace);
    Skills::load(&directories(environment, workspace), &approved)
}

/// Whether a skill may do what needs approval: run hooks, take the place of the user's own. A project's may as a
/// person has approved it (§15.13).
pub fn approval_fn(data: PathBuf, workspace: &Path) -> ApprovalFn {
    let workspace = real_path(workspace);
    Arc::new(move |skill: &Skill| {
        let file = || File { path: skill.path.clone(), text: skill.content.clone() };
        skill.scope != Scope::Project || trust::of(&data, &workspace, &file()) == Trust::Approved
    })
}

/// What a person should know of the skills for work in a directory: hooks that do not run, names that are taken.
pub fn notices(environment: &Environment, workspace: &Path, skills: &Skills) -> Vec<String> {
    let trusted = approval_fn(environment.data.clone(), workspace);
    let waiting = skills.list().filter(|skill| skill.meta.hooks.is_some() && !trusted(skill));
    let hooks = waiting.map(|skill| {
        format!(
            "the hooks of the skill `{}` do not run until you approve it: `windlass trust`",
            skill.meta.name
        )
    });
    let contested = skills.contested().filter(|skill| !trusted(skill)).map(|skill| {
        format!(
            "this project has a skill `{0}` too; your own `{0}` is used until you approve the project's: \
             `windlass trust`",
            skill.meta.name
        )
    });
    hooks.chain(contested).collect()
}

/// A goal as the agent is to read it: `/name …` becomes the skill's instructions (AX-114).
pub fn goal(project: &Project, axes: &Axes, text: String) -> Result<String, Failure> {
    if !may_call(&text) {
        return Ok(text);
    }
    let skills = project.skills().map_err(|details| Failure::of_details(&details))?;
    let hint = "see what there is with `windlass skills list`, and what is wrong with others with \
                `windlass skills check`";
    let called = find_invocation(&skills.current(), axes, &text, hint)?;
    Ok(called.map_or(text, |invocation| invocation.text))
}

/// The same for a message to an agent at work, which lets a sub-agent follow a skill that forks.
pub fn message(
    environment: &Environment,
    workspace: &Path,
    axes: &Axes,
    text: String,
) -> Result<String, Failure> {
    if !may_call(&text) {
        return Ok(text);
    }
    let hint = "`windlass skills list` shows the skills, and the message `/help` the commands";
    let called = find_invocation(&now(environment, workspace), axes, &text, hint)?;
    Ok(called.map_or(text, |invocation| invocation.message))
}

/// Whether a text may call a skill; for any other no skill is read.
fn may_call(text: &str) -> bool {
    text.trim_start().starts_with('/')
}

fn find_invocation(
    skills: &Skills,
    axes: &Axes,
    text: &str,
    if_unknown: &str,
) -> Result<Option<Invocation>, Failure> {
    let refused = |error| {
        Failure::usage(
            error,
            "`windlass skills list` shows what each skill needs; see `--mode` and `--permission-profile`",
        )
    };
    match invoke(text, skills, Viewer::of(axes)) {
        Some(invocation) => invocation.map(Some).map_err(refused),
        None if is_command(text) => {
            let name = first_word(text);
            Err(Failure::usage(format!("there is no skill `{name}`"), if_unknown))
        }
        None => Ok(None),
    }
}

fn first_word(text: &str) -> &str {
    text.trim().trim_start_matches('/').split_whitespace().next().unwrap_or_default()
}

/// Whether a text can only be meant as a command: one name after the slash, and no such path.
fn is_command(text: &str) -> bool {
    let word = first_word(text);
    let plain = word.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'));
    !word.is_empty() && plain && !Path::new("/").join(word).exists()
}
