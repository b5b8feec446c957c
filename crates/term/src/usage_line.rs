//! What a run has used so far, for the status line: time, plan, tokens, cost, how full the context is.

use std::collections::BTreeMap;
use std::time::Duration;

use windlass_core::compaction::{Gauge, Level, WindowLimits};
use windlass_core::event::{AgentStart, LlmResponse, SubAgentComplete};
use windlass_core::id::TaskId;
use windlass_core::message::Usage;
use windlass_core::plan::{StepStatus, WorkingPlan};
use windlass_core::shown::shown;
use windlass_core::state::TaskState;
use windlass_core::string_enum;
use windlass_core::text::one_line;

use crate::{Paint, numbers};

string_enum! {
    /// A part of the status line; the words are those of `tui.status`.
    StatusPart ("part of the status line") {
        Time = "time",
        Plan = "plan",
        Tokens = "tokens",
        Cost = "cost",
        Context = "context",
        Model = "model",
        Effort = "effort",
    }
}

/// How full the context is: `context 40 %`.
pub fn gauge_text(gauge: &Gauge, paint: Paint) -> String {
    let text = format!("context {:.0} %", gauge.percent.floor());
    match gauge.level {
        Level::Critical => paint.red(&text),
        Level::Warning => paint.yellow(&text),
        Level::Ok => text,
    }
}

/// Running totals of a task.
#[derive(Clone, Debug, Default)]
pub struct UsageLine {
    tokens: u64,
    cost: f64,
    has_price: bool,
    has_unpriced_replies: bool,
    context_tokens: u64,
    limits: Option<WindowLimits>,
    plan: Option<PlanProgress>,
    /// What was counted of sub-agents that have not ended.
    sub_agents: BTreeMap<TaskId, Counted>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counted {
    tokens: u64,
    cost: f64,
}

#[derive(Clone, Debug)]
struct PlanProgress {
    done: usize,
    steps: usize,
    current: Option<String>,
}

impl UsageLine {
    /// Starts from what the task has used before this run.
    pub fn new(state: &TaskState) -> Self {
        let mut line = Self {
            tokens: state.spending.usage.total_tokens,
            cost: state.spending.cost_usd,
            has_price: state.spending.is_priced,
            context_tokens: state.spending.last_tokens,
            ..Self::default()
        };
        if let Some(plan) = &state.plan {
            line.apply_plan(plan);
        }
        line
    }

    /// A segment began.
    pub fn apply_start(&mut self, start: &AgentStart) {
        self.limits = WindowLimits::of_segment(start);
    }

    /// The model answered.
    pub fn apply_reply(&mut self, response: &LlmResponse) {
        let Usage { input_tokens, output_tokens, cost_usd, .. } = response.usage;
        self.tokens += input_tokens + output_tokens;
        self.context_tokens = input_tokens + output_tokens;
        self.apply_cost(cost_usd);
    }

    /// A summarizer answered: its tokens are used, and are not in this context.
    pub fn apply_summary(&mut self, usage: &Usage) {
        self.tokens += usage.input_tokens + usage.output_tokens;
        self.apply_cost(usage.cost_usd);
    }

    /// A sub-agent answered, or one below it.
    pub fn apply_sub_agent(&mut self, sub_agent: TaskId, usage: &Usage) {
        self.apply_summary(usage);
        let counted = self.sub_agents.entry(sub_agent).or_default();
        counted.tokens += usage.input_tokens + usage.output_tokens;
        counted.cost += usage.cost_usd.unwrap_or(0.0);
    }

    /// A sub-agent ended: what was not seen of it while it worked is counted now.
    pub fn apply_sub_agent_end(&mut self, end: &SubAgentComplete) {
        let counted = self.sub_agents.remove(&end.task_id).unwrap_or_default();
        let tokens = end.usage.input_tokens + end.usage.output_tokens;
        self.tokens += tokens.saturating_sub(counted.tokens);
        if let Some(cost) = end.cost_usd {
            self.cost += (cost - counted.cost).max(0.0);
            self.has_price = true;
        }
    }

    fn apply_cost(&mut self, cost_usd: Option<f64>) {
        match cost_usd {
            Some(cost) => {
                self.cost += cost;
                self.has_price = true;
            }
            None => self.has_unpriced_replies = true,
        }
    }

    /// Whether some replies had no price.
    pub fn has_unpriced_replies(&self) -> bool {
        self.has_unpriced_replies
    }

    /// The plan changed.
    pub fn apply_plan(&mut self, plan: &WorkingPlan) {
        let step = plan.steps.iter().find(|step| step.status == StepStatus::InProgress);
        self.plan = Some(PlanProgress {
            done: plan.done(),
            steps: plan.steps.len(),
            current: step.map(|step| shown(&step.description)),
        });
    }

    /// `plan 1/4` and the current step.
    pub fn plan(&self, width: usize) -> Option<String> {
        let plan = self.plan.as_ref()?;
        Some(match &plan.current {
            Some(step) => format!("{}  {}", plan.fraction(), one_line(step, width)),
            None => plan.fraction(),
        })
    }

    /// One part of the line, where there is something to say.
    pub fn part(&self, part: StatusPart, elapsed: Duration, paint: Paint) -> Option<String> {
        match part {
            StatusPart::Time => Some(numbers::elapsed(elapsed)),
            StatusPart::Plan => self.plan.as_ref().map(PlanProgress::fraction),
            StatusPart::Tokens => {
                (self.tokens > 0).then(|| format!("{} tokens", numbers::count(self.tokens)))
            }
            StatusPart::Cost => self.cost(),
            StatusPart::Context => {
                let limits = self.limits.filter(|_| self.context_tokens > 0)?;
                Some(gauge_text(&limits.gauge(self.context_tokens), paint))
            }
            // These are the session's.
            StatusPart::Model | StatusPart::Effort => None,
        }
    }

    /// The known cost; a `+` says that some replies had no price.
    pub fn cost(&self) -> Option<String> {
        let more = if self.has_unpriced_replies { "+" } else { "" };
        self.has_price.then(|| format!("{}{more}", numbers::dollars(self.cost)))
    }
}

impl PlanProgress {
    fn fraction(&self) -> String {
        format!("plan {}/{}", self.done, self.steps)
    }
}
