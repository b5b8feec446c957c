//! The interactive terminal inside real tmux: its scrollback, its resizes, and a shell to suspend into; and inside real
//! GNU screen, which keeps nothing of what a page covers.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::program::Program;

const PATIENCE: Duration = Duration::from_secs(30);

/// A tmux server of its own with one window in which a shell runs.
struct Tmux {
    name: String,
}

impl Tmux {
    fn start(program: &Program, columns: u32, rows: u32) -> Self {
        let name = program.data.path().file_name().unwrap().to_string_lossy().into_owned();
        let tmux = Self { name };
        let windlass = program.command(&[]);
        let mut start = Command::new("tmux");
        start.args(["-L", &tmux.name, "-f", "/dev/null", "new-session", "-d"]);
        start.args(["-x", &columns.to_string(), "-y", &rows.to_string()]);
        for (name, value) in windlass.get_envs() {
            if let Some(value) = value {
                start.arg("-e").arg(format!("{}={}", name.display(), value.display()));
            }
        }
        start.args(["-e", "PS1=shell> ", "-e", "LANG=C.UTF-8"]);
        start.arg("-c").arg(program.workspace()).args(["bash", "--norc", "--noprofile"]);
        start.env("LANG", "C.UTF-8").env_remove("TMUX");
        assert!(start.status().unwrap().success(), "tmux does not start");
        tmux.until("shell>");
        let path = windlass.get_program().display().to_string();
        tmux.types(&path);
        tmux.key("Enter");
        tmux
    }

    fn run(&self, args: &[&str]) -> String {
        let output = Command::new("tmux").args(["-L", &self.name]).args(args).output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn types(&self, text: &str) {
        self.run(&["send-keys", "-l", text]);
    }

    fn key(&self, key: &str) {
        self.run(&["send-keys", key]);
    }

    fn says(&self, text: &str) {
        self.types(text);
        self.until(text);
        self.key("Enter");
    }

    /// The screen and everything above it.
    fn all(&self) -> String {
        self.run(&["capture-pane", "-p", "-S", "-"])
    }

    fn until(&self, text: &str) {
        self.until_so(text, |all| all.contains(text));
    }

    fn until_so(&self, what: &str, is_so: impl Fn(&str) -> bool) {
        let since = Instant::now();
        while !is_so(&self.all()) {
            assert!(since.elapsed() < PATIENCE, "never seen: {what}\n{}", self.all());
        }
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        let kill = ["-L", &self.name, "kill-server"];
        let _ = Command::new("tmux").args(kill).stderr(Stdio::null()).status();
    }
}

#[test]
fn it_is_resized_suspended_and_left_inside_tmux() {
    let program = Program::playing(
        "
replies:
  - say: The quick brown fox jumps over the lazy dog.
  - say: Here again.
",
    );
    let tmux = Tmux::start(&program, 80, 24);
    tmux.until("windlass chat | manual | normal | smart");
    tmux.says("hello");
    tmux.until("The quick brown fox jumps over the lazy dog.");
    tmux.until("waiting for you");
    tmux.run(&["resize-window", "-x", "30", "-y", "12"]);
    tmux.until("[C][M][N][S]");
    tmux.until("The quick brown fox jumps");
    tmux.run(&["resize-window", "-x", "100", "-y", "30"]);
    tmux.until("windlass chat | manual | normal | smart");
    let is_once = |all: &str| all.matches("jumps over the lazy dog.").count() == 1;
    tmux.until_so("the reply once", is_once);
    tmux.types("a draft");
    tmux.until("❯ a draft");
    tmux.key("C-z");
    tmux.until_so("the shell", |all| all.trim_end().ends_with("shell>"));
    tmux.types("fg");
    tmux.key("Enter");
    tmux.until("❯ a draft");
    tmux.key("Enter");
    tmux.until("Here again.");
    tmux.until("waiting for you");
    tmux.key("C-d");
    tmux.until("continue with: windlass --session");
    // The shell has its terminal back.
    tmux.types("echo it $((1+1)) works");
    tmux.key("Enter");
    tmux.until("it 2 works");
}

/// Inside tmux the text goes into its buffer, where it can be pasted from.
#[test]
fn a_reply_is_copied_into_the_buffer_of_tmux() {
    let program = Program::playing("replies: [{say: 'Use **this** one.'}]");
    let tmux = Tmux::start(&program, 80, 24);
    tmux.until("windlass chat | manual | normal | smart");
    tmux.says("which?");
    tmux.until("Use this one.");
    tmux.until("waiting for you");
    tmux.key("M-c");
    tmux.until("copied into tmux's buffer");
    assert_eq!(tmux.run(&["show-buffer"]), "Use **this** one.");
    tmux.key("C-d");
    tmux.until("continue with: windlass --session");
}

/// A session of GNU screen with one window in which a shell runs.
struct GnuScreen {
    name: String,
    directory: PathBuf,
}

impl GnuScreen {
    fn start(program: &Program) -> Self {
        let root = program.data.path();
        let name = root.file_name().unwrap().to_string_lossy().into_owned();
        let directory = root.join("screens");
        DirBuilder::new().mode(0o700).create(&directory).unwrap();
        let screen = Self { name, directory };
        let windlass = program.command(&[]);
        let mut start = screen.command(&["-U", "-c", "/dev/null", "-dmS", &screen.name]);
        start.args(["bash", "--norc", "--noprofile"]).current_dir(program.workspace());
        for (name, value) in windlass.get_envs() {
            if let Some(value) = value {
                start.env(name, value);
            }
        }
        start.env("PS1", "shell> ").env("LANG", "C.UTF-8").env("TERM", "xterm").env_remove("TMUX");
        assert!(start.status().unwrap().success(), "GNU screen does not start");
        screen.until("shell>");
        screen.types(&format!("{}\r", windlass.get_program().display()));
        screen
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new("screen");
        command.args(args).env("SCREENDIR", &self.directory).stdout(Stdio::null());
        command
    }

    fn run(&self, args: &[&str]) {
        let ours = ["-S", &self.name, "-p", "0", "-X"];
        self.command(&[&ours[..], args].concat()).status().unwrap();
    }

    fn types(&self, text: &str) {
        self.run(&["stuff", text]);
    }

    /// The screen without what is above it.
    fn shown(&self) -> String {
        self.copied("copy", &[])
    }

    /// The screen and everything above it, down to this text.
    fn all_until(&self, text: &str) -> String {
        let since = Instant::now();
        loop {
            let all = self.copied("all", &["-h"]);
            if all.contains(text) {
                return all;
            }
            assert!(since.elapsed() < PATIENCE, "never in the scrollback: {text}\n{all}");
        }
    }

    fn copied(&self, name: &str, how: &[&str]) -> String {
        let copy = self.directory.join(name);
        let place = copy.display().to_string();
        self.run(&[&["hardcopy"], how, &[place.as_str()]].concat());
        String::from_utf8_lossy(&std::fs::read(copy).unwrap_or_default()).into_owned()
    }

    fn until(&self, text: &str) {
        self.until_so(text, |shown| shown.contains(text));
    }

    fn until_so(&self, what: &str, is_so: impl Fn(&str) -> bool) {
        let since = Instant::now();
        while !is_so(&self.shown()) {
            assert!(since.elapsed() < PATIENCE, "never seen: {what}\n{}", self.shown());
        }
    }
}

impl Drop for GnuScreen {
    fn drop(&mut self) {
        let _ = self.command(&["-S", &self.name, "-X", "quit"]).status();
    }
}

#[test]
fn a_page_leaves_the_conversation_whole_inside_gnu_screen() {
    let program = Program::playing("replies: [{say: The quick brown fox jumps.}]");
    let screen = GnuScreen::start(&program);
    screen.until("windlass chat | manual | normal | smart");
    screen.types("hello");
    screen.until("hello");
    screen.types("\r");
    screen.until("The quick brown fox jumps.");
    screen.until("waiting for you");
    screen.types("/sessions");
    screen.until("/sessions");
    screen.types("\r");
    screen.until("conversations of this directory");
    screen.until_so("the page alone", |shown| !shown.contains("waiting for you"));
    screen.types("\u{3}");
    screen.until_so("the conversation as it was", |shown| {
        let is_there = ["hello", "The quick brown fox jumps.", "waiting for you"]
            .iter()
            .all(|words| shown.matches(words).count() == 1);
        is_there && !shown.contains("conversations of this directory")
    });
    let all = screen.all_until("waiting for you");
    assert_eq!(all.matches("The quick brown fox jumps.").count(), 1, "{all}");
    assert!(!all.contains("conversations of this directory"), "{all}");
    screen.types("\u{4}");
    screen.until("continue with: windlass --session");
}

#[test]
fn a_question_is_answered_and_it_is_suspended_inside_gnu_screen() {
    let program = Program::playing("replies: [{bash: rm notes.txt}, {say: The note is gone.}]");
    let note = program.workspace().join("notes.txt");
    std::fs::write(&note, "a note\n").unwrap();
    let screen = GnuScreen::start(&program);
    screen.until("windlass chat | manual | normal | smart");
    screen.types("remove it");
    screen.until("remove it");
    screen.types("\r");
    screen.until("press a number");
    screen.types("1");
    screen.until("The note is gone.");
    screen.until("waiting for you");
    assert!(!note.exists());
    screen.types("a draft");
    screen.until("a draft");
    screen.types("\u{1a}");
    screen.until_so("the shell", |shown| shown.trim_end().ends_with("shell>"));
    screen.types("fg\r");
    screen.until_so("the draft again", |shown| {
        shown.contains("a draft") && shown.contains("waiting for you")
    });
    screen.types("\u{3}");
    screen.until("kept in the history");
    screen.types("\u{4}");
    screen.until("continue with: windlass --session");
}
