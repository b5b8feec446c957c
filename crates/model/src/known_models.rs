//! What is known of well-known models: prices, context windows, abilities. The figures are data
//! (`known_models.txt`), renewed by `scripts/renew-prices`. A model that is not in the table stays unknown.

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::{LongPrice, ModelName, Price};

const TABLE: &str = include_str!("known_models.txt");

/// What the table says of one model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KnownModel {
    /// How many tokens a request may hold.
    pub context_window: Option<u64>,
    /// How many tokens a reply may hold.
    pub max_output: Option<u64>,
    /// What it costs.
    pub price: Price,
    /// Whether it takes pictures.
    pub sees: bool,
    /// Whether it reasons before it answers.
    pub reasons: bool,
}

impl KnownModel {
    /// What is known of a model: by its full name, or by its name alone where a proxy serves the models of
    /// others (`litellm/gpt-4o`, `litellm/openai/gpt-4o`).
    pub fn find(name: &ModelName) -> Option<Self> {
        if name.script().is_some() {
            return None;
        }
        let (full, model) = (name.to_string(), name.model());
        let Index { full: by_full, alone } = &*INDEX;
        let found = by_full.get(&*full).or_else(|| by_full.get(model)).or_else(|| alone.get(model));
        found.and_then(|figures| parse(figures))
    }

    /// When the figures were taken.
    pub fn last_renewed() -> &'static str {
        let mark = "# renewed ";
        let line = TABLE.lines().find_map(|line| line.strip_prefix(mark)).unwrap_or_default();
        line.split(' ').next().unwrap_or_default()
    }
}

/// The figures by name. Of several that have the same name alone, the first in the table counts.
struct Index {
    full: HashMap<&'static str, &'static str>,
    alone: HashMap<&'static str, &'static str>,
}

/// Made once: every start of a task asks several times.
static INDEX: LazyLock<Index> = LazyLock::new(|| {
    let mut alone = HashMap::new();
    for (name, figures) in rows() {
        if let Some((_, name)) = name.split_once('/') {
            alone.entry(name).or_insert(figures);
        }
    }
    Index { full: rows().collect(), alone }
});

/// Names in full, and their figures.
fn rows() -> impl Iterator<Item = (&'static str, &'static str)> {
    let lines = TABLE.lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| line.split_once(' '))
}

fn parse(figures: &str) -> Option<KnownModel> {
    let figures: Vec<&str> = figures.split(' ').collect();
    let [window, max_output, input, output, cached, cache_write, long, abilities] = figures[..]
    else {
        return None;
    };
    let price = Price {
        input: input.parse().ok()?,
        output: output.parse().ok()?,
        cached: cached.parse().ok(),
        cache_write: cache_write.parse().ok(),
        long: long_price(long),
    };
    Some(KnownModel {
        context_window: window.parse().ok(),
        max_output: max_output.parse().ok(),
        price,
        sees: abilities.contains('v'),
        reasons: abilities.contains('r'),
    })
}

fn long_price(figures: &str) -> Option<LongPrice> {
    let figures: Vec<&str> = figures.split(':').collect();
    let [over, input, output, cached] = figures[..] else { return None };
    let (over, input) = (over.parse().ok()?, input.parse().ok()?);
    Some(LongPrice { over, input, output: output.parse().ok(), cached: cached.parse().ok() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(name: &str) -> Option<KnownModel> {
        KnownModel::find(&name.parse().unwrap())
    }

    #[test]
    fn every_row_of_the_table_can_be_read() {
        for (name, figures) in rows() {
            let known = parse(figures).unwrap_or_else(|| panic!("{name} {figures}"));
            assert_eq!(find(name), Some(known), "{name}");
            assert!(known.price.input > 0.0 && known.price.output > 0.0, "{name}");
        }
        let renewed: jiff::civil::Date = KnownModel::last_renewed().parse().unwrap();
        assert!(renewed.year() >= 2026);
    }

    #[test]
    fn a_proxied_model_is_found_by_its_own_name() {
        let plain = find("openai/gpt-4o").unwrap();
        assert_eq!((plain.context_window, plain.price.input), (Some(128_000), 2.5));
        assert_eq!(find("litellm/gpt-4o"), Some(plain));
        assert_eq!(find("litellm/openai/gpt-4o"), Some(plain));
        assert_eq!(find("litellm/no-such-model"), None);
        assert_eq!(find("script:gpt-4o"), None);
    }
}
