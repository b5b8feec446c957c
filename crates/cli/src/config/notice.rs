//! What people should know about their configuration although nothing is wrong with it.

use std::fmt;

use super::error::{Source, printable};
use super::types::ModelChoice;

/// Something that the person should know at start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConfigNotice {
    /// Nobody named a model, but a provider is configured.
    DefaultModel {
        /// What is used.
        model: ModelChoice,
    },
    /// `fast` or `deep` (or both) follow `smart`. Said at load, so that nothing falls back later.
    FollowsSmart {
        /// The settings that follow.
        keys: Vec<&'static str>,
        /// What they are now.
        model: ModelChoice,
    },
    /// A project's file sets something that needs approval first.
    NeedsTrust { key: String, source: Source },
    /// A project's file sets something that no project may set.
    NeverByProject { key: String, source: Source },
    /// A variable whose name is almost one of ours, so probably misspelled.
    NearMiss {
        /// The name that is set.
        name: String,
        /// What was probably meant.
        meant: String,
    },
}

impl ConfigNotice {
    /// The line it is about; none where it is about no file.
    pub(super) fn line(&self) -> Option<usize> {
        match self {
            Self::NeedsTrust { source, .. } | Self::NeverByProject { source, .. } => source.line(),
            Self::DefaultModel { .. } | Self::FollowsSmart { .. } | Self::NearMiss { .. } => None,
        }
    }
}

/// All notices, a line each; one line for all settings that wait for the same thing.
pub fn lines(notices: &[ConfigNotice]) -> Vec<String> {
    let (mut waiting, mut refused, mut lines) = (Vec::new(), Vec::new(), Vec::new());
    for notice in notices {
        match notice {
            ConfigNotice::NeedsTrust { key, source } => waiting.push((key, source)),
            ConfigNotice::NeverByProject { key, source } => refused.push((key, source)),
            // `config` shows which settings follow another, and `models` which model each mode has.
            ConfigNotice::FollowsSmart { .. } => {}
            ConfigNotice::DefaultModel { .. } | ConfigNotice::NearMiss { .. } => {
                lines.push(notice.to_string())
            }
        }
    }
    let keys = |group: &[(&String, &Source)]| {
        let keys: Vec<_> = group.iter().map(|(key, _)| format!("`{}`", printable(key))).collect();
        keys.join(", ")
    };
    let group = |group: &[(&String, &Source)], one: &str, several: &str| match group {
        [] => None,
        [(_, source)] => Some(format!("{source}: {} {one}", keys(group))),
        [(_, source), ..] => Some(format!("{}: {} {several}", source.place(), keys(group))),
    };
    lines.extend(group(
        &waiting,
        "is ignored until you approve the file: `windlass trust`",
        "are ignored until you approve the file: `windlass trust`",
    ));
    lines.extend(group(
        &refused,
        "is ignored: only your own file may set it",
        "are ignored: only your own file may set them",
    ));
    lines
}

impl fmt::Display for ConfigNotice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DefaultModel { model } => {
                write!(
                    f,
                    "no model is named, so `{model}` is used; choose with `--model`, or for good with \
                     `windlass config set models.smart {model}`"
                )
            }
            Self::FollowsSmart { keys, model } => {
                let verb = if keys.len() == 1 { "is" } else { "are" };
                let keys: Vec<_> = keys.iter().map(|key| format!("`{key}`")).collect();
                write!(f, "{} {verb} not set and {verb} `{model}`, as `smart`", keys.join(" and "))
            }
            Self::NeedsTrust { key, source } => {
                let key = printable(key);
                write!(
                    f,
                    "{source}: `{key}` is ignored until you approve the file: `windlass trust`"
                )
            }
            Self::NeverByProject { key, source } => {
                let key = printable(key);
                write!(f, "{source}: `{key}` is ignored: only your own file may set it")
            }
            Self::NearMiss { name, meant } => {
                write!(f, "environment {}: did you mean `{meant}`?", printable(name))
            }
        }
    }
}
