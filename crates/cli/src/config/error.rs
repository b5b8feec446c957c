//! Where values come from, and what is wrong with those that cannot be used.
//!
//! Invariant: no message holds a key or password, and none holds control characters of its input.

use std::fmt;
use std::path::PathBuf;

use windlass_core::text::prefix;

/// As much of a bad value as an error repeats.
const SHOWN_BYTES: usize = 80;

/// Where a value came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// Nobody set it.
    Default,
    /// The user's file.
    User {
        path: PathBuf,
        /// Counted from 1.
        line: usize,
    },
    /// The project's file.
    Project {
        path: PathBuf,
        /// Counted from 1.
        line: usize,
    },
    /// An environment variable.
    Env(String),
    /// A flag of the command line.
    Flag(String),
    /// A task's own `execution_config`, and the field there.
    Task(&'static str),
    /// Another setting, which it follows.
    Follows(&'static str),
}

impl Source {
    /// The file, without the line; elsewhere the place itself.
    pub(super) fn place(&self) -> String {
        match self {
            Self::User { path, .. } | Self::Project { path, .. } => path.display().to_string(),
            Self::Default | Self::Env(_) | Self::Flag(_) | Self::Task(_) | Self::Follows(_) => {
                self.to_string()
            }
        }
    }

    /// The line of a file; none elsewhere.
    pub(super) const fn line(&self) -> Option<usize> {
        match self {
            Self::User { line, .. } | Self::Project { line, .. } => Some(*line),
            Self::Default | Self::Env(_) | Self::Flag(_) | Self::Task(_) | Self::Follows(_) => None,
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => write!(f, "default"),
            Self::User { path, line } | Self::Project { path, line } => {
                write!(f, "{}:{line}", path.display())
            }
            Self::Env(name) => write!(f, "environment {name}"),
            Self::Flag(name) => write!(f, "flag {name}"),
            Self::Task(field) => write!(f, "execution_config.{field}"),
            Self::Follows(key) => write!(f, "follows {key}"),
        }
    }
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct ConfigError {
    /// The setting, or what was written in place of one; empty where it is about none.
    pub key: String,
    /// What was given, where it may be shown.
    pub value: Option<String>,
    /// Where it was given.
    pub source_place: Option<Source>,
    /// What is wrong, and what is allowed.
    pub problem: String,
    /// What to do about it.
    pub hint: Option<String>,
}

impl ConfigError {
    /// A problem with a setting that was given somewhere.
    pub(super) fn at(key: impl Into<String>, source: Source, problem: impl Into<String>) -> Self {
        Self {
            key: key.into(),
            value: None,
            source_place: Some(source),
            problem: problem.into(),
            hint: None,
        }
    }

    /// Something that is needed and was given nowhere.
    pub(super) fn missing(problem: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            key: String::new(),
            value: None,
            source_place: None,
            problem: problem.into(),
            hint: Some(hint.into()),
        }
    }

    pub(super) fn line(&self) -> Option<usize> {
        self.source_place.as_ref().and_then(Source::line)
    }

    pub(super) fn value(self, value: impl Into<String>) -> Self {
        Self { value: Some(value.into()), ..self }
    }

    /// What to do where the error itself does not say it.
    pub fn general_hint(&self) -> Option<&'static str> {
        Some(match self.source_place.as_ref()? {
            Source::User { .. } | Source::Project { .. } => {
                "correct the file, or move it away to do without it"
            }
            Source::Env(_) => "correct the variable, or unset it",
            Source::Flag(_) | Source::Task(_) | Source::Default | Source::Follows(_) => {
                return None;
            }
        })
    }

    pub(super) fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.source_place, &self.value) {
            // People know a flag by its name, not by the setting that it is.
            (Some(Source::Flag(flag)), Some(value)) => {
                write!(f, "{flag} `{}`: ", printable(value))?;
            }
            (Some(Source::Flag(flag)), None) => write!(f, "{flag}: ")?,
            (source, value) => {
                source.iter().try_for_each(|source| write!(f, "{source}: "))?;
                if !self.key.is_empty() {
                    write!(f, "`{}`", printable(&self.key))?;
                    value.iter().try_for_each(|value| write!(f, " = `{}`", printable(value)))?;
                    write!(f, ": ")?;
                }
            }
        }
        write!(f, "{}", self.problem)?;
        self.hint.iter().try_for_each(|hint| write!(f, " ({hint})"))
    }
}

/// Everything that is wrong, in the order of the layers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigErrors(pub Vec<ConfigError>);

impl std::error::Error for ConfigErrors {}

impl From<ConfigError> for ConfigErrors {
    fn from(error: ConfigError) -> Self {
        Self(vec![error])
    }
}

impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_slice() {
            [only] => write!(f, "{only}"),
            all => {
                write!(f, "the configuration has {} errors", all.len())?;
                all.iter().try_for_each(|error| write!(f, "\n  {error}"))
            }
        }
    }
}

/// Text from a file or variable, not too long. The surface escapes what is hidden in it.
pub(super) fn printable(text: &str) -> String {
    let cut = prefix(text, SHOWN_BYTES);
    let more = if cut.len() < text.len() { "…" } else { "" };
    format!("{cut}{more}")
}
