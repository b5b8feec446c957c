//! `/doctor` and `/repair`: the installation of the session's directory, looked at and repaired.

use std::path::PathBuf;

use windlass_core::axes::{PermissionProfile, RunControl, WorkMode};
use windlass_core::session::{AxesChange, Scope, Source};

use super::run::Invocation;
use super::{Block, Effect, Reach, Reply};
use crate::health::{Check, FixReport, report};
use crate::{AxesOrder, Error};

impl Invocation<'_> {
    /// `/doctor` looks and changes nothing, `/doctor fix` repairs without a model, `/doctor heal` has an agent repair
    /// the rest (MS-033…036).
    pub(super) async fn doctor(self) -> Result<Reply, Error> {
        let (health, directory) = (self.session.coordinator.health(), self.directory()?);
        match self.rest {
            "" => Ok(self.reply(vec![checks(&health.check(&directory).await)])),
            "fix" => {
                let fixed = health.fix(&directory).await;
                let left = problems(health.check(&directory).await);
                let mut blocks = vec![fixes(&fixed)];
                blocks.extend((!left.is_empty()).then(|| checks(&left)));
                Ok(self.reply(blocks))
            }
            "heal" => self.heal(false).await,
            other => Err(self.usage_error(format!("`{other}` is not `fix` or `heal`"))),
        }
    }

    /// Repairs what is wrong: without a model first, then by an agent in mode `repair`, with no more permission than
    /// `normal` (MS-037, MS-038, MS-209).
    pub(super) async fn repair(self) -> Result<Reply, Error> {
        match self.rest {
            "" => self.heal(false).await,
            "--autonomous" => self.heal(true).await,
            other => Err(self.usage_error(format!("`{other}` is not `--autonomous`"))),
        }
    }

    async fn heal(self, is_autonomous: bool) -> Result<Reply, Error> {
        let (health, directory) = (self.session.coordinator.health(), self.directory()?);
        let fixed = health.fix(&directory).await;
        let left = problems(health.check(&directory).await);
        let changed = self.enter_repair(is_autonomous).await?;
        let mut blocks = vec![fixes(&fixed)];
        if left.is_empty() {
            blocks.push(Block::Words { text: "Nothing is wrong: clean.".to_owned() });
            return Ok(self.reply(blocks).with(changed));
        }
        blocks.push(checks(&left));
        let mut reply = self.work(&report(&left)).await?;
        blocks.append(&mut reply.blocks);
        Ok(Reply { blocks, ..reply })
    }

    async fn enter_repair(self, is_autonomous: bool) -> Result<Effect, Error> {
        let axes = self.session.state()?.axes;
        let wanted = AxesChange {
            work_mode: Some(WorkMode::Repair),
            run_control: is_autonomous.then_some(RunControl::Autonomous),
            permission_profile: Some(axes.permission_profile.min(PermissionProfile::Normal)),
            ..AxesChange::default()
        };
        let order = AxesOrder {
            wanted,
            scope: Scope::Now,
            reason: format!("/{}", self.input.line.trim().trim_start_matches('/')),
            source: Source::User,
            by: self.input.by.clone(),
            id: None,
        };
        Ok(Effect::Axes { axes: self.session.change(order).await?.to })
    }

    /// Where its tasks work; without one, here.
    pub(super) fn directory(self) -> Result<PathBuf, Error> {
        let workspace = self.session.state()?.created.workspace;
        Ok(workspace.map_or_else(|| PathBuf::from("."), PathBuf::from))
    }

    /// The same, where a command works with files. Only an admin chooses directories of the machine, and where the
    /// process happens to be is one of those.
    pub(super) fn own_directory(self) -> Result<PathBuf, Error> {
        match (self.session.state()?.created.workspace, self.input.reach) {
            (None, Reach::Own) => {
                let what = "the session has no directory, and another would be chosen";
                Err(Error::NotAllowed { what: what.to_owned() })
            }
            (None, Reach::Everything) => self.directory(),
            (Some(own), _) => Ok(PathBuf::from(own)),
        }
    }
}

fn problems(mut checks: Vec<Check>) -> Vec<Check> {
    checks.retain(Check::is_problem);
    checks
}

/// A row for each check: what is wrong, and what would fix it.
fn checks(checks: &[Check]) -> Block {
    let row = |check: &Check| {
        let more = check.details.iter().take(3).map(|detail| format!("; {detail}"));
        let words = std::iter::once(check.message.clone()).chain(more).collect::<String>();
        let fix = check.fix.clone().or_else(|| check.hint.clone()).filter(|_| check.is_problem());
        vec![check.status.to_string(), check.name.to_owned(), words, fix.unwrap_or_default()]
    };
    Block::table(&["STATUS", "CHECK", "FOUND", "FIX"], &[], checks.iter().map(row).collect())
}

fn fixes(fixed: &[FixReport]) -> Block {
    if fixed.is_empty() {
        return Block::Words { text: "Nothing could be fixed without a model.".to_owned() };
    }
    let field = |one: &FixReport| match &one.outcome {
        Ok(done) => (one.name, done.clone()),
        Err(why) => (one.name, format!("failed: {why}")),
    };
    Block::fields(fixed.iter().map(field))
}
