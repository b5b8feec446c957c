//! How a segment begins.

use windlass_core::ending::Ending;
use windlass_core::event::{AgentStart, Event, SandboxLost};
use windlass_core::guard::Thresholds;
use windlass_core::state::TaskState;
use windlass_core::status::{StatusReason, TaskStatus};
use windlass_skills::Viewer;
use windlass_store::Level;

use crate::conversation::ConversationStart;
use crate::epoch::is_stale;
use crate::journal::Journal;
use crate::memory::RecalledMemories;
use crate::prompt;
use crate::{Agent, Error};

impl Agent {
    /// Begins a segment: which tools, skills and memories the agent has.
    pub(crate) async fn start(&self, task: &mut Journal) -> Result<Option<Ending>, Error> {
        let state = task.state();
        let command = state.command();
        let tools = self.gate.specs(state);
        let first = !task.context().has_begun();
        let (shelf, viewer) = (self.parts.world.skills.current(), Viewer::of(&state.axes));
        let model = self.parts.model.name().to_string();
        // Other tools, rules or another model than in the last segment begin a new epoch, with the same messages.
        let is_new = first
            || task.context().tools() != Some(tools.as_slice())
            || state.attempts.model.as_ref().is_some_and(|last| *last != model)
            || is_stale(state);
        let prelude = is_new.then(|| self.prelude(state, tools.clone()));
        let recalled = match &self.parts.memory {
            // A follow-up has what was recalled for the task before it.
            Some(memory) if first && state.created.continues.is_none() => {
                memory.recall(command, state.created.boundary()).await
            }
            Some(_) | None => Ok(RecalledMemories::default()),
        };
        let (recalled, unable) = match recalled {
            Ok(recalled) => (recalled, None),
            Err(error) => (RecalledMemories::default(), Some(Ending::Failed(error))),
        };
        // A task that fails before it begins is begun by its next attempt.
        let begins = first && unable.is_none();
        let prelude = prelude.filter(|_| begins || !first);
        let versions = prelude.is_some().then(|| shelf.versions(viewer));
        let opening = match begins {
            true => self.opening(task, &recalled).await?,
            false => ConversationStart::default(),
        };
        let start = AgentStart {
            task_id: command.task_id,
            goal: command.goal.clone(),
            model,
            container: self.parts.settings.container.clone(),
            sandbox_gaps: self.parts.settings.sandbox_gaps.clone(),
            tools: tools.iter().map(|tool| tool.name.clone()).collect(),
            risk_policy: state.axes.permission_profile.to_string(),
            axes: Some(state.axes),
            role: state.role,
            max_iterations: self.parts.settings.round_limit(),
            timeout_ms: self.parts.settings.timeout.map(|limit| limit.as_millis() as u64),
            compaction_config: serde_json::to_value(&self.parts.settings.compaction)
                .unwrap_or_default(),
            guard: Some(self.parts.settings.guard).filter(|guard| *guard != Thresholds::default()),
            prelude,
            skills: versions.unwrap_or_default(),
            context: opening.messages,
            said: opening.said,
            followed_skills: opening.skills,
        };
        let running =
            task.status_change(TaskStatus::Running, StatusReason::User).map(Event::StatusChanged);
        let lost = lost_with_the_sandbox(state).map(Event::SandboxLost);
        let started = Event::AgentStart(Box::new(start));
        let events = running.into_iter().chain([started]).chain(lost).collect();
        task.commit(events, Level::Written).await?;
        Ok(unable)
    }

    /// What the conversation begins with: the goal, or the conversation that it continues.
    async fn opening(
        &self,
        task: &Journal,
        recalled: &RecalledMemories,
    ) -> Result<ConversationStart, Error> {
        let command = task.state().command();
        let Some(before) = &task.state().created.continues else {
            let layout = self.parts.world.workspace.layout();
            let settings = &self.parts.settings;
            let environment = match &settings.environment {
                Some(known) => Some(known.describe(task, layout, &settings.container).await),
                None => None,
            };
            let messages =
                prompt::opening(&task.state().created, recalled, layout, environment.as_deref());
            return Ok(ConversationStart { messages, ..ConversationStart::default() });
        };
        let model = self.parts.model.clone();
        let conversation = ConversationStart::read(task.store(), before.task, model)?;
        let text = prompt::follow_up(command);
        let pictures = task.state().created.pictures.clone();
        Ok(conversation.followed_by(command.task_id, &text, pictures))
    }
}

/// Background commands that the previous process did not report as ended died with it.
fn lost_with_the_sandbox(state: &TaskState) -> Option<SandboxLost> {
    let (call, command) = state.sandbox.background.first_key_value()?;
    let others = state.sandbox.background.len() - 1;
    let reason = "the process that ran it ended".to_owned();
    Some(SandboxLost { reason, message: prompt::sandbox_restarted(*call, command, others) })
}
