//! Metrics by their ledger names, as a fold over events (ES-324…338): the journal is the store they are
//! in, and whoever serves them folds what is new.
//!
//! No series is about one task: there would be one for each task there ever was. Nor is one about a name that a model has
//! made up: tools that do not exist are counted together.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use windlass_core::command::ResultStatus;
use windlass_core::event::{Event, Record};
use windlass_core::id::{CallId, TaskId};
use windlass_core::message::Usage;
use windlass_core::outcome::CallEnding;
use windlass_core::policy::Risk;
use windlass_core::shown::shown_line;
use windlass_core::tool_name;

/// Upper bounds of histogram buckets, in the unit of the metric; the last is everything.
pub const BUCKETS: [f64; 12] =
    [1.0, 5.0, 10.0, 50.0, 100.0, 500.0, 1e3, 5e3, 1e4, 6e4, 3e5, f64::INFINITY];

/// How often each tool was called.
const TOOL_CALLS: &str = "agent.tool.calls";
/// What a tool that does not exist is called.
const UNKNOWN_TOOL: &str = "unknown";

/// A metric's name and its labels, in order.
pub type Series = (Cow<'static, str>, Vec<(Cow<'static, str>, String)>);

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Histogram {
    /// How many values fell at or below each bound of [`BUCKETS`].
    pub buckets: [u64; BUCKETS.len()],
    /// All values added up.
    pub sum: f64,
    /// How many there were.
    pub count: u64,
}

/// All metrics of the events seen so far.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Metrics {
    /// Things that are counted.
    #[serde(with = "as_list")]
    pub counters: BTreeMap<Series, u64>,
    /// Things that are measured.
    #[serde(with = "as_list")]
    pub histograms: BTreeMap<Series, Histogram>,
    /// Of calls that were decided and have not begun.
    #[serde(with = "as_list")]
    risks: BTreeMap<CallId, Risk>,
    /// Of tasks that may have another segment.
    #[serde(with = "as_list")]
    rounds: BTreeMap<TaskId, (u32, u64)>,
}

/// JSON has only texts as keys.
mod as_list {
    use std::collections::BTreeMap;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<K: Serialize, V: Serialize, S: Serializer>(
        map: &BTreeMap<K, V>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        to.collect_seq(map)
    }

    pub(super) fn deserialize<'de, K, V, D>(from: D) -> Result<BTreeMap<K, V>, D::Error>
    where
        K: Deserialize<'de> + Ord,
        V: Deserialize<'de>,
        D: Deserializer<'de>,
    {
        Ok(Vec::<(K, V)>::deserialize(from)?.into_iter().collect())
    }
}

impl Metrics {
    /// Takes in one event.
    pub fn apply(&mut self, record: &Record) {
        match &record.event {
            Event::RiskCheck(check) => {
                self.risks.insert(check.call, check.risk);
            }
            Event::ToolCall(call) => {
                let risk = self.risks.remove(&call.call).unwrap_or(Risk::Low);
                let labels =
                    vec![("tool_name", call.tool.clone()), ("risk_level", risk.to_string())];
                self.count((TOOL_CALLS, labels), 1);
            }
            Event::ToolResult(result) => {
                self.risks.remove(&result.call);
                let tool = ("tool_name", self.name_of_tool(&result.tool));
                let took = result.duration_ms as f64;
                self.measure(("agent.tool.duration_ms", vec![tool.clone()]), took);
                if result.outcome.ending != CallEnding::Ok {
                    let labels = vec![tool, ("error_type", result.outcome.ending.to_string())];
                    self.count(("agent.tool.errors", labels), 1);
                }
            }
            Event::LlmResponse(reply) => {
                let model = vec![("model", reply.model.clone())];
                self.measure(("agent.llm.latency_ms", model), reply.latency_ms as f64);
                self.tokens(&reply.usage);
            }
            Event::CompactionProgress(part) => self.tokens(&part.usage),
            Event::InjectionReceived(injection) => {
                let labels = vec![("injection_type", injection.injection_type.to_string())];
                self.count(("coordinator.injections", labels), 1);
            }
            Event::DoomLoopDetected(_) => self.count(("agent.doom_loop.detected", vec![]), 1),
            Event::CompactionEnd(end) => {
                self.count(("agent.compaction.count", vec![]), 1);
                let (before, after) = (end.tokens_before as f64, end.tokens_after as f64);
                self.measure(("agent.compaction.tokens_before", vec![]), before);
                self.measure(("agent.compaction.tokens_after", vec![]), after);
            }
            Event::SubAgentSpawn(_) => self.count(("agent.subagent.spawned", vec![]), 1),
            Event::SubAgentComplete(complete) => {
                let status = vec![("status", complete.status.to_string())];
                let took = complete.duration_ms as f64;
                self.measure(("agent.subagent.duration_ms", status), took);
            }
            Event::AgentEnd(result) => {
                let status = ("status", result.status.to_string());
                let (iterations, duration) = (result.usage.iterations, result.usage.duration_ms);
                // Usage is of the whole task; a segment counts what it added.
                let before = match result.status {
                    ResultStatus::Completed | ResultStatus::Cancelled => {
                        self.rounds.remove(&record.task)
                    }
                    ResultStatus::Failed | ResultStatus::BlockedUser | ResultStatus::Paused => {
                        self.rounds.insert(record.task, (iterations, duration))
                    }
                };
                let (rounds_before, time_before) = before.unwrap_or_default();
                let rounds = u64::from(iterations.saturating_sub(rounds_before));
                self.count(("agent.loop.iterations", vec![status.clone()]), rounds);
                let took = duration.saturating_sub(time_before) as f64;
                self.measure(("agent.loop.duration_ms", vec![status]), took);
            }
            // No metric counts the other kinds.
            _ => {}
        }
    }

    /// Takes in how often the router made a decision (ES-337); that is counted beside the journal.
    pub fn count_routed(&mut self, decision: &str, count: u64) {
        let labels = vec![("decision_type", decision.to_owned())];
        self.count(("coordinator.routing.decisions", labels), count);
    }

    /// All metrics as Prometheus reads them: dots become underscores.
    pub fn prometheus(&self) -> String {
        let mut text = String::new();
        let mut last = "";
        for ((name, labels), value) in &self.counters {
            let metric = name.replace('.', "_");
            if std::mem::replace(&mut last, name) != name.as_ref() {
                text += &format!("# TYPE {metric} counter\n");
            }
            text += &format!("{metric}{} {value}\n", braces(labels, None));
        }
        for ((name, labels), histogram) in &self.histograms {
            let metric = name.replace('.', "_");
            if std::mem::replace(&mut last, name) != name.as_ref() {
                text += &format!("# TYPE {metric} histogram\n");
            }
            for (bound, count) in BUCKETS.iter().zip(histogram.buckets) {
                let bound = if bound.is_finite() { bound.to_string() } else { "+Inf".to_owned() };
                text += &format!("{metric}_bucket{} {count}\n", braces(labels, Some(&bound)));
            }
            let (plain, Histogram { sum, count, .. }) = (braces(labels, None), histogram);
            text += &format!("{metric}_sum{plain} {sum}\n{metric}_count{plain} {count}\n");
        }
        text
    }

    /// The label of a tool: its name where it is one of ours or has been called.
    fn name_of_tool(&self, name: &str) -> String {
        let was_called = || {
            let of_tool = |labels: &[(Cow<'static, str>, String)]| {
                labels.iter().any(|(label, value)| label == "tool_name" && value == name)
            };
            self.counters.keys().any(|(metric, labels)| metric == TOOL_CALLS && of_tool(labels))
        };
        let is_known = tool_name::ALL.contains(&name) || was_called();
        if is_known { name } else { UNKNOWN_TOOL }.to_owned()
    }

    fn tokens(&mut self, usage: &Usage) {
        for (direction, tokens) in [("input", usage.input_tokens), ("output", usage.output_tokens)]
        {
            let labels = vec![("direction", direction.to_owned())];
            self.count(("agent.llm.tokens", labels), tokens);
        }
    }

    fn count(&mut self, named: MetricKey, by: u64) {
        *self.counters.entry(series(named)).or_default() += by;
    }

    fn measure(&mut self, named: MetricKey, value: f64) {
        let histogram = self.histograms.entry(series(named)).or_default();
        histogram.sum += value;
        histogram.count += 1;
        for (bucket, bound) in histogram.buckets.iter_mut().zip(BUCKETS) {
            *bucket += u64::from(value <= bound);
        }
    }
}

/// A series as the fold names it.
type MetricKey = (&'static str, Vec<(&'static str, String)>);

fn series((name, labels): MetricKey) -> Series {
    let labels = labels.into_iter().map(|(label, value)| (Cow::Borrowed(label), value));
    (Cow::Borrowed(name), labels.collect())
}

fn braces(labels: &[(Cow<'static, str>, String)], bound: Option<&str>) -> String {
    let escaped = |value: &str| shown_line(value).replace('\\', "\\\\").replace('"', "\\\"");
    let labels = labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value)));
    let all: Vec<_> = labels.chain(bound.map(|bound| format!("le=\"{bound}\""))).collect();
    if all.is_empty() { String::new() } else { format!("{{{}}}", all.join(",")) }
}
