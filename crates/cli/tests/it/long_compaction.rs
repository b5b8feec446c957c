//! Tasks that outgrow their context: compaction through the real program.

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};

use serde_json::Value;
use windlass_testkit::{Answer, Gate, ModelServer, Request};

use crate::program::{Program, Ran};

/// How this provider counts, unlike our first guess.
pub const BYTES_PER_TOKEN: usize = 3;
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

/// ES-041, ES-151, ES-157, ES-163, ES-164, ES-165, ES-180, ES-183.
#[test]
fn four_hundred_turns_in_a_small_window_lose_nothing_important() {
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
pub fn compacted(
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
        8 => reply(request, "write: {path: made.txt, content: made}"),
        9 => reply(
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

/// PL-072: without a person the loop itself compacts; ES-010, ES-046, ES-120, ES-150, ES-158, ES-160, ES-162, ES-163, ES-164, ES-171, ES-314, ES-315,
/// ES-316, ES-329, ES-330, ES-331, ES-342, ES-343
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
    let requests = program.server.requests();
    let flush = requests.iter().find(|request| asks_for_notes(request)).unwrap();
    let own = format!("{}/.windlass/tasks/{}", program.seen_workspace(), program.task());
    assert_eq!(
        last_text(flush),
        format!(
            "You are approaching context limits. Save any important information to {own}/memo/ before I \
             summarize older messages. Use save_memo tool."
        )
    );

    // What is asked of the summarizer.
    let place = requests.iter().position(is_summary).unwrap();
    let asked = requests[place].json();
    let asked = asked["messages"][0]["content"].as_str().unwrap();
    for words in [
        "failed call with its exact error text",
        "paths of files created, modified or read",
        "decision with its reasoning",
        "What was found out",
        "The current state of the plan",
        "Everything the user instructed or corrected",
        "concise bullets, no raw file contents, no full outputs",
    ] {
        assert!(asked.contains(words), "{words}: {asked}");
    }

    // What the model saw next: system, task, summary, whole turns.
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
    assert!(header.contains(&format!("{own}/scratch/compaction-1.md")), "{header}");
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
        program.own_file("plan.md").contains("**1**: pebbles"),
        "the plan outlives what was dropped"
    );
    let ended = events(&ran, "compaction_end");
    let count = ended.len();
    let sum = |field: &str| ended.iter().map(|end| end[field].as_u64().unwrap()).sum::<u64>();
    let metrics = program.windlass(&["metrics"]).expect(0).stdout;
    for wanted in [
        format!("agent_compaction_count {count}\n"),
        format!("agent_compaction_tokens_before_count {count}\n"),
        format!("agent_compaction_tokens_before_sum {}\n", sum("tokens_before")),
        format!("agent_compaction_tokens_after_count {count}\n"),
        format!("agent_compaction_tokens_after_sum {}\n", sum("tokens_after")),
    ] {
        assert!(metrics.contains(&wanted), "{wanted} in\n{metrics}");
    }
    for (message, fields) in [
        ("Compaction triggered", ["task_id", "tokens_before", "tokens_after"].as_slice()),
        ("Memory flush", ["task_id", "files_written"].as_slice()),
    ] {
        let line = ran.stderr.lines().find(|line| line.contains(message)).expect(message);
        assert!(fields.iter().all(|field| line.contains(&format!("{field}="))), "{line}");
        assert!(line.contains(" INFO "), "{line}");
    }

    let dropped = program.own_file("scratch/compaction-1.md");
    assert!(dropped.contains("it broke: E4711") && dropped.contains("note 1 line 19"), "{dropped}");
    let shown = program.windlass(&["show", &program.task(), "--compactions"]).expect(0);
    assert!(
        shown.stdout.contains("compaction 1 at")
            && shown.stdout.contains("scratch/compaction-1.md")
    );
    let rows = program.windlass(&["show", &program.task(), "--compactions", "--json"]).expect(0);
    assert_eq!(rows.json_lines().len(), events(&ran, "compaction_end").len());
}

/// ES-157, ES-160: where there is room for them, the last six turns stand there as they did before, and of
/// those before them none.
#[test]
fn the_last_six_turns_stay_word_for_word() {
    let program = Program::with(ModelServer::start_empty());
    notes(&program, 50, 100);
    let windowed = Windowed::new(40_000);
    let summary = |request: &Request| reply(request, &format!("say: {}", quoted(SUMMARY)));
    windowed.serve(&program.server, summary, |turn, request| match turn {
        30.. => reply(request, "say: Done."),
        turn => reply(request, &format!("read: notes-{turn}.txt")),
    });
    let args = ["run", "count", "--json", "--context-window", "40000"];
    let ran = program.windlass(&args).expect(0);
    assert_eq!(events(&ran, "compaction_end")[0]["kept_turns"], 6);
    let requests = program.server.requests();
    let place = requests.iter().position(is_summary).unwrap();
    let next = requests[place..].iter().find(|request| !is_summary(request)).unwrap();
    let [before, after] =
        [&requests[place - 1], next].map(|request| request.json()["messages"].clone());
    let (before, after) = (before.as_array().unwrap(), after.as_array().unwrap());
    let replies = |messages: &[Value]| messages.iter().filter(|m| m["role"] == "assistant").count();
    assert_eq!(replies(after), 6);
    // The answer to the last request before it is the sixth.
    let newest = after.iter().rposition(|message| message["role"] == "assistant").unwrap();
    assert_eq!(after[newest + 1..].len(), 1, "with its result");
    // The turns for notes, which come between them, are gone.
    let work = |message: &&Value| message["role"] == "tool" || message["tool_calls"].is_array();
    let before: Vec<_> = before.iter().filter(work).cloned().collect();
    assert!(before.ends_with(&after[3..newest]), "{after:#?}");
    assert_eq!(replies(&after[3..newest]), 5);
}

/// ES-159, ES-181: an agent that does not save its notes is delayed by three turns at most. What was
/// dropped can be found in its file.
#[test]
fn saving_notes_takes_three_turns_at_most() {
    let program = Program::with(ModelServer::start_empty());
    notes(&program, 50, 20);
    let turns = AtomicUsize::new(0);
    program.server.answer_with(move |request| {
        if is_summary(request) {
            return Some(reply(request, &format!("say: {}", quoted(SUMMARY))));
        }
        let compacted = String::from_utf8_lossy(&request.body).contains("compaction-1.md");
        let found = last_text(request).contains("note 1 line 19");
        Some(match turns.fetch_add(1, SeqCst) {
            _ if compacted && found => reply(request, "say: Done."),
            _ if compacted => {
                reply(request, "grep: {pattern: 'note 1 line 19', path: .windlass/tasks}")
            }
            turn => reply(request, &format!("read: notes-{turn}.txt")),
        })
    });
    let args = ["run", "count", "--json", "--context-window", "16000"];
    let ran = program.windlass(&args).expect(0);
    let lines = ran.json_lines();
    let at = |kind: &str| lines.iter().position(|one| one["event_type"] == kind).unwrap();
    let checks = lines[at("memory_flush")..at("compaction_start")].iter();
    let checks = checks.filter(|line| line["event_type"] == "risk_check");
    let decisions: Vec<_> = checks.map(|line| line["data"]["decision"].as_str().unwrap()).collect();
    assert_eq!(decisions[..4], ["deny", "deny", "deny", "allow"], "{decisions:?}");
    assert!(decisions[3..].iter().all(|decision| *decision == "allow"), "{decisions:?}");
    assert_eq!(ran.result()["final_message"], "Done.");
}

/// PL-035, PL-072, C-22: under assisted control a task with a full context pauses once its notes are saved.
#[test]
fn under_assisted_control_a_full_context_pauses_before_it_is_compacted() {
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
        assert_eq!(events(&resumed, "compaction_end").len(), 1, "a resume continues it");
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
        if last_text(request).contains("memo/saved.md` (") {
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
    assert_eq!(program.own_file("memo/saved.md"), "kept in time");
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
