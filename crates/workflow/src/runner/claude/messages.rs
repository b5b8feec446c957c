//! The messages of Claude Code's stream, as version 2.1.325 sends them. What is not known is passed over.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use windlass_core::question::{PERMISSION_OPTIONS, Permission};
use windlass_sandbox::Exit;

use crate::runner::acts::{Act, Noise, Outcome, array, text_of};
use crate::runner::lines::Lines;
use crate::runner::permission::{fingerprint, read_permission};
use crate::runner::session::Dialect;
use crate::runner::{Activity, Asks, Edit, Report, RunnerQuestion, Usage};

/// The request by which we interrupt it; one is enough.
const INTERRUPT: &str = "windlass-interrupt";

/// Tools that only write files, by the names that Claude Code gives them.
const WRITERS: [&str; 4] = ["Edit", "MultiEdit", "NotebookEdit", "Write"];

/// How much of a tool's result is shown; the whole is in the program's own session.
const SHOWN_RESULT_CHARS: usize = 2000;

pub(super) struct Messages {
    opening: String,
    lines: Lines,
    /// Requests that wait for a person, by id.
    requests: BTreeMap<String, Waiting>,
    /// The last text it wrote.
    last_text: String,
    noise: Noise,
    is_session_lost: bool,
}

/// A request that waits.
enum Waiting {
    Permission {
        input: Value,
        suggestions: Value,
    },
    /// Several questions in one request are asked one after the other.
    Questions {
        input: Value,
        texts: Vec<String>,
        answers: BTreeMap<String, String>,
    },
}

impl Messages {
    pub fn new(opening: String) -> Self {
        Self {
            opening,
            lines: Lines::default(),
            requests: BTreeMap::new(),
            last_text: String::new(),
            noise: Noise::default(),
            is_session_lost: false,
        }
    }

    /// Whether it did not find the session that it should resume.
    pub fn is_session_lost(&self) -> bool {
        self.is_session_lost
    }

    fn on_line(&mut self, line: &str) -> Vec<Act> {
        let Ok(message) = serde_json::from_str::<Value>(line) else {
            self.noise.push(line);
            return vec![Act::output(format!("{line}\n"))];
        };
        let mut acts = Vec::new();
        match message["type"].as_str().unwrap_or_default() {
            "system" => self.on_system(&message, &mut acts),
            "stream_event" => on_stream_event(&message["event"], &mut acts),
            "assistant" => self.on_assistant(&message, &mut acts),
            "user" => on_user(&message, &mut acts),
            "control_request" => self.on_request(&message, &mut acts),
            "control_cancel_request" => {
                let id = text_of(&message["request_id"]);
                if self.requests.remove(&id).is_some() {
                    acts.extend(question_ids(&id).map(Act::Withdraw));
                }
            }
            "result" => self.on_result(&message, &mut acts),
            _ => return acts,
        }
        self.noise.on_message();
        acts
    }

    fn on_system(&mut self, message: &Value, acts: &mut Vec<Act>) {
        match message["subtype"].as_str().unwrap_or_default() {
            "init" => acts.push(Act::Report(Report::Session(text_of(&message["session_id"])))),
            "background_tasks_changed" => {
                acts.push(Act::Children(message["tasks"].as_array().map_or(0, Vec::len)));
            }
            "status" if message["status"] == "requesting" => {
                acts.extend([Act::Busy, Act::activity(Activity::Thinking)]);
            }
            _ => {}
        }
    }

    fn on_assistant(&mut self, message: &Value, acts: &mut Vec<Act>) {
        let is_own = message["parent_tool_use_id"].is_null();
        for block in blocks(message) {
            match block["type"].as_str().unwrap_or_default() {
                "text" => {
                    let text = text_of(&block["text"]);
                    if is_own {
                        self.last_text.clone_from(&text);
                    }
                    acts.extend([
                        Act::activity(Activity::Writing),
                        Act::output(format!("{text}\n")),
                    ]);
                }
                "tool_use" => {
                    let tool = text_of(&block["name"]);
                    let subject = subject(&block["input"]);
                    acts.push(Act::ToolBegan(text_of(&block["id"])));
                    acts.push(Act::activity(activity_of(&tool)));
                    acts.push(Act::output(format!("[{tool}] {subject}\n")));
                }
                _ => {}
            }
        }
    }

    fn on_request(&mut self, message: &Value, acts: &mut Vec<Act>) {
        let id = text_of(&message["request_id"]);
        let request = &message["request"];
        if request["subtype"] != "can_use_tool" {
            let error = "windlass does not offer this";
            acts.push(Act::send(&json!({"type": "control_response", "response": {
                "subtype": "error", "request_id": id, "error": error,
            }})));
            return;
        }
        let input = request["input"].clone();
        let tool = text_of(&request["tool_name"]);
        let texts: Vec<String> = match tool.as_str() {
            "AskUserQuestion" => {
                array(&input["questions"]).map(|one| text_of(&one["question"])).collect()
            }
            _ => Vec::new(),
        };
        let first = array(&input["questions"]).next().filter(|_| !texts.is_empty()).cloned();
        if let Some(first) = first {
            acts.push(Act::Ask(question_of(&id, 0, &first)));
            let waiting = Waiting::Questions { input, texts, answers: BTreeMap::new() };
            self.requests.insert(id, waiting);
            return;
        }
        let context = match subject(&input) {
            subject if tool == "Bash" => subject,
            _ => pretty(&input),
        };
        acts.push(Act::Ask(RunnerQuestion {
            id: question_id(&id, 0),
            fingerprint: fingerprint(&[&tool, &input.to_string()]),
            asks: Asks::Permission,
            question: format!("Claude Code asks to use `{tool}`{}", described(request)),
            options: PERMISSION_OPTIONS.map(str::to_owned).to_vec(),
            context: Some(context),
            edits: edits_of(&tool, &input),
        }));
        let suggestions = request["permission_suggestions"].clone();
        self.requests.insert(id, Waiting::Permission { input, suggestions });
    }

    fn on_result(&mut self, message: &Value, acts: &mut Vec<Act>) {
        let usage = &message["usage"];
        let count = |name: &str| usage[name].as_u64().unwrap_or(0);
        let cached = count("cache_creation_input_tokens") + count("cache_read_input_tokens");
        acts.push(Act::Report(Report::Usage(Usage {
            input_tokens: count("input_tokens") + cached,
            output_tokens: count("output_tokens"),
            cost_usd: message["total_cost_usd"].as_f64(),
        })));
        let text = match &message["result"] {
            Value::String(text) => text.clone(),
            _ => self.last_text.clone(),
        };
        let errors: Vec<String> = array(&message["errors"]).map(text_of).collect();
        let unknown = |error: &String| error.starts_with("No conversation found");
        self.is_session_lost |= errors.iter().any(unknown);
        let failure = message["is_error"].as_bool().unwrap_or(false).then(|| {
            let said = if errors.is_empty() { text.clone() } else { errors.join("; ") };
            format!("it ended its work with an error ({}): {said}", text_of(&message["subtype"]))
        });
        acts.push(Act::Finish(Outcome { text, failure }));
    }

    fn respond(&self, id: &str, response: &Value) -> Act {
        Act::send(&json!({"type": "control_response", "response": {
            "subtype": "success", "request_id": id, "response": response,
        }}))
    }
}

impl Dialect for Messages {
    fn open(&mut self) -> Vec<Act> {
        let content = std::mem::take(&mut self.opening);
        let message = json!({"role": "user", "content": content});
        vec![
            Act::activity(Activity::Thinking),
            Act::send(&json!({
                "type": "user", "message": message, "parent_tool_use_id": null, "session_id": "default",
            })),
        ]
    }

    fn read(&mut self, bytes: &[u8]) -> Vec<Act> {
        let lines = self.lines.push(bytes);
        lines.iter().flat_map(|line| self.on_line(line)).collect()
    }

    fn answer(&mut self, question: &str, text: &str) -> Vec<Act> {
        let (id, number) = question.rsplit_once('/').unwrap_or((question, "0"));
        let mut acts = Vec::new();
        match self.requests.remove(id) {
            Some(Waiting::Permission { input, suggestions }) => {
                acts.push(
                    self.respond(id, &permission(read_permission(text), &input, &suggestions)),
                );
            }
            Some(Waiting::Questions { input, texts, mut answers }) => {
                let at: usize = number.parse().unwrap_or(0);
                answers.extend(texts.get(at).map(|asked| (asked.clone(), text.to_owned())));
                let next = array(&input["questions"]).nth(at + 1).cloned();
                if let Some(next) = next {
                    acts.push(Act::Ask(question_of(id, at + 1, &next)));
                    let waiting = Waiting::Questions { input, texts, answers };
                    self.requests.insert(id.to_owned(), waiting);
                } else {
                    let mut updated = input;
                    updated["answers"] = json!(answers);
                    let response = json!({"behavior": "allow", "updatedInput": updated});
                    acts.push(self.respond(id, &response));
                }
            }
            None => {}
        }
        acts.push(Act::activity(Activity::Thinking));
        acts
    }

    fn interrupt(&mut self) -> Vec<Act> {
        vec![Act::send(&json!({
            "type": "control_request", "request_id": INTERRUPT, "request": {"subtype": "interrupt"},
        }))]
    }

    fn on_exit(&mut self, exit: Exit) -> Outcome {
        let failure = Some(self.noise.failure("Claude Code", exit));
        Outcome { text: self.last_text.clone(), failure }
    }
}

/// What Claude Code gets for a person's decision. `Allow All` holds for its session and is written nowhere.
fn permission(decision: Permission, input: &Value, suggestions: &Value) -> Value {
    match decision {
        Permission::Allow => json!({"behavior": "allow", "updatedInput": input}),
        Permission::AllowAll => {
            let rules = array(suggestions).filter(|one| !takes_all_brakes_off(one)).map(|one| {
                let mut rule = one.clone();
                rule["destination"] = json!("session");
                rule
            });
            let rules: Vec<Value> = rules.collect();
            json!({"behavior": "allow", "updatedInput": input, "updatedPermissions": rules})
        }
        Permission::Deny { comment } if comment.is_empty() => {
            json!({"behavior": "deny", "message": "A person denied this. Try another way."})
        }
        Permission::Deny { comment } => json!({"behavior": "deny", "message": comment}),
    }
}

/// A mode in which it would ask for nothing any more: no answer to one question means that.
fn takes_all_brakes_off(suggestion: &Value) -> bool {
    let mode = suggestion["mode"].as_str().unwrap_or_default();
    suggestion["type"] == "setMode" && !matches!(mode, "default" | "acceptEdits" | "plan")
}

fn on_stream_event(event: &Value, acts: &mut Vec<Act>) {
    if event["type"] != "content_block_start" {
        return;
    }
    let block = &event["content_block"];
    match block["type"].as_str().unwrap_or_default() {
        "thinking" | "redacted_thinking" => acts.push(Act::activity(Activity::Thinking)),
        "text" => acts.push(Act::activity(Activity::Writing)),
        "tool_use" => acts.push(Act::activity(activity_of(&text_of(&block["name"])))),
        _ => {}
    }
}

fn on_user(message: &Value, acts: &mut Vec<Act>) {
    for block in blocks(message).filter(|block| block["type"] == "tool_result") {
        let content = match &block["content"] {
            Value::String(text) => text.clone(),
            parts => array(parts).map(|part| text_of(&part["text"])).collect::<Vec<_>>().join("\n"),
        };
        let shown: String = content.chars().take(SHOWN_RESULT_CHARS).collect();
        let cut = if shown.len() < content.len() { "…" } else { "" };
        acts.extend([Act::output(format!("{shown}{cut}\n")), Act::activity(Activity::Thinking)]);
        acts.push(Act::ToolEnded(text_of(&block["tool_use_id"])));
    }
}

/// One question of `AskUserQuestion`.
fn question_of(request: &str, number: usize, question: &Value) -> RunnerQuestion {
    let text = text_of(&question["question"]);
    let options: Vec<String> =
        array(&question["options"]).map(|option| text_of(&option["label"])).collect();
    let described = array(&question["options"]).map(|option| {
        format!("{}: {}", text_of(&option["label"]), text_of(&option["description"]))
    });
    RunnerQuestion {
        id: question_id(request, number),
        fingerprint: fingerprint(&["AskUserQuestion", &question.to_string()]),
        asks: if options.is_empty() { Asks::Text } else { Asks::Choice },
        question: text,
        context: Some(described.collect::<Vec<_>>().join("\n")).filter(|text| !text.is_empty()),
        options,
        edits: Vec::new(),
    }
}

/// A request's questions have its id and their number.
fn question_id(request: &str, number: usize) -> String {
    format!("{request}/{number}")
}

/// `AskUserQuestion` holds at most four; more ids than that are never open.
fn question_ids(request: &str) -> impl Iterator<Item = String> + use<> {
    let request = request.to_owned();
    (0..8).map(move |number| question_id(&request, number))
}

/// What a tool's input is about, in a line.
fn subject(input: &Value) -> String {
    let known =
        ["command", "file_path", "notebook_path", "pattern", "url", "description", "prompt"];
    match known.iter().find_map(|name| input[*name].as_str()) {
        Some(text) => text.to_owned(),
        None => input.to_string(),
    }
}

fn described(request: &Value) -> String {
    match request["description"].as_str().filter(|text| !text.is_empty()) {
        Some(text) => format!(": {text}"),
        None => String::new(),
    }
}

/// The file that a tool would change, and the text in it that it would replace.
fn edits_of(tool: &str, input: &Value) -> Vec<Edit> {
    let path = input["file_path"].as_str().or_else(|| input["notebook_path"].as_str());
    let Some(path) = path.filter(|_| WRITERS.contains(&tool)) else { return Vec::new() };
    let edit = |old: Option<&str>| Edit { path: path.to_owned(), old: old.map(str::to_owned) };
    match &input["edits"] {
        Value::Array(several) => {
            several.iter().map(|one| edit(one["old_string"].as_str())).collect()
        }
        _ => vec![edit(input["old_string"].as_str())],
    }
}

fn activity_of(tool: &str) -> Activity {
    if WRITERS.contains(&tool) { Activity::Writing } else { Activity::RunningCommand }
}

/// An input as a person reads it: a field a line, texts as they are.
fn pretty(input: &Value) -> String {
    let Value::Object(fields) = input else { return input.to_string() };
    let line = |(name, value): (&String, &Value)| match value {
        Value::String(text) if text.contains('\n') => format!("{name}:\n{text}"),
        Value::String(text) => format!("{name}: {text}"),
        other => format!("{name}: {other}"),
    };
    fields.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn blocks(message: &Value) -> impl Iterator<Item = &Value> {
    array(&message["message"]["content"])
}
