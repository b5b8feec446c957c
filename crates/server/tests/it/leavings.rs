//! What tasks leave behind, over HTTP: results, traces, outputs, changes, deliverables, cost, memories, schedules.

use reqwest::Method;
use serde_json::{Value, json};
use windlass_testkit::Stage;

use crate::world::{World, answer, options, problem};

const SCRIPT: &str = "\
goal: unused
replies:
  - bash: seq 1 20000
  - write: {path: report.md, content: \"# Report\"}
  - publish_deliverable: {filepath: report.md, description: the report, type: report}
  - say: all done
";

async fn finished(world: &World, goal: &str) -> String {
    let task = world.submit(goal).await;
    loop {
        let (_, view) = answer(world.get(&format!("/v1/tasks/{task}"))).await;
        match view["status"].as_str() {
            Some("done") => return task,
            Some("failed" | "blocked") => panic!("{view}"),
            _ => tokio::task::yield_now().await,
        }
    }
}

/// AX-074, AX-076, AX-087: what was cut is whole by the id of its call, and by nothing else.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_task_leaves_can_be_read() {
    let mut world = World::with(Stage::set(SCRIPT), options()).await;
    world.serve_tasks();
    let task = finished(&world, "count and report").await;
    let about = |part: &str| world.get(&format!("/v1/tasks/{task}/{part}"));
    let (_, outputs) = answer(about("outputs")).await;
    let counted = &outputs["outputs"][0];
    assert_eq!(counted["streams"][0]["truncated"], true, "{outputs}");
    let call = counted["call_id"].as_str().unwrap();
    let whole = world.get(&format!("/v1/outputs/{call}?stream=stdout")).send().await.unwrap();
    assert_eq!(whole.headers()["content-type"], "text/plain; charset=utf-8");
    let text = whole.text().await.unwrap();
    assert!(text.starts_with("1\n2\n") && text.ends_with("\n20000\n"), "{} bytes", text.len());
    for id in ["call_00000000000000000000000000", "..%2ftoken", "%2fetc%2fpasswd", "x"] {
        let got = problem(world.get(&format!("/v1/outputs/{id}"))).await;
        assert_eq!(got, (404, "unknown-output".to_owned()), "{id}");
    }
    assert_eq!(answer(about("result")).await.1["final_message"], "all done");
    let trace = about("trace").send().await.unwrap().text().await.unwrap();
    let last: Value = serde_json::from_str(trace.lines().last().unwrap()).unwrap();
    assert!(last["event_type"].is_string(), "{last}");
    let (_, changes) = answer(about("changes")).await;
    assert_eq!(changes["changes"][0]["path"], "report.md", "{changes}");
    let (_, published) = answer(about("deliverables")).await;
    let path = published["deliverables"][0]["filepath"].as_str().unwrap().to_owned();
    let content = about(&format!("deliverables/content?path={path}")).send().await.unwrap();
    let disposition = "attachment; filename*=UTF-8''report.md";
    assert_eq!(content.headers()["content-disposition"], disposition);
    assert_eq!(content.text().await.unwrap().trim(), "# Report");
    for path in ["../../token", "/etc/passwd", "notes.txt", ""] {
        let got = problem(about(&format!("deliverables/content?path={path}"))).await;
        assert_eq!(got, (404, "unknown-deliverable".to_owned()), "{path}");
    }
    let (_, cost) = answer(about("cost")).await;
    assert_eq!(cost["total"]["replies"], 4, "{cost}");
    world.stop().await;
}

/// MS-198
#[tokio::test(flavor = "multi_thread")]
async fn metrics_count_what_is_new_and_nothing_twice() {
    let mut world =
        World::with(Stage::set("goal: unused\nreplies: [{say: done}]"), options()).await;
    world.serve_tasks();
    let count = |text: &str| {
        let line = text.lines().find(|line| line.starts_with("agent_llm_latency_ms_count"));
        line.map_or(0, |line| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap())
    };
    let scrape = || async { world.get("/metrics").send().await.unwrap().text().await.unwrap() };
    assert_eq!(count(&scrape().await), 0);
    for so_far in 1..3 {
        finished(&world, "count me").await;
        assert_eq!(count(&scrape().await), so_far);
        assert_eq!(count(&scrape().await), so_far);
    }
    assert_eq!(problem(world.anonymous(Method::GET, "/metrics")).await.0, 401);
    world.stop().await;
}

/// ES-019, ES-134: our own store answers as a Context Service does.
#[tokio::test]
async fn what_is_remembered_is_found_again() {
    let world = World::new().await;
    let text = json!({ "text": "the flux capacitor needs 1.21 gigawatts", "tags": ["power"] });
    assert_eq!(answer(world.post("/v1/context", &text)).await.0, 201);
    let (_, found) =
        answer(world.get("/v1/context?query=flux%20capacitor&task_id=x&session_id=y")).await;
    assert_eq!(found["memories"][0]["text"], text["text"]);
    assert_eq!(found["task_context"], Value::Null);
    assert_eq!(
        answer(world.get("/v1/context?query=nothing%20here")).await.1["memories"],
        json!([])
    );
    for refused in [
        json!({ "text": " " }),
        json!({ "text": "x".repeat(20_001) }),
        json!({ "text": "x", "tags": vec!["tag"; 51] }),
        json!({ "text": "x", "tags": ["t".repeat(101)] }),
    ] {
        assert_eq!(problem(world.post("/v1/context", &refused)).await.0, 422, "{refused}");
    }
    assert_eq!(
        answer(world.post("/v1/context", &json!({ "text": "x".repeat(20_000) }))).await.0,
        201
    );
    assert_eq!(problem(world.get("/v1/context?query=x&limit=0")).await.0, 400);
}

#[tokio::test]
async fn a_schedule_is_made_paused_resumed_and_removed() {
    let world = World::new().await;
    let new = json!({ "action": "start", "goal": "write a report", "cron": "30 9 * * 1" });
    let (status, made) = answer(world.post("/v1/schedules", &new)).await;
    assert_eq!((status, &made["state"]), (201, &json!("active")), "{made}");
    let path = format!("/v1/schedules/{}", made["schedule_id"].as_str().unwrap());
    let post = |part: &str| world.by(&world.token(), Method::POST, &format!("{path}/{part}"));
    assert_eq!(answer(post("pause")).await.1["state"], "paused");
    assert_eq!(answer(post("resume")).await.1["state"], "active");
    let remove = || world.by(&world.token(), Method::DELETE, &path);
    assert_eq!(answer(remove()).await.0, 204);
    assert_eq!(problem(remove()).await, (409, "schedule-ended".to_owned()));
    for bad in [
        json!({ "action": "start", "goal": "x", "cron": "never" }),
        json!({ "action": "start", "goal": "x" }),
        json!({ "action": "start", "goal": "x", "cron": "* * * * *", "interval_seconds": 5 }),
        json!({ "action": "start", "interval_seconds": 5 }),
        json!({ "action": "start", "goal": "x", "interval_seconds": 5, "time_zone": "Mars/Base" }),
    ] {
        assert_eq!(problem(world.post("/v1/schedules", &bad)).await.0, 422, "{bad}");
    }
}

/// The page lists what is still to come, and of what has ended the newest.
#[tokio::test]
async fn schedules_that_ended_do_not_fill_their_page() {
    let world = World::new().await;
    let task = world.submit("the work").await;
    let add = async |new: Value| {
        let (status, made) = answer(world.post("/v1/schedules", &new)).await;
        assert_eq!(status, 201, "{made}");
        made["schedule_id"].as_str().unwrap().to_owned()
    };
    add(json!({ "action": "start", "goal": "the one that stays", "cron": "30 9 * * 1" })).await;
    for number in 0..22 {
        let text = format!("ended {number:02}");
        let new =
            json!({ "action": "message", "task_id": task, "text": text, "cron": "30 9 * * 1" });
        add(new).await;
    }
    let new = json!({ "action": "start", "goal": "the one that is removed", "cron": "30 9 * * 1" });
    let removed = format!("/v1/schedules/{}", add(new).await);
    assert_eq!(answer(world.by(&world.token(), Method::DELETE, &removed)).await.0, 204);
    // With the task its schedules end.
    let cancel = world.post(&format!("/v1/tasks/{task}/cancel"), &json!({}));
    assert_eq!(answer(cancel).await.0, 202);
    let page = answer(world.get("/schedules")).await.1.to_string();
    assert!(page.contains("the one that stays"), "{page}");
    assert!(page.contains("2 older schedules that ended"), "{page}");
    assert!(page.contains("ended 21") && page.contains("ended 02"), "{page}");
    assert!(!page.contains("ended 01") && !page.contains("the one that is removed"), "{page}");
}
