//! Plans: manifests that load exactly what they name, the agents of their roster, the rules for prompts,
//! templates, snapshots, and the additional tools of a plan's tasks.
//!
//! Everything but the tools is data in, data out: reading files, running tasks and keeping rows is the work of
//! the coordinator.

mod problem;
mod contract;
mod document;
mod manifest;
mod read;
mod checks;
mod agents;
mod task_file;
mod references;
mod template;
mod order;
mod capabilities;
mod snapshot;
pub mod snapshot_file;
mod prompt;
pub mod tools;

pub use agents::{AgentDefinition, parse_agent};
pub use capabilities::{Capabilities, Needs, ResolvedTask, resolve};
pub use checks::check;
pub use contract::{ContractError, contract_from_value, read_contract};
pub use document::Document;
pub use manifest::{AgentRef, Phase, Plan, PlanStep, Task};
pub use order::{Dependencies, dependencies};
pub use problem::{Problem, Problems};
pub use prompt::{GUIDANCE, goal, snapshots_notice};
pub use read::{SCHEMA, read_plan};
pub use references::{Reference, check_prompts, reference};
pub use snapshot::{FailingTest, Snapshot, SnapshotError, TechDebt, file_name};
pub use task_file::parse_task_file;
pub use template::{TEMPLATES, Template, check_bookends};
