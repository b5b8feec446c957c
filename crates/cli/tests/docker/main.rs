//! The program as a user meets it, with a container for each task: the suite of the local sandbox as far as
//! a task runs in it, and what only containers have. `scripts/test` provides the engine; without it every
//! test here fails.

#![expect(clippy::unwrap_used, reason = "a test that cannot continue should stop")]

#[path = "../it/program.rs"]
mod program;
#[path = "../it/spine.rs"]
mod spine;
#[path = "../it/owners.rs"]
mod owners;
#[path = "../it/long_agents.rs"]
mod long_agents;
#[path = "../it/long_budgets.rs"]
mod long_budgets;
#[path = "../it/long_compaction.rs"]
mod long_compaction;
#[path = "../it/long_summaries.rs"]
mod long_summaries;
#[path = "../it/long_memory.rs"]
mod long_memory;
#[path = "../it/skills.rs"]
mod skills;
#[path = "../it/gate.rs"]
mod gate;
#[path = "../it/instructions.rs"]
mod instructions;
#[path = "../it/log_lines.rs"]
mod log_lines;
#[path = "../service/world.rs"]
#[expect(dead_code, reason = "shared with the tests of the service, which use more of it")]
mod world;
mod containers;
mod service;

/// Where the tests that other binaries share run their tasks.
const SANDBOX: program::Tested = program::Tested::Docker;
