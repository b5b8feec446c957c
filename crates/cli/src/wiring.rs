//! Puts the parts together: which store, which models, what an agent gets to work with.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use jiff::Timestamp;
use tokio::runtime::Runtime;
use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;
use windlass_agent::{Agent, Preview, Settings};
use windlass_coordinator::{Coordinator, Equip, Equipment};
use windlass_core::error::{ErrorDetails, ErrorType};
use windlass_core::state::TaskState;
use windlass_model::{ModelName, Models};
use windlass_skills::Skills;
use windlass_store::Store;
use windlass_tools::workspace::Workspace;
use windlass_tools::{Registry, World};

use crate::failure::Failure;

/// The runtime that everything runs on.
pub fn runtime() -> Result<Runtime, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    Ok(runtime.context("the async runtime does not start")?)
}

/// Sends log lines to stderr, those that `RUST_LOG` asks for.
pub fn log_to_stderr(format: &str) {
    use tracing_subscriber::EnvFilter;
    let Ok(filter) = EnvFilter::try_from_default_env() else { return };
    let lines = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    // A second subscriber in one process (a test) is no reason to stop.
    let _ = match format {
        "json" => lines.json().try_init(),
        _ => lines.try_init(),
    };
}
