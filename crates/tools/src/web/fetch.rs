//! `web_fetch`: one page as text (ES-192).

use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use windlass_core::outcome::Outcome;
use windlass_core::policy::{Class, Risk};

use super::client::Fetcher;
use super::page::{self, Part};
use super::{Reach, looking};
use crate::schema;
use crate::tool::{Call, Category, Prepared, Tool, World};

/// Fetches a page.
#[derive(Debug)]
pub struct WebFetch {
    fetcher: Fetcher,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The whole address, with http or https.
    #[schemars(length(min = 1))]
    url: String,
    /// Give the whole page instead of its main content. Default: false.
    full: Option<bool>,
}

impl WebFetch {
    /// A tool that fetches what these rules let it reach.
    pub fn new(reach: Reach) -> Self {
        Self { fetcher: Fetcher::new(reach) }
    }
}

impl Tool for WebFetch {
    fn name(&self) -> &str {
        "web_fetch"
    }

    fn description(&self) -> &str {
        include_str!("descriptions/web_fetch.md").trim_ascii_end()
    }

    fn parameters(&self) -> Value {
        schema::of::<Arguments>()
    }

    fn category(&self) -> Category {
        Category::Information
    }

    fn least(&self) -> (Class, Risk) {
        (Class::Read, Risk::Medium)
    }

    fn prepare(&self, _world: &World, call: Call) -> BoxFuture<'_, Result<Prepared, Outcome>> {
        let fetcher = self.fetcher.clone();
        let reads =
            |given: &Arguments| format!("reads {}", windlass_core::text::one_line(&given.url, 200));
        Box::pin(looking("web_fetch", call, reads, |given| fetch(fetcher, given)))
    }
}

async fn fetch(fetcher: Fetcher, given: Arguments) -> Outcome {
    let part = if given.full == Some(true) { Part::Full } else { Part::Main };
    let fetched = match fetcher.fetch(given.url.trim()).await {
        Ok(fetched) => fetched,
        Err(error) => return Outcome::error(format!("Error: {error}.")),
    };
    match tokio::task::spawn_blocking(move || page::text(fetched, part)).await {
        Ok(Ok(text)) => Outcome::ok(text),
        Ok(Err(why)) => Outcome::error(format!("Error: {why}.")),
        Err(_) => Outcome::error("Error: the page could not be read."),
    }
}
