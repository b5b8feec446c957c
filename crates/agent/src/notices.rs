//! What the agent is notified of between two steps: ended commands, changed skills, its own repetitions.

use windlass_core::ending::Ending;
use windlass_core::error::{ErrorDetails, ErrorType};
use windlass_core::event::{CommandExited, DoomLoopDetected, Event};
use windlass_core::guard::Intervention;
use windlass_core::id::InjectionId;
use windlass_core::injection::Injection;
use windlass_core::state::Next;
use windlass_skills::{Viewer, change_notice};
use windlass_store::Level;
use windlass_tools::ToolContext;
use windlass_tools::shell::BackgroundExit;

use crate::journal::Journal;
use crate::{Error, prompt};

/// Reports to an agent what happened around it.
pub(crate) struct Notices {
    pub(crate) world: ToolContext,
}

impl Notices {
    /// Reports which of its background commands have ended.
    pub(crate) async fn report_exits(&self, task: &mut Journal) -> Result<(), Error> {
        if task.state().last_reply.final_text.is_some() {
            return Ok(());
        }
        let events: Vec<_> = self.world.shell.exited().into_iter().map(exit_event).collect();
        if events.is_empty() { Ok(()) } else { task.commit(events, Level::Written).await.map(drop) }
    }

    /// Reports what changed around it: skills, and what other parts have put into the news.
    pub(crate) async fn report_news(&self, task: &mut Journal) -> Result<(), Error> {
        let state = task.state();
        if state.next() != Next::AskModel {
            return Ok(());
        }
        let viewer = Viewer::of(&state.axes);
        let skills = change_notice(&state.skills.announced, &self.world.skills.current(), viewer);
        let others = self.world.notices.take().into_iter().map(|text| (text, None));
        let all = others.chain(skills.map(|(text, versions)| (text, Some(versions))));
        let event = |(text, versions): (String, Option<_>)| {
            let id = InjectionId::new(task.now());
            Event::InjectionReceived(Injection::notice(id, text, versions.as_ref()))
        };
        let events: Vec<_> = all.map(event).collect();
        if events.is_empty() { Ok(()) } else { task.commit(events, Level::Written).await.map(drop) }
    }

    /// Warns an agent that repeats itself, and fails one that does not stop (ES-264…269).
    pub(crate) async fn guard(&self, task: &mut Journal) -> Result<Option<Ending>, Error> {
        if !task.state().last_reply.open_calls.is_empty() {
            return Ok(None);
        }
        match task.state().guard.verdict() {
            None => Ok(None),
            Some(Intervention::Nudge { pattern, number, message }) => {
                let message = message.to_owned();
                let detected = DoomLoopDetected { pattern, intervention: number, message };
                task.commit(vec![Event::DoomLoopDetected(detected)], Level::Written).await?;
                Ok(None)
            }
            Some(Intervention::Fail { pattern }) => {
                let message = "the agent kept repeating itself after three interventions";
                let error = ErrorDetails::new(ErrorType::DoomLoop, message);
                Ok(Some(Ending::Failed(error.with_diagnostic(pattern))))
            }
        }
    }
}

/// Where a background command has ended, as the agent and its person read it.
pub(crate) fn exit_event(BackgroundExit { call, command, exit }: BackgroundExit) -> Event {
    let message = prompt::command_exited(call, &command, &exit.to_string());
    Event::CommandExited(CommandExited { call, command, exit, message })
}
