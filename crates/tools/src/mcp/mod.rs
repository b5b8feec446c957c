//! MCP servers: other people's tools behind our interface and our gate.
//!
//! Invariants:
//! - Nothing of a server is believed: its words are pinned by hash and a change is reported, its annotations
//!   count only where a person marked it trusted, its output is bounded and made harmless.
//! - A server that a project brings is started, and started again, only while the approval of it holds.
//! - A server runs in the task's sandbox unless the user's configuration says otherwise, starts when it
//!   is first needed, and ends with the task.
//! - A call with effects is sent at most once, also when the server dies under it.

mod approval;
mod definition;
mod presets;
mod name;
mod pin;
mod bound;
mod trouble;
mod post;
mod http;
mod connection;
mod server;
mod tool;

use std::path::PathBuf;
use std::sync::Arc;

use futures_util::future::join_all;
use windlass_sandbox::Sandbox;

pub use approval::ApprovalCheck;
pub use definition::{
    Definition, DefinitionError, Transport, merge_layers, parse_file, parse_server,
};
pub use name::{shown_name, wire_name};
pub use pin::{Listing, ToolChange, ToolInfo};
pub use presets::{PRESETS, Preset};
pub use server::{CallError, Effects, Server};
pub use tool::McpTool;

use crate::tool::{Notices, Tool};

/// How many tools of one server are offered; more would crowd out the conversation.
pub const MAX_TOOLS: usize = 128;

/// What servers need from us.
#[derive(Clone)]
pub struct McpHost {
    /// Where servers that speak over stdio run.
    pub sandbox: Arc<dyn Sandbox>,
    /// Where what they said of themselves is kept.
    pub pins: PathBuf,
    /// Where the agent reads that they changed.
    pub notices: Notices,
}

/// The servers of one task.
pub struct Servers {
    servers: Vec<Arc<Server>>,
}

impl Servers {
    /// Servers by their definitions; nothing starts yet.
    pub fn new(definitions: Vec<Definition>, host: &McpHost) -> Self {
        let server = |definition| Arc::new(Server::new(definition, host.clone()));
        Self { servers: definitions.into_iter().map(server).collect() }
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Server>> {
        self.servers.iter()
    }

    /// Every tool they offer, and why a server offers none. One whose words are pinned is not started
    /// for this.
    pub async fn tools(&self) -> (Vec<Arc<dyn Tool>>, Vec<String>) {
        let listings = join_all(self.servers.iter().map(|server| server.listing())).await;
        let (mut tools, mut missing): (Vec<Arc<dyn Tool>>, _) = (Vec::new(), Vec::new());
        for (server, listing) in self.servers.iter().zip(listings) {
            match listing {
                Ok(listing) => {
                    let offered = listing.tools.into_iter().take(MAX_TOOLS);
                    tools.extend(offered.map(|info| -> Arc<dyn Tool> {
                        Arc::new(McpTool::new(Arc::clone(server), info))
                    }));
                }
                Err(error) => {
                    missing
                        .push(format!("MCP server `{}` is not available: {error}", server.name()));
                }
            }
        }
        (tools, missing)
    }

    /// Ends those that run.
    pub async fn close(&self) {
        join_all(self.servers.iter().map(|server| server.close())).await;
    }
}
