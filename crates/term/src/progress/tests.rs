use jiff::Timestamp;
use windlass_core::axes::Axes;
use windlass_core::command::{TaskCommand, UsageMetrics};
use windlass_core::event::{Driver, StepStarted, SubAgentComplete, SubAgentStatus, TaskCreated};
use windlass_core::id::SessionId;
use windlass_core::message::Usage;
use windlass_core::outcome::Outcome;
use windlass_core::policy::denial::Denial;

use super::*;

const NOW: Timestamp = Timestamp::UNIX_EPOCH;

fn progress() -> Progress {
    let command = TaskCommand::new(NOW, SessionId::new(NOW), "x");
    let created = TaskCreated {
        max_retries: 3,
        ..TaskCreated::new(command, Axes::headless(), "/w", Driver::Foreground)
    };
    let state = TaskState::begin(NOW, &Event::TaskCreated(Box::new(created))).unwrap();
    Progress::new(state.id(), &state, Paint::default())
}

fn spawn(label: &str) -> SubAgentSpawn {
    SubAgentSpawn {
        call: CallId::new(NOW),
        task_id: TaskId::new(NOW),
        label: label.to_owned(),
        task: "publish it".to_owned(),
        timeout_ms: 1000,
        model: "m".to_owned(),
        model_mode: None,
        axes: Axes::headless(),
        role: None,
        depth: 1,
        write_output_to: None,
    }
}

fn reply(call: CallId) -> Event {
    let request = ToolRequest {
        id: call,
        provider_id: "1".to_owned(),
        name: "bash".to_owned(),
        arguments: r#"{"command": "git push"}"#.to_owned(),
    };
    Event::LlmResponse(LlmResponse {
        text: String::new(),
        calls: vec![request],
        reasoning: None,
        finish: Finish::ToolCalls,
        usage: Usage::default(),
        model: "m".to_owned(),
        latency_ms: 1,
        segment_ms: None,
    })
}

fn denied(call: CallId) -> Event {
    let denial = Denial {
        tool: "bash".to_owned(),
        reason: "it reaches the network".to_owned(),
        suggestions: Vec::new(),
        can_retry: false,
    };
    let outcome = Outcome::denied(denial);
    Event::ToolResult(ToolResult {
        call,
        tool: "bash".to_owned(),
        outcome,
        duration_ms: 0,
        segment_ms: None,
    })
}

fn lines(progress: &mut Progress, task: TaskId, event: Event) -> Vec<String> {
    progress.lines(&Record { pos: 1, task, seq: 1, at: NOW, iteration: 1, event }, 80)
}

#[test]
fn a_denied_call_of_a_sub_agent_is_shown_with_its_reason() {
    let (mut progress, spawn, call) = (progress(), spawn("publisher"), CallId::new(NOW));
    let (root, sub_agent) = (progress.task, spawn.task_id);
    lines(&mut progress, root, Event::SubAgentSpawn(spawn));
    assert!(lines(&mut progress, sub_agent, reply(call)).is_empty());
    let shown = ["  publisher: ✗ $ git push", "    denied: it reaches the network"];
    assert_eq!(lines(&mut progress, sub_agent, denied(call)), shown);
}

/// Its request was journaled before this run, so only the tool is known.
#[test]
fn a_call_denied_in_a_later_run_is_shown_by_its_tool() {
    let (mut progress, call) = (progress(), CallId::new(NOW));
    let shown = ["  sub-agent: ✗ bash", "    denied: it reaches the network"];
    assert_eq!(lines(&mut progress, TaskId::new(NOW), denied(call)), shown);
}

#[test]
fn what_a_program_prints_is_shown_below_its_step() {
    let (mut progress, task) = (progress(), TaskId::new(NOW));
    let step = StepStarted {
        step: "build".to_owned(),
        attempt: 1,
        kind: "agent".to_owned(),
        task: Some(task),
        text: String::new(),
    };
    let root = progress.task;
    lines(&mut progress, root, Event::WorkflowStepStarted(Box::new(step)));
    let printed = |output: &str| {
        let output = Some(output.to_owned());
        Event::RunnerReported(Box::new(RunnerReported { output, ..RunnerReported::default() }))
    };
    let shown = lines(&mut progress, task, printed("one\n\n\u{1b}[31mtwo\u{1b}[0m\n"));
    assert_eq!(shown, ["  build: one", "  build: two"]);
    let shown = lines(&mut progress, task, printed(&"line\n".repeat(20)));
    assert_eq!((shown.len(), shown[8].as_str()), (9, "  build: … 12 more lines"));
}

/// Whoever watched the whole work and whoever comes later see the same total.
#[test]
fn a_sub_agent_is_counted_once_watched_or_not() {
    let totals = [0, 1, 2].map(|watched| {
        let (mut progress, first, second) = (progress(), spawn("first"), spawn("second"));
        let (root, child, grandchild) = (progress.task, first.task_id, second.task_id);
        let end = SubAgentComplete {
            call: first.call,
            task_id: child,
            label: "first".to_owned(),
            status: SubAgentStatus::Completed,
            output: String::new(),
            usage: UsageMetrics {
                total_tokens: 3300,
                input_tokens: 3000,
                output_tokens: 300,
                ..UsageMetrics::default()
            },
            cost_usd: Some(0.75),
            duration_ms: 1,
            error: None,
            files_changed: Vec::new(),
            verdict: None,
        };
        let used = || {
            let mut event = reply(CallId::new(NOW));
            if let Event::LlmResponse(response) = &mut event {
                let usage = Usage { input_tokens: 1000, output_tokens: 100, ..Usage::default() };
                response.usage = Usage { cost_usd: Some(0.25), ..usage };
            }
            event
        };
        lines(&mut progress, root, Event::SubAgentSpawn(first));
        lines(&mut progress, child, Event::SubAgentSpawn(second));
        for worker in [child, grandchild].into_iter().take(watched) {
            lines(&mut progress, worker, used());
        }
        lines(&mut progress, root, Event::SubAgentComplete(Box::new(end)));
        [StatusPart::Tokens, StatusPart::Cost]
            .map(|part| progress.usage_part(part, Duration::ZERO, Paint::default()).unwrap())
    });
    let all = ["3300 tokens".to_owned(), "$0.75".to_owned()];
    assert_eq!(totals, [all.clone(), all.clone(), all]);
}
