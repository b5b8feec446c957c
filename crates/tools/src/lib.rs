//! What an agent can do: the registry, one file per tool, and the checks around each call.
//!
//! A call goes through four steps, and only the third changes anything: its arguments are checked
//! against the schema, the tool prepares (reads the facts that policy and recovery need), it acts,
//! and its output is cut to size. Deciding and journaling happen between the steps, in `agent`.

mod tool;
pub mod registry;
mod schema;
mod builtin;
pub mod shell;
pub mod web;
pub mod browser;
pub mod mcp;
pub mod output;
pub mod symbols;
pub mod named_files;
mod pictures;
pub mod workspace;

pub use builtin::{Ledger, Signature, SpawnArguments, UserQuestion};
pub use registry::Registry;
pub use shell::Shell;
pub use tool::{
    Act, Bind, Call, Category, Executor, LiveOutput, Notices, Prepared, Subject, TaskFacts, Tool,
    ToolContext,
};
