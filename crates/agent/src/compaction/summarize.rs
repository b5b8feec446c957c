//! Phase 2 of a compaction: summarizes the record chunk by chunk, and checks each summary.

use std::collections::VecDeque;

use tokio_util::sync::CancellationToken;
use windlass_core::compaction::{Source, WindowLimits};
use windlass_core::ending::Ending;
use windlass_core::event::{CompactionProgress, CompactionStart, Event, LlmRequest};
use windlass_core::message::{Message, Prelude};
use windlass_core::text::{BYTES_PER_TOKEN, estimate_tokens};
use windlass_model::{Options, Transcript};
use windlass_store::Level;
use windlass_tools::Registry;

use super::{Compactor, Summarizer, extract, record};
use crate::billing::Credit;
use crate::context::{Context, Turn};
use crate::journal::Journal;
use crate::model_wait::wait_for_model;
use crate::{Error, prompt};

/// What every summary must have (ES-171).
const SECTIONS: [&str; 6] =
    ["Tool failures", "Files", "Decisions", "Findings", "Plan", "User instructions"];
/// How often a summary of one chunk is requested.
const ATTEMPTS: usize = 2;
/// Between the summaries of chunks (ES-170).
const SEPARATOR: &str = "\n\n---\n\n";
/// Words per token, for telling the summarizer how long it may be.
const WORDS_PER_TOKEN: f64 = 0.6;
/// How much of the summarizer's window its input may fill; JSON makes text longer.
const INPUT_SHARE: f64 = 0.7;

/// What is summarized.
pub(super) struct SummaryInput {
    /// Pieces of the record, each small enough for the summarizer.
    pub chunks: Vec<String>,
    /// The turns themselves, for the extract.
    turns: Vec<Turn>,
    earlier: Option<String>,
}

/// How a summary came out.
pub(super) enum SummaryOutcome {
    Made(String, Source),
    /// The wait was interrupted; answers so far are journaled.
    Interrupted(Option<Ending>),
}

impl SummaryInput {
    /// The record of the dropped turns, after the summary of everything before them.
    pub fn of(
        context: &Context,
        dropped: &[&Turn],
        limits: &WindowLimits,
        by: &Summarizer,
    ) -> Self {
        let earlier = context.turns().header().summary.clone();
        let mut pieces = record::pieces(dropped);
        if pieces.is_empty() {
            return Self { chunks: Vec::new(), turns: Vec::new(), earlier };
        }
        let bytes: usize = pieces.iter().map(String::len).sum();
        let average = context.estimate().tokens(bytes) / pieces.len() as u64;
        if let Some(earlier) = &earlier {
            pieces.insert(0, prompt::earlier_summary(earlier));
        }
        let usable =
            WindowLimits { window: by.window, ..*limits }.usable_tokens() as f64 * INPUT_SHARE;
        let limit = context.estimate().bytes(limits.chunk_tokens(average).min(usable as u64));
        let turns = dropped.iter().map(|turn| (*turn).clone()).collect();
        Self { chunks: into_chunks(&pieces, limit.max(1)), turns, earlier }
    }

    fn extract(&self, registry: &Registry, limit: u64) -> String {
        let turns: Vec<_> = self.turns.iter().collect();
        extract::extract(registry, &turns, self.earlier.as_deref(), limit)
    }
}

/// Joins whole pieces up to the limit; a larger piece is cut and is a chunk of its own (ES-161, O-19).
fn into_chunks(pieces: &[String], limit: usize) -> Vec<String> {
    let mut chunks: Vec<String> = Vec::new();
    for piece in pieces {
        let piece = record::cut_to(piece, limit);
        match chunks.last_mut() {
            Some(last) if last.len() + piece.len() + 2 <= limit => {
                last.push_str("\n\n");
                last.push_str(&piece);
            }
            _ => chunks.push(piece),
        }
    }
    chunks
}

/// A summary, or why it cannot be used.
fn check_summary(text: &str, limit_tokens: u64) -> Result<String, String> {
    let text = text.trim();
    if text.is_empty() {
        return Err("it was empty".to_owned());
    }
    let has = |wanted: &str| {
        let wanted = wanted.to_ascii_lowercase();
        text.lines()
            .any(|line| line.starts_with('#') && line.to_ascii_lowercase().contains(&wanted))
    };
    if let Some(missing) = SECTIONS.iter().find(|section| !has(section)) {
        return Err(format!("the section `## {missing}` is missing"));
    }
    let tokens = estimate_tokens(text.len() as u64);
    if tokens > limit_tokens {
        return Err(format!("it was too long ({tokens} tokens, and {limit_tokens} are the limit)"));
    }
    Ok(text.to_owned())
}

/// The outcome of one attempt.
enum Attempt {
    Answered(String),
    Failed(String),
    /// The segment ends, or the loop looks for a signal; answers so far are journaled.
    Interrupted(Option<Ending>),
}

impl Compactor {
    /// Summarizes chunk by chunk. `progress` has the answers from before a crash.
    pub(super) async fn summarize(
        &self,
        task: &mut Journal,
        stop: &CancellationToken,
        start: &CompactionStart,
        progress: Vec<CompactionProgress>,
        input: SummaryInput,
    ) -> Result<SummaryOutcome, Error> {
        let limit = start.summary_tokens;
        if input.chunks.is_empty() {
            let earlier = input.earlier.unwrap_or_else(|| "- none".to_owned());
            return Ok(SummaryOutcome::Made(earlier, Source::Model));
        }
        let same = start.chunks as usize == input.chunks.len();
        let answers = progress.into_iter().filter(|_| same).map(|one| one.text);
        let mut answers: VecDeque<String> = answers.collect();
        let mut summaries = Vec::new();
        let parts = input.chunks.len();
        for (place, chunk) in input.chunks.iter().enumerate() {
            let record = prompt::record_part(place + 1, parts, chunk);
            match self.summary(task, stop, start, &mut answers, &record).await? {
                Ok(Some(summary)) => summaries.push(summary),
                Ok(None) => {}
                Err(ending) => return Ok(SummaryOutcome::Interrupted(ending)),
            }
        }
        if summaries.is_empty() {
            return Ok(SummaryOutcome::Made(input.extract(&self.registry, limit), Source::Extract));
        }
        let mut source = Source::Model;
        if summaries.len() < parts {
            source = Source::Mixed;
            summaries.push(input.extract(&self.registry, limit / 2));
        }
        let joined = summaries.join(SEPARATOR);
        if estimate_tokens(joined.len() as u64) <= limit {
            return Ok(SummaryOutcome::Made(joined, source));
        }
        let record = prompt::record_part(1, 1, &joined);
        Ok(match self.summary(task, stop, start, &mut answers, &record).await? {
            Ok(Some(summary)) => SummaryOutcome::Made(summary, source),
            Ok(None) => {
                let bytes = usize::try_from(limit * BYTES_PER_TOKEN).unwrap_or(usize::MAX);
                SummaryOutcome::Made(record::cut_to(&joined, bytes), Source::Mixed)
            }
            Err(ending) => SummaryOutcome::Interrupted(ending),
        })
    }

    /// One usable summary, or none after the second attempt.
    async fn summary(
        &self,
        task: &mut Journal,
        stop: &CancellationToken,
        start: &CompactionStart,
        answers: &mut VecDeque<String>,
        record: &str,
    ) -> Result<Result<Option<String>, Option<Ending>>, Error> {
        let words = (start.summary_tokens as f64 * WORDS_PER_TOKEN) as u64;
        let mut asked = record.to_owned();
        for _ in 0..ATTEMPTS {
            let attempt = match answers.pop_front() {
                Some(text) => Attempt::Answered(text),
                None => self.ask_summarizer(task, stop, start, &asked, words).await?,
            };
            let problem = match attempt {
                Attempt::Answered(text) => match check_summary(&text, start.summary_tokens) {
                    Ok(summary) => return Ok(Ok(Some(summary))),
                    Err(problem) => problem,
                },
                Attempt::Failed(problem) => problem,
                Attempt::Interrupted(ending) => return Ok(Err(ending)),
            };
            tracing::warn!(task_id = %task.task(), problem, "Summary not usable");
            asked = format!("{record}\n{}", prompt::summarize_again(&problem, words));
        }
        Ok(Ok(None))
    }

    async fn ask_summarizer(
        &self,
        task: &mut Journal,
        stop: &CancellationToken,
        start: &CompactionStart,
        record: &str,
        words: u64,
    ) -> Result<Attempt, Error> {
        let model = &self.summarizer.model;
        let prelude = Prelude { system: prompt::summarize(words), tools: Vec::new() };
        let mut transcript: Transcript = model.transcript(&prelude);
        transcript.push(&Message::user(record));
        let tokens = task.context().estimate().tokens(transcript.bytes());
        // Where nothing is left to spend, the extract costs nothing.
        let reserved = match self.billing.reserve(task, self.summarizer.price, tokens).await? {
            Credit::Granted(reserved) => reserved,
            Credit::UsedUp(hit) => {
                return Ok(Attempt::Failed(format!("the {} budget is used up", hit.budget)));
            }
        };
        let request = LlmRequest {
            model: model.name().to_string(),
            messages: transcript.len(),
            estimated_tokens: tokens,
            hash: transcript.hash(),
            context: None,
            reserved_usd: reserved.known_usd(),
            segment_ms: None,
        };
        let flushed = task.commit(vec![Event::LlmRequest(request)], Level::Written).await?;
        let watch = self.time_limit.watch(&flushed, stop);
        let options = Options::default();
        let mut ignore_preview = |_| {};
        let reply = tokio::select! {
            reply = model.reply(&transcript, &options, &mut ignore_preview) => reply,
            interrupt = watch.wait_for_interrupt() => {
                return Ok(Attempt::Interrupted(self.time_limit.segment_ending(interrupt?)));
            }
        };
        let reply = match reply {
            Ok(reply) => reply,
            // A summary is worth waiting for: an extract keeps less.
            Err(error) => match wait_for_model(self.outage, task.state(), task.now(), &error) {
                Some(ending) => return Ok(Attempt::Interrupted(Some(ending))),
                None => return Ok(Attempt::Failed(format!("the model failed: {error}"))),
            },
        };
        let progress = CompactionProgress {
            number: start.number,
            text: reply.text.clone(),
            usage: reply.usage,
            latency_ms: reply.latency.as_millis() as u64,
        };
        let warning = self.billing.settle(reserved, &reply.usage, 0);
        let events = std::iter::once(Event::CompactionProgress(progress)).chain(warning);
        task.commit(events.collect(), Level::Written).await?;
        Ok(Attempt::Answered(reply.text))
    }
}
