//! How a segment begins.

use windlass_core::ending::Ending;
use windlass_core::event::{AgentStart, Event, SandboxLost};
use windlass_core::guard::Thresholds;
use windlass_core::message::Prelude;
use windlass_core::state::TaskState;
use windlass_core::status::{StatusReason, TaskStatus};
use windlass_skills::Viewer;
use windlass_store::Level;

use crate::conversation::Conversation;
use crate::journal::Journal;
use crate::memory::RecalledMemories;
use crate::prompt::{self, PromptInput};
use crate::{Agent, Error};

impl Agent {
    /// Begins a segment: which tools, skills and memories the agent has.
    pub(crate) async fn start(&self, task: &mut Journal) -> Result<Option<Ending>, Error> {
        let state = task.state();
        let command = state.command();
        let tools = self.gate.specs(state);
        let first = !task.context().has_begun();
        let (shelf, viewer) = (self.parts.world.skills.current(), Viewer::of(&state.axes));
        let skills = shelf.listing(viewer);
        let model = self.parts.model.name().to_string();
        // Other tools or another model than in the last segment begin a new epoch, with the same messages.
        let is_new = first
            || task.context().tools() != Some(tools.as_slice())
            || state.attempts.model.as_ref().is_some_and(|last| *last != model);
        let prelude = is_new.then(|| {
            let about = PromptInput {
                tools: &tools,
                axes: state.axes,
                layout: self.parts.world.workspace.layout(),
                skills: &skills,
                instructions: self.parts.settings.instructions.as_deref(),
                can_delegate: self.gate.shows_spawning(state),
            };
            let system = match state.created.parent {
                None => prompt::system(&about),
                Some(_) => prompt::minimal(&about),
            };
            Prelude { system, tools: tools.clone() }
        });
        let recalled = match &self.parts.memory {
            // A follow-up has what was recalled for the task before it.
            Some(memory) if first && state.created.continues.is_none() => {
                memory.recall(command).await
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
            true => self.opening(task, &recalled)?,
            false => Conversation::default(),
        };
        let start = AgentStart {
            task_id: command.task_id,
            goal: command.goal.clone(),
            model,
            container: self.parts.settings.container.clone(),
            footing: self.parts.settings.footing.clone(),
            tools: tools.iter().map(|tool| tool.name.clone()).collect(),
            risk_policy: state.axes.permission_profile.to_string(),
            max_iterations: self.parts.settings.max_iterations,
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
    fn opening(&self, task: &Journal, recalled: &RecalledMemories) -> Result<Conversation, Error> {
        let command = task.state().command();
        let Some(before) = &task.state().created.continues else {
            let layout = self.parts.world.workspace.layout();
            let messages = prompt::opening(command, recalled, layout);
            return Ok(Conversation { messages, ..Conversation::default() });
        };
        let model = self.parts.model.clone();
        let conversation = Conversation::read(task.store(), before.task, model)?;
        let text = prompt::follow_up(command);
        Ok(conversation.followed_by(command.task_id, &text))
    }
}

/// Background commands end with the segment that started them; a later one reports it to the agent.
fn lost_with_the_sandbox(state: &TaskState) -> Option<SandboxLost> {
    let (call, command) = state.sandbox.background.first_key_value()?;
    let others = state.sandbox.background.len() - 1;
    let reason = "the process that ran it ended".to_owned();
    Some(SandboxLost { reason, message: prompt::sandbox_restarted(*call, command, others) })
}
