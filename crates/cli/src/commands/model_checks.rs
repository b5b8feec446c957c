//! What a model can do, found out by asking it: a stream, a call, calls side by side, reasoning, a picture.

use std::sync::Arc;

use serde::Serialize;
use serde_json::json;
use windlass_core::id::CallId;
use windlass_core::message::{ArgumentSchema, Message, Prelude, ToolRequest, ToolSpec};
use windlass_core::picture::Picture;
use windlass_core::reasoning::Effort;
use windlass_core::text::one_line;
use windlass_model::{Model, Options, PictureSource, Reply, StreamEvent, Transcript, picture};
use windlass_term::numbers;

use crate::config::{Config, ModelChoice, ModelFacts, ModelSelection};
use crate::next_action;
use crate::wiring::models;

/// Enough for one word or two calls, with room for a model that thinks first.
const OUTPUT_TOKENS: u32 = 2_048;
/// Columns of what a model says that are shown.
const SAID: usize = 40;
/// A picture that is all red.
const RED: &[u8] = include_bytes!("red.png");
/// The tool that a model is asked to call.
const TOOL: &str = "echo";

/// One thing that was tried.
#[derive(Serialize)]
pub(super) struct AbilityCheck {
    /// What was tried.
    pub ability: &'static str,
    pub works: bool,
    /// What was seen, or what went wrong.
    pub found: String,
}

/// What came of testing one model.
pub(super) struct TestedModel {
    /// What it answered to a first question, or why it did not.
    pub answer: Result<String, String>,
    /// The rest; none where it does not answer.
    pub checks: Vec<AbilityCheck>,
}

/// Tries one model. Somebody waits for the answer, so the first failure says what is wrong.
pub(super) async fn test(config: &Config, chosen: &ModelSelection) -> TestedModel {
    let mut config = config.clone();
    config.models.max_retries = 0;
    let model = match models::open(&config, chosen) {
        Ok(model) => model,
        Err(details) => {
            let hint = next_action::hint(&details).map(|hint| format!(" ({hint})"));
            let answer = Err(format!("{}{}", details.message, hint.unwrap_or_default()));
            return TestedModel { answer, checks: Vec::new() };
        }
    };
    let mut tester = Tester { model, parts: 0, thought: None };
    let asked = tester.ask(&tester.transcript("Answer with the one word: pong", &[])).await;
    let reply = match asked {
        Ok(reply) => reply,
        Err(words) => return TestedModel { answer: Err(words), checks: Vec::new() },
    };
    let answer = Ok(summary(&reply));
    // A script answers in its own order, whatever it is asked.
    if matches!(chosen.model, ModelChoice::Script(_)) {
        return TestedModel { answer, checks: Vec::new() };
    }
    let streamed = tester.parts;
    let stream = AbilityCheck {
        ability: "stream",
        works: streamed > 0,
        found: format!("the answer came in {}", numbers::plural(streamed as u64, "part")),
    };
    let call = tester.tool_call().await;
    let parallel = tester.parallel_calls().await;
    let reasoning = tester.reasoning(&config, chosen).await;
    let picture = tester.picture(&config, chosen).await;
    TestedModel { answer, checks: vec![stream, call, parallel, reasoning, picture] }
}

fn summary(reply: &Reply) -> String {
    let usage = reply.usage;
    let said = one_line(reply.text.trim(), SAID);
    let cost = usage.cost_usd.map_or("cost unknown".to_owned(), numbers::dollars);
    let tokens = numbers::tokens(usage.input_tokens + usage.output_tokens);
    let latency = reply.latency.as_millis();
    format!("it answered `{said}` in {latency} ms ({tokens}, {cost})")
}

struct Tester {
    model: Arc<dyn Model>,
    /// How many parts the last answer came in.
    parts: usize,
    /// What was seen of reasoning so far.
    thought: Option<String>,
}

impl Tester {
    fn transcript(&self, wanted: &str, tools: &[ToolSpec]) -> Transcript {
        let system =
            "You are asked what you can do. Do what is asked, and nothing else.".to_owned();
        let mut transcript = self.model.transcript(&Prelude { system, tools: tools.to_vec() });
        transcript.push(&Message::user(wanted));
        transcript
    }

    async fn ask(&mut self, transcript: &Transcript) -> Result<Reply, String> {
        let options = Options { max_output_tokens: Some(OUTPUT_TOKENS), ..Options::default() };
        let mut parts = 0;
        let mut live =
            |event: StreamEvent| parts += usize::from(matches!(event, StreamEvent::Text(_)));
        let reply = self.model.reply(transcript, &options, &mut live).await.map_err(|error| {
            let causes =
                std::iter::successors(std::error::Error::source(&error), |cause| cause.source());
            causes.fold(error.to_string(), |all, cause| format!("{all}: {cause}"))
        })?;
        self.parts = parts;
        let tokens = reply.usage.reasoning_tokens;
        let text = reply.reasoning.as_ref().map(|reasoning| reasoning.text());
        match (text, tokens) {
            (None, 0) => {}
            (text, tokens) => {
                let shown = text.filter(|text| !text.trim().is_empty());
                let shown = shown.map_or("nothing of it is shown".to_owned(), |text| {
                    format!("it thought `{}`", one_line(text.trim(), SAID))
                });
                let counted = if tokens > 0 { format!(", {tokens} tokens") } else { String::new() };
                self.thought = Some(format!("{shown}{counted}"));
            }
        }
        Ok(reply)
    }

    /// A call, and an answer to its result: the reasoning before the call goes back with it.
    async fn tool_call(&mut self) -> AbilityCheck {
        let wanted =
            "Call the tool `echo` once, with the text `one`. After its result, answer `done`.";
        let mut transcript = self.transcript(wanted, &tools());
        let found = match self.ask(&transcript).await {
            Err(words) => Err(words),
            Ok(reply) if reply.calls.is_empty() => {
                Err(format!("it called nothing, and said `{}`", one_line(&reply.text, SAID)))
            }
            Ok(reply) => {
                push(&mut transcript, &reply);
                match self.ask(&transcript).await {
                    Ok(_) => Ok("it called a tool and read the result".to_owned()),
                    Err(words) => Err(format!("it called a tool; then {words}")),
                }
            }
        };
        check("tool call", found)
    }

    async fn parallel_calls(&mut self) -> AbilityCheck {
        let wanted = "Call the tool `echo` twice in this one reply: with the text `one` and with the text `two`.";
        let transcript = self.transcript(wanted, &tools());
        let found = self.ask(&transcript).await.and_then(|reply| match reply.calls.len() {
            count @ (0 | 1) => {
                Err(format!("{} in one reply", numbers::plural(count as u64, "call")))
            }
            count => Ok(format!("{count} calls in one reply")),
        });
        check("parallel calls", found)
    }

    /// Reasoning may have been seen already; else a question that is worth a thought is asked.
    async fn reasoning(&mut self, config: &Config, chosen: &ModelSelection) -> AbilityCheck {
        if self.thought.is_none() {
            let effort = chosen.effort.or(Some(Effort::Low));
            // A provider that takes no such effort is asked without.
            if let Ok(model) = models::open(config, &ModelSelection { effort, ..chosen.clone() }) {
                self.model = model;
            }
            let wanted = "How many of the numbers from 1 to 30 are prime? Think, then answer with the number.";
            let transcript = self.transcript(wanted, &[]);
            if let Err(words) = self.ask(&transcript).await {
                return check("reasoning", Err(words));
            }
        }
        check("reasoning", self.thought.clone().ok_or_else(|| "none was seen".to_owned()))
    }
}

impl Tester {
    /// A picture of one colour, which the model has to name. It is shown also to a model that is not known to see.
    async fn picture(&mut self, config: &Config, chosen: &ModelSelection) -> AbilityCheck {
        let found = match self.picture_request(config, chosen) {
            Err(words) => Err(words),
            Ok(transcript) => self.ask(&transcript).await.and_then(|reply| {
                let said = one_line(reply.text.trim(), SAID);
                match said.to_lowercase().contains("red") {
                    true => Ok(format!("it was shown red, and said `{said}`")),
                    false => Err(format!("it was shown red, and said `{said}`")),
                }
            }),
        };
        check("picture", found)
    }

    fn picture_request(
        &mut self,
        config: &Config,
        chosen: &ModelSelection,
    ) -> Result<Transcript, String> {
        let mut config = config.clone();
        let facts = config.facts(&chosen.model);
        let facts = ModelFacts { vision: Some(true), ..facts };
        config.model_facts.insert(chosen.model.to_string(), facts);
        self.model = models::open(&config, chosen).map_err(|details| details.message)?;
        let data = picture::prepare(RED).map_err(|error| error.to_string())?;
        let shown = Picture {
            hash: "0".repeat(64).parse().map_err(|error| format!("{error}"))?,
            format: data.format,
            width: data.width,
            height: data.height,
            bytes: data.bytes.len() as u64,
            name: "red.png".to_owned(),
        };
        let prelude = Prelude { system: String::new(), tools: Vec::new() };
        let source = PictureSource::new(|_| Some(RED.to_vec()));
        let mut transcript = self.model.transcript(&prelude).with_pictures(source);
        let wanted = "Which colour does this picture have? Answer with one word.";
        transcript.push(&Message::with_pictures(wanted, vec![shown]));
        Ok(transcript)
    }
}

fn check(ability: &'static str, found: Result<String, String>) -> AbilityCheck {
    let works = found.is_ok();
    AbilityCheck { ability, works, found: found.unwrap_or_else(|words| words) }
}

fn tools() -> [ToolSpec; 1] {
    [ToolSpec {
        name: TOOL.to_owned(),
        description: "Gives back the text it is given.".to_owned(),
        parameters: ArgumentSchema::from(&json!({
            "type": "object",
            "properties": {"text": {"type": "string"}},
            "required": ["text"],
        })),
    }]
}

/// Appends a reply and a result for each of its calls.
fn push(transcript: &mut Transcript, reply: &Reply) {
    let call = |call: &windlass_model::Call| ToolRequest {
        id: CallId::derived("models --test", &call.provider_id),
        provider_id: call.provider_id.clone(),
        name: call.name.clone(),
        arguments: call.arguments.clone(),
    };
    transcript.push(&Message::Assistant {
        text: reply.text.clone(),
        calls: reply.calls.iter().map(call).collect(),
        reasoning: reply.reasoning.clone(),
    });
    for call in &reply.calls {
        transcript.push(&Message::Tool {
            provider_id: call.provider_id.clone(),
            name: call.name.clone(),
            text: "one".to_owned(),
            is_error: false,
        });
    }
}
