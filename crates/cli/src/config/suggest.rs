//! Names that are not ours, and what was probably meant; and how much of a bad value may be shown.

use std::collections::{BTreeMap, BTreeSet};

use windlass_core::text::prefix;

use super::error::{ConfigError, Source};
use super::kind::ValueKind;
use super::notice::ConfigNotice;
use super::settings::{self, MODEL_FACTS, PROVIDER_FIELDS};
use super::written::Raw;

/// As much of a name as is compared.
const COMPARED_BYTES: usize = 64;
/// How alike two names must be for one to be suggested for the other; 1 is the same.
const ALIKE: f64 = 0.85;
/// How many edits make a variable a misspelling of ours. More would catch other programs' names.
const NEAR_MISS_EDITS: usize = 2;

/// A table that we do not have.
pub(super) fn unknown_table(name: &str, source: Source) -> ConfigError {
    let names: Vec<_> =
        settings::SECTIONS.iter().map(|section| format!("`{}`", section.name)).collect();
    let problem = format!("there is no such table; allowed: {}", names.join(", "));
    let error = ConfigError::at(name, source, problem);
    match closest(name, settings::SECTIONS.iter().map(|section| section.name)) {
        Some(meant) => error.hint(format!("did you mean `[{meant}]`?")),
        None => error,
    }
}

/// A setting that we do not have.
pub(super) fn unknown_key(key: &str, source: Source) -> ConfigError {
    let error = ConfigError::at(key, source, "there is no such setting");
    let table = key.split_once('.').map(|(table, _)| table);
    match likely_setting(key) {
        Some(meant) => error.hint(format!("did you mean `{meant}`?")),
        None => match settings::SECTIONS.iter().find(|section| Some(section.name) == table) {
            Some(section) => {
                let names = section.settings.iter().map(|setting| last(setting.key));
                let names: Vec<_> = names.map(|name| format!("`{name}`")).collect();
                error.hint(format!("`[{}]` has {}", section.name, names.join(", ")))
            }
            None => error.hint("`windlass config` lists all settings"),
        },
    }
}

/// Something in `[models."NAME"]` that we do not have.
pub(super) fn unknown_fact(key: &str, source: Source, is_table: bool) -> ConfigError {
    let names: Vec<_> = MODEL_FACTS.iter().map(|fact| format!("`{}`", fact.key)).collect();
    let problem = format!("there is no such setting of a model; allowed: {}", names.join(", "));
    let error = ConfigError::at(key, source, problem);
    match is_table {
        // `[models.gpt-4.1]` is a table `1` in a table `gpt-4`.
        true => error.hint("quote a name with dots: `[models.\"gpt-4.1\"]`"),
        false => error,
    }
}

/// Something in `[models.providers.NAME]` that we do not have.
pub(super) fn unknown_provider_field(key: &str, source: Source) -> ConfigError {
    let names: Vec<_> = PROVIDER_FIELDS.iter().map(|field| format!("`{}`", field.key)).collect();
    let problem = format!("there is no such setting of a provider; allowed: {}", names.join(", "));
    let error = ConfigError::at(key, source, problem);
    match closest(last(key), PROVIDER_FIELDS.iter().map(|field| field.key)) {
        Some(meant) => error.hint(format!("did you mean `{meant}`?")),
        None => error,
    }
}

/// Variables that are set and almost ours. Only names of almost the same length are compared, since
/// comparing is slow and start-up should not be.
pub(super) fn near_misses(variables: &BTreeMap<String, String>) -> Vec<ConfigNotice> {
    let ours: BTreeSet<_> = settings::all().flat_map(|setting| setting.env_names()).collect();
    let first_word = |name: &str| name.split_once('_').map(|(first, _)| first.to_owned());
    let first_words: BTreeSet<_> = ours.iter().filter_map(|name| first_word(name)).collect();
    let like_ours = |name: &&String| {
        let same_first = first_word(name).is_some_and(|first| first_words.contains(&first));
        same_first && name.len() <= COMPARED_BYTES && !ours.contains(*name)
    };
    let meant = |name: &String| {
        let near = |known: &&String| {
            known.len().abs_diff(name.len()) <= NEAR_MISS_EDITS
                && strsim::damerau_levenshtein(name, known) <= NEAR_MISS_EDITS
        };
        let meant = ours.iter().find(near)?.clone();
        Some(ConfigNotice::NearMiss { name: name.clone(), meant })
    };
    variables.keys().filter(like_ours).filter_map(meant).collect()
}

/// The value as an error may show it: no keys, no passwords, no whole tables.
pub(super) fn shown_value(kind: ValueKind, raw: &Raw) -> Option<String> {
    let text = match raw {
        Raw::Word(text) | Raw::Text(text) | Raw::Date(text) => text.clone(),
        Raw::Whole(Some(number)) => number.to_string(),
        Raw::Whole(None) => "a number too large".to_owned(),
        Raw::Number(number) => number.to_string(),
        Raw::Switch(on) => on.to_string(),
        Raw::List(_) => "[…]".to_owned(),
        Raw::Table(_) => "{…}".to_owned(),
    };
    let secret = match kind {
        ValueKind::Secret => true,
        ValueKind::Url(_) => text.contains(['@', '?']),
        ValueKind::Whole(..)
        | ValueKind::Number(..)
        | ValueKind::Switch
        | ValueKind::Text
        | ValueKind::Listen
        | ValueKind::Word(_)
        | ValueKind::Sandbox
        | ValueKind::Time(..)
        | ValueKind::Timeout
        | ValueKind::Keep
        | ValueKind::Size(..)
        | ValueKind::List
        | ValueKind::Words(_)
        | ValueKind::Union
        | ValueKind::Addresses
        | ValueKind::Model
        | ValueKind::Mode
        | ValueKind::Pairs
        | ValueKind::Deny
        | ValueKind::Classes
        | ValueKind::Tables
        | ValueKind::Scopes
        | ValueKind::Keys => false,
    };
    (!secret).then_some(text)
}

/// The setting that was probably meant: the same name in another table, or one much like it.
fn likely_setting(key: &str) -> Option<&'static str> {
    let keys = || settings::all().map(|known| known.key);
    let elsewhere = keys().find(|known| last(known) == last(key));
    elsewhere.or_else(|| closest(key, keys())).or_else(|| {
        let name = closest(last(key), keys().map(last))?;
        keys().find(|known| last(known) == name)
    })
}

fn closest(name: &str, known: impl Iterator<Item = &'static str>) -> Option<&'static str> {
    let name = prefix(name, COMPARED_BYTES);
    let alike = known.map(|known| (strsim::normalized_damerau_levenshtein(name, known), known));
    let best = alike.max_by(|(one, _), (other, _)| one.total_cmp(other))?;
    // Short names are unlike after a single edit.
    let enough = best.0 >= ALIKE || strsim::damerau_levenshtein(name, best.1) <= NEAR_MISS_EDITS;
    enough.then_some(best.1)
}

fn last(key: &str) -> &str {
    key.rsplit('.').next().unwrap_or(key)
}
