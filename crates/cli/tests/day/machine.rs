//! A person's machine for a day: their git identity, their project, and a model that follows a script.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::program::{Program, Ran};

/// A user that does not exist on this machine; ordinary in every way.
const STRANGER: u32 = 54_321;
const CHILD: &str = "WINDLASS_TEST_AS_USER";

/// Runs the calling test once more as an ordinary user, where it runs as root. `place` is the test's path.
pub fn again_as_user(place: &str) {
    if !rustix::process::geteuid().is_root() || std::env::var_os(CHILD).is_some() {
        return;
    }
    // A target directory that others cannot enter is nothing unusual; copies are where they can.
    let room = tempfile::tempdir().unwrap();
    fs::set_permissions(room.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let copy = |from: &Path, name: &str| -> PathBuf {
        let to = room.path().join(name);
        fs::copy(from, &to).unwrap();
        to
    };
    let tests = copy(&std::env::current_exe().unwrap(), "day");
    let program = copy(Path::new(env!("CARGO_BIN_EXE_windlass")), "windlass");
    let name = place.split_once("::").unwrap().1;
    let output = Command::new(tests)
        .args(["--exact", name, "--nocapture", "--test-threads=1"])
        .env(CHILD, "1")
        .env("WINDLASS_TEST_PROGRAM", program)
        .env("HOME", "/nonexistent")
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .current_dir("/")
        .uid(STRANGER)
        .gid(STRANGER)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "as an ordinary user:\n{text}{errors}");
    assert!(text.contains("1 passed"), "the test `{name}` was not found:\n{text}");
}

/// A machine with a git identity and an empty project.
pub fn machine(script: &str) -> Program {
    let program = Program::playing(script);
    let config =
        "[user]\n\tname = Ada L\n\temail = ada@example.org\n[init]\n\tdefaultBranch = main\n";
    fs::write(program.data.path().join(".gitconfig"), config).unwrap();
    program
}

/// Runs one of the person's own commands to its end, and returns what it printed.
pub fn by_hand(program: &Program, directory: &Path, command: &str) -> String {
    let output = Command::new("bash")
        .args(["-euo", "pipefail", "-c", command])
        .current_dir(directory)
        .env("HOME", program.data.path())
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command}: {output:?}\n{errors}");
    String::from_utf8(output.stdout).unwrap()
}

/// What git says of the project, everything that is not committed.
pub fn status(program: &Program, directory: &Path) -> String {
    by_hand(program, directory, "git status --porcelain")
}

pub fn write(directory: &Path, name: &str, text: &str) {
    let path = directory.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// Runs a command line in a directory.
pub fn run_in(program: &Program, directory: &Path, args: &[&str]) -> Ran {
    program.command(args).current_dir(directory).output().unwrap().into()
}

/// Puts the project under git, with everything that is in it.
pub fn commit_all(program: &Program, directory: &Path) {
    by_hand(program, directory, "git init -q && git add -A && git commit -qm start");
}

/// What the tools answered, in order, as the model read it.
pub fn results_of(ran: &Ran) -> Vec<String> {
    let results = ran.json_lines().into_iter().filter(|line| line["event_type"] == "tool_result");
    results.map(|line| line["data"]["text"].as_str().unwrap_or_default().to_owned()).collect()
}
