//! Making room: the agent saves its notes, older turns are summarized, the context is made anew.
//!
//! Invariants:
//! - Three journaled phases, each resumed where it was: notes are asked for once per cycle, what the
//!   summarizer has answered is not asked for again, and no turn goes before `compaction_end`.
//! - It never loses the task: what the summarizer does not give is drawn from the journal.
//! - Afterwards the context is under the trigger, or the task fails with what is too large.

mod fit;
mod record;
mod extract;
mod summarize;

use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use windlass_core::axes::RunControl;
use windlass_core::compaction::{Limits, Trigger};
use windlass_core::compaction_state::{Compacting, Flush};
use windlass_core::event::{CompactionEnd, CompactionStart, Event, Excerpt, MemoryFlush};
use windlass_core::id::CallId;
use windlass_model::{Model, Price};
use windlass_store::Level;
use windlass_tools::workspace::{Purpose, Replacement, SCRATCH_DIRECTORY};

use crate::ending::Ending;
use crate::journal::Journal;
use crate::prompt;
use crate::{Agent, Error};
use summarize::{Material, Summarized};

/// Who summarizes, and how much it can read at once.
#[derive(Clone)]
pub struct Summarizer {
    /// The model.
    pub model: Arc<dyn Model>,
    /// Its window in tokens.
    pub window: u64,
    /// What it costs, where that is known.
    pub price: Option<Price>,
}

/// Whether the model can be asked.
#[derive(Debug, PartialEq)]
pub(crate) enum Room {
    /// It can.
    Enough,
    /// The agent should save its notes first.
    SaveNotes,
    /// Older turns have to go first.
    Needed(Trigger),
}

impl Agent {
    /// The limits of its context.
    pub(crate) fn limits(&self) -> Limits {
        Limits::from(&self.parts.settings.compaction)
    }

    /// Whether there is room to ask the model (ES-041, ES-166, C-22).
    pub(crate) fn room(&self, task: &Journal) -> Room {
        let (limits, used) = (self.limits(), task.estimated_tokens());
        let cycle = &task.state().cycle;
        let fits = used <= limits.usable();
        let refused = cycle.refused_tokens.map(|_| Trigger::ContextLength);
        if cycle.is_flushing() {
            let trigger = refused.unwrap_or(Trigger::Tokens);
            return if fits { Room::Enough } else { Room::Needed(trigger) };
        }
        let early = self.parts.settings.compact_at_plan_step && cycle.step_finished && !cycle.fresh;
        let needed = match () {
            () if refused.is_some() => refused,
            () if limits.should_compact(used) => Some(Trigger::Tokens),
            () if early && limits.early(used) => Some(Trigger::PlanStep),
            () => None,
        };
        let may_save = limits.flush_enabled && cycle.flush == Flush::NotYet && fits;
        match needed {
            Some(_) if may_save => Room::SaveNotes,
            Some(trigger) => Room::Needed(trigger),
            None if may_save && used > limits.flush_point(task.context().floor_tokens()) => {
                Room::SaveNotes
            }
            None => Room::Enough,
        }
    }

    /// Whether a full context is handed back first: with a person at the wheel, once, when notes are saved
    /// (C-22, PL-035). Resuming goes on with the compaction.
    pub(crate) fn yields(&self, task: &Journal) -> bool {
        let state = task.state();
        let attended = state.axes.run_control != RunControl::Autonomous;
        attended && state.created.depth == 0 && !state.cycle.yielded
    }

    /// Phase 1: asks the agent to save its notes (ES-158).
    pub(crate) async fn save_notes(&self, task: &mut Journal) -> Result<Option<Ending>, Error> {
        self.flush(task, None).await
    }

    async fn flush(
        &self,
        task: &mut Journal,
        excerpt: Option<Excerpt>,
    ) -> Result<Option<Ending>, Error> {
        let flush = MemoryFlush {
            number: task.state().cycle.compactions + 1,
            estimated_tokens: task.estimated_tokens(),
            message: prompt::FLUSH.trim_end().to_owned(),
            excerpt,
        };
        task.commit(vec![Event::MemoryFlush(flush)], Level::Written).await?;
        Ok(None)
    }

    /// Makes room in a context that the provider refused. Notes are saved first here too, from as much of
    /// it as will be left; when that is refused as well, older turns go without.
    pub(crate) async fn shorten(&self, task: &mut Journal) -> Result<Option<Ending>, Error> {
        let (limits, cycle) = (self.limits(), &task.state().cycle);
        if !limits.flush_enabled || cycle.flush != Flush::NotYet || cycle.fresh {
            return self.begin_compaction(task, Trigger::ContextLength).await;
        }
        let used = task.estimated_tokens();
        match fit::fit(task.context(), &limits, Trigger::ContextLength, used) {
            Ok(fit) => {
                let (kept_turns, shrink_bytes) = (count(fit.kept), fit.shrink);
                self.flush(task, Some(Excerpt { kept_turns, shrink_bytes })).await
            }
            Err(error) => Ok(Some(Ending::Failed(error))),
        }
    }

    /// Decides what goes and what stays, and journals it.
    pub(crate) async fn begin_compaction(
        &self,
        task: &mut Journal,
        trigger: Trigger,
    ) -> Result<Option<Ending>, Error> {
        let limits = self.limits();
        let refused = task.state().cycle.refused_tokens;
        let tokens_before = refused.unwrap_or_else(|| task.estimated_tokens());
        let fit = match fit::fit(task.context(), &limits, trigger, tokens_before) {
            Ok(fit) => fit,
            Err(error) => return Ok(Some(Ending::Failed(error))),
        };
        let (dropped, _) = task.context().parted(fit.kept);
        let material = Material::of(task.context(), &dropped, &limits, &self.parts.summarizer);
        let cycle = &task.state().cycle;
        let start = CompactionStart {
            number: cycle.compactions + 1,
            trigger,
            tokens_before,
            window_tokens: limits.window,
            summarized_turns: count(dropped.len()),
            kept_turns: count(fit.kept),
            shrink_bytes: fit.shrink,
            chunks: count(material.chunks.len()),
            summary_tokens: fit.summary_tokens,
            model: self.parts.summarizer.model.name().to_string(),
            flushed: cycle.flush != Flush::NotYet,
        };
        task.commit(vec![Event::CompactionStart(start)], Level::Written).await?;
        Ok(None)
    }

    /// Phases 2 and 3: summarizes what goes, keeps it in a file, and makes the context anew.
    pub(crate) async fn compact(
        &self,
        task: &mut Journal,
        stop: &CancellationToken,
    ) -> Result<Option<Ending>, Error> {
        let Some(Compacting { start, progress }) = task.state().cycle.compacting.clone() else {
            return Ok(None);
        };
        let (dropped, _) = task.context().parted(start.kept_turns as usize);
        let material =
            Material::of(task.context(), &dropped, &self.limits(), &self.parts.summarizer);
        let made = self.summarize(task, stop, &start, progress, material).await?;
        let (summary, source) = match made {
            Summarized::Made(summary, source) => (summary, source),
            Summarized::Interrupted(ending) => return Ok(ending),
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
        let after = task.context().after(&end).map_or(0, |transcript| transcript.bytes());
        end.tokens_after = task.context().tokens(after);
        task.commit(vec![Event::CompactionEnd(end)], Level::Written).await?;
        Ok(None)
    }

    /// Writes everything that leaves the context to a file that the agent can read (ES-181).
    fn keep_dropped(&self, task: &Journal, start: &CompactionStart) -> Option<String> {
        let number = start.number;
        let path = format!("{SCRATCH_DIRECTORY}/compaction-{number}.md");
        let (dropped, kept) = task.context().parted(start.kept_turns as usize);
        let text = record::file(number, &dropped, &kept, start.shrink_bytes);
        let workspace = &self.parts.world.workspace;
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
            Ok(()) => Some(format!("/workspace/{path}")),
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
