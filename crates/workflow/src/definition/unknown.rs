//! Keys that no workflow file has: all of them, each with its line and the key that was probably meant.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::Spanned;

use super::raw::{in_our_words, nearest, without_mark};
use super::{DefinitionError, keys};

/// A value of any form, with the places of its keys.
enum Node {
    Map(Vec<(Spanned<String>, Node)>),
    List(Vec<Node>),
    Other,
}

/// Every key of a text that is not known where it stands.
pub(super) fn find(text: &str) -> Result<Vec<DefinitionError>, DefinitionError> {
    let node: Node =
        serde_saphyr::from_str(without_mark(text)).map_err(|error| in_our_words(&error))?;
    let mut found = Vec::new();
    let file: Vec<_> = keys::FILE.iter().map(|key| key.name).collect();
    for (key, value) in known(&node, &file, &mut found) {
        match key {
            "inputs" => each(value, &names(keys::INPUT), &mut found),
            "runners" => each(value, &names(keys::RUNNER), &mut found),
            "worktree" => drop(known(value, &names(keys::WORKTREE), &mut found)),
            "steps" => steps(value, &mut found),
            _ => {}
        }
    }
    Ok(found)
}

fn names(keys: &[keys::Key]) -> Vec<&'static str> {
    keys.iter().map(|key| key.name).collect()
}

/// The keys of a map that are known; the others are noted.
fn known<'n>(
    node: &'n Node,
    allowed: &[&str],
    found: &mut Vec<DefinitionError>,
) -> Vec<(&'n str, &'n Node)> {
    let Node::Map(entries) = node else { return Vec::new() };
    let mut right = Vec::new();
    for (key, value) in entries {
        match allowed.contains(&key.value.as_str()) {
            true => right.push((key.value.as_str(), value)),
            false => found.push(unknown(key, allowed)),
        }
    }
    right
}

fn unknown(key: &Spanned<String>, allowed: &[&str]) -> DefinitionError {
    let given = &key.value;
    let reason = match nearest(given, allowed) {
        Some(near) => format!("there is no key `{given}`; did you mean `{near}`?"),
        None => format!("there is no key `{given}`; allowed are {}", allowed.join(", ")),
    };
    DefinitionError::at(key.referenced.line(), reason)
}

/// The maps that a map has by names of the person's own.
fn each(node: &Node, allowed: &[&str], found: &mut Vec<DefinitionError>) {
    let Node::Map(entries) = node else { return };
    entries.iter().for_each(|(_, value)| drop(known(value, allowed, found)));
}

fn steps(node: &Node, found: &mut Vec<DefinitionError>) {
    let Node::List(steps) = node else { return };
    for step in steps {
        let inner = known(step, &keys::of_steps(), found);
        inner
            .iter()
            .filter(|(key, _)| *key == "steps")
            .for_each(|(_, inner)| self::steps(inner, found));
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NodeVisitor)
    }
}

struct NodeVisitor;

impl<'de> Visitor<'de> for NodeVisitor {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Node, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = map.next_entry()? {
            entries.push(entry);
        }
        Ok(Node::Map(entries))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Node, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = list.next_element()? {
            entries.push(entry);
        }
        Ok(Node::List(entries))
    }

    fn visit_bool<E>(self, _: bool) -> Result<Node, E> {
        Ok(Node::Other)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Node, E> {
        Ok(Node::Other)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Node, E> {
        Ok(Node::Other)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Node, E> {
        Ok(Node::Other)
    }

    fn visit_str<E>(self, _: &str) -> Result<Node, E> {
        Ok(Node::Other)
    }

    fn visit_unit<E>(self) -> Result<Node, E> {
        Ok(Node::Other)
    }

    fn visit_none<E>(self) -> Result<Node, E> {
        Ok(Node::Other)
    }

    fn visit_some<D: Deserializer<'de>>(self, inner: D) -> Result<Node, D::Error> {
        inner.deserialize_any(self)
    }
}
