//! Whether there is room in the context to ask the model.

use windlass_core::compaction::{Trigger, WindowLimits};
use windlass_core::state::{CompactionState, Flush};

/// Whether the model can be asked.
#[derive(Debug, PartialEq)]
pub(crate) enum Room {
    Enough,
    /// The agent should save its notes first.
    SaveNotes,
    /// Older turns have to be dropped first.
    Needed(Trigger),
}

/// How full a context is, in tokens.
#[derive(Clone, Copy, Debug)]
pub(super) struct ContextUsage {
    pub used: u64,
    /// When its epoch began.
    pub floor: u64,
    /// Whether it shows as many pictures as it may.
    pub is_full_of_pictures: bool,
}

impl Room {
    /// What the limits say about a context (ES-041, ES-166, C-22). `at_plan_step` makes a finished plan step
    /// a reason to compact one that is filling up.
    pub(super) fn of(
        limits: &WindowLimits,
        cycle: &CompactionState,
        usage: ContextUsage,
        at_plan_step: bool,
    ) -> Self {
        let ContextUsage { used, floor, is_full_of_pictures } = usage;
        let fits = used <= limits.usable_tokens();
        let refused = cycle.refused_tokens.map(|_| Trigger::ContextLength);
        if cycle.is_flushing() {
            let trigger = refused.unwrap_or(Trigger::Tokens);
            return if fits { Self::Enough } else { Self::Needed(trigger) };
        }
        let early = at_plan_step && cycle.step_finished && !cycle.fresh;
        let needed = match () {
            () if refused.is_some() => refused,
            () if limits.should_compact(used) => Some(Trigger::Tokens),
            () if is_full_of_pictures && !cycle.fresh => Some(Trigger::Pictures),
            () if early && limits.can_compact_early(used) => Some(Trigger::PlanStep),
            () => None,
        };
        let can_save = limits.flush_enabled && cycle.flush == Flush::NotYet && fits;
        match needed {
            Some(_) if can_save => Self::SaveNotes,
            Some(trigger) => Self::Needed(trigger),
            None if can_save && limits.should_flush(used, floor) => Self::SaveNotes,
            None => Self::Enough,
        }
    }
}

#[cfg(test)]
mod tests {
    use windlass_core::command::CompactionOverrides;

    use super::*;

    /// A window of 10,000 tokens, compacted from 8,000 on, notes from 7,000 on.
    fn limits() -> WindowLimits {
        WindowLimits::from(&CompactionOverrides {
            context_window_tokens: Some(11_000),
            response_reserve_tokens: Some(1_000),
            compaction_trigger_ratio: Some(0.8),
            memory_flush_soft_threshold_tokens: Some(1_000),
            ..CompactionOverrides::default()
        })
    }

    fn usage(used: u64) -> ContextUsage {
        ContextUsage { used, floor: 1_000, is_full_of_pictures: false }
    }

    fn room(cycle: &CompactionState, used: u64) -> Room {
        Room::of(&limits(), cycle, usage(used), true)
    }

    #[test]
    fn notes_are_saved_before_turns_are_dropped_and_once() {
        let mut cycle = CompactionState::default();
        assert_eq!(room(&cycle, 7_000), Room::Enough);
        assert_eq!(room(&cycle, 7_001), Room::SaveNotes);
        assert_eq!(room(&cycle, 8_001), Room::SaveNotes);
        cycle.flush = Flush::Done;
        assert_eq!(room(&cycle, 7_001), Room::Enough);
        assert_eq!(room(&cycle, 8_001), Room::Needed(Trigger::Tokens));
    }

    #[test]
    fn a_context_over_the_window_is_compacted_without_notes() {
        assert_eq!(room(&CompactionState::default(), 10_001), Room::Needed(Trigger::Tokens));
    }

    #[test]
    fn while_notes_are_saved_the_whole_window_may_be_used() {
        let cycle = CompactionState { flush: Flush::Running(1), ..CompactionState::default() };
        assert_eq!(room(&cycle, 10_000), Room::Enough);
        assert_eq!(room(&cycle, 10_001), Room::Needed(Trigger::Tokens));
    }

    #[test]
    fn a_finished_plan_step_is_a_reason_to_compact_early() {
        let mut cycle = CompactionState {
            flush: Flush::Done,
            step_finished: true,
            ..CompactionState::default()
        };
        assert_eq!(room(&cycle, 6_999), Room::Enough);
        assert_eq!(room(&cycle, 7_000), Room::Needed(Trigger::PlanStep));
        cycle.fresh = true;
        assert_eq!(room(&cycle, 7_000), Room::Enough, "it was compacted just now");
    }

    #[test]
    fn a_context_that_the_provider_refused_is_compacted_whatever_its_size() {
        let cycle = CompactionState {
            flush: Flush::Done,
            refused_tokens: Some(5_000),
            ..CompactionState::default()
        };
        assert_eq!(room(&cycle, 10), Room::Needed(Trigger::ContextLength));
    }
}
