//! The named transitions: the only places where one decision sets several axes at once (`docs/design.md` §8).

use super::{Axes, ModelMode, PermissionProfile, RunControl, WorkMode};
use crate::question::Acceptance;

impl Axes {
    /// The axes after a change of work mode. Reviewing takes the deep model (MS-031); nothing else is implied.
    #[must_use]
    pub const fn in_mode(self, work_mode: WorkMode) -> Self {
        let model_mode = match work_mode {
            WorkMode::Review => ModelMode::Deep,
            WorkMode::Chat
            | WorkMode::Plan
            | WorkMode::Build
            | WorkMode::Repair
            | WorkMode::Research => self.model_mode,
        };
        Self { work_mode, model_mode, ..self }
    }

    /// The axes in which an accepted plan is carried out: the profile is the one that was chosen (MS-024).
    #[must_use]
    pub const fn for_accepted_plan(self, acceptance: Acceptance) -> Self {
        let run_control = match acceptance {
            Acceptance::Supervised => self.run_control,
            Acceptance::Autonomous => RunControl::Autonomous,
        };
        Self { work_mode: WorkMode::Build, run_control, model_mode: ModelMode::Smart, ..self }
    }

    /// The axes in which something broken is repaired: with no more permission than `normal` (MS-039).
    #[must_use]
    pub fn for_repair(self) -> Self {
        Self {
            work_mode: WorkMode::Repair,
            permission_profile: self.permission_profile.min(PermissionProfile::Normal),
            model_mode: ModelMode::Smart,
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::axes::Surface;

    fn planning() -> Axes {
        Axes {
            work_mode: WorkMode::Plan,
            model_mode: ModelMode::Deep,
            ..Axes::interactive(Surface::Tui)
        }
    }

    /// MS-024
    #[test]
    fn an_accepted_plan_is_built_as_chosen_by_the_smart_model() {
        let accepted = |how| planning().for_accepted_plan(how).to_string();
        assert_eq!(accepted(Acceptance::Autonomous), "build | autonomous | normal | smart");
        assert_eq!(accepted(Acceptance::Supervised), "build | manual | normal | smart");
    }

    /// MS-031
    #[test]
    fn reviewing_takes_the_deep_model_and_other_modes_take_what_there_is() {
        let headless = Axes::headless();
        for &mode in WorkMode::ALL {
            let deep = headless.in_mode(mode).model_mode == ModelMode::Deep;
            assert_eq!(deep, mode == WorkMode::Review, "{mode}");
        }
    }

    /// MS-039
    #[test]
    fn repairing_is_never_done_with_more_than_the_normal_profile() {
        assert_eq!(
            Axes::headless().for_repair().to_string(),
            "repair | autonomous | normal | smart"
        );
        let restricted =
            Axes { permission_profile: PermissionProfile::Restricted, ..Axes::headless() };
        assert_eq!(restricted.for_repair().permission_profile, PermissionProfile::Restricted);
    }
}
