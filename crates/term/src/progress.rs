//! A run as it happens: the lines that each event adds, and what the task is doing now.

use std::collections::BTreeMap;
use std::time::Duration;

use unicode_width::UnicodeWidthStr as _;
use windlass_core::compaction::Source;
use windlass_core::event::{
    AgentStart, BudgetKind, CompactionEnd, Event, LlmResponse, Record, RunnerReported, StepResult,
    SubAgentSpawn, ToolCall, ToolResult,
};
use windlass_core::id::{CallId, TaskId};
use windlass_core::message::{Finish, ToolRequest};
use windlass_core::outcome::CallEnding;
use windlass_core::plan::WorkingPlan;
use windlass_core::shown::{shown, shown_line};
use windlass_core::state::{Stage, TaskState};
use windlass_core::text::one_line;
use windlass_core::tool_name;

use crate::{
    Detail, Paint, StatusPart, UsageLine, markdown, numbers, reasoning, strip_controls, tool_lines,
};

/// Width of a call's text where the width of the screen is not known yet.
const DEFAULT_WIDTH: usize = 100;
/// Lines that are shown of what the agent says between its calls.
const REPLY_LINES: usize = 4;

/// Lines that are shown of what another program prints at once.
const PROGRAM_LINES: usize = 8;

/// Turns the events of a task and its sub-agents into lines.
pub struct Progress {
    task: TaskId,
    paint: Paint,
    detail: Detail,
    usage: UsageLine,
    activity: String,
    is_replying: bool,
    has_plan: bool,
    has_introduction: bool,
    /// Calls that have no result yet; a result alone does not say which it was.
    requested: BTreeMap<CallId, String>,
    /// The call whose line is the last one that was shown.
    last_shown: Option<CallId>,
    /// Whether the agent saves its notes: what else it tries is refused, and that says nothing to a person.
    is_saving_notes: bool,
    /// Labels of the sub-agents.
    sub_agents: BTreeMap<TaskId, String>,
    /// The sub-agent of this task that each works for: itself, or the one that is above it.
    below: BTreeMap<TaskId, TaskId>,
    /// Steps of a workflow, by the task that works on each.
    steps: BTreeMap<TaskId, String>,
}

impl Progress {
    /// Starts from the state that the task has before this run.
    pub fn new(task: TaskId, state: &TaskState, paint: Paint) -> Self {
        let labels = state.sub_agents.values().map(|spawn| (spawn.task_id, spawn.label.clone()));
        Self {
            task,
            paint,
            detail: Detail::Brief,
            usage: UsageLine::new(state),
            activity: call_in_progress(state).unwrap_or_else(|| "starting".to_owned()),
            is_replying: false,
            has_plan: state.plan.is_some(),
            has_introduction: false,
            requested: state
                .last_reply
                .open_calls
                .iter()
                .map(|open| call_with_line(&open.request))
                .collect(),
            last_shown: None,
            is_saving_notes: state.compaction.is_flushing(),
            sub_agents: labels.collect(),
            below: BTreeMap::new(),
            steps: BTreeMap::new(),
        }
    }

    /// The same, showing this much.
    #[must_use]
    pub fn with_detail(mut self, detail: Detail) -> Self {
        self.detail = detail;
        self
    }

    /// Leaves out the introduction of a task that was introduced before.
    pub fn skip_introduction(&mut self) {
        self.has_introduction = true;
    }

    /// What the task is doing now.
    pub fn activity(&self) -> &str {
        &self.activity
    }

    /// Replaces what the task is doing now, for previews that are not journaled yet.
    pub fn set_activity(&mut self, activity: String) {
        self.activity = activity;
    }

    /// Whether a reply of the model is on its way.
    pub fn is_replying(&self) -> bool {
        self.is_replying
    }

    /// What the task and its sub-agents have used, for the status line, the most important first.
    pub fn usage(&self, elapsed: Duration, paint: Paint) -> Vec<String> {
        let part = |part: &StatusPart| self.usage_part(*part, elapsed, paint);
        StatusPart::ALL.iter().filter_map(part).collect()
    }

    /// One part of it, where there is something to say.
    pub fn usage_part(&self, part: StatusPart, elapsed: Duration, paint: Paint) -> Option<String> {
        self.usage.part(part, elapsed, paint)
    }

    /// Whether some replies had no price.
    pub fn has_unpriced_replies(&self) -> bool {
        self.usage.has_unpriced_replies()
    }

    /// Takes in one event and returns the lines that it adds.
    pub fn lines(&mut self, record: &Record, width: usize) -> Vec<String> {
        let event = &record.event;
        if let Event::SubAgentSpawn(spawn) = event {
            self.sub_agents.insert(spawn.task_id, shown_line(&spawn.label));
            let above = self.below.get(&record.task).copied().unwrap_or(spawn.task_id);
            self.below.insert(spawn.task_id, above);
        }
        if let Event::WorkflowStepStarted(step) = event
            && let Some(task) = step.task
        {
            self.steps.insert(task, shown_line(&step.step));
        }
        let step = self.steps.get(&record.task);
        match event {
            Event::RunnerReported(reported) => {
                // Its step may have begun before this run.
                let step = step.map_or_else(|| "program".to_owned(), Clone::clone);
                return self.program_lines(&step, reported, width);
            }
            // What our own agents do in a step is shown at its end.
            _ if step.is_some() => return Vec::new(),
            _ => {}
        }
        if record.task != self.task {
            return self.sub_agent_lines(record, width);
        }
        self.apply(event, width);
        let lines = self.own_lines(event, width);
        self.has_plan |= matches!(event, Event::PlanUpdated(_));
        self.has_introduction |= matches!(event, Event::AgentStart(_));
        if !lines.is_empty() {
            self.last_shown = match event {
                Event::ToolCall(ToolCall { call, .. }) => Some(*call),
                _ => None,
            };
        }
        if let Event::ToolResult(ToolResult { call, .. }) = event {
            self.requested.remove(call);
        }
        lines
    }

    /// What another program prints that works on a step of a workflow.
    fn program_lines(
        &mut self,
        step: &str,
        reported: &RunnerReported,
        width: usize,
    ) -> Vec<String> {
        if let Some(activity) = &reported.activity {
            self.activity = one_line(&format!("{step}: {}", shown_line(activity)), width);
        }
        let output = strip_controls(reported.output.as_deref().unwrap_or_default());
        let lines: Vec<_> = output.lines().filter(|line| !line.trim().is_empty()).collect();
        let shown_of = |line: &&str| {
            let line = one_line(&format!("{step}: {}", shown(line.trim_end())), width);
            self.paint.dim(&format!("  {line}"))
        };
        let more = lines.len().saturating_sub(PROGRAM_LINES);
        let rest = (more > 0).then(|| self.paint.dim(&format!("  {step}: … {more} more lines")));
        lines.iter().take(PROGRAM_LINES).map(shown_of).chain(rest).collect()
    }

    /// One line per call of a sub-agent, with its label in front, and why a call was denied.
    fn sub_agent_lines(&mut self, record: &Record, width: usize) -> Vec<String> {
        let label = self.sub_agents.get(&record.task).map_or("sub-agent", String::as_str);
        let line = |text: &str| one_line(&format!("{label}: {text}"), width);
        let counted = self.below.get(&record.task).copied().unwrap_or(record.task);
        let dimmed = |line: &str| vec![self.paint.dim(&format!("  {line}"))];
        match &record.event {
            Event::LlmRequest(_) => {
                self.activity = line("thinking");
                Vec::new()
            }
            Event::LlmResponse(response) => {
                self.usage.apply_sub_agent(counted, &response.usage);
                self.requested.extend(response.calls.iter().map(call_with_line));
                Vec::new()
            }
            Event::CompactionProgress(part) => {
                self.usage.apply_sub_agent(counted, &part.usage);
                Vec::new()
            }
            Event::ToolResult(result) => {
                let call = self.requested.remove(&result.call);
                if result.outcome.ending != CallEnding::Denied {
                    return Vec::new();
                }
                // The request may be older than this run.
                let call = call.unwrap_or_else(|| shown_line(&result.tool));
                let outcome = tool_lines::outcome(
                    &result.tool,
                    &result.outcome,
                    self.paint,
                    width,
                    self.detail,
                );
                let outcome = outcome.iter().map(|line| format!("  {line}"));
                dimmed(&line(&format!("✗ {call}"))).into_iter().chain(outcome).collect()
            }
            // `SubAgentSpawn` shows it.
            Event::ToolCall(call) if call.tool == tool_name::SPAWN_AGENT => Vec::new(),
            Event::ToolCall(call) => {
                let line = line(&tool_lines::call(&call.tool, &call.arguments, width));
                let lines = dimmed(&line);
                self.activity = line;
                lines
            }
            Event::SubAgentSpawn(spawn) => dimmed(&line(&shown(&spawn_text(spawn)))),
            _ => Vec::new(),
        }
    }

    fn apply(&mut self, event: &Event, width: usize) {
        match event {
            Event::AgentStart(start) => self.usage.apply_start(start),
            Event::LlmRequest(_) => {
                self.is_replying = true;
                "thinking".clone_into(&mut self.activity);
            }
            Event::LlmResponse(response) => {
                self.is_replying = false;
                self.usage.apply_reply(response);
                self.requested.extend(response.calls.iter().map(call_with_line));
            }
            Event::ToolCall(call) => {
                self.activity = tool_lines::call(&call.tool, &call.arguments, width);
            }
            Event::PlanUpdated(plan) => self.usage.apply_plan(plan),
            Event::MemoryFlush(_) => self.is_saving_notes = true,
            Event::CompactionStart(_) => self.is_saving_notes = false,
            Event::CompactionProgress(part) => self.usage.apply_summary(&part.usage),
            Event::SubAgentComplete(end) => self.usage.apply_sub_agent_end(end),
            _ => {}
        }
    }

    fn own_lines(&self, event: &Event, width: usize) -> Vec<String> {
        let paint = self.paint;
        let text = |text: &str| one_line(&shown(text.trim_end()), width);
        match event {
            // A segment that follows an answer given here needs no introduction.
            Event::AgentStart(_) if self.has_introduction => Vec::new(),
            Event::AgentStart(start) => {
                let mut lines = vec![paint.dim(&introduction(start, width))];
                if !start.sandbox_gaps.is_empty() {
                    // Whole, however long: what a command could do is not in any other place.
                    let gaps = one_line(&shown(start.sandbox_gaps.trim_end()), usize::MAX);
                    lines.push(paint.yellow(&format!("sandbox: {gaps}")));
                }
                lines
            }
            Event::SandboxStarted(started) => {
                vec![paint.dim(&text(&format!("sandbox {}: {}", started.kind, started.isolation)))]
            }
            // It ends the task, and the end says why.
            Event::SandboxLost(lost) if lost.message.is_empty() => Vec::new(),
            Event::SandboxLost(lost) => {
                vec![paint.yellow(&text(&format!("sandbox lost: {}", lost.reason)))]
            }
            Event::LlmResponse(response) => self.reply_lines(response, width),
            Event::ReasoningDropped(_) => {
                vec![paint.yellow("! the server refuses earlier reasoning: continuing without it")]
            }
            Event::ToolCall(call) => tool_lines::start(call, paint, width, self.detail),
            Event::ToolResult(result) => self.result_lines(result, width),
            Event::PlanUpdated(plan) => self.plan_lines(plan, width),
            Event::DeliverablePublished(file) => {
                let line = text(&format!("{}: {}", file.filepath, file.description));
                vec![format!("{} {line}", paint.green("published"))]
            }
            Event::InjectionReceived(injection)
                if injection.control.is_none() || injection.is_from_person() =>
            {
                vec![format!("{} {}", paint.cyan("←"), text(injection.text_for_people()))]
            }
            Event::ModeChanged(changed) => {
                vec![paint.cyan(&text(&format!("mode: {}", changed.to)))]
            }
            Event::DoomLoopDetected(detected) => {
                vec![paint.yellow(&text(&format!("! repeating itself: {}", detected.pattern)))]
            }
            Event::CommandExited(exited) => {
                vec![text(&format!("• {} ended: {}", exited.command, exited.exit))]
            }
            Event::MemoryFlush(_) => vec![paint.dim("context is filling up: saving notes")],
            // Nothing could be summarized; the end of the run says what follows from that.
            Event::CompactionEnd(end) if end.summarized_turns == 0 => Vec::new(),
            Event::CompactionEnd(end) => vec![paint.dim(&text(&compaction_line(end)))],
            Event::SubAgentSpawn(spawn) => vec![text(&spawn_text(spawn))],
            Event::SubAgentComplete(done) => {
                let error = done.error.as_deref().filter(|_| done.output.is_empty());
                let output = error.unwrap_or(&done.output);
                vec![text(&format!("↲ {} {}: {output}", done.label, done.status))]
            }
            Event::BudgetHit(hit) => {
                let [spent, limit] = [hit.spent, hit.limit].map(|amount| match hit.budget {
                    BudgetKind::Cost => numbers::dollars(amount),
                    BudgetKind::Tokens | BudgetKind::Turns | BudgetKind::Time => {
                        format!("{amount:.0}")
                    }
                });
                let used = format!("! {} budget: {spent} of {limit} used", hit.budget);
                vec![paint.yellow(&text(&used))]
            }
            Event::WorkflowStepStarted(step) => {
                let words = event.words();
                let mark = if step.attempt > 1 { "↻" } else { "▸" };
                vec![text(&format!("{mark} {words}"))]
            }
            Event::WorkflowStepEnded(step) => {
                let words = text(&event.words());
                vec![match step.result {
                    StepResult::Succeeded => paint.green(&format!("✓ {words}")),
                    StepResult::Failed => paint.yellow(&format!("✗ {words}")),
                    StepResult::Skipped => paint.dim(&format!("- {words}")),
                }]
            }
            Event::WorktreeChanged(_) | Event::MergeChanged(_) => {
                vec![paint.dim(&text(&event.words()))]
            }
            // The other kinds are not shown while a task runs.
            _ => Vec::new(),
        }
    }

    /// What a call came to, after the line of the call where that is not the last line.
    fn result_lines(&self, result: &ToolResult, width: usize) -> Vec<String> {
        if self.is_saving_notes && result.outcome.ending == CallEnding::Denied {
            return Vec::new();
        }
        let outcome =
            tool_lines::outcome(&result.tool, &result.outcome, self.paint, width, self.detail);
        // Several calls may run side by side, so a result names its call unless that is right above it.
        let is_below = self.last_shown == Some(result.call);
        let call = self.requested.get(&result.call).filter(|_| !outcome.is_empty() && !is_below);
        let call = call.map(|call| {
            let mark = if result.outcome.is_error() { "✗" } else { "•" };
            self.paint.dim(&format!("{mark} {}", one_line(call, width)))
        });
        call.into_iter().chain(outcome).collect()
    }

    /// What the model thinks, and what it says between its calls. Its final answer is shown at the end of the run, unless it
    /// is incomplete.
    fn reply_lines(&self, response: &LlmResponse, width: usize) -> Vec<String> {
        let thought = response
            .reasoning
            .iter()
            .flat_map(|of| reasoning::lines(of, self.paint, width, self.detail))
            .map(|line| format!("  {line}"));
        let why = match response.finish {
            _ if !response.calls.is_empty() => None,
            Finish::Stop | Finish::ToolCalls => return thought.collect(),
            Finish::Length => Some("cut at the model's output limit"),
            Finish::ContentFilter => Some("stopped by the provider's content filter"),
        };
        let text = markdown::render(&strip_controls(&response.text), self.paint, width);
        let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
        let more = (lines.len() > REPLY_LINES).then(|| "  …".to_owned());
        let shown = lines.iter().take(REPLY_LINES).map(|line| format!("  {line}"));
        let why = why.map(|why| self.paint.yellow(&format!("  … {why}")));
        thought.chain(shown).chain(more).chain(why).collect()
    }

    /// The whole plan when it is made, one line whenever it changes.
    fn plan_lines(&self, plan: &WorkingPlan, width: usize) -> Vec<String> {
        if self.has_plan {
            return vec![self.paint.bold(&self.usage.plan(width).unwrap_or_default())];
        }
        let heading = self.paint.bold(&format!("plan {}/{}", plan.done(), plan.steps.len()));
        let steps = plan.steps.iter().map(|step| {
            let description = one_line(&shown(&step.description), width);
            format!("  {} {description}", step.status.icon())
        });
        [heading].into_iter().chain(steps).collect()
    }
}

fn call_with_line(request: &ToolRequest) -> (CallId, String) {
    let arguments = serde_json::from_str(&request.arguments).unwrap_or_default();
    (request.id, tool_lines::call(&request.name, &arguments, DEFAULT_WIDTH))
}

/// The call that an interrupted task continues with; no event announces it again.
fn call_in_progress(state: &TaskState) -> Option<String> {
    let call = state.last_reply.open_calls.first()?;
    let Stage::Started(call) = &call.stage else { return None };
    Some(tool_lines::call(&call.tool, &call.arguments, DEFAULT_WIDTH))
}

/// A new sub-agent: its label and its task.
fn spawn_text(spawn: &SubAgentSpawn) -> String {
    format!("↳ {}: {}", spawn.label, spawn.task)
}

fn compaction_line(end: &CompactionEnd) -> String {
    let by = match end.source {
        Source::Model => "",
        Source::Extract => "; no model could summarize, so the summary is an extract",
        Source::Mixed => "; the model summarized only a part, the rest is an extract",
    };
    format!(
        "context compacted: {} summarized, {} kept, {} → {} tokens{by}",
        numbers::plural(end.summarized_turns, "turn"),
        end.kept_turns,
        end.tokens_before,
        end.tokens_after
    )
}

/// The task, its model and its sandbox; why this sandbox was chosen only where the line has room.
fn introduction(start: &AgentStart, width: usize) -> String {
    let model = match start.model.strip_prefix("script:") {
        Some(path) => format!("script:{}", path.rsplit('/').next().unwrap_or(path)),
        None => start.model.clone(),
    };
    let line = |sandbox: &str| shown_line(&format!("{} · {model} · {sandbox}", start.task_id));
    let whole = line(&start.container);
    let short = start.container.split(" (").next().unwrap_or(&start.container);
    if whole.width() <= width { whole } else { line(short) }
}

#[cfg(test)]
mod tests;
