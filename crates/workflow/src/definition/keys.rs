//! Which keys a workflow file may have: one table, from which unknown keys are found and the JSON schema is made.

use serde_json::{Map, Value, json};

/// A key, what it takes, and what it is for.
pub(super) struct Key {
    pub name: &'static str,
    kind: KeyValue,
    text: &'static str,
}

enum KeyValue {
    Text,
    Number(u32),
    Bool,
    Word(&'static [&'static str]),
    Texts,
    Duration,
    Steps,
    Inputs,
    Runners,
    Worktree,
    Variables,
}

const fn key(name: &'static str, kind: KeyValue, text: &'static str) -> Key {
    Key { name, kind, text }
}

/// Keys at the top of a file.
pub(super) const FILE: &[Key] = &[
    key("name", KeyValue::Text, "The name; without, that of the file"),
    key("description", KeyValue::Text, "What it is for, in a sentence"),
    key("inputs", KeyValue::Inputs, "What a person gives it, by name"),
    key(
        "runner",
        KeyValue::Text,
        "Who works on agent steps: windlass, claude, codex, or one of `runners`",
    ),
    key("runners", KeyValue::Runners, "Programs that work on agent steps, by name"),
    key("worktree", KeyValue::Worktree, "Where steps work; `false` for the directory itself"),
    key("target", KeyValue::Text, "The branch that merges go to"),
    key("steps", KeyValue::Steps, "What is done, in order"),
];

/// Keys of a worktree.
pub(super) const WORKTREE: &[Key] = &[
    key(
        "base",
        KeyValue::Text,
        "`head`, the commit that is checked out; `fresh`, the target as its remote has it; or a branch, tag or commit",
    ),
    key(
        "sparse",
        KeyValue::Texts,
        "Directories that are checked out, besides the files at the top; without, all",
    ),
    key(
        "reuse",
        KeyValue::Number(super::MAX_WARM),
        "How many worktrees stay for the next runs, with what git ignores in them",
    ),
    key(
        "create",
        KeyValue::Text,
        "A command that fills the directory `{{.worktree.path}}` from `{{.worktree.source}}`, in place of git",
    ),
    key(
        "remove",
        KeyValue::Text,
        "A command that empties that directory again; where it fails, the workspace stays",
    ),
    key(
        "cache",
        KeyValue::Variables,
        "Directories that all worktrees of the repository share, by the variable that names each",
    ),
    key("setup", KeyValue::Text, "A command, run once in the new worktree"),
    key("cleanup", KeyValue::Text, "A command, run before the worktree is removed"),
    key("keep", KeyValue::Bool, "Whether it stays after a run that succeeded"),
];

/// Keys of an input.
pub(super) const INPUT: &[Key] = &[
    key("description", KeyValue::Text, "What it is"),
    key("default", KeyValue::Text, "Its value when none is given"),
];

/// Keys of a runner.
pub(super) const RUNNER: &[Key] =
    &[key("command", KeyValue::Texts, "The program and its arguments")];

/// Keys of every step.
pub(super) const STEP: &[Key] = &[
    key("name", KeyValue::Text, "The name by which templates find its output"),
    key("type", KeyValue::Word(TYPES), "What it is"),
    key("when", KeyValue::Text, "It runs only where this is true"),
    key("timeout", KeyValue::Duration, "How long it may take: `90`, `90s`, `10m`, `2h`"),
    key(
        "on_fail",
        KeyValue::Word(&["stop", "continue", "fail_at_end", "ask"]),
        "What follows when it fails",
    ),
    key("output", KeyValue::Text, "Another name for its output"),
    key("needs", KeyValue::Texts, "Steps that must have succeeded"),
];

/// The types of steps.
pub(super) const TYPES: &[&str] =
    &["agent", "script", "loop", "parallel", "merge", "pull_request", "ask"];

/// Keys of one type of step, besides those of all.
pub(super) fn of_type(kind: &str) -> &'static [Key] {
    match kind {
        "agent" => {
            const {
                &[
                    key(
                        "spell",
                        KeyValue::Text,
                        "The prompt: the name of a spell, or a text with a line break",
                    ),
                    key("runner", KeyValue::Text, "Who works on it"),
                    key("model", KeyValue::Text, "The model, as the runner names it"),
                    key(
                        "profile",
                        KeyValue::Word(&["restricted", "normal", "trusted", "unrestricted"]),
                        "Its permission profile; never looser than the run's",
                    ),
                ]
            }
        }
        "script" => {
            const {
                &[
                    key("command", KeyValue::Text, "What bash runs"),
                    key("rerun", KeyValue::Bool, "Whether it may run again after an interruption"),
                ]
            }
        }
        "loop" => {
            const {
                &[
                    key("max", KeyValue::Number(super::MAX_ROUNDS), "How many rounds at most"),
                    key("until", KeyValue::Text, "It ends when this is true after a round"),
                    key("steps", KeyValue::Steps, "What each round does"),
                ]
            }
        }
        "parallel" => {
            const {
                &[
                    key("steps", KeyValue::Steps, "What is done side by side"),
                    key("workers", KeyValue::Number(super::MAX_WORKERS), "How many work at once"),
                    key(
                        "join",
                        KeyValue::Bool,
                        "Whether what they did comes together; `true` unless said",
                    ),
                    key(
                        "tries",
                        KeyValue::Bool,
                        "Whether they try the same, for a person to pick from with `ask` and `from`",
                    ),
                ]
            }
        }
        "merge" => {
            const {
                &[
                    key(
                        "from",
                        KeyValue::Text,
                        "The step of a parallel one whose branch is merged",
                    ),
                    key("target", KeyValue::Text, "The branch that gets the work"),
                    key(
                        "strategy",
                        KeyValue::Word(&["squash", "rebase", "merge"]),
                        "How it gets it",
                    ),
                    key("gates", KeyValue::Texts, "Commands that must succeed on the merged tree"),
                    key("message", KeyValue::Text, "The message of the commit"),
                    key("conflicts", KeyValue::Word(&["agent", "ask"]), "Who resolves conflicts"),
                ]
            }
        }
        "pull_request" => {
            const {
                &[
                    key("title", KeyValue::Text, "Its title; without, what the run is for"),
                    key("body", KeyValue::Text, "Its text"),
                    key("target", KeyValue::Text, "The branch that it asks to be merged into"),
                    key(
                        "remote",
                        KeyValue::Text,
                        "Where the branch is pushed to; `origin` unless said",
                    ),
                    key(
                        "command",
                        KeyValue::Text,
                        "What opens it and prints its address, in place of `gh pr create --draft`",
                    ),
                ]
            }
        }
        "ask" => {
            const {
                &[
                    key("question", KeyValue::Text, "What a person is asked"),
                    key("options", KeyValue::Texts, "Answers to choose from"),
                    key(
                        "from",
                        KeyValue::Text,
                        "The parallel step of `tries` whose successful tries are also options",
                    ),
                ]
            }
        }
        _ => &[],
    }
}

/// The keys that a type of step must have.
pub(super) fn required(kind: &str) -> &'static [&'static str] {
    match kind {
        "agent" => &["spell"],
        "script" => &["command"],
        "loop" => &["max", "steps"],
        "parallel" => &["steps"],
        "ask" => &["question"],
        _ => &[],
    }
}

/// Whether the reader refuses a key of all steps for one type: a question waits for as long as a person needs.
fn is_refused(kind: &str, key: &str) -> bool {
    kind == "ask" && key == "timeout"
}

/// Every key that any step may have.
pub(super) fn of_steps() -> Vec<&'static str> {
    let own = TYPES.iter().flat_map(|kind| of_type(kind));
    let mut names: Vec<_> = STEP.iter().chain(own).map(|key| key.name).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// The JSON schema of workflow files.
pub fn schema() -> Value {
    let step = |kind: &&str| {
        let keys = STEP.iter().chain(of_type(kind)).filter(|key| !is_refused(kind, key.name));
        let mut properties = properties(keys);
        properties.insert("type".to_owned(), json!({ "const": kind }));
        let required: Vec<_> = ["name", "type"].iter().chain(required(kind)).collect();
        json!({
            "type": "object", "additionalProperties": false,
            "required": required, "properties": properties,
        })
    };
    let steps: Vec<_> = TYPES.iter().map(step).collect();
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A windlass workflow",
        "type": "object",
        "additionalProperties": false,
        "required": ["steps"],
        "properties": properties(FILE.iter()),
        "$defs": { "step": { "oneOf": steps } },
    })
}

fn properties<'a>(keys: impl Iterator<Item = &'a Key>) -> Map<String, Value> {
    keys.map(|key| (key.name.to_owned(), with_text(value_of(&key.kind), key.text))).collect()
}

fn with_text(mut schema: Value, text: &str) -> Value {
    if let Some(schema) = schema.as_object_mut() {
        schema.insert("description".to_owned(), text.into());
    }
    schema
}

fn object(keys: &[Key]) -> Value {
    let properties = properties(keys.iter());
    json!({ "type": "object", "additionalProperties": false, "properties": properties })
}

fn value_of(kind: &KeyValue) -> Value {
    match kind {
        KeyValue::Text => json!({ "type": ["string", "number", "boolean"] }),
        KeyValue::Number(most) => json!({ "type": "integer", "minimum": 1, "maximum": most }),
        KeyValue::Bool => json!({ "type": "boolean" }),
        KeyValue::Word(words) => json!({ "enum": words }),
        KeyValue::Texts => json!({ "type": "array", "items": { "type": "string" } }),
        KeyValue::Duration => {
            json!({ "anyOf": [{ "type": "integer", "minimum": 1 }, { "type": "string", "pattern": "^[0-9]+[smh]?$" }] })
        }
        KeyValue::Steps => {
            json!({ "type": "array", "minItems": 1, "items": { "$ref": "#/$defs/step" } })
        }
        KeyValue::Inputs => json!({ "type": "object", "additionalProperties": object(INPUT) }),
        KeyValue::Runners => {
            let mut runner = object(RUNNER);
            runner["required"] = json!(["command"]);
            json!({ "type": "object", "additionalProperties": runner })
        }
        KeyValue::Variables => {
            json!({ "type": "object", "additionalProperties": { "type": "string" } })
        }
        KeyValue::Worktree => json!({ "anyOf": [{ "const": false }, object(WORKTREE)] }),
    }
}
