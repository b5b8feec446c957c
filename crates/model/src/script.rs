//! `script:FILE`: a model that plays a file of replies.
//!
//! ```yaml
//! replies:                          # in order; the n-th answers a conversation of n replies
//!   - bash: cargo test              # a call of a tool with one main argument
//!   - glob: {pattern: '*.rs', path: src}   # a call with its arguments
//!   - text: Looking around.         # text beside calls
//!     calls:                        # several calls; the second form gives the arguments verbatim
//!       - read: a.rs
//!       - {name: bash, id: call_7, arguments: '{"command": "ls"'}
//!   - bash: ls
//!     think: [First look., Then ask.]  # reasoning: the first before all else, each other before one more call
//!     redacted: hidden              # reasoning that nobody may read, before that
//!   - say: All done.                # text alone: the final reply
//!     expect: exit code 0           # must occur in what came since the last reply (or a list)
//!     usage: {input: 900, output: 12, cached: 800, cost: 0.01}
//!     delay_ms: 20                  # before answering
//!     finish: length                # stop, tool_calls, length or content_filter
//!   - say: From elsewhere.
//!     turn: 0                       # instead of its place in the list
//!     task: count the files         # only where the first user message holds this (sub-agents)
//! match:                            # tried first, in order; all conditions given must hold
//!   - system: You route messages    # the system prompt holds this
//!     when: stop the build          # what came since the last reply holds this (or a list)
//!     say: cancel_task
//!   - task: summarize               # with `replies`, these are counted as above
//!     replies: [{say: It was long.}]
//! ```
//!
//! Invariant: playing is stateless. The reply is chosen by the conversation alone, so a resumed task
//! continues where it was. Other keys at the top (`goal`, say) belong to whoever plays the script.

use std::{collections::BTreeMap, path::Path, time::Duration};

use serde::Deserialize;
use serde_json::Value;
use windlass_core::message::{Finish, Usage};
use windlass_core::tool_name;

mod player;

pub use player::RequestView;
pub(crate) use player::ScriptModel;

/// The largest script we read; a day's recording is far smaller.
const MAX_SCRIPT_BYTES: u64 = 64 * 1024 * 1024;

/// Replies to be played.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Script {
    /// Answers by the number of replies so far.
    pub replies: Vec<ScriptedReply>,
    /// Answers by content, tried first.
    pub rules: Vec<Rule>,
}

/// One reply of a script.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ScriptedReply {
    /// Which reply of the conversation this is, from 0.
    pub turn: usize,
    /// What the first user message must hold for this reply.
    pub task: Option<String>,
    /// What it says.
    pub text: String,
    /// What it asks for.
    pub calls: Vec<ScriptedCall>,
    /// What it thinks: the first before all else, each further one before the call of its index.
    pub think: Vec<String>,
    /// What it thinks and keeps to itself.
    pub redacted: Option<String>,
    /// Why it stopped, if not for the obvious reason.
    pub finish: Option<Finish>,
    /// What it took; estimated when not given.
    pub usage: Option<Usage>,
    /// What must occur in the messages since the last reply.
    pub expect: Vec<String>,
    /// How long to wait before answering.
    pub delay: Duration,
}

/// One call of a scripted reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptedCall {
    /// The provider's id; made up when not given.
    pub id: Option<String>,
    pub name: String,
    /// The arguments, verbatim.
    pub arguments: String,
}

/// Replies for conversations that hold certain texts.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// The system prompt holds this.
    pub system: Option<String>,
    /// The first user message holds this.
    pub task: Option<String>,
    /// The messages since the last reply hold all of these.
    pub when: Vec<String>,
    /// One reply for every time, or several by number.
    pub answer: RuleAnswer,
}

/// What a rule answers with.
#[derive(Clone, Debug, PartialEq)]
pub enum RuleAnswer {
    /// The same, always.
    Always(Box<ScriptedReply>),
    /// By the number of replies so far.
    InTurn(Vec<ScriptedReply>),
}

/// Why a text is not a script.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ScriptError(String);

impl ScriptedReply {
    /// Why this reply stops.
    pub fn finish(&self) -> Finish {
        self.finish.unwrap_or(match self.calls.is_empty() {
            true => Finish::Stop,
            false => Finish::ToolCalls,
        })
    }

    /// What this reply took, guessed at four bytes a token when the script does not say.
    pub fn usage(&self, prompt_bytes: usize) -> Usage {
        self.usage.unwrap_or_else(|| {
            let calls: usize = self.calls.iter().map(|c| c.name.len() + c.arguments.len()).sum();
            let thoughts: usize = self.think.iter().map(String::len).sum();
            Usage {
                input_tokens: (prompt_bytes / 4) as u64,
                output_tokens: ((self.text.len() + calls + thoughts) / 4).max(1) as u64,
                reasoning_tokens: (thoughts / 4) as u64,
                ..Usage::default()
            }
        })
    }
}

impl Script {
    /// Reads a script from a file.
    pub fn load(path: &Path) -> Result<Self, ScriptError> {
        use std::io::{ErrorKind, Read as _};
        let mut text = String::new();
        open_regular(path)
            .and_then(|file| file.take(MAX_SCRIPT_BYTES).read_to_string(&mut text))
            .map_err(|error| match error.kind() {
            ErrorKind::InvalidData => ScriptError("it is not text in UTF-8".to_owned()),
            _ => ScriptError(error.to_string()),
        })?;
        Self::parse(&text)
    }

    /// Reads a script from its text.
    pub fn parse(yaml: &str) -> Result<Self, ScriptError> {
        let file: File = serde_saphyr::from_str(yaml).map_err(|error| not_a_script(&error))?;
        if file.replies.is_none() && file.rules.is_empty() {
            return Err(ScriptError("it has neither `replies` nor `match`".to_owned()));
        }
        let replies = parse_replies(file.replies.unwrap_or_default(), "replies")?;
        let rules = (1..).zip(file.rules).map(|(number, rule)| {
            let place = format!("match, rule {number}");
            let (system, task, when) = (rule.system, rule.task, rule.when.into());
            let answer = match rule.replies {
                Some(replies) => RuleAnswer::InTurn(parse_replies(replies, &place)?),
                None => RuleAnswer::Always(Box::new(rule.reply.read(0, &place)?)),
            };
            Ok(Rule { system, task, when, answer })
        });
        Ok(Self { replies, rules: rules.collect::<Result<_, ScriptError>>()? })
    }
}

/// Where a text stops being a script. Nothing of the text is repeated: whoever reads the error may not read the file.
fn not_a_script(error: &serde_saphyr::Error) -> ScriptError {
    let place =
        error.location().map(|at| format!(" at line {}, column {}", at.line(), at.column()));
    ScriptError(format!("it is not a YAML script{}", place.unwrap_or_default()))
}

/// Opens a file, and nothing that would wait for a writer or never end.
fn open_regular(path: &Path) -> std::io::Result<std::fs::File> {
    let kind = std::fs::metadata(path)?.file_type();
    match kind.is_file() || kind.is_dir() {
        true => std::fs::File::open(path),
        false => Err(std::io::Error::other("it is not a regular file")),
    }
}

impl std::str::FromStr for Script {
    type Err = ScriptError;

    fn from_str(yaml: &str) -> Result<Self, ScriptError> {
        Self::parse(yaml)
    }
}

fn parse_replies(items: Vec<ReplyItem>, place: &str) -> Result<Vec<ScriptedReply>, ScriptError> {
    let read = |(index, item): (usize, ReplyItem)| {
        item.read(index, &format!("{place}, item {}", index + 1))
    };
    items.into_iter().enumerate().map(read).collect()
}

#[derive(Deserialize)]
struct File {
    replies: Option<Vec<ReplyItem>>,
    #[serde(default, rename = "match")]
    rules: Vec<RuleItem>,
}

#[derive(Deserialize)]
struct RuleItem {
    system: Option<String>,
    task: Option<String>,
    #[serde(default)]
    when: Texts,
    replies: Option<Vec<ReplyItem>>,
    #[serde(flatten)]
    reply: ReplyItem,
}

#[derive(Deserialize)]
struct ReplyItem {
    turn: Option<usize>,
    task: Option<String>,
    say: Option<String>,
    text: Option<String>,
    calls: Option<Vec<BTreeMap<String, Value>>>,
    #[serde(default)]
    think: Texts,
    redacted: Option<String>,
    usage: Option<UsageItem>,
    #[serde(default)]
    expect: Texts,
    #[serde(default)]
    delay_ms: u64,
    finish: Option<Finish>,
    #[serde(flatten)]
    tool: BTreeMap<String, Value>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct UsageItem {
    #[serde(default)]
    input: u64,
    #[serde(default)]
    output: u64,
    #[serde(default)]
    cached: u64,
    #[serde(default)]
    reasoning: u64,
    cost: Option<f64>,
}

#[derive(Default, Deserialize)]
#[serde(untagged)]
enum Texts {
    #[default]
    None,
    One(String),
    Many(Vec<String>),
}

impl From<Texts> for Vec<String> {
    fn from(texts: Texts) -> Self {
        match texts {
            Texts::None => Self::new(),
            Texts::One(text) => vec![text],
            Texts::Many(texts) => texts,
        }
    }
}

impl ReplyItem {
    fn read(self, index: usize, place: &str) -> Result<ScriptedReply, ScriptError> {
        let wrong = |what: String| ScriptError(format!("{place}: {what}"));
        let mut calls = Vec::new();
        if self.tool.len() > 1 {
            let names: Vec<_> = self.tool.keys().map(String::as_str).collect();
            return Err(wrong(format!("several tools ({}) go under `calls`", names.join(", "))));
        }
        for call in [self.tool].into_iter().chain(self.calls.unwrap_or_default()) {
            calls.extend(read_call(call).map_err(wrong)?);
        }
        let said = self.say.is_some() || self.text.is_some();
        if !said && calls.is_empty() && self.finish.is_none() {
            return Err(wrong("it neither says anything nor calls a tool".to_owned()));
        }
        Ok(ScriptedReply {
            turn: self.turn.unwrap_or(index),
            task: self.task,
            text: self.say.or(self.text).unwrap_or_default(),
            calls,
            think: self.think.into(),
            redacted: self.redacted,
            finish: self.finish,
            usage: self.usage.map(|usage| Usage {
                input_tokens: usage.input,
                output_tokens: usage.output,
                cached_tokens: usage.cached,
                reasoning_tokens: usage.reasoning,
                cost_usd: usage.cost,
            }),
            expect: self.expect.into(),
            delay: Duration::from_millis(self.delay_ms),
        })
    }
}

/// Reads `{tool: arguments}` or `{name, id, arguments}`; an empty map is not a call.
fn read_call(mut call: BTreeMap<String, Value>) -> Result<Option<ScriptedCall>, String> {
    let verbatim = call.contains_key("name") && call.contains_key("arguments");
    if verbatim {
        let mut text = |key: &str| match call.remove(key) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(format!("`{key}` of a call is a text")),
        };
        let (id, name, arguments) = (text("id")?, text("name")?, text("arguments")?);
        let (name, arguments) = (name.unwrap_or_default(), arguments.unwrap_or_default());
        return Ok(Some(ScriptedCall { id, name, arguments }));
    }
    let Some((name, arguments)) = call.pop_first() else { return Ok(None) };
    if !call.is_empty() {
        return Err(format!("a call has one tool, and `{name}` is one of several"));
    }
    let arguments = match arguments {
        Value::Null => "{}".to_owned(),
        Value::Object(map) => Value::Object(map).to_string(),
        Value::String(text) => match main_argument(&name) {
            Some(main) => serde_json::json!({ main: text }).to_string(),
            None => {
                return Err(format!(
                    "`{name}` takes a map of arguments, or is not a key of a reply"
                ));
            }
        },
        Value::Bool(_) | Value::Number(_) | Value::Array(_) => {
            return Err(format!("`{name}` takes a text or a map of arguments"));
        }
    };
    Ok(Some(ScriptedCall { id: None, name, arguments }))
}

/// The argument a tool's plain text stands for.
pub(crate) fn main_argument(tool: &str) -> Option<&'static str> {
    Some(match tool {
        tool_name::BASH => "command",
        tool_name::READ => "path",
        tool_name::GREP | tool_name::GLOB => "pattern",
        tool_name::ASK_USER => "question",
        tool_name::SEARCH_MEMO | tool_name::WEB_SEARCH => "query",
        tool_name::READ_SKILL => "name",
        tool_name::WEB_FETCH => "url",
        _ => return None,
    })
}

#[cfg(test)]
mod tests;
