//! One conversation with everything that moves in it: a plan that is accepted and run, a mode that changes in the
//! middle of a running call, one that is for the next unit alone, `/clear` and `/stop`.

use std::path::Path;

use rusqlite::Connection;
use serde_json::Value;

use crate::chat::Open;
use crate::program::Program;

const SCRIPT: &str = "
replies:
  - update_plan: {steps: [{id: '1', description: write greeting.txt, status: pending}]}
  - say: Write greeting.txt.
  - bash: 'echo > started; cat go; echo hello > greeting.txt'
  - say: written
  - say: quickly
  - say: slowly
";

fn pipe(path: &Path) {
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
}

/// A table of two columns of the database, in the order of its rows.
fn rows(program: &Program, sql: &str) -> Vec<String> {
    let database = Connection::open(program.data_directory().join("windlass.db")).unwrap();
    let mut statement = database.prepare(sql).unwrap();
    let columns = statement.column_count();
    let found = statement.query_map((), |row| {
        let cells: Result<Vec<String>, _> = (0..columns).map(|at| row.get(at)).collect();
        Ok(cells?.join(" "))
    });
    found.unwrap().collect::<Result<_, _>>().unwrap()
}

fn tools(request: &Value) -> Vec<&str> {
    let tools = request["tools"].as_array().unwrap();
    tools.iter().map(|tool| tool["function"]["name"].as_str().unwrap()).collect()
}

/// MS-022, MS-024, MS-028, MS-057, MS-061, MS-090: the journal of the session, the requests of each epoch and the rows
/// of the changes agree.
#[test]
fn a_whole_conversation_with_a_plan_and_changing_modes() {
    let program = Program::playing(SCRIPT);
    for name in ["started", "go"] {
        pipe(&program.workspace().join(name));
    }
    let mut chat = Open::start(&program, &[]);
    chat.say("/mode plan");
    assert_eq!(chat.hears(), "plan | manual | normal | smart");
    chat.say("greet the world");
    // The question is on the other stream; the next line answers it.
    chat.say("Accept and run autonomously");
    std::fs::read(program.workspace().join("started")).unwrap();
    assert_eq!(program.mode_json()["workMode"], "build");
    chat.say("/steer mode review");
    let steered = chat.hears();
    assert_eq!(steered, "review | autonomous | normal | deep, when the running step has ended");
    assert_eq!(program.mode_json()["workMode"], "build", "the running call is not changed");
    std::fs::write(program.workspace().join("go"), "").unwrap();
    assert_eq!(chat.hears(), "written");
    assert_eq!(program.file("greeting.txt"), "hello\n");
    chat.say("/steer model-mode fast for-next-unit");
    assert_eq!(chat.hears(), "review | autonomous | normal | fast, for the next work alone");
    chat.say("look again");
    assert_eq!(chat.hears(), "quickly");
    assert_eq!(program.mode_json()["modelMode"], "deep", "taken back");
    chat.say("/clear");
    assert!(chat.hears().starts_with("The conversation is over."));
    chat.say("another matter");
    assert_eq!(chat.hears(), "Write greeting.txt.", "a conversation of its own");
    chat.say("/stop");
    assert!(chat.hears().ends_with("is cancelled"));
    assert_eq!(chat.ends(), 0);

    let kinds = rows(&program, "SELECT kind FROM events WHERE stream LIKE 'ses_%' ORDER BY pos");
    let expected = [
        "session_created",
        "mode_changed",
        "task_begun",
        "mode_changed",
        "mode_requested",
        "mode_changed",
        "mode_changed",
        "mode_changed",
        "cleared",
        "task_begun",
    ];
    assert_eq!(kinds, expected);
    let changes = rows(&program, "SELECT scope, source FROM mode_transitions ORDER BY rowid");
    let expected = [
        "now user",
        "now plan",
        "after-current-tool user",
        "for-next-unit user",
        "for-next-unit user",
    ];
    assert_eq!(changes, expected);

    let sent: Vec<Value> = program.server.requests().iter().map(|one| one.json()).collect();
    let mode = |request: &Value| {
        let text = request["messages"][0]["content"].as_str().unwrap().to_owned();
        let (_, rest) = text.split_once("You work in mode `").expect("the mode's section");
        rest.split('`').next().unwrap().to_owned()
    };
    let modes: Vec<String> = sent.iter().map(mode).collect();
    assert_eq!(modes, ["plan", "plan", "build", "review", "review", "review", "review"]);
    assert!(!tools(&sent[1]).contains(&"write") && tools(&sent[2]).contains(&"write"));
    assert!(!tools(&sent[3]).contains(&"write"), "the tools are those of the mode");
    assert!(!sent[5].to_string().contains("greet the world"), "nothing of the old conversation");
    let doctor = program.windlass(&["doctor", "--sandbox", "host"]).expect(0).stdout;
    assert!(doctor.contains("agrees with its journal"), "{doctor}");
}
