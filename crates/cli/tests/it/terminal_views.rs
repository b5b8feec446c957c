//! Pages of the interactive terminal over real work, the layout, and copying.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::time::Instant;

use serde_json::json;
use windlass_testkit::{Answer, Gate, ModelServer, git};

use crate::growing;
use crate::interactive::{ESCAPE, PATIENCE, Screen, interactive, prepared};
use crate::plans;
use crate::program::{Program, Ran};
use crate::runners;
use crate::workflows;

#[test]
fn the_layout_is_switched_in_a_conversation_and_nothing_is_lost() {
    let program = prepared("replies: [{say: First.}, {say: Second.}, {say: Third.}]");
    let mut screen = Screen::open(&program, &[]);
    screen.says("one");
    screen.until("First.");
    screen.until("waiting for you");
    screen.says("/tui full");
    screen.until("full screen: PgUp");
    assert!(screen.parser.screen().alternate_screen());
    screen.says("two");
    screen.until("Second.");
    screen.until("waiting for you");
    screen.says("/tui inline");
    screen.until("inline: the terminal scrolls");
    assert!(!screen.parser.screen().alternate_screen());
    screen.says("three");
    screen.until("Third.");
    let (all, _) = screen.leave();
    for reply in ["First.", "Second.", "Third."] {
        assert_eq!(all.matches(reply).count(), 1, "{reply} once:\n{all}");
    }
}

/// The last reply as it was written, by the terminal's own clipboard, where no program keeps one.
#[test]
fn the_last_reply_is_copied_as_markdown() {
    let program = prepared("replies: [{say: 'Use **this** one.'}]");
    let mut screen = Screen::open(&program, &[]);
    screen.types("\u{1b}c");
    screen.until("there is no reply to copy yet");
    screen.says("which?");
    screen.until("Use this one.");
    screen.until("waiting for you");
    screen.says("/copy");
    screen.until("sent to the terminal's clipboard");
    let written = screen.written();
    assert!(written.contains("\u{1b}]52;c;VXNlICoqdGhpcyoqIG9uZS4=\u{7}"), "{written:?}");
    screen.says("/raw");
    screen.until("Use **this** one.");
    screen.leave();
}

/// A program of the desktop gets it, but not over SSH, where that would be another desktop than the person's.
#[test]
fn a_reply_is_copied_to_the_desktop_and_over_ssh_to_the_terminal() {
    let program = prepared("replies: [{say: Use this one.}]");
    let (tools, copied) = (program.data.path().join("tools"), program.data.path().join("copied"));
    std::fs::create_dir(&tools).unwrap();
    let copies = tools.join("wl-copy");
    std::fs::write(&copies, format!("#!/bin/sh\ncat > '{}'\n", copied.display())).unwrap();
    std::fs::set_permissions(&copies, Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", tools.display(), std::env::var("PATH").unwrap());
    let mut local = interactive(&program, &[]);
    local.env("PATH", &path).env("WAYLAND_DISPLAY", "wayland-0");
    let mut screen = Screen::start(local, 80, 24);
    screen.until("windlass chat | manual");
    screen.says("which?");
    screen.until("Use this one.");
    screen.until("waiting for you");
    screen.types("\u{1b}c");
    screen.until("copied");
    assert_eq!(std::fs::read_to_string(&copied).unwrap(), "Use this one.");
    screen.types(ESCAPE);
    screen.leave();

    std::fs::remove_file(&copied).unwrap();
    let sequence = "\u{1b}]52;c;VXNlIHRoaXMgb25lLg==\u{7}";
    let in_screen = format!("\u{1b}P{sequence}\u{1b}\\");
    for (name, written) in [("SSH_CONNECTION", sequence), ("STY", &in_screen)] {
        let mut remote = interactive(&program, &["--continue"]);
        remote.env("PATH", &path).env(name, "1.example");
        if name == "SSH_CONNECTION" {
            remote.env("WAYLAND_DISPLAY", "wayland-0");
        }
        let mut screen = Screen::start(remote, 80, 24);
        screen.until("Use this one.");
        screen.until("waiting for you");
        screen.types("\u{1b}c");
        screen.until("sent to the terminal's clipboard");
        assert!(screen.written().contains(written), "{name}: {:?}", screen.written());
        screen.types(ESCAPE);
        screen.leave();
        assert!(!copied.exists(), "{name}");
    }
}

/// Terminal views of workflows, their worktrees and the workers in them.
#[test]
fn workflows_runs_and_workers_are_pages() {
    let program = workflows::approved(workflows::WHOLE);
    program.windlass(&["workflow", "run", "w", "the shop"]).expect(0);
    let mut screen = Screen::open(&program, &[]);
    screen.says("/workflow");
    screen.until("Workflows of this directory");
    screen.until("start it with: /workflow run w TITLE");
    screen.types("\u{1b}[B");
    screen.until("worktree");
    screen.types("\r");
    screen.until("run of a workflow");
    for words in ["login", "succeeded (agent)", "test", "land", "merge of"] {
        screen.until(words);
    }
    screen.types(ESCAPE);
    // Back to the list that has opened it.
    screen.until_gone("run of a workflow");
    screen.until("Workflows of this directory");
    screen.types("q");
    screen.until_gone("Workflows of this directory");
    screen.says("/parallel");
    screen.until("workers in worktrees");
    screen.until("no worker works in a worktree now");
    screen.types("q");
    screen.until_gone("workers in worktrees");
    screen.leave();
}

/// A run that is over and has left a worktree is not taken for one that has ended cleanly.
#[test]
fn a_run_that_was_not_cleaned_up_is_seen_in_the_terminal() {
    let program = workflows::approved(
        "  - {name: work, type: script, command: 'echo x > new.txt'}\n  - {name: wait, type: ask, question: Ready?}\n",
    );
    program.windlass(&["workflow", "run", "w"]).expect(3);
    program.windlass(&["workflow", "cancel", "w"]).expect(0);
    let mut screen = Screen::open(&program, &[]);
    screen.says("/workflow");
    screen.until("Workflows of this directory");
    screen.until("not cleaned up");
    screen.types("\u{1b}[B");
    screen.until("windlass workflow prune --dry-run");
    screen.types(ESCAPE);
    screen.until_gone("Workflows of this directory");
    screen.leave();
}

/// MS-143, MS-147: two real workers of another process, each with its worktree; one of them is read.
#[test]
fn workers_at_work_are_on_their_page() {
    let looked = Gate::new();
    let (server, last) = (ModelServer::start_empty(), looked.clone());
    server.answer_with(move |request| {
        Some(match request.replies {
            // A file each: a place that both want is only one's.
            0 => {
                let is_alpha = String::from_utf8_lossy(&request.body).contains("the alpha task");
                let path = if is_alpha { "alpha.txt" } else { "beta.txt" };
                Answer::script(&format!("write: {{path: {path}, content: made}}"))
            }
            _ => Answer::script(runners::SAID).gated(0, &last),
        })
    });
    let program = Program::with(server);
    runners::repository(&program);
    let run = program.start(&["parallel", "run", "-w", "2", "the alpha task", "the beta task"]);
    program.server.requests_reach_blocking(4);
    let mut screen = Screen::open(&program, &[]);
    screen.says("/parallel");
    screen.until("workers in worktrees");
    let is_both = |all: &str| all.matches(" windlass ").count() >= 2;
    screen.wait_for("two workers", is_both);
    // Whoever began first is the first one.
    screen.wait_for("a worker", |all| {
        all.contains("the alpha task") || all.contains("the beta task")
    });
    let [first, second] = match screen.all().contains("the alpha task") {
        true => [("alpha", 1), ("beta", 2)],
        false => [("beta", 2), ("alpha", 1)],
    };
    let (name, number) = first;
    let (worker, edits) = (format!("-worker_{number}"), format!("edits {name}.txt"));
    for words in [worker.as_str(), "last sign of life", edits.as_str()] {
        screen.until(words);
    }
    screen.types("\u{1b}[B");
    screen.until(&format!("the {} task", second.0));
    screen.types("\r");
    screen.until("transcript of task_");
    screen.until(&format!("write {}.txt", second.0));
    screen.types("q");
    screen.until_gone("transcript of task_");
    screen.types("q");
    screen.until_gone("workers in worktrees");
    looked.open();
    Ran::from(run.wait_with_output().unwrap()).expect(0);
    screen.leave();
}

/// A key is bound by pressing it: at once, in the person's own file, and in the next terminal.
#[test]
fn a_key_that_is_pressed_is_bound_and_kept() {
    let program = prepared("replies: [{say: An answer.}]");
    let mut screen = Screen::open(&program, &[]);
    screen.types("?");
    screen.until("Enter rebind");
    screen.types("/put the draft aside");
    screen.until("search: put the draft aside");
    screen.types("\r");
    screen.until("press the key for stash");
    screen.types("\u{12}");
    screen.until("`Ctrl+R` is bound to both `history_search` and `stash`");
    screen.types("\r");
    screen.until("press the key for stash");
    screen.types("\u{1b}OS");
    screen.until("bound, and written to");
    screen.types("\u{3}");
    screen.until_gone("bound, and written to");
    screen.types("one");
    screen.until("❯ one");
    screen.types("\u{1b}OS");
    screen.until("your draft is put aside: F4 brings it back");
    screen.types("\u{1b}OS");
    screen.until("❯ one");
    screen.says(" more");
    screen.until("An answer.");
    screen.leave();
    let file = program.data.path().join(".config/windlass/config.toml");
    assert_eq!(std::fs::read_to_string(file).unwrap(), "[tui.keys]\nstash = \"f4\"\n");
    let mut screen = Screen::open(&program, &[]);
    screen.types("two");
    screen.until("❯ two");
    screen.types("\u{1b}OS");
    screen.until("F4 brings it back");
    screen.leave();
}

/// What is put away is out of the list and is not continued by `--continue`, until it is taken back.
#[test]
fn a_conversation_is_archived_and_continued_again() {
    let program = prepared("replies: [{say: An answer.}]");
    for words in ["the old matter", "the new matter"] {
        let mut screen = Screen::open(&program, &[]);
        screen.says(words);
        screen.until("An answer.");
        screen.leave();
    }
    let mut screen = Screen::open(&program, &[]);
    screen.says("/sessions");
    screen.until("conversations of this directory");
    screen.until("the new matter");
    screen.types("\u{1b}[3~");
    screen.until_gone("the new matter");
    screen.types("\t");
    screen.until("conversations of all directories");
    screen.types("\t");
    screen.until("archived conversations");
    screen.until("the new matter");
    screen.types("\u{3}");
    screen.until_gone("archived conversations");
    screen.leave();
    let mut screen = Screen::open(&program, &["--continue"]);
    screen.until("❯ the old matter");
    screen.says("/sessions");
    screen.until("conversations of this directory");
    screen.types("\t");
    screen.until("conversations of all directories");
    screen.types("\t");
    screen.until("archived conversations");
    screen.until("the new matter");
    screen.types("\r");
    screen.until("❯ the new matter");
    screen.leave();
    let mut screen = Screen::open(&program, &["--continue"]);
    screen.until("❯ the new matter");
    screen.leave();
}

/// The same changes by turn, by task and of the whole working tree, where files that git does not know are changes too.
#[test]
fn changes_are_seen_by_turn_task_and_working_tree() {
    let program = Program::playing(
        "
replies:
  - write: {path: made.txt, content: \"made by the agent\\n\"}
  - say: Made.
  - read: README.md
  - edit: {path: README.md, old_string: hello, new_string: good morning}
  - say: Changed.
",
    );
    runners::repository(&program);
    let mut screen = Screen::open(&program, &[]);
    screen.types("\u{1b}p");
    screen.until("chat | manual | trusted");
    screen.types("\u{1b}a");
    screen.until("build | autonomous | trusted");
    for (words, reply) in [("make it", "Made."), ("change it", "Changed.")] {
        screen.says(words);
        screen.until(reply);
        screen.until("waiting for you");
    }
    std::fs::write(program.workspace().join("mine.txt"), "written by a person\n").unwrap();
    screen.says("/diff");
    screen.until("changes of this turn");
    screen.until("+good morning");
    assert!(!screen.parser.screen().contents().contains("made by"), "{}", screen.all());
    screen.types("\t");
    screen.until("changes of this task");
    screen.until("+good morning");
    screen.until("+made by the agent");
    screen.types("\t");
    screen.until("changes of the working tree");
    for words in ["-hello", "+good morning", "+made by the agent", "+written by a person"] {
        screen.until(words);
    }
    screen.types("q");
    screen.until_gone("changes of the working tree");
    screen.leave();
}

/// `]` and `[` stop at each file and at each hunk of it, and nowhere else.
#[test]
fn a_jump_in_the_changes_stops_at_files_and_hunks() {
    let program = prepared("replies: [{say: An answer.}]");
    runners::repository(&program);
    let numbered = |word: &str| (1..=300).map(|n| format!("{word} {n}\n")).collect::<String>();
    let file = program.workspace().join("long.txt");
    std::fs::write(&file, numbered("line")).unwrap();
    git(program.workspace(), &["add", "."]);
    git(program.workspace(), &["commit", "-qm", "a long file"]);
    let changed = ["line 20\n", "line 150\n", "line 280\n"]
        .iter()
        .fold(numbered("line"), |text, line| text.replace(line, &format!("changed {line}")));
    std::fs::write(&file, changed).unwrap();
    std::fs::write(program.workspace().join("new.txt"), numbered("new")).unwrap();
    let mut screen = Screen::open(&program, &[]);
    screen.says("/diff");
    screen.until("changes of this turn");
    screen.types("\t");
    screen.until("changes of this task");
    screen.types("\t");
    screen.until("changes of the working tree");
    let at_top = |screen: &mut Screen, words: &str| {
        let shown = |all: &str| all.lines().nth(1).is_some_and(|row| row.contains(words));
        screen.wait_for_shown(words, shown);
    };
    at_top(&mut screen, "long.txt");
    for place in ["@@ -17,7 +17,7 @@", "@@ -147,7 +147,7 @@", "@@ -277,7 +277,7 @@", "new.txt"] {
        screen.types("]");
        at_top(&mut screen, place);
    }
    for place in ["@@ -277,7 +277,7 @@", "@@ -147,7 +147,7 @@", "@@ -17,7 +17,7 @@", "long.txt"] {
        screen.types("[");
        at_top(&mut screen, place);
    }
    screen.types("q");
    screen.until_gone("changes of the working tree");
    screen.leave();
}

/// AX-071, AX-093, AX-096: the plan, what is promised, and a role taken from the list of its tools.
#[test]
fn the_plan_commitments_and_roles_are_pages() {
    let program = prepared("replies: [{say: hello}]");
    let plan = json!({"title": "The shop", "phases": [{"title": "Walls", "tasks": [{"title": "paint", "bestPatternPrompt": "paint the wall, then run `cargo test`"}]}]});
    plans::write_plan(&program, &plan);
    program.windlass(&["plan", "activate"]).expect(0);
    program.windlass(&["commitments", "commit", "use JWT"]).expect(0);
    let mut screen = Screen::open(&program, &[]);
    screen.says("/plans");
    screen.until("0 of 1 done");
    screen.until("Walls");
    screen.types("q");
    screen.until_gone("0 of 1 done");
    screen.says("/commitments");
    screen.until("use JWT");
    screen.types("q");
    screen.until_gone("use JWT");
    screen.says("/roles");
    screen.until("plans and makes commitments");
    screen.until("it never has: ");
    screen.types("\r");
    screen.until("Switched to Architect mode.");
    screen.until("plan | manual | restricted | smart architect");
    screen.leave();
}

/// A skill that is proposed waits beside the questions in `windlass chat` too.
#[test]
fn the_inbox_of_a_chat_has_proposed_skills() {
    let program = growing::project(growing::SCRIPT);
    for _ in 0..3 {
        program.windlass(&["run", "run the tests", "--quiet"]).expect(0);
    }
    let listed = program.chat(&[], "/inbox\n").expect(0);
    assert!(listed.stdout.contains("PROPOSED SKILL"), "{listed:?}");
    assert!(listed.stdout.contains("`make test` fails, `sh run-tests.sh` works"), "{listed:?}");
}

#[test]
fn keys_edit_as_in_vi_where_that_is_set() {
    let program = prepared("replies: [{say: An answer.}]");
    let directory = program.data.path().join(".config/windlass");
    std::fs::create_dir_all(&directory).unwrap();
    let keys = "[tui]\nediting = \"vim\"\n[tui.keys]\ndiff = \"ctrl+x,d\"\neditor = \"f4\"\n";
    std::fs::write(directory.join("config.toml"), keys).unwrap();
    let mut screen = Screen::open(&program, &[]);
    screen.types("fix the wrong word");
    screen.until("fix the wrong word");
    screen.types(ESCAPE);
    screen.until("NORMAL");
    screen.types("bbciwright");
    screen.until("fix the right word");
    // By itself: Escape and Return together are one key, Alt+Return.
    screen.types(ESCAPE);
    screen.until("NORMAL");
    screen.types("\r");
    screen.until("An answer.");
    screen.until("waiting for you");
    screen.types("\u{18}");
    screen.until("Ctrl+X …");
    screen.types("d");
    screen.until("changes of this turn");
    screen.types("q");
    screen.until_gone("changes of this turn");
    screen.leave();
}

/// Opened from here, a conversation of another directory works there; the work of this one continues, and nothing of it
/// is printed in the other conversation.
#[test]
fn another_conversation_has_its_own_directory_and_the_first_continues() {
    let program = prepared(
        "
match:
  - when: the other matter
    say: An answer.
replies:
  - bash: while [ ! -e go ]; do sleep 0.05; done; echo went
  - say: Done at last.
",
    );
    let other = program.data.path().join("elsewhere");
    std::fs::create_dir(&other).unwrap();
    std::fs::write(other.join("there.txt"), "only there\n").unwrap();
    let mut screen = Screen::open(&program, &["--workspace", &other.display().to_string()]);
    screen.says("the other matter");
    screen.until("An answer.");
    screen.until("waiting for you");
    screen.leave();
    let mut screen = Screen::open(&program, &[]);
    screen.types("\u{1b}p");
    screen.until("chat | manual | trusted");
    screen.types("\u{1b}a");
    screen.until("build | autonomous | trusted");
    screen.says("work on it");
    screen.until("$ while");
    open_conversation(&mut screen, "the other matter");
    screen.until("An answer.");
    screen.says("!cat there.txt");
    screen.until("only there");
    screen.until("elsewhere");
    let requests = program.server.requests().len();
    std::fs::write(program.workspace().join("go"), "").unwrap();
    let since = Instant::now();
    while program.server.requests().len() == requests {
        assert!(since.elapsed() < PATIENCE, "the first task was stopped: {}", screen.all());
    }
    screen.says("!echo $((40 + 2)) still here");
    screen.until("42 still here");
    assert!(!screen.all().contains("Done at last."), "{}", screen.all());
    open_conversation(&mut screen, "work on it");
    screen.until("Done at last.");
    screen.leave();
}

/// Opens a conversation of any directory.
fn open_conversation(screen: &mut Screen, words: &str) {
    screen.says("/sessions");
    screen.until("conversations of this directory");
    screen.types("\t");
    screen.until("conversations of all directories");
    screen.types(words);
    screen.until(&format!("search: {words}"));
    screen.types("\r");
    screen.until_gone("conversations of all directories");
}

/// The conversation shows what was typed; what goes along with it is named, and the model reads it whole.
#[test]
fn what_goes_along_with_a_message_is_named_in_a_line() {
    let program = prepared("replies: [{say: First.}, {say: Second.}]");
    let numbers: String = (1..=60).map(|number| format!("number {number}\n")).collect();
    std::fs::write(program.workspace().join("nums.txt"), numbers).unwrap();
    let mut screen = Screen::open(&program, &[]);
    screen.says("sum @nums.txt ");
    screen.until("First.");
    screen.until("waiting for you");
    screen.says("!seq 101 129; echo end$((1 + 1))");
    screen.until("end2");
    screen.says("and these");
    screen.until("Second.");
    // The transcript has it folded.
    screen.types("\u{14}");
    screen.until("more lines that came with it");
    screen.types("u");
    screen.until("  number 7");
    screen.types("G");
    screen.until("  129");
    screen.types(ESCAPE);
    screen.until_gone("transcript");
    let (all, _) = screen.leave();
    assert!(all.contains("attached nums.txt, 60 lines"), "{all}");
    for hidden in ["number 7", "# Attached", "I ran this command"] {
        assert!(!all.contains(hidden), "{hidden}:\n{all}");
    }
    let last = program.server.requests().last().unwrap().json().to_string();
    assert!(last.contains("number 60") && last.contains("I ran this command"), "{last}");
}
