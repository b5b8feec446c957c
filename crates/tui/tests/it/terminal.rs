//! The terminal itself, when the program breaks.

use std::path::Path;
use std::process::Command;

use windlass_tui::terminal::{KeyModes, Terminal};

/// Where the log is, in the program that breaks.
const BREAKS: &str = "WINDLASS_TEST_BREAKS";

/// This test runs itself on a terminal of its own, where it takes the terminal and panics.
#[test]
fn a_panic_restores_the_terminal_and_names_the_log() {
    if let Some(log) = std::env::var_os(BREAKS) {
        let modes = KeyModes { enhanced: true, is_tmux: false };
        let _terminal = Terminal::open(modes, Path::new(&log)).unwrap();
        eprintln!("printed by a library");
        panic!("broken on purpose");
    }
    let directory = tempfile::tempdir().unwrap();
    let log = directory.path().join("terminal.log");
    let own = std::env::current_exe().unwrap();
    let name = "terminal::a_panic_restores_the_terminal_and_names_the_log";
    let line = format!("'{}' --exact {name} --nocapture; stty -a", own.display());
    let mut terminal = Command::new("script");
    terminal.args(["-qec", &line, "/dev/null"]).env(BREAKS, &log).env("SHELL", "/bin/sh");
    let written = String::from_utf8(terminal.output().unwrap().stdout).unwrap();
    for (on, off) in [("\u{1b}[?2004h", "\u{1b}[?2004l"), ("\u{1b}[>5u", "\u{1b}[<u")] {
        assert!(written.find(on) < written.rfind(off), "{on:?} stays on: {written}");
    }
    let after = written.split("\u{1b}[?2004l").nth(1).unwrap();
    let names_log = format!("the terminal crashed; its log is {}", log.display());
    assert!(after.contains(&names_log), "{written}");
    assert!(after.contains("broken on purpose"), "{written}");
    assert!(!written.contains("printed by a library"), "{written}");
    assert!(std::fs::read_to_string(&log).unwrap().contains("printed by a library"));
    // What `stty` says: lines are edited and shown again.
    let modes: Vec<&str> = written.rsplit_once("speed").unwrap().1.split_whitespace().collect();
    for mode in ["icanon", "echo", "isig", "opost"] {
        assert!(modes.contains(&mode), "{mode} is off: {modes:?}");
    }
}
