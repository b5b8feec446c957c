//! The doom-loop guard: notices when an agent repeats itself, as a fold over its calls (ES-264…269).
//!
//! Invariants:
//! - Output that changes is progress: calls count as the same only with the same result.
//! - Each detection is answered more firmly than the last; a full window without one starts over.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

/// Identical consecutive calls before the guard intervenes (ES-264).
const MAX_IDENTICAL_CALLS: usize = 3;
/// Consecutive failures before it intervenes (ES-265).
const MAX_CONSECUTIVE_FAILURES: usize = 5;
/// How many calls back it looks for cycles (ES-266).
const PATTERN_WINDOW: usize = 10;
/// Interventions before the task fails (ES-269).
const MAX_INTERVENTIONS: u32 = 3;
/// Calls that a short cycle must span before it counts.
const MIN_CYCLE_CALLS: usize = 6;

const REPETITION_NOTICE: &str = include_str!("prompts/repetition.md").trim_ascii_end();
const FIRM_REPETITION_NOTICE: &str = include_str!("prompts/repetition_again.md").trim_ascii_end();

/// When the guard intervenes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Thresholds {
    /// Identical consecutive calls (ES-264).
    pub max_identical_calls: usize,
    /// Consecutive failures (ES-265).
    pub max_consecutive_failures: usize,
    /// How many calls back it looks for cycles (ES-266).
    pub pattern_window: usize,
}

impl Default for Thresholds {
    fn default() -> Self {
        Self {
            max_identical_calls: MAX_IDENTICAL_CALLS,
            max_consecutive_failures: MAX_CONSECUTIVE_FAILURES,
            pattern_window: PATTERN_WINDOW,
        }
    }
}

/// One call as the guard remembers it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct RememberedCall {
    tool: String,
    call: u64,
    result: u64,
    failed: bool,
}

/// What became of a call, as far as the guard counts it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallResult {
    Success,
    Failure,
}

/// What the guard remembers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Guard {
    /// When it intervenes; as the last start of the agent set it.
    #[serde(default)]
    pub thresholds: Thresholds,
    recent: VecDeque<RememberedCall>,
    failures: usize,
    since_intervention: usize,
    interventions: u32,
}

/// What the guard wants done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Intervention {
    /// Tell the agent.
    Nudge {
        pattern: String,
        /// Which intervention this is.
        number: u32,
        /// What to say.
        message: &'static str,
    },
    /// Give up on it.
    Fail { pattern: String },
}

impl Guard {
    /// Forgets every call; the thresholds stay.
    pub fn forget(&mut self) {
        *self = Self { thresholds: self.thresholds, ..Self::default() };
    }

    /// Remembers a call and its output, both as hashes of their canonical text.
    pub fn on_call(&mut self, tool: &str, call: u64, output: u64, result: CallResult) {
        let failed = result == CallResult::Failure;
        self.recent.push_back(RememberedCall {
            tool: tool.to_owned(),
            call,
            result: output,
            failed,
        });
        let remembered = self.thresholds.pattern_window.max(self.thresholds.max_identical_calls);
        while self.recent.len() > remembered {
            self.recent.pop_front();
        }
        self.failures = if failed { self.failures + 1 } else { 0 };
        self.since_intervention += 1;
        if self.since_intervention >= self.thresholds.pattern_window && self.pattern().is_none() {
            self.interventions = 0;
        }
    }

    /// Counts a nudge: the agent has read that it repeats itself.
    pub fn on_intervention(&mut self) {
        self.interventions += 1;
        self.since_intervention = 0;
        self.failures = 0;
    }

    /// What should be done now, if anything.
    pub fn verdict(&self) -> Option<Intervention> {
        let pattern = self.pattern()?;
        if self.interventions >= MAX_INTERVENTIONS {
            return Some(Intervention::Fail { pattern });
        }
        let number = self.interventions + 1;
        let message = if number == 1 { REPETITION_NOTICE } else { FIRM_REPETITION_NOTICE };
        Some(Intervention::Nudge { pattern, number, message })
    }

    fn pattern(&self) -> Option<String> {
        if self.since_intervention == 0 {
            return None;
        }
        self.identical().or_else(|| self.repeated_failure()).or_else(|| self.repeated_cycle())
    }

    fn identical(&self) -> Option<String> {
        let last = self.recent.back()?;
        let run = self.recent.iter().rev().take_while(|seen| *seen == last).count();
        (run >= self.thresholds.max_identical_calls).then(|| {
            format!("the same `{}` call {run} times in a row with the same result", last.tool)
        })
    }

    fn repeated_failure(&self) -> Option<String> {
        (self.failures >= self.thresholds.max_consecutive_failures)
            .then(|| format!("{} failed calls in a row", self.failures))
    }

    fn repeated_cycle(&self) -> Option<String> {
        let window = self.thresholds.pattern_window;
        let seen: Vec<&RememberedCall> = self.recent.iter().rev().take(window).collect();
        (2..=window / 2).find_map(|period| {
            let span = period * MIN_CYCLE_CALLS.div_ceil(period).max(2);
            // The same call over and over is for `identical` to judge.
            let repeats = seen.len() >= span
                && seen[..period].iter().any(|one| *one != seen[0])
                && self.since_intervention >= period
                && (period..span).all(|i| seen[i] == seen[i - period]);
            repeats.then(|| {
                let names: Vec<_> =
                    seen[..period].iter().rev().map(|seen| seen.tool.as_str()).collect();
                format!("a cycle of {period} calls: {}", names.join(" → "))
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ladder(calls: impl Iterator<Item = (u64, u64, bool)>) -> Vec<String> {
        let mut guard = Guard::default();
        let mut said = Vec::new();
        for (index, (call, result, failed)) in calls.enumerate() {
            let ending = if failed { CallResult::Failure } else { CallResult::Success };
            guard.on_call("bash", call, result, ending);
            match guard.verdict() {
                Some(Intervention::Nudge { number, message, .. }) => {
                    said.push(format!("{}: {number} {message}", index + 1));
                    guard.on_intervention();
                }
                Some(Intervention::Fail { pattern }) => {
                    said.push(format!("{}: fail: {pattern}", index + 1));
                    break;
                }
                None => {}
            }
        }
        said
    }

    /// ES-264, ES-267, ES-268, ES-269
    #[test]
    fn identical_calls_climb_the_ladder_and_then_fail() {
        insta::assert_snapshot!(ladder((0..20).map(|_| (1, 1, false))).join("\n"), @r"
        3: 1 You appear to be repeating the same action. Reconsider your approach.
        4: 2 Stop and re-read your plan. What should you do differently?
        5: 3 Stop and re-read your plan. What should you do differently?
        6: fail: the same `bash` call 6 times in a row with the same result
        ");
    }

    /// ES-265
    #[test]
    fn five_failures_in_a_row_count_once() {
        let said = ladder((0..30).map(|i| (i, i, true)));
        let at: Vec<_> = said.iter().map(|line| line.split(':').next().unwrap()).collect();
        assert_eq!(at, ["5", "10", "15", "20"]);
    }

    /// ES-266
    #[test]
    fn alternating_calls_are_a_cycle() {
        let said = ladder((0..40).map(|i| (i % 2, i % 2, false)));
        assert!(said[0].starts_with("6: 1 "), "{said:?}");
        assert!(said.last().unwrap().contains("fail: a cycle of 2 calls"), "{said:?}");
    }

    #[test]
    fn a_poll_whose_output_changes_is_progress() {
        assert_eq!(ladder((0..50).map(|i| (1, i, false))), Vec::<String>::new());
    }

    #[test]
    fn a_window_of_progress_forgets_old_interventions() {
        let stuck = || (0..3).map(|_| (1, 1, false));
        let progress = |from: u64| (from..from + 12).map(|i| (i, i, false));
        let calls = stuck().chain(progress(100)).chain(stuck()).chain(progress(200)).chain(stuck());
        let said = ladder(calls);
        assert!(said.iter().all(|line| line.contains(": 1 ")), "{said:?}");
    }
}
