//! Gets one reply of the model: reserves its cost, sends the request, journals the reply, and decides what a failure
//! means.

use std::collections::BTreeMap;

use jiff::Timestamp;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;
use windlass_core::ending::Ending;
use windlass_core::event::{Event, LlmRequest, LlmResponse, ReasoningDropped};
use windlass_core::id::CallId;
use windlass_core::message::ToolRequest;
use windlass_core::secrets::{RedactedStream, Secrets};
use windlass_model::{Fault, Options, Reply, StreamEvent};
use windlass_store::Level;

use crate::billing::Credit;
use crate::journal::Journal;
use crate::model_wait::wait_for_model;
use crate::{Agent, Error, Preview, PreviewContent, report, spans};

impl Agent {
    /// One reply of the model, journaled.
    pub(crate) async fn ask(
        &self,
        task: &mut Journal,
        stop: &CancellationToken,
    ) -> Result<Option<Ending>, Error> {
        let (messages, hash) = task.context().fingerprint();
        let tokens = task.estimated_tokens();
        let price = self.parts.settings.price;
        let reserved = match self.billing.reserve(task, price, tokens).await? {
            Credit::Granted(reserved) => reserved,
            Credit::UsedUp(_) => return Ok(Some(Ending::OverBudget)),
        };
        let gauge = self.compactor.limits().gauge(tokens);
        let request = LlmRequest {
            model: self.parts.model.name().to_string(),
            messages,
            estimated_tokens: tokens,
            hash,
            context: Some(gauge),
            reserved_usd: reserved.known_usd(),
            segment_ms: None,
        };
        task.commit(vec![Event::LlmRequest(request)], Level::Written).await?;
        task.show_usage(gauge.percent).await?;

        let flushed = task.flush().await?;
        let watch = self.time_limit.watch(&flushed, stop);
        let Some(transcript) = flushed.transcript() else {
            return Err(Error::Empty { task: flushed.task() });
        };
        let (id, previews) = (flushed.task(), &self.parts.previews);
        let secrets = flushed.store().secrets().known();
        let mut shown = RedactedReply::new(&secrets);
        let asked = PreviewContent::Asked { seq: flushed.last_seq() };
        let _ = previews.send(Preview { task: id, live: asked });
        let mut live = |live: StreamEvent| {
            let live = shown.without_keys(live, &secrets);
            // Nobody listening is fine: previews are for surfaces that happen to be there.
            let _ = previews.send(Preview { task: id, live: PreviewContent::Reply(live) });
        };
        let options = Options::default();
        let span = spans::chat(id, self.parts.model.name());
        let asked = self.parts.model.reply(transcript, &options, &mut live);
        let reply = tokio::select! {
            reply = asked.instrument(span.clone()) => reply,
            interrupt = watch.wait_for_interrupt() => return Ok(self.time_limit.segment_ending(interrupt?)),
        };
        match reply {
            Ok(reply) => {
                let response = response(task.now(), reply);
                let usage = response.usage;
                spans::record_reply(&span, &response);
                let warning = self.billing.settle(reserved, &usage, 1);
                let events = std::iter::once(Event::LlmResponse(response)).chain(warning);
                task.buffer(events.collect())?;
                Ok(None)
            }
            Err(error) => {
                spans::record_failure(
                    &span,
                    report::model_error(&error).error_type,
                    &error.to_string(),
                );
                self.model_failed(task, &error).await
            }
        }
    }

    /// A context that the provider finds too long is compacted once and sent once more. Reasoning that it
    /// refuses is dropped, and the rest sent once more.
    async fn model_failed(
        &self,
        task: &mut Journal,
        error: &windlass_model::Error,
    ) -> Result<Option<Ending>, Error> {
        let too_long = matches!(error.fault, Fault::ContextLength { .. });
        if too_long && !task.state().compaction.forced {
            tracing::warn!(task_id = %task.task(), %error, "Context refused as too long");
            return self.compactor.force(task).await;
        }
        let refused = matches!(error.fault, Fault::ReasoningRefused { .. });
        if refused && task.context().holds_reasoning() {
            tracing::warn!(task_id = %task.task(), %error, "Reasoning refused");
            let reason = error.fault.to_string();
            task.buffer(vec![Event::ReasoningDropped(ReasoningDropped { reason })])?;
            return Ok(None);
        }
        let wait = wait_for_model(self.parts.settings.outage, task.state(), task.now(), error);
        Ok(Some(wait.unwrap_or(Ending::Failed(report::model_error(error)))))
    }
}

/// What was shown of a reply. The end of a text waits while it may be the beginning of a key.
struct RedactedReply {
    text: RedactedStream,
    reasoning: RedactedStream,
    /// The arguments of each call, by its place in the reply.
    arguments: BTreeMap<usize, RedactedStream>,
}

impl RedactedReply {
    fn new(secrets: &Secrets) -> Self {
        let (text, reasoning) = (secrets.stream(), secrets.stream());
        Self { text, reasoning, arguments: BTreeMap::new() }
    }

    /// A preview as it may be shown.
    fn without_keys(&mut self, live: StreamEvent, secrets: &Secrets) -> StreamEvent {
        let clean = |shown: &mut RedactedStream, text: String| {
            String::from_utf8_lossy(&shown.push(text.as_bytes())).into_owned()
        };
        match live {
            StreamEvent::Text(text) => StreamEvent::Text(clean(&mut self.text, text)),
            StreamEvent::Reasoning(text) => {
                StreamEvent::Reasoning(clean(&mut self.reasoning, text))
            }
            StreamEvent::CallArguments { index, delta } => {
                let shown = self.arguments.entry(index).or_insert_with(|| secrets.stream());
                StreamEvent::CallArguments { index, delta: clean(shown, delta) }
            }
            retrying @ StreamEvent::Retrying { .. } => {
                // The reply starts again.
                *self = Self::new(secrets);
                retrying
            }
            StreamEvent::CallStarted { index, name } => {
                StreamEvent::CallStarted { index, name: secrets.redact(&name).into_owned() }
            }
            other => other,
        }
    }
}

fn response(now: Timestamp, reply: Reply) -> LlmResponse {
    let calls = reply.calls.into_iter().map(|call| ToolRequest {
        id: CallId::new(now),
        provider_id: call.provider_id,
        name: call.name,
        arguments: call.arguments,
    });
    LlmResponse {
        text: reply.text,
        calls: calls.collect(),
        reasoning: reply.reasoning,
        finish: reply.finish,
        usage: reply.usage,
        model: reply.model,
        latency_ms: reply.latency.as_millis() as u64,
        segment_ms: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_arrives_in_pieces_is_not_previewed() {
        let secrets = Secrets::default().with([("KEY", "sk-live-0123456789")]);
        let mut reply = RedactedReply::new(&secrets);
        let mut shown = [String::new(), String::new()];
        for delta in ["{\"command\":\"echo sk-l", "ive-01234", "56789\"}"] {
            for index in 0..2 {
                let live = StreamEvent::CallArguments { index, delta: delta.to_owned() };
                if let StreamEvent::CallArguments { index, delta } =
                    reply.without_keys(live, &secrets)
                {
                    shown[index].push_str(&delta);
                }
            }
        }
        assert_eq!(shown[0], r#"{"command":"echo [redacted: KEY]"}"#);
        assert_eq!(shown[0], shown[1]);
    }
}
