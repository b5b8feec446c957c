//! The web: pages as text, and searching.
//!
//! Invariants:
//! - Every address is judged after resolution, and the judged address is the one connected to; each
//!   redirect is judged again. A proxy of the environment is not used: it would resolve names without our checks.
//! - Every answer is bounded in size, time and redirects.

mod client;
mod page;
mod fetch;
mod search;

use std::net::IpAddr;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;
use windlass_core::id::CallId;
use windlass_core::outcome::{CallEnding, Outcome, Recovery};
use windlass_core::policy::{Assessment, Class, Risk};
use windlass_sandbox::network::{AddressRules, HostRules};

use crate::schema;
use crate::tool::{Call, Category, Prepared, Tool, ToolContext};
use crate::workspace::Workspace;
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
    /// Which hosts by name.
    pub hosts: HostRules,
    /// How names become addresses.
    pub lookup: Lookup,
}

impl Reach {
    /// Resolves names by the system's resolver.
    pub fn new(addresses: AddressRules, hosts: HostRules) -> Self {
        Self { addresses, hosts, lookup: Arc::new(|host| Box::pin(system_lookup(host))) }
    }
}

/// What one of the web's tools consists of. All of them only read.
trait WebTool: Clone + Send + Sync + 'static {
    type Arguments: DeserializeOwned + JsonSchema + Send + 'static;

    const NAME: &'static str;
    const DESCRIPTION: &'static str;

    /// What a call does, for the gate.
    fn reason(arguments: &Self::Arguments) -> String;

    fn run(
        self,
        arguments: Self::Arguments,
        scratch: Scratch,
    ) -> impl Future<Output = Outcome> + Send;
}

/// Where a call may leave a file for the agent.
struct Scratch {
    workspace: Arc<Workspace>,
    call: CallId,
}

/// One of the web's tools.
#[derive(Debug)]
pub struct Web<T>(T);

impl<T: WebTool> Tool for Web<T> {
    fn name(&self) -> &str {
        T::NAME
    }

    fn description(&self) -> &str {
        T::DESCRIPTION.trim_ascii_end()
    }

    fn parameters(&self) -> Value {
        schema::of::<T::Arguments>()
    }

    fn category(&self) -> Category {
        Category::Information
    }

    fn min_class(&self) -> (Class, Risk) {
        (Class::Read, Risk::Medium)
    }

    fn prepare(
        &self,
        context: &ToolContext,
        call: Call,
    ) -> BoxFuture<'_, Result<Prepared, Outcome>> {
        let scratch = Scratch { workspace: Arc::clone(&context.workspace), call: call.id };
        Box::pin(std::future::ready(prepare_call(self.0.clone(), call, scratch)))
    }
}

/// A call, its arguments read, what it does said for the gate, ended with the task.
fn prepare_call<T: WebTool>(
    tool: T,
    mut call: Call,
    scratch: Scratch,
) -> Result<Prepared, Outcome> {
    let arguments = serde_json::from_value(call.arguments.take()).map_err(|error| {
        Outcome::error(format!("The arguments of `{}` do not fit: {error}", T::NAME))
    })?;
    let assessment = Assessment::of(Class::Read, T::reason(&arguments)).at_least(Risk::Medium);
    let act = Box::new(move || -> BoxFuture<'static, Outcome> {
        Box::pin(async move {
            let stopped = Outcome::ended(CallEnding::Cancelled, "Stopped with the task.");
            call.stop.run_until_cancelled(tool.run(arguments, scratch)).await.unwrap_or(stopped)
        })
    });
    Ok(Prepared::new(assessment, Recovery::Rerun, act))
}

async fn system_lookup(host: String) -> std::io::Result<Vec<IpAddr>> {
    let found = tokio::net::lookup_host((host.as_str(), 0)).await?;
    Ok(found.map(|address| address.ip()).collect())
}
