//! `chat` over a pipe and at a terminal, and `mode` beside it.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, Stdio};

use crate::program::{Program, Ran};
use crate::terminal::Terminal;

const REPLIES: &str = "replies: [{say: one}, {say: two}, {say: three}, {say: four}]";

impl Program {
    /// A conversation whose lines come from a pipe.
    pub fn chat(&self, args: &[&str], lines: &str) -> Ran {
        let args: Vec<&str> = ["chat", "-q"].iter().chain(args).copied().collect();
        let mut child = self
            .command(&args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
        child.wait_with_output().unwrap().into()
    }

    pub fn mode_json(&self) -> serde_json::Value {
        self.windlass(&["mode", "--json"]).expect(0).json_lines().remove(0)
    }
}

/// A conversation that is still open: lines in, lines out.
pub struct Open {
    child: Child,
    lines: ChildStdin,
    answers: BufReader<std::process::ChildStdout>,
}

impl Open {
    pub fn start(program: &Program, args: &[&str]) -> Self {
        let mut child = program
            .command(&["chat", "-q"])
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        let (lines, answers) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        Self { child, lines, answers: BufReader::new(answers) }
    }

    pub fn say(&mut self, line: &str) {
        writeln!(self.lines, "{line}").unwrap();
    }

    /// The next line of stdout.
    pub fn hears(&mut self) -> String {
        let mut line = String::new();
        self.answers.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    pub fn ends(mut self) -> i32 {
        drop(self.lines);
        self.child.wait().unwrap().code().unwrap()
    }
}

/// What a turn leaves running ends with the turn; the person and the agent read that, and nothing was lost.
#[test]
fn a_background_command_is_said_to_end_with_its_turn() {
    let program = Program::playing(
        "replies: [{bash: {command: sleep 600, background: true}}, {say: one}, {say: two}]",
    );
    let args = ["--mode", "build", "--permission-profile", "trusted"];
    program.chat(&args, "start it\nlook\n").expect(0);
    let end = "stopped at the end of the turn";
    let last = program.server.requests()[2].json().to_string();
    assert!(last.contains(&format!("(`sleep 600`) has ended: {end}")), "{last}");
    let events = program.windlass(&["events", &program.task()]).expect(0).stdout;
    assert!(events.contains(&format!("sleep 600: {end}")), "{events}");
    assert!(!events.contains("sandbox_lost"), "{events}");
}

/// Each message waits for the answer to the one before; the second has the first in its context.
#[test]
fn lines_of_a_pipe_are_a_conversation() {
    let program = Program::playing(REPLIES);
    let ran = program.chat(&[], "what is this?\nand why?\n").expect(0);
    assert_eq!(ran.stdout, "one\ntwo\n");
    assert!(ran.stderr.contains("continue with: windlass chat --session ses_"), "{ran:?}");
    let second = program.server.requests()[1].json().to_string();
    assert!(second.contains("what is this?") && second.contains("User says: and why?"));
    let listed = program.windlass(&["tasks", "--json"]).expect(0).json_lines();
    assert_eq!(listed.len(), 1, "one conversation is one task");
    assert_eq!(listed[0]["status"], "paused");
    let page = program.windlass(&["tasks"]).expect(0).stdout;
    assert!(page.contains("waiting for you") && !page.contains("stuck"), "{page}");
}

/// MS-001, MS-204, MS-221: a later process takes the conversation up, with its axes, and they stay.
#[test]
fn a_conversation_is_continued_by_another_process() {
    let program = Program::playing(REPLIES);
    program.chat(&[], "remember 4711\n/mode research\n").expect(0);
    assert_eq!(program.mode_json()["workMode"], "research");
    let ran = program.chat(&["--continue"], "which number?\n").expect(0);
    assert_eq!(ran.stdout, "two\n");
    assert!(program.server.requests()[1].json().to_string().contains("4711"));
    assert_eq!(program.mode_json()["workMode"], "research", "a mode is not a single command");
    let fresh = program.chat(&[], "which number?\n").expect(0);
    assert_eq!(fresh.stdout, "one\n");
    assert!(!program.server.requests()[2].json().to_string().contains("4711"), "a new one");
    let none = program.chat(&["--session", "ZZZZ"], "hello\n").expect(2);
    assert!(none.stderr.contains("there is no session `ZZZZ`"), "{none:?}");
}

/// MS-021: who only looks leaves nothing, and a question leaves no files, notes or rows beside its conversation.
#[test]
fn a_conversation_without_a_line_leaves_nothing() {
    let program = Program::playing(REPLIES);
    let ran = program.chat(&[], "").expect(0);
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("", ""));
    assert!(program.windlass(&["sessions"]).expect(0).stderr.contains("no sessions"));
    program.chat(&[], "what is this?\n").expect(0);
    let files = std::fs::read_dir(program.workspace()).unwrap().count();
    assert_eq!(files, 0, "a question makes no files");
    for table in ["deliverables", "memories", "commitments", "planning_issues", "schedules"] {
        assert_eq!(crate::plans::count(&program, table), 0, "{table}");
    }
}

/// MS-004, MS-009: five axes, and the surface of the entry.
#[test]
fn mode_prints_five_axes() {
    let program = Program::playing(REPLIES);
    program.chat(&[], "hello\n").expect(0);
    let mode = program.mode_json();
    let expected = serde_json::json!({
        "workMode": "chat", "runControl": "manual", "permissionProfile": "normal",
        "modelMode": "smart", "surface": "tui",
    });
    assert_eq!(mode, expected);
    program.windlass(&["mode", "set", "build", "--control", "assisted"]).expect(0);
    let page = program.windlass(&["mode"]).expect(0).stdout;
    assert!(page.contains("work mode           build"), "{page}");
    let log = program.windlass(&["mode", "log", "--json"]).expect(0).json_lines();
    assert_eq!(log.len(), 1, "one change, one row");
    assert_eq!((&log[0]["scope"], &log[0]["source"]), (&"now".into(), &"user".into()));
    program.windlass(&["run", "work", "-q"]).expect(0);
    let run = program.windlass(&["sessions", "--json"]).expect(0).json_lines();
    let id = run[0]["session_id"].as_str().unwrap();
    let of_run = program.windlass(&["mode", "--json", "--session", id]).expect(0).json_lines();
    assert_eq!(of_run[0]["surface"], "headless");
}

/// MS-091: exit code 2, what is allowed, and nothing changed.
#[test]
fn a_wrong_mode_is_refused_with_what_is_allowed() {
    let program = Program::playing(REPLIES);
    let none = program.windlass(&["mode"]).expect(2);
    assert!(none.stderr.contains("there is no session"), "{none:?}");
    program.chat(&[], "hello\n").expect(0);
    for (args, words) in [
        (vec!["mode", "set", "party"], "allowed: chat, plan, build"),
        (vec!["mode", "set", "party"], "hint: see `windlass mode set --help`"),
        (vec!["mode", "set", "build", "--scope", "someday"], "allowed: now, after-current-tool"),
        (vec!["mode", "set", "--control", "never"], "allowed: manual, assisted, autonomous"),
        (vec!["mode", "set", "--scope", "now"], "nothing to change"),
        (vec!["mode", "set", "--permission-profile", "unrestricted"], "allow_unrestricted = true"),
    ] {
        let ran = program.windlass(&args).expect(2);
        assert!(ran.stderr.contains(words), "{args:?}: {ran:?}");
    }
    assert_eq!(program.mode_json()["workMode"], "chat");
    let ran = program.chat(&["--continue"], "/frobnicate\n/mdoe build\n").expect(2);
    assert!(ran.stderr.contains("`/frobnicate` is not a command"), "{ran:?}");
    assert!(ran.stderr.contains("did you mean `/mode`?"), "{ran:?}");
}

/// A question is answered by the next line; a command before it is a command.
#[test]
fn a_question_takes_the_next_line_as_its_answer() {
    let program = Program::playing(
        "replies: [{bash: touch made.txt}, {say: made it}, {bash: touch more.txt}, {say: no}]",
    );
    let ran = program.chat(&["--mode", "build"], "make it\n/queue\ny\n").expect(0);
    assert!(ran.stdout.ends_with("made it\n") && ran.stdout.contains("PLACE"), "{ran:?}");
    assert!(ran.stderr.contains("touch made.txt"), "{ran:?}");
    assert!(program.workspace().join("made.txt").exists());
    let open = program.chat(&["--continue"], "more\n").expect(3);
    assert!(open.stderr.contains("touch more.txt"), "{open:?}");
    let denied = program.chat(&["--continue"], "no, leave it\n").expect(0);
    assert_eq!(denied.stdout, "no\n");
    assert!(!program.workspace().join("more.txt").exists());
}

/// A question from before is shown again, and a line that answers nothing says how to answer.
#[test]
fn a_message_for_a_session_with_a_question_shows_the_question() {
    let program = Program::playing(
        "replies: [{ask_user: {question: which colour?, options: [red, blue]}}, {say: painted}]",
    );
    program.chat(&[], "paint the door\n").expect(3);
    let ran = program.chat(&["--continue"], "");
    assert!(ran.stderr.contains("which colour?"), "{ran:?}");
    let refused = program.chat(&["--continue"], "/remote\n/frobnicate\n").expect(2);
    assert!(refused.stderr.contains("Answer with: windlass answer q_"), "{refused:?}");
    let answered = program.chat(&["--continue"], "blue\n").expect(0);
    assert_eq!(answered.stdout, "painted\n");
}

/// What answers nothing leaves the question as it was: shown again, and the exit code of a question.
#[test]
fn a_line_that_answers_nothing_leaves_the_question_open() {
    let program = Program::playing("replies: [{say: hello}, {bash: rm -f nothing.txt}]");
    let ran = program.chat(&["--mode", "build"], "hi\nremove\nthird\n").expect(3);
    assert!(ran.stderr.contains("`third`"), "{ran:?}");
    assert_eq!(ran.stderr.matches("1. Allow").count(), 2, "{ran:?}");
}

/// MS-199: what scripts made up is in no sum, and is named.
#[test]
fn cost_in_a_conversation_names_replies_of_scripts() {
    let program = Program::playing("replies: []");
    let script = program.workspace().join("script.yaml");
    std::fs::write(&script, "replies: [{say: hello}]").unwrap();
    let model = format!("script:{}", script.display());
    let ran = program.chat(&["--model", &model], "hi\n/cost\n").expect(0);
    assert!(ran.stdout.contains("Not counted: 1 replies of scripts"), "{ran:?}");
}

/// MS-057, MS-090: the whole of it in one conversation: a mode that changes in the middle of a running call, one
/// that is for the next unit alone, `/clear` and `/stop`.
#[test]
fn a_mode_changes_in_the_middle_of_a_running_call() {
    let program = Program::playing(
        "replies: [{bash: 'echo > started; cat go'}, {say: one}, {say: two}, {say: three}, {say: four}]",
    );
    for pipe in ["started", "go"] {
        let path = program.workspace().join(pipe);
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    }
    let mut chat = Open::start(&program, &[]);
    chat.say("/mode build --autonomous --permission-profile trusted");
    assert_eq!(chat.hears(), "build | autonomous | trusted | smart");
    chat.say("work");
    std::fs::read(program.workspace().join("started")).unwrap();
    chat.say("/steer mode review");
    let steered = chat.hears();
    assert_eq!(steered, "review | autonomous | trusted | deep, when the running step has ended");
    assert_eq!(program.mode_json()["pending"][0]["scope"], "after-current-tool");
    std::fs::write(program.workspace().join("go"), "").unwrap();
    assert_eq!(chat.hears(), "one");
    chat.say("/steer model-mode fast for-next-unit");
    assert_eq!(chat.hears(), "review | autonomous | trusted | fast, for the next work alone");
    chat.say("more");
    assert_eq!(chat.hears(), "two");
    assert_eq!(program.mode_json()["modelMode"], "deep", "taken back");
    chat.say("/clear");
    chat.hears();
    chat.say("anew");
    assert_eq!(chat.hears(), "one");
    chat.say("/stop");
    assert!(chat.hears().ends_with("is cancelled"));
    assert_eq!(chat.ends(), 0);

    let log = program.windlass(&["mode", "log", "--json"]).expect(0).json_lines();
    let scopes: Vec<_> = log.iter().map(|row| row["scope"].as_str().unwrap()).collect();
    assert_eq!(scopes, ["now", "after-current-tool", "for-next-unit", "for-next-unit"]);
    let sent: Vec<_> = program.server.requests().iter().map(|one| one.json().to_string()).collect();
    assert!(sent[0].contains(r#""name":"write""#) && !sent[1].contains(r#""name":"write""#));
    assert!(sent[1].contains("The mode has changed to") && !sent[3].contains("\"work\""));
    let doctor = program.windlass(&["doctor", "--sandbox", "host"]).expect(0).stdout;
    assert!(doctor.contains("agrees with its journal"), "{doctor}");
}

/// A task that is killed between a change and its effect: the change holds after it is resumed.
#[test]
fn a_change_survives_the_death_of_the_process_that_follows_it() {
    let program =
        Program::playing("replies: [{bash: 'echo > started; cat go'}, {say: one}, {say: two}]");
    for pipe in ["started", "go"] {
        let path = program.workspace().join(pipe);
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    }
    let flags = ["--mode", "build", "--control", "autonomous", "--permission-profile", "trusted"];
    let mut chat = Open::start(&program, &flags);
    chat.say("work");
    std::fs::read(program.workspace().join("started")).unwrap();
    program.windlass(&["mode", "set", "review", "--scope", "after-current-tool"]).expect(0);
    assert_eq!(program.mode_json()["workMode"], "build", "the call still runs");
    chat.child.kill().unwrap();
    chat.child.wait().unwrap();
    let ran = program.chat(&["--continue"], "more\n").expect(0);
    assert!(ran.stderr.contains("which was interrupted"), "{ran:?}");
    assert_eq!(program.mode_json()["workMode"], "review");
    let last = program.server.requests().last().unwrap().json().to_string();
    assert!(!last.contains(r#""name":"write""#), "the model has the rules of the new mode");
}

/// At a terminal: a prompt, an answer, and Ctrl-D leaves.
#[test]
fn a_terminal_shows_a_prompt_and_the_answer() {
    let program = Program::playing(REPLIES);
    let mut command = program.command(&["chat"]);
    command.env("TERM", "xterm");
    let mut terminal = Terminal::start(command, 100);
    terminal.until("chat | manual | normal | smart");
    terminal.until("> ");
    terminal.types("hello\n");
    terminal.until("one");
    terminal.types("/mode plan\n");
    terminal.until("plan | manual | normal | smart");
    terminal.types("\u{4}");
    let (written, code) = terminal.end();
    assert_eq!(code, 0, "{written}");
    assert!(written.contains("windlass chat --session"), "{written}");
}

/// AX-114: a skill that people may call is a command of the session.
#[test]
fn a_skill_is_a_command_of_the_conversation() {
    let program = Program::playing(REPLIES);
    let skill = program.workspace().join(".windlass/skills/deploy");
    std::fs::create_dir_all(&skill).unwrap();
    std::fs::write(
        skill.join("SKILL.md"),
        "---\nname: deploy\ndescription: Ship it.\nuser-invocable: true\n---\nShip to $ARGUMENTS.\n",
    )
    .unwrap();
    let ran = program.chat(&[], "/skills\n/deploy staging\n").expect(0);
    assert!(ran.stdout.contains("/deploy") && ran.stdout.contains("Ship it."), "{ran:?}");
    assert!(ran.stdout.ends_with("one\n"), "{ran:?}");
    let sent = program.server.requests()[0].json().to_string();
    assert!(sent.contains("Follow the skill `deploy`"), "{sent}");
}

/// MS-221, O-07: a project's file gives defaults once it is approved, and never a looser profile than the user's.
#[test]
fn an_approved_project_gives_defaults_and_no_looser_profile() {
    let program = Program::playing(REPLIES);
    std::fs::create_dir_all(program.workspace().join(".windlass")).unwrap();
    let file = "[agent]\nchat_mode = \"plan\"\n\n[policy]\nprofile = \"trusted\"\n";
    std::fs::write(program.workspace().join(".windlass/config.toml"), file).unwrap();
    program.chat(&[], "hello\n").expect(0);
    assert_eq!(program.mode_json()["workMode"], "chat", "not approved");
    program.windlass(&["trust", "--yes"]).expect(0);
    program.chat(&[], "hello\n").expect(0);
    let mode = program.mode_json();
    assert_eq!((&mode["workMode"], &mode["permissionProfile"]), (&"plan".into(), &"normal".into()));
    let stricter = file.replace("trusted", "restricted");
    std::fs::write(program.workspace().join(".windlass/config.toml"), stricter).unwrap();
    program.windlass(&["trust", "--yes"]).expect(0);
    program.chat(&[], "hello\n").expect(0);
    assert_eq!(program.mode_json()["permissionProfile"], "restricted");
}

/// Defect of old: `/steer mode …` and `/status` to a task are commands of its session, not words for the agent.
#[test]
fn a_command_sent_to_a_task_is_one_of_its_session() {
    let program = Program::playing("replies: [{ask_user: {question: which?}}, {say: done}]");
    program.windlass(&["run", "work", "-q"]).expect(3);
    let task = program.task();
    let steered = program.windlass(&["send", &task, "/steer mode review"]).expect(0);
    assert_eq!(steered.stdout, "review | autonomous | trusted | deep\n");
    let status = program.windlass(&["send", &task, "/status"]).expect(0).stdout;
    assert!(status.contains("waiting for an answer"), "{status}");
    program.windlass(&["answer", &task, "blue", "--resume", "-q"]).expect(0);
    let last = program.server.requests().last().unwrap().json().to_string();
    assert!(!last.contains("mode review") && !last.contains(r#""name":"write""#), "{last}");
}

/// A directory beside the workspace, and a limit of the cost, as `run` has them.
#[test]
fn a_conversation_has_added_directories_and_a_budget() {
    let beside = tempfile::tempdir().unwrap();
    let place = beside.path().canonicalize().unwrap().display().to_string();
    let file = format!("{place}/made.txt");
    let script = format!(
        "replies: [{{write: {{path: {file}, content: x}}, usage: {{input: 1000, output: 10}}}}, {{say: one}}]"
    );
    let program = Program::playing(&script);
    let flags = ["--mode", "build", "--control", "autonomous", "--permission-profile", "trusted"];
    let added = [&flags[..], &["--add-dir", &place, "--budget", "0.01"]].concat();
    program.chat(&added, "make it\n").expect(0);
    assert!(beside.path().join("made.txt").exists());
    let task = program.windlass(&["tasks", "--json"]).expect(0).json_lines().remove(0);
    assert_eq!(task["cost_budget"], 0.01, "{task}");
    let kept = program.chat(&["--continue", "--budget", "2"], "more\n").expect(2);
    assert!(kept.stderr.contains("are for a new conversation"), "{kept:?}");
    let outside = [&flags[..], &["--add-dir", "/nowhere"]].concat();
    let refused = program.chat(&outside, "make it\n").expect(2);
    assert!(refused.stderr.contains("/nowhere"), "{refused:?}");
}

/// A conversation here may have another profile than `run` would have; each is named.
#[test]
fn explain_tells_the_profile_of_run_from_that_of_the_conversation() {
    let program = Program::playing("replies: [{say: hello}]");
    program.chat(&["--permission-profile", "restricted"], "hello\n").expect(0);
    let said = program.windlass(&["explain", "cargo test"]).expect(0).stdout;
    assert!(said.contains("restricted    deny   (the conversation here)"), "{said}");
    assert_eq!(said.matches("(run)").count(), 1, "{said}");
    let same = program.windlass(&["explain", "--json", "ls"]).expect(0).json_lines().remove(0);
    assert_eq!(same["conversation_profile"], "restricted");
}
