//! The interactive terminal where something around it goes wrong, or is not as usual.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use rustix::process::{Pid, Signal, kill_process};
use vt100::MouseProtocolMode;

use crate::interactive::{PATIENCE, Screen, interactive, prepared};
use crate::program::Program;

fn wait_for_file(path: &Path) {
    let since = Instant::now();
    while !path.exists() {
        assert!(since.elapsed() < PATIENCE, "{} was never made", path.display());
        std::thread::yield_now();
    }
}

/// The program with its data on a small disk. The disk fills when there is a file `fill`, and has room again when
/// there is a file `free`.
const SMALL_DISK: &str = r#"
mkdir -p "$WINDLASS_DATA" && mount -t tmpfs -o size=24m,mode=700 none "$WINDLASS_DATA"
(
    until [ -e fill ]; do sleep 0.02; done
    dd if=/dev/zero of="$WINDLASS_DATA/filler" bs=4k 2>/dev/null
    touch filled
    until [ -e free ]; do sleep 0.02; done
    rm "$WINDLASS_DATA/filler"
    touch freed
) </dev/null >/dev/null 2>&1 &
exec "$1"
"#;

#[test]
fn a_disk_that_fills_while_it_runs_loses_no_message() {
    let program = prepared("replies: [{say: Good morning.}, {say: There is room again.}]");
    let inside = interactive(&program, &[]);
    let mut alone = Command::new("unshare");
    // Root needs no namespace of users to mount.
    if !rustix::process::geteuid().is_root() {
        alone.arg("--map-root-user");
    }
    alone.args(["--mount", "sh", "-c", SMALL_DISK, "sh"]).arg(inside.get_program());
    alone.env_clear().current_dir(program.workspace());
    alone.envs(inside.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let mut screen = Screen::start(alone, 80, 24);
    screen.until("windlass chat | manual");
    screen.says("hello");
    screen.until("Good morning.");
    screen.until("waiting for you");
    let file = |name: &str| program.workspace().join(name);
    fs::write(file("fill"), "").unwrap();
    wait_for_file(&file("filled"));
    screen.says("is there room?");
    screen.until("not sent:");
    screen.until("no space");
    screen.until("❯ is there room?");
    fs::write(file("free"), "").unwrap();
    wait_for_file(&file("freed"));
    screen.types("\r");
    screen.until("There is room again.");
    let (all, code) = screen.leave();
    assert_eq!(code, 0, "{all}");
}

#[test]
fn a_database_that_a_later_program_has_moved_is_named() {
    let program = prepared("replies: [{say: Good morning.}]");
    let mut screen = Screen::open(&program, &[]);
    screen.says("hello");
    screen.until("Good morning.");
    screen.until("waiting for you");
    let database = rusqlite::Connection::open(program.data_directory().join("windlass.db"));
    database.unwrap().pragma_update(None, "user_version", 9_999).unwrap();
    screen.says("are you there?");
    screen.until("not sent:");
    screen.until("use the newer windlass that wrote it");
    screen.until("❯ are you there?");
    screen.types("\u{3}");
    screen.until("kept in the history");
    let (all, code) = screen.leave();
    assert_eq!(code, 0, "{all}");
}

/// `[tui] screen = "full"` takes a screen of its own, which is scrolled with its keys and leaves no trace.
#[test]
fn the_full_screen_is_scrolled_and_leaves_no_trace() {
    let lines: Vec<String> = (1..=60).map(|number| format!("- line {number};")).collect();
    let reply = serde_json::json!({ "replies": [{ "say": lines.join("\n") }] });
    let program = prepared(&reply.to_string());
    program.windlass(&["config", "set", "tui.screen", "full"]).expect(0);
    let mut screen = Screen::open(&program, &[]);
    assert!(screen.parser.screen().alternate_screen());
    screen.says("hello");
    screen.until("line 60;");
    screen.until("waiting for you");
    assert!(!screen.all().contains("line 1;"), "{}", screen.all());
    for _ in 0..8 {
        screen.types("\u{1b}[5~");
    }
    screen.until("line 1;");
    screen.until_gone("line 60;");
    for _ in 0..8 {
        screen.types("\u{1b}[6~");
    }
    screen.until("line 60;");
    // The wheel does the same, and arrives as what it is.
    assert_eq!(screen.parser.screen().mouse_protocol_mode(), MouseProtocolMode::PressRelease);
    for _ in 0..20 {
        screen.types("\u{1b}[<64;5;5M");
    }
    screen.until("line 1;");
    screen.until("rows below");
    // A click answers and moves nothing.
    screen.types("\u{1b}[<0;5;5M\u{1b}[<0;5;5m");
    for _ in 0..20 {
        screen.types("\u{1b}[<65;5;5M");
    }
    screen.until("line 60;");
    screen.until_gone("rows below");
    let (all, code) = screen.leave();
    assert_eq!(code, 0, "{all}");
    assert!(all.contains("continue with: windlass --session ses_"), "{all}");
    assert!(!all.contains("line 60;"), "{all}");
}

#[test]
fn the_agent_reads_what_a_command_of_the_person_printed() {
    let program = prepared("replies: [{say: I have seen it.}]");
    let mut screen = Screen::open(&program, &[]);
    screen.says("!echo $((6 * 7)) notes; cat notes.txt");
    screen.until("42 notes");
    screen.until("a note");
    screen.says("did you see it?");
    screen.until("I have seen it.");
    let requests = program.server.requests();
    let last = String::from_utf8_lossy(&requests.last().unwrap().body).into_owned();
    assert!(last.contains("I ran this command"), "{last}");
    assert!(last.contains("42 notes") && last.contains("a note"), "{last}");
    screen.leave();
}

/// A program that the person has as their editor: it adds to the file.
fn editor(program: &Program, adds: &str) -> PathBuf {
    editor_script(program, &format!("printf '%s' '{adds}' >> \"$1\""))
}

fn editor_script(program: &Program, commands: &str) -> PathBuf {
    let path = program.data.path().join("editor");
    fs::write(&path, format!("#!/bin/sh\n{commands}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

#[test]
fn the_message_is_written_in_the_persons_own_editor() {
    let program = prepared("replies: [{say: Well written.}]");
    let mut command = interactive(&program, &[]);
    command.env("EDITOR", editor(&program, " and an end"));
    let mut screen = Screen::start(command, 80, 24);
    screen.until("windlass chat | manual");
    screen.types("a beginning");
    screen.until("❯ a beginning");
    screen.types("\u{7}");
    screen.until("❯ a beginning and an end");
    screen.types("\r");
    screen.until("Well written.");
    screen.leave();
}

/// It is in the directory of the conversation, and a placeholder is no text to edit.
#[test]
fn the_editor_gets_pasted_text_whole_in_the_directory_of_the_conversation() {
    let program = prepared("replies: []");
    let mut command = interactive(&program, &[]);
    command.env("EDITOR", editor_script(&program, "printf ' end of %s' \"$PWD\" >> \"$1\""));
    let mut screen = Screen::start(command, 200, 30);
    screen.until("windlass chat | manual");
    let lines: Vec<String> = (1..=12).map(|n| format!("line {n}")).collect();
    screen.types(&format!("\u{1b}[200~{}\u{1b}[201~", lines.join("\n")));
    screen.until("[pasted text 1: 12 lines]");
    screen.types("\u{7}");
    let directory = program.workspace().canonicalize().unwrap();
    let last = format!("line 12 end of {}", directory.display());
    screen.wait_for_shown("what was pasted, and the directory", |shown| shown.contains(&last));
    assert!(screen.parser.screen().contents().contains("line 11"));
    screen.types("\u{3}");
    screen.leave();
}

/// Where an editor leaves the keys as they are, Ctrl-C is a signal for everybody in the terminal.
#[test]
fn what_interrupts_the_editor_does_not_leave_the_conversation() {
    let program = prepared("replies: [{say: Still here.}]");
    let mut command = interactive(&program, &[]);
    let commands = "trap '' INT\nkill -INT 0\nprintf ' and more' >> \"$1\"";
    command.env("EDITOR", editor_script(&program, commands));
    let mut screen = Screen::start(command, 80, 24);
    screen.until("windlass chat | manual");
    screen.types("a beginning");
    screen.until("❯ a beginning");
    screen.types("\u{7}");
    screen.until("❯ a beginning and more");
    screen.types("\r");
    screen.until("Still here.");
    screen.leave();
}

/// It may have been killed after the text was saved, or told to throw it away.
#[test]
fn what_an_editor_leaves_that_fails_is_in_the_history() {
    let program = prepared("replies: []");
    let mut command = interactive(&program, &[]);
    let commands = "printf ' and more' >> \"$1\"\nexit 1";
    command.env("EDITOR", editor_script(&program, commands));
    let mut screen = Screen::start(command, 80, 24);
    screen.until("windlass chat | manual");
    screen.types("a beginning");
    screen.until("❯ a beginning");
    screen.types("\u{7}");
    screen.until("the editor ended with an error; what it left is in the history");
    screen.wait_for_shown("the message", |shown| shown.lines().any(|l| l == "❯ a beginning"));
    screen.types("\u{1b}[A");
    screen.until("❯ a beginning and more");
    screen.types("\u{3}");
    screen.leave();
}

const PLANNING: &str = "
replies:
  - update_plan: {steps: [{id: '1', description: read the note, status: pending}]}
  - say: \"1. read the note\\n2. remove it\"
  - say: \"1. read the note\\n2. keep a copy\\n3. remove it\"
  - say: \"1. copy the note\\n2. remove it\"
  - say: Both are done.
";

/// A plan is read, edited in the person's editor, commented line by line, and accepted.
#[test]
fn a_plan_is_edited_commented_and_accepted() {
    let program = prepared(PLANNING);
    let mut command = interactive(&program, &[]);
    command.env("EDITOR", editor(&program, "\n3. keep a copy"));
    let mut screen = Screen::start(command, 80, 30);
    screen.until("windlass chat | manual");
    screen.types("\u{1b}m");
    screen.until("windlass plan | manual");
    screen.says("plan what to do with the note");
    screen.until("│ 2. remove it");
    screen.until("❯ 1. Accept");
    screen.types("e");
    // What the editor has left is the answer; it can still be changed before it is sent.
    screen.until("❯ 1. read the note");
    screen.until("3. keep a copy");
    screen.types("\r");
    screen.until("│ 3. remove it");
    screen.until("❯ 1. Accept");
    screen.types("c");
    screen.until("↑ ↓ line");
    screen.types("\u{1b}[B");
    screen.until("❯ │ 2. keep a copy");
    screen.types("\r");
    screen.until("about this line");
    screen.says("copy it first");
    screen.until("» copy it first");
    screen.types("\u{1b}");
    screen.until("3. Revise, with your comment");
    screen.until("❯ 1. Accept");
    screen.types("3");
    screen.until("│ 1. copy the note");
    screen.until("❯ 1. Accept");
    screen.types("1");
    screen.until("Both are done.");
    screen.until("windlass build | manual");
    let requests = program.server.requests();
    let body = |at: usize| String::from_utf8_lossy(&requests[at].body).into_owned();
    assert!(body(2).contains("3. keep a copy"), "{}", body(2));
    assert!(body(3).contains("> 2. keep a copy\\ncopy it first"), "{}", body(3));
    screen.leave();
}

/// A command that does not end when it is asked to holds up the end of the turn. What is sent meanwhile is read all the
/// same.
#[test]
fn a_message_sent_while_a_turn_ends_is_read() {
    let program = prepared(
        "
replies:
  - bash: {command: \"trap '' TERM; while :; do sleep 1; done\", background: true}
  - bash: while ! test -e go; do sleep 0.1; done
  - say: The turn is over.
  - say: The queued message was read.
",
    );
    let command = interactive(&program, &["--control", "autonomous", "--mode", "build"]);
    let mut screen = Screen::start(command, 80, 24);
    screen.until("windlass build | autonomous");
    screen.says("begin");
    screen.until("test -e go");
    screen.says("and then this");
    screen.until("queued: and then this");
    fs::write(program.workspace().join("go"), "").unwrap();
    screen.until("The turn is over.");
    screen.until("The queued message was read.");
    screen.leave();
}

#[test]
fn two_terminals_on_one_session_show_the_same() {
    let program = prepared(
        "replies: [{say: The first answer.}, {say: The second answer.}, {say: The third.}]",
    );
    let mut first = Screen::open(&program, &[]);
    first.says("one?");
    first.until("The first answer.");
    first.until("waiting for you");
    let mut second = Screen::open(&program, &["--continue"]);
    second.until("The first answer.");
    second.says("two?");
    second.until("The second answer.");
    first.until("❯ two?");
    first.until("The second answer.");
    first.until("waiting for you");
    first.says("three?");
    first.until("The third.");
    second.until("❯ three?");
    second.until("The third.");
    second.until("waiting for you");
    let conversation = |screen: &mut Screen| {
        let all = screen.all();
        let from = all.find("❯ one?").unwrap();
        let to = all.find("The third.").unwrap();
        all[from..to].to_owned()
    };
    assert_eq!(conversation(&mut first), conversation(&mut second));
    second.leave();
    first.leave();
}

#[test]
fn a_paste_whose_end_is_lost_is_text_and_keys_work_again() {
    let program = prepared("replies: [{say: Received.}]");
    let mut screen = Screen::open(&program, &[]);
    screen.types("\u{1b}[200~pasted, then nothing");
    screen.until("❯ pasted, then nothing");
    screen.types(" and typed");
    screen.until("❯ pasted, then nothing and typed");
    screen.types("\r");
    screen.until("Received.");
    screen.leave();
}

#[test]
fn a_window_of_one_row_is_usable() {
    let program = prepared("replies: [{say: Small talk.}]");
    let mut screen = Screen::start(interactive(&program, &[]), 40, 1);
    screen.until("[C][M][N][S]");
    screen.says("hello");
    screen.until("Small talk.");
    screen.resize(80, 24);
    screen.until("windlass chat | manual");
    let (all, code) = screen.leave();
    assert_eq!(code, 0, "{all}");
    assert_eq!(all.matches("Small talk.").count(), 1, "{all}");
}

#[test]
fn a_terminal_that_answers_nothing_is_used_all_the_same() {
    let program = prepared("replies: [{say: Good day.}]");
    let mut screen = Screen::start(interactive(&program, &[]), 80, 24);
    screen.answers = false;
    screen.until("windlass chat | manual");
    screen.says("hello");
    screen.until("Good day.");
    let (all, code) = screen.leave();
    assert_eq!(code, 0, "{all}");
}

/// tmux hands a notification on only in an envelope of its own; its bell rings in any case.
#[test]
fn a_notification_gets_through_tmux() {
    let program = prepared("replies: [{say: An answer.}]");
    program.windlass(&["config", "set", "ui.notify", "osc9"]).expect(0);
    let mut command = interactive(&program, &[]);
    command.env("TMUX", "/nowhere/tmux,1,0");
    let mut screen = Screen::start(command, 80, 24);
    screen.until("windlass chat | manual");
    screen.types("hello");
    screen.until("❯ hello");
    // The person looks elsewhere.
    screen.types("\u{1b}[O");
    screen.types("\r");
    screen.until("An answer.");
    screen.until("waiting for you");
    let written = screen.written();
    let words = "\u{1b}]9;windlass: the agent waits for you\u{7}";
    assert!(written.contains(&format!("\u{1b}Ptmux;\u{1b}{words}\u{1b}\\\u{7}")), "{written:?}");
    screen.leave();
}

/// A SIGSTOP from outside gives it no chance to put the terminal back; the shell sets its own modes meanwhile.
#[test]
fn stopped_from_outside_it_sets_the_terminal_again() {
    let program = prepared("replies: [{say: Here again.}]");
    let mut screen = Screen::open(&program, &[]);
    let marks = "\u{1b}[?2004h";
    screen.types("are you ");
    screen.until("❯ are you");
    assert_eq!(screen.written().matches(marks).count(), 1);
    let process = Pid::from_child(&screen.child);
    for signal in [Signal::STOP, Signal::CONT] {
        kill_process(process, signal).unwrap();
    }
    screen.until_written(marks, 2);
    screen.says("there?");
    screen.until("Here again.");
    screen.leave();
}

/// MS-222, MS-223: the title says the mode unless that is switched off; nobody is called unless they have asked for it.
#[test]
fn titles_can_be_switched_off_and_notifications_on() {
    let written_with = |setting: &str, signal: &str| {
        let program = prepared("replies: [{ask_user: {question: which?}}]");
        let directory = program.data.path().join(".config/windlass");
        std::fs::create_dir_all(&directory).unwrap();
        std::fs::write(directory.join("config.toml"), setting).unwrap();
        let mut screen = Screen::open(&program, &[]);
        // The terminal loses the focus.
        screen.types("\u{1b}[O");
        screen.says("begin");
        screen.until("question: which?");
        screen.until_written(signal, usize::from(!signal.is_empty()));
        screen.written()
    };
    let own = written_with("", "");
    assert!(own.contains("\u{1b}]0;windlass[chat|M|normal|smart] "), "{own:?}");
    assert!(!own.contains("\u{1b}]9;"), "{own:?}");
    let setting = "[tui]\ntitle = false\n\n[ui]\nnotify = \"osc9\"\n";
    let other = written_with(setting, "\u{1b}]9;windlass: a question waits\u{7}");
    assert!(!other.contains("\u{1b}]0;"), "{other:?}");
}
