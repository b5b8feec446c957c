//! A new epoch within a segment: the axes or the model changed while the agent works.
//!
//! Invariant: no request is sent with a prompt that was made for other rules than the gate's.

use windlass_core::axes::Axes;
use windlass_core::ending::Ending;
use windlass_core::event::{Event, PromptChanged};
use windlass_core::message::{Prelude, ToolSpec};
use windlass_core::state::TaskState;
use windlass_core::status::StatusReason;
use windlass_skills::Viewer;
use windlass_store::Level;

use crate::commitments::Commitments;
use crate::journal::Journal;
use crate::parts::ModelWish;
use crate::prompt::{self, PromptInput};
use crate::{Agent, Error};

/// Whether the prompt tells other rules than those in force.
pub(crate) fn is_stale(state: &TaskState) -> bool {
    let rules = |axes: &Axes| (axes.work_mode, axes.run_control, axes.permission_profile);
    let Some(made_for) = &state.prompt_axes else { return false };
    rules(made_for) != rules(&state.axes) || state.prompt_role != state.role
}

impl Agent {
    /// Has the agent ask the model, and follow the rules, that its task wants now.
    pub(crate) async fn renew_epoch(
        &mut self,
        task: &mut Journal,
    ) -> Result<Option<Ending>, Error> {
        let has_other_model = match self.renew_model(task) {
            Ok(changed) => changed,
            Err(ending) => return Ok(Some(*ending)),
        };
        let state = task.state();
        let has_other_rules = is_stale(state);
        // What a tool is does not change within a segment; which ones are shown does.
        let has_other_tools = !self.gate.shows_exactly(state, task.context().tools());
        if !(has_other_model || has_other_rules || has_other_tools) {
            return Ok(None);
        }
        let tools = self.gate.specs(state);
        let message = match state.prompt_axes.filter(|_| has_other_rules) {
            Some(before) => prompt::mode_changed(&before, &state.axes, state.role),
            None => String::new(),
        };
        let viewer = Viewer::of(&state.axes);
        let changed = PromptChanged {
            model: self.parts.model.name().to_string(),
            tools: tools.iter().map(|tool| tool.name.clone()).collect(),
            risk_policy: state.axes.permission_profile.to_string(),
            axes: state.axes,
            role: state.role,
            prelude: Some(self.prelude(state, tools)),
            skills: self.parts.world.skills.current().versions(viewer),
            message,
        };
        task.commit(vec![Event::PromptChanged(Box::new(changed))], Level::Written).await?;
        Ok(None)
    }

    /// Has the agent ask another model, where its task wants one; whether it does. One that cannot be asked
    /// parks the task: a person has to name another.
    pub(crate) fn renew_model(&mut self, task: &mut Journal) -> Result<bool, Box<Ending>> {
        let wish = ModelWish::of(task.state());
        let Some(models) = self.parts.models.clone().filter(|models| models.made_for != wish)
        else {
            return Ok(false);
        };
        let found = models.source.open(task.state()).map_err(|error| {
            let detail = Some(format!("its model cannot be used: {}", error.message));
            Box::new(Ending::Paused { reason: StatusReason::User, detail })
        })?;
        let is_other = found.model.name() != self.parts.model.name();
        task.set_model(found.model.clone());
        let tree = self.delegation.tree().clone();
        *self = Self::new(self.parts.clone().with_model(found, wish), tree);
        Ok(is_other)
    }

    /// The system prompt and the tools, for the axes in force.
    pub(crate) fn prelude(&self, state: &TaskState, tools: Vec<ToolSpec>) -> Prelude {
        let viewer = Viewer::of(&state.axes);
        let skills = self.parts.world.skills.current().listing(viewer);
        let ledger = &self.parts.world.ledger.store;
        let about = PromptInput {
            tools: &tools,
            axes: state.axes,
            role: state.role,
            commitments: &Commitments::new(ledger, state).for_prompt(),
            layout: self.parts.world.workspace.layout(),
            skills: &skills,
            instructions: self.parts.settings.instructions.as_deref(),
            can_delegate: self.gate.shows_spawning(state),
            plan: state.created.plan.as_deref(),
        };
        let system = match state.created.depth {
            0 => prompt::system(&about),
            _ => prompt::minimal(&about),
        };
        Prelude { system, tools }
    }
}
