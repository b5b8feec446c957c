//! A session's state: the fold of its events, and what the end of a unit does to it.

use jiff::Timestamp;

use super::event::{ModeRequested, Rated, SessionCreated, SessionEvent};
use super::{AxesChange, Scope};
use crate::axes::Axes;
use crate::event::ModeChanged;
use crate::id::{ChangeId, TaskId};
use crate::policy::allow::AllowRule;
use crate::role::{Role, RoleChange};

/// Everything that is known of a session by its own stream.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionState {
    /// How it began.
    pub created: SessionCreated,
    pub created_at: Timestamp,
    /// The axes in force; later tasks start with them.
    pub axes: Axes,
    /// The role that its agents work in.
    pub role: Option<Role>,
    /// The axes before the role.
    pub before_role: Option<Axes>,
    /// Changes that wait for their scope, oldest first.
    pub pending: Vec<ModeRequested>,
    /// A change that is for one unit, and in force.
    pub borrowed: Option<TemporaryChange>,
    /// The model that a person has named; it wins over the model mode (MS-073).
    pub model: Option<String>,
    /// What people have allowed for the session.
    pub rules: Vec<AllowRule>,
    /// The task that the next message continues.
    pub conversation: Option<TaskId>,
    pub ratings: Vec<Rated>,
    /// Whether lists leave it out.
    pub is_archived: bool,
}

/// What the end of a unit is the end of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Boundary {
    /// The unit alone: its phase of a plan has others that have not ended.
    Unit,
    /// The unit, and with it a phase of a plan or work that belongs to none.
    Milestone,
}

/// A change that is for one unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TemporaryChange {
    pub change: ChangeId,
    /// The axes that it set and that nobody has changed since, as they were before it.
    pub back: AxesChange,
}

impl SessionState {
    /// A session that began so.
    pub fn begin(at: Timestamp, created: SessionCreated) -> Self {
        Self {
            axes: created.axes,
            role: None,
            before_role: None,
            created,
            created_at: at,
            pending: Vec::new(),
            borrowed: None,
            model: None,
            rules: Vec::new(),
            conversation: None,
            ratings: Vec::new(),
            is_archived: false,
        }
    }

    /// Changes the state by one event. A second creation only adds what the first did not say.
    pub fn apply(&mut self, event: &SessionEvent) {
        match event {
            SessionEvent::SessionCreated(_) => {}
            SessionEvent::ModeRequested(request) => self.pending.push(request.clone()),
            SessionEvent::ModeChanged(changed) => self.on_change(changed),
            SessionEvent::ModelChosen(chosen) => self.model.clone_from(&chosen.model),
            SessionEvent::RuleGranted(granted) => {
                if !self.rules.contains(&granted.rule) {
                    self.rules.push(granted.rule.clone());
                }
            }
            SessionEvent::RuleRevoked(revoked) => self.rules.retain(|rule| *rule != revoked.rule),
            SessionEvent::TaskBegun(begun) => self.conversation = Some(begun.task),
            SessionEvent::Rated(rated) => self.ratings.push(rated.clone()),
            SessionEvent::Cleared(_) => self.conversation = None,
            SessionEvent::Archived(archived) => self.is_archived = archived.is_archived,
        }
    }

    fn on_change(&mut self, changed: &ModeChanged) {
        self.axes = changed.to;
        self.role = changed.role;
        self.before_role = self.role.and(self.before_role.or(Some(changed.from)));
        self.pending.retain(|request| Some(request.change) != changed.change);
        let before = self.borrowed.take();
        self.borrowed = match (changed.change, changed.scope) {
            _ if changed.reverts => None,
            (Some(change), Scope::ForNextUnit) => {
                // Of two such changes of one axis, the first knows what was there before.
                let earlier = before.map(|before| before.back).unwrap_or_default();
                let back = earlier.or(AxesChange::between(&changed.to, &changed.from));
                Some(TemporaryChange { change, back })
            }
            // What is changed for good is not taken back, also where it was the same already.
            (None, _)
            | (
                Some(_),
                Scope::Now
                | Scope::AfterCurrentTool
                | Scope::AfterCurrentUnit
                | Scope::NextMilestone,
            ) => before.map(|before| TemporaryChange {
                back: before.back.without(&changed.named_axes()),
                ..before
            }),
        };
        self.borrowed.take_if(|borrowed| borrowed.back.is_empty());
    }

    /// What a person wants who switches to a role: its preset, over the axes that there were before any role.
    pub fn wanted_for(&self, role: Role) -> AxesChange {
        let before = self.before_role.unwrap_or(self.axes);
        let base =
            Axes { run_control: self.axes.run_control, surface: self.axes.surface, ..before };
        let wanted = AxesChange::between(&self.axes, &role.axes(base));
        AxesChange { role: Some(RoleChange::Take(role)), ..wanted }
    }

    /// The event that carries a change out now.
    pub fn carry_out(&self, request: &ModeRequested, task: Option<TaskId>) -> ModeChanged {
        ModeChanged {
            from: self.axes,
            to: request.wanted.apply(&self.axes),
            role: request.wanted.role_after(self.role),
            wanted: request.wanted,
            reason: request.reason.clone(),
            scope: request.scope,
            source: request.source,
            by: request.by.clone(),
            change: Some(request.change),
            reverts: false,
            task,
        }
    }

    /// What the end of a unit does: a change for that unit is taken back, what waited for the end takes
    /// effect, and what is for the next unit alone begins. What waits for a milestone waits on where the unit
    /// is not the last of its phase (MS-059).
    pub fn at_unit_end(&self, task: TaskId, boundary: Boundary) -> Vec<SessionEvent> {
        let mut state = self.clone();
        let mut events = Vec::new();
        let mut record = |state: &mut Self, changed: ModeChanged| {
            let event = SessionEvent::ModeChanged(changed);
            state.apply(&event);
            events.push(event);
        };
        if let Some(borrowed) = state.borrowed.clone() {
            let back = state.reversal(&borrowed, task);
            record(&mut state, back);
        }
        let waits_on = |scope| scope == Scope::NextMilestone && boundary == Boundary::Unit;
        let (later, due): (Vec<_>, Vec<_>) = state
            .pending
            .clone()
            .into_iter()
            .filter(|request| !waits_on(request.scope))
            .partition(|request| request.scope == Scope::ForNextUnit);
        for request in due.iter().chain(&later) {
            let changed = state.carry_out(request, Some(task));
            record(&mut state, changed);
        }
        events
    }

    /// Takes back what a change for one unit has set, where nobody has changed it since.
    fn reversal(&self, borrowed: &TemporaryChange, task: TaskId) -> ModeChanged {
        let back = borrowed.back;
        ModeChanged {
            from: self.axes,
            to: back.apply(&self.axes),
            role: back.role_after(self.role),
            wanted: back,
            reason: "the unit that it was for has ended".to_owned(),
            scope: Scope::ForNextUnit,
            source: super::Source::User,
            by: String::new(),
            change: Some(borrowed.change),
            reverts: true,
            task: Some(task),
        }
    }

    /// What the standstill of all work does: what waited for the end of a step takes effect, because no step will
    /// end before somebody answers or resumes.
    pub fn at_standstill(&self, task: Option<TaskId>) -> Vec<SessionEvent> {
        let mut state = self.clone();
        let mut events = Vec::new();
        for request in &self.pending {
            if matches!(request.scope, Scope::Now | Scope::AfterCurrentTool) {
                let event = SessionEvent::ModeChanged(state.carry_out(request, task));
                state.apply(&event);
                events.push(event);
            }
        }
        events
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::axes::{ModelMode, PermissionProfile, RunControl, Surface, WorkMode};
    use crate::session::Source;

    fn state() -> SessionState {
        let axes = Axes::interactive(Surface::Tui);
        let created = SessionCreated {
            axes,
            user_id: None,
            workspace: None,
            interactive: true,
            added: Vec::new(),
            cost_budget: None,
        };
        SessionState::begin(Timestamp::UNIX_EPOCH, created)
    }

    fn request(name: &str, wanted: AxesChange, scope: Scope) -> ModeRequested {
        ModeRequested {
            change: ChangeId::derived("test", name),
            wanted,
            reason: name.to_owned(),
            scope,
            source: Source::User,
            by: "ada".to_owned(),
        }
    }

    fn deep() -> AxesChange {
        AxesChange { model_mode: Some(ModelMode::Deep), ..AxesChange::default() }
    }

    fn end_unit(state: &mut SessionState) -> Vec<String> {
        end(state, Boundary::Milestone)
    }

    fn end(state: &mut SessionState, boundary: Boundary) -> Vec<String> {
        let events = state.at_unit_end(TaskId::derived("test", "task"), boundary);
        let mut lines = Vec::new();
        for event in &events {
            state.apply(event);
            if let SessionEvent::ModeChanged(changed) = event {
                lines.push(format!("{} {}", changed.scope, changed.to));
            }
        }
        lines
    }

    /// MS-058, MS-059, MS-090
    #[test]
    fn the_end_of_a_unit_carries_out_what_waited_for_it() {
        let mut state = state();
        let review = AxesChange { work_mode: Some(WorkMode::Review), ..AxesChange::default() };
        for request in [
            request("one", deep(), Scope::ForNextUnit),
            request("two", review, Scope::AfterCurrentUnit),
        ] {
            state.apply(&SessionEvent::ModeRequested(request));
        }
        assert_eq!(
            end_unit(&mut state),
            [
                "after-current-unit review | manual | normal | smart",
                "for-next-unit review | manual | normal | deep"
            ]
        );
        assert_eq!(end_unit(&mut state), ["for-next-unit review | manual | normal | smart"]);
        assert!(end_unit(&mut state).is_empty() && state.borrowed.is_none());
    }

    /// MS-059: a milestone is the end of a phase, not of each of its tasks.
    #[test]
    fn a_change_for_the_next_milestone_waits_for_the_whole_phase() {
        let mut state = state();
        let one = request("one", deep(), Scope::NextMilestone);
        state.apply(&SessionEvent::ModeRequested(one));
        assert!(end(&mut state, Boundary::Unit).is_empty());
        assert_eq!(
            end(&mut state, Boundary::Milestone),
            ["next-milestone chat | manual | normal | deep"]
        );
    }

    /// C-09, AX-082: a role is a preset that another role replaces, and that a change of the work mode ends.
    #[test]
    fn a_role_lasts_until_the_work_mode_is_changed_by_hand() {
        let mut state = state();
        let order = |state: &mut SessionState, name: &str, wanted| {
            let changed = state.carry_out(&request(name, wanted, Scope::Now), None);
            state.apply(&SessionEvent::ModeChanged(changed));
            (state.role, state.axes.to_string())
        };
        let wanted = state.wanted_for(Role::Architect);
        let (role, axes) = order(&mut state, "one", wanted);
        assert_eq!((role, &*axes), (Some(Role::Architect), "plan | manual | restricted | smart"));
        let wanted = state.wanted_for(Role::Executor);
        let (role, axes) = order(&mut state, "two", wanted);
        assert_eq!((role, &*axes), (Some(Role::Executor), "build | manual | normal | smart"));
        let (role, _) = order(&mut state, "three", deep());
        assert_eq!(role, Some(Role::Executor), "another axis leaves the role");
        let chat = AxesChange { work_mode: Some(WorkMode::Chat), ..AxesChange::default() };
        let (role, _) = order(&mut state, "four", chat);
        assert_eq!((role, state.before_role), (None, None));
    }

    /// An end of unit takes back what was borrowed for it, and nothing that was changed for good meanwhile: not between
    /// two borrowings, and not where the change for good named the value that was there already.
    #[test]
    fn what_is_changed_for_good_between_two_borrowings_stays() {
        let profile =
            |profile| AxesChange { permission_profile: Some(profile), ..AxesChange::default() };
        let control =
            AxesChange { run_control: Some(RunControl::Autonomous), ..AxesChange::default() };
        let carry = |state: &mut SessionState, name: &str, wanted, scope| {
            let changed = state.carry_out(&request(name, wanted, scope), None);
            state.apply(&SessionEvent::ModeChanged(changed));
        };
        let mut one = state();
        carry(&mut one, "borrow", deep(), Scope::ForNextUnit);
        carry(&mut one, "keep", profile(PermissionProfile::Trusted), Scope::Now);
        carry(&mut one, "borrow more", control, Scope::ForNextUnit);
        end_unit(&mut one);
        assert_eq!(one.axes.to_string(), "chat | manual | trusted | smart");
        let mut two = state();
        carry(&mut two, "borrow", profile(PermissionProfile::Trusted), Scope::ForNextUnit);
        carry(&mut two, "keep", profile(PermissionProfile::Trusted), Scope::Now);
        assert!(two.borrowed.is_none());
        assert!(end_unit(&mut two).is_empty());
        assert_eq!(two.axes.to_string(), "chat | manual | trusted | smart");
    }

    /// What a person has changed since is not taken back with the rest.
    #[test]
    fn a_later_change_of_the_same_axis_outlives_the_unit() {
        let mut state = state();
        let one = state.carry_out(&request("one", deep(), Scope::ForNextUnit), None);
        state.apply(&SessionEvent::ModeChanged(one));
        let fast = AxesChange { model_mode: Some(ModelMode::Fast), ..AxesChange::default() };
        let two = state.carry_out(&request("two", fast, Scope::Now), None);
        state.apply(&SessionEvent::ModeChanged(two));
        end_unit(&mut state);
        assert_eq!(state.axes.model_mode, ModelMode::Fast);
    }
}
