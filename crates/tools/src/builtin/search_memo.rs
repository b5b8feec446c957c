//! `search_memo`: the passages of the memos that a query is about, best first (ES-178, ES-180).

use std::fmt::Write as _;
use std::ops::ControlFlow;

use schemars::JsonSchema;
use serde::Deserialize;
use windlass_core::layout::Own;
use windlass_core::outcome::Outcome;
use windlass_core::policy::{Class, Risk};
use windlass_core::text::{plural, prefix};
use windlass_core::tool_name;
use windlass_model::Embeddings;
use windlass_store::search;

use super::meaning::{fused, nearest};
use super::passages::{Passage, passages};
use super::save_memo::MAX_MEMO_BYTES;
use super::{Builtin, blocking, path_error, read_only, scan_act, unseen};
use crate::output::readable;
use crate::tool::{Act, Call, Category, Prepared, ToolContext};
use crate::workspace::{Error, ScanFilter, ScanOutcome, Stop, Workspace, read_bounded};

/// Passages in one result.
const MAX_HITS: usize = 8;
/// How much of a passage is shown.
const EXCERPT_BYTES: usize = 600;
/// All memos together; searched in memory, once a call.
const MAX_SEARCHED_BYTES: usize = 32 << 20;
/// Passages whose meaning is compared; each costs a little at the embeddings server.
const MAX_COMPARED: usize = 512;
/// Memos named when nothing matches.
const MAX_NAMES: usize = 50;

pub(super) struct SearchMemo;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// What you want to recall, in words.
    #[schemars(length(min = 1))]
    query: String,
}

impl Builtin for SearchMemo {
    type Arguments = Arguments;
    const NAME: &'static str = tool_name::SEARCH_MEMO;
    const DESCRIPTION: &'static str = include_str!("descriptions/search_memo.md");
    const CATEGORY: Category = Category::ContextEngineering;
    const MIN_CLASS: (Class, Risk) = (Class::Read, Risk::Low);
    const IS_NOTE: bool = true;

    fn prepare(
        context: ToolContext,
        _call: Call,
        arguments: Arguments,
    ) -> Result<Prepared, Outcome> {
        let act: Act = match context.embeddings.clone() {
            None => scan_act(move |stop| match gather(&context.workspace, stop) {
                Ok(notes) => match by_words(&notes.passages, &arguments.query) {
                    Ok(hits) => hits_outcome(&notes, &arguments.query, hits),
                    Err(outcome) => outcome,
                },
                Err(outcome) => outcome,
            }),
            Some(embeddings) => Box::new(move || {
                Box::pin(async move { by_meaning_too(context, embeddings, arguments.query).await })
            }),
        };
        Ok(read_only("searches the memos".to_owned(), act))
    }
}

/// Words and meaning together: a passage that either finds first comes first (O-20).
async fn by_meaning_too(context: ToolContext, embeddings: Embeddings, query: String) -> Outcome {
    let gathered = blocking(move || gather(&context.workspace, &Stop::default())).await;
    let notes = match gathered {
        Ok(notes) => notes,
        Err(outcome) => return outcome,
    };
    let by_words = match by_words(&notes.passages, &query) {
        Ok(hits) => hits,
        Err(outcome) => return outcome,
    };
    let compared = notes.passages.iter().take(MAX_COMPARED);
    let mut texts = vec![query.clone()];
    texts.extend(compared.map(|passage| passage.text.clone()));
    match embeddings.embed(&texts).await {
        Ok(vectors) => {
            let near = nearest(&vectors);
            let by_meaning: Vec<_> = near.into_iter().map(|at| &notes.passages[at]).collect();
            hits_outcome(&notes, &query, fused(&by_words, &by_meaning))
        }
        Err(error) => {
            let mut outcome = hits_outcome(&notes, &query, by_words);
            outcome.text.push_str(&format!("\n[searched by words alone: {error}]"));
            outcome
        }
    }
}

/// The passages that have words of the query, best first.
fn by_words<'p>(passages: &'p [Passage], query: &str) -> Result<Vec<&'p Passage>, Outcome> {
    let documents = passages.iter().map(|passage| {
        // A note's name says what it is about, as one occurrence in its text would.
        let name = passage.path.rsplit('/').next().unwrap_or(&passage.path);
        format!("{}\n{}", passage.text, name.trim_end_matches(".md"))
    });
    let ranked = search::rank(query, documents.enumerate())
        .map_err(|error| Outcome::error(format!("The memos cannot be searched: {error}.")))?;
    Ok(ranked.into_iter().map(|ranked| &passages[ranked.id]).collect())
}

/// All notes, read.
struct Notes {
    /// The directory they are in.
    place: String,
    passages: Vec<Passage>,
    names: Vec<String>,
    bytes: usize,
    scanned: ScanOutcome,
}

fn gather(workspace: &Workspace, stop: &Stop) -> Result<Notes, Outcome> {
    let shown = ScanFilter { hidden: true, ignored: true };
    let (mut all, mut names, mut bytes) = (Vec::new(), Vec::new(), 0);
    let place = workspace.layout().path(Own::Memo);
    let scanned = workspace.scan(&place, shown, stop, &mut |entry| {
        let content = entry.open().and_then(|opened| read_bounded(opened, MAX_MEMO_BYTES));
        if let Ok(content) = content {
            bytes += content.len();
            names.push(entry.path.to_owned());
            all.extend(passages(entry.path, &readable(&content)));
        }
        if bytes > MAX_SEARCHED_BYTES { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    let scanned = match scanned {
        Ok(scanned) => scanned,
        Err(Error::NotFound { .. }) => ScanOutcome::default(),
        Err(error) => return Err(path_error(error)),
    };
    Ok(Notes { place, passages: all, names, bytes, scanned })
}

fn hits_outcome(notes: &Notes, query: &str, hits: Vec<&Passage>) -> Outcome {
    let mut text = if hits.is_empty() { nothing(query, &notes.names) } else { String::new() };
    if !hits.is_empty() {
        let _ = write!(text, "{} in {}/, best first:", plural(hits.len(), "passage"), notes.place);
    }
    for (place, hit) in hits.iter().take(MAX_HITS).enumerate() {
        let excerpt = prefix(&hit.text, EXCERPT_BYTES);
        let more = if excerpt.len() < hit.text.len() { "…" } else { "" };
        let _ = write!(text, "\n\n{}. {} line {}\n{excerpt}{more}", place + 1, hit.path, hit.line);
    }
    if hits.len() > MAX_HITS {
        let _ = write!(text, "\n\n[{} more; ask more precisely]", hits.len() - MAX_HITS);
    }
    if notes.bytes > MAX_SEARCHED_BYTES {
        text.push_str("\n[not all memos were searched: there are too many]");
    }
    text.push_str(&unseen(notes.scanned));
    Outcome::ok(text)
}

fn nothing(query: &str, names: &[String]) -> String {
    if names.is_empty() {
        return "There are no memos yet. Save one with save_memo.".to_owned();
    }
    let shown = names.iter().take(MAX_NAMES).cloned().collect::<Vec<_>>().join(", ");
    let more = if names.len() > MAX_NAMES { ", …" } else { "" };
    format!("No memo matches `{query}`. The memos are: {shown}{more}. Use read to look into one.")
}
