//! Making room: the agent saves its notes, older turns are summarized, and a new context begins.
//!
//! Invariants:
//! - Three journaled phases, each resumed where it was: notes are asked for once per cycle, what the
//!   summarizer has answered is not asked for again, and no turn is dropped before `compaction_end`.
//! - It never loses the task: what is missing in the summary is extracted from the journal.
//! - Afterwards the context is under the trigger, or the task fails with what is too large.

mod room;
mod fit;
mod record;
mod extract;
mod summarize;

use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use windlass_core::axes::RunControl;
use windlass_core::command::Outage;
use windlass_core::compaction::{Trigger, WindowLimits};
use windlass_core::ending::Ending;
use windlass_core::event::{CompactionEnd, CompactionStart, Event, Excerpt, MemoryFlush};
use windlass_core::id::CallId;
use windlass_core::layout::Own;
use windlass_core::state::{Flush, OpenCompaction, TaskState};
use windlass_model::{Model, Price};
use windlass_store::Level;
use windlass_tools::Registry;
use windlass_tools::workspace::{Purpose, Replacement, Workspace};

use crate::billing::Billing;
use crate::context::Context;
use crate::interrupt::TimeLimit;
use crate::journal::Journal;
use crate::{Error, Parts, prompt};
use room::ContextUsage;
pub(crate) use room::Room;
use summarize::{SummaryInput, SummaryOutcome};

/// The model that summarizes, and how much it can read at once.
#[derive(Clone)]
pub struct Summarizer {
    pub model: Arc<dyn Model>,
    /// Its window in tokens.
    pub window: u64,
    /// What it costs, where that is known.
    pub price: Option<Price>,
}

/// Keeps the context of one agent within its window.
pub(crate) struct Compactor {
    summarizer: Summarizer,
    limits: WindowLimits,
    /// Whether a finished plan step is a reason to compact a context that is filling up.
    at_plan_step: bool,
    /// Where dropped turns are kept.
    workspace: Arc<Workspace>,
    registry: Arc<Registry>,
    billing: Billing,
    time_limit: TimeLimit,
    /// What happens when the summarizer's server does not answer.
    outage: Outage,
}

impl Compactor {
    /// The compactor of an agent with these parts.
    pub fn new(parts: &Parts, billing: Billing) -> Self {
        Self {
            summarizer: parts.summarizer.clone(),
            limits: WindowLimits::from(&parts.settings.compaction),
            at_plan_step: parts.settings.compact_at_plan_step,
            workspace: parts.world.workspace.clone(),
            registry: parts.registry.clone(),
            billing,
            time_limit: TimeLimit(parts.settings.timeout),
            outage: parts.settings.outage,
        }
    }

    /// The limits of the context.
    pub fn limits(&self) -> &WindowLimits {
        &self.limits
    }

    /// Whether there is room to ask the model.
    pub fn room(&self, state: &TaskState, context: &Context) -> Room {
        let usage = ContextUsage {
            used: context.size().tokens(),
            floor: context.size().floor_tokens(),
            is_full_of_pictures: context.size().is_full_of_pictures(),
        };
        Room::of(&self.limits, &state.compaction, usage, self.at_plan_step)
    }

    /// Whether a full context is handed back to a person first: once, when notes are saved (C-22, PL-035).
    /// A resumed task continues with the compaction.
    pub fn should_pause(&self, state: &TaskState) -> bool {
        let attended = state.axes.run_control != RunControl::Autonomous;
        attended && state.created.depth == 0 && !state.compaction.yielded
    }

    /// Phase 1: asks the agent to save its notes (ES-158).
    pub async fn save_notes(&self, task: &mut Journal) -> Result<Option<Ending>, Error> {
        self.flush(task, None).await
    }

    async fn flush(
        &self,
        task: &mut Journal,
        excerpt: Option<Excerpt>,
    ) -> Result<Option<Ending>, Error> {
        let flush = MemoryFlush {
            number: task.state().compaction.compactions + 1,
            estimated_tokens: task.estimated_tokens(),
            message: prompt::flush(self.workspace.layout()),
            excerpt,
        };
        task.commit(vec![Event::MemoryFlush(flush)], Level::Written).await?;
        Ok(None)
    }

    /// Makes room in a context that the provider refused. Notes are saved first here too, from as much of
    /// it as will be left; when that is refused as well, older turns are dropped without notes.
    pub async fn force(&self, task: &mut Journal) -> Result<Option<Ending>, Error> {
        let cycle = &task.state().compaction;
        if !self.limits.flush_enabled || cycle.flush != Flush::NotYet || cycle.fresh {
            return self.begin(task, Trigger::ContextLength).await;
        }
        let used = task.estimated_tokens();
        let (state, trigger) = (task.state(), Trigger::ContextLength);
        match fit::fit(task.context(), state, &self.limits, trigger, used) {
            Ok(fit) => {
                let (kept_turns, shrink_bytes) = (count(fit.kept), fit.shrink);
                self.flush(task, Some(Excerpt { kept_turns, shrink_bytes })).await
            }
            Err(error) => Ok(Some(Ending::Failed(error))),
        }
    }

    /// Decides which turns are dropped and which stay, and journals it.
    pub async fn begin(
        &self,
        task: &mut Journal,
        trigger: Trigger,
    ) -> Result<Option<Ending>, Error> {
        let limits = &self.limits;
        let refused = task.state().compaction.refused_tokens;
        let tokens_before = refused.unwrap_or_else(|| task.estimated_tokens());
        let fit = match fit::fit(task.context(), task.state(), limits, trigger, tokens_before) {
            Ok(fit) => fit,
            Err(error) => return Ok(Some(Ending::Failed(error))),
        };
        let (dropped, _) = task.context().turns().partition(fit.kept);
        let input = SummaryInput::of(task.context(), &dropped, limits, &self.summarizer);
        let cycle = &task.state().compaction;
        let start = CompactionStart {
            number: cycle.compactions + 1,
            trigger,
            tokens_before,
            window_tokens: limits.window,
            summarized_turns: count(dropped.len()),
            kept_turns: count(fit.kept),
            shrink_bytes: fit.shrink,
            chunks: count(input.chunks.len()),
            summary_tokens: fit.summary_tokens,
            model: self.summarizer.model.name().to_string(),
            flushed: cycle.flush != Flush::NotYet,
        };
        task.commit(vec![Event::CompactionStart(start)], Level::Written).await?;
        Ok(None)
    }

    /// Phases 2 and 3: summarizes the older turns, keeps them in a file, and begins a new context.
    pub async fn run(
        &self,
        task: &mut Journal,
        stop: &CancellationToken,
    ) -> Result<Option<Ending>, Error> {
        let Some(OpenCompaction { start, progress }) = task.state().compaction.compacting.clone()
        else {
            return Ok(None);
        };
        let (dropped, _) = task.context().turns().partition(start.kept_turns as usize);
        let input = SummaryInput::of(task.context(), &dropped, &self.limits, &self.summarizer);
        let made = self.summarize(task, stop, &start, progress, input).await?;
        let (summary, source) = match made {
            SummaryOutcome::Made(summary, source) => (summary, source),
            SummaryOutcome::Interrupted(ending) => return Ok(ending),
        };
        let mut end = CompactionEnd {
            number: start.number,
            summary,
            source,
            tokens_before: start.tokens_before,
            tokens_after: 0,
            summarized_turns: start.summarized_turns,
            kept_turns: start.kept_turns,
            shrink_bytes: start.shrink_bytes,
            file: self.keep_dropped(task, &start),
        };
        let after = task
            .context()
            .transcript_after(&end, task.state())
            .map_or(0, |transcript| transcript.text_bytes());
        end.tokens_after = task.context().estimate().tokens(after);
        task.commit(vec![Event::CompactionEnd(end)], Level::Written).await?;
        Ok(None)
    }

    /// Writes everything that is dropped to a file that the agent can read (ES-181).
    fn keep_dropped(&self, task: &Journal, start: &CompactionStart) -> Option<String> {
        let number = start.number;
        let layout = self.workspace.layout();
        let path = format!("{}/compaction-{number}.md", layout.path(Own::Scratch));
        let (dropped, kept) = task.context().turns().partition(start.kept_turns as usize);
        let text = record::file(number, &dropped, &kept, start.shrink_bytes);
        let workspace = &self.workspace;
        let written = workspace.hash(&path).and_then(|before| {
            workspace.replace(Replacement {
                call: CallId::derived(&task.task().to_string(), &path),
                path: &path,
                before: before.as_deref(),
                content: text.as_bytes(),
                purpose: Purpose::Harness,
            })
        });
        match written {
            Ok(()) => Some(layout.in_full(&path)),
            Err(error) => {
                tracing::warn!(task_id = %task.task(), %error, "Dropped turns could not be kept");
                None
            }
        }
    }
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
