//! The interactive terminal inside real tmux: its scrollback, its resizes, and a shell to suspend into.

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
    tmux.until("copied");
    assert_eq!(tmux.run(&["show-buffer"]), "Use **this** one.");
    tmux.key("C-d");
    tmux.until("continue with: windlass --session");
}
