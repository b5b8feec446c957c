//! What a run takes while it goes on: time, tokens, cost, and how full the context is.

use std::time::Duration;

use windlass_core::command::CompactionOverrides;
use windlass_core::compaction::{Gauge, Level, Limits};
use windlass_core::event::{AgentStart, LlmResponse};
use windlass_core::message::Usage;
use windlass_core::plan::{StepStatus, WorkingPlan};
use windlass_core::state::TaskState;
use windlass_core::text::one_line;

use super::{Paint, plain};

/// The limits that a segment's context lives under, as its start says.
pub fn limits(start: &AgentStart) -> Option<Limits> {
    let given: CompactionOverrides =
        serde_json::from_value(start.compaction_config.clone()).ok()?;
    given.context_window_tokens?;
    Some(Limits::from(&given))
}

/// The gauge in words.
pub fn gauge_words(gauge: &Gauge, paint: Paint) -> String {
    let text = format!("context {:.0} %", gauge.percent.floor());
    match gauge.level {
        Level::Critical => paint.red(&text),
        Level::Warning => paint.yellow(&text),
        Level::Ok => text,
    }
}

/// Running totals of a task.
#[derive(Clone, Debug, Default)]
pub struct Meter {
    tokens: u64,
    cost: f64,
    priced: bool,
    unpriced: bool,
    context: u64,
    limits: Option<Limits>,
    plan: Option<(usize, usize, Option<String>)>,
}

impl Meter {
    /// What the task has taken before this run.
    pub fn of(state: &TaskState) -> Self {
        let mut meter = Self {
            tokens: state.usage.total_tokens,
            cost: state.cost_spent,
            priced: state.priced,
            context: state.last_tokens,
            ..Self::default()
        };
        if let Some(plan) = &state.plan {
            meter.planned(plan);
        }
        meter
    }

    /// A segment began.
    pub fn started(&mut self, start: &AgentStart) {
        self.limits = limits(start);
    }

    /// The model answered.
    pub fn replied(&mut self, response: &LlmResponse) {
        let Usage { input_tokens, output_tokens, cost_usd, .. } = response.usage;
        self.tokens += input_tokens + output_tokens;
        self.context = input_tokens + output_tokens;
        match cost_usd {
            Some(cost) => {
                self.cost += cost;
                self.priced = true;
            }
            None => self.unpriced = true,
        }
    }

    /// The plan changed.
    pub fn planned(&mut self, plan: &WorkingPlan) {
        let step = plan.steps.iter().find(|step| step.status == StepStatus::InProgress);
        self.plan =
            Some((plan.done(), plan.steps.len(), step.map(|step| plain(&step.description))));
    }

    /// `plan 1/4`, and the step in hand.
    pub fn plan_words(&self, width: usize) -> Option<String> {
        let (done, all, step) = self.plan.as_ref()?;
        let words = format!("plan {done}/{all}");
        Some(match step {
            Some(step) => format!("{words}  {}", one_line(step, width)),
            None => words,
        })
    }

    /// Everything measured, for the status line.
    pub fn words(&self, elapsed: Duration, paint: Paint) -> String {
        let mut words = vec![clock(elapsed)];
        if let Some((done, all, _)) = &self.plan {
            words.push(format!("plan {done}/{all}"));
        }
        if self.tokens > 0 {
            words.push(format!("{} tokens", count(self.tokens)));
        }
        if let Some(cost) = self.cost_words() {
            words.push(cost);
        }
        if let Some(limits) = self.limits.filter(|_| self.context > 0) {
            words.push(gauge_words(&limits.gauge(self.context), paint));
        }
        words.join(" · ")
    }

    /// Money, where any of it is known; a `+` says that some is not.
    pub fn cost_words(&self) -> Option<String> {
        let more = if self.unpriced { "+" } else { "" };
        self.priced.then(|| format!("{}{more}", money(self.cost)))
    }
}

/// `0:07`, `12:30`, `1:02:03`.
pub fn clock(elapsed: Duration) -> String {
    let seconds = elapsed.as_secs();
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    match hours {
        0 => format!("{minutes}:{seconds:02}"),
        _ => format!("{hours}:{minutes:02}:{seconds:02}"),
    }
}

/// `950`, `12.3k`, `4.5M`.
pub fn count(number: u64) -> String {
    match number {
        0..10_000 => number.to_string(),
        10_000..1_000_000 => format!("{:.1}k", number as f64 / 1e3),
        _ => format!("{:.1}M", number as f64 / 1e6),
    }
}

/// US dollars with as many digits as say something.
pub fn money(dollars: f64) -> String {
    // The sum of nothing is a negative zero.
    let dollars = dollars + 0.0;
    if dollars > 0.0 && dollars < 1.0 { format!("${dollars:.4}") } else { format!("${dollars:.2}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        assert_eq!(clock(Duration::from_secs(67)), "1:07");
        assert_eq!(clock(Duration::from_secs(3723)), "1:02:03");
        assert_eq!([count(950), count(12_345), count(4_500_000)], ["950", "12.3k", "4.5M"]);
        assert_eq!(money(std::iter::empty::<f64>().sum()), "$0.00");
        assert_eq!([money(0.0), money(0.0123), money(12.345)], ["$0.00", "$0.0123", "$12.35"]);
    }
}
