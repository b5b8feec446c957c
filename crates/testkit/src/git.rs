//! What a person does in a repository, with the real git and without settings of the machine.

use std::path::Path;
use std::process::Command;

/// Runs git in a directory, as Ada; what it printed, without the white space around it.
pub fn git(directory: &Path, arguments: &[&str]) -> String {
    let mut command = Command::new("git");
    command.args(["-c", "user.name=Ada", "-c", "user.email=ada@example.org"]).args(arguments);
    printed(command, directory).trim().to_owned()
}

/// Runs a shell script that stops at the first command that fails; what it printed.
pub fn by_hand(directory: &Path, script: &str) -> String {
    let mut command = Command::new("sh");
    command.args(["-ec", script]);
    printed(command, directory)
}

fn printed(mut command: Command, directory: &Path) -> String {
    let settings = [("GIT_CONFIG_GLOBAL", "/dev/null"), ("GIT_CONFIG_NOSYSTEM", "1")];
    let output = command.current_dir(directory).envs(settings).output().expect("it starts");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {errors}");
    String::from_utf8(output.stdout).expect("it prints UTF-8")
}
