//! What is wrong with a file: which file, which line, which place in it, and what.

use std::fmt;

use serde::Serialize;
use strsim::damerau_levenshtein;

/// A name that needs more changes than this is another name.
const NEAR: usize = 3;

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Problem {
    pub file: String,
    pub line: u32,
    /// The place in the document, as `phases[0].tasks[1].skills`; empty for the whole.
    pub path: String,
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, line, path, message } = self;
        match path.is_empty() {
            true => write!(f, "{file}:{line}: {message}"),
            false => write!(f, "{file}:{line}: `{path}`: {message}"),
        }
    }
}

/// Everything that is wrong with a file; at least one thing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
pub struct Problems(pub Vec<Problem>);

/// The known name that is probably meant, as the end of a sentence.
pub(crate) fn nearest<'n>(name: &str, known: impl IntoIterator<Item = &'n str>) -> String {
    let near = known
        .into_iter()
        .map(|known| (damerau_levenshtein(&name.to_lowercase(), &known.to_lowercase()), known))
        .filter(|(distance, known)| *distance <= NEAR && *distance < known.chars().count())
        .min();
    near.map(|(_, known)| format!("; did you mean `{known}`?")).unwrap_or_default()
}

/// Names in a sentence, or `none`.
pub(crate) fn list_names<'n>(names: impl IntoIterator<Item = &'n str>) -> String {
    let names: Vec<_> = names.into_iter().map(|name| format!("`{name}`")).collect();
    match names.is_empty() {
        true => "none".to_owned(),
        false => names.join(", "),
    }
}
