//! A session of a person. Its axes, rules and model are a fold of its own stream (§15.21).
//!
//! Invariants:
//! - A change names the axes it wants and leaves the others as they are; only the named transitions below set
//!   several at once.
//! - A unit is one task's work up to its final reply: in a conversation, one message and what is done for it.

mod event;
mod state;

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::axes::{Axes, ModelMode, PermissionProfile, RunControl, Surface, WorkMode};
use crate::role::{Role, RoleChange};
use crate::string_enum;

pub use event::{
    Archived, Cleared, ModeRequested, ModelChosen, Rated, RuleGranted, RuleRevoked, SessionCreated,
    SessionEvent, SessionRecord, TaskBegun,
};
pub use state::{Boundary, SessionState, TemporaryChange};

string_enum! {
    /// When a change of the axes takes effect (MS-056…060).
    Scope ("scope") {
        /// At once; what runs is not changed. A reply that is being written is asked for again.
        Now = "now",
        /// When the call that runs has ended.
        AfterCurrentTool = "after-current-tool",
        /// When the current unit has ended.
        AfterCurrentUnit = "after-current-unit",
        /// When the current phase of the plan has ended; without a plan, the current unit.
        NextMilestone = "next-milestone",
        /// For the next unit alone; it is taken back when that has ended.
        ForNextUnit = "for-next-unit",
    }
}

string_enum! {
    /// What wanted a change.
    #[derive(Default)]
    Source ("source") {
        /// A person at the session.
        #[default]
        User = "user",
        /// A person who answered a question from elsewhere.
        Remote = "remote",
        Role = "role",
        /// A plan that was accepted.
        Plan = "plan",
        /// The health gate, or a repair.
        Repair = "repair",
    }
}

/// The axes that are to change; the others stay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AxesChange {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work_mode: Option<WorkMode>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_control: Option<RunControl>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub permission_profile: Option<PermissionProfile>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_mode: Option<ModelMode>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub surface: Option<Surface>,
    /// What becomes of the role. Without it a role ends where the work mode changes (C-09).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<RoleChange>,
}

impl AxesChange {
    /// What turns `from` into `to`.
    pub fn between(from: &Axes, to: &Axes) -> Self {
        fn other<T: PartialEq + Copy>(from: T, to: T) -> Option<T> {
            (from != to).then_some(to)
        }
        Self {
            work_mode: other(from.work_mode, to.work_mode),
            run_control: other(from.run_control, to.run_control),
            permission_profile: other(from.permission_profile, to.permission_profile),
            model_mode: other(from.model_mode, to.model_mode),
            surface: other(from.surface, to.surface),
            role: None,
        }
    }

    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The same, and of the axes that it does not name what `other` says.
    pub fn or(self, other: Self) -> Self {
        Self {
            work_mode: self.work_mode.or(other.work_mode),
            run_control: self.run_control.or(other.run_control),
            permission_profile: self.permission_profile.or(other.permission_profile),
            model_mode: self.model_mode.or(other.model_mode),
            surface: self.surface.or(other.surface),
            role: self.role.or(other.role),
        }
    }

    /// The same without the axes that `other` names.
    pub fn without(self, other: &Self) -> Self {
        fn unless<T, U>(own: Option<T>, other: Option<U>) -> Option<T> {
            own.filter(|_| other.is_none())
        }
        Self {
            work_mode: unless(self.work_mode, other.work_mode),
            run_control: unless(self.run_control, other.run_control),
            permission_profile: unless(self.permission_profile, other.permission_profile),
            model_mode: unless(self.model_mode, other.model_mode),
            surface: unless(self.surface, other.surface),
            role: unless(self.role, other.role),
        }
    }

    /// The axes after the change.
    pub fn apply(&self, axes: &Axes) -> Axes {
        Axes {
            work_mode: self.work_mode.unwrap_or(axes.work_mode),
            run_control: self.run_control.unwrap_or(axes.run_control),
            permission_profile: self.permission_profile.unwrap_or(axes.permission_profile),
            model_mode: self.model_mode.unwrap_or(axes.model_mode),
            surface: self.surface.unwrap_or(axes.surface),
        }
    }

    /// The role after the change.
    pub fn role_after(&self, role: Option<Role>) -> Option<Role> {
        match self.role {
            Some(RoleChange::Take(taken)) => Some(taken),
            Some(RoleChange::Leave) => None,
            None => role.filter(|_| self.work_mode.is_none()),
        }
    }

    /// The role of a sub-agent after the change: it is never looser than it was.
    pub fn tightened_role(&self, role: Option<Role>) -> Option<Role> {
        self.role.map_or(role, |change| change.tighten(role))
    }

    /// The axes of a sub-agent after the change: it is never looser than it was.
    pub fn tighten(&self, axes: &Axes) -> Axes {
        let profile = self.permission_profile.unwrap_or(axes.permission_profile);
        let is_manual = self.run_control == Some(RunControl::Manual);
        let read_only = self.work_mode.filter(|mode| mode.is_read_only());
        Axes {
            work_mode: match axes.work_mode.is_read_only() {
                true => axes.work_mode,
                false => read_only.unwrap_or(axes.work_mode),
            },
            run_control: if is_manual { RunControl::Manual } else { axes.run_control },
            permission_profile: profile.min(axes.permission_profile),
            ..*axes
        }
    }

    /// The same with what the named transitions bring: going autonomous from chat or plan lands in build
    /// (MS-029), a review needs the model for hard problems (MS-031).
    pub fn with_transitions(mut self, axes: &Axes) -> Self {
        let talks = matches!(axes.work_mode, WorkMode::Chat | WorkMode::Plan);
        if self.run_control == Some(RunControl::Autonomous) && self.work_mode.is_none() && talks {
            self.work_mode = Some(WorkMode::Build);
        }
        if self.work_mode == Some(WorkMode::Review) && self.model_mode.is_none() {
            self.model_mode = Some(ModelMode::Deep);
        }
        self
    }
}

impl fmt::Display for AxesChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = [
            self.work_mode.map(WorkMode::as_str),
            self.run_control.map(RunControl::as_str),
            self.permission_profile.map(PermissionProfile::as_str),
            self.model_mode.map(ModelMode::as_str),
            self.surface.map(Surface::as_str),
            self.role.map(|change| match change {
                RoleChange::Take(role) => role.as_str(),
                RoleChange::Leave => "no role",
            }),
        ];
        let words: Vec<_> = words.into_iter().flatten().collect();
        f.write_str(&words.join(" | "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TALK: Axes = Axes::interactive(Surface::Tui);

    /// MS-029, MS-031
    #[test]
    fn only_named_transitions_set_several_axes() {
        let autonomous =
            AxesChange { run_control: Some(RunControl::Autonomous), ..AxesChange::default() };
        let to = autonomous.with_transitions(&TALK).apply(&TALK);
        assert_eq!(to.to_string(), "build | autonomous | normal | smart");
        let research = Axes { work_mode: WorkMode::Research, ..TALK };
        assert_eq!(autonomous.with_transitions(&research), autonomous);
        let review = AxesChange { work_mode: Some(WorkMode::Review), ..AxesChange::default() };
        let to = review.with_transitions(&TALK).apply(&TALK);
        assert_eq!(to.to_string(), "review | manual | normal | deep");
        let quick = AxesChange { model_mode: Some(ModelMode::Fast), ..review };
        assert_eq!(quick.with_transitions(&TALK), quick, "what is named counts");
    }

    #[test]
    fn a_sub_agent_is_only_tightened() {
        let child = Axes { work_mode: WorkMode::Build, ..Axes::headless() };
        for &profile in PermissionProfile::ALL {
            for &mode in WorkMode::ALL {
                for &control in RunControl::ALL {
                    let wanted = AxesChange {
                        work_mode: Some(mode),
                        run_control: Some(control),
                        permission_profile: Some(profile),
                        ..AxesChange::default()
                    };
                    let after = wanted.tighten(&child);
                    assert!(after.permission_profile <= child.permission_profile);
                    assert!(after.work_mode == child.work_mode || after.work_mode.is_read_only());
                    let plan = Axes { work_mode: WorkMode::Plan, ..child };
                    assert_eq!(wanted.tighten(&plan).work_mode, WorkMode::Plan);
                }
            }
        }
    }
}
