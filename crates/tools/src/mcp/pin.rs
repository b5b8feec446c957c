//! What a server said of its tools when it was first met, kept and compared (a server that changes its
//! words later may be trying to change what an agent does).

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use windlass_core::hash::hex;

use super::Definition;
use crate::output::neutralize;

/// How long a tool's description may be; every turn pays for it.
const MAX_DESCRIPTION_BYTES: usize = 4 * 1024;
/// How large a tool's schema may be, for the same reason.
const MAX_SCHEMA_BYTES: usize = 32 * 1024;

/// One tool as a server describes it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolInfo {
    /// The server's name for it.
    pub name: String,
    /// What it is for, in the server's words.
    pub description: String,
    /// The JSON schema of its arguments.
    pub parameters: Value,
    /// Whether the server says it changes nothing.
    #[serde(default)]
    pub read_only: Option<bool>,
    /// Whether the server says it may destroy.
    #[serde(default)]
    pub destructive: Option<bool>,
    /// Whether the server says it reaches beyond itself.
    #[serde(default)]
    pub open_world: Option<bool>,
}

/// Everything a server offers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Listing {
    /// Its tools, in its order.
    pub tools: Vec<ToolInfo>,
}

/// How a tool differs from what is pinned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolChange {
    /// It was not there before.
    Added(String),
    /// It is described otherwise, takes other arguments or claims other effects.
    Changed(String),
    /// It is gone.
    Removed(String),
}

impl ToolInfo {
    /// From the server's own words, bounded and made harmless; `None` when it cannot be offered.
    pub(super) fn new(tool: &rmcp::model::Tool) -> Option<Self> {
        let mut parameters = tool.input_schema.as_ref().clone();
        // Which draft it is and where it lives would have to be loaded.
        parameters.remove("$schema");
        parameters.remove("$id");
        parameters.entry("type").or_insert_with(|| "object".into());
        let mut parameters = Value::Object(parameters);
        mark_hidden(&mut parameters);
        if parameters.to_string().len() > MAX_SCHEMA_BYTES {
            return None;
        }
        let said = tool.description.as_deref().or(tool.title.as_deref()).unwrap_or_default();
        let description = windlass_core::text::prefix(said, MAX_DESCRIPTION_BYTES);
        let hint = |of: fn(&rmcp::model::ToolAnnotations) -> Option<bool>| {
            tool.annotations.as_ref().and_then(of)
        };
        Some(Self {
            name: tool.name.to_string(),
            description: neutralize(description),
            parameters,
            read_only: hint(|said| said.read_only_hint),
            destructive: hint(|said| said.destructive_hint),
            open_world: hint(|said| said.open_world_hint),
        })
    }

    /// What is compared.
    pub fn hash(&self) -> String {
        let text = serde_json::to_string(self).unwrap_or_default();
        hex(&Sha256::digest(text)[..8])
    }
}

/// Marks hidden characters in every text of a schema: each of them reaches the model. A pattern that holds one is left
/// out, as it would mean something else; the server checks its arguments anyway.
fn mark_hidden(schema: &mut Value) {
    match schema {
        Value::String(text) => *text = neutralize(text),
        Value::Array(items) => items.iter_mut().for_each(mark_hidden),
        Value::Object(fields) => {
            let given = std::mem::take(fields);
            let kept = given.into_iter().filter(|(name, value)| {
                name != "pattern" || value.as_str().is_none_or(|text| neutralize(text) == text)
            });
            fields.extend(kept.map(|(name, mut value)| {
                mark_hidden(&mut value);
                (neutralize(&name), value)
            }));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

impl Listing {
    /// How `now` differs from this.
    pub fn changes(&self, now: &Self) -> Vec<ToolChange> {
        let find = |list: &Self, name: &str| list.tools.iter().find(|t| t.name == name).cloned();
        let mut changes = Vec::new();
        for tool in &now.tools {
            match find(self, &tool.name) {
                None => changes.push(ToolChange::Added(tool.name.clone())),
                Some(pinned) if pinned.hash() != tool.hash() => {
                    changes.push(ToolChange::Changed(tool.name.clone()));
                }
                Some(_) => {}
            }
        }
        let gone = self.tools.iter().filter(|tool| find(now, &tool.name).is_none());
        changes.extend(gone.map(|tool| ToolChange::Removed(tool.name.clone())));
        changes
    }
}

/// Where a server's listing is kept.
fn path(directory: &Path, server: &Definition) -> PathBuf {
    directory.join(format!("{}-{}.json", server.name, server.identity()))
}

/// What is pinned of a server, if it was met before.
pub(super) fn read(directory: &Path, server: &Definition) -> Option<Listing> {
    let text = fs::read(path(directory, server)).ok()?;
    serde_json::from_slice(&text).ok()
}

/// Pins what a server says now.
pub(super) fn write(directory: &Path, server: &Definition, listing: &Listing) -> io::Result<()> {
    fs::create_dir_all(directory)?;
    let path = path(directory, server);
    let new = path.with_extension(format!("new-{}", std::process::id()));
    fs::write(&new, serde_json::to_vec_pretty(listing)?)?;
    fs::rename(new, path)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn hidden_characters_of_a_schema_are_marked_wherever_they_are() {
        let schema = json!({ "type": "object", "properties": {
            "to\u{202e}": { "type": "string", "title": "a\u{1b}[2J", "description": "who\u{200b}\u{e0041}",
                "enum": ["x\u{9b}", "y"], "pattern": "[\u{1}-\u{1f}]" },
            "plain": { "type": "string", "pattern": "^a+$" } } });
        let tool = rmcp::model::Tool::new("send", "said", schema.as_object().unwrap().clone());
        let marked = json!({ "type": "object", "properties": {
            "to\\u{202E}": { "type": "string", "title": "a␛[2J", "description": "who\\u{200B}\\u{E0041}",
                "enum": ["x\u{fffd}", "y"] },
            "plain": { "type": "string", "pattern": "^a+$" } } });
        assert_eq!(ToolInfo::new(&tool).unwrap().parameters, marked);
    }
}
