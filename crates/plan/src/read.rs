//! From a JSON document to a plan. Every wrong place is found in one reading, and named.

use std::cell::RefCell;
use std::str::FromStr;

use serde_json::Value;
use windlass_core::axes::UnknownValue;
use windlass_core::contract::Contract;

use crate::contract::contract_from_value;
use crate::document::{item_path, key_path};
use crate::manifest::{AgentRef, Phase, Plan, PlanStep, Task};
use crate::problem::nearest;
use crate::{Document, Problem, Problems};

/// The JSON Schema of a manifest, for editors.
pub const SCHEMA: &str = include_str!("../schema/plan.schema.json");

/// The keys of each object of a manifest.
pub(crate) const PLAN_KEYS: &[&str] = &[
    "$schema",
    "id",
    "title",
    "description",
    "requiredSkills",
    "requiredMcpTools",
    "assignedAgents",
    "assignedAgent",
    "completion",
    "phases",
];
pub(crate) const AGENT_KEYS: &[&str] =
    &["name", "model", "permissionProfile", "tools", "skills", "mcpTools", "prompt"];
pub(crate) const PHASE_KEYS: &[&str] = &["id", "title", "assignedAgent", "dependsOn", "tasks"];
pub(crate) const TASK_KEYS: &[&str] = &[
    "id",
    "title",
    "file",
    "assignedAgent",
    "bestPatternPrompt",
    "tools",
    "skills",
    "dependsOn",
    "steps",
    "risk",
    "mutation",
    "verification",
    "approval",
    "completion",
];
pub(crate) const STEP_KEYS: &[&str] = &["step", "text"];

/// How long a name may be: it is a file name, a column and a word in commands.
const MAX_NAME_CHARS: usize = 64;

/// The number of the last step.
const MAX_STEP: u64 = 99;

/// Reads a plan; `name` is its name where it does not say one.
pub fn read_plan(document: &Document, name: &str) -> Result<Plan, Problems> {
    let found = RefCell::new(document.duplicate_keys().collect());
    let root = Node { document, found: &found, value: &document.value, path: String::new() };
    let plan = plan(&root, name);
    let mut found: Vec<Problem> = found.into_inner();
    found.sort_by_key(|problem| problem.line);
    match (plan, found.is_empty()) {
        (Some(plan), true) => Ok(plan),
        _ => Err(Problems(found)),
    }
}

fn plan(node: &Node<'_>, name: &str) -> Option<Plan> {
    let fields = node.fields(PLAN_KEYS)?;
    let phases = fields.get("phases").map(|node| node.items()).unwrap_or_default();
    let mut count = 0;
    let phases: Vec<_> = phases
        .iter()
        .enumerate()
        .filter_map(|(index, node)| phase(node, index, &mut count))
        .collect();
    let agents = fields.get("assignedAgents").map(|node| node.items()).unwrap_or_default();
    fields.get("$schema").and_then(|node| node.text());
    let id = fields.name("id").unwrap_or_else(|| name.to_owned());
    Some(Plan {
        title: fields.text("title").unwrap_or_else(|| id.clone()),
        id,
        description: fields.text("description"),
        required_skills: fields.texts("requiredSkills"),
        required_mcp_tools: fields.texts("requiredMcpTools"),
        assigned_agents: agents.iter().filter_map(agent).collect(),
        assigned_agent: fields.text("assignedAgent"),
        completion: fields.get("completion").and_then(|node| node.contract()),
        phases,
    })
}

fn agent(node: &Node<'_>) -> Option<AgentRef> {
    if node.value.is_string() {
        return Some(AgentRef { name: node.text()?, ..AgentRef::default() });
    }
    let fields = node.fields(AGENT_KEYS)?;
    let name = fields.name("name");
    if name.is_none() && fields.get("name").is_none() {
        node.blame("`name` is missing");
    }
    Some(AgentRef {
        name: name?,
        model: fields.text("model"),
        permission_profile: fields.get("permissionProfile").and_then(|node| node.word()),
        tools: fields.texts("tools"),
        skills: fields.texts("skills"),
        mcp_tools: fields.texts("mcpTools"),
        prompt: fields.text("prompt"),
    })
}

fn phase(node: &Node<'_>, index: usize, count: &mut usize) -> Option<Phase> {
    let fields = node.fields(PHASE_KEYS)?;
    let tasks = fields.get("tasks").map(|node| node.items()).unwrap_or_default();
    let tasks = tasks.iter().filter_map(|node| {
        *count += 1;
        task(node, *count)
    });
    let tasks = tasks.collect();
    let id = fields.name("id").unwrap_or_else(|| format!("p{}", index + 1));
    Some(Phase {
        title: fields.text("title").unwrap_or_else(|| id.clone()),
        id,
        assigned_agent: fields.text("assignedAgent"),
        depends_on: fields.texts("dependsOn"),
        tasks,
    })
}

fn task(node: &Node<'_>, number: usize) -> Option<Task> {
    let fields = node.fields(TASK_KEYS)?;
    let file = fields.text("file");
    let prompt = fields.text("bestPatternPrompt");
    if fields.get("bestPatternPrompt").is_none() && fields.get("file").is_none() {
        node.blame("`bestPatternPrompt` is missing");
    }
    let steps = fields.get("steps").map(|node| node.items()).unwrap_or_default();
    let id = fields.name("id").unwrap_or_else(|| format!("t{number:02}"));
    Some(Task {
        title: fields.text("title").unwrap_or_else(|| id.clone()),
        id,
        file,
        assigned_agent: fields.text("assignedAgent"),
        best_pattern_prompt: prompt.unwrap_or_default(),
        tools: fields.texts("tools"),
        skills: fields.texts("skills"),
        depends_on: fields.texts("dependsOn").unwrap_or_default(),
        steps: steps.iter().filter_map(step).collect(),
        risk: fields.get("risk").and_then(|node| node.word()),
        mutation: fields.get("mutation").and_then(|node| node.word()),
        verification: fields.texts("verification").unwrap_or_default(),
        approval: fields.get("approval").and_then(|node| node.word()),
        completion: fields.get("completion").and_then(|node| node.contract()),
    })
}

fn step(node: &Node<'_>) -> Option<PlanStep> {
    let fields = node.fields(STEP_KEYS)?;
    for key in STEP_KEYS.iter().filter(|key| fields.get(key).is_none()) {
        node.blame(format!("`{key}` is missing"));
    }
    let number = fields.get("step")?;
    let Some(step) = number.value.as_u64().filter(|step| *step <= MAX_STEP) else {
        number.blame("must be a number from 0 to 99");
        return None;
    };
    Some(PlanStep { step: u32::try_from(step).ok()?, text: fields.text("text")? })
}

/// A value of the document, with the place where it is blamed.
struct Node<'d> {
    document: &'d Document,
    found: &'d RefCell<Vec<Problem>>,
    value: &'d Value,
    path: String,
}

/// An object, whose keys are all known.
struct Fields<'d>(&'d Node<'d>);

impl<'d> Node<'d> {
    fn blame(&self, message: impl Into<String>) {
        self.found.borrow_mut().push(self.document.problem(&self.path, message));
    }

    /// `null` is not a value: a key without a value is left out (PL-040).
    fn wrong(&self, wanted: &str) {
        self.blame(match self.value {
            Value::Null => format!("must be {wanted}, not `null`; leave the key out instead"),
            Value::Bool(_) => format!("must be {wanted}, not true or false"),
            Value::Number(_) => format!("must be {wanted}, not a number"),
            Value::String(_) => format!("must be {wanted}, not a text"),
            Value::Array(_) => format!("must be {wanted}, not a list"),
            Value::Object(_) => format!("must be {wanted}, not an object"),
        });
    }

    fn child(&self, value: &'d Value, path: String) -> Node<'d> {
        Node { document: self.document, found: self.found, value, path }
    }

    fn fields(&'d self, known: &[&'static str]) -> Option<Fields<'d>> {
        let Value::Object(map) = self.value else {
            self.wrong("an object");
            return None;
        };
        for (key, value) in map.iter().filter(|(key, _)| !known.contains(&key.as_str())) {
            let near = nearest(key, known.iter().copied());
            self.child(value, key_path(&self.path, key)).blame(format!("unknown key{near}"));
        }
        Some(Fields(self))
    }

    fn items(&self) -> Vec<Node<'d>> {
        let Value::Array(items) = self.value else {
            self.wrong("a list");
            return Vec::new();
        };
        let item = |(index, value)| self.child(value, item_path(&self.path, index));
        items.iter().enumerate().map(item).collect()
    }

    fn text(&self) -> Option<String> {
        match self.value.as_str() {
            Some(text) if text.trim().is_empty() => self.blame("must not be empty"),
            Some(text) => return Some(text.to_owned()),
            None => self.wrong("a text"),
        }
        None
    }

    fn contract(&self) -> Option<Contract> {
        let read = contract_from_value(self.value);
        read.map_err(|error| {
            let path = match error.place.is_empty() {
                true => self.path.clone(),
                false => key_path(&self.path, &error.place),
            };
            self.found.borrow_mut().push(self.document.problem(&path, error.problem));
        })
        .ok()
    }

    fn word<T: FromStr<Err = UnknownValue>>(&self) -> Option<T> {
        let word = self.text()?;
        word.parse()
            .map_err(|unknown: UnknownValue| {
                let near = nearest(&word, unknown.allowed.split(", "));
                self.blame(format!("`{word}` is not allowed{near} (allowed: {})", unknown.allowed));
            })
            .ok()
    }
}

impl<'d> Fields<'d> {
    fn get(&self, key: &str) -> Option<Node<'d>> {
        let value = self.0.value.get(key)?;
        Some(self.0.child(value, key_path(&self.0.path, key)))
    }

    fn text(&self, key: &str) -> Option<String> {
        self.get(key)?.text()
    }

    fn texts(&self, key: &str) -> Option<Vec<String>> {
        let node = self.get(key)?;
        let items = node.items();
        let mut texts: Vec<String> = Vec::with_capacity(items.len());
        for item in &items {
            let Some(text) = item.text() else { continue };
            match texts.contains(&text) {
                true => item.blame(format!("`{text}` appears twice in the list")),
                false => texts.push(text),
            }
        }
        Some(texts)
    }

    /// A text that is also a file name and a word in commands.
    fn name(&self, key: &str) -> Option<String> {
        let node = self.get(key)?;
        let name = node.text()?;
        match bad_name(&name) {
            Some(problem) => node.blame(problem),
            None => return Some(name),
        }
        None
    }
}

/// What is wrong with a name.
pub(crate) fn bad_name(name: &str) -> Option<String> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if name.chars().count() > MAX_NAME_CHARS {
        return Some(format!("a name has at most {MAX_NAME_CHARS} characters"));
    }
    let is_plain = name.chars().all(allowed) && !name.starts_with(['.', '-']) && !name.is_empty();
    (!is_plain).then(|| {
        "a name holds only letters, digits, `-`, `_` and `.`, and begins with a letter or a digit"
            .to_owned()
    })
}
