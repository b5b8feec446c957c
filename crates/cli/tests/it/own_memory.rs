//! The memory of the program itself, which holds keys.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Stdio;

use crate::program::Program;

/// A user that does not exist on this machine.
const STRANGER: u32 = 54_321;

/// The owner of a process's files in `/proc` while it waits for the model, and its limit of core files. The kernel
/// gives the files of a process that nobody may look into to root.
fn seen_from_outside(switch: Option<&str>) -> (u32, String) {
    let program = Program::playing("replies: [{say: late, delay_ms: 600000}]");
    let copies = tempfile::tempdir().unwrap();
    let copy = copies.path().join("windlass");
    std::fs::copy(program.command(&[]).get_program(), &copy).unwrap();
    let user = match rustix::process::geteuid().as_raw() {
        0 => STRANGER,
        other => other,
    };
    for directory in [copies.path(), program.data.path(), program.workspace()] {
        std::fs::set_permissions(directory, std::fs::Permissions::from_mode(0o755)).unwrap();
        chown(directory, Some(user), Some(user)).unwrap();
    }
    let prepared = program.command(&["run", "wait", "-q"]);
    let mut command = std::process::Command::new(&copy);
    command.args(prepared.get_args()).env_clear().current_dir(program.workspace());
    command.envs(prepared.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.env("WINDLASS_DUMPABLE", switch.unwrap_or_default()).uid(user).gid(user);
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    while program.server.requests().is_empty() {
        assert!(child.try_wait().unwrap().is_none(), "it ended before it asked");
        std::thread::yield_now();
    }
    let own = Path::new("/proc").join(child.id().to_string());
    let owner = own.join("environ").metadata().unwrap().uid();
    let limits = std::fs::read_to_string(own.join("limits")).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    let core = limits.lines().find(|line| line.starts_with("Max core file size")).unwrap();
    (owner, core.split_whitespace().nth(4).unwrap().to_owned())
}

#[test]
fn nobody_looks_into_the_memory_of_the_program() {
    assert_eq!(seen_from_outside(None), (0, "0".to_owned()));
    // Measurements and debuggers can ask for it.
    let (owner, _) = seen_from_outside(Some("1"));
    assert_ne!(owner, 0);
}
