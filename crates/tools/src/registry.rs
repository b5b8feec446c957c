//! All tools by name, in a stable order, and the checking of arguments against their schemas.
//!
//! Invariants:
//! - The order is the order the tools were added in, and for our own the order of `Registry::builtin`:
//!   files, plan and notes, people, skills, output. The same tools give the same bytes.
//! - A schema is generated and compiled once; a call that does not fit never reaches its tool (ES-204).
//! - Our own tools are the same for all tasks, so they are made once in a process, and the schema of one is
//!   compiled when it is first called.

use std::sync::{Arc, LazyLock, OnceLock};

use serde_json::Value;
use windlass_core::axes::PermissionProfile;
use windlass_core::layout::Layout;
use windlass_core::message::{ArgumentSchema, ToolSpec};
use windlass_core::outcome::Outcome;
use windlass_core::policy::Decision;
use windlass_core::policy::decide::by_profile;

use crate::builtin;
use crate::schema::{self, SchemaCheck};
use crate::tool::Tool;

/// The longest arguments of one call; more than any model's longest reply.
pub const MAX_ARGUMENT_BYTES: usize = 4 << 20;

/// How much of an unknown name is compared with the known ones.
const MAX_COMPARED_CHARS: usize = 64;

#[derive(Clone, Default)]
pub struct Registry {
    tools: Vec<Arc<RegisteredTool>>,
}

struct RegisteredTool {
    tool: Arc<dyn Tool>,
    parameters: Value,
    schema: ArgumentSchema,
    check: OnceLock<SchemaCheck>,
}

impl RegisteredTool {
    fn new(tool: Arc<dyn Tool>, parameters: Value, check: OnceLock<SchemaCheck>) -> Arc<Self> {
        let schema = ArgumentSchema::from(&parameters);
        Arc::new(Self { tool, parameters, schema, check })
    }

    fn check(&self) -> &SchemaCheck {
        let compile = || SchemaCheck::new(self.tool.name(), &self.parameters);
        self.check.get_or_init(|| compile().expect("our own schemas compile, others have been"))
    }
}

/// Why a tool cannot be added.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Another tool has this name.
    #[error("there are two tools named `{name}`")]
    Twice { name: String },
    /// Its schema is not valid.
    #[error("the schema of tool `{name}` cannot be used: {reason}")]
    Schema {
        name: String,
        /// What is wrong.
        reason: String,
    },
}

impl Registry {
    /// The tools that need nothing but a workspace and skills.
    pub fn builtin() -> Self {
        static OWN: LazyLock<Registry> = LazyLock::new(|| {
            let mut registry = Registry::default();
            builtin::all().into_iter().for_each(|tool| registry.add_own(tool));
            registry
        });
        OWN.clone()
    }

    /// Adds a tool of ours. Its name must be unique and its schema must compile; tests check both.
    pub fn add_own(&mut self, tool: Arc<dyn Tool>) {
        let parameters = tool.parameters();
        self.tools.push(RegisteredTool::new(tool, parameters, OnceLock::new()));
    }

    /// Adds a tool after all others.
    pub fn add(&mut self, tool: Arc<dyn Tool>) -> Result<(), Error> {
        let name = || tool.name().to_owned();
        if self.get(tool.name()).is_some() {
            return Err(Error::Twice { name: name() });
        }
        let parameters = tool.parameters();
        let check = SchemaCheck::new(tool.name(), &parameters)
            .map_err(|reason| Error::Schema { name: name(), reason })?;
        self.tools.push(RegisteredTool::new(tool, parameters, OnceLock::from(check)));
        Ok(())
    }

    /// All tools, in order (ES-201).
    pub fn iter(&self) -> impl Iterator<Item = &Arc<dyn Tool>> {
        self.tools.iter().map(|entry| &entry.tool)
    }

    /// The tool of this name.
    pub fn get(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        self.entry(name).map(|entry| &entry.tool)
    }

    /// The tools that `offered` admits, as the model is shown them (ES-202, ES-203).
    pub fn specs(&self, layout: &Layout, offered: impl Fn(&dyn Tool) -> bool) -> Vec<ToolSpec> {
        self.tools
            .iter()
            .filter(|entry| offered(entry.tool.as_ref()))
            .map(|entry| ToolSpec {
                name: entry.tool.name().to_owned(),
                description: layout.fill(entry.tool.description()),
                parameters: entry.schema.clone(),
            })
            .collect()
    }

    /// The arguments of a call as its tool takes them, or what the model should do differently.
    pub fn check(&self, name: &str, arguments: &str) -> Result<Value, Outcome> {
        let entry = self.entry(name).ok_or_else(|| self.unknown(name))?;
        let mut value = parse(name, arguments)?;
        schema::drop_nulls(&entry.parameters, &mut value);
        entry.tool.replace_synonyms(&mut value);
        let complaints = entry.check().complaints(&entry.parameters, &value);
        if complaints.is_empty() {
            return Ok(value);
        }
        let complaints = complaints.join("\n- ");
        Err(Outcome::error(format!(
            "The arguments of `{name}` do not fit its schema:\n- {complaints}\nThe call did not run. \
             Correct the arguments and call it again."
        )))
    }

    fn entry(&self, name: &str) -> Option<&RegisteredTool> {
        self.tools.iter().map(Arc::as_ref).find(|entry| entry.tool.name() == name)
    }

    fn unknown(&self, name: &str) -> Outcome {
        let names: Vec<_> = self.iter().map(|tool| tool.name()).collect();
        let close = |known: &&&str| distance(name, known) <= known.len().div_ceil(2);
        let is_part_of_it = |known: &&&str| name.to_ascii_lowercase().contains(**known);
        let nearest = names.iter().min_by_key(|known| distance(name, known)).filter(close);
        let hint = match nearest.or_else(|| names.iter().find(is_part_of_it)) {
            Some(known) => format!(" Did you mean `{known}`?"),
            None => String::new(),
        };
        let name = windlass_core::text::one_line(name, 64);
        Outcome::error(format!(
            "There is no tool `{name}`.{hint} The tools are: {}.",
            names.join(", ")
        ))
    }
}

/// Admits the tools of which `profile` allows at least the most harmless call.
pub fn reachable_under(profile: PermissionProfile) -> impl Fn(&dyn Tool) -> bool {
    move |tool| by_profile(tool.min_class().0, profile) != Decision::Deny
}

fn parse(name: &str, arguments: &str) -> Result<Value, Outcome> {
    if arguments.len() > MAX_ARGUMENT_BYTES {
        return Err(Outcome::error(format!(
            "The arguments of `{name}` are too large: {} bytes, and at most {MAX_ARGUMENT_BYTES} are \
             taken. The call did not run. Do it in smaller pieces.",
            arguments.len()
        )));
    }
    // Some providers send nothing where there are no arguments.
    let text = if arguments.trim().is_empty() { "{}" } else { arguments };
    match serde_json::from_str(text) {
        Ok(object @ Value::Object(_)) => Ok(object),
        Ok(_) => Err(Outcome::error(format!(
            "The arguments of `{name}` are not a JSON object. The call did not run. Send an object with \
             the fields of its schema."
        ))),
        Err(error) => Err(Outcome::error(format!(
            "The arguments of `{name}` are not valid JSON: {error}. The call did not run. Send them again \
             as one JSON object."
        ))),
    }
}

/// Edits between two names, case aside. What a model made up may be very long, and its beginning will do.
fn distance(name: &str, known: &str) -> usize {
    let name: String = name.chars().take(MAX_COMPARED_CHARS).collect();
    strsim::levenshtein(&name.to_ascii_lowercase(), &known.to_ascii_lowercase())
}
