//! A run whose steps work in worktrees: its options, how it begins and how it is followed. `workflow run` and `parallel` share it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::Args;
use windlass_coordinator::workflows::NewRun;
use windlass_core::axes::{Axes, PermissionProfile};
use windlass_core::command::ExecutionConfig;
use windlass_core::event::Driver;
use windlass_core::id::TaskId;

use super::drive::drive;
use super::{AppContext, Start, mail};
use crate::args::values::{self, one_of};
use crate::args::{PrintOptions, SandboxArgs};
use crate::config::Flag;
use crate::failure::Failure;
use crate::show::{note, out};

/// How it runs.
#[derive(Debug, Args)]
pub struct WorktreeRunArgs {
    /// What its agents and commands may do
    #[arg(long, value_name = "PROFILE", value_parser = one_of(PermissionProfile::ALL, PermissionProfile::as_str), hide_possible_values = true)]
    pub permission_profile: Option<PermissionProfile>,
    /// Model of our own agents that name none: PROVIDER/NAME or script:FILE
    #[arg(long, value_name = "MODEL")]
    pub model: Option<String>,
    /// What it may cost, in dollars
    #[arg(long, value_name = "USD", value_parser = values::dollars, allow_hyphen_values = true)]
    pub budget: Option<f64>,
    /// Hand it to `windlass serve` and return
    #[arg(long)]
    pub detach: bool,
    /// Where commands run
    #[command(flatten)]
    pub sandbox: SandboxArgs,
    /// How to print
    #[command(flatten)]
    pub printing: PrintOptions,
}

impl WorktreeRunArgs {
    /// The program as these options configure it, and a run that has no work yet.
    pub(super) fn prepare(&self, start: Start) -> Result<(AppContext, NewRun), Failure> {
        let model = self.model.clone().map(|value| Flag {
            flag: "--model".to_owned(),
            key: "models.model".to_owned(),
            value,
        });
        let start = start.sandbox(&self.sandbox);
        let (app, project) = start.app_in(&here(), model.into_iter().collect())?;
        let config = project.config();
        let base = Axes::headless();
        let profile = self.permission_profile.or(config.policy.profile);
        let axes = Axes { permission_profile: profile.unwrap_or(base.permission_profile), ..base };
        config.permits(axes.permission_profile)?;
        let run = NewRun {
            workflow: String::new(),
            title: String::new(),
            inputs: BTreeMap::new(),
            directory: here(),
            axes,
            execution_config: ExecutionConfig { model: self.model.clone(), ..Default::default() },
            driver: if self.detach { Driver::Service } else { Driver::Foreground },
            user_id: Some(app.environment.user()),
            cost_budget: self.budget.or(config.agent.budget_usd),
            session: None,
        };
        Ok((app, run))
    }

    /// Drives it here until it ends or waits, or leaves it to the service.
    pub(super) async fn follow(&self, app: &AppContext, task: TaskId) -> Result<u8, Failure> {
        if !self.detach {
            return drive(app, task, &self.printing).await;
        }
        out(&task.to_string());
        if self.printing.shows_progress() {
            note(&format!("queued for `windlass serve`; watch it with `windlass attach {task}`"));
            mail::warn_without_service(app)?;
        }
        Ok(0)
    }
}

/// Where the person is.
pub(super) fn here() -> PathBuf {
    Path::new(".").canonicalize().unwrap_or_else(|_| PathBuf::from("."))
}
