//! How a file says that worktrees are made.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use serde_saphyr::Spanned;

use super::super::raw::{RawPlace, RawWorktree, Text};
use super::super::{Base, Checkout, DefinitionError, GitSpec, MAX_WARM, Maker, WorktreeSpec};
use super::{Checked, line};
use crate::template;

/// What commands about a worktree find under `worktree`.
const WORKTREE_FIELDS: [&str; 5] = ["path", "branch", "base", "port", "source"];

/// Variables that a workflow may not point elsewhere: programs would be found or loaded from there.
const FIXED: [&str; 4] = ["PATH", "HOME", "PORT", "IFS"];
const FIXED_PREFIXES: [&str; 4] = ["LD_", "GIT_", "WINDLASS_", "BASH"];

pub(super) fn place(given: Spanned<RawPlace>) -> Checked<Checkout> {
    let at = line(&given);
    match given.value {
        RawPlace::Switch(false) => Ok(Checkout::Here),
        RawPlace::Switch(true) => Ok(Checkout::Worktree(WorktreeSpec::default())),
        RawPlace::Spec(raw) => {
            spec(raw).map(Checkout::Worktree).map_err(|reason| DefinitionError::at(at, reason))
        }
    }
}

fn spec(raw: RawWorktree) -> Result<WorktreeSpec, String> {
    let keep = raw.keep.unwrap_or_default();
    if keep && raw.reuse.is_some() {
        return Err("`keep` and `reuse` exclude each other: a worktree that stays as it is cannot be reused".to_owned());
    }
    for (key, command) in [
        ("create", &raw.create),
        ("setup", &raw.setup),
        ("cleanup", &raw.cleanup),
        ("remove", &raw.remove),
    ] {
        command.as_deref().map_or(Ok(()), |command| check_command(key, command))?;
    }
    let cache = cache(&raw.cache)?;
    let (setup, cleanup) = (raw.setup.clone(), raw.cleanup.clone());
    Ok(WorktreeSpec { maker: maker(raw)?, cache, setup, cleanup, keep })
}

/// A command about a worktree is a template that finds the worktree, and nothing else.
fn check_command(key: &str, command: &str) -> Result<(), String> {
    let names = WORKTREE_FIELDS.map(|name| (name.to_owned(), Value::from(name)));
    let worktree = Value::Object(names.into_iter().collect());
    let names = Map::from_iter([("worktree".to_owned(), worktree)]);
    template::render(command, &names).map(drop).map_err(|error| format!("`{key}`: {error}"))
}

fn maker(raw: RawWorktree) -> Result<Maker, String> {
    let Some(create) = raw.create else {
        return match raw.remove {
            Some(_) => Err("`remove` belongs to `create`, which is not there".to_owned()),
            None => git(raw).map(Maker::Git),
        };
    };
    let of_git = [
        ("base", raw.base.is_some()),
        ("sparse", raw.sparse.is_some()),
        ("reuse", raw.reuse.is_some()),
    ];
    if let Some((key, _)) = of_git.into_iter().find(|(_, is_given)| *is_given) {
        return Err(format!("`{key}` is for git, and `create` makes workspaces without it"));
    }
    match create.trim().is_empty() {
        true => Err("`create` is empty".to_owned()),
        false => Ok(Maker::Command { create, remove: raw.remove }),
    }
}

fn git(raw: RawWorktree) -> Result<GitSpec, String> {
    let base = raw.base.as_deref().map_or("head", str::trim);
    if base.is_empty() || base.starts_with('-') || base.contains(char::is_whitespace) {
        return Err(format!(
            "`base` may not be `{base}`; allowed: head, fresh, or a branch, tag or commit"
        ));
    }
    let reuse = raw.reuse.unwrap_or_default();
    if reuse > MAX_WARM || raw.reuse == Some(0) {
        return Err(format!("`reuse` may not be `{reuse}`; allowed: 1 to {MAX_WARM}"));
    }
    let sparse = raw.sparse.unwrap_or_default().into_iter().map(|name| directory("sparse", &name));
    Ok(GitSpec {
        base: match base {
            "head" => Base::Head,
            "fresh" => Base::Fresh,
            name => Base::Named(name.to_owned()),
        },
        sparse: sparse.collect::<Result<_, _>>()?,
        reuse,
    })
}

/// A directory below another one, by its plain name.
fn directory(key: &str, given: &Text) -> Result<String, String> {
    let name = given.0.trim().trim_end_matches('/');
    let is_plain = |part: &str| !matches!(part, "" | "." | "..");
    let is_safe = !name.starts_with('-') && !name.contains(['*', '?', '[', '\\', '\n', '\0', '"']);
    match is_safe && name.split('/').all(is_plain) {
        true => Ok(name.to_owned()),
        false => Err(format!(
            "`{}` in `{key}` is not a directory below the top, such as `src/app`",
            given.0
        )),
    }
}

fn cache(raw: &BTreeMap<String, Text>) -> Result<BTreeMap<String, String>, String> {
    let is_name = |name: &str| {
        let is_letter = |c: char| c.is_ascii_alphabetic() || c == '_';
        name.starts_with(is_letter) && name.chars().all(|c| is_letter(c) || c.is_ascii_digit())
    };
    let is_fixed = |name: &str| {
        FIXED.contains(&name) || FIXED_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
    };
    let mut found = BTreeMap::new();
    for (variable, given) in raw {
        if !is_name(variable) || is_fixed(variable) {
            return Err(format!(
                "`{variable}` in `cache` cannot be set; write a variable of your build tool, such as `CARGO_TARGET_DIR`"
            ));
        }
        found.insert(variable.clone(), directory("cache", given)?);
    }
    Ok(found)
}
