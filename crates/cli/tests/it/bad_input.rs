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

/// A text that begins with `-` is no option: it is named whole, with what to do.
#[test]
fn a_text_that_begins_with_a_dash_is_named_whole() {
    let program = program();
    for args in [["run", "- list item"], ["run", "-- every file"], ["run", "-5 degrees"]] {
        let error = program.windlass(&args).expect(2).stderr;
        assert!(error.contains(&format!("unexpected argument `{}` found", args[1])), "{error}");
        assert!(error.contains("put `--` before a text that begins with `-`"), "{error}");
    }
    let option = program.windlass(&["run", "-x"]).expect(2).stderr;
    assert!(!option.contains("before a text"), "{option}");
    for args in [["prune", "--older-than", "-1d"], ["tasks", "--limit", "-1"]] {
        let error = program.windlass(&args).expect(2).stderr;
        assert!(error.contains(&format!("invalid value `{}`", args[2])), "{error}");
    }
}

#[test]
fn a_workspace_that_is_a_file() {
    let program = program();
    std::fs::write(program.workspace().join("file"), "").unwrap();
    insta::assert_snapshot!(error(&program, &["run", "x", "--workspace", "file"]));
}

/// Nothing is begun that could not be carried out.
#[test]
fn a_file_where_tasks_keep_their_own_files() {
    let program = program();
    std::fs::write(program.workspace().join(".windlass"), "").unwrap();
    insta::assert_snapshot!(error(&program, &["run", "x"]), @r"
    error: workspace `.` cannot be used: its `.windlass`, where tasks keep their files, is not a directory

    hint: name a directory that exists and that you can write to with `--workspace DIR`
    ");
    assert_eq!(program.windlass(&["tasks", "--json"]).expect(0).stdout, "");
}

/// No sandbox could use it: that is not proposed.
#[test]
fn a_task_whose_directory_was_removed_names_it() {
    let program = Program::playing("replies: [{ask_user: {question: sure?}}, {say: done}]");
    let inner = program.workspace().join("inner");
    std::fs::create_dir(&inner).unwrap();
    program.windlass(&["run", "x", "--workspace", "inner"]).expect(3);
    program.windlass(&["answer", &program.task(), "yes"]).expect(0);
    std::fs::remove_dir_all(&inner).unwrap();
    for more in [&[][..], &["--sandbox", "host"]] {
        let task = program.task();
        let refused = program.windlass(&[&["resume", &task], more].concat()).expect(2);
        let gone =
            format!("directory `{}/inner` does not exist any more", program.real_workspace());
        assert!(refused.stderr.contains(&gone), "{refused:?}");
        let remedy = format!("make it usable again, or end the task with `windlass cancel {task}`");
        assert!(refused.stderr.contains(&remedy), "{refused:?}");
    }
    std::fs::create_dir(&inner).unwrap();
    program.windlass(&["resume", &program.task(), "-q"]).expect(0);
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

/// A directory is made for work, and not for a look at one whose name is mistyped.
#[test]
fn looking_makes_no_data_directory_that_a_flag_names() {
    let program = program();
    let named = program.data.path().join("tyop").display().to_string();
    for args in [&["tasks"][..], &["show"], &["inbox"], &["resume"], &["prune"]] {
        let refused = program.windlass(&[&["--data", &named], args].concat()).expect(2);
        assert!(refused.stderr.contains(&format!("`{named}` does not exist")), "{refused:?}");
    }
    assert!(!Path::new(&named).exists());
    program.windlass(&["--data", &named, "run", "x", "-q"]).expect(3);
    program.windlass(&["--data", &named, "tasks"]).expect(0);
    let file = program.workspace().join("file").display().to_string();
    std::fs::write(&file, "").unwrap();
    let refused = program.windlass(&["--data", &file, "tasks"]).expect(2);
    assert!(refused.stderr.contains("not a directory"), "{refused:?}");
}

/// The specification of these variables says so, as for the configuration.
#[test]
fn a_relative_xdg_data_home_is_ignored() {
    let program = program();
    let mut command = program.command(&["tasks"]);
    command.env_remove("WINDLASS_DATA").env("XDG_DATA_HOME", "relative");
    Ran::from(command.output().unwrap()).expect(0);
    assert!(program.data.path().join(".local/share/windlass").is_dir());
    assert!(!program.workspace().join("relative").exists());
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
fn a_goal_that_is_not_text() {
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
    let said = |name: &str| {
        let mut command = program.command(&[name]);
        command.stdout(std::fs::File::options().write(true).open("/dev/full").unwrap());
        let ran = Ran::from(command.output().unwrap()).expect(2);
        let lines = ran.stderr.lines().skip_while(|line| line.starts_with("notice"));
        lines.collect::<Vec<_>>().join("\n")
    };
    insta::assert_snapshot!(said("config"));
    assert_eq!(said("man"), said("config"));
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

#[test]
fn hidden_characters_of_a_mistyped_line_are_escaped() {
    let program = Program::playing("replies: []");
    let refused = program.windlass(&["tasks", "--no\u{202e}pe"]).expect(2).stderr;
    assert!(refused.contains(r"\u{202E}"), "{refused}");
    assert!(!refused.contains('\u{202e}'), "{refused}");
}

/// A directory that a command only looks into must exist as well, and none is made for a mistyped name.
#[test]
fn a_project_directory_that_is_not_there_is_refused() {
    let program = program();
    std::fs::write(program.workspace().join("file"), "").unwrap();
    for line in [
        "config",
        "models",
        "doctor",
        "skills list",
        "skills new x",
        "mcp list",
        "plan list",
        "plan new x",
        "schedule add --start x --every 10m",
    ] {
        for (place, words) in
            [("nowhere", "there is no such directory"), ("file", "not a directory")]
        {
            let args: Vec<&str> = line.split(' ').chain(["--workspace", place]).collect();
            let refused = error(&program, &args);
            let words = format!("error: invalid value `{place}` for `--workspace <DIR>`: {words}");
            assert!(refused.starts_with(&words), "{line}: {refused}");
        }
    }
    assert!(!program.workspace().join("nowhere").exists());
}

#[test]
fn a_number_that_is_too_large_is_called_so() {
    let program = program();
    for option in ["--max-iterations", "--timeout", "--context-window"] {
        let refused = error(&program, &["run", "x", option, "99999999999999999999"]);
        assert!(refused.contains(&format!("for `{option} <")), "{refused}");
        assert!(refused.contains(": too large\n"), "{refused}");
    }
}

#[test]
fn continuing_without_a_goal_begins_with_the_error() {
    let program = program();
    program.windlass(&["run", "x", "--json"]).expect(3);
    let refused = error(&program, &["run", "--continue"]);
    assert!(refused.starts_with("error: the goal is empty\n"), "{refused}");
}

#[test]
fn a_profile_without_consent_is_named_as_it_was_given() {
    let refused = error(&program(), &["run", "x", "--permission-profile", "unrestricted"]);
    let words = "error: --permission-profile `unrestricted`: `unrestricted` is not allowed";
    assert!(refused.starts_with(words), "{refused}");
}

#[test]
fn hidden_characters_of_an_error_are_escaped_once() {
    let refused = error(&program(), &["permissions", "allow", "\u{1b}"]);
    assert!(refused.starts_with("error: `\\x1b` is not a pattern of a command\n"), "{refused}");
}

#[test]
fn times_that_no_schedule_can_have() {
    let program = program();
    let refused = |option, value| {
        let error = error(&program, &["schedule", "add", "--start", "x", option, value]);
        error.lines().next().unwrap_or_default().to_owned()
    };
    let lines = [
        refused("--cron", "99 * * * *"),
        refused("--every", "0s"),
        refused("--every", "soon"),
        refused("--daily", "25:00"),
    ];
    insta::assert_snapshot!(lines.join("\n"), @r"
    error: `99 * * * *` is not a cron line like `30 9 * * 1-5`: value must be in range 0 to 59; found 99
    error: `0s` is not longer than 0 s
    error: `soon` is not a length of time
    error: `25:00` cannot be read
    ");
}

#[test]
fn an_address_that_is_none() {
    let refused = error(&program(), &["serve", "--listen", "nonsense"]);
    let words = "error: invalid value `nonsense` for `--listen <ADDRESS>`: \
                 not an address and port such as `127.0.0.1:7878`";
    assert!(refused.starts_with(words), "{refused}");
}

/// Whatever cannot be read or written, the error ends with what to do.
#[test]
fn a_file_in_the_way_is_named_with_what_to_do() {
    let program = program();
    std::fs::write(program.workspace().join(".windlass"), "").unwrap();
    let refused = error(&program, &["plan", "new", "x"]);
    assert!(refused.contains(".windlass/plans/x/plan.json` cannot be written"), "{refused}");
    assert!(refused.contains("\nhint: "), "{refused}");
    let configuration = program.data.path().join(".config/windlass/config.toml");
    std::fs::create_dir_all(&configuration).unwrap();
    let refused = error(&program, &["config", "set", "models.smart", "openai/x"]);
    assert!(refused.contains("config.toml` cannot be read: it is not a regular file"), "{refused}");
    assert!(refused.contains("\nhint: make it a text file"), "{refused}");
}

#[test]
fn a_script_that_is_not_text() {
    let program = program();
    std::fs::write(program.workspace().join("tape.yaml"), b"\xff\xfe").unwrap();
    let refused = error(&program, &["run", "x", "--model", "script:tape.yaml"]);
    let words = "error: cannot use the script `tape.yaml`: it is not text in UTF-8\n";
    assert!(refused.starts_with(words), "{refused}");
}

/// No agent can repair what keeps its own task from being written.
#[test]
fn doctor_offers_no_agent_where_the_data_cannot_be_opened() {
    let program = program();
    std::fs::write(program.workspace().join("file"), "").unwrap();
    let checked = program.windlass(&["doctor", "--data", "file"]).expect(1);
    assert!(checked.stdout.starts_with("wrong    store"), "{checked:?}");
    assert!(!checked.stderr.contains("heal"), "{checked:?}");
}

#[test]
fn a_database_that_may_not_be_read() {
    let program = program();
    by_nobody(&program, &["tasks"]).expect(0);
    allow(&program.data_directory().join("windlass.db"), 0o000);
    let refused = by_nobody(&program, &["tasks"]).expect(2).stderr;
    let words = "windlass.db` cannot be read or written\n  caused by: permission denied\n";
    assert!(refused.contains(words), "{refused}");
    assert!(refused.contains("windlass.db` readable and writable for you"), "{refused}");
}
