//! The gate, for a program: what its command line would do is journaled, and below `trusted` a person says whether it may
//! start.

use windlass_core::axes::PermissionProfile;
use windlass_core::event::{Event, RiskCheck};
use windlass_core::id::{CallId, QuestionId};
use windlass_core::policy::{Class, Decision};
use windlass_core::question::{PERMISSION_OPTIONS, Permission, Question, QuestionKind};
use windlass_core::status::StatusReason;
use windlass_shell::{Context, analyze};

use super::Program;
use crate::engine::{Trouble, Wait, question};
use crate::state::QuestionProgress;

impl Program<'_> {
    /// Whether the program may start.
    pub(super) async fn check_start(&self) -> Result<(), Trouble> {
        let name = self.runner.name();
        let check = self.risk_check().await;
        let id = QuestionId::derived(&self.journal.id().to_string(), "start");
        let asked = Question {
            kind: QuestionKind::Permission,
            options: PERMISSION_OPTIONS.map(str::to_owned).to_vec(),
            context: Some(format!("{}\n{}", self.runner.command_line(), check.reason)),
            ..question(id, format!("May `{name}` work in this worktree?"))
        };
        if self.journal.read(|_, run| run.asked(id) == QuestionProgress::No).await {
            self.journal.commit(self.now(), vec![Event::RiskCheck(check.clone())]).await?;
        }
        match check.decision {
            Decision::Allow => return Ok(()),
            Decision::Deny => {
                return Err(Trouble::Failed(format!("`{name}` may not start: {}", check.reason)));
            }
            Decision::Ask => {}
        }
        match self.journal.answer_to(id).await.map(|text| asked.permission(&text)) {
            Some(Some(Permission::Allow | Permission::AllowAll)) => Ok(()),
            Some(_) => Err(Trouble::Failed(format!("`{name}` was not allowed to start"))),
            None => {
                self.journal.ask(self.now(), asked).await?;
                self.block(StatusReason::Question).await?;
                Err(Trouble::Wait(Wait::Child(self.journal.id())))
            }
        }
    }

    /// What the command line would do, as the gate reads it, and what follows.
    async fn risk_check(&self) -> RiskCheck {
        let (task, axes, directory) = self
            .journal
            .read(|task, _| (task.id(), task.axes, task.created.workspace.clone()))
            .await;
        let command = self.runner.command_line();
        let assessment = analyze(&command, &Context::new(directory, "~")).assessment;
        let decision = match axes.permission_profile {
            _ if assessment.class == Class::Catastrophic => Decision::Deny,
            PermissionProfile::Restricted | PermissionProfile::Normal => Decision::Ask,
            PermissionProfile::Trusted | PermissionProfile::Unrestricted => Decision::Allow,
        };
        RiskCheck {
            call: CallId::derived(&task.to_string(), "start"),
            tool: self.runner.name().to_owned(),
            class: assessment.class,
            risk: assessment.risk,
            decision,
            reason: assessment.reason,
            axes,
        }
    }
}
