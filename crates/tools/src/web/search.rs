//! `web_search`: titles, addresses and excerpts from the configured provider (ES-191, O-21).

use std::time::Duration;

use reqwest::{Client, RequestBuilder, redirect};
use schemars::JsonSchema;
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use serde_json::{Value, json};
use url::Url;
use windlass_core::outcome::Outcome;
use windlass_core::tool_name;

use super::client::{AGENT, install_tls, unreachable};
use super::{Scratch, Web, WebTool};
use crate::output::neutralize;

/// How long a search may take.
const TIMEOUT: Duration = Duration::from_secs(20);
/// The pause before a temporary error is tried once more (ES-207).
const PAUSE: Duration = Duration::from_millis(500);
/// How many results a call gets by default.
const DEFAULT_COUNT: usize = 8;
/// The most results that a call can ask for.
const MAX_COUNT: usize = 20;
/// The largest answer that is read.
const MAX_BYTES: usize = 4 << 20;
/// How long an excerpt may be.
const MAX_EXCERPT_CHARS: usize = 500;

/// Who answers searches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Provider {
    /// A SearXNG instance, with its JSON format enabled.
    Searxng,
    /// Brave's search API.
    Brave,
    /// Tavily's search API.
    Tavily,
}

/// A provider, where it is, and its key.
#[derive(Clone, Debug)]
pub struct Search {
    /// Which provider answers.
    pub provider: Provider,
    /// Its address; the provider's public one if unset.
    pub base: Option<Url>,
    pub key: Option<SecretString>,
}

/// Searches the web.
#[derive(Clone, Debug)]
pub struct WebSearch {
    client: Client,
    search: Search,
}

#[derive(Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// What to look for.
    #[schemars(length(min = 1))]
    query: String,
    /// How many results. Default 8, at most 20.
    #[schemars(range(min = 1))]
    count: Option<usize>,
}

struct Hit {
    title: String,
    url: String,
    excerpt: String,
}

impl WebSearch {
    /// A tool that asks this provider. The person named it, so it may be anywhere, also on this machine.
    pub fn new(search: Search) -> Result<Web<Self>, reqwest::Error> {
        install_tls();
        let client = Client::builder()
            .timeout(TIMEOUT)
            .redirect(redirect::Policy::none())
            .user_agent(AGENT)
            .build()?;
        Ok(Web(Self { client, search }))
    }

    fn request(&self, query: &str, count: usize) -> Result<RequestBuilder, String> {
        let Search { provider, base, key } = &self.search;
        let at = |standard: &str, path: &str| -> Result<Url, String> {
            let base = match base {
                Some(base) => base.as_str(),
                None => standard,
            };
            let whole = format!("{}{path}", base.trim_end_matches('/'));
            Url::parse(&whole).map_err(|_| "`web.search_url` is not an address".to_owned())
        };
        let key = key.as_ref().map(ExposeSecret::expose_secret).unwrap_or_default();
        Ok(match provider {
            Provider::Searxng => {
                let mut url = at("http://localhost:8080", "/search")?;
                url.query_pairs_mut().append_pair("q", query).append_pair("format", "json");
                self.client.get(url)
            }
            Provider::Brave => {
                let mut url = at("https://api.search.brave.com", "/res/v1/web/search")?;
                let count = count.to_string();
                url.query_pairs_mut().append_pair("q", query).append_pair("count", &count);
                self.client.get(url).header("X-Subscription-Token", key)
            }
            Provider::Tavily => {
                let url = at("https://api.tavily.com", "/search")?;
                let body = json!({ "query": query, "max_results": count });
                self.client.post(url).bearer_auth(key).json(&body)
            }
        })
    }

    /// Runs one search. A temporary error is tried once more.
    async fn ask(&self, query: &str, count: usize) -> Result<Vec<Hit>, String> {
        match self.once(query, count).await {
            Err(Fault::Passing(_)) => {}
            other => return other.map_err(Fault::words),
        }
        tokio::time::sleep(PAUSE).await;
        self.once(query, count).await.map_err(Fault::words)
    }

    async fn once(&self, query: &str, count: usize) -> Result<Vec<Hit>, Fault> {
        let request = self.request(query, count).map_err(Fault::Lasting)?;
        let mut response = request
            .send()
            .await
            .map_err(|error| Fault::Passing(unreachable(&error).to_string()))?;
        let status = response.status();
        if !status.is_success() {
            let words = format!("the search provider answered {status}");
            let passing = status.is_server_error() || status.as_u16() == 429;
            return Err(if passing { Fault::Passing(words) } else { Fault::Lasting(words) });
        }
        let mut bytes = Vec::new();
        let broken = |error: reqwest::Error| Fault::Passing(unreachable(&error).to_string());
        while let Some(chunk) = response.chunk().await.map_err(broken)? {
            if bytes.len() + chunk.len() > MAX_BYTES {
                return Err(Fault::Lasting("the provider's answer is too large".to_owned()));
            }
            bytes.extend_from_slice(&chunk);
        }
        let answer: Value = serde_json::from_slice(&bytes).map_err(|_| {
            let hint = match self.search.provider {
                Provider::Searxng => "; enable the `json` format in its settings",
                Provider::Brave | Provider::Tavily => "",
            };
            Fault::Lasting(format!("the provider's answer is not JSON{hint}"))
        })?;
        Ok(self.hits(&answer).take(count).collect())
    }

    fn hits<'a>(&self, answer: &'a Value) -> impl Iterator<Item = Hit> + use<'a> {
        let (list, excerpt) = match self.search.provider {
            Provider::Searxng | Provider::Tavily => (&answer["results"], "content"),
            Provider::Brave => (&answer["web"]["results"], "description"),
        };
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        list.as_array().into_iter().flatten().map(move |hit| Hit {
            title: text(&hit["title"]),
            url: text(&hit["url"]),
            excerpt: text(&hit[excerpt]),
        })
    }
}

enum Fault {
    Passing(String),
    Lasting(String),
}

impl Fault {
    fn words(self) -> String {
        match self {
            Self::Passing(words) | Self::Lasting(words) => words,
        }
    }
}

impl WebTool for WebSearch {
    type Arguments = Arguments;
    const NAME: &'static str = tool_name::WEB_SEARCH;
    const DESCRIPTION: &'static str = include_str!("descriptions/web_search.md");

    fn reason(arguments: &Arguments) -> String {
        let query = windlass_core::text::one_line(&arguments.query, 200);
        format!("searches the web for \"{query}\"")
    }

    async fn run(self, arguments: Arguments, _scratch: Scratch) -> Outcome {
        let count = arguments.count.unwrap_or(DEFAULT_COUNT).min(MAX_COUNT);
        match self.ask(&arguments.query, count).await {
            Err(why) => Outcome::failure(format!("{why}.")),
            Ok(hits) if hits.is_empty() => Outcome::ok("Nothing was found."),
            Ok(hits) => {
                let shown = hits.iter().enumerate().map(|(index, hit)| {
                    let line = |text: &str| {
                        let words: Vec<_> = text.split_whitespace().collect();
                        windlass_core::text::one_line(&words.join(" "), MAX_EXCERPT_CHARS)
                    };
                    let (title, url, excerpt) =
                        (line(&hit.title), line(&hit.url), line(&hit.excerpt));
                    format!("{}. {title}\n   {url}\n   {excerpt}\n", index + 1)
                });
                Outcome::ok(neutralize(&shown.collect::<Vec<_>>().join("")))
            }
        }
    }
}
