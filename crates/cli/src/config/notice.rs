//! What people should know about their configuration although nothing is wrong with it.

use std::fmt;

use super::error::{Source, printable};
use super::types::ModelChoice;

/// Something that the person should know at start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
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
    NeedsTrust {
        /// The setting.
        key: String,
        /// Where.
        source: Source,
    },
    /// A project's file sets something that no project may set.
    NeverByProject {
        /// The setting.
        key: String,
        /// Where.
        source: Source,
    },
    /// A variable whose name is almost one of ours, so probably misspelled.
    NearMiss {
        /// The name that is set.
        name: String,
        /// What was probably meant.
        meant: String,
    },
}

impl Notice {
    /// The line it is about; none where it is about no file.
    pub(super) fn line(&self) -> Option<usize> {
        match self {
            Self::NeedsTrust { source, .. } | Self::NeverByProject { source, .. } => source.line(),
            Self::DefaultModel { .. } | Self::FollowsSmart { .. } | Self::NearMiss { .. } => None,
        }
    }
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DefaultModel { model } => {
                write!(f, "no model is named, so `{model}` is used; set `models.smart` to choose")
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
                write!(
                    f,
                    "{source}: `{key}` is ignored: a project may not set it, only your own file"
                )
            }
            Self::NearMiss { name, meant } => {
                write!(f, "environment {}: did you mean `{meant}`?", printable(name))
            }
        }
    }
}
