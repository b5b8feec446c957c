//! Where a message goes: one model call, six decisions, a fallback; slash commands go around it.

use windlass_coordinator::TriggerOutcome;
use windlass_core::status::TaskStatus;
use windlass_store::Filter;

use crate::world::World;

const NEW: &str = r#"{"decision":"new_task","goal":"fix the login page"}"#;

/// ES-014, ES-051, ES-057, ES-058, ES-064, ES-068, ES-069: one call, without tools, at 0.1, with a schema.
#[tokio::test]
async fn a_message_in_a_fresh_session_becomes_a_task() {
    let world = World::routed("replies: [{say: done}]", NEW);
    let handled = world.say("please fix the login page").await.unwrap();
    let TriggerOutcome::Started { task, place: None } = handled else { panic!("{handled:?}") };
    let row = world.store().tasks().get(task).unwrap().unwrap();
    assert_eq!((row.goal.as_str(), row.session_id), ("fix the login page", world.session));
    let requests = world.stage.server.requests();
    assert_eq!(requests.len(), 1, "one call routes it");
    let sent = requests[0].json();
    assert_eq!(sent["temperature"], 0.1);
    assert!(sent.get("tools").is_none_or(|tools| tools.as_array().unwrap().is_empty()));
    assert_eq!(sent["response_format"]["type"], "json_schema");
    let decisions = serde_json::json!([
        "new_task",
        "inject_into_active",
        "cancel_task",
        "pause_task",
        "resume_task",
        "small_talk"
    ]);
    let schema = &sent["response_format"]["json_schema"]["schema"];
    assert_eq!(schema["properties"]["decision"]["enum"], decisions);
    let system = sent["messages"][0]["content"].as_str().unwrap();
    assert!(system.lines().count() <= 60);
    world.drive(task).await;
    assert_eq!(world.routings(), 1, "the loop routes nothing");
    let page = world.coordinator().sessions().view(world.session).unwrap();
    assert_eq!(page.user_id, "ada");
}

/// ES-052, ES-059, ES-065, ES-072, ES-076: with two tasks, the one that is meant gets it, and continues.
#[tokio::test]
async fn a_message_for_one_of_two_tasks_reaches_that_one() {
    let world = World::new("replies: [{say: painted}]", |input| {
        let line = input.lines().find(|line| line.contains("paint the door")).unwrap();
        let id = line.split_whitespace().nth(1).unwrap();
        Some(format!(r#"{{"decision":"inject_into_active","task_id":"{id}"}}"#))
    });
    let door = world.task("paint the door").await;
    let wall = world.task("build the wall").await;
    let handled = world.say("make the door red").await.unwrap();
    assert_eq!(handled, TriggerOutcome::Injected { task: door });
    assert_eq!(world.injected(door), ["make the door red"]);
    assert!(world.injected(wall).is_empty());
    assert_eq!(world.status(door), TaskStatus::Todo, "a plain injection moves nothing");
    world.drive(door).await;
    assert!(world.sent()[0].contains("User says: make the door red"));
    let session = world.coordinator().sessions().view(world.session).unwrap();
    assert_eq!(session.active_task_id, Some(wall), "the one that was spoken to has ended");
    assert_eq!(world.store().projections().verify().unwrap(), [], "the journal implies all of it");
}

/// ES-060, ES-061, ES-062, ES-066, ES-083, ES-087, ES-088: pause, resume and cancel by words.
#[tokio::test]
async fn words_pause_resume_and_cancel_a_task() {
    let world = World::new("replies: [{say: done}]", |input| {
        let id = input.lines().nth(1)?.split_whitespace().nth(1)?;
        let decision = match input {
            _ if input.ends_with("hold on") => "pause_task",
            _ if input.ends_with("go on") => "resume_task",
            _ => "cancel_task",
        };
        Some(format!(r#"{{"decision":"{decision}","task_id":"{id}","reason":"wrong repository"}}"#))
    });
    let task = world.task("rename everything").await;
    world.say("hold on").await.unwrap();
    assert_eq!(world.status(task), TaskStatus::Paused);
    world.say("go on").await.unwrap();
    assert!(world.coordinator().queue().ready().unwrap().contains(&task));
    assert_eq!(world.injected(task).last().unwrap(), "Task resumed by user");
    world.say("stop, wrong repository").await.unwrap();
    assert_eq!(world.status(task), TaskStatus::Cancelled);
    let row = world.store().tasks().get(task).unwrap().unwrap();
    assert_eq!(row.detail.as_deref(), Some("wrong repository"));
    assert_eq!(world.replies().len(), 3, "{:?}", world.replies());
}

/// ES-063, ES-067, ES-389: chatter is answered, and nothing is started.
#[tokio::test]
async fn small_talk_is_answered_without_a_task() {
    let talk = r#"{"decision":"small_talk","response":"Good morning!"}"#;
    let world = World::routed("replies: []", talk);
    let handled = world.say("good morning").await.unwrap();
    assert_eq!(handled, TriggerOutcome::Said { message: "Good morning!".to_owned() });
    assert!(world.store().tasks().list(&Filter::default()).unwrap().is_empty());
    assert_eq!(world.replies(), ["Good morning!"]);
}

/// ES-064, ES-065: nonsense, an id of elsewhere, an error: the fallback decides, and nothing is lost.
#[tokio::test]
async fn when_the_router_fails_the_fallback_decides() {
    let other = r#"{"decision":"cancel_task","task_id":"task_00000000000000000000000001"}"#;
    for nonsense in ["as an assistant I cannot", "{}", other, r#"{"decision":"small_talk"}"#] {
        let world = World::routed("replies: []", nonsense);
        let handled = world.say("build the shed").await.unwrap();
        let TriggerOutcome::Started { task, .. } = handled else {
            panic!("{nonsense}: {handled:?}")
        };
        let row = world.store().tasks().get(task).unwrap().unwrap();
        assert_eq!(row.goal, "build the shed", "{nonsense}");
        assert_eq!(
            world.say("in green").await.unwrap(),
            TriggerOutcome::Injected { task },
            "{nonsense}"
        );
        assert_eq!(world.routings(), 2, "one call per message");
    }
    let world = World::routed("replies: []", NEW);
    world.stage.server.next(windlass_testkit::Answer::error(500, "down"));
    let handled = world.say("build the shed").await.unwrap();
    assert!(matches!(handled, TriggerOutcome::Started { .. }), "{handled:?}");
}

/// ES-014: what begins with a slash is obeyed as it stands.
#[tokio::test]
async fn slash_commands_go_around_the_router() {
    let world = World::routed("replies: []", "never asked");
    let task = world.task("count the sheep").await;
    let said = |handled: TriggerOutcome| match handled {
        TriggerOutcome::Said { message } => message,
        other => panic!("{other:?}"),
    };
    let listed = said(world.say("/tasks").await.unwrap());
    assert!(listed.contains("count the sheep") && listed.contains(" todo "), "{listed}");
    assert!(said(world.say("/help").await.unwrap()).contains("/steer"));
    assert!(said(world.say("/frobnicate now").await.unwrap()).contains("`/frobnicate`"));
    let steered = world.say("/steer only the black ones").await.unwrap();
    assert_eq!(steered, TriggerOutcome::Injected { task });
    world.say("/pause").await.unwrap();
    assert_eq!(world.status(task), TaskStatus::Paused);
    world.say("/stop enough").await.unwrap();
    assert_eq!(world.status(task), TaskStatus::Cancelled);
    assert_eq!(world.routings(), 0);
    let nobody = world.say("/pause").await.unwrap_err();
    assert!(nobody.to_string().contains("has no active task"), "{nobody}");
}

/// O-32: a message that is delivered again does nothing again, and is not routed again.
#[tokio::test]
async fn a_redelivered_message_has_no_further_effect() {
    let world = World::routed("replies: []", NEW);
    let mut message = world.message("fix the login page");
    message.request_id = Some("client-7".to_owned());
    let first =
        world.coordinator().triggers().user_message_received(message.clone()).await.unwrap();
    let again = world.coordinator().triggers().user_message_received(message).await.unwrap();
    assert_eq!(first, again);
    assert_eq!(world.routings(), 1);
    assert_eq!(world.store().tasks().list(&Filter::default()).unwrap().len(), 1);
}

/// ES-052, ES-064: a message for a task that has just ended becomes a task of its own.
#[tokio::test]
async fn what_is_said_to_a_task_that_has_ended_is_not_lost() {
    let world = World::routed("replies: [{say: done}]", "nonsense");
    let task = world.task("paint").await;
    let mut message = world.message("and the window");
    message.request_id = Some("m1".to_owned());
    let decision = format!(r#"{{"decision":"inject_into_active","task_id":"{task}"}}"#);
    let store = world.store();
    let now = world.coordinator().now();
    store.triggers().decide("user-message-received", "m1", decision, now).await.unwrap();
    world.drive(task).await;
    let handled =
        world.coordinator().triggers().user_message_received(message.clone()).await.unwrap();
    let TriggerOutcome::Started { task: second, .. } = handled else { panic!("{handled:?}") };
    assert_eq!(store.tasks().get(second).unwrap().unwrap().goal, "and the window");
    assert_eq!(
        world.coordinator().triggers().user_message_received(message).await.unwrap(),
        handled
    );
}

/// ES-337: a decision that is not remembered any more is still counted.
#[tokio::test]
async fn a_counter_of_decisions_never_goes_down() {
    let world = World::routed("replies: []", "never asked");
    let (store, stream) = (world.store(), "user-message-received");
    let counted = || {
        let metrics = world.coordinator().costs().metrics().unwrap().prometheus();
        let line = metrics.lines().find(|line| line.contains("routing_decisions{"));
        line.unwrap().rsplit(' ').next().unwrap().parse::<u64>().unwrap()
    };
    let decision = || r#"{"decision":"small_talk","response":"Hello."}"#.to_owned();
    let mut now = world.coordinator().now();
    for number in 1..=5 {
        store.triggers().decide(stream, &format!("m{number}"), decision(), now).await.unwrap();
        assert_eq!(counted(), number);
        now += jiff::SignedDuration::from_hours(24 * 8);
    }
    assert!(store.triggers().decision(stream, "m1").unwrap().is_none(), "forgotten");
    store.triggers().decide(stream, "m5", decision(), now).await.unwrap();
}
