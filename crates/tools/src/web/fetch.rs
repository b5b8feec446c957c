//! `web_fetch`: one page as text (ES-192).

use schemars::JsonSchema;
use serde::Deserialize;
use windlass_core::outcome::Outcome;

use super::client::Fetcher;
use super::page::{self, Part};
use super::{Reach, Web, WebTool};

/// Fetches a page.
#[derive(Clone, Debug)]
pub struct WebFetch {
    fetcher: Fetcher,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// The whole address, with http or https.
    #[schemars(length(min = 1))]
    url: String,
    /// Give the whole page instead of its main content. Default: false.
    full: Option<bool>,
}

impl WebFetch {
    /// A tool that fetches what these rules let it reach.
    pub fn new(reach: Reach) -> Web<Self> {
        Web(Self { fetcher: Fetcher::new(reach) })
    }
}

impl WebTool for WebFetch {
    type Arguments = Arguments;
    const NAME: &'static str = "web_fetch";
    const DESCRIPTION: &'static str = include_str!("descriptions/web_fetch.md");

    fn reason(given: &Arguments) -> String {
        format!("reads {}", windlass_core::text::one_line(&given.url, 200))
    }

    async fn run(self, given: Arguments) -> Outcome {
        let part = if given.full == Some(true) { Part::Full } else { Part::Main };
        let fetched = match self.fetcher.fetch(given.url.trim()).await {
            Ok(fetched) => fetched,
            Err(error) => return Outcome::failure(format!("{error}.")),
        };
        match tokio::task::spawn_blocking(move || page::text(fetched, part)).await {
            Ok(Ok(text)) => Outcome::ok(text),
            Ok(Err(why)) => Outcome::failure(format!("{why}.")),
            Err(_) => Outcome::failure("the page could not be read."),
        }
    }
}
