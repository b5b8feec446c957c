//! A task in a file of its own: frontmatter with risk, mutation, verification and approval, then its prompt
//! (MS-216).

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::manifest::Task;
use crate::{Document, Problem, Problems, read_plan};

/// The keys of a frontmatter; they are those of a task in a manifest.
const KEYS: &[&str] = &[
    "title",
    "assignedAgent",
    "tools",
    "skills",
    "dependsOn",
    "risk",
    "mutation",
    "verification",
    "approval",
    "completion",
];

/// Frontmatter and what follows it.
pub(crate) struct Frontmatter<'t> {
    pub yaml: &'t str,
    pub body: &'t str,
}

/// Reads a task's file; `id` is the task's name in the plan.
pub fn parse_task_file(file: &str, id: &str, text: &str) -> Result<Task, Problems> {
    let Frontmatter { yaml: front, body } = split(file, text)?;
    let mut keys: Map<String, Value> = yaml(file, front)?;
    let at = |key: &str, message: String| Problem {
        file: file.to_owned(),
        line: line_of(front, key),
        path: key.to_owned(),
        message,
    };
    let mut found: Vec<Problem> = keys
        .keys()
        .filter(|key| !KEYS.contains(&key.as_str()))
        .map(|key| {
            let near = crate::problem::nearest(key, KEYS.iter().copied());
            at(key, format!("unknown key{near}"))
        })
        .collect();
    if body.trim().is_empty() {
        found.push(at("", "the prompt is missing: write it after the frontmatter".to_owned()));
    }
    if !found.is_empty() {
        return Err(Problems(found));
    }
    // The same reading as in a manifest, so that both say the same of the same mistake.
    keys.insert("id".to_owned(), id.into());
    keys.insert("bestPatternPrompt".to_owned(), body.trim().into());
    let manifest = serde_json::json!({ "phases": [{ "tasks": [keys] }] });
    let document = Document::parse(file, &manifest.to_string())?;
    let plan = read_plan(&document, "task").map_err(|problems| {
        let prefix = "phases[0].tasks[0].";
        let moved = problems.0.into_iter().map(|problem| {
            let path = problem.path.strip_prefix(prefix).unwrap_or(&problem.path).to_owned();
            let key = path.split(['.', '[']).next().unwrap_or_default();
            at(&path, problem.message).with_line(line_of(front, key))
        });
        Problems(moved.collect())
    })?;
    let task = plan.tasks().next().map(|(_, task)| task.clone());
    task.ok_or_else(|| Problems(vec![at("", "it holds no task".to_owned())]))
}

impl Problem {
    fn with_line(self, line: u32) -> Self {
        Self { line, ..self }
    }
}

/// Splits a text at its `---` lines.
pub(crate) fn split<'t>(file: &str, text: &'t str) -> Result<Frontmatter<'t>, Problems> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let refuse = |message: &str| {
        let message = message.to_owned();
        Problems(vec![Problem { file: file.to_owned(), line: 1, path: String::new(), message }])
    };
    let is_fence = |line: &str| line.trim_end() == "---";
    let mut lines = text.split_inclusive('\n');
    let first = lines.next().unwrap_or_default();
    if !is_fence(first) {
        return Err(refuse("the frontmatter is missing: the first line must be `---`"));
    }
    let mut end = first.len();
    for line in lines {
        if is_fence(line) {
            return Ok(Frontmatter {
                yaml: &text[first.len()..end],
                body: &text[end + line.len()..],
            });
        }
        end += line.len();
    }
    Err(refuse("the frontmatter has no end: a line `---` is missing"))
}

/// Reads a frontmatter; an empty one is an empty object.
pub(crate) fn yaml<T: DeserializeOwned + Default>(file: &str, text: &str) -> Result<T, Problems> {
    if text.trim().is_empty() {
        return Ok(T::default());
    }
    serde_saphyr::from_str(text).map_err(|error| {
        // The fence is a line, too.
        let line = error.location().map_or(1, |at| at.line()) + 1;
        let whole = error.without_snippet().to_string();
        let message = whole.split(" at line ").next().unwrap_or(&whole);
        Problems(vec![Problem {
            file: file.to_owned(),
            line: u32::try_from(line).unwrap_or(u32::MAX),
            path: String::new(),
            message: windlass_core::text::one_line(message, 200),
        }])
    })
}

/// The line of the file with this key of its frontmatter.
pub(crate) fn line_of(yaml: &str, key: &str) -> u32 {
    let stands = |line: &str| line.split(':').next().is_some_and(|written| written.trim() == key);
    let line = yaml.lines().position(stands).filter(|_| !key.is_empty());
    line.map_or(1, |index| u32::try_from(index).unwrap_or(u32::MAX - 2) + 2)
}
