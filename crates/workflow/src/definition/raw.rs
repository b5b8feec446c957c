//! A file as YAML has it, with the place of each value. What it means is checked afterwards.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_saphyr::Spanned;
use windlass_core::text::one_line;

use super::{DefinitionError, keys};

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
#[serde(deny_unknown_fields)]
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
#[serde(deny_unknown_fields)]
pub(super) struct RawInput {
    pub description: Option<Text>,
    pub default: Option<Text>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
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
#[serde(deny_unknown_fields)]
pub(super) struct RawWorktree {
    pub base: Option<String>,
    pub setup: Option<String>,
    pub cleanup: Option<String>,
    pub keep: Option<bool>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
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
    pub rerun: Option<Spanned<bool>>,
    pub max: Option<Spanned<u32>>,
    pub workers: Option<Spanned<u32>>,
    pub join: Option<Spanned<bool>>,
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
}

pub(super) fn read(text: &str) -> Result<RawFile, DefinitionError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    serde_saphyr::from_str(text).map_err(|error| {
        let line = error.location().map_or(0, |at| at.line());
        let words = error.without_snippet().to_string();
        let words = words.split(" at line ").next().unwrap_or(&words);
        DefinitionError::at(line, in_our_words(words))
    })
}

/// Serde names every key that would be allowed. A person wants the nearest.
fn in_our_words(words: &str) -> String {
    let quoted = |text: &str| text.split('`').nth(1).map(str::to_owned);
    let Some(given) = words.split("unknown field").nth(1).and_then(quoted) else {
        return one_line(words, 200);
    };
    let file = keys::FILE.iter().chain(keys::WORKTREE).chain(keys::INPUT).chain(keys::RUNNER);
    let known = file.map(|key| key.name).chain(keys::of_steps());
    let all: Vec<&str> = known.collect();
    let named = |name: &&str| words.contains(&format!("`{name}`"));
    // Where the reader does not say what is allowed there, any key may have been meant.
    let known: Vec<&str> = match all.iter().copied().filter(|name| named(name)).collect() {
        named if !Vec::<&str>::is_empty(&named) => named,
        _ => all,
    };
    match nearest(&given, &known) {
        Some(near) => format!("there is no key `{given}`; did you mean `{near}`?"),
        None => format!("there is no key `{given}`; allowed are {}", known.join(", ")),
    }
}

/// The word that was probably meant.
pub(super) fn nearest<'a>(given: &str, known: &[&'a str]) -> Option<&'a str> {
    let likeness = |name: &&&str| (strsim::jaro_winkler(given, name) * 1000.0) as u32;
    let best = known.iter().max_by_key(likeness)?;
    (strsim::jaro_winkler(given, best) > 0.75).then_some(*best)
}
