//! `schedule`, `event`, `sessions`, `status`, deadlines, and what `tasks` shows.

use serde_json::Value;

use crate::program::Program;

const ASKING: &str = "replies: [{ask_user: {question: which colour?}}, {say: painted}]";

fn blocked() -> Program {
    let program = Program::playing(ASKING);
    let model = "litellm/unpriced";
    let run = ["run", "paint the door", "-q", "--sandbox", "host", "--model", model];
    program.windlass(&run).expect(3);
    program
}

fn schedules(program: &Program) -> Vec<Value> {
    program.windlass(&["schedule", "list", "--json"]).expect(0).json_lines()
}

/// MS-183, MS-185, MS-187, MS-194, ES-285: made, listed, stopped, resumed and removed.
#[test]
fn schedules_are_added_listed_paused_resumed_and_removed() {
    let program = blocked();
    let task = program.task();
    let add = |args: &[&str]| {
        let all = [&["schedule", "add"], args].concat();
        program.windlass(&all)
    };
    let every = ["--task", &task, "--check", "is it dry?", "--every", "10m", "--until", "8h"];
    let added = add(&[&every[..], &["--then", "complete", "--json"]].concat()).expect(0);
    let monitor = added.json_lines().remove(0);
    assert_eq!((&monitor["interval_seconds"], &monitor["action"]), (&600.into(), &"check".into()));
    assert_eq!(monitor["timeout_action"], "complete");
    let cron = ["--start", "write the report", "--cron", "30 9 * * 1-5", "--zone", "Europe/Berlin"];
    let message = add(&cron).expect(0).stderr;
    assert!(message.contains("is added; next at") && message.contains("09:30:00 CE"), "{message}");
    let daily = ["--task", &task, "--message", "tea", "--daily", "16:00", "--missed", "skip"];
    add(&daily).expect(0);
    let listed = schedules(&program);
    assert_eq!(listed.len(), 3);
    assert_eq!(listed[1]["dispatch"], "autonomous_dispatch");
    assert!(listed[1]["next_at"].as_str().unwrap().ends_with("[Europe/Berlin]"));
    assert_eq!(listed[2]["daily_at"], "16:00:00");
    let page = program.windlass(&["schedule", "list"]).expect(0).stdout;
    assert!(page.contains("30 9 * * 1-5 Europe/Berlin"), "{page}");
    let id = listed[1]["schedule_id"].as_str().unwrap();
    program.windlass(&["schedule", "pause", &id[id.len() - 8..]]).expect(0);
    assert_eq!(schedules(&program)[1]["state"], "paused");
    program.windlass(&["schedule", "resume", id]).expect(0);
    assert_eq!(schedules(&program)[1]["state"], "active");
    let asked = program.chat(&[], "/schedule\n");
    let shown = format!("{}{}", asked.stdout, asked.stderr);
    assert!(shown.contains("09:30:00 CE") && !shown.contains("[Europe"), "{shown}");
    program.windlass(&["schedule", "remove", id]).expect(0);
    let left = schedules(&program);
    assert!(left.len() == 2 && left.iter().all(|one| one["schedule_id"] != *id), "{left:?}");
    let again = program.windlass(&["schedule", "remove", id]).expect(2);
    assert!(again.stderr.contains("has ended"), "{again:?}");
}

#[test]
fn a_schedule_that_cannot_be_kept_is_refused_with_a_reason() {
    let program = blocked();
    let task = program.task();
    for (args, words) in [
        (vec!["--start", "x", "--cron", "99 * * * *"], "99 * * * *"),
        (vec!["--start", "x", "--every", "soon"], "soon"),
        (vec!["--start", "x", "--daily", "25:00"], "25:00"),
        (vec!["--start", "x", "--at", "2020-01-01 00:00"], "is in the past"),
        (vec!["--start", "x", "--every", "1h", "--zone", "Mars/Olympus"], "Mars/Olympus"),
        (vec!["--start", "x"], "--every"),
        (vec!["--check", "x", "--every", "1m"], "--task"),
        (vec!["--task", "nothing", "--check", "x", "--every", "1m"], "nothing"),
    ] {
        let ran = program.windlass(&[&["schedule", "add"], &args[..]].concat());
        assert!(ran.code != 0 && ran.stderr.contains(words), "{args:?}: {ran:?}");
    }
    assert!(schedules(&program).is_empty());
    program.windlass(&["cancel", &task]).expect(0);
    let ended = ["schedule", "add", "--task", &task, "--check", "x", "--every", "1m"];
    assert!(program.windlass(&ended).stderr.contains("cancelled"));
}

/// ES-017, ES-054, ES-074, ES-100: an external event reaches its task unchanged, once.
#[test]
fn an_event_reaches_its_task() {
    let program = blocked();
    let task = program.task();
    let event = ["event", &task, r#"{"weather": "rain"}"#, "--id", "w1"];
    for _ in 0..2 {
        let message = program.windlass(&event).expect(0).stderr;
        assert!(
            message.contains("passed on to") && message.contains("windlass answer"),
            "{message}"
        );
    }
    let sessions = program.windlass(&["sessions", "--json"]).expect(0).json_lines();
    let session = sessions[0]["session_id"].as_str().unwrap();
    program.windlass(&["event", session, "lightning"]).expect(0);
    program.windlass(&["answer", &task, "blue", "--resume", "-q"]).expect(0);
    let sent = program.server.requests()[1].json().to_string();
    assert_eq!(sent.matches(r#"Event received: {\"weather\":\"rain\"}"#).count(), 1, "{sent}");
    assert!(sent.contains("Event received: lightning"), "{sent}");
    let empty = program.windlass(&["event", &task, " "]).expect(2);
    assert!(empty.stderr.contains("the event is empty"), "{empty:?}");
}

/// ES-077, ES-078: sessions and their tasks.
#[test]
fn sessions_are_listed_with_their_tasks() {
    let program = blocked();
    let listed = program.windlass(&["sessions"]).expect(0).stdout;
    assert!(listed.starts_with("SESSION") && listed.contains(&program.task()), "{listed}");
    let end: String = program.real_workspace().chars().rev().take(8).collect();
    let end: String = end.chars().rev().collect();
    assert!(listed.contains(" ago  ") && listed.contains(&format!("{end}  paint the door\n")));
    let state = program.windlass(&["sessions", "--json"]).expect(0).json_lines().remove(0);
    assert_eq!(state["tasks"][0]["status"], "RUNNING");
    assert_eq!(state["tasks"][0]["goal_summary"], "paint the door");
    let id = state["session_id"].as_str().unwrap();
    let one = program.windlass(&["sessions", &id[id.len() - 8..]]).expect(0).stdout;
    assert!(one.contains("blocked  paint the door"), "{one}");
    program.windlass(&["sessions", "ses_NONE"]).expect(2);
}

/// ES-014, ES-052: what is said in a session is routed; a slash command is obeyed.
#[test]
fn a_message_to_a_session_is_routed() {
    let program = blocked();
    let state = program.windlass(&["sessions", "--json"]).expect(0).json_lines().remove(0);
    let session = state["session_id"].as_str().unwrap().to_owned();
    let talk = r#"say: '{"decision":"small_talk","response":"Hello yourself."}'"#;
    program.server.next(windlass_testkit::Answer::script(talk));
    let said = program.windlass(&["send", &session, "hello"]).expect(0);
    assert_eq!(said.stdout, "Hello yourself.\n");
    program.windlass(&["send", &session, "/stop enough"]).expect(0);
    let task = program.windlass(&["tasks", "--json"]).expect(0).json_lines().remove(0);
    assert_eq!(task["status"], "cancelled");
}

/// MS-120…128: one view of lifecycle, workers, queue, schedules, background, questions, cost, next.
#[test]
fn tasks_shows_all_activity() {
    let program = blocked();
    let task = program.task();
    let check = ["schedule", "add", "--start", "report", "--every", "1h"];
    program.windlass(&check).expect(0);
    let shown = program.windlass(&["tasks", "--json"]).expect(0).json_lines();
    let row = &shown[0];
    assert_eq!((&row["status"], &row["next_action"]), (&"blocked".into(), &"answer".into()));
    assert_eq!(row["questions"][0]["question"], "which colour?");
    assert_eq!((&row["resumable"], &row["cost_usd"]), (&false.into(), &serde_json::Value::Null));
    assert!(row["last_checkpoint"]["event"].as_u64().unwrap() > 3);
    for field in ["scheduler", "worker", "queue_place", "background", "cost_budget", "deadline"] {
        assert!(row.get(field).is_some(), "{field}");
    }
    assert_eq!((&shown[1]["action"], &shown[1]["state"]), (&"start".into(), &"active".into()));
    let page = program.windlass(&["tasks"]).expect(0).stdout;
    let lines: Vec<_> = page.lines().collect();
    for heading in ["STATUS", "COST", "LAST", "NEXT", "GOAL"] {
        assert!(lines[0].contains(heading), "{page}");
    }
    assert!(page.contains(&format!("\nQuestions\n  {task}  which colour?\n")), "{page}");
    assert!(page.contains("every 1h, next"), "{page}");
}

/// MS-121, MS-123, MS-127: tasks left to the service, the one too many with its place in line, and what each
/// may cost.
#[test]
fn tasks_shows_the_queue_and_the_budgets() {
    let program = Program::playing("replies: [{say: done}]");
    let directory = program.data.path().join(".config/windlass");
    std::fs::create_dir_all(&directory).unwrap();
    let prices = "[models.\"gpt-4o\"]\ninput = 10.0\noutput = 10.0\n";
    std::fs::write(directory.join("config.toml"), prices).unwrap();
    let run = |goal: &str, session: Option<&str>| {
        let mut args = vec!["run", goal, "--detach", "--json", "--budget", "2.5"];
        args.extend(session.into_iter().flat_map(|session| ["--session", session]));
        program.windlass(&args).expect(0).json_lines().remove(0)
    };
    let session = run("one", None)["session_id"].as_str().unwrap().to_owned();
    for goal in ["two", "three"] {
        assert_eq!(run(goal, Some(&session))["place"], Value::Null);
    }
    assert_eq!(run("four", Some(&session))["place"], 1);
    let rows = program.windlass(&["tasks", "--json"]).expect(0).json_lines();
    let of = |goal: &str| rows.iter().find(|row| row["goal"] == goal).unwrap();
    for goal in ["one", "two", "three", "four"] {
        let row = of(goal);
        assert_eq!(
            (&row["status"], &row["next_action"]),
            (&"todo".into(), &"waiting for windlass serve".into()),
            "{row}"
        );
        assert_eq!((&row["cost_budget"], &row["cost_usd"]), (&2.5.into(), &0.0.into()), "{row}");
        assert_eq!(row["scheduler"]["status"], "queued", "{row}");
        assert_eq!(
            row["queue_place"],
            if goal == "four" { 1.into() } else { Value::Null },
            "{row}"
        );
    }
    let page = program.windlass(&["tasks"]).expect(0).stdout;
    let line = page.lines().find(|line| line.ends_with("four")).unwrap();
    assert!(line.contains("queued 1") && line.contains("$0.00 of $2.50"), "{page}");
}

/// MS-122, MS-124, MS-127, MS-140: who works on it, what it left running, what it may cost.
#[test]
fn a_running_task_shows_its_worker_and_background_commands() {
    let script = "
replies:
  - bash: {command: sleep 600, background: true}
  - bash: sleep 600
";
    let program = Program::playing(script);
    let mut running = program.start(&["run", "wait", "-q", "--sandbox", "host"]);
    program.server.requests_reach_blocking(2);
    // Each look is a process of its own, so this many take long enough.
    let row = (0..500).find_map(|_| {
        let row = program.windlass(&["tasks", "--json"]).expect(0).json_lines().remove(0);
        let both = row["worker"].is_object() && row["background"] != serde_json::json!({});
        both.then_some(row)
    });
    let row = row.expect("a worker and a background command");
    let worker = &row["worker"];
    assert_eq!(worker["process_pid"], running.id());
    assert_eq!(worker["current_model"], "litellm/gpt-4o");
    assert!(worker["context_usage_percent"].as_f64().unwrap() > 0.0, "{worker}");
    worker["last_heartbeat_at"].as_str().unwrap().parse::<jiff::Timestamp>().unwrap();
    assert_eq!((&row["driven_by"], &row["resumable"]), (&running.id().into(), &false.into()));
    let page = program.windlass(&["tasks"]).expect(0).stdout;
    assert!(page.contains(&format!("process {}: ", running.id())), "{page}");
    assert!(page.contains("\nBackground commands\n"), "{page}");
    program.windlass(&["cancel", row["task_id"].as_str().unwrap()]).expect(0);
    assert_eq!(running.wait().unwrap().code(), Some(5));
    let row = program.windlass(&["tasks", "--all", "--json"]).expect(0).json_lines().remove(0);
    assert_eq!(
        (&row["worker"], &row["driven_by"]),
        (&Value::Null, &Value::Null),
        "nobody any more"
    );
}

/// MS-207: the limits of autonomous work are shown next to the current activity.
#[test]
fn status_shows_activity_and_limits() {
    let program = blocked();
    let page = program.windlass(&["status"]).expect(0).stdout;
    assert!(page.contains("at most 25 tasks within 8 hours"), "{page}");
    assert!(page.contains("1 open: 1 waiting for an answer"), "{page}");
    assert!(page.contains("service    not running (`windlass serve` starts one)"), "{page}");
    let shown = program.windlass(&["status", "--json"]).expect(0).json_lines().remove(0);
    assert_eq!(shown["limits"]["autonomous_max_tasks"], 25);
    assert_eq!((&shown["questions"], &shown["limits"]["max_sessions"]), (&1.into(), &5.into()));
    assert_eq!(shown["service_running"], false);
}

/// MS-207: a conversation is not something to resume.
#[test]
fn status_counts_conversations_by_themselves() {
    let script =
        "match: [{task: work, replies: [{ask_user: {question: sure?}}]}]\nreplies: [{say: hello}]";
    let program = Program::playing(script);
    program.chat(&[], "hi\n").expect(0);
    let asked = program.windlass(&["run", "work", "--json"]).expect(3);
    let task = asked.result()["task_id"].as_str().unwrap().to_owned();
    program.windlass(&["answer", &task, "yes"]).expect(0);
    let page = program.windlass(&["status"]).expect(0).stdout;
    assert!(page.contains("2 open: 1 waiting for a message, 1 to be resumed"), "{page}");
}

/// ES-079, ES-085, MS-186: a deadline given with the goal ends what runs, service or not.
#[test]
fn a_run_with_a_deadline_fails_at_it() {
    let program = Program::playing("replies: [{bash: sleep 600}, {say: done}]");
    let args = ["run", "be quick", "-q", "--sandbox", "host", "--deadline", "PT1S"];
    let failed = program.windlass(&args).expect(1).stderr;
    assert!(
        failed.contains(&format!("try again with: windlass retry {}", program.task())),
        "{failed}"
    );
    let result = program.windlass(&["result", &program.task()]).expect(0).stdout;
    let result: Value = serde_json::from_str(&result).unwrap();
    assert_eq!(result["error_details"]["error_type"], "deadline", "{result}");
    let late = ["run", "x", "--deadline", "2020-01-01T00:00:00Z"];
    assert!(program.windlass(&late).expect(2).stderr.contains("is in the past"));
}
