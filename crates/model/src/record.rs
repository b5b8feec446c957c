//! Writes a script of what a model really answered, to be played back.

use std::{
    fs::{File, OpenOptions},
    io::{self, Read, Write},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use serde_json::Value;
use windlass_core::message::{Finish, Prelude};

use crate::{
    BoxFuture, Call, Error, Fault, Model, ModelName, Options, Reply, StreamEvent, Transcript,
    script::main_argument,
};

/// How much of a task's first message tells it from others.
const TASK_CHARS: usize = 120;

const HEADER: &[u8] =
    b"# What a model answered; play it back with `--model script:FILE`.\nreplies:\n";

/// A model that also writes down its replies as a script. See [`crate::script`] for the format.
///
/// Each reply is in the file before it is returned. Conversations beside the main one (sub-agents)
/// are distinguished by how their first message begins; two that begin alike are taken for one.
pub struct Recorder {
    model: Arc<dyn Model>,
    path: PathBuf,
    tape: Mutex<Tape>,
    clean: Option<Clean>,
}

/// Takes keys out of a text.
type Clean = Box<dyn Fn(&str) -> String + Send + Sync>;

struct Tape {
    file: File,
    main: Main,
}

/// The conversation that needs no `task` in the script.
enum Main {
    /// The first one that asks.
    Next,
    /// The one that begins with this message.
    Begins(String),
    /// None: another recorder wrote the beginning of this file, so every reply says whose it is.
    Elsewhere,
}

impl Recorder {
    /// Records `model` into a new file, replacing what is there.
    pub fn create(model: Arc<dyn Model>, path: &Path) -> io::Result<Self> {
        let mut file = File::create(path)?;
        file.write_all(HEADER)?;
        Ok(Self::new(model, path, file, Main::Next))
    }

    /// Whether a recording may be written there: nothing is there, or a recording.
    pub fn may_replace(path: &Path) -> io::Result<bool> {
        let mut beginning = Vec::new();
        // A FIFO would wait for its other end.
        if std::fs::metadata(path).is_ok_and(|found| !found.is_file() && !found.is_dir()) {
            return Err(io::Error::other("it is not a regular file"));
        }
        match File::open(path) {
            Ok(file) => file.take(HEADER.len() as u64).read_to_end(&mut beginning)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
            Err(error) => return Err(error),
        };
        Ok(beginning.is_empty() || beginning == HEADER)
    }

    /// Appends the recording of a resumed run to its file.
    pub fn append(model: Arc<dyn Model>, path: &Path) -> io::Result<Self> {
        let mut file = OpenOptions::new().create(true).append(true).open(path)?;
        if file.metadata()?.len() == 0 {
            file.write_all(HEADER)?;
        }
        Ok(Self::new(model, path, file, Main::Elsewhere))
    }

    fn new(model: Arc<dyn Model>, path: &Path, file: File, main: Main) -> Self {
        let tape = Mutex::new(Tape { file, main });
        Self { model, path: path.to_owned(), tape, clean: None }
    }

    /// Keeps keys out of what it writes: a recording is meant to be passed on.
    #[must_use]
    pub fn with_redaction(self, clean: impl Fn(&str) -> String + Send + Sync + 'static) -> Self {
        Self { clean: Some(Box::new(clean)), ..self }
    }

    fn write(&self, transcript: &Transcript, reply: &Reply) -> io::Result<()> {
        let mut tape = self.tape.lock().unwrap_or_else(PoisonError::into_inner);
        let (_, task) = transcript.opening();
        if let Main::Next = tape.main {
            tape.main = Main::Begins(task.clone());
        }
        let guard = match &tape.main {
            Main::Begins(main) if *main == task => None,
            Main::Next | Main::Begins(_) | Main::Elsewhere => Some(task.as_str()),
        };
        let item = item(transcript.turn(), guard, reply);
        let item = match &self.clean {
            Some(clean) => clean(&item),
            None => item,
        };
        tape.file.write_all(item.as_bytes())
    }
}

impl Model for Recorder {
    fn name(&self) -> &ModelName {
        self.model.name()
    }

    fn transcript(&self, prelude: &Prelude) -> Transcript {
        self.model.transcript(prelude)
    }

    fn reply<'a>(
        &'a self,
        transcript: &'a Transcript,
        options: &'a Options,
        live: &'a mut (dyn FnMut(StreamEvent) + Send),
    ) -> BoxFuture<'a, Result<Reply, Error>> {
        Box::pin(async move {
            let reply = self.model.reply(transcript, options, live).await?;
            self.write(transcript, &reply).map_err(|error| Error {
                model: self.name().clone(),
                base: self.path.display().to_string(),
                attempts: 1,
                fault: Fault::Recording { detail: error.to_string() },
            })?;
            Ok(reply)
        })
    }
}

/// The beginning of a task's message, up to what names this very task: another run has another id.
fn stable_beginning(task: &str) -> &str {
    let Some(id) = task.find("/task_") else { return task };
    let end = task[..id].rfind('\n').unwrap_or(id);
    &task[..end]
}

/// One reply as an item of a script. JSON's texts are YAML's, so that is how they are quoted.
fn item(turn: usize, task: Option<&str>, reply: &Reply) -> String {
    let mut lines = vec![format!("turn: {turn}")];
    if let Some(task) = task {
        let begin: String = stable_beginning(task).chars().take(TASK_CHARS).collect();
        lines.push(format!("task: {}", quoted(&begin)));
    }
    let key = if reply.calls.is_empty() { "say" } else { "text" };
    if !reply.text.is_empty() || reply.calls.is_empty() {
        lines.push(format!("{key}: {}", quoted(&reply.text)));
    }
    if !reply.calls.is_empty() {
        lines.push("calls:".to_owned());
        lines.extend(reply.calls.iter().map(|call| format!("  - {}", flow(call))));
    }
    let thoughts = reply.reasoning.iter().flat_map(|reasoning| &reasoning.thoughts);
    let thoughts: Vec<_> = thoughts
        .filter(|thought| !thought.text.is_empty())
        .map(|thought| quoted(&thought.text))
        .collect();
    if !thoughts.is_empty() {
        lines.push(format!("think: [{}]", thoughts.join(", ")));
    }
    match (reply.finish, reply.calls.is_empty()) {
        (Finish::Stop, true) | (Finish::ToolCalls, false) => {}
        (Finish::Stop, false) => lines.push("finish: stop".to_owned()),
        (Finish::ToolCalls, true) => lines.push("finish: tool_calls".to_owned()),
        (Finish::Length, _) => lines.push("finish: length".to_owned()),
        (Finish::ContentFilter, _) => lines.push("finish: content_filter".to_owned()),
    }
    let usage = &reply.usage;
    let cost = usage.cost_usd.map(|cost| format!(", cost: {cost:?}")).unwrap_or_default();
    lines.push(format!(
        "usage: {{input: {}, output: {}, cached: {}{cost}}}",
        usage.input_tokens, usage.output_tokens, usage.cached_tokens
    ));
    format!("  - {}\n", lines.join("\n    "))
}

/// A call in the shortest form that gives back the very same arguments.
fn flow(call: &Call) -> String {
    // Compared as texts: playing back writes the value again, and must arrive at these bytes.
    let same = |value: &Value| format!("{value}") == call.arguments;
    let parsed = serde_json::from_str(&call.arguments).ok().filter(same);
    let clear = !matches!(call.name.as_str(), "" | "name" | "arguments");
    match (parsed, main_argument(&call.name)) {
        (Some(Value::Object(map)), Some(main)) if map.len() == 1 && map.contains_key(main) => {
            match &map[main] {
                Value::String(text) => format!("{}: {}", quoted(&call.name), quoted(text)),
                _ => format!("{{{}: {}}}", quoted(&call.name), escape(&call.arguments)),
            }
        }
        (Some(Value::Object(_)), _) if clear => {
            format!("{{{}: {}}}", quoted(&call.name), escape(&call.arguments))
        }
        _ => {
            let (name, arguments) = (quoted(&call.name), quoted(&call.arguments));
            format!("{{name: {name}, arguments: {arguments}}}")
        }
    }
}

fn quoted(text: &str) -> String {
    escape(&Value::from(text).to_string())
}

/// JSON with what YAML takes for unprintable written as escapes; they occur only inside texts.
fn escape(json: &str) -> String {
    let plain = |c: char| c.is_ascii() && c != '\u{7f}';
    let odd = |c: char| {
        matches!(
            c,
            '\u{7f}'..='\u{9f}' | '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}'
        )
    };
    if json.chars().all(plain) {
        return json.to_owned();
    }
    json.chars()
        .map(|c| if odd(c) { format!("\\u{:04x}", u32::from(c)) } else { c.to_string() })
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use windlass_core::message::Usage;

    use super::*;
    use crate::Script;

    proptest! {
        #[test]
        fn whatever_is_recorded_is_read_back_the_same(
            text in any::<String>(),
            task in any::<String>(),
            name in "[a-z_]{1,6}|bash|name|say|y|1",
            arguments in prop_oneof![
                any::<String>(),
                any::<String>().prop_map(|text| serde_json::json!({ "command": text }).to_string()),
            ],
        ) {
            let call = Call { provider_id: "x".to_owned(), name, arguments };
            let reply = Reply {
                text,
                calls: vec![call],
                reasoning: None,
                finish: Finish::ToolCalls,
                usage: Usage::default(),
                model: String::new(),
                latency: std::time::Duration::ZERO,
            };
            let written = format!("replies:\n{}", item(3, Some(&task), &reply));
            let script = Script::parse(&written);
            prop_assert!(script.is_ok(), "{script:?}\n{written}");
            let read = script.unwrap().replies.remove(0);
            prop_assert_eq!(read.turn, 3);
            prop_assert_eq!(read.task, Some(task.chars().take(TASK_CHARS).collect()));
            prop_assert_eq!(read.text, reply.text);
            prop_assert_eq!(&read.calls[0].name, &reply.calls[0].name);
            prop_assert_eq!(&read.calls[0].arguments, &reply.calls[0].arguments);
        }
    }
}
