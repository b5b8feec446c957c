//! The interactive terminal: the real program on a pseudo-terminal with an emulator behind it, and inside tmux.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{Winsize, tcsetwinsize};
use windlass_testkit::on_terminal;

use crate::program::Program;

/// How long anything may take to be shown.
pub const PATIENCE: Duration = Duration::from_secs(30);
pub const ESCAPE: &str = "\u{1b}";

/// The program on a terminal, as an emulator shows it.
pub struct Screen {
    main: File,
    pub child: Child,
    pub parser: vt100::Parser,
    written: Vec<u8>,
    /// Whether it answers what the program asks it.
    pub answers: bool,
}

impl Screen {
    pub fn start(command: Command, columns: u16, rows: u16) -> Self {
        let (main, child) = on_terminal(command, columns, rows).unwrap();
        let parser = vt100::Parser::new(rows, columns, 5_000);
        Self { main, child, parser, written: Vec::new(), answers: true }
    }

    /// Opens the terminal; what is typed before it is there would be the shell's.
    pub fn open(program: &Program, args: &[&str]) -> Self {
        let mut screen = Self::start(interactive(program, args), 80, 24);
        screen.until("windlass chat | manual");
        screen
    }

    /// Opens it from a shell, which it is suspended into.
    pub fn in_shell(program: &Program) -> Self {
        let windlass = interactive(program, &[]);
        let mut shell = Command::new("bash");
        shell.args(["--norc", "--noprofile", "-i"]).current_dir(program.workspace()).env_clear();
        shell.envs(windlass.get_envs().filter_map(|(name, value)| Some((name, value?))));
        shell.env("PS1", "shell> ");
        let mut screen = Self::start(shell, 80, 24);
        screen.until_prompt();
        screen.types(&format!("{}\r", windlass.get_program().display()));
        screen.until("windlass chat | manual");
        screen
    }

    /// Reads until the shell waits for a command.
    pub fn until_prompt(&mut self) {
        self.wait_for_shown("shell>", |shown| shown.trim_end().ends_with("shell>"));
    }

    pub fn types(&mut self, text: &str) {
        self.main.write_all(text.as_bytes()).unwrap();
    }

    /// A message and the key that sends it, in separate writes as a person types them.
    pub fn says(&mut self, text: &str) {
        self.types(text);
        self.until(text);
        self.types("\r");
    }

    /// Reads until the screen or what is above it has this text.
    pub fn until(&mut self, text: &str) {
        self.wait_for(text, |all| all.contains(text));
    }

    pub fn until_gone(&mut self, text: &str) {
        let shown = |screen: &vt100::Screen| screen.contents();
        let since = Instant::now();
        while shown(self.parser.screen()).contains(text) {
            assert!(self.more(since), "`{text}` stays:\n{}", self.all());
        }
    }

    pub fn wait_for(&mut self, what: &str, is_there: impl Fn(&str) -> bool) {
        let since = Instant::now();
        while !is_there(&self.all()) {
            assert!(self.more(since), "`{what}` was never shown:\n{}", self.all());
        }
    }

    /// The same of the screen alone.
    pub fn wait_for_shown(&mut self, what: &str, is_there: impl Fn(&str) -> bool) {
        let since = Instant::now();
        while !is_there(&self.parser.screen().contents()) {
            assert!(self.more(since), "`{what}` was never shown:\n{}", self.all());
        }
    }

    pub fn all(&mut self) -> String {
        let screen = self.parser.screen_mut();
        let rows = usize::from(screen.size().0);
        screen.set_scrollback(usize::MAX);
        let mut lines: Vec<String> = Vec::new();
        let mut above = screen.scrollback();
        while above > 0 {
            screen.set_scrollback(above);
            let contents = screen.contents();
            lines.extend(contents.split('\n').take(above.min(rows)).map(str::to_owned));
            above = above.saturating_sub(rows);
        }
        screen.set_scrollback(0);
        lines.push(screen.contents());
        lines.join("\n")
    }

    /// Every byte that it has written.
    pub fn written(&self) -> String {
        String::from_utf8_lossy(&self.written).into_owned()
    }

    /// Reads until it has written these bytes so many times.
    pub fn until_written(&mut self, bytes: &str, times: usize) {
        let since = Instant::now();
        while self.written().matches(bytes).count() < times {
            assert!(self.more(since), "{bytes:?} was not written {times} times");
        }
    }

    pub fn resize(&mut self, columns: u16, rows: u16) {
        self.parser.screen_mut().set_size(rows, columns);
        let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&self.main, size).unwrap();
    }

    /// Leaves, and returns everything that stays and the exit code.
    pub fn leave(mut self) -> (String, i32) {
        // While it works, leaving asks what becomes of the task.
        let is_idle = |line: &str| line.contains("waiting for you") || line.contains("ready");
        let since = Instant::now();
        while !self.parser.screen().contents().trim_end().lines().next_back().is_some_and(is_idle) {
            assert!(self.more(since), "it still works:\n{}", self.all());
        }
        self.types("\u{3}");
        self.until("press Ctrl+C again to leave");
        self.types("\u{3}");
        self.end()
    }

    pub fn end(mut self) -> (String, i32) {
        let since = Instant::now();
        while self.more(since) {}
        let code = self.child.wait().unwrap().code().unwrap_or(-1);
        (self.all(), code)
    }

    fn more(&mut self, since: Instant) -> bool {
        let left = PATIENCE.saturating_sub(since.elapsed());
        let wait = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: 0 };
        let mut polled = [PollFd::new(&self.main, PollFlags::IN)];
        if left.is_zero() || poll(&mut polled, Some(&wait)).unwrap() == 0 {
            return false;
        }
        let mut piece = [0; 65536];
        let count = self.main.read(&mut piece).unwrap_or(0);
        self.written.extend_from_slice(&piece[..count]);
        // The emulator knows no clearing of the scrollback: a new one takes its place.
        let cleared = b"\x1b[3J";
        let at = piece[..count].windows(4).rposition(|bytes| bytes == cleared);
        if at.is_some() {
            let (rows, columns) = self.parser.screen().size();
            self.parser = vt100::Parser::new(rows, columns, 5_000);
        }
        self.parser.process(&piece[at.unwrap_or(0)..count]);
        // As a terminal does that knows the enhanced keyboard protocol.
        if self.answers && piece[..count].windows(4).any(|bytes| bytes == b"\x1b[?u") {
            self.types("\u{1b}[?5u\u{1b}[?62c");
        }
        count > 0
    }
}

pub fn interactive(program: &Program, args: &[&str]) -> Command {
    let mut command = program.command(args);
    command.env("TERM", "xterm-256color").env("LANG", "C.UTF-8");
    command
}

const QUESTION: &str = "
replies:
  - say: Hello, I am **ready**.
  - bash: rm notes.txt
  - say: The note is gone.
";

pub fn prepared(script: &str) -> Program {
    let program = Program::playing(script);
    std::fs::write(program.workspace().join("notes.txt"), "a note\n").unwrap();
    program
}

#[test]
fn a_conversation_continues_with_its_context_and_its_questions() {
    let program = prepared(QUESTION);
    let mut screen = Screen::open(&program, &[]);
    screen.until("windlass chat | manual | normal | smart");
    screen.says("hello");
    screen.until("Hello, I am ready.");
    screen.says("remove the note");
    screen.until("$ rm notes.txt");
    screen.until("❯ 1. Allow");
    screen.types("y");
    screen.until("The note is gone.");
    screen.until("waiting for you");
    assert!(!program.workspace().join("notes.txt").exists());
    // The transcript has what was asked and answered too.
    screen.types("\u{14}");
    screen.until("Esc closes");
    let page = screen.parser.screen().contents();
    assert!(page.contains("? Run this command?") && page.contains("→ Allow"), "{page}");
    assert!(!page.contains("❯ Allow"), "an answer stands once, below its question:\n{page}");
    let above = page.split("The note is gone.").next().unwrap();
    assert!(!above.contains("\n\n\n"), "one empty line is enough:\n{page}");
    screen.types("q");
    screen.until("waiting for you");
    let (all, code) = screen.leave();
    assert_eq!(code, 0, "{all}");
    assert!(all.contains("continue with: windlass --session ses_"), "{all}");
    assert_eq!(all.matches("Hello, I am ready.").count(), 1, "printed once:\n{all}");
    let requests = program.server.requests();
    let last = String::from_utf8_lossy(&requests.last().unwrap().body).into_owned();
    assert!(last.contains("hello") && last.contains("remove the note"), "{last}");
}

#[test]
fn the_next_day_the_conversation_and_the_draft_are_there() {
    let program = prepared("replies: [{say: Good morning.}, {say: Welcome back.}]");
    let mut screen = Screen::open(&program, &[]);
    screen.says("hello");
    screen.until("Good morning.");
    screen.until("waiting for you");
    screen.types("half a thought");
    screen.until("half a thought");
    let (_, code) = {
        // Ctrl-C keeps the draft in the history; the end of the machine keeps it where it is.
        let drafts = program.data_directory().join("terminal/drafts");
        let is_kept = || {
            let files = std::fs::read_dir(&drafts).into_iter().flatten().flatten();
            files
                .map(|file| std::fs::read_to_string(file.path()).unwrap_or_default())
                .any(|text| text.contains("half a thought"))
        };
        let since = Instant::now();
        while !is_kept() {
            assert!(since.elapsed() < PATIENCE, "the draft was never kept");
            std::thread::yield_now();
        }
        screen.child.kill().unwrap();
        screen.end()
    };
    assert_ne!(code, 0);
    let mut screen = Screen::open(&program, &["--continue"]);
    screen.until("Good morning.");
    screen.until("❯ half a thought");
    screen.types("\r");
    screen.until("Welcome back.");
    screen.leave();
}

#[test]
fn escape_interrupts_and_the_next_message_continues() {
    let program = prepared(
        "
match:
  - when: marmalade
    say: Continued.
replies:
  - {say: never finished, delay_ms: 60000}
",
    );
    let mut screen = Screen::open(&program, &[]);
    screen.says("think long");
    screen.until("thinking");
    screen.types(ESCAPE);
    screen.until("interrupted; its work is kept");
    screen.says("marmalade, then");
    screen.until("Continued.");
    screen.leave();
}

/// The command does not end by itself: what it has printed stays as its result, and the call after it never runs.
#[test]
fn escape_ends_a_running_command_and_keeps_what_it_printed() {
    let program = prepared(
        "
match:
  - when: marmalade
    say: Continued.
replies:
  - text: I build.
    calls: [{bash: 'echo half done; sleep 600'}, {bash: touch second}]
",
    );
    let mut screen = Screen::open(&program, &[]);
    screen.says("build it");
    screen.until("half done");
    screen.types(ESCAPE);
    screen.until("interrupted by the person");
    screen.until("interrupted; its work is kept");
    screen.until("waiting for you");
    screen.says("marmalade, then");
    screen.until("Continued.");
    screen.leave();
    assert!(!program.workspace().join("second").exists());
    let requests = program.server.requests();
    let last = String::from_utf8_lossy(&requests.last().unwrap().body).into_owned();
    for words in ["half done", "interrupted by the person", "Not run: interrupted"] {
        assert!(last.contains(words), "the agent reads `{words}`:\n{last}");
    }
}

/// The person's own command: its last line is seen while it runs, Esc ends it, and its output is folded.
#[test]
fn escape_cancels_a_command_of_the_person_and_folds_its_output() {
    let program = prepared("replies: []");
    let mut screen = Screen::open(&program, &[]);
    screen.says("!for i in $(seq 19); do echo step $i; done; sleep 600");
    screen.until("Esc cancels");
    screen.until("  step 19");
    screen.types(ESCAPE);
    screen.until("… 13 earlier lines (all: windlass outputs call_");
    screen.until("  stopped");
    screen.says("!true");
    screen.until("  exit 0");
    screen.says("!false");
    screen.until("  exit 1");
    screen.leave();
}

#[test]
fn a_resized_window_shows_everything_once() {
    let program =
        prepared("replies: [{say: 'The quick brown fox jumps over the lazy dog, twice.'}]");
    let mut screen = Screen::open(&program, &[]);
    screen.says("hello");
    screen.until("twice.");
    screen.resize(40, 20);
    screen.until("[C][M][N][S]");
    screen.wait_for("the reply, wrapped", |all| {
        all.contains("The quick brown fox jumps over the lazy\n")
    });
    screen.resize(20, 6);
    screen.wait_for("a small zone", |all| all.matches("[C][M][N][S]").count() == 1);
    screen.resize(100, 30);
    screen.until("windlass chat | manual | normal | smart");
    let all = screen.all();
    assert_eq!(all.matches("lazy dog, twice.").count(), 1, "{all}");
    screen.leave();
}

#[test]
fn tasks_help_and_transcript_are_pages_over_the_screen() {
    let program = prepared("replies: [{say: An answer.}]");
    let mut screen = Screen::open(&program, &[]);
    screen.says("hello");
    screen.until("An answer.");
    screen.until("waiting for you");
    screen.says("/tasks");
    screen.until("Enter watch");
    assert!(screen.parser.screen().alternate_screen());
    // A conversation whose turn has ended is not paused.
    assert!(screen.parser.screen().contents().contains(" waiting "), "{}", screen.all());
    screen.types("q");
    screen.until_gone("Enter watch");
    screen.says("/sessions");
    screen.until("Enter opens");
    assert!(screen.parser.screen().contents().contains("waiting    hello"), "{}", screen.all());
    screen.types(ESCAPE);
    screen.until_gone("Enter opens");
    screen.types("?");
    screen.until("send the message");
    screen.types("q");
    screen.until_gone("send the message");
    screen.types("\u{14}");
    screen.until("lines, 100 %");
    screen.types("q");
    screen.until_gone("lines, 100 %");
    screen.leave();
}

/// MS-092…097 and MS-211 over the enhanced protocol, MS-103
#[test]
fn keys_change_the_mode_and_the_title_says_it() {
    let program = prepared("replies: []");
    let mut screen = Screen::open(&program, &[]);
    screen.until("windlass chat | manual");
    screen.types("\u{1b}[109;6u");
    screen.until("windlass plan | manual");
    screen.types("\u{1b}a");
    screen.until("windlass build | autonomous");
    screen.types("\u{1b}[112;6u");
    screen.until("autonomous | trusted | smart");
    let written = String::from_utf8_lossy(&screen.written).into_owned();
    assert!(written.contains("\u{1b}]0;windlass[build|A|trusted|smart] "), "{written:?}");
    let keys = [("s", "build | assisted"), ("i", "build | manual"), ("r", "repair | manual")];
    for (key, mode) in keys {
        screen.types(&format!("\u{1b}[{};6u", key.as_bytes()[0]));
        screen.until(&format!("windlass {mode} | trusted"));
    }
    screen.leave();
}

/// AX-071, AX-093, AX-096: the role is in the mode line, and what is promised can be read.
#[test]
fn the_role_is_in_the_mode_line_and_commitments_are_listed() {
    let program = prepared("replies: [{say: hello}]");
    program.windlass(&["commitments", "commit", "use JWT"]).expect(0);
    let mut screen = Screen::open(&program, &[]);
    screen.says("/architect");
    screen.until("Switched to Architect mode.");
    screen.until("plan | manual | restricted | smart architect");
    screen.says("/commitments");
    screen.until("use JWT");
    screen.types("q");
    screen.until_gone("use JWT");
    let (_, code) = screen.leave();
    assert_eq!(code, 0);
}

#[test]
fn a_dumb_terminal_gets_plain_lines() {
    let program = prepared("replies: [{say: Plain words.}]");
    let mut command = program.command(&[]);
    command.env("TERM", "dumb");
    let mut screen = Screen::start(command, 80, 24);
    screen.until("A line is a message.");
    screen.types("hello\r");
    screen.until("Plain words.");
    screen.types("\u{4}");
    let (written, code) = (String::from_utf8_lossy(&screen.written).into_owned(), screen.end().1);
    assert_eq!(code, 0);
    assert!(!written.contains("\u{1b}[?"), "{written:?}");
}

#[test]
fn the_terminal_is_left_as_it_was() {
    let program = prepared("replies: []");
    let mut screen = Screen::open(&program, &[]);
    screen.until("windlass chat | manual");
    screen.types("\u{3}");
    screen.until("press Ctrl+C again to leave");
    screen.types("\u{3}");
    let since = Instant::now();
    while screen.more(since) {}
    screen.child.wait().unwrap();
    let written = String::from_utf8_lossy(&screen.written).into_owned();
    for (on, off) in [("\u{1b}[?2004h", "\u{1b}[?2004l"), ("\u{1b}[>5u", "\u{1b}[<u")] {
        let (last_on, last_off) = (written.rfind(on).unwrap(), written.rfind(off).unwrap());
        assert!(last_on < last_off, "{on:?} stays on");
    }
    assert!(!screen.parser.screen().hide_cursor());
    // The mouse stays the terminal's.
    for capture in ["\u{1b}[?1000h", "\u{1b}[?1002h", "\u{1b}[?1003h"] {
        assert!(!written.contains(capture), "{capture:?}");
    }
}

/// A whole working day: a conversation, a plan that is accepted, a question, a suspension while a command runs, a message
/// into the running turn, a resize, the background, the list of tasks, the next day.
#[test]
fn a_whole_working_day() {
    let program = prepared(
        "
replies:
  - say: Good morning.
  - update_plan: {steps: [{id: '1', description: remove the note, status: pending}]}
  - say: \"1. Remove the note\\n2. Build\"
  - say: I begin when you say so.
  - bash: rm notes.txt
  - text: I wait for the build.
    calls: [{bash: 'until [ -e go ]; do sleep 0.1; done'}]
  - say: The build is done.
  - text: The long part.
    calls: [{bash: 'until [ -e night ]; do sleep 0.1; done'}]
  - say: Finished in the background.
  - say: Welcome back.
",
    );
    let mut screen = Screen::in_shell(&program);
    screen.says("hello");
    screen.until("Good morning.");
    screen.until("waiting for you");
    screen.types("\u{1b}p");
    screen.until("chat | manual | trusted");
    screen.says("/plan clean up, then build");
    screen.until("plan | manual | trusted");
    screen.until("Accept this plan?");
    screen.until("❯ 1. ");
    screen.types("1");
    screen.until("windlass build | ");
    screen.until("I begin when you say so.");
    screen.until("waiting for you");
    screen.types("\u{1b}a");
    screen.until("build | autonomous | trusted");
    screen.says("clean up, then build");
    screen.until("❯ 1. Allow");
    screen.types("1");
    screen.until("until [ -e go ]");
    screen.until("Enter queues, Ctrl+S");
    screen.types("\u{1a}");
    screen.until_prompt();
    screen.types("fg\r");
    screen.wait_for_shown("the work again", |shown| shown.contains("Enter queues, Ctrl+S"));
    screen.types("and say when it is done");
    screen.types("\u{13}");
    screen.until("the agent reads it after the current step");
    screen.resize(50, 20);
    screen.until("[B][A][T][S]");
    std::fs::write(program.workspace().join("go"), "").unwrap();
    screen.until("The build is done.");
    screen.until("❯ and say when it is done");
    screen.resize(80, 24);
    screen.says("now the long part");
    screen.until("until [ -e night ]");
    screen.says("/tasks");
    screen.until("Enter watch");
    assert!(screen.parser.screen().contents().contains("running"), "{}", screen.all());
    screen.types("q");
    screen.until_gone("Enter watch");
    screen.types("\u{3}");
    screen.until("press Ctrl+C again to leave");
    screen.types("\u{3}");
    screen.until("the agent is still working");
    screen.types("b");
    screen.until_prompt();
    // With the code of the last command.
    screen.types("exit\r");
    let (all, code) = screen.end();
    assert_eq!(code, 0, "{all}");
    assert!(all.contains("continues; watch it with: windlass attach task_"), "{all}");
    std::fs::write(program.workspace().join("night"), "").unwrap();
    let since = Instant::now();
    let is_finished = || {
        let shown = program.windlass(&["tasks", "--json"]).stdout;
        shown.contains("awaiting_message")
    };
    while !is_finished() {
        assert!(since.elapsed() < PATIENCE, "{}", program.windlass(&["tasks"]).stdout);
    }
    let mut screen = Screen::start(interactive(&program, &["--continue"]), 80, 24);
    screen.until("windlass build | autonomous | trusted");
    screen.until("Finished in the background.");
    screen.says("good morning again");
    screen.until("Welcome back.");
    screen.leave();
}
