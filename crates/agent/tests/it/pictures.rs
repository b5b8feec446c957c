//! Pictures in a conversation: shown once, kept once, and only named where they cannot be seen.

use serde_json::Value;
use windlass_core::event::Event;
use windlass_core::id::TaskId;
use windlass_testkit::{Answer, Request, Stage, png};

/// The pictures of a request's message, as data URLs.
fn shown(message: &Value) -> Vec<&str> {
    let blocks = message["content"].as_array().map(Vec::as_slice).unwrap_or_default();
    blocks.iter().filter_map(|block| block["image_url"]["url"].as_str()).collect()
}

fn pictures(request: &Request) -> usize {
    let body = request.json();
    body["messages"].as_array().unwrap().iter().map(|message| shown(message).len()).sum()
}

fn text(request: &Request) -> String {
    String::from_utf8(request.body.to_vec()).unwrap()
}

/// The files that hold pictures.
fn kept(stage: &Stage) -> Vec<String> {
    let files = std::fs::read_dir(stage.store.dir().pictures()).into_iter().flatten().flatten();
    let mut names: Vec<_> = files.map(|file| file.file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn put(stage: &Stage, name: &str, bytes: &[u8]) {
    std::fs::write(stage.workspace().join(name), bytes).unwrap();
}

const LOOK: &str = "
    goal: look
    vision: true
    files: {notes.txt: blue}
    replies:
      - calls: [{read: shot.png}, {read: notes.txt}]
      - read: copy.png
      - say: seen
";

#[tokio::test]
async fn a_picture_that_is_read_follows_the_results_of_its_reply() {
    let stage = Stage::set(LOOK);
    put(&stage, "shot.png", &png(40, 30, 1));
    put(&stage, "copy.png", &png(40, 30, 1));
    stage.run().await;
    let body = stage.server.requests()[1].json();
    let messages = body["messages"].as_array().unwrap();
    let roles: Vec<_> = messages.iter().map(|message| message["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["system", "user", "assistant", "tool", "tool", "user"]);
    let urls = shown(&messages[5]);
    assert_eq!(urls.len(), 1);
    assert!(urls[0].starts_with("data:image/png;base64,iVBORw0KGgo"), "{}", urls[0]);
    let words = &messages[5]["content"][1]["text"];
    assert_eq!(words, "Shown by `read`: picture `shot.png`, PNG 40×30");
    let said = messages[3]["content"].as_str().unwrap();
    assert!(said.starts_with("picture `shot.png`, PNG 40×30 ("), "{said}");
}

#[tokio::test]
async fn a_picture_is_kept_once_by_hash_and_never_in_the_journal() {
    let stage = Stage::set(LOOK);
    put(&stage, "shot.png", &png(40, 30, 1));
    put(&stage, "copy.png", &png(40, 30, 1));
    let task = stage.submit().await;
    stage.drive(task).await;
    assert_eq!(pictures(&stage.server.requests()[2]), 2);
    let names = kept(&stage);
    assert_eq!(names.len(), 1, "{names:?}");
    let journal = format!("{:?}", stage.store.journal().of(task).unwrap());
    assert!(journal.contains(&names[0]) && !journal.contains("iVBORw0KGgo"), "{journal}");
}

#[tokio::test]
async fn a_model_that_cannot_see_reads_what_a_picture_is_called() {
    let stage = Stage::set(&LOOK.replace("vision: true", "vision: false"));
    put(&stage, "shot.png", &png(40, 30, 1));
    put(&stage, "copy.png", &png(40, 30, 1));
    stage.run().await;
    let request = &stage.server.requests()[1];
    assert_eq!(pictures(request), 0);
    let note = "[picture `shot.png`, PNG 40×30 is not shown: this model cannot see pictures]";
    assert!(text(request).contains(note), "{}", text(request));
}

/// A screenshot that changes is progress, even where its name and size stay the same.
#[tokio::test]
async fn reading_a_changing_picture_is_not_a_doom_loop() {
    let stage = Stage::set(
        "{goal: watch, vision: true, match: [{read: shot.png}], limits: {max_iterations: 4}}",
    );
    let seen = std::sync::atomic::AtomicU8::new(0);
    let place = stage.workspace().join("shot.png");
    stage.server.answer_with(move |_| {
        let number = seen.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        std::fs::write(&place, png(40, 30, number)).unwrap();
        None
    });
    let journal = stage.run().await;
    assert!(!journal.contains("doom_loop_detected"), "{journal}");
}

/// Fifty turns with a picture each, and a crash on the way.
#[tokio::test]
async fn fifty_turns_with_pictures_extend_each_other_also_across_a_crash() {
    let replies: String = (0..50).map(|turn| format!("  - read: p{turn}.png\n")).collect();
    let script = format!(
        "goal: look at all\nvision: true\ncrash_at_request: 30\nreplies:\n{replies}  - say: seen\n"
    );
    let stage = Stage::set(&script);
    for turn in 0..50 {
        put(&stage, &format!("p{turn}.png"), &png(40, 30, turn));
    }
    stage.play().await;
    let requests = stage.server.requests();
    assert_eq!(requests.len(), 52, "one of them twice");
    for pair in requests.windows(2) {
        pair[1].assert_extends(&pair[0]);
    }
    assert_eq!(pictures(&requests[51]), 50);
}

fn summary() -> &'static str {
    "
match:
  - system: You summarize
    say: |
      ## Tool failures
      - none
      ## Files
      - none
      ## Decisions
      - none
      ## Findings
      - all are blue
      ## Plan
      - none
      ## User instructions
      - none
"
}

/// Ends a task at its first request after a compaction.
fn end_when_shortened(stage: &Stage) {
    stage.server.answer_with(|request| {
        text(request).contains("was shortened").then(|| Answer::script("say: seen"))
    });
}

/// The events of a task by a name.
fn count(stage: &Stage, task: TaskId, wanted: impl Fn(&Event) -> bool) -> usize {
    let records = stage.store.journal().of(task).unwrap();
    records.iter().filter(|record| wanted(&record.event)).count()
}

#[tokio::test]
async fn older_pictures_become_notes_at_a_compaction() {
    // Nothing is reported, so that sizes are what we estimate.
    let reply = |turn| format!("  - {{read: p{turn}.png, usage: {{input: 0, output: 0}}}}\n");
    let replies: String = (0..20).map(reply).collect();
    let limits = "{window: 40000, recent_turns: 9, flush: false}";
    let script = format!(
        "goal: look at all\nvision: true\nlimits: {limits}\n{}replies:\n{replies}  - say: seen\n",
        summary().trim_start()
    );
    let stage = Stage::set(&script);
    end_when_shortened(&stage);
    for turn in 0..20 {
        put(&stage, &format!("p{turn}.png"), &png(1_200, 1_000, turn));
    }
    let goal = png(30, 30, 99);
    let picture = stage.coordinator.artifacts().pictures().keep(&goal, "goal.png").unwrap();
    let mut draft = stage.draft();
    draft.pictures.push(picture);
    let task = stage.coordinator.tasks().submit(draft).await.unwrap();
    stage.drive(task).await;
    let compactions = count(&stage, task, |event| matches!(event, Event::CompactionEnd(_)));
    assert_eq!(compactions, 1, "{}", stage.journal(task));
    let requests = stage.server.requests();
    let last = requests.last().unwrap();
    let sent = text(last);
    assert_eq!(pictures(last), 7, "the newest six, and the goal's own");
    assert!(
        sent.contains("Pictures seen earlier") && sent.contains("- picture `p0.png`"),
        "{sent}"
    );
    let note =
        "is not shown: older pictures were dropped to make room; read its file to see it again]";
    assert!(sent.contains(note), "{sent}");
}

/// Many small pictures fill no window, and still there is a limit.
#[tokio::test]
async fn a_context_with_too_many_pictures_is_compacted() {
    let replies: String = (0..85).map(|turn| format!("  - read: p{turn}.png\n")).collect();
    let script = format!(
        "goal: look at all\nvision: true\nlimits: {{flush: false}}\n{}replies:\n{replies}  - say: seen\n",
        summary().trim_start()
    );
    let stage = Stage::set(&script);
    end_when_shortened(&stage);
    for turn in 0..85 {
        put(&stage, &format!("p{turn}.png"), &png(8, 8, turn));
    }
    let journal = stage.run().await;
    assert!(journal.contains("compaction_start   pictures"), "{journal}");
    let most = stage.server.requests().iter().map(pictures).max();
    assert_eq!(most, Some(80));
}

#[tokio::test]
async fn a_message_with_a_picture_reaches_a_running_task() {
    let stage = Stage::set("{goal: wait, vision: true, replies: [{bash: 'true'}, {say: seen}]}");
    let task = stage.submit().await;
    let picture =
        stage.coordinator.artifacts().pictures().keep(&png(40, 30, 3), "mock.png").unwrap();
    let messages = stage.coordinator.messages();
    messages.send_with_pictures(task, "like this", vec![picture], "ada").await.unwrap();
    stage.drive(task).await;
    let body = stage.server.requests()[0].json();
    let said = body["messages"].as_array().unwrap().last().unwrap().clone();
    assert_eq!(shown(&said).len(), 1);
    assert_eq!(said["content"][1]["text"], "User says: like this");
}

/// Estimates count pictures by their pixels, not by their bytes.
#[tokio::test]
async fn the_token_estimate_counts_a_picture() {
    let stage = Stage::set(LOOK);
    put(&stage, "shot.png", &png(1_500, 1_000, 1));
    put(&stage, "copy.png", &png(10, 10, 1));
    let task = stage.submit().await;
    stage.drive(task).await;
    let records = stage.store.journal().of(task).unwrap();
    let asked = records.iter().filter_map(|record| match &record.event {
        Event::LlmRequest(request) => Some(request.estimated_tokens),
        _ => None,
    });
    let asked: Vec<u64> = asked.collect();
    let grown = asked[1] - asked[0];
    assert!((2_000..3_000).contains(&grown), "{asked:?}");
}
