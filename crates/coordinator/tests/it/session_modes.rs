//! Axes that change while an agent works: scopes, sources, and what the model is told.

use windlass_coordinator::slash::SlashInput;
use windlass_coordinator::{AxesOrder, CoordinatorLimits, Error};
use windlass_core::axes::{PermissionProfile, RunControl};
use windlass_core::event::{Event, StatusChanged};
use windlass_core::id::TaskId;
use windlass_core::session::{AxesChange, Scope, Source};
use windlass_core::status::{StatusReason, TaskStatus};
use windlass_store::Level;

use crate::conversations::Talking;

/// A call that says when it runs and then waits until it may end.
const WAITS: &str = "echo > started; cat go";

/// A conversation whose first reply runs that call.
async fn waiting(after: &str) -> Talking {
    let talking = Talking::begin(&format!(
        "goal: unused\nreplies:\n  - bash: {WAITS:?}\n{after}  - say: done\n  - say: later\n  - say: last\n"
    ))
    .await;
    talking.run("/mode build --autonomous --permission-profile trusted").await;
    for pipe in ["started", "go"] {
        let path = talking.stage.workspace().join(pipe);
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    }
    talking
}

/// Says something, and does this while the call runs.
async fn meanwhile(talking: &Talking, text: &str, line: &str) -> TaskId {
    let pipe = |name: &str| talking.stage.workspace().join(name);
    let (started, go) = (pipe("started"), pipe("go"));
    let steering = async {
        tokio::fs::read(started).await.unwrap();
        let said = talking.run(line).await;
        tokio::fs::write(go, "").await.unwrap();
        said
    };
    let (task, _) = tokio::join!(talking.say(text), steering);
    task
}

/// The journal of a task as kinds, from the first call on.
fn kinds(talking: &Talking, task: TaskId) -> Vec<&'static str> {
    let journal = talking.stage.store.journal().of(task).unwrap();
    let kinds = journal.iter().map(|record| record.event.kind());
    kinds.skip_while(|kind| *kind != "tool_call").collect()
}

fn scopes(talking: &Talking) -> Vec<String> {
    let rows = talking.stage.store.sessions().transitions(talking.id).unwrap();
    rows.iter().map(|row| format!("{} {} {}", row.scope, row.source, row.to)).collect()
}

/// MS-057, MS-060, MS-061, MS-087, MS-210: the running call ends as it was, then the change counts, and the next
/// request has the new rules and tools.
#[tokio::test]
async fn a_steered_mode_counts_when_the_running_call_has_ended() {
    let talking = waiting("").await;
    let task = meanwhile(&talking, "work", "/steer mode review").await;
    let kinds = kinds(&talking, task);
    let place = |kind: &str| kinds.iter().position(|one| *one == kind).unwrap();
    assert!(place("tool_result") < place("mode_changed"), "{kinds:?}");
    assert!(place("mode_changed") < place("prompt_changed"), "{kinds:?}");
    assert!(place("prompt_changed") < place("llm_request"), "{kinds:?}");
    let sent = talking.sent();
    assert!(sent[0].contains(r#""name":"write""#) && !sent[1].contains(r#""name":"write""#));
    assert!(sent[1].contains("The mode has changed to `review | autonomous | trusted | deep`"));
    assert_eq!(
        scopes(&talking),
        [
            "now user build | autonomous | trusted | smart",
            "after-current-tool user review | autonomous | trusted | deep"
        ]
    );
    let rows = talking.stage.store.sessions().transitions(talking.id).unwrap();
    assert_eq!(rows[1].task_id, Some(task));
    let json = serde_json::to_value(&rows[1]).unwrap();
    for key in ["timestamp", "from", "to", "reason", "scope", "sessionId", "source"] {
        assert!(json.get(key).is_some(), "{key} in {json}");
    }
    assert!(talking.stage.store.projections().verify().unwrap().is_empty());
}

/// MS-056, MS-089: the calls of the same reply that have not begun are decided by the new axes.
#[tokio::test]
async fn a_change_now_decides_about_calls_that_have_not_begun() {
    let script = format!(
        "goal: unused\nreplies:\n  - calls: [{{bash: {WAITS:?}}}, {{bash: touch made.txt}}]\n  - say: done\n"
    );
    let talking = Talking::begin(&script).await;
    talking.run("/mode build --autonomous --permission-profile trusted").await;
    for pipe in ["started", "go"] {
        let path = talking.stage.workspace().join(pipe);
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    }
    let task = meanwhile(&talking, "work", "/steer permission-profile restricted now").await;
    assert!(!talking.stage.workspace().join("made.txt").exists());
    let journal = talking.stage.store.journal().of(task).unwrap();
    let decided: Vec<_> = journal
        .iter()
        .filter_map(|record| match &record.event {
            Event::RiskCheck(check) => Some(check.decision.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(decided, ["allow", "deny"], "the call that ran keeps what it was allowed by");
}

/// MS-058, MS-059, MS-088: a change waits for the end of the work that it was asked in.
#[tokio::test]
async fn a_change_after_the_unit_waits_for_its_end() {
    for scope in ["after-current-unit", "next-milestone"] {
        let talking = waiting("  - read: nothing.txt\n").await;
        let line = format!("/steer mode review {scope}");
        let task = meanwhile(&talking, "work", &line).await;
        let sent = talking.sent();
        assert!(sent[2].contains(r#""name":"write""#), "the unit ends as it began");
        let rows = talking.stage.store.sessions().transitions(talking.id).unwrap();
        let last = rows.last().unwrap();
        let end = talking.stage.coordinator.tasks().last_end(task).unwrap().unwrap();
        assert!(last.timestamp >= end.at || last.scope.as_str() == scope, "{last:?}");
        assert_eq!(talking.axes(), "review | autonomous | trusted | deep");
        talking.say("more").await;
        assert!(!talking.sent()[3].contains(r#""name":"write""#), "the next one has the new mode");
    }
}

/// MS-090: for one unit alone, and then as before.
#[tokio::test]
async fn a_change_for_the_next_unit_is_taken_back() {
    let talking = waiting("").await;
    meanwhile(&talking, "work", "/steer model-mode deep for-next-unit").await;
    assert_eq!(talking.axes(), "build | autonomous | trusted | deep");
    talking.say("more").await;
    assert_eq!(talking.axes(), "build | autonomous | trusted | smart");
    assert_eq!(
        scopes(&talking)[1..],
        [
            "for-next-unit user build | autonomous | trusted | deep".to_owned(),
            "for-next-unit user build | autonomous | trusted | smart".to_owned()
        ]
    );
}

/// MS-090: what was changed for good meanwhile stays, also between two changes for the next unit.
#[tokio::test]
async fn the_end_of_a_unit_takes_back_only_what_was_for_it() {
    let talking = Talking::begin("goal: unused\nreplies: [{say: one}, {say: two}]").await;
    talking.run("/model-mode deep for-next-unit").await;
    talking.run("/permission-profile trusted").await;
    talking.run("/control autonomous for-next-unit").await;
    assert_eq!(talking.axes(), "build | autonomous | trusted | deep");
    talking.say("work").await;
    assert_eq!(talking.axes(), "chat | manual | trusted | smart");
}

/// MS-090: the end of a conversation that waits does not count as a unit.
#[tokio::test]
async fn a_clear_leaves_a_change_for_the_next_unit_to_it() {
    for line in ["/clear", "/stop"] {
        let talking = Talking::begin("goal: unused\nreplies: [{say: one}, {say: two}]").await;
        talking.say("hello").await;
        talking.run("/model-mode deep for-next-unit").await;
        talking.run(line).await;
        assert_eq!(talking.axes(), "chat | manual | normal | deep", "{line}");
        talking.say("work").await;
        assert_eq!(talking.axes(), "chat | manual | normal | smart", "{line}");
    }
}

/// MS-056: a change that comes while a task is about to ask does not wait for the answer.
#[tokio::test]
async fn a_change_just_before_a_question_holds_at_once() {
    let script = "
        goal: unused
        replies:
          - ask_user: {question: which colour?}
          - say: done
    ";
    let talking = Talking::begin(script).await;
    let task = talking.say("paint").await;
    assert_eq!(talking.status(task).0, TaskStatus::Blocked);
    // As if the process had read its mail for the last time, and now asks.
    let owner = talking.stage.store.owners().own(task).await.unwrap();
    let moved = |from, to, reason| {
        let moved = Event::StatusChanged(StatusChanged::new(from, to, reason));
        owner.append_to(task, talking.stage.coordinator.now(), vec![moved], Level::Synced)
    };
    moved(TaskStatus::Blocked, TaskStatus::Running, StatusReason::User).await.unwrap();
    let said = talking.run("/mode build").await;
    assert!(said.contains("when the running step has ended"), "{said}");
    assert_eq!(talking.axes(), "chat | manual | normal | smart");
    moved(TaskStatus::Running, TaskStatus::Blocked, StatusReason::Question).await.unwrap();
    assert_eq!(talking.axes(), "build | manual | normal | smart");
    drop(owner);
    assert_eq!(scopes(&talking), ["now user build | manual | normal | smart"]);
    talking.run(&format!("/remote {task} blue")).await;
    talking.stage.drive(task).await;
    let state = talking.stage.coordinator.tasks().state(task).unwrap();
    assert_eq!(state.axes.to_string(), "build | manual | normal | smart");
    assert_eq!(scopes(&talking).len(), 1, "the task follows, and the session has it once");
    assert!(talking.stage.store.projections().verify().unwrap().is_empty());
}

/// A role that the session took at once is not taken again when its task follows.
#[tokio::test]
async fn a_role_is_one_change_of_its_session() {
    let talking = Talking::begin("goal: unused\nreplies: [{say: one}, {say: two}]").await;
    talking.say("hello").await;
    talking.run("/architect").await;
    talking.run("/mode build").await;
    talking.say("more").await;
    assert_eq!(
        scopes(&talking),
        [
            "now role plan | manual | restricted | smart",
            "now user build | manual | restricted | smart"
        ]
    );
    assert_eq!(talking.axes(), "build | manual | restricted | smart");
}

/// A change that nobody waits for counts at once, also for what is parked.
#[tokio::test]
async fn an_idle_session_changes_at_once() {
    let talking = Talking::begin("goal: unused\nreplies: [{say: one}, {say: two}]").await;
    talking.say("hello").await;
    talking.run("/steer mode plan after-current-unit").await;
    assert_eq!(talking.axes(), "plan | manual | normal | smart");
    talking.say("more").await;
    assert!(talking.sent()[1].contains("The mode is read-only"));
}

/// MS-005, MS-049…052, MS-069, MS-074…082, MS-200: every value of every axis, by its own command.
#[tokio::test]
async fn every_axis_has_a_command() {
    let limits = CoordinatorLimits { unrestricted: true, ..CoordinatorLimits::default() };
    let mut talking = Talking::begin("goal: unused\nreplies: []").await;
    talking.stage.coordinator = talking.stage.coordinator.clone().with_limits(limits);
    for (line, axes) in [
        ("/mode plan", "plan | manual | normal | smart"),
        ("/mode build", "build | manual | normal | smart"),
        ("/mode review", "review | manual | normal | deep"),
        ("/mode repair", "repair | manual | normal | deep"),
        ("/mode research", "research | manual | normal | deep"),
        ("/mode chat", "chat | manual | normal | deep"),
        ("/control assisted", "chat | assisted | normal | deep"),
        ("/control autonomous", "build | autonomous | normal | deep"),
        ("/control manual", "build | manual | normal | deep"),
        ("/permission-profile restricted", "build | manual | restricted | deep"),
        ("/permission-profile trusted", "build | manual | trusted | deep"),
        ("/permission-profile unrestricted", "build | manual | unrestricted | deep"),
        ("/permission-profile normal", "build | manual | normal | deep"),
        ("/model-mode fast", "build | manual | normal | fast"),
        ("/model-mode deep", "build | manual | normal | deep"),
        ("/model-mode smart", "build | manual | normal | smart"),
        ("/research", "research | manual | normal | smart"),
        ("/plan", "plan | manual | normal | smart"),
        ("/autonomous", "build | autonomous | normal | smart"),
        ("/next", "build | assisted | normal | smart"),
        ("/implement", "build | assisted | normal | smart"),
        ("/MODE chat", "build | assisted | normal | smart"),
    ] {
        let _ = talking.try_run(line).await;
        assert_eq!(talking.axes(), axes, "{line}");
    }
}

/// MS-084, MS-085, MS-086: several axes by one command are one change.
#[tokio::test]
async fn several_axes_at_once_are_one_change() {
    for (line, axes) in [
        (
            "/mode repair --autonomous --permission-profile normal",
            "repair | autonomous | normal | smart",
        ),
        (
            "/mode build --autonomous --permission-profile trusted",
            "build | autonomous | trusted | smart",
        ),
        (
            "/mode research --autonomous --permission-profile restricted --model-mode deep",
            "research | autonomous | restricted | deep",
        ),
    ] {
        let talking = Talking::begin("goal: unused\nreplies: []").await;
        talking.run(line).await;
        assert_eq!(scopes(&talking), [format!("now user {axes}")], "{line}");
    }
}

/// MS-091, MS-065: what is not allowed is refused with what is, and nothing changes.
#[tokio::test]
async fn a_wrong_value_or_scope_changes_nothing() {
    let talking = Talking::begin("goal: unused\nreplies: []").await;
    for (line, words) in [
        ("/mode party", "allowed: chat, plan, build, review, repair, research"),
        ("/control never", "allowed: manual, assisted, autonomous"),
        ("/permission-profile root", "allowed: restricted, normal, trusted, unrestricted"),
        ("/model-mode slow", "allowed: fast, smart, deep"),
        ("/mode build someday", "allowed: now, after-current-tool, after-current-unit"),
        ("/steer mode build someday", "allowed: now, after-current-tool"),
        ("/steer mode party now", "allowed: chat, plan"),
        ("/mode build now now", "one word too many"),
        ("/mode build --loud", "`--loud` is not an option"),
        ("/mode build --model-mode", "needs a value"),
        ("/control", "needs a value"),
        ("/permission-profile unrestricted", "not allowed until you opt in"),
    ] {
        let error = talking.try_run(line).await.unwrap_err();
        assert!(error.to_string().contains(words), "{line}: {error}");
        assert_eq!(talking.axes(), "chat | manual | normal | smart", "{line}");
    }
    assert_eq!(talking.kinds(), ["session_created"]);
}

/// Two processes that change one session at once: both count, and both are told.
#[tokio::test]
async fn changes_at_the_same_time_all_count() {
    let talking = Talking::begin("goal: unused\nreplies: []").await;
    let session = talking.session();
    let change = |wanted: AxesChange, by: &str| {
        session.change(AxesOrder {
            wanted,
            scope: Scope::Now,
            reason: by.to_owned(),
            source: Source::User,
            by: by.to_owned(),
            id: None,
        })
    };
    let control = AxesChange { run_control: Some(RunControl::Assisted), ..AxesChange::default() };
    let profile = AxesChange {
        permission_profile: Some(PermissionProfile::Restricted),
        ..AxesChange::default()
    };
    let all = futures_util::future::join_all(
        (0..20).map(|number| change(if number % 2 == 0 { control } else { profile }, "somebody")),
    );
    for changed in all.await {
        changed.unwrap();
    }
    assert_eq!(talking.axes(), "chat | assisted | restricted | smart");
    assert_eq!(talking.kinds().len(), 21);
    assert!(talking.stage.store.projections().verify().unwrap().is_empty());
}

/// MS-176, MS-218: an answer from elsewhere may change axes, and both count or neither.
#[tokio::test]
async fn a_remote_answer_may_change_axes() {
    let script = "
        goal: unused
        replies:
          - bash: touch made.txt
          - say: done
    ";
    let talking = Talking::begin(script).await;
    let task = talking.say("make it").await;
    let listed = talking.run("/remote").await;
    assert!(listed.contains(&task.to_string()) && listed.contains("Allow / Deny"), "{listed}");
    let wrong = format!("/remote {task} Perhaps --control autonomous");
    talking.try_run(&wrong).await.unwrap_err();
    assert_eq!(talking.axes(), "chat | manual | normal | smart", "neither");
    talking.run(&format!("/remote {task} Allow --control autonomous --mode build")).await;
    assert_eq!(scopes(&talking), ["now remote build | autonomous | normal | smart"]);
    talking.stage.drive(task).await;
    assert!(talking.stage.workspace().join("made.txt").exists());
}

/// MS-083, MS-073: a model that is named wins over the model mode, until that is taken back.
#[tokio::test]
async fn a_named_model_wins_over_the_model_mode() {
    let talking = Talking::begin("goal: unused\nreplies: [{say: one}]").await;
    talking.run("/model openai/other").await;
    talking.run("/model-mode fast").await;
    let state = talking.session().state().unwrap();
    assert_eq!(state.model.as_deref(), Some("openai/other"));
    let task = talking.say("hello").await;
    let state = talking.stage.coordinator.tasks().state(task).unwrap();
    assert_eq!(state.execution_config().model.as_deref(), Some("openai/other"));
    talking.run("/model default").await;
    assert_eq!(talking.session().state().unwrap().model, None);
}

/// A command that is delivered again changes nothing again.
#[tokio::test]
async fn a_redelivered_command_has_no_further_effect() {
    let talking = Talking::begin("goal: unused\nreplies: []").await;
    for _ in 0..2 {
        let input = SlashInput {
            request: Some("r1".to_owned()),
            ..SlashInput::for_service("/mode build", "ada")
        };
        talking.session().run(input).await.unwrap();
    }
    assert_eq!(scopes(&talking).len(), 1);
}

#[tokio::test]
async fn a_session_that_nobody_has_begun_is_named_in_the_error() {
    let talking = Talking::begin("goal: unused\nreplies: []").await;
    let other = windlass_core::id::SessionId::derived("no", "session");
    let input = SlashInput::here("/mode build", "ada");
    let error = talking.stage.coordinator.session(other).run(input).await.unwrap_err();
    assert!(matches!(error, Error::Store(windlass_store::Error::UnknownSession(_))), "{error}");
}

/// MS-012: assisted work stops after one unit, until a person has looked.
#[tokio::test]
async fn assisted_repair_waits_after_one_unit() {
    let script =
        "goal: fix it\nmode: repair\ncontrol: assisted\nprofile: normal\nreplies: [{say: fixed}]";
    let stage = windlass_testkit::Stage::set(script);
    let task = stage.submit().await;
    stage.drive(task).await;
    let row = stage.store.tasks().get(task).unwrap().unwrap();
    assert_eq!(row.axes.to_string(), "repair | assisted | normal | smart");
    assert_eq!((row.status.as_str(), row.reason.as_str()), ("paused", "awaiting_message"));
}

/// MS-193: what begins, ends or moves a task says by which axes.
#[tokio::test]
async fn lifecycle_records_carry_the_axes() {
    let talking = Talking::begin("goal: unused\nreplies: [{say: one}]").await;
    let task = talking.say("hello").await;
    for record in talking.stage.store.journal().of(task).unwrap() {
        let axes = match &record.event {
            Event::AgentStart(start) => start.axes,
            Event::StatusChanged(moved) => moved.axes,
            _ => continue,
        };
        assert_eq!(axes.unwrap().to_string(), "chat | manual | normal | smart");
    }
}
