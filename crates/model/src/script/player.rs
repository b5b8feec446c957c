//! Playing a script: which reply comes next, and the model that gives it.

use std::cell::OnceCell;

use windlass_core::message::Prelude;
use windlass_core::reasoning::{Reasoning, Seal, Thought};

use super::{Rule, RuleAnswer, Script, ScriptedReply};
use crate::{
    BoxFuture, Call, Error, Fault, Model, ModelName, Options, Reply, StreamEvent, Transcript, Wire,
    assemble::identify, transcript::TranscriptForm,
};

/// A conversation a script can answer.
pub trait RequestView {
    /// How many replies it already has.
    fn turn(&self) -> usize;
    /// The texts since the last reply.
    fn new_texts(&self) -> Vec<String>;
    /// The system prompt and the first user message.
    fn opening(&self) -> (String, String);
}

impl RequestView for Transcript {
    fn turn(&self) -> usize {
        Transcript::turn(self)
    }

    fn new_texts(&self) -> Vec<String> {
        Transcript::new_texts(self)
    }

    fn opening(&self) -> (String, String) {
        Transcript::opening(self)
    }
}

impl Script {
    /// The reply to a conversation, or what is wrong.
    pub fn answer(&self, asked: &dyn RequestView) -> Result<&ScriptedReply, String> {
        let turn = asked.turn();
        let received = ReceivedText { asked, new_texts: OnceCell::new(), opening: OnceCell::new() };
        let rule = self.rules.iter().find(|rule| rule.holds(&received));
        let (replies, place) = match rule.map(|rule| &rule.answer) {
            Some(RuleAnswer::Always(reply)) => return expected(reply, &received),
            Some(RuleAnswer::InTurn(replies)) => (replies, "the matching rule"),
            None => (&self.replies, "the script"),
        };
        // A reply meant for this task goes before one for any.
        let mine = |reply: &&ScriptedReply| {
            reply.task.as_ref().is_some_and(|text| received.goal().contains(text))
        };
        let here = || replies.iter().filter(|reply| reply.turn == turn);
        let found = here().find(mine).or_else(|| here().find(|reply| reply.task.is_none()));
        let reply = found.ok_or_else(|| {
            let count = match replies.len() {
                1 => "1 reply".to_owned(),
                many => format!("{many} replies"),
            };
            format!("{place} has {count}, and reply {} was asked for", turn + 1)
        })?;
        expected(reply, &received)
    }
}

/// The texts of a conversation, read when first asked for: that costs the conversation's length.
struct ReceivedText<'a> {
    asked: &'a dyn RequestView,
    new_texts: OnceCell<Vec<String>>,
    opening: OnceCell<(String, String)>,
}

impl ReceivedText<'_> {
    fn new_texts(&self) -> &[String] {
        self.new_texts.get_or_init(|| self.asked.new_texts())
    }

    fn has_news(&self, wanted: &str) -> bool {
        self.new_texts().iter().any(|text| text.contains(wanted))
    }

    fn opening(&self) -> &(String, String) {
        self.opening.get_or_init(|| self.asked.opening())
    }

    /// The first message without what it says of the place and of earlier work: those words choose no reply.
    fn goal(&self) -> &str {
        let first = self.opening().1.as_str();
        let ends = ["\n# Environment\n", "\n# What is remembered from earlier work\n"];
        let end = ends.iter().filter_map(|heading| first.find(heading)).min();
        &first[..end.unwrap_or(first.len())]
    }
}

fn expected<'a>(
    reply: &'a ScriptedReply,
    received: &ReceivedText<'_>,
) -> Result<&'a ScriptedReply, String> {
    match reply.expect.iter().find(|wanted| !received.has_news(wanted)) {
        None => Ok(reply),
        Some(missing) => Err(format!(
            "reply {} of the script expects `{missing}`, which is not in what came since the last one: {}",
            received.asked.turn() + 1,
            received.new_texts().join(" | ")
        )),
    }
}

impl Rule {
    fn holds(&self, received: &ReceivedText<'_>) -> bool {
        self.system.as_ref().is_none_or(|wanted| received.opening().0.contains(wanted))
            && self.task.as_ref().is_none_or(|wanted| received.goal().contains(wanted))
            && self.when.iter().all(|wanted| received.has_news(wanted))
    }
}

impl Script {
    /// This script as a model.
    pub fn into_model(self, name: ModelName) -> std::sync::Arc<dyn Model> {
        std::sync::Arc::new(ScriptModel::new(name, self))
    }
}

/// A script as a model.
pub(crate) struct ScriptModel {
    name: ModelName,
    script: Script,
}

impl ScriptModel {
    pub fn new(name: ModelName, script: Script) -> Self {
        Self { name, script }
    }
}

impl Model for ScriptModel {
    fn name(&self) -> &ModelName {
        &self.name
    }

    fn transcript(&self, prelude: &Prelude) -> Transcript {
        Transcript::new(TranscriptForm::plain(Wire::Chat, &self.name.to_string()), prelude)
    }

    fn reply<'a>(
        &'a self,
        transcript: &'a Transcript,
        _options: &'a Options,
        live: &'a mut (dyn FnMut(StreamEvent) + Send),
    ) -> BoxFuture<'a, Result<Reply, Error>> {
        Box::pin(async move {
            let scripted = self.script.answer(transcript).map_err(|detail| Error {
                model: self.name.clone(),
                base: String::new(),
                attempts: 1,
                fault: Fault::Script { detail },
            })?;
            if !scripted.delay.is_zero() {
                tokio::time::sleep(scripted.delay).await;
            }
            let mut usage = scripted.usage(transcript.bytes());
            usage.cost_usd = usage.cost_usd.or(Some(0.0));
            let calls = scripted.calls.iter().map(|call| Call {
                provider_id: call.id.clone().unwrap_or_default(),
                name: call.name.clone(),
                arguments: call.arguments.clone(),
            });
            let mut calls: Vec<Call> = calls.collect();
            identify(&mut calls, transcript);
            let reasoning = reasoning(&self.name, scripted);
            show(scripted, &calls, live);
            Ok(Reply {
                text: scripted.text.clone(),
                calls,
                reasoning,
                finish: scripted.finish(),
                usage,
                model: self.name.to_string(),
                latency: scripted.delay,
            })
        })
    }
}

/// What a script says that the model thought.
fn reasoning(name: &ModelName, scripted: &ScriptedReply) -> Option<Reasoning> {
    let redacted = scripted
        .redacted
        .iter()
        .map(|data| Thought { seal: Some(Seal::Redacted(data.clone())), ..Thought::default() });
    let thoughts = scripted.think.iter().enumerate().map(|(index, text)| Thought {
        text: text.clone(),
        seal: Some(Seal::Field("reasoning_content".to_owned())),
        after_text: if index == 0 { 0 } else { scripted.text.len() },
        after_calls: index,
    });
    let thoughts: Vec<_> = redacted.chain(thoughts).collect();
    (!thoughts.is_empty()).then(|| Reasoning { model: name.to_string(), thoughts })
}

/// Previews a reply as a stream would.
fn show(scripted: &ScriptedReply, calls: &[Call], live: &mut (dyn FnMut(StreamEvent) + Send)) {
    for thought in &scripted.think {
        live(StreamEvent::Reasoning(thought.clone()));
    }
    for word in scripted.text.split_inclusive(' ') {
        live(StreamEvent::Text(word.to_owned()));
    }
    for (index, call) in calls.iter().enumerate() {
        live(StreamEvent::CallStarted { index, name: call.name.clone() });
        live(StreamEvent::CallArguments { index, delta: call.arguments.clone() });
    }
}
