//! The clocks of a runner, as a pure value: what is due, and when to look again.
//!
//! While a question waits nothing is due, and the time is not counted.

use std::collections::BTreeSet;

use tokio::time::Instant;

use super::RunnerLimits;

/// What a runner has overstepped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Due {
    /// No byte for `stall`.
    Stall,
    /// No byte since a tool's result.
    SilentAfterTool,
    /// It took longer than it may.
    Timeout,
    /// It has given its result and does not end.
    Linger,
}

#[derive(Debug)]
pub(super) struct Watchdog {
    limits: RunnerLimits,
    /// Moved forward by the time in which a question waited.
    started: Instant,
    last_output: Instant,
    /// Tools that the program has started and that have not ended.
    tools: BTreeSet<String>,
    /// Whether the last thing that happened is that the last of them has ended.
    after_tool: bool,
    result_at: Option<Instant>,
    waiting_since: Option<Instant>,
}

impl Watchdog {
    pub fn new(limits: RunnerLimits, now: Instant) -> Self {
        Self {
            limits,
            started: now,
            last_output: now,
            tools: BTreeSet::new(),
            after_tool: false,
            result_at: None,
            waiting_since: None,
        }
    }

    pub fn on_output(&mut self, now: Instant) {
        self.last_output = now;
        self.after_tool = false;
    }

    pub fn on_tool(&mut self, id: &str) {
        self.tools.insert(id.to_owned());
    }

    /// A tool has ended: when no other one runs, the program must say something soon.
    pub fn on_tool_result(&mut self, id: &str) {
        self.tools.remove(id);
        self.after_tool = self.tools.is_empty();
    }

    /// The program gave its result; `None` when it has more to do after all.
    pub fn on_result(&mut self, at: Option<Instant>) {
        self.result_at = at;
    }

    pub fn pause(&mut self, now: Instant) {
        self.waiting_since.get_or_insert(now);
    }

    pub fn resume(&mut self, now: Instant) {
        if let Some(since) = self.waiting_since.take() {
            self.started += now - since;
            self.last_output = now;
        }
    }

    /// The next deadline, with what it would mean; `None` while a question waits.
    pub fn next(&self) -> Option<(Instant, Due)> {
        if self.waiting_since.is_some() {
            return None;
        }
        if let Some(at) = self.result_at {
            return Some((at + self.limits.linger, Due::Linger));
        }
        let silence = if self.after_tool && self.limits.silence_after_tool < self.limits.stall {
            (self.last_output + self.limits.silence_after_tool, Due::SilentAfterTool)
        } else {
            (self.last_output + self.limits.stall, Due::Stall)
        };
        let timeout = self.limits.timeout.map(|limit| (self.started + limit, Due::Timeout));
        timeout.into_iter().chain([silence]).min_by_key(|(at, _)| *at)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn limits() -> RunnerLimits {
        RunnerLimits { timeout: Some(SECOND * 1000), ..RunnerLimits::DEFAULT }
    }

    #[test]
    fn silence_is_a_stall_and_any_byte_puts_it_off() {
        let start = Instant::now();
        let mut dog = Watchdog::new(limits(), start);
        assert_eq!(dog.next(), Some((start + SECOND * 300, Due::Stall)));
        dog.on_output(start + SECOND * 200);
        assert_eq!(dog.next(), Some((start + SECOND * 500, Due::Stall)));
    }

    #[test]
    fn silence_after_a_tool_is_noticed_sooner() {
        let start = Instant::now();
        let mut dog = Watchdog::new(limits(), start);
        dog.on_tool("a");
        dog.on_tool_result("a");
        assert_eq!(dog.next(), Some((start + SECOND * 180, Due::SilentAfterTool)));
        dog.on_output(start + SECOND);
        assert_eq!(dog.next(), Some((start + SECOND * 301, Due::Stall)));
    }

    #[test]
    fn a_tool_that_still_runs_may_be_silent() {
        let start = Instant::now();
        let mut dog = Watchdog::new(limits(), start);
        dog.on_tool("a");
        dog.on_tool("b");
        dog.on_tool_result("a");
        assert_eq!(dog.next(), Some((start + SECOND * 300, Due::Stall)));
        dog.on_tool_result("b");
        assert_eq!(dog.next(), Some((start + SECOND * 180, Due::SilentAfterTool)));
    }

    #[test]
    fn a_waiting_question_stops_every_clock() {
        let start = Instant::now();
        let mut dog = Watchdog::new(limits(), start);
        dog.pause(start + SECOND);
        assert_eq!(dog.next(), None);
        let day = SECOND * 86_400;
        dog.resume(start + SECOND + day);
        assert_eq!(dog.next(), Some((start + day + SECOND * 301, Due::Stall)));
        dog.on_output(start + day + SECOND * 900);
        assert_eq!(dog.next(), Some((start + day + SECOND * 1000, Due::Timeout)));
    }

    #[test]
    fn after_its_result_a_program_may_linger_only_shortly() {
        let start = Instant::now();
        let mut dog = Watchdog::new(limits(), start);
        dog.on_result(Some(start + SECOND));
        assert_eq!(dog.next(), Some((start + SECOND * 11, Due::Linger)));
    }
}
