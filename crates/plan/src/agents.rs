//! Agent definitions: `.windlass/agents/NAME.md`, frontmatter and the agent's own instructions.

use std::str::FromStr;

use serde::Deserialize;
use windlass_core::axes::{PermissionProfile, UnknownValue};

use crate::manifest::AgentRef;
use crate::problem::nearest;
use crate::read::bad_name;
use crate::task_file::{Frontmatter, line_of, split};
use crate::{Problem, Problems};

/// An agent of a roster as its definition says it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AgentDefinition {
    pub name: String,
    pub description: String,
    pub model: Option<String>,
    pub permission_profile: Option<PermissionProfile>,
    pub tools: Option<Vec<String>>,
    pub skills: Option<Vec<String>>,
    pub mcp_tools: Option<Vec<String>>,
    /// Its own instructions.
    pub prompt: String,
}

impl AgentDefinition {
    /// What of it counts only when a person has approved the file that says it (§15.13).
    pub fn needs_trust(&self) -> Vec<&'static str> {
        let sets = [
            ("model", self.model.is_some()),
            ("permission profile", self.permission_profile.is_some()),
            ("MCP servers", self.mcp_tools.is_some()),
        ];
        sets.into_iter().filter(|(_, is_set)| *is_set).map(|(name, _)| name).collect()
    }
}

impl From<&AgentRef> for AgentDefinition {
    fn from(agent: &AgentRef) -> Self {
        let agent = agent.clone();
        Self {
            name: agent.name,
            description: String::new(),
            model: agent.model,
            permission_profile: agent.permission_profile,
            tools: agent.tools,
            skills: agent.skills,
            mcp_tools: agent.mcp_tools,
            prompt: agent.prompt.unwrap_or_default(),
        }
    }
}

const KEYS: &[&str] =
    &["name", "description", "model", "permission-profile", "tools", "skills", "mcp-tools"];

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Keys {
    name: Option<String>,
    description: Option<String>,
    model: Option<String>,
    permission_profile: Option<String>,
    tools: Option<Names>,
    skills: Option<Names>,
    mcp_tools: Option<Names>,
}

/// A list of names, also as one text with commas between.
#[derive(Deserialize)]
#[serde(untagged)]
enum Names {
    One(String),
    Many(Vec<String>),
}

impl From<Names> for Vec<String> {
    fn from(names: Names) -> Self {
        match names {
            Names::Many(names) => names,
            Names::One(text) => text
                .split(',')
                .map(|name| name.trim().to_owned())
                .filter(|name| !name.is_empty())
                .collect(),
        }
    }
}

/// Reads a definition; `name` is that of its file.
pub fn parse_agent(file: &str, name: &str, text: &str) -> Result<AgentDefinition, Problems> {
    let Frontmatter { yaml, body } = split(file, text)?;
    let blame = |line: u32, path: &str, message: String| {
        Problems(vec![Problem { file: file.to_owned(), line, path: path.to_owned(), message }])
    };
    let found: serde_json::Map<String, serde_json::Value> = crate::task_file::yaml(file, yaml)?;
    if let Some(key) = found.keys().find(|key| !KEYS.contains(&key.as_str())) {
        let near = nearest(key, KEYS.iter().copied());
        return Err(blame(line_of(yaml, key), key, format!("unknown key{near}")));
    }
    if let Some((key, _)) = found.iter().find(|(_, value)| value.is_null()) {
        let message = "`null` is not a value; leave the key out instead".to_owned();
        return Err(blame(line_of(yaml, key), key, message));
    }
    let keys: Keys =
        serde_json::from_value(found.into()).map_err(|error| blame(2, "", error.to_string()))?;
    let own = keys.name.unwrap_or_else(|| name.to_owned());
    if own != name {
        let message = format!("its name is `{own}`, and its file is named `{name}`");
        return Err(blame(line_of(yaml, "name"), "name", message));
    }
    if let Some(problem) = bad_name(&own) {
        return Err(blame(line_of(yaml, "name"), "name", problem));
    }
    let profile = keys.permission_profile.as_deref().map(PermissionProfile::from_str).transpose();
    let profile = profile.map_err(|unknown: UnknownValue| {
        let UnknownValue { given, allowed, .. } = &unknown;
        let near = nearest(given, allowed.split(", "));
        let message = format!("`{given}` is not allowed{near} (allowed: {allowed})");
        blame(line_of(yaml, "permission-profile"), "permission-profile", message)
    })?;
    Ok(AgentDefinition {
        name: own,
        description: keys.description.unwrap_or_default(),
        model: keys.model,
        permission_profile: profile,
        tools: keys.tools.map(Into::into),
        skills: keys.skills.map(Into::into),
        mcp_tools: keys.mcp_tools.map(Into::into),
        prompt: body.trim().to_owned(),
    })
}
