//! OpenAI's Responses. Our journal is the state: nothing is stored there, and every request is whole.

use std::sync::atomic::Ordering;

use reqwest::header::HeaderMap;

use crate::served::ServedModel;
use crate::{Error, Fault, Options, Reply, StreamEvent, Transcript};

mod stream;
pub(crate) mod wire;

pub(crate) use stream::Items;

/// Asks one model that speaks Responses.
pub(crate) async fn ask(
    model: &ServedModel,
    transcript: &Transcript,
    options: &Options,
    live: &mut (dyn FnMut(StreamEvent) + Send),
) -> Result<Reply, Error> {
    match ask_once(model, transcript, options, live).await {
        // OpenAI shows summaries only to organizations that it has verified; the rest works without.
        Err(error) if refuses_summaries(&error.fault) && !was_refused(model) => {
            model.summaries_refused.store(true, Ordering::Relaxed);
            ask_once(model, transcript, options, live).await
        }
        other => other,
    }
}

async fn ask_once(
    model: &ServedModel,
    transcript: &Transcript,
    options: &Options,
    live: &mut (dyn FnMut(StreamEvent) + Send),
) -> Result<Reply, Error> {
    let body = wire::body(model, transcript, options);
    model.endpoint.ask(body, HeaderMap::new(), transcript, Items::default, live).await
}

fn was_refused(model: &ServedModel) -> bool {
    model.summaries_refused.load(Ordering::Relaxed)
}

fn refuses_summaries(fault: &Fault) -> bool {
    let (Fault::BadRequest { detail, .. } | Fault::Forbidden { detail }) = fault else {
        return false;
    };
    let words = detail.to_ascii_lowercase();
    words.contains("summar") && (words.contains("verified") || words.contains("support"))
}
