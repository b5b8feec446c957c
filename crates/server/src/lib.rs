//! The HTTP surface of `serve`: an API for programs and a page for people.
//!
//! Like every surface it holds no state of its own about tasks: it reads the coordinator's views and events, and
//! sends its commands. A request passes, in this order: the guard (is it meant for us, from where does it come, who
//! sends it, may they), the routes, and on its way out the access log.
//!
//! Invariants:
//! - Nothing but a short list of public paths is answered without a signed-in user, on loopback too.
//! - Whatever is refused is refused as problem JSON with a stable type (RFC 9457).
//! - Every wait, body, queue and number of connections has a limit.

mod server;
mod listen;
mod state;
mod about;
mod checkup;
mod queue;
mod notify;
mod skill_drafts;
mod routes;
mod client;
mod guard;
mod auth;
mod cookie_stream;
mod access_log;
mod problem;
mod extract;
mod json;
mod place;
mod events;
mod api;
mod page;

pub use about::{About, Setting, Skill, SkillList};
pub use auth::{Access, Account, LINK_SECONDS, TokenHash};
pub use client::ProxyNetwork;
pub use notify::Notify;
pub use server::{Error, Options, Server, TlsFiles, address_of, login_link};
pub use skill_drafts::{DraftFile, SkillDraft, SkillWriter};
