//! Bad input gets a clear error: what happened, to which thing, what to do next; exit code 2.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use crate::program::{Program, Ran};

/// A user that every machine has and that owns nothing.
const NOBODY: u32 = 65_534;

fn program() -> Program {
    Program::playing("replies: [{ask_user: {question: sure?}}, {say: done}]")
}

/// The error as a person reads it, with what varies masked.
fn error(program: &Program, args: &[&str]) -> String {
    let ran = program.windlass(args).expect(2);
    assert_eq!(ran.stdout, "", "errors go to stderr");
    let home = program.data.path().display().to_string();
    let workspace = program.workspace().canonicalize().unwrap().display().to_string();
    ran.stderr.replace(&home, "HOME").replace(&workspace, "WORKSPACE")
}

fn allow(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

/// Runs a command line as a user whom permission bits concern: root ignores them.
fn by_nobody(program: &Program, args: &[&str]) -> Ran {
    let (binary, built) = (program.data.path().join("windlass"), env!("CARGO_BIN_EXE_windlass"));
    if !binary.exists() {
        let linked = std::fs::hard_link(built, &binary);
        linked.or_else(|_| std::fs::copy(built, &binary).map(drop)).unwrap();
    }
    allow(program.data.path(), 0o777);
    let mut command = std::process::Command::new(&binary);
    command.args(args).current_dir(program.workspace()).env_clear();
    command.env("HOME", program.data.path()).env("WINDLASS_DATA", program.data_directory());
    command.env("LITELLM_API_BASE", program.server.base()).env("LITELLM_MODEL", "gpt-4o");
    if rustix::process::geteuid().is_root() {
        use std::os::unix::process::CommandExt as _;
        command.uid(NOBODY).gid(NOBODY);
    }
    command.output().unwrap().into()
}

#[test]
fn an_empty_goal() {
    insta::assert_snapshot!(error(&program(), &["run", "  "]));
}

#[test]
fn a_workspace_that_is_not_there() {
    insta::assert_snapshot!(error(&program(), &["run", "x", "--workspace", "nowhere"]));
}

#[test]
fn a_workspace_that_is_a_file() {
    let program = program();
    std::fs::write(program.workspace().join("file"), "").unwrap();
    insta::assert_snapshot!(error(&program, &["run", "x", "--workspace", "file"]));
}

/// The directory is what is wrong, not a file that may be in it.
#[test]
fn a_directory_that_may_not_be_entered_is_named() {
    let program = program();
    let closed = program.workspace().join("closed");
    std::fs::create_dir(&closed).unwrap();
    allow(program.workspace(), 0o755);
    allow(&closed, 0o000);
    for args in [["run", "x"], ["exec", "ls"], ["headless", "x"]] {
        let ran = by_nobody(&program, &[args[0], "--workspace", "closed", args[1]]).expect(2);
        let closed = closed.canonicalize().unwrap();
        let named = format!("error: directory `{}` cannot be opened: Permission", closed.display());
        assert!(ran.stderr.starts_with(&named) && ran.stderr.contains("chmod u+rwx"), "{ran:?}");
    }
    allow(&closed, 0o333);
    let ran = by_nobody(&program, &["run", "x", "--workspace", "closed"]).expect(2);
    assert!(ran.stderr.starts_with("error: workspace `closed` cannot be read: Perm"), "{ran:?}");
    allow(&closed, 0o700);
}

#[test]
fn a_command_runs_in_a_directory_and_not_in_a_file() {
    let program = program();
    std::fs::write(program.workspace().join("file"), "").unwrap();
    insta::assert_snapshot!(error(&program, &["exec", "--workspace", "file", "true"]), @r"
    error: workspace `file` cannot be used
      caused by: not a directory

    hint: name a directory that exists with `--workspace DIR`
    ");
}

#[test]
fn a_workspace_that_cannot_be_written_to() {
    // Root can write anywhere except where nobody can.
    insta::assert_snapshot!(error(&program(), &["run", "x", "--workspace", "/proc"]));
}

#[test]
fn an_unknown_id() {
    insta::assert_snapshot!(error(&program(), &["resume", "task_0000"]));
}

#[test]
fn an_unknown_profile() {
    insta::assert_snapshot!(error(&program(), &["run", "x", "--permission-profile", "root"]));
}

#[test]
fn no_model() {
    let program = program();
    let mut command = program.command(&["run", "x"]);
    let ran = command.env_remove("LITELLM_MODEL").env_remove("LITELLM_API_BASE").output().unwrap();
    assert_eq!(ran.status.code(), Some(2));
    insta::assert_snapshot!(String::from_utf8_lossy(&ran.stderr));
}

#[test]
fn a_database_that_is_something_else() {
    let program = program();
    std::fs::create_dir_all(program.data_directory()).unwrap();
    std::fs::write(program.data_directory().join("windlass.db"), "this is not a database, is it?")
        .unwrap();
    insta::assert_snapshot!(error(&program, &["tasks"]));
}

#[test]
fn a_data_directory_that_is_a_file() {
    let program = program();
    std::fs::write(program.data_directory(), "").unwrap();
    insta::assert_snapshot!(error(&program, &["tasks"]));
}

#[test]
fn a_database_of_a_later_version() {
    let program = program();
    program.windlass(&["tasks"]).expect(0);
    let database = program.data_directory().join("windlass.db");
    let connection = rusqlite::Connection::open(database).unwrap();
    connection.pragma_update(None, "user_version", 999).unwrap();
    drop(connection);
    let known = format!("up to {}", windlass_store::SCHEMA_VERSION);
    insta::assert_snapshot!(error(&program, &["tasks"]).replace(&known, "up to OURS"));
}

#[test]
fn a_task_that_has_ended_takes_nothing_more() {
    let program = Program::playing("replies: [{say: done}]");
    program.windlass(&["run", "x", "--json"]).expect(0);
    let task = program.task();
    let masked = |args: &[&str]| error(&program, args).replace(&task, "TASK");
    insta::assert_snapshot!(
        [masked(&["retry", &task]), masked(&["resume", &task])].join("\n---\n")
    );
}

/// Root ignores permission bits, so as root this test runs as another user.
#[test]
fn a_read_only_data_directory_can_be_looked_at() {
    let program = program();
    program.windlass(&["tasks"]).expect(0);
    for entry in std::fs::read_dir(program.data_directory()).unwrap().flatten() {
        allow(&entry.path(), if entry.path().is_dir() { 0o555 } else { 0o444 });
    }
    allow(&program.data_directory(), 0o555);
    [program.data.path(), program.workspace()].iter().for_each(|path| allow(path, 0o755));
    let looked = [["tasks"], ["status"], ["cost"]].map(|args| by_nobody(&program, &args));
    allow(&program.data_directory(), 0o755);
    looked.into_iter().for_each(|ran| drop(ran.expect(0)));
}

#[test]
fn a_mistyped_command() {
    insta::assert_snapshot!(error(&program(), &["resme", "x"]));
}

#[test]
fn a_goal_without_a_command() {
    insta::assert_snapshot!(error(&program(), &["fix the build"]));
}

#[test]
fn an_unknown_flag() {
    insta::assert_snapshot!(error(&program(), &["run", "x", "--jsn"]));
}

#[test]
fn json_and_print_together() {
    insta::assert_snapshot!(error(&program(), &["run", "x", "--json", "--print"]));
}

#[test]
fn no_goal() {
    insta::assert_snapshot!(error(&program(), &["run"]));
}

#[test]
fn a_goal_in_pieces() {
    insta::assert_snapshot!(error(&program(), &["headless", "fix", "it"]));
}

#[test]
fn a_goal_file_that_is_not_there() {
    insta::assert_snapshot!(error(&program(), &["run", "@nowhere.md"]));
}

#[test]
fn an_unknown_model_mode() {
    insta::assert_snapshot!(error(&program(), &["run", "x", "--model-mode", "huge"]));
}

#[test]
fn a_number_that_is_none() {
    insta::assert_snapshot!(error(&program(), &["run", "x", "--timeout", "soon"]));
}

#[test]
fn a_model_of_an_unknown_provider() {
    insta::assert_snapshot!(error(&program(), &["run", "x", "--model", "acme/big"]));
}

#[test]
fn a_script_that_is_not_there() {
    insta::assert_snapshot!(error(&program(), &["run", "x", "--model", "script:nowhere.yaml"]));
}

#[test]
fn an_unknown_status() {
    insta::assert_snapshot!(error(&program(), &["tasks", "--status", "lost"]));
}

#[test]
fn an_unknown_output() {
    insta::assert_snapshot!(error(&program(), &["outputs", "call_nothing"]));
}

#[test]
fn an_output_id_that_is_a_path() {
    insta::assert_snapshot!(error(&program(), &["outputs", "../windlass.db"]));
}

#[test]
fn a_configuration_with_a_bad_value() {
    let program = program();
    let directory = program.data.path().join(".config/windlass");
    std::fs::create_dir_all(&directory).unwrap();
    let text = "[agent]\nmax_iterations = 0\n\n[sandbx]\nmemory = \"1 GiB\"\n";
    std::fs::write(directory.join("config.toml"), text).unwrap();
    insta::assert_snapshot!(error(&program, &["config"]));
}

#[test]
fn a_project_without_a_file_to_trust() {
    insta::assert_snapshot!(error(&program(), &["trust"]));
}

#[test]
fn an_unknown_shell() {
    insta::assert_snapshot!(error(&program(), &["completions", "csh"]));
}

#[test]
fn autonomous_without_a_goal() {
    insta::assert_snapshot!(error(&program(), &["headless", "autonomous"]));
}

#[test]
fn an_amount_that_is_none() {
    insta::assert_snapshot!(error(&program(), &["run", "x", "--budget", "much"]));
}

#[test]
fn a_negative_time() {
    insta::assert_snapshot!(error(&program(), &["run", "x", "--timeout", "-5"]));
}

#[test]
fn a_goal_file_that_is_a_directory() {
    insta::assert_snapshot!(error(&program(), &["run", "@."]));
}

/// Nothing is cut off silently: a goal is taken whole or not at all.
#[test]
fn a_goal_that_is_too_long() {
    let program = program();
    std::fs::write(program.workspace().join("goal.md"), "x".repeat(1024 * 1024 + 1)).unwrap();
    insta::assert_snapshot!(error(&program, &["run", "@goal.md"]));
    std::fs::write(program.workspace().join("goal.md"), "x".repeat(1024 * 1024)).unwrap();
    let taken = program.windlass(&["run", "@goal.md", "--context-window", "2000000"]);
    assert_eq!(taken.code, 3, "{taken:?}");
}

#[test]
fn a_goal_that_is_no_text() {
    let program = program();
    std::fs::write(program.workspace().join("picture"), b"\xff\xfe\x00").unwrap();
    let from_file = error(&program, &["run", "@picture"]);
    let mut command = program.command(&["run", "-"]);
    command.stdin(std::fs::File::open(program.workspace().join("picture")).unwrap());
    let from_stdin: crate::program::Ran = command.output().unwrap().into();
    insta::assert_snapshot!([from_file, from_stdin.expect(2).stderr].join("\n---\n"));
}

#[test]
fn a_recording_that_cannot_be_written_is_refused_at_once() {
    let program = program();
    insta::assert_snapshot!(error(&program, &["run", "x", "--record", "nowhere/tape.yaml"]));
    assert_eq!(program.windlass(&["tasks", "--json"]).stdout, "");
}

#[test]
fn a_result_that_does_not_fit_on_the_disk() {
    let program = program();
    let mut command = program.command(&["config"]);
    command.stdout(std::fs::File::options().write(true).open("/dev/full").unwrap());
    let ran: crate::program::Ran = command.output().unwrap().into();
    insta::assert_snapshot!(
        ran.expect(2)
            .stderr
            .lines()
            .skip_while(|line| line.starts_with("notice"))
            .collect::<Vec<_>>()
            .join("\n")
    );
}

#[test]
fn a_goal_without_quotes() {
    let run = error(&program(), &["run", "fix", "the", "build"]);
    let alone = error(&program(), &["fix", "the", "build", "--json"]);
    insta::assert_snapshot!([run, alone].join("\n---\n"));
}

/// A broken project file does not break a list.
#[test]
fn a_broken_project_file_does_not_hide_tasks() {
    let program = program();
    program.windlass(&["run", "x", "--json"]).expect(3);
    std::fs::create_dir(program.workspace().join(".windlass")).unwrap();
    std::fs::write(program.workspace().join(".windlass/config.toml"), "[models").unwrap();
    assert_eq!(program.windlass(&["tasks"]).expect(0).stdout.lines().count(), 5);
    let refused = error(&program, &["run", "y"]);
    assert!(refused.contains(".windlass/config.toml:1: not valid TOML"), "{refused}");
}

#[test]
fn a_recording_in_place_of_something_else() {
    let program = program();
    std::fs::write(program.workspace().join("main.rs"), "fn main() {}").unwrap();
    insta::assert_snapshot!(error(&program, &["run", "x", "--record", "main.rs"]));
    assert_eq!(program.file("main.rs"), "fn main() {}");
    for _ in 0..2 {
        program.windlass(&["run", "x", "-q", "--record", "tape.yaml"]).expect(3);
    }
}
