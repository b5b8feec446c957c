//! The messages of codex's `app-server`, as version 0.166.0 speaks them. What is not known is passed over, and a
//! request that is not known is refused.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use windlass_core::question::{PERMISSION_OPTIONS, Permission};
use windlass_sandbox::Exit;

use crate::runner::acts::{Act, Noise, Outcome, array, text_of};
use crate::runner::lines::Lines;
use crate::runner::permission::{fingerprint, read_permission};
use crate::runner::session::Dialect;
use crate::runner::{Activity, Asks, Edit, Job, Report, RunnerQuestion, Usage};

// Our own requests, by the ids that they have.
const INITIALIZE: u64 = 1;
const THREAD: u64 = 2;
const TURN: u64 = 3;
const INTERRUPT: u64 = 4;

/// What a resumed thread reads first.
const CONTINUE: &str = "The work was interrupted. Look at what is done in the working directory, then continue \
                        with the task.";

pub(super) struct Rpc {
    prompt: String,
    directory: String,
    model: Option<String>,
    resume: Option<String>,
    /// What the project says to agents.
    instructions: Option<String>,
    own_sandbox: &'static str,
    lines: Lines,
    thread: String,
    turn: String,
    /// Requests of codex that wait for a person, by our question's id.
    requests: BTreeMap<String, Request>,
    /// The changes of files that it proposes, by item: as a person reads them, and which files.
    changes: BTreeMap<String, (String, Vec<Edit>)>,
    last_text: String,
    noise: Noise,
}

/// A request that waits, with what its answer must name.
struct Request {
    /// As codex wrote it: a number or a text.
    id: Value,
    form: Form,
}

enum Form {
    /// `accept`, `acceptForSession`, `decline`.
    Decision,
    /// The older words: `approved`, `approved_for_session`, `denied`.
    Review,
    /// The permissions that are asked for.
    Permissions(Value),
    /// A question of an MCP server.
    Elicitation,
    /// Questions with ids; those that are answered.
    Input { questions: Vec<Value>, answers: serde_json::Map<String, Value> },
}

impl Rpc {
    pub fn new(job: &Job, own_sandbox: &'static str) -> Self {
        Self {
            prompt: job.prompt.clone(),
            directory: job.directory.to_string_lossy().into_owned(),
            model: job.model.clone(),
            resume: job.resume.clone(),
            instructions: job.project_prompt(),
            own_sandbox,
            lines: Lines::default(),
            thread: String::new(),
            turn: String::new(),
            requests: BTreeMap::new(),
            changes: BTreeMap::new(),
            last_text: String::new(),
            noise: Noise::default(),
        }
    }

    fn on_line(&mut self, line: &str) -> Vec<Act> {
        let Ok(message) = serde_json::from_str::<Value>(line) else {
            self.noise.push(line);
            return vec![Act::output(format!("{line}\n"))];
        };
        if message.is_object() {
            self.noise.on_message();
        }
        match (message["method"].as_str(), message.get("id")) {
            (Some(method), Some(id)) => self.on_request(method, id, &message["params"]),
            (Some(method), None) => self.on_notice(method, &message["params"]),
            (None, Some(id)) => self.on_response(id.as_u64().unwrap_or(0), &message),
            (None, None) => Vec::new(),
        }
    }

    fn on_response(&mut self, id: u64, message: &Value) -> Vec<Act> {
        if let Some(error) = message["error"]["message"].as_str() {
            return self.on_refusal(id, error);
        }
        let result = &message["result"];
        match id {
            INITIALIZE => vec![notify("initialized"), self.begin_thread()],
            THREAD => {
                self.thread = text_of(&result["thread"]["id"]);
                let prompt = match &self.resume {
                    Some(_) => CONTINUE.to_owned(),
                    None => self.prompt.clone(),
                };
                let input = json!([{"type": "text", "text": prompt}]);
                vec![
                    Act::Report(Report::Session(self.thread.clone())),
                    request("turn/start", TURN, &json!({"threadId": self.thread, "input": input})),
                ]
            }
            TURN => {
                self.turn = text_of(&result["turn"]["id"]);
                Vec::new()
            }
            _ => Vec::new(),
        }
    }

    fn on_refusal(&mut self, id: u64, error: &str) -> Vec<Act> {
        if id == THREAD && self.resume.take().is_some() {
            let note =
                format!("its thread could not be resumed ({error}), so it began the task again");
            return vec![Act::Note(note), self.begin_thread()];
        }
        if id == INTERRUPT {
            return Vec::new();
        }
        vec![finish(self.last_text.clone(), Some(format!("it refused a request: {error}")))]
    }

    fn begin_thread(&self) -> Act {
        let mut params = json!({
            "cwd": self.directory, "approvalPolicy": "untrusted", "sandbox": self.own_sandbox,
        });
        if let Some(model) = &self.model {
            params["model"] = json!(model);
        }
        if let Some(instructions) = &self.instructions {
            params["developerInstructions"] = json!(instructions);
        }
        match &self.resume {
            Some(thread) => {
                params["threadId"] = json!(thread);
                params["excludeTurns"] = json!(true);
                request("thread/resume", THREAD, &params)
            }
            None => request("thread/start", THREAD, &params),
        }
    }

    fn on_notice(&mut self, method: &str, params: &Value) -> Vec<Act> {
        let item = &params["item"];
        match method {
            "turn/started" => {
                self.turn = text_of(&params["turn"]["id"]);
                vec![Act::activity(Activity::Thinking)]
            }
            "item/started" => self.on_item_started(item),
            "item/completed" => self.on_item_completed(item),
            "item/agentMessage/delta" => vec![Act::activity(Activity::Writing)],
            "item/reasoning/summaryTextDelta" | "item/reasoning/textDelta" => {
                vec![Act::activity(Activity::Thinking)]
            }
            "thread/tokenUsage/updated" => {
                let total = &params["tokenUsage"]["total"];
                let count = |name: &str| total[name].as_u64().unwrap_or(0);
                vec![Act::Report(Report::Usage(Usage {
                    input_tokens: count("inputTokens"),
                    output_tokens: count("outputTokens"),
                    cost_usd: None,
                }))]
            }
            "serverRequest/resolved" => self.on_resolved(&params["requestId"]),
            "error" if params["willRetry"] != true => {
                vec![Act::output(format!("{}\n", text_of(&params["error"]["message"])))]
            }
            "turn/completed" => self.on_turn_completed(&params["turn"]),
            _ => Vec::new(),
        }
    }

    /// A request that was settled without our answer, by an interrupt.
    fn on_resolved(&mut self, request: &Value) -> Vec<Act> {
        let is_it = |(_, waiting): &(&String, &Request)| waiting.id == *request;
        let Some(question) = self.requests.iter().find(is_it).map(|(id, _)| id.clone()) else {
            return Vec::new();
        };
        self.requests.remove(&question);
        vec![Act::Withdraw(question)]
    }

    fn on_item_started(&mut self, item: &Value) -> Vec<Act> {
        let began = Act::ToolBegan(text_of(&item["id"]));
        match item["type"].as_str().unwrap_or_default() {
            "reasoning" => vec![Act::activity(Activity::Thinking)],
            "agentMessage" => vec![Act::activity(Activity::Writing)],
            "commandExecution" => vec![
                began,
                Act::activity(Activity::RunningCommand),
                Act::output(format!("$ {}\n", text_of(&item["command"]))),
            ],
            "fileChange" => {
                let changes = changes(item);
                let paths = array(&item["changes"]).map(|change| text_of(&change["path"]));
                let edits = paths.map(|path| Edit { path, old: None }).collect();
                self.changes.insert(text_of(&item["id"]), (changes.clone(), edits));
                vec![began, Act::activity(Activity::Writing), Act::output(format!("{changes}\n"))]
            }
            "mcpToolCall" => vec![
                began,
                Act::activity(Activity::RunningCommand),
                Act::output(format!("[{}] {}\n", text_of(&item["server"]), text_of(&item["tool"]))),
            ],
            _ => Vec::new(),
        }
    }

    fn on_item_completed(&mut self, item: &Value) -> Vec<Act> {
        let ended = Act::ToolEnded(text_of(&item["id"]));
        match item["type"].as_str().unwrap_or_default() {
            "agentMessage" => {
                self.last_text = text_of(&item["text"]);
                vec![Act::output(format!("{}\n", self.last_text))]
            }
            "commandExecution" => {
                let printed = text_of(&item["aggregatedOutput"]);
                vec![Act::output(printed), Act::activity(Activity::Thinking), ended]
            }
            "fileChange" | "mcpToolCall" => vec![Act::activity(Activity::Thinking), ended],
            _ => Vec::new(),
        }
    }

    fn on_turn_completed(&mut self, turn: &Value) -> Vec<Act> {
        let failure = match turn["status"].as_str().unwrap_or_default() {
            "completed" => None,
            status => {
                let error = text_of(&turn["error"]["message"]);
                Some(format!("its turn ended as `{status}`: {error}"))
            }
        };
        vec![finish(self.last_text.clone(), failure)]
    }

    fn on_request(&mut self, method: &str, id: &Value, params: &Value) -> Vec<Act> {
        let mut edits = Vec::new();
        let (form, question, context) = match method {
            "item/commandExecution/requestApproval" => {
                let command = text_of(&params["command"]);
                let context = format!("{command}\nin {}", text_of(&params["cwd"]));
                (Form::Decision, "codex asks to run a command", context)
            }
            "item/fileChange/requestApproval" => {
                let item = text_of(&params["itemId"]);
                let (changes, files) = self.changes.get(&item).cloned().unwrap_or_default();
                edits = files;
                (Form::Decision, "codex asks to change files", changes)
            }
            "item/permissions/requestApproval" => {
                let wanted = params["permissions"].clone();
                let context = wanted.to_string();
                (Form::Permissions(wanted), "codex asks for more permissions", context)
            }
            "mcpServer/elicitation/request" => {
                let context = text_of(&params["message"]);
                (Form::Elicitation, "an MCP server of codex asks", context)
            }
            "applyPatchApproval" | "execCommandApproval" => {
                let context = params["command"].to_string() + &params["fileChanges"].to_string();
                (Form::Review, "codex asks for an approval", context)
            }
            "item/tool/requestUserInput" => return self.on_input_request(id, params),
            _ => return vec![refuse(id, method)],
        };
        let key = question_id(id, 0);
        let reason = text_of(&params["reason"]);
        let question = match reason.as_str() {
            "" => question.to_owned(),
            reason => format!("{question}: {reason}"),
        };
        let ask = RunnerQuestion {
            id: key.clone(),
            fingerprint: fingerprint(&[method, &context]),
            asks: Asks::Permission,
            question,
            options: PERMISSION_OPTIONS.map(str::to_owned).to_vec(),
            context: Some(context),
            edits,
        };
        self.requests.insert(key, Request { id: id.clone(), form });
        vec![Act::Ask(ask)]
    }

    fn on_input_request(&mut self, id: &Value, params: &Value) -> Vec<Act> {
        let questions: Vec<Value> = array(&params["questions"]).cloned().collect();
        let Some(first) = questions.first() else {
            return vec![respond(id, &json!({"answers": {}}))];
        };
        let ask = input_question(id, 0, first);
        let form = Form::Input { questions, answers: serde_json::Map::new() };
        self.requests.insert(ask.id.clone(), Request { id: id.clone(), form });
        vec![Act::Ask(ask)]
    }
}

impl Dialect for Rpc {
    fn open(&mut self) -> Vec<Act> {
        let client =
            json!({"name": "windlass", "title": "Windlass", "version": env!("CARGO_PKG_VERSION")});
        vec![
            Act::activity(Activity::Thinking),
            request("initialize", INITIALIZE, &json!({"clientInfo": client})),
        ]
    }

    fn read(&mut self, bytes: &[u8]) -> Vec<Act> {
        let lines = self.lines.push(bytes);
        lines.iter().flat_map(|line| self.on_line(line)).collect()
    }

    fn answer(&mut self, question: &str, text: &str) -> Vec<Act> {
        let Some(Request { id, form }) = self.requests.remove(question) else { return Vec::new() };
        let decision = read_permission(text);
        let result = match form {
            Form::Decision => json!({"decision": words(&decision, DECISIONS)}),
            Form::Review => json!({"decision": words(&decision, REVIEWS)}),
            Form::Permissions(wanted) => match decision {
                Permission::Allow => json!({"permissions": wanted, "scope": "turn"}),
                Permission::AllowAll => json!({"permissions": wanted, "scope": "session"}),
                Permission::Deny { .. } => json!({"permissions": {}}),
            },
            Form::Elicitation => match decision {
                Permission::Allow | Permission::AllowAll => {
                    json!({"action": "accept", "content": {}})
                }
                Permission::Deny { .. } => json!({"action": "decline"}),
            },
            Form::Input { questions, mut answers } => {
                if let Some(asked) = questions.get(answers.len()) {
                    answers.insert(text_of(&asked["id"]), json!({"answers": [text]}));
                }
                if let Some(next) = questions.get(answers.len()) {
                    let ask = input_question(&id, answers.len(), next);
                    let form = Form::Input { questions, answers };
                    self.requests.insert(ask.id.clone(), Request { id, form });
                    return vec![Act::Ask(ask)];
                }
                json!({"answers": answers})
            }
        };
        vec![respond(&id, &result), Act::activity(Activity::Thinking)]
    }

    fn interrupt(&mut self) -> Vec<Act> {
        let params = json!({"threadId": self.thread, "turnId": self.turn});
        if self.turn.is_empty() {
            return Vec::new();
        }
        vec![request("turn/interrupt", INTERRUPT, &params)]
    }

    fn on_exit(&mut self, exit: Exit) -> Outcome {
        let failure = Some(self.noise.failure("codex", exit));
        Outcome { text: self.last_text.clone(), failure }
    }
}

/// The words for allow, allow all and deny.
const DECISIONS: [&str; 3] = ["accept", "acceptForSession", "decline"];
const REVIEWS: [&str; 3] = ["approved", "approved_for_session", "denied"];

fn words(decision: &Permission, [allow, all, deny]: [&'static str; 3]) -> &'static str {
    match decision {
        Permission::Allow => allow,
        Permission::AllowAll => all,
        Permission::Deny { .. } => deny,
    }
}

/// One question of a form.
fn input_question(request: &Value, number: usize, question: &Value) -> RunnerQuestion {
    let options: Vec<String> =
        array(&question["options"]).map(|option| text_of(&option["label"])).collect();
    RunnerQuestion {
        id: question_id(request, number),
        fingerprint: fingerprint(&["requestUserInput", &question.to_string()]),
        asks: if options.is_empty() { Asks::Text } else { Asks::Choice },
        question: text_of(&question["question"]),
        options,
        context: None,
        edits: Vec::new(),
    }
}

fn question_id(request: &Value, number: usize) -> String {
    format!("{request}/{number}")
}

/// The files that are to change, each with its difference.
fn changes(item: &Value) -> String {
    let change = |change: &Value| {
        let (path, kind) = (text_of(&change["path"]), text_of(&change["kind"]["type"]));
        format!("{kind} {path}\n{}", text_of(&change["diff"]))
    };
    array(&item["changes"]).map(change).collect::<Vec<_>>().join("\n")
}

fn finish(text: String, failure: Option<String>) -> Act {
    Act::Finish(Outcome { text, failure })
}

fn request(method: &str, id: u64, params: &Value) -> Act {
    Act::send(&json!({"method": method, "id": id, "params": params}))
}

fn notify(method: &str) -> Act {
    Act::send(&json!({"method": method}))
}

fn respond(id: &Value, result: &Value) -> Act {
    Act::send(&json!({"id": id, "result": result}))
}

fn refuse(id: &Value, method: &str) -> Act {
    let message = format!("windlass does not offer `{method}`");
    Act::send(&json!({"id": id, "error": {"code": -32601, "message": message}}))
}
