//! From configuration to the web's tools.

use std::sync::Arc;

use windlass_sandbox::network::{AddressRules, HostRules};
use windlass_tools::Tool;
use windlass_tools::web::{Provider, Reach, Search, WebFetch, WebSearch};

use crate::config::Config;
use crate::config::types::{Network, SearchProvider};

/// The web's tools that this configuration offers, and why the others are missing (O-21).
pub fn tools(config: &Config) -> (Vec<Arc<dyn Tool>>, Vec<String>) {
    if config.sandbox.network == Network::None {
        let why = "`web_fetch` and `web_search` are not offered: `sandbox.network` is `none`";
        return (Vec::new(), vec![why.to_owned()]);
    }
    let mut tools: Vec<Arc<dyn Tool>> = vec![Arc::new(WebFetch::new(reach(config)))];
    let mut missing = Vec::new();
    match search(config).map(WebSearch::new) {
        None => {
            missing.push("`web_search` is not offered: `web.search_provider` is not set".into())
        }
        Some(Ok(tool)) => tools.push(Arc::new(tool)),
        Some(Err(error)) => missing.push(format!("`web_search` is not offered: {error}")),
    }
    (tools, missing)
}

fn reach(config: &Config) -> Reach {
    let ranges = config.web.allow_addresses.iter().chain(&config.sandbox.allow_addresses);
    let addresses = AddressRules { allowed: ranges.filter_map(|one| one.parse().ok()).collect() };
    let hosts = match config.sandbox.allow_hosts.as_slice() {
        [] => HostRules::Any,
        hosts => HostRules::Only(hosts.to_vec()),
    };
    Reach::new(addresses, hosts)
}

fn search(config: &Config) -> Option<Search> {
    let provider = match config.web.search_provider? {
        SearchProvider::Searxng => Provider::Searxng,
        SearchProvider::Brave => Provider::Brave,
        SearchProvider::Tavily => Provider::Tavily,
    };
    let base = config.web.search_url.as_ref().map(|base| base.expose().clone());
    Some(Search { provider, base, key: config.web.search_api_key.clone() })
}
