//! How full a context is, when it is too full, and how its older part is cut for summarizing.
//!
//! Pure rules, in tokens. One percent is `used ÷ (window − reserve)` everywhere (C-22).

use serde::{Deserialize, Serialize};

use crate::command::CompactionOverrides;
use crate::event::AgentStart;
use crate::string_enum;

/// Kept free for the reply, unless configured (ES-152).
const RESPONSE_RESERVE_TOKENS: u64 = 4_096;
/// How full the usable window may get, unless configured (ES-153).
const TRIGGER_RATIO: f64 = 0.85;
/// How many tokens before the trigger notes are saved, unless configured (ES-155).
const FLUSH_SOFT_THRESHOLD_TOKENS: u64 = 4_000;
/// How long a summary may be, unless configured (ES-156).
const MAX_SUMMARY_TOKENS: u64 = 2_000;
/// Recent turns that stay whole, unless configured (ES-157).
const PRESERVE_RECENT_TURNS: u32 = 6;
/// The window of a model nothing is known about.
const CONTEXT_WINDOW_TOKENS: u64 = 128_000;
/// Turns the agent gets to save its notes (ES-159).
pub const MAX_FLUSH_TURNS: u32 = 3;
/// How full a context must be before a finished plan step is a reason to compact, in percent.
const EARLY_PERCENT: u64 = 70;

/// Gauge levels begin here, in percent (PL-034, PL-035).
const WARNING_PERCENT: u64 = 70;
const CRITICAL_PERCENT: u64 = 85;

/// The limits one context lives under.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WindowLimits {
    /// The model's window (ES-151).
    pub window: u64,
    /// Kept free for the reply.
    pub reserve: u64,
    /// How full the rest may get.
    pub trigger_ratio: f64,
    /// Whether the agent saves notes first (ES-154).
    pub flush_enabled: bool,
    /// How many tokens before the trigger notes are saved.
    pub flush_soft_threshold: u64,
    /// How long a summary may be.
    pub max_summary: u64,
    /// Recent turns that stay whole.
    pub preserve_recent_turns: u32,
}

impl From<&CompactionOverrides> for WindowLimits {
    fn from(given: &CompactionOverrides) -> Self {
        Self {
            window: given.context_window_tokens.unwrap_or(CONTEXT_WINDOW_TOKENS),
            reserve: given.response_reserve_tokens.unwrap_or(RESPONSE_RESERVE_TOKENS),
            trigger_ratio: given.compaction_trigger_ratio.unwrap_or(TRIGGER_RATIO),
            flush_enabled: given.memory_flush_enabled.unwrap_or(true),
            flush_soft_threshold: given
                .memory_flush_soft_threshold_tokens
                .unwrap_or(FLUSH_SOFT_THRESHOLD_TOKENS),
            max_summary: given.max_summary_tokens.unwrap_or(MAX_SUMMARY_TOKENS),
            preserve_recent_turns: given.preserve_recent_turns.unwrap_or(PRESERVE_RECENT_TURNS),
        }
    }
}

impl WindowLimits {
    /// The limits of a segment, as its start says; `None` where it does not.
    pub fn of_segment(start: &AgentStart) -> Option<Self> {
        let given: CompactionOverrides =
            serde_json::from_value(start.compaction_config.clone()).ok()?;
        given.context_window_tokens?;
        Some(Self::from(&given))
    }

    /// What a prompt may fill; a reserve never takes more than half of the window.
    pub const fn usable_tokens(&self) -> u64 {
        let half = self.window / 2;
        let usable = self.window - if self.reserve < half { self.reserve } else { half };
        if usable == 0 { 1 } else { usable }
    }

    /// The most tokens that do not trigger a compaction.
    pub fn trigger_tokens(&self) -> u64 {
        (self.usable_tokens() as f64 * self.trigger_ratio) as u64
    }

    /// Whether older turns must be summarized: strictly more than the ratio (ES-166).
    pub fn should_compact(&self, used: u64) -> bool {
        used as f64 / self.usable_tokens() as f64 > self.trigger_ratio
    }

    /// Whether the agent must save its notes: strictly more than the flush point (ES-167, C-22).
    pub fn should_flush(&self, used: u64, floor: u64) -> bool {
        self.flush_enabled && used > self.flush_point(floor)
    }

    /// Above how many tokens notes are saved: the soft threshold before the trigger, but not before
    /// half of what a fresh context (`floor`) leaves is used, or small windows would save all the time.
    fn flush_point(&self, floor: u64) -> u64 {
        let trigger = self.trigger_tokens();
        let soft = trigger.saturating_sub(self.flush_soft_threshold);
        soft.max(floor.saturating_add(trigger) / 2)
    }

    /// How full a context of `used` tokens is.
    pub fn gauge(&self, used: u64) -> Gauge {
        let usable = self.usable_tokens();
        let (used, tenths) = (u128::from(used), u128::from(used) * 1_000 / u128::from(usable));
        let reaches = |percent: u64| used * 100 >= u128::from(percent) * u128::from(usable);
        let level = match () {
            () if reaches(CRITICAL_PERCENT) => Level::Critical,
            () if reaches(WARNING_PERCENT) => Level::Warning,
            () => Level::Ok,
        };
        let recommendation = match level {
            Level::Ok => Recommendation::Continue,
            Level::Warning => Recommendation::SaveState,
            Level::Critical => Recommendation::SaveAndYield,
        };
        Gauge { level, percent: tenths as f64 / 10.0, recommendation }
    }

    /// Whether a context is full enough for a compaction at a finished plan step.
    pub const fn can_compact_early(&self, used: u64) -> bool {
        used as u128 * 100 >= EARLY_PERCENT as u128 * self.usable_tokens() as u128
    }

    /// The most tokens of one chunk to summarize, by the average message (ES-168, O-19).
    pub const fn chunk_tokens(&self, average: u64) -> u64 {
        let ratio = match average {
            0..=250 => 8,
            251..=1_000 => 4,
            _ => 2,
        };
        self.max_summary.saturating_mul(ratio)
    }
}

string_enum! {
    /// How full a context is, in one word.
    Level ("gauge level") {
        /// There is room.
        Ok = "ok",
        /// It fills up.
        Warning = "warning",
        /// It is nearly full.
        Critical = "critical",
    }
}

string_enum! {
    /// What the gauge advises.
    Recommendation ("recommendation") {
        Continue = "continue",
        /// Save what must not be lost.
        SaveState = "save-state",
        /// Save, and make room.
        SaveAndYield = "save-and-yield",
    }
}

/// How full a context is (PL-034…037, PL-051, PL-052).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Gauge {
    /// In one word.
    pub level: Level,
    /// In percent of the usable window, cut to one decimal.
    pub percent: f64,
    /// What to do about it.
    pub recommendation: Recommendation,
}

string_enum! {
    /// Why a compaction happens.
    Trigger ("compaction trigger") {
        /// The context is too full.
        Tokens = "tokens",
        /// The provider refused it as too long.
        ContextLength = "context_length",
        /// A plan step is finished and the context is filling up.
        PlanStep = "plan_step",
        /// The context shows as many pictures as one may.
        Pictures = "pictures",
    }
}

string_enum! {
    /// Where a summary comes from.
    Source ("summary source") {
        /// From the summarizing model.
        Model = "model",
        /// Drawn from the journal, where the model gave nothing usable.
        Extract = "extract",
        /// Partly one, partly the other.
        Mixed = "mixed",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn limits(window: u64) -> WindowLimits {
        let context_window_tokens = Some(window);
        WindowLimits::from(&CompactionOverrides { context_window_tokens, ..Default::default() })
    }

    /// ES-151, ES-152, ES-153, ES-154, ES-155, ES-156, ES-157
    #[test]
    fn the_defaults_are_the_documented_ones() {
        let limits = WindowLimits::from(&CompactionOverrides::default());
        assert_eq!((limits.reserve, limits.trigger_ratio), (4_096, 0.85));
        assert!(limits.flush_enabled);
        assert_eq!((limits.flush_soft_threshold, limits.max_summary), (4_000, 2_000));
        assert_eq!(limits.preserve_recent_turns, 6);
    }

    /// ES-166
    #[test]
    fn exactly_the_ratio_does_not_compact_and_one_more_does() {
        let limits = WindowLimits { reserve: 0, ..limits(100_000) };
        assert!(!limits.should_compact(85_000));
        assert!(limits.should_compact(85_001));
        assert_eq!(limits.trigger_tokens(), 85_000);
    }

    /// ES-167
    #[test]
    fn exactly_the_flush_point_saves_no_notes_and_one_more_does() {
        let limits = limits(204_096);
        assert!(!limits.should_flush(166_000, 10_000));
        assert!(limits.should_flush(166_001, 10_000));
        assert!(!WindowLimits { flush_enabled: false, ..limits }.should_flush(200_000, 10_000));
    }

    #[test]
    fn notes_are_saved_before_the_trigger_in_large_and_in_small_windows() {
        let large = limits(204_096);
        assert_eq!(large.flush_point(10_000), 170_000 - 4_000);
        let small = limits(16_384);
        assert_eq!(small.trigger_tokens(), 10_444);
        assert_eq!(small.flush_point(8_000), (8_000 + 10_444) / 2);
    }

    /// PL-034, PL-035, PL-036, PL-037, PL-051, PL-052
    #[test]
    fn the_gauge_turns_at_seventy_and_at_eighty_five() {
        let limits = WindowLimits { reserve: 0, ..limits(1_000) };
        let read = |used| {
            let Gauge { level, percent, recommendation } = limits.gauge(used);
            format!("{percent} {level} {recommendation}")
        };
        insta::assert_snapshot!([0, 699, 700, 849, 850, 2_000].map(read).join("\n"), @r"
        0 ok continue
        69.9 ok continue
        70 warning save-state
        84.9 warning save-state
        85 critical save-and-yield
        200 critical save-and-yield
        ");
    }

    /// ES-161, ES-168
    #[test]
    fn larger_messages_make_smaller_chunks() {
        let limits = limits(128_000);
        assert_eq!(
            [250, 251, 1_000, 1_001].map(|average| limits.chunk_tokens(average)),
            [16_000, 8_000, 8_000, 4_000]
        );
    }

    proptest! {
        /// PL-036
        #[test]
        fn the_gauge_is_never_ok_at_seventy_percent(used in 0u64..1 << 40, window in 1u64..1 << 30) {
            let limits = limits(window);
            let gauge = limits.gauge(used);
            prop_assert_eq!(gauge.percent >= 70.0, gauge.level != Level::Ok);
            prop_assert_eq!(gauge.percent >= 85.0, gauge.level == Level::Critical);
        }
    }
}
