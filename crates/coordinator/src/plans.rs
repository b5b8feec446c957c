//! Plans: read, activated, worked through; and [`Notes`], their issues, decisions and snapshots.
//!
//! Invariants:
//! - What is activated is what was read: the manifest and what each task may use are kept with the row, and a run
//!   goes by them. A file that changed since has to be activated again.
//! - A task of a run has the id that its session and its name give it, so a run that is begun again makes no task
//!   twice.
//! - Nothing of a project's file sets a model, a profile or MCP servers before a person has approved it (§15.13).

mod files;
mod activation;
mod notes;
mod snapshots;
mod run;
mod settle;
mod status;
mod blocks;

use std::path::{Path, PathBuf};

use windlass_core::id::PlanId;

use crate::{Coordinator, Error};

pub use activation::{Activation, NewActivation};
pub use blocks::{decision_blocks, issue_blocks, plan_blocks, snapshot_blocks};
pub use files::PlanFile;
pub use notes::{DecisionDraft, IssueDraft, Notes};
pub use run::PlanRun;
pub use snapshots::SnapshotFile;
pub use status::{PhaseStatus, PlanState, PlanStatus, PlanTaskStatus};
// What surfaces show of a plan, so that they need not know its crate.
pub use windlass_plan::{
    Capabilities, GUIDANCE, Plan, Problem, Problems, SCHEMA, Snapshot, TEMPLATES, Template,
    check_bookends, check_prompts,
};
pub use windlass_store::{Decision, Issue, PlanRow, PlanningFilter};

/// Where the name of a plan is used and none is active.
pub const NO_PLAN: &str = "unplanned";

/// Plans and what belongs to them.
#[derive(Clone, Copy)]
pub struct Plans<'a> {
    pub(crate) coordinator: &'a Coordinator,
}

impl Plans<'_> {
    /// The directory that plans of work in a directory belong to: the repository's root, else itself.
    pub fn project(self, directory: &Path) -> PathBuf {
        let site = self.coordinator.agents.site(directory);
        let whole = directory.canonicalize().unwrap_or_else(|_| directory.to_owned());
        site.boundary.map_or(whole, PathBuf::from)
    }

    /// The active plan of a directory's project.
    pub fn active(self, directory: &Path) -> Result<Option<PlanRow>, Error> {
        let project = self.project(directory).display().to_string();
        Ok(self.coordinator.store.planning().active(&project)?)
    }

    /// The same, where one is needed.
    pub fn need_active(self, directory: &Path) -> Result<PlanRow, Error> {
        let none = || Error::NoPlan { directory: directory.to_owned(), named: None };
        self.active(directory)?.ok_or_else(none)
    }

    /// A plan that was activated, by its id.
    pub fn get(self, plan: PlanId) -> Result<Option<PlanRow>, Error> {
        Ok(self.coordinator.store.planning().get(plan)?)
    }

    /// Every plan that was activated, the newest first.
    pub fn list(self) -> Result<Vec<PlanRow>, Error> {
        Ok(self.coordinator.store.planning().all()?)
    }
}
