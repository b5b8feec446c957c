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
    /// The setting, or what was written in place of one; empty for a file that cannot be read.
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

    /// A setting that is needed and was given nowhere.
    pub(super) fn missing(key: &str, problem: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            key: key.to_owned(),
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

    pub(super) fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(source) = &self.source_place {
            write!(f, "{source}: ")?;
        }
        if !self.key.is_empty() {
            write!(f, "`{}`", printable(&self.key))?;
            if let Some(value) = &self.value {
                write!(f, " = `{}`", printable(value))?;
            }
            write!(f, ": ")?;
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
        for (index, error) in self.0.iter().enumerate() {
            let line_break = if index == 0 { "" } else { "\n" };
            write!(f, "{line_break}{error}")?;
        }
        Ok(())
    }
}

/// Text from a file or variable, not too long. The surface escapes what is hidden in it.
pub(super) fn printable(text: &str) -> String {
    let cut = prefix(text, SHOWN_BYTES);
    let more = if cut.len() < text.len() { "…" } else { "" };
    format!("{cut}{more}")
}
