//! Properties of generated journals: replay equals live, and rebuilt projections equal kept ones.

use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;
use windlass_core::axes::{Axes, PermissionProfile, WorkMode};
use windlass_core::command::{
    Deliverable, DeliverableType, ResultStatus, TaskResult, UsageMetrics,
};
use windlass_core::error::{ErrorDetails, ErrorType};
use windlass_core::event::{
    AgentStart, CommandExited, DoomLoopDetected, Event, LlmResponse, ModeChanged, QuestionAnswered,
    QuestionClosed, RiskCheck, SandboxLost, SandboxStarted, StatusChanged, ToolCall, ToolResult,
};
use windlass_core::id::{CallId, QuestionId, TaskId};
use windlass_core::injection::Injection;
use windlass_core::message::{Finish, ToolRequest, Usage};
use windlass_core::outcome::{Outcome, Recovery};
use windlass_core::plan::{Step, StepStatus, WorkingPlan};
use windlass_core::policy::{Class, Decision, Risk};
use windlass_core::question::{AcceptedAnswers, Answer, Question, QuestionKind};
use windlass_core::role::Role;
use windlass_core::session::{Scope, Source};
use windlass_core::state::{Stage, TaskState};
use windlass_core::status::{StatusReason, TaskStatus};
use windlass_store::{Difference, Filter, Level, SessionRow, Store};

use crate::world::{World, at, created_at, injection_id, request};

/// One step of a generated journal; what it becomes depends on the state of the task.
#[derive(Clone, Debug)]
struct Choice {
    task: usize,
    kind: u8,
    detail: u8,
    amount: u16,
    synced: bool,
}

fn choice() -> impl Strategy<Value = Choice> {
    (0usize..2, 0u8..19, any::<u8>(), any::<u16>(), any::<bool>()).prop_map(
        |(task, kind, detail, amount, synced)| Choice { task, kind, detail, amount, synced },
    )
}

fn pick<T: Copy>(all: &[T], by: u8) -> T {
    all[by as usize % all.len()]
}

/// The event that a choice comes to; `None` when the task is not where it could happen.
fn event(choice: &Choice, state: &TaskState, at: Timestamp) -> Option<Event> {
    let (detail, amount) = (choice.detail, choice.amount);
    let text = || format!("text {amount}");
    let open_call = || {
        state.last_reply.open_calls.get(detail as usize % state.last_reply.open_calls.len().max(1))
    };
    let open_question = || state.open_questions.iter().next().map(|asked| asked.id);
    Some(match choice.kind {
        0..=2 => status(state, detail, amount),
        3 => Event::AgentStart(Box::new(start(state))),
        4 => request(),
        5 | 6 => Event::LlmResponse(response(detail, amount, at)),
        7 => Event::ToolCall(ToolCall {
            call: open_call().filter(|call| call.stage == Stage::Waiting)?.request.id,
            tool: "bash".to_owned(),
            arguments: serde_json::json!({ "command": text() }),
            recovery: pick_recovery(detail),
        }),
        8 => Event::ToolResult(ToolResult {
            call: open_call()?.request.id,
            tool: "bash".to_owned(),
            outcome: if detail % 2 == 0 { Outcome::ok(text()) } else { Outcome::error(text()) },
            duration_ms: amount.into(),
            segment_ms: None,
        }),
        9 => Event::QuestionAsked(Question {
            id: QuestionId::new(at),
            kind: pick(QuestionKind::ALL, detail),
            call: None,
            question: text(),
            options: Vec::new(),
            context: None,
            binding: None,
            diff: None,
            grants: None,
            accepts: AcceptedAnswers::Words,
            asked: None,
            plan: None,
        }),
        10 => Event::QuestionAnswered(QuestionAnswered {
            question: open_question()?,
            answer: Answer { text: text(), by: "ann".to_owned(), at },
        }),
        11 => Event::QuestionClosed(QuestionClosed { question: open_question()?, reason: text() }),
        12 => Event::PlanUpdated(WorkingPlan {
            steps: vec![Step {
                id: "1".to_owned(),
                description: text(),
                status: pick(StepStatus::ALL, detail),
                notes: None,
            }],
            ..WorkingPlan::default()
        }),
        13 => Event::DeliverablePublished(Deliverable {
            filepath: format!("output/{}.md", detail % 3),
            description: text(),
            kind: pick(DeliverableType::ALL, detail),
            content: (detail % 2 == 0).then(text),
            size_bytes: Some(amount.into()),
        }),
        14 => Event::ModeChanged(ModeChanged {
            from: state.axes,
            to: Axes {
                work_mode: pick(WorkMode::ALL, detail),
                permission_profile: pick(PermissionProfile::ALL, detail / 8),
                ..state.axes
            },
            role: (amount % 2 == 0).then(|| pick(Role::ALL, detail)),
            wanted: Default::default(),
            reason: text(),
            scope: Scope::Now,
            source: Source::User,
            by: String::new(),
            change: None,
            reverts: false,
            task: None,
        }),
        15 => Event::AgentEnd(Box::new(result(state))),
        16 => Event::InjectionReceived(Injection::message(injection_id(), text())),
        17 => aside(detail, amount, at),
        _ => Event::RiskCheck(RiskCheck {
            call: CallId::new(at),
            tool: "bash".to_owned(),
            class: Class::LocalCommand,
            risk: Risk::Medium,
            decision: Decision::Allow,
            reason: text(),
            axes: state.axes,
        }),
    })
}

fn status(state: &TaskState, detail: u8, amount: u16) -> Event {
    Event::StatusChanged(StatusChanged {
        detail: amount.is_multiple_of(2).then(|| format!("because {amount}")),
        error: amount.is_multiple_of(3).then(|| ErrorDetails::new(ErrorType::Timeout, "too slow")),
        ..StatusChanged::new(
            state.status,
            pick(TaskStatus::ALL, detail),
            pick(StatusReason::ALL, detail / 2),
        )
    })
}

fn start(state: &TaskState) -> AgentStart {
    AgentStart {
        sandbox_gaps: String::new(),
        skills: Default::default(),
        task_id: state.id(),
        goal: state.command().goal.clone(),
        model: "test/model".to_owned(),
        container: "local".to_owned(),
        tools: Vec::new(),
        risk_policy: "trusted".to_owned(),
        axes: None,
        role: None,
        max_iterations: 200,
        timeout_ms: None,
        compaction_config: serde_json::json!({}),
        guard: None,
        prelude: None,
        context: Vec::new(),
        said: Vec::new(),
        followed_skills: Vec::new(),
    }
}

fn response(detail: u8, amount: u16, at: Timestamp) -> LlmResponse {
    let call = |index| ToolRequest {
        id: CallId::new(at),
        provider_id: format!("c{index}"),
        name: "bash".to_owned(),
        arguments: "{}".to_owned(),
    };
    LlmResponse {
        text: format!("reply {amount}"),
        calls: (0..detail % 3).map(call).collect(),
        reasoning: None,
        finish: Finish::Stop,
        usage: Usage {
            input_tokens: amount.into(),
            output_tokens: u64::from(detail),
            cost_usd: (!detail.is_multiple_of(4)).then(|| f64::from(amount) / 7.0),
            ..Usage::default()
        },
        model: "test/model".to_owned(),
        latency_ms: 5,
        segment_ms: None,
    }
}

fn pick_recovery(detail: u8) -> Recovery {
    match detail % 3 {
        0 => Recovery::Rerun,
        1 => Recovery::Reattach { id: "x".to_owned() },
        _ => Recovery::Unknown,
    }
}

fn result(state: &TaskState) -> TaskResult {
    let usage = UsageMetrics { duration_ms: state.work().active_ms(), ..state.spending.usage };
    TaskResult {
        task_id: state.id(),
        session_id: state.command().session_id,
        command_id: state.command().command_id,
        status: ResultStatus::Paused,
        partial: false,
        deliverables: state.files.deliverables.values().cloned().collect(),
        final_message: state.last_reply.final_text.clone(),
        evidence_refs: Vec::new(),
        working_memory: None,
        usage,
        cost_usd: None,
        error_details: None,
        hitl_request: None,
        contract: None,
    }
}

fn aside(detail: u8, amount: u16, at: Timestamp) -> Event {
    let text = format!("aside {amount}");
    match detail % 4 {
        0 => Event::SandboxStarted(SandboxStarted {
            kind: "local".to_owned(),
            container_id: Some(text.clone()),
            isolation: text,
        }),
        1 => Event::SandboxLost(SandboxLost { reason: text.clone(), message: text }),
        2 => Event::DoomLoopDetected(DoomLoopDetected {
            pattern: text.clone(),
            intervention: 1,
            message: text,
        }),
        _ => Event::CommandExited(CommandExited {
            call: CallId::new(at),
            command: text.clone(),
            exit: "0".to_owned(),
            message: text,
        }),
    }
}

/// Everything that the projections answer.
fn answers(store: &Store) -> String {
    let tasks = store.tasks().list(&Filter::default()).unwrap();
    let mut text = String::new();
    for row in tasks {
        text += &format!("{row:#?}\n{:?}\n", store.sessions().get(row.session_id).unwrap());
        text += &format!("{:?}\n", store.tasks().deliverables(row.id).unwrap());
        text += &format!("{:?}\n", store.tasks().transitions(row.id).unwrap());
    }
    text + &format!("{:?}\n", store.questions().all().unwrap())
}

async fn check(choices: Vec<Choice>) {
    let world = World::new();
    let store = world.open();
    let mut tasks: Vec<(TaskId, TaskState)> = Vec::new();
    let mut owners = Vec::new();
    for second in 0..2 {
        let created = created_at(at(second));
        let begun = Event::TaskCreated(Box::new(created.clone()));
        let task = store.tasks().create(at(second), created).await.unwrap().task();
        owners.push(store.owners().own(task).await.unwrap());
        tasks.push((task, TaskState::begin(at(second), &begun).unwrap()));
    }
    let mut live = vec![Vec::new(); 2];
    for (step, choice) in choices.iter().enumerate() {
        let at = at(10 + step as i64) + SignedDuration::from_nanos(1_001 * step as i64);
        let (_, state) = &mut tasks[choice.task];
        let Some(event) = event(choice, state, at) else { continue };
        let mut after = state.clone();
        if after.apply(at, &event).is_err() {
            continue;
        }
        *state = after;
        let level = if choice.synced { Level::Synced } else { Level::Written };
        live[choice.task].extend(owners[choice.task].append(at, vec![event], level).await.unwrap());
    }

    for ((task, state), live) in tasks.iter().zip(&live) {
        let journal = store.journal().of(*task).unwrap();
        assert_eq!(journal[1..], live[..], "what is read is what was appended");
        let events = journal.iter().map(|record| (record.at, &record.event));
        let replayed = TaskState::fold(events).unwrap().unwrap();
        assert_eq!(&replayed, state, "replay equals live");
        let row = store.tasks().get(*task).unwrap().unwrap();
        assert_eq!((row.status, row.reason), (state.status, state.reason));
        assert_eq!((row.axes, &row.plan, &row.error), (state.axes, &state.plan, &state.error));
        assert_eq!(
            (row.cost_spent, row.retry_count),
            (state.spending.cost_usd, state.attempts.retries)
        );
        assert_eq!(row.usage.total_tokens, state.spending.usage.total_tokens);
        let published: Vec<_> = state.files.deliverables.values().cloned().collect();
        assert_eq!(store.tasks().deliverables(*task).unwrap(), published);
    }
    let open = store.questions().open().unwrap().len();
    let live = tasks.iter().filter(|(_, state)| !state.status.is_terminal());
    assert_eq!(open, live.map(|(_, state)| state.open_questions.iter().count()).sum::<usize>());

    assert_eq!(store.projections().verify().unwrap(), [], "kept projections equal rebuilt ones");
    let before = answers(&store);
    let sessions = store.sessions().newest(u32::MAX).unwrap();
    let of_session = |row: &SessionRow| store.sessions().journal(row.id).unwrap().len();
    let of_sessions: usize = sessions.iter().map(of_session).sum();
    let total = store.journal().since(0, usize::MAX).unwrap().len() + of_sessions;
    assert_eq!(store.projections().rebuild().await.unwrap(), total as u64);
    assert_eq!(answers(&store), before, "a rebuild changes nothing");
    for owner in owners {
        // Nor does it take a task from its owner.
        owner.append(at(9999), vec![request()], Level::Written).await.unwrap();
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn replay_equals_live_and_rebuilt_projections_equal_kept_ones(
        choices in proptest::collection::vec(choice(), 0..80)
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(check(choices));
    }
}

#[tokio::test]
async fn a_projection_that_was_tampered_with_is_found_and_fixed() {
    let world = World::new();
    let store = world.open();
    let task = store.tasks().create(at(0), created_at(at(0))).await.unwrap().task();
    let message = Injection::message(injection_id(), "still here");
    store.mailbox().inject(task, message, at(1)).await.unwrap();
    let database = rusqlite::Connection::open(world.dir.path().join("windlass.db")).unwrap();
    database
        .execute_batch(
            "UPDATE tasks SET status = 'done';
         INSERT INTO task_transitions (task_id, from_status, to_status, timestamp)
             VALUES ('task_x', 'todo', 'done', 'never');
         UPDATE sessions SET active_task_id = NULL",
        )
        .unwrap();
    let said: Vec<_> =
        store.projections().verify().unwrap().iter().map(Difference::to_string).collect();
    let session = store.tasks().get(task).unwrap().unwrap().session_id;
    assert_eq!(
        said,
        [
            format!(
                "`sessions` `{session}` has `active_task_id` nothing, and the journal says `{task}`"
            ),
            format!("`tasks` `{task}` has `status` `done`, and the journal says `todo`"),
            "`task_transitions` has `1`, which is not in the journal".to_owned(),
        ]
    );
    // The task's creation, and what its session has of it.
    assert_eq!(store.projections().rebuild().await.unwrap(), 3);
    assert_eq!(store.projections().verify().unwrap(), []);
    assert_eq!(store.mailbox().pending(task).unwrap().len(), 1);
}

#[tokio::test]
async fn an_event_of_a_later_version_is_an_error() {
    let world = World::new();
    let store = world.open();
    let task = store.tasks().create(at(0), created_at(at(0))).await.unwrap().task();
    let database = rusqlite::Connection::open(world.dir.path().join("windlass.db")).unwrap();
    database.execute("UPDATE journal SET v = 9, hash = NULL", []).unwrap();
    let error = store.journal().of(task).unwrap_err();
    assert_eq!(error.to_string(), "event 1 of the journal cannot be read");
    let source = std::error::Error::source(&error).unwrap().to_string();
    assert_eq!(source, "event `task_created` version 9 cannot be read");
}
