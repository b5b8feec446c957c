//! What one task leaves for the next, as markdown with typed fields (PL-014…018).
//!
//! Invariants:
//! - Every field is there, or the snapshot is refused: when it is saved, and again when it is read. Both name the
//!   field (PL-031, PL-032).
//! - Writing and reading again gives the same snapshot, whatever its texts hold.

use std::fmt::Write as _;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::read::bad_name;

/// What one task leaves for the next.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Snapshot {
    pub plan: String,
    pub task: String,
    pub timestamp: Timestamp,
    pub failing_tests: Vec<FailingTest>,
    pub tech_debt: Vec<TechDebt>,
    pub open_decisions: Vec<String>,
    pub next_task_intent: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FailingTest {
    pub file: String,
    pub test_name: String,
    pub error: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TechDebt {
    pub file: String,
    pub what: String,
    pub why_deferred: String,
}

/// Why something is not a snapshot.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}`{field}` {problem}", line.map(|line| format!("line {line}: ")).unwrap_or_default())]
pub struct SnapshotError {
    /// The field, as `failingTests[0].error`.
    pub field: String,
    pub problem: String,
    pub line: Option<usize>,
}

const FAILING_TEST: &[&str] = &["file", "testName", "error"];
const TECH_DEBT: &[&str] = &["file", "what", "whyDeferred"];

/// The fields of a snapshot that a task fills.
const FIELDS: &[&str] = &["failingTests", "techDebt", "openDecisions", "nextTaskIntent"];

/// The fields that say whose it is and of when.
const HEAD: &[&str] = &["plan", "task", "timestamp"];

/// The name of a snapshot's file below the directory of snapshots; refused where a name could lead elsewhere.
pub fn file_name(plan: &str, task: &str) -> Result<String, SnapshotError> {
    for (field, name) in [("plan", plan), ("task", task)] {
        if let Some(problem) = bad_name(name) {
            return Err(wrong(field, format!("`{name}` cannot be used: {problem}")));
        }
    }
    Ok(format!("{plan}/{task}.md"))
}

fn wrong(field: impl Into<String>, problem: impl Into<String>) -> SnapshotError {
    SnapshotError { field: field.into(), problem: problem.into(), line: None }
}

impl Snapshot {
    /// Reads the four fields that a task fills from JSON; each must be there.
    pub fn from_fields(
        plan: &str,
        task: &str,
        timestamp: Timestamp,
        fields: &Map<String, Value>,
    ) -> Result<Self, SnapshotError> {
        if let Some(unknown) = fields
            .keys()
            .find(|key| !FIELDS.contains(&key.as_str()) && !HEAD.contains(&key.as_str()))
        {
            let near = crate::problem::nearest(unknown, FIELDS.iter().copied());
            return Err(wrong(unknown, format!("is not a field of a snapshot{near}")));
        }
        let get = |name: &str| match fields.get(name) {
            None => Err(wrong(name, "is missing")),
            Some(Value::Null) => Err(wrong(name, "must not be null")),
            Some(value) => Ok(value),
        };
        let list = |name: &str| match get(name)? {
            Value::Array(items) => Ok(items.clone()),
            _ => Err(wrong(name, "must be a list")),
        };
        let failing = list("failingTests")?;
        let debt = list("techDebt")?;
        let decisions = list("openDecisions")?;
        let intent = get("nextTaskIntent")?;
        let snapshot = Self {
            plan: plan.to_owned(),
            task: task.to_owned(),
            timestamp,
            failing_tests: objects("failingTests", FAILING_TEST, &failing)?
                .into_iter()
                .map(|[file, test_name, error]| FailingTest { file, test_name, error })
                .collect(),
            tech_debt: objects("techDebt", TECH_DEBT, &debt)?
                .into_iter()
                .map(|[file, what, why_deferred]| TechDebt { file, what, why_deferred })
                .collect(),
            open_decisions: decisions
                .iter()
                .enumerate()
                .map(|(index, value)| text(&format!("openDecisions[{index}]"), value))
                .collect::<Result<_, _>>()?,
            next_task_intent: text("nextTaskIntent", intent)?,
        };
        Ok(snapshot)
    }

    /// The four fields as JSON.
    pub fn fields(&self) -> Map<String, Value> {
        match serde_json::to_value(self) {
            Ok(Value::Object(fields)) => fields,
            _ => Map::new(),
        }
    }

    /// The snapshot's file.
    pub fn markdown(&self) -> String {
        let mut out = String::from("# Snapshot\n\n");
        let head = [&self.plan, &self.task, &self.timestamp.to_string()];
        for (name, value) in HEAD.iter().zip(head) {
            let _ = writeln!(out, "- {name}: {}", write_value(value));
        }
        let tests = self.failing_tests.iter();
        let tests = tests.map(|test| [&test.file, &test.test_name, &test.error]).collect();
        write_objects(&mut out, "failingTests", FAILING_TEST, tests);
        let debts = self.tech_debt.iter();
        let debts = debts.map(|debt| [&debt.file, &debt.what, &debt.why_deferred]).collect();
        write_objects(&mut out, "techDebt", TECH_DEBT, debts);
        out.push_str("\n## openDecisions\n\n");
        for decision in &self.open_decisions {
            let _ = writeln!(out, "- {}", write_value(decision));
        }
        if self.open_decisions.is_empty() {
            out.push_str("none\n");
        }
        let _ = write!(out, "\n## nextTaskIntent\n\n{}\n", write_value(&self.next_task_intent));
        out
    }

    /// Reads a snapshot's file; a field that is not there is named.
    pub fn parse(text: &str) -> Result<Self, SnapshotError> {
        let sections = Sections::read(text)?;
        let mut head = sections.head.into_iter();
        let mut next = |name: &str| {
            let found = head.next().flatten();
            found.ok_or_else(|| wrong(name, "is missing"))
        };
        let (plan, task, at) = (next("plan")?, next("task")?, next("timestamp")?);
        let timestamp =
            at.parse().map_err(|_| wrong("timestamp", format!("`{at}` is not a time")))?;
        file_name(&plan, &task)?;
        Self::from_fields(&plan, &task, timestamp, &sections.fields)
    }
}

/// What a file says, section by section.
#[derive(Default)]
struct Sections {
    head: Vec<Option<String>>,
    fields: Map<String, Value>,
}

impl Sections {
    fn read(text: &str) -> Result<Self, SnapshotError> {
        let mut sections = Self { head: vec![None; HEAD.len()], fields: Map::new() };
        let mut section: Option<&str> = None;
        for (number, line) in text.lines().enumerate() {
            let at = |error: SnapshotError| SnapshotError { line: Some(number + 1), ..error };
            let line = line.trim_end();
            if let Some(name) = line.strip_prefix("## ") {
                let known = FIELDS.iter().find(|field| **field == name.trim());
                let known = known.ok_or_else(|| {
                    let near = crate::problem::nearest(name.trim(), FIELDS.iter().copied());
                    at(wrong(name.trim(), format!("is not a field of a snapshot{near}")))
                })?;
                if sections.fields.contains_key(*known) {
                    return Err(at(wrong(*known, "appears twice")));
                }
                let empty = match *known {
                    "nextTaskIntent" => Value::Null,
                    _ => Value::Array(Vec::new()),
                };
                sections.fields.insert((*known).to_owned(), empty);
                section = Some(known);
                continue;
            }
            if line.is_empty() || line.starts_with("# ") {
                continue;
            }
            match section {
                None => sections.head_line(line).map_err(at)?,
                Some(name) => sections.line(name, line).map_err(at)?,
            }
        }
        Ok(sections)
    }

    fn head_line(&mut self, line: &str) -> Result<(), SnapshotError> {
        let Some((name, value)) = line.strip_prefix("- ").and_then(|line| line.split_once(':'))
        else {
            return Ok(());
        };
        if let Some(place) = HEAD.iter().position(|field| *field == name.trim()) {
            self.head[place] = Some(read(name, value)?);
        }
        Ok(())
    }

    fn line(&mut self, section: &str, line: &str) -> Result<(), SnapshotError> {
        let Some(value) = self.fields.get_mut(section) else { return Ok(()) };
        match (section, value) {
            ("nextTaskIntent", value @ Value::Null) => *value = read(section, line)?.into(),
            ("nextTaskIntent", Value::String(text)) => {
                // A person may write it in several lines.
                text.push('\n');
                text.push_str(&read(section, line)?);
            }
            (_, Value::Array(items)) if line == "none" && items.is_empty() => {}
            ("openDecisions", Value::Array(items)) => {
                let item = line.strip_prefix("- ").ok_or_else(|| {
                    wrong(section, "must be a list: begin each decision with `- `")
                })?;
                items.push(read(section, item)?.into());
            }
            (_, Value::Array(items)) => {
                if line.starts_with("- ") {
                    items.push(Value::Object(Map::new()));
                }
                let place = items.len().saturating_sub(1);
                let pair = line.strip_prefix("- ").unwrap_or(line).trim().split_once(':');
                let (Some((name, value)), Some(Value::Object(item))) = (pair, items.last_mut())
                else {
                    let problem = "must be a list of items with `- name: value`";
                    return Err(wrong(section, problem));
                };
                let field = format!("{section}[{place}].{name}");
                item.insert(name.to_owned(), read(&field, value)?.into());
            }
            _ => {}
        }
        Ok(())
    }
}

fn write_objects(out: &mut String, section: &str, names: &[&str], items: Vec<[&String; 3]>) {
    let _ = write!(out, "\n## {section}\n\n");
    for item in &items {
        for (place, (name, value)) in names.iter().zip(item).enumerate() {
            let lead = if place == 0 { "-" } else { " " };
            let _ = writeln!(out, "{lead} {name}: {}", write_value(value));
        }
    }
    if items.is_empty() {
        out.push_str("none\n");
    }
}

/// A text on one line: as it is where it is plain, else in quotes.
fn write_value(text: &str) -> String {
    let is_plain = text.trim() == text
        && !text.is_empty()
        && text != "none"
        && !text.starts_with(['"', '#', '-'])
        && !text.chars().any(char::is_control)
        && !text.contains(['\u{85}', '\u{2028}', '\u{2029}']);
    match is_plain {
        true => text.to_owned(),
        false => serde_json::to_string(text).unwrap_or_default(),
    }
}

fn read(field: &str, value: &str) -> Result<String, SnapshotError> {
    let value = value.trim();
    match value.starts_with('"') {
        false => Ok(value.to_owned()),
        true => serde_json::from_str(value)
            .map_err(|_| wrong(field, "begins with a quote and does not end with one")),
    }
}

/// Items of three texts each, all of which must be there.
fn objects(
    section: &str,
    names: &[&str],
    items: &[Value],
) -> Result<Vec<[String; 3]>, SnapshotError> {
    let one = |(index, item): (usize, &Value)| {
        let place = format!("{section}[{index}]");
        let Value::Object(item) = item else { return Err(wrong(place, "must be an object")) };
        if let Some(other) = item.keys().find(|key| !names.contains(&key.as_str())) {
            let near = crate::problem::nearest(other, names.iter().copied());
            return Err(wrong(format!("{place}.{other}"), format!("is not a field of it{near}")));
        }
        let get = |name: &str| {
            let field = format!("{place}.{name}");
            match item.get(name) {
                None => Err(wrong(field, "is missing")),
                Some(value) => text(&field, value),
            }
        };
        let [first, second, third] = [names[0], names[1], names[2]];
        Ok([get(first)?, get(second)?, get(third)?])
    };
    items.iter().enumerate().map(one).collect()
}

fn text(field: &str, value: &Value) -> Result<String, SnapshotError> {
    match value {
        Value::Null => Err(wrong(field, "must not be null")),
        Value::String(text) if text.trim().is_empty() => Err(wrong(field, "must not be empty")),
        Value::String(text) => Ok(text.clone()),
        _ => Err(wrong(field, "must be a text")),
    }
}
