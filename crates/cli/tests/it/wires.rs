//! One task on each wire, with reasoning: the same events, requests that extend each other, and what happens
//! where a server refuses.

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use serde_json::Value;
use windlass_model::Wire;
use windlass_model::script::RequestView as _;
use windlass_testkit::{Answer, Gate, ModelServer, Request};

use crate::long_compaction::{SUMMARY, notes, quoted};
use crate::program::{Program, Ran};

/// A machine whose model server speaks this wire under the provider's name `test`.
pub fn speaking(server: ModelServer, wire: Wire) -> Program {
    let program = Program::with(server);
    let base = program.server.base();
    configure(
        &program,
        &format!(
            "[models.providers.test]\nbase = \"{base}\"\nwire = \"{wire}\"\nreasoning = \"return\"\n\
             vision = true\n"
        ),
    );
    program
}

/// Writes the user's configuration file.
pub fn configure(program: &Program, text: &str) {
    let directory = program.data.path().join(".config/windlass");
    std::fs::create_dir_all(&directory).unwrap();
    std::fs::write(directory.join("config.toml"), text).unwrap();
}

pub const SCRIPT: &str = "
replies:
  - think: [The notes come first., Then their size.]
    text: Looking at both.
    calls: [{read: notes.txt}, {bash: wc -l notes.txt}]
    usage: {input: 3000, output: 60, cached: 0}
  - think: One more.
    calls: [{read: notes.txt}]
    usage: {input: 3200, output: 40, cached: 3000}
  - {think: All seen., say: Two lines., usage: {input: 3400, output: 20, cached: 3200}}
";

/// What a run or a provider gives its own value.
const VARYING: [&str; 18] = [
    "id",
    "call",
    "call_id",
    "task_id",
    "command_id",
    "session_id",
    "user_id",
    "timestamp",
    "latency_ms",
    "segment_ms",
    "duration_ms",
    "hash",
    "seal",
    "provider_id",
    "estimated_tokens",
    "context",
    "cost_usd",
    "prelude",
];

/// Events without what differs from run to run, and without what only the provider understands.
pub fn comparable(program: &Program, ran: &Ran) -> String {
    let mut events = ran.json_lines();
    for event in &mut events {
        event["timestamp"] = Value::Null;
        mask(&mut event["data"]);
    }
    let text = serde_json::to_string_pretty(&events).unwrap();
    let home = program.data.path().display().to_string();
    let text = text.replace(&program.real_workspace(), "WORKSPACE").replace(&home, "HOME");
    text.replace(&program.task(), "TASK")
}

fn mask(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            // Some are not there at all where nobody knows them.
            fields.retain(|name, _| !VARYING.contains(&name.as_str()));
            fields.values_mut().for_each(mask);
        }
        Value::Array(all) => all.iter_mut().for_each(mask),
        _ => {}
    }
}

/// Fails with the lines that differ.
pub fn assert_same(one: &str, other: &str, what: &str) {
    let differs: Vec<_> = one.lines().zip(other.lines()).filter(|(a, b)| a != b).take(20).collect();
    assert!(differs.is_empty(), "{what}: {differs:#?}");
    assert_eq!(one.lines().count(), other.lines().count(), "{what}");
}

fn two_lines(program: &Program) {
    std::fs::write(program.workspace().join("notes.txt"), "one\ntwo\n").unwrap();
}

#[test]
fn the_same_script_gives_the_same_events_on_every_wire() {
    let run = |wire: Wire| {
        let program = speaking(ModelServer::start(SCRIPT), wire);
        two_lines(&program);
        let args = ["run", "how long are the notes?", "--model", "test/m", "--json"];
        let ran = program.windlass(&[&args[..], &["--effort", "low"]].concat()).expect(0);
        assert_eq!(ran.result()["final_message"], "Two lines.");
        assert!(!ran.result().to_string().contains("All seen"), "reasoning is not in the result");
        let requests = program.server.requests();
        assert_eq!(requests.len(), 3);
        assert!(requests.iter().all(|request| request.wire() == Some(wire)), "{wire}");
        for pair in requests.windows(2) {
            pair[1].assert_extends(&pair[0]);
        }
        comparable(&program, &ran)
    };
    let chat = run(Wire::Chat);
    assert!(chat.contains("The notes come first."), "reasoning is in the events: {chat}");
    for wire in [Wire::Responses, Wire::Anthropic] {
        assert_same(&chat, &run(wire), wire.as_str());
    }
}

const TURNS: usize = 50;
const WINDOW: &str = "24000";
/// One turn in so many also looks at a picture.
const PICTURE_EVERY: usize = 4;

/// Every reply follows from the conversation alone, so that a kill changes nothing.
fn working(request: &Request) -> Answer {
    let whole = String::from_utf8_lossy(&request.body).into_owned();
    let read = (0..TURNS).rfind(|n| whole.contains(&format!("note {n} line")));
    let next = read.map_or(0, |last| last + 1);
    let item = if whole.contains("You summarize") {
        format!("say: {}", quoted(SUMMARY))
    } else if request.new_texts().iter().any(|text| text.contains("You are approaching")) {
        "say: Nothing new to save.".to_owned()
    } else if next == TURNS {
        "think: Thinking of the end.\nsay: All read.".to_owned()
    } else {
        let thought = format!("Thinking of note {next}. {}", "Carefully. ".repeat(30));
        let picture = match next % PICTURE_EVERY {
            0 => format!(", {{read: shot-{next}.png}}"),
            _ => String::new(),
        };
        let thought = quoted(thought.trim());
        format!("think: {thought}\ncalls: [{{read: notes-{next}.txt}}{picture}]")
    };
    let input = request.body.len() / 3;
    Answer::script(&format!("{item}\nusage: {{input: {input}, output: 120}}"))
}

fn is_summary(request: &Request) -> bool {
    String::from_utf8_lossy(&request.body).contains("You summarize")
}

/// How many thoughts a request sends back.
fn thoughts_in(request: &Request) -> usize {
    String::from_utf8_lossy(&request.body).matches("Thinking of ").count()
}

/// How many pictures a request shows, on any wire.
fn pictures_in(request: &Request) -> usize {
    let text = String::from_utf8_lossy(&request.body).into_owned();
    let marks = [r#""type":"image_url""#, r#""type":"input_image""#, r#""type":"image""#];
    marks.iter().map(|mark| text.matches(mark).count()).sum()
}

/// §15.20: reasoning and pictures are sent back unchanged within the epoch; reasoning is dropped at a
/// compaction.
#[test]
fn fifty_turns_extend_each_other_across_a_kill_and_compactions() {
    for &wire in Wire::ALL {
        let server = ModelServer::start_empty();
        let (gate, held) = (Gate::new(), AtomicBool::new(false));
        let at_gate = gate.clone();
        server.checks_reasoning().answer_with(move |request| {
            let answer = working(request);
            let is_turn = request.new_texts().join("").contains("note 20 line");
            let hold = is_turn && !held.swap(true, SeqCst);
            Some(if hold { answer.gated(0, &at_gate) } else { answer })
        });
        let program = speaking(server, wire);
        notes(&program, TURNS, 6);
        for turn in (0..TURNS).step_by(PICTURE_EVERY) {
            let seed = u8::try_from(turn).unwrap();
            let picture = windlass_testkit::png(40, 30, seed);
            std::fs::write(program.workspace().join(format!("shot-{turn}.png")), picture).unwrap();
        }
        let args = ["run", "read all notes", "--model", "test/m", "--effort", "low", "-q"];
        let mut child = program.start(&[&args[..], &["--context-window", WINDOW]].concat());
        gate.reached_blocking();
        child.kill().unwrap();
        child.wait().unwrap();
        gate.open();
        let ran = program.windlass(&["resume", &program.task(), "--json"]).expect(0);
        assert_eq!(ran.result()["final_message"], "All read.");

        let requests: Vec<_> =
            program.server.requests().into_iter().filter(|r| !is_summary(r)).collect();
        assert!(requests.len() > TURNS, "{wire}: {}", requests.len());
        let mut epochs = 0;
        for pair in requests.windows(2) {
            if pair[1].replies >= pair[0].replies {
                pair[1].assert_extends(&pair[0]);
                assert!(thoughts_in(&pair[1]) >= thoughts_in(&pair[0]), "{wire}");
                assert!(pictures_in(&pair[1]) >= pictures_in(&pair[0]), "{wire}");
            } else {
                epochs += 1;
                assert_eq!(thoughts_in(&pair[1]), 0, "{wire}: reasoning of the old epoch");
            }
        }
        assert!(epochs >= 1, "{wire}: no compaction");
        let both = |request: &Request| thoughts_in(request) > 5 && pictures_in(request) > 1;
        assert!(requests.iter().any(both), "{wire}");
    }
}

/// A signature that the server refuses later costs the reasoning, not the turn.
#[test]
fn a_refused_signature_is_dropped_and_the_task_continues() {
    for wire in [Wire::Anthropic, Wire::Responses] {
        let server = ModelServer::start(SCRIPT);
        let refused = AtomicBool::new(false);
        server.answer_with(move |request| {
            let refuse = request.replies == 2 && !refused.swap(true, SeqCst);
            let words = "messages.1.content.0: Invalid `signature` in `thinking` block";
            refuse.then(|| Answer::error(400, words))
        });
        let program = speaking(server, wire);
        two_lines(&program);
        let ran = program.windlass(&["run", "how long?", "--model", "test/m", "--json"]).expect(0);
        assert_eq!(ran.result()["final_message"], "Two lines.");
        assert_eq!(ran.kinds().iter().filter(|kind| *kind == "reasoning_dropped").count(), 1);
        let requests = program.server.requests();
        assert_eq!(requests.len(), 4, "{wire}");
        let holds = |at: usize| String::from_utf8_lossy(&requests[at].body).contains("come first");
        assert_eq!([holds(2), holds(3)], [true, false], "{wire}");
        let page = program.windlass(&["events", &program.task()]).expect(0).stdout;
        assert!(page.contains("reasoning_dropped"), "{page}");
    }
}

#[test]
fn a_switch_of_model_ends_the_epoch_and_takes_no_reasoning_along() {
    let server = ModelServer::start(SCRIPT);
    server.next(Answer::script("think: A thought of the first.\nread: notes.txt"));
    server.next(Answer::error_of(401, "authentication_error", "", "not today"));
    let program = speaking(server, Wire::Anthropic);
    two_lines(&program);
    program.windlass(&["run", "how long?", "--model", "test/m", "-q"]).expect(1);
    program.windlass(&["retry", &program.task(), "--model", "test/other", "-q"]).expect(0);
    let requests = program.server.requests();
    let sent = |at: usize| String::from_utf8_lossy(&requests[at].body).into_owned();
    assert!(sent(1).contains("A thought of the first."), "{}", sent(1));
    assert_eq!(requests[2].model, "other");
    assert!(!sent(2).contains("A thought of the first."), "{}", sent(2));
}

#[test]
fn reasoning_is_folded_while_a_task_runs_and_left_out_after() {
    let program = speaking(ModelServer::start(SCRIPT), Wire::Anthropic);
    two_lines(&program);
    let ran = program.windlass(&["run", "how long?", "--model", "test/m"]).expect(0);
    assert!(ran.stderr.contains("∴ The notes come first. (+1 line)"), "{}", ran.stderr);
    assert!(!ran.stdout.contains('∴'), "{}", ran.stdout);
    let shown = program.windlass(&["result", &program.task()]).expect(0).stdout;
    assert!(!shown.contains("come first"), "{shown}");
    let events = program.windlass(&["events", &program.task(), "--json"]).expect(0).stdout;
    assert!(events.contains("The notes come first."), "{events}");
}

#[test]
fn a_wire_that_the_server_refuses_is_named_with_its_setting() {
    let server = ModelServer::start_empty();
    server.answer_with(|_| {
        Some(Answer::status(404, "application/json", r#"{"detail":"Not Found"}"#))
    });
    let program = speaking(server, Wire::Responses);
    let failed = program.windlass(&["run", "go", "--model", "test/m"]).expect(1).stderr;
    assert!(failed.contains("status 404 for `/responses`"), "{failed}");
    assert!(failed.contains("`wire = \"chat\"`"), "{failed}");
}
