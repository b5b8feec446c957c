//! The web: pages as text, and searching.
//!
//! Invariants:
//! - Every address is judged after resolution, and the judged address is the one connected to; each
//!   redirect is judged again. A proxy of the environment is not used: it would resolve by itself.
//! - Every answer is bounded in size, time and redirects.

mod client;
mod page;
mod pdf;
mod fetch;
mod search;

use std::net::IpAddr;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde::de::DeserializeOwned;
use windlass_core::outcome::{Ending, Outcome, Recovery};
use windlass_core::policy::{Assessment, Class, Risk};
use windlass_sandbox::network::{AddressRules, HostRules};

use crate::tool::{Call, Prepared};
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

/// A call that only looks: its arguments read, what it does said for the gate, ended with the task.
async fn looking<A, F>(
    name: &str,
    mut call: Call,
    reason: impl FnOnce(&A) -> String,
    act: impl FnOnce(A) -> F + Send + 'static,
) -> Result<Prepared, Outcome>
where
    A: DeserializeOwned + Send + 'static,
    F: Future<Output = Outcome> + Send + 'static,
{
    let given: A = serde_json::from_value(call.arguments.take()).map_err(|error| {
        Outcome::error(format!("The arguments of `{name}` do not fit: {error}"))
    })?;
    let assessment = Assessment::of(Class::Read, reason(&given)).at_least(Risk::Medium);
    let act = Box::new(move || -> BoxFuture<'static, Outcome> {
        Box::pin(async move {
            let stopped = Outcome::ended(Ending::Cancelled, "Stopped with the task.");
            call.stop.run_until_cancelled(act(given)).await.unwrap_or(stopped)
        })
    });
    Ok(Prepared::new(assessment, Recovery::Rerun, act))
}

async fn system_lookup(host: String) -> std::io::Result<Vec<IpAddr>> {
    let found = tokio::net::lookup_host((host.as_str(), 0)).await?;
    Ok(found.map(|address| address.ip()).collect())
}
