//! Changing a session's axes and its model: at once, or when their scope has come.

use serde::{Deserialize, Serialize};
use windlass_core::axes::{Axes, PermissionProfile};
use windlass_core::id::{ChangeId, InjectionId, TaskId};
use windlass_core::injection::{Control, DEFAULT_MODEL, Injection};
use windlass_core::role::{Role, RoleChange};
use windlass_core::session::{
    AxesChange, ModeRequested, ModelChosen, Scope, SessionEvent, SessionState, Source,
};
use windlass_store::{Filter, SessionAppend, announcement};

use super::{Activity, Session};
use crate::Error;

/// A change that somebody wants.
#[derive(Clone, Debug)]
pub struct AxesOrder {
    pub wanted: AxesChange,
    pub scope: Scope,
    /// Why, in words.
    pub reason: String,
    pub source: Source,
    /// Who wants it.
    pub by: String,
    /// The sender's own id, so that a repeated delivery has no further effect.
    pub id: Option<ChangeId>,
}

/// What became of a change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AxesChangeOutcome {
    pub change: ChangeId,
    pub from: Axes,
    /// The axes once it has taken effect.
    pub to: Axes,
    pub scope: Scope,
    pub source: Source,
    /// Whether it waits for its scope.
    pub waits: bool,
    /// The role once it has taken effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    /// The role that ends with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_role: Option<Role>,
}

/// When a change takes effect.
#[derive(Clone, Copy, PartialEq, Eq)]
enum EffectTime {
    Now,
    /// At the next boundary of the task that works.
    AtBoundary,
    /// At the end of a unit.
    AtUnitEnd,
}

const fn due(scope: Scope, activity: Activity) -> EffectTime {
    match (scope, activity) {
        (_, Activity::Idle) => EffectTime::Now,
        (Scope::Now | Scope::AfterCurrentTool, Activity::InUnit) => EffectTime::Now,
        (Scope::Now | Scope::AfterCurrentTool, Activity::Working) => EffectTime::AtBoundary,
        (Scope::AfterCurrentUnit | Scope::NextMilestone | Scope::ForNextUnit, _) => {
            EffectTime::AtUnitEnd
        }
    }
}

impl Session<'_> {
    /// Changes the axes. A call that runs keeps those it was allowed by.
    pub async fn change(self, order: AxesOrder) -> Result<AxesChangeOutcome, Error> {
        self.change_with(order, Vec::new()).await
    }

    /// The same, with mail that is accepted in the same transaction, or refused with the change.
    pub(crate) async fn change_with(
        self,
        order: AxesOrder,
        mail: Vec<(TaskId, Injection)>,
    ) -> Result<AxesChangeOutcome, Error> {
        if let Some(profile) = order.wanted.permission_profile {
            self.check_profile(profile)?;
        }
        if let Some(RoleChange::Take(role)) = order.wanted.role {
            self.coordinator.commitments().check_role_in(self.id, role)?;
        }
        let change = order.id.unwrap_or_else(|| ChangeId::new(self.now()));
        let changed = self.update(|state| self.decide_change(state, &order, change, &mail)).await?;
        if due(changed.scope, Activity::InUnit) == EffectTime::Now && changed.waits {
            return self.settle(changed).await;
        }
        Ok(changed)
    }

    /// The work may have stopped while the change was on its way; then nothing is left to wait for.
    async fn settle(self, changed: AxesChangeOutcome) -> Result<AxesChangeOutcome, Error> {
        self.update(|state| {
            let is_still = self.activity()? != Activity::Working;
            let events = if is_still { state.at_standstill(None) } else { Vec::new() };
            let left = match is_still {
                true => false,
                false => state.pending.iter().any(|one| one.change == changed.change),
            };
            let changed = AxesChangeOutcome { waits: left, ..changed.clone() };
            Ok((SessionAppend { events, mail: Vec::new() }, changed))
        })
        .await
    }

    fn decide_change(
        self,
        state: &SessionState,
        order: &AxesOrder,
        change: ChangeId,
        mail: &[(TaskId, Injection)],
    ) -> Result<(SessionAppend, AxesChangeOutcome), Error> {
        let AxesOrder { scope, source, by, .. } = order;
        let wanted = match order.wanted.role {
            Some(RoleChange::Take(role)) => state.wanted_for(role),
            Some(RoleChange::Leave) | None => order.wanted.with_transitions(&state.axes),
        };
        let role = wanted.role_after(state.role);
        let request = ModeRequested {
            change,
            wanted,
            reason: order.reason.clone(),
            scope: *scope,
            source: *source,
            by: by.clone(),
        };
        let due = due(*scope, self.activity()?);
        let changed = AxesChangeOutcome {
            change,
            from: state.axes,
            to: wanted.apply(&state.axes),
            scope: *scope,
            source: *source,
            waits: due != EffectTime::Now,
            role,
            left_role: state.role.filter(|_| role.is_none()),
        };
        let mut append = SessionAppend { events: Vec::new(), mail: mail.to_vec() };
        if order.id.is_some() && self.is_applied(change)? {
            append.mail.clear();
            return Ok((append, changed));
        }
        match due {
            EffectTime::Now => {
                let event = state.carry_out(&request, None);
                for task in self.receivers()? {
                    append.mail.push((task, announcement(task, "now", &event)));
                }
                append.events.push(SessionEvent::ModeChanged(event));
            }
            EffectTime::AtBoundary => {
                for task in self.receivers()? {
                    append.mail.push((task, order_for(task, &request)));
                }
                append.events.push(SessionEvent::ModeRequested(request));
            }
            EffectTime::AtUnitEnd => append.events.push(SessionEvent::ModeRequested(request)),
        }
        Ok((append, changed))
    }

    /// Names a model, or leaves the choice to the model mode; returns the name in full.
    pub async fn choose_model(
        self,
        model: Option<&str>,
        by: &str,
    ) -> Result<Option<String>, Error> {
        let directory = self.state()?.created.workspace;
        let model = model.map(|name| self.usable_model(directory.as_deref(), name)).transpose()?;
        self.update(|state| {
            if state.model == model {
                return Ok((SessionAppend::default(), ()));
            }
            let chosen = ModelChosen { model: model.clone(), by: by.to_owned() };
            let name = model.clone().unwrap_or_else(|| DEFAULT_MODEL.to_owned());
            let mut mail = Vec::new();
            for task in self.live_tasks()? {
                let control = Control::UseModel { model: name.clone() };
                let id = InjectionId::new(self.now());
                mail.push((task.id, Injection::control(id, control).from(by)));
            }
            Ok((SessionAppend { events: vec![SessionEvent::ModelChosen(chosen)], mail }, ()))
        })
        .await?;
        Ok(model)
    }

    /// The full name of a model that a person names, where tasks of this directory can use it.
    pub(super) fn usable_model(self, directory: Option<&str>, name: &str) -> Result<String, Error> {
        let checked = self.coordinator.agents.check_model(directory, name);
        checked.map_err(|details| Error::Unusable { details: Box::new(details) })
    }

    /// `unrestricted` needs the user's opt-in (MS-065).
    pub(crate) fn check_profile(self, profile: PermissionProfile) -> Result<(), Error> {
        let needs_opt_in = profile == PermissionProfile::Unrestricted;
        match needs_opt_in && !self.coordinator.limits.unrestricted {
            true => Err(Error::Unrestricted),
            false => Ok(()),
        }
    }

    /// The live tasks of the session, sub-agents too: those are tightened, and never loosened.
    fn receivers(self) -> Result<Vec<TaskId>, Error> {
        let live = Filter { session: Some(self.id), live: true, ..Filter::default() };
        Ok(self.coordinator.store.tasks().list(&live)?.into_iter().map(|task| task.id).collect())
    }

    fn is_applied(self, change: ChangeId) -> Result<bool, Error> {
        let journal = self.coordinator.store.sessions().journal(self.id)?;
        Ok(journal.iter().any(|record| match &record.event {
            SessionEvent::ModeChanged(changed) => changed.change == Some(change),
            SessionEvent::ModeRequested(request) => request.change == change,
            _ => false,
        }))
    }
}

fn order_for(task: TaskId, request: &ModeRequested) -> Injection {
    let id = InjectionId::derived(&request.change.to_string(), &task.to_string());
    let control = Control::ChangeAxes {
        change: request.change,
        wanted: request.wanted,
        scope: request.scope,
        source: request.source,
        reason: request.reason.clone(),
    };
    Injection::control(id, control).from(&request.by)
}
