//! The web: pages as text, and searching.
//!
//! Invariants:
//! - Every address is judged after resolution, and the judged address is the one connected to; each
//!   redirect is judged again. A proxy of the environment is not used: it would resolve by itself.
//! - Every answer is bounded in size, time and redirects.

mod client;
mod page;
mod fetch;
mod search;

use std::net::IpAddr;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use windlass_sandbox::network::{AddressRules, HostRules};

pub(crate) use client::install_tls;
pub use fetch::WebFetch;
pub use search::{Provider, Search, WebSearch};

/// Turns a host's name into addresses.
pub type Lookup =
    Arc<dyn Fn(String) -> BoxFuture<'static, std::io::Result<Vec<IpAddr>>> + Send + Sync>;

/// What may be fetched.
#[derive(Clone)]
pub struct Reach {
    /// Which addresses besides the public ones.
    pub addresses: AddressRules,
    /// Which hosts.
    pub hosts: HostRules,
    /// How names become addresses.
    pub lookup: Lookup,
}

impl Reach {
    /// By the system's resolver.
    pub fn new(addresses: AddressRules, hosts: HostRules) -> Self {
        Self { addresses, hosts, lookup: Arc::new(|host| Box::pin(system_lookup(host))) }
    }
}

async fn system_lookup(host: String) -> std::io::Result<Vec<IpAddr>> {
    let found = tokio::net::lookup_host((host.as_str(), 0)).await?;
    Ok(found.map(|address| address.ip()).collect())
}
