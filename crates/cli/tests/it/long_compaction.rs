//! Tasks that outgrow their context: compaction through the real program.

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};

use serde_json::Value;
use windlass_testkit::{Answer, Gate, ModelServer, Request};

use crate::program::{Program, Ran};

/// How this provider counts, unlike our first guess.
const BYTES_PER_TOKEN: usize = 3;
pub const SUMMARY: &str = "## Tool failures\n- none\n## Files\n- read `notes`\n## Decisions\n- go on\n\
                       ## Findings\n- lines\n## Plan\n- under way\n## User instructions\n- see above";

/// What a request looks like to the model.
pub fn is_summary(request: &Request) -> bool {
    request.json()["messages"][0]["content"].as_str().unwrap_or_default().contains("You summarize")
}

pub fn last_text(request: &Request) -> String {
    let body = request.json();
    let messages = body["messages"].as_array().cloned().unwrap_or_default();
    let last = messages.last().cloned().unwrap_or_default();
    last["content"].as_str().unwrap_or_default().to_owned()
}

/// A reply with the usage that a provider with its own way of counting reports.
pub fn reply(request: &Request, item: &str) -> Answer {
    let input = request.body.len() / BYTES_PER_TOKEN;
    Answer::script(&format!("{item}\nusage: {{input: {input}, output: 20}}"))
}

pub fn asks_for_notes(request: &Request) -> bool {
    last_text(request).starts_with("You are approaching context limits")
}

pub fn quoted(text: &str) -> String {
    serde_json::to_string(text).unwrap()
}

/// Files with different contents, so that reading them is progress.
pub fn notes(program: &Program, count: usize, lines: usize) {
    for number in 0..count {
        let text: String = (0..lines)
            .map(|line| format!("note {number} line {line}: all is well here\n"))
            .collect();
        std::fs::write(program.workspace().join(format!("notes-{number}.txt")), text).unwrap();
    }
}

/// A server with a window: it counts in its own way and refuses what is over.
pub struct Windowed {
    window: usize,
    pub refused: Arc<AtomicUsize>,
    largest: Arc<AtomicUsize>,
    turns: Arc<AtomicUsize>,
}

impl Windowed {
    pub fn new(window: usize) -> Self {
        let none = || Arc::new(AtomicUsize::new(0));
        Self { window, refused: none(), largest: none(), turns: none() }
    }

    /// Answers with `work` turn by turn; notes and summaries are dealt with here.
    pub fn serve(
        &self,
        server: &ModelServer,
        summary: impl Fn(&Request) -> Answer + Send + 'static,
        work: impl Fn(usize, &Request) -> Answer + Send + 'static,
    ) {
        let (window, refused) = (self.window, self.refused.clone());
        let (largest, turns) = (self.largest.clone(), self.turns.clone());
        server.answer_with(move |request| {
            let tokens = request.body.len() / BYTES_PER_TOKEN;
            if tokens > window {
                refused.fetch_add(1, SeqCst);
                let message = format!("maximum context length is {window} tokens, got {tokens}");
                let code = "context_length_exceeded";
                return Some(Answer::error_of(400, "invalid_request_error", code, &message));
            }
            largest.fetch_max(tokens, SeqCst);
            if is_summary(request) {
                return Some(summary(request));
            }
            if asks_for_notes(request) {
                return Some(reply(request, "say: Nothing new to save."));
            }
            Some(work(turns.fetch_add(1, SeqCst) + 1, request))
        });
    }
}

pub fn events(ran: &Ran, kind: &str) -> Vec<Value> {
    let all = ran.json_lines();
    all.into_iter()
        .filter(|event| event["event_type"] == kind)
        .map(|event| event["data"].clone())
        .collect()
}

/// ES-041, ES-151, ES-157, ES-163, ES-164, ES-165, ES-180, ES-183: must show 1.
#[test]
fn four_hundred_turns_in_a_small_window_lose_neither_goal_nor_correction_nor_memo() {
    const TURNS: usize = 400;
    let program = Program::with(ModelServer::start_empty());
    notes(&program, 50, 20);
    let windowed = Windowed::new(16_000);
    let (gate, seen) = (Gate::new(), Arc::new(Mutex::new(Vec::new())));
    let (held, last) = (gate.clone(), seen.clone());
    windowed.serve(
        &program.server,
        |request| reply(request, &format!("say: {}", quoted(SUMMARY))),
        move |turn, request| match turn {
            7 => reply(request, "read: notes-7.txt").gated(0, &held),
            20 => reply(
                request,
                "save_memo: {filename: facts.md, content: 'The vault code is 4711-B.'}",
            ),
            TURNS => reply(request, "search_memo: which code opens the vault"),
            turn if turn > TURNS => {
                last.lock().unwrap().push(request.clone());
                reply(request, "say: All four hundred done.")
            }
            turn => reply(request, &format!("read: notes-{}.txt", turn % 50)),
        },
    );
    let args = ["run", "count the GRANITE pebbles", "--json", "--context-window", "16000"];
    let child = program.start(&[&args[..], &["--max-iterations", "2000"]].concat());
    gate.reached_blocking();
    let task = program.task();
    program.windlass(&["send", &task, "only the ROUND ones, please"]).expect(0);
    gate.open();
    let ran = Ran::from(child.wait_with_output().unwrap()).expect(0);

    assert_eq!(windowed.refused.load(SeqCst), 0, "no request was over the window");
    assert!(windowed.largest.load(SeqCst) <= 16_000);
    let ended = events(&ran, "compaction_end");
    assert!(ended.len() >= 10, "{} compactions", ended.len());
    for end in &ended {
        assert!(end["tokens_after"].as_u64() < end["tokens_before"].as_u64(), "{end}");
        assert_eq!(end["source"], "model");
    }
    let last = seen.lock().unwrap().pop().unwrap();
    let body = String::from_utf8_lossy(&last.body).into_owned();
    assert!(body.contains("count the GRANITE pebbles"), "the goal is there");
    assert!(body.contains("only the ROUND ones, please"), "the correction is there");
    assert!(body.contains("4711-B"), "the memo is found again");
    assert_eq!(ran.result()["usage"]["compactions"], ended.len());
}

/// A task of some turns in a small window, and what the summarizer says.
fn compacted(
    summary: impl Fn(&Request) -> Answer + Send + 'static,
    turns: usize,
) -> (Program, Ran) {
    let program = Program::with(ModelServer::start_empty());
    quick_retries(&program);
    notes(&program, 50, 20);
    let windowed = Windowed::new(16_000);
    windowed.serve(&program.server, summary, move |turn, request| match turn {
        turn if turn > turns => reply(request, "say: Done."),
        3 => reply(request, "bash: 'echo it broke: E4711; exit 3'"),
        4 => reply(request, "write: {path: made.txt, content: made}"),
        5 => reply(
            request,
            "update_plan: {steps: [{id: '1', description: pebbles, status: in_progress}]}",
        ),
        turn => reply(request, &format!("read: notes-{}.txt", turn % 50)),
    });
    let mut command =
        program.command(&["run", "count the pebbles", "--json", "--context-window", "16000"]);
    let ran = command.env("RUST_LOG", "windlass_agent=info").output().unwrap().into();
    assert_eq!(windowed.refused.load(SeqCst), 0);
    (program, ran)
}

fn quick_retries(program: &Program) {
    let directory = program.data.path().join(".config/windlass");
    std::fs::create_dir_all(&directory).unwrap();
    let quick = "[models]\nbackoff_base_ms = 1\nmax_backoff_ms = 2\n";
    std::fs::write(directory.join("config.toml"), quick).unwrap();
}

/// Must show 4: a summarizer that answers with nothing, garbage or an error. ES-162, ES-171
#[test]
fn a_summarizer_that_fails_costs_the_summary_and_not_the_task() {
    let long = "## Tool failures\n".to_owned() + &"word ".repeat(20_000);
    type Said = Box<dyn Fn(&Request) -> Answer + Send>;
    let bad: [(&str, Said); 4] = [
        ("nothing", Box::new(|request: &Request| reply(request, "say: ''"))),
        ("garbage", Box::new(|request: &Request| reply(request, "say: 'lorem ipsum'"))),
        (
            "too much",
            Box::new(move |request: &Request| reply(request, &format!("say: {}", quoted(&long)))),
        ),
        ("an error", Box::new(|_: &Request| Answer::error(403, "no summaries today"))),
    ];
    for (name, answer) in bad {
        let (program, ran) = compacted(answer, 30);
        let ran = ran.expect(0);
        let ended = events(&ran, "compaction_end");
        assert!(!ended.is_empty(), "{name}: it was compacted");
        assert!(ended.iter().all(|end| end["source"] == "extract"), "{name}: {ended:?}");
        let summary = ended[0]["summary"].as_str().unwrap();
        assert!(summary.contains("it broke: E4711"), "{name}: exact text of failures: {summary}");
        assert!(summary.contains("made.txt"), "{name}: files: {summary}");
        assert!(summary.contains("echo it broke"), "{name}: commands: {summary}");
        let asked = program.server.requests().iter().filter(|request| is_summary(request)).count();
        assert!(asked >= 2 * ended.len(), "{name}: each was asked for once more");
    }
}

/// ES-010, ES-046, ES-120, ES-150, ES-158, ES-159, ES-160, ES-164, ES-181, ES-314, ES-315, ES-316,
/// MS-199, ES-335: summaries are paid for too, so what `cost` adds up is what the task has used.
#[test]
fn cost_counts_the_summaries() {
    let (program, ran) =
        compacted(|request| reply(request, &format!("say: {}", quoted(SUMMARY))), 30);
    let used = ran.expect(0).result()["usage"]["total_tokens"].as_u64().unwrap();
    let sums = program.windlass(&["cost", &program.task(), "--json"]).expect(0).json_lines();
    let total = &sums[0]["total"];
    let tokens = |name: &str| total[name].as_u64().unwrap();
    assert_eq!(tokens("input_tokens") + tokens("output_tokens"), used);
    assert!(sums[0]["models"]["(summaries)"]["replies"].as_u64().unwrap() >= 1, "{sums:?}");
    let metrics = program.windlass(&["metrics"]).expect(0).stdout;
    let counted = format!("agent_llm_tokens{{direction=\"input\"}} {}\n", tokens("input_tokens"));
    assert!(metrics.contains(&counted), "{counted} in\n{metrics}");
}

/// ES-329, ES-330, ES-331, ES-342, ES-343
#[test]
fn a_compaction_saves_notes_summarizes_and_keeps_what_it_dropped() {
    let (program, ran) =
        compacted(|request| reply(request, &format!("say: {}", quoted(SUMMARY))), 30);
    let ran = ran.expect(0);
    let kinds = ran.kinds();
    let at = |kind: &str| {
        kinds.iter().position(|one| one == kind).unwrap_or_else(|| panic!("no {kind}"))
    };
    assert!(at("memory_flush") < at("compaction_start"));
    assert!(at("compaction_start") < at("compaction_end"));
    let between = &kinds[at("memory_flush")..at("compaction_start")];
    let flush_turns = between.iter().filter(|kind| *kind == "llm_response").count();
    assert!(flush_turns >= 1, "{between:?}");

    // What the model saw next: system, task, summary, whole turns.
    let requests = program.server.requests();
    let place = requests.iter().position(is_summary).unwrap();
    let next = requests[place..].iter().find(|request| !is_summary(request)).unwrap().json();
    let messages = next["messages"].as_array().unwrap().clone();
    assert_eq!(messages[0]["role"], "system");
    assert!(messages[1]["content"].as_str().unwrap().contains("count the pebbles"));
    let header = messages[2]["content"].as_str().unwrap();
    assert!(
        header.contains("## Summary of the earlier work") && header.contains("- go on"),
        "{header}"
    );
    assert!(header.contains("## Files changed so far\n\n- made.txt"), "{header}");
    assert!(header.contains("/workspace/.scratch/compaction-1.md"), "{header}");
    let mut open: Vec<String> = Vec::new();
    for message in &messages[3..] {
        for call in message["tool_calls"].as_array().into_iter().flatten() {
            open.push(call["id"].as_str().unwrap().to_owned());
        }
        if message["role"] == "tool" {
            let id = message["tool_call_id"].as_str().unwrap();
            assert!(open.iter().any(|known| known == id), "a result follows its call");
            open.retain(|known| known != id);
        }
    }
    assert!(open.is_empty(), "no call is parted from its result: {open:?}");

    assert!(
        program.file(".plan.md").contains("**1**: pebbles"),
        "the plan outlives what was dropped"
    );
    let metrics = program.windlass(&["metrics"]).expect(0).stdout;
    for wanted in [
        "agent_compaction_count{task_id=\"",
        "agent_compaction_tokens_before_count ",
        "agent_compaction_tokens_after_count ",
    ] {
        assert!(metrics.contains(wanted), "{wanted} in\n{metrics}");
    }
    for (message, fields) in [
        ("Compaction triggered", ["task_id", "tokens_before", "tokens_after"].as_slice()),
        ("Memory flush", ["task_id", "files_written"].as_slice()),
    ] {
        let line = ran.stderr.lines().find(|line| line.contains(message)).expect(message);
        assert!(fields.iter().all(|field| line.contains(&format!("{field}="))), "{line}");
    }

    let dropped = program.file(".scratch/compaction-1.md");
    assert!(dropped.contains("it broke: E4711") && dropped.contains("note 1 line 19"), "{dropped}");
    let shown = program.windlass(&["show", &program.task(), "--compactions"]).expect(0);
    assert!(
        shown.stdout.contains("compaction 1 at") && shown.stdout.contains("/workspace/.scratch")
    );
    let rows = program.windlass(&["show", &program.task(), "--compactions", "--json"]).expect(0);
    assert_eq!(rows.json_lines().len(), events(&ran, "compaction_end").len());
}

/// PL-035, C-22: with a person at the wheel a full context is handed back once its notes are saved.
#[test]
fn with_a_person_at_the_wheel_a_full_context_is_handed_back_before_it_is_compacted() {
    let program = Program::with(ModelServer::start_empty());
    notes(&program, 50, 20);
    let windowed = Windowed::new(16_000);
    let summary = |request: &Request| reply(request, &format!("say: {}", quoted(SUMMARY)));
    windowed.serve(&program.server, summary, move |turn, request| match turn {
        30 => reply(request, "say: Done."),
        turn => reply(request, &format!("read: notes-{}.txt", turn % 50)),
    });
    let run = ["run", "count", "--json", "--control", "assisted", "--context-window", "16000"];
    let ran = program.windlass(&run).expect(4);
    assert_eq!(events(&ran, "status_changed").last().unwrap()["reason"], "context_full");
    assert_eq!(events(&ran, "memory_flush").len(), 1, "notes are saved first");
    assert!(events(&ran, "compaction_start").is_empty());
    let mut resumes = 0;
    let task = program.task();
    let ended = loop {
        let resumed = program.windlass(&["resume", &task, "--json"]);
        resumes += 1;
        assert_eq!(events(&resumed, "compaction_end").len(), 1, "resuming goes on with it");
        if resumed.result()["final_message"] == "Done." {
            break resumed.expect(4);
        }
        assert!(resumes < 30, "{resumed:?}");
    };
    assert_eq!(events(&ended, "status_changed").last().unwrap()["reason"], "awaiting_message");
}

/// ES-154
#[test]
fn without_a_flush_there_is_none() {
    let program = Program::with(ModelServer::start_empty());
    notes(&program, 50, 20);
    let windowed = Windowed::new(16_000);
    windowed.serve(
        &program.server,
        |request| reply(request, &format!("say: {}", quoted(SUMMARY))),
        |turn, request| match turn {
            30.. => reply(request, "say: Done."),
            turn => reply(request, &format!("read: notes-{turn}.txt")),
        },
    );
    let mut command = program.command(&["run", "count", "--json", "--context-window", "16000"]);
    command.env("AGENT_MEMORY_FLUSH_ENABLED", "false");
    let ran = Ran::from(command.output().unwrap()).expect(0);
    assert!(events(&ran, "memory_flush").is_empty());
    assert!(!events(&ran, "compaction_end").is_empty());
}

/// While notes are saved the gate refuses everything else, and a reply without calls does not end the
/// task.
#[test]
fn work_waits_while_notes_are_saved() {
    let program = Program::with(ModelServer::start_empty());
    notes(&program, 50, 20);
    let flushes = AtomicUsize::new(0);
    let turns = AtomicUsize::new(0);
    program.server.answer_with(move |request| {
        if is_summary(request) {
            return Some(reply(request, &format!("say: {}", quoted(SUMMARY))));
        }
        let body = String::from_utf8_lossy(&request.body).into_owned();
        if last_text(request).starts_with("You are approaching")
            && flushes.fetch_add(1, SeqCst) == 0
        {
            return Some(reply(request, "write: {path: sneaky.txt, content: x}"));
        }
        if flushes.load(SeqCst) == 1 && last_text(request).contains("notes are being saved") {
            return Some(reply(
                request,
                "save_memo: {filename: saved.md, content: 'kept in time'}",
            ));
        }
        if last_text(request).contains("Saved `.memo/saved.md`") {
            return Some(reply(request, "say: I have saved what matters."));
        }
        assert!(!body.contains("sneaky.txt ("), "it was not written");
        Some(match turns.fetch_add(1, SeqCst) {
            40.. => reply(request, "say: Done."),
            turn => reply(request, &format!("read: notes-{turn}.txt")),
        })
    });
    let args = ["run", "count", "--json", "--context-window", "16000"];
    let ran = program.windlass(&args).expect(0);
    assert_eq!(ran.result()["final_message"], "Done.");
    assert!(!program.workspace().join("sneaky.txt").exists());
    assert_eq!(program.file(".memo/saved.md"), "kept in time");
}

/// ES-169, ES-170
#[test]
fn summaries_are_asked_of_the_model_that_is_named_for_them() {
    let program = Program::with(ModelServer::start_empty());
    let directory = program.data.path().join(".config/windlass");
    std::fs::create_dir_all(&directory).unwrap();
    let named = "[compaction]\nsummarization_model = \"litellm/tiny\"\n[models.\"tiny\"]\n\
                 context_window = 5000\n";
    std::fs::write(directory.join("config.toml"), named).unwrap();
    notes(&program, 50, 60);
    program.server.answer_with(|request| {
        if is_summary(request) {
            assert!(request.body.len() / BYTES_PER_TOKEN < 5_000, "within its own window");
            return Some(reply(request, &format!("say: {}", quoted(SUMMARY))));
        }
        if last_text(request).starts_with("You are approaching") {
            return Some(reply(request, "say: ok"));
        }
        let body = String::from_utf8_lossy(&request.body).into_owned();
        let more = body.contains("notes-30.txt");
        let seen = (0..=30).filter(|n| body.contains(&format!("notes-{n}.txt"))).max();
        Some(match more {
            true => reply(request, "say: Done."),
            false => reply(request, &format!("read: notes-{}.txt", seen.map_or(0, |n| n + 1))),
        })
    });
    let ran = program.windlass(&["run", "count", "--json", "--context-window", "32000"]).expect(0);
    let joined = format!("{SUMMARY}\n\n---\n\n{SUMMARY}");
    let summaries = events(&ran, "compaction_end");
    let has_joint = |end: &Value| end["summary"].as_str().unwrap().contains(&joined);
    assert!(summaries.iter().any(has_joint), "chunks are summarized apart: {summaries:?}");
    let models: std::collections::BTreeSet<_> = program
        .server
        .requests()
        .iter()
        .map(|request| (is_summary(request), request.model.clone()))
        .collect();
    assert!(models.contains(&(true, "tiny".into())) && models.contains(&(false, "gpt-4o".into())));
    assert_eq!(models.len(), 2, "{models:?}");
}

/// Opt-in: a finished plan step is a reason to compact once the context is 70 % full.
#[test]
fn a_finished_plan_step_compacts_early_where_that_is_wanted() {
    let run = |at_plan_step: &str| {
        let program = Program::with(ModelServer::start_empty());
        let directory = program.data.path().join(".config/windlass");
        std::fs::create_dir_all(&directory).unwrap();
        let wanted = format!("[compaction]\nat_plan_step = {at_plan_step}\n");
        std::fs::write(directory.join("config.toml"), wanted).unwrap();
        notes(&program, 50, 20);
        let windowed = Windowed::new(16_000);
        windowed.serve(
            &program.server,
            |request| reply(request, &format!("say: {}", quoted(SUMMARY))),
            |turn, request| {
                let full = request.body.len() / BYTES_PER_TOKEN * 100 / (16_000 - 4_096);
                let body = String::from_utf8_lossy(&request.body).into_owned();
                match (body.contains("Plan updated"), full) {
                    (true, _) => reply(request, "say: Done."),
                    (false, 71..) => reply(
                        request,
                        "update_plan: {steps: [{id: '1', description: look, status: done}]}",
                    ),
                    (false, _) => reply(request, &format!("read: notes-{}.txt", turn % 50)),
                }
            },
        );
        let ran =
            program.windlass(&["run", "count", "--json", "--context-window", "16000"]).expect(0);
        let started = events(&ran, "compaction_start");
        started
            .iter()
            .map(|start| start["trigger"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(run("true"), ["plan_step"]);
    assert_eq!(run("false"), Vec::<String>::new());
}

/// PL-034, MS-140: the gauge is in the events.
#[test]
fn every_request_says_how_full_the_context_is() {
    let (_, ran) = compacted(|request| reply(request, &format!("say: {}", quoted(SUMMARY))), 20);
    let ran = ran.expect(0);
    let gauges: Vec<_> = events(&ran, "llm_request")
        .into_iter()
        .filter_map(|request| request.get("context").cloned())
        .collect();
    assert_eq!(gauges[0]["level"], "ok");
    assert_eq!(gauges[0]["recommendation"], "continue");
    let warned = gauges.iter().find(|gauge| gauge["level"] == "warning").expect("it fills up");
    assert_eq!(warned["recommendation"], "save-state");
    assert!(warned["percent"].as_f64().unwrap() >= 70.0);
}
