//! A file as YAML has it, with the place of each value. What it means is checked afterwards.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_saphyr::Spanned;
use windlass_core::text::one_line;

use super::DefinitionError;

/// A text, also where YAML reads a number or a word such as `yes`.
#[derive(Clone, Debug)]
pub(super) struct Text(pub String);

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(TextVisitor)
    }
}

struct TextVisitor;

impl serde::de::Visitor<'_> for TextVisitor {
    type Value = Text;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a text")
    }

    fn visit_str<E>(self, text: &str) -> Result<Text, E> {
        Ok(Text(text.to_owned()))
    }
}

#[derive(Deserialize)]
pub(super) struct RawFile {
    pub name: Option<Spanned<Text>>,
    pub description: Option<Text>,
    #[serde(default)]
    pub inputs: BTreeMap<String, Option<RawInput>>,
    pub runner: Option<Spanned<Text>>,
    #[serde(default)]
    pub runners: BTreeMap<String, Spanned<RawRunner>>,
    pub worktree: Option<Spanned<RawPlace>>,
    pub target: Option<Text>,
    pub steps: Option<Vec<Spanned<RawStep>>>,
}

#[derive(Deserialize)]
pub(super) struct RawInput {
    pub description: Option<Text>,
    pub default: Option<Text>,
}

#[derive(Deserialize)]
pub(super) struct RawRunner {
    pub command: Vec<Text>,
}

/// `worktree: false`, or how it is made.
pub(super) enum RawPlace {
    Switch(bool),
    Spec(RawWorktree),
}

impl<'de> Deserialize<'de> for RawPlace {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(PlaceVisitor)
    }
}

// By hand, so that an error inside keeps its own words.
struct PlaceVisitor;

impl<'de> serde::de::Visitor<'de> for PlaceVisitor {
    type Value = RawPlace;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("`false`, or how the worktree is made")
    }

    fn visit_bool<E>(self, switch: bool) -> Result<RawPlace, E> {
        Ok(RawPlace::Switch(switch))
    }

    fn visit_map<A: serde::de::MapAccess<'de>>(self, map: A) -> Result<RawPlace, A::Error> {
        let fields = serde::de::value::MapAccessDeserializer::new(map);
        RawWorktree::deserialize(fields).map(RawPlace::Spec)
    }
}

#[derive(Default, Deserialize)]
pub(super) struct RawWorktree {
    pub base: Option<String>,
    pub sparse: Option<Vec<Text>>,
    pub reuse: Option<u32>,
    pub create: Option<String>,
    pub remove: Option<String>,
    #[serde(default)]
    pub cache: BTreeMap<String, Text>,
    pub setup: Option<String>,
    pub cleanup: Option<String>,
    pub keep: Option<bool>,
}

#[derive(Deserialize)]
pub(super) struct RawStep {
    pub name: Option<Spanned<Text>>,
    #[serde(rename = "type")]
    pub kind: Option<Spanned<Text>>,
    pub when: Option<Spanned<Text>>,
    pub timeout: Option<Spanned<Text>>,
    pub on_fail: Option<Spanned<Text>>,
    pub output: Option<Spanned<Text>>,
    pub needs: Option<Vec<Spanned<Text>>>,
    pub spell: Option<Spanned<Text>>,
    pub runner: Option<Spanned<Text>>,
    pub model: Option<Spanned<Text>>,
    pub profile: Option<Spanned<Text>>,
    pub command: Option<Spanned<Text>>,
    pub rerun: Option<Spanned<Text>>,
    pub max: Option<Spanned<Text>>,
    pub workers: Option<Spanned<Text>>,
    pub join: Option<Spanned<Text>>,
    pub tries: Option<Spanned<Text>>,
    pub from: Option<Spanned<Text>>,
    pub until: Option<Spanned<Text>>,
    pub steps: Option<Spanned<Vec<Spanned<RawStep>>>>,
    pub target: Option<Spanned<Text>>,
    pub strategy: Option<Spanned<Text>>,
    pub gates: Option<Spanned<Vec<Text>>>,
    pub message: Option<Spanned<Text>>,
    pub conflicts: Option<Spanned<Text>>,
    pub question: Option<Spanned<Text>>,
    pub options: Option<Spanned<Vec<Text>>>,
    pub title: Option<Spanned<Text>>,
    pub body: Option<Spanned<Text>>,
    pub remote: Option<Spanned<Text>>,
}

impl RawStep {
    /// The keys that belong to some types of steps and that this one has, each with its line.
    pub fn own_keys(&self) -> Vec<(&'static str, u64)> {
        fn line<T>(value: &Option<Spanned<T>>) -> Option<u64> {
            value.as_ref().map(|value| value.referenced.line())
        }
        let found = [
            ("spell", line(&self.spell)),
            ("runner", line(&self.runner)),
            ("model", line(&self.model)),
            ("profile", line(&self.profile)),
            ("command", line(&self.command)),
            ("rerun", line(&self.rerun)),
            ("max", line(&self.max)),
            ("until", line(&self.until)),
            ("workers", line(&self.workers)),
            ("join", line(&self.join)),
            ("from", line(&self.from)),
            ("steps", line(&self.steps)),
            ("target", line(&self.target)),
            ("strategy", line(&self.strategy)),
            ("gates", line(&self.gates)),
            ("message", line(&self.message)),
            ("conflicts", line(&self.conflicts)),
            ("question", line(&self.question)),
            ("options", line(&self.options)),
            ("title", line(&self.title)),
            ("body", line(&self.body)),
            ("remote", line(&self.remote)),
        ];
        found.into_iter().filter_map(|(key, line)| Some((key, line?))).collect()
    }
}

/// Reads a file of keys that are known.
pub(super) fn read(text: &str) -> Result<RawFile, DefinitionError> {
    serde_saphyr::from_str(without_mark(text)).map_err(|error| in_our_words(&error))
}

/// Some editors put a mark before the first character.
pub(super) fn without_mark(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

pub(super) fn in_our_words(error: &serde_saphyr::Error) -> DefinitionError {
    let line = error.location().map_or(0, |at| at.line());
    let words = error.without_snippet().to_string();
    let words = words.split(" at line ").next().unwrap_or(&words);
    let words = without_library_words(words);
    let words = words.as_str();
    // What the parser says of its own state says little to whoever wrote the file.
    let hint = if words.starts_with("while parsing") { "; check the indentation" } else { "" };
    DefinitionError::at(line, format!("{}{hint}", one_line(words, 200)))
}

/// What the library says to programmers helps nobody who writes a workflow.
fn without_library_words(words: &str) -> String {
    match words {
        "recursive references require weak recursion types" => {
            "an alias (`*name`) leads into the value that it belongs to".to_owned()
        }
        "expected mapping start" => "keys with values belong here (`key: value`)".to_owned(),
        "expected sequence start" => "a list belongs here: lines that begin with `- `".to_owned(),
        words if words.starts_with("tabs disallowed") => {
            "YAML takes no tabs here; indent with spaces".to_owned()
        }
        words if words.starts_with("multiple YAML documents") => {
            "a file has one workflow; a line `---` begins another one".to_owned()
        }
        words if words.starts_with("budget breached") => {
            "it is too large or too deep; an alias (`*name`) may repeat too much".to_owned()
        }
        words => words.replace(", set DuplicateKeyPolicy in Options if acceptable", ""),
    }
}

/// The word that was probably meant.
pub(crate) fn nearest<'a>(given: &str, known: &[&'a str]) -> Option<&'a str> {
    let likeness = |name: &&&str| (strsim::jaro_winkler(given, name) * 1000.0) as u32;
    let best = known.iter().max_by_key(likeness)?;
    (strsim::jaro_winkler(given, best) > 0.75).then_some(*best)
}
