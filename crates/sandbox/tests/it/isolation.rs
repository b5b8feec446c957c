//! Nothing of one command reaches the next, and each runs as `bash -c` would run it.

use std::fs;

use windlass_sandbox::local::Config;
use windlass_sandbox::{Command, Sandbox};

use crate::support::{Any, Place, Tested, finish, mark, run, script};
use crate::{SANDBOX, everyone};

/// A sandbox whose processes carry a mark in their environment.
async fn marked_sandbox(place: &Place) -> (Any, String) {
    let mark = mark();
    let mut config = place.config();
    config.environment.push(("MARK".to_owned(), mark.clone()));
    let config = Config { environment_names: vec!["MARK".to_owned()], ..config };
    (place.open(config).await.unwrap(), mark)
}

/// Everything a script can ask its shell and the kernel about itself, except numbers that differ every time.
const INTROSPECTION: &str = r#"
    printf '%s|' "$_" "$0" "$#" "$-" "$?" "$!" "$LINENO"; echo
    declare -p | grep -v -E '^declare -\S+ (BASHPID|EPOCH|RANDOM|SRANDOM|PPID|SECONDS|_=)'
    declare -F; alias; trap; jobs; shopt; set -o; umask; ulimit -a; type -a cd
    env -0 | sort -z | tr '\0' '\n'
    ls -l /proc/$$/fd > /tmp/descriptors
    awk '{print $9, $10, $11}' /tmp/descriptors | sed 's/[0-9][0-9]*]/N]/'
    grep -E 'SigIgn|SigCgt|Seccomp|NoNewPrivs|Cap|Uid|Gid|Groups|Umask' /proc/$$/status
    cat /proc/$$/oom_score_adj; readlink /proc/$$/cwd /proc/$$/root /proc/$$/exe
"#;

#[test]
fn the_second_command_finds_what_the_first_found() {
    everyone!(|who| async move {
        let place = Place::new(who);
        let (sandbox, _) = marked_sandbox(&place).await;
        let first = run(&sandbox, INTROSPECTION).await.ok();
        assert!(first.contains("BASH_EXECUTION_STRING") && !first.contains("BASH_ENV"), "{first}");
        let second = run(&sandbox, INTROSPECTION).await.ok();
        assert_same_lines(&first, &second);
    });
}

/// Compares line by line, so that a difference can be read.
#[track_caller]
fn assert_same_lines(one: &str, other: &str) {
    let differing: Vec<_> = one.lines().zip(other.lines()).filter(|(a, b)| a != b).collect();
    assert!(differing.is_empty() && one.len() == other.len(), "{differing:#?}");
}

#[test]
fn scripts_of_every_form_run_as_bash_runs_them() {
    everyone!(|who| async move {
        let place = Place::new(who);
        let (sandbox, _) = marked_sandbox(&place).await;
        let long = |count: usize| format!("echo {}", "x".repeat(count));
        let forms = [
            "echo \"it's\" 'a \"quote\"' \\$HOME $'\\x41' `echo b` $((1+1))".to_owned(),
            "cat <<'END'\nit's $HOME\nEND\necho end".to_owned(),
            "# only a comment".to_owned(),
            String::new(),
            "  \n\n echo after blank lines $LINENO".to_owned(),
            "echo ünïcödé 🪢".to_owned(),
            "if true; then".to_owned(),
            "no_such_program --flag".to_owned(),
            "set -e\nfalse\necho not reached".to_owned(),
            "exit 7".to_owned(),
            "kill -SEGV $$".to_owned(),
            "exec sh -c 'echo replaced; exit 3'".to_owned(),
            "echo \"$BASH_EXECUTION_STRING\"".to_owned(),
            "echo one; exec 3>&1; echo three >&3; exec 3>&-".to_owned(),
            "shopt -s extglob; echo @(a|b)".to_owned(),
            "'".repeat(1500) + "; echo",
            long(3000),
            long(4080),
            long(4095),
            long(4096),
            long(20_000),
            long(100_000),
        ];
        let mut outcomes = Vec::new();
        for form in &forms {
            outcomes.push(run(&sandbox, form).await);
        }
        for (form, outcome) in forms.iter().zip(outcomes) {
            let argv = ["/bin/bash", "-c", form].map(str::to_owned).to_vec();
            let plain = Command { argv: Some(argv), ..script(&sandbox, "") };
            let plain = finish(sandbox.start(plain).await.unwrap()).await;
            let shown: String = form.chars().take(60).collect();
            // What keeps the shell alive stands before the script.
            let said = outcome.both.replace("trap : URG; ", "");
            assert_eq!(said, plain.both, "{shown}");
            assert_eq!(outcome.ended.exit, plain.ended.exit, "{shown}");
        }
    });
}

#[test]
fn what_one_script_changes_of_itself_the_next_does_not_see() {
    everyone!(|who| async move {
        let place = Place::new(who);
        let (sandbox, _) = marked_sandbox(&place).await;
        run(&sandbox, "umask 077; ulimit -n 20; export LEFT=over; set -f; trap '' INT; exec 5>x")
            .await
            .ok();
        let text = "umask; ulimit -n; echo ${LEFT-none}; echo *; trap; ls /proc/self/fd | wc -l";
        let before = run(&sandbox, text).await.ok();
        assert!(before.starts_with("0022\n"), "{before}");
        assert!(!before.contains("over") && !before.contains("\n20\n"), "{before}");
        assert_eq!(run(&sandbox, text).await.ok(), before);
    });
}

#[test]
fn a_script_starts_in_the_directory_of_that_name_now() {
    everyone!(|who| async move {
        let place = Place::new(who);
        let (sandbox, _) = marked_sandbox(&place).await;
        let root = sandbox.isolation().workspace;
        let inside = |text: &str| Command { cwd: root.join("sub"), ..script(&sandbox, text) };
        run(&sandbox, "mkdir sub; echo old > sub/which").await.ok();
        for _ in 0..2 {
            let outcome = finish(sandbox.start(inside("cat which; pwd")).await.unwrap()).await.ok();
            assert_eq!(outcome, format!("old\n{}\n", root.join("sub").display()));
        }
        fs::rename(place.workspace.join("sub"), place.workspace.join("gone")).unwrap();
        fs::create_dir(place.workspace.join("sub")).unwrap();
        fs::write(place.workspace.join("sub/which"), "new\n").unwrap();
        let outcome = finish(sandbox.start(inside("cat which")).await.unwrap()).await.ok();
        assert_eq!(outcome, "new\n");

        fs::rename(place.workspace.join("sub"), place.workspace.join("gone too")).unwrap();
        let refused = sandbox.start(inside("pwd")).await.unwrap_err().to_string();
        assert!(refused.contains("sub"), "{refused}");
        let moved = run(&sandbox, "mkdir -p deep && cd deep && pwd").await;
        assert_eq!(moved.ended.cwd, Some(root.join("deep")));
        assert_eq!(run(&sandbox, "pwd").await.ok(), format!("{}\n", root.display()));
    });
}

#[test]
fn many_commands_in_a_row_all_have_their_environment() {
    everyone!(|who| async move {
        let place = Place::new(who);
        let (sandbox, mark) = marked_sandbox(&place).await;
        let text = "[ -e /proc/$$/fd/3 ] && echo a descriptor; echo $MARK ${BASH_ENV-none} $HOME";
        let expected = run(&sandbox, text).await.ok();
        assert!(expected.starts_with(&format!("{mark} none /")), "{expected}");
        for _ in 0..50 {
            assert_eq!(run(&sandbox, text).await.ok(), expected);
        }
    });
}

/// A process's limits and scheduling can be set by anyone of its user, so also by a command for its supervisor.
#[test]
fn what_a_command_sets_on_its_supervisor_no_other_command_has() {
    everyone!(|who| async move {
        let place = Place::new(who);
        let (sandbox, _) = marked_sandbox(&place).await;
        let ask =
            "ulimit -n; ulimit -f; nice; nproc; chrt -p $$ | sed 's/pid [0-9]*//'; ionice -p $$";
        let before = run(&sandbox, ask).await.both;
        for set in [
            "prlimit --pid $PPID --nofile=40:40",
            "prlimit --pid $PPID --fsize=8192:8192",
            "prlimit --pid $PPID --as=1:1",
            "renice -n 19 -p $PPID",
            "taskset -p 1 $PPID",
            "chrt -i -p 0 $PPID",
            "ionice -c 3 -p $PPID",
        ] {
            run(&sandbox, set).await;
            for _ in 0..2 {
                assert_eq!(run(&sandbox, ask).await.both, before, "{set}");
            }
        }
    });
}

#[test]
fn a_crippled_supervisor_costs_no_other_command() {
    everyone!(|who| async move {
        let place = Place::new(who);
        for _ in 0..5 {
            let (sandbox, _) = marked_sandbox(&place).await;
            let program = |words: &[&str]| {
                let argv = words.iter().map(|&word| word.to_owned()).collect();
                Command { argv: Some(argv), ..script(&sandbox, "") }
            };
            let set = ["sh", "-c", "prlimit --pid $PPID --nofile=4:4; true"];
            finish(sandbox.start(program(&set)).await.unwrap()).await.ok();
            let said = finish(sandbox.start(program(&["echo", "ran"])).await.unwrap()).await.ok();
            assert_eq!(said, "ran\n");
        }
    });
}

#[test]
fn signals_sent_to_a_supervisor_do_not_reach_the_next_command() {
    everyone!(|who| async move {
        let place = Place::new(who);
        let local = place.local().await;
        run(&local, "for signal in 29 34 40 64; do kill -$signal 1; done").await;
        let pending = run(&local, "grep -E 'SigBlk|ShdPnd' /proc/1/status").await.ok();
        let lines: Vec<_> = pending.lines().collect();
        assert_eq!(lines, ["ShdPnd:\t0000000000000000", "SigBlk:\t0000000000010000"]);
        local.stop().await;
    });
}

/// A locale that is missing: bash says so when it starts, before its script.
#[test]
fn a_missing_locale_is_reported_once_by_each_command_in_its_place() {
    everyone!(|who| async move {
        let place = Place::new(who);
        let mut config = place.config();
        config.environment.push(("LC_ALL".to_owned(), "xx_YY.UTF-8".to_owned()));
        let sandbox = place.open(config).await.unwrap();
        let text = "for i in 1 2 3 4 5 6; do echo o$i; echo e$i >&2; done";
        let first = run(&sandbox, text).await.ok();
        assert_eq!(first.matches("cannot change locale").count(), 1, "{first}");
        for _ in 0..4 {
            assert_eq!(run(&sandbox, text).await.ok(), first);
        }
        let argv = ["echo", "hi"].map(str::to_owned).to_vec();
        let plain = Command { argv: Some(argv), ..script(&sandbox, "") };
        assert_eq!(finish(sandbox.start(plain).await.unwrap()).await.ok(), "hi\n");
    });
}

#[test]
fn each_command_has_a_process_namespace_of_its_own() {
    everyone!(|who| async move {
        let place = Place::new(who);
        let (sandbox, mark) = marked_sandbox(&place).await;
        let stays = Command { background: true, ..script(&sandbox, &format!("sleep {mark}")) };
        let stays = sandbox.start(stays).await.unwrap();
        for _ in 0..3 {
            let said =
                run(&sandbox, &format!("echo $$; pgrep -f '[s]leep {mark}' | wc -l")).await.ok();
            // A container is one namespace for all.
            assert!(SANDBOX == Tested::Docker || said == "2\n0\n", "{said}");
        }
        drop(stays);
    });
}
