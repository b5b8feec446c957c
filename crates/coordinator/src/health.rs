//! The health of an installation: what `doctor` checks, what `doctor fix` repairs without a model, and what is checked
//! before each dispatch.
//!
//! Invariants:
//! - A check changes nothing (MS-034).
//! - A fix asks no model and removes nothing that might be the only copy (MS-035).
//! - The checks before a dispatch cost a few system calls and one row.

mod check;
mod dispatch;
mod storage;

use std::path::Path;

pub use check::{Advice, Check, CheckStatus, FixReport, RepairPolicy};
pub(crate) use dispatch::Admission;

use crate::Coordinator;

/// What an agent is asked to repair, with the report of the checks.
pub fn report(problems: &[Check]) -> String {
    let problem = |check: &Check| {
        let more = check.details.iter().chain(&check.hint);
        let more: String = more.map(|line| format!("\n  - {line}")).collect();
        format!("- {}: {}{more}", check.name, check.message)
    };
    let lines: Vec<_> = problems.iter().map(problem).collect();
    format!("{}\n\n{}", include_str!("prompts/heal.md").trim_end(), lines.join("\n"))
}

/// The health of an installation.
#[derive(Clone, Copy)]
pub struct Health<'a> {
    pub(crate) coordinator: &'a Coordinator,
}

impl Health<'_> {
    /// Looks at everything that work in a directory needs.
    pub async fn check(self, directory: &Path) -> Vec<Check> {
        let mut checks = self.storage_checks().await;
        checks.extend(self.coordinator.agents.checks(directory).await);
        checks
    }

    /// Repairs what can be repaired without a model, and says what was done.
    pub async fn fix(self, directory: &Path) -> Vec<FixReport> {
        let mut fixed = self.fix_storage().await;
        fixed.extend(self.coordinator.agents.fix(directory).await);
        fixed
    }
}
