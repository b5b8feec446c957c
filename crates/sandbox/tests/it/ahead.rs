//! A shell that was started before its script was known: nobody can tell, and nothing depends on it.

use std::fs;

use windlass_sandbox::local::Config;
use windlass_sandbox::{Command, Exit, Sandbox, Stdin};

use crate::support::{Any, Place, Tested, finish, is_root, mark, run, script, until};
use crate::{SANDBOX, everyone};

/// A sandbox whose processes carry a mark in their environment.
async fn marked_sandbox(place: &Place) -> (Any, String) {
    let mark = mark();
    let mut config = place.config();
    config.environment.push(("MARK".to_owned(), mark.clone()));
    let config = Config { environment_names: vec!["MARK".to_owned()], ..config };
    (place.open(config).await.unwrap(), mark)
}

/// Whether what runs in the sandbox is shown to us: a container's processes are shown to root alone.
fn seen() -> bool {
    is_root() || SANDBOX == Tested::Local
}

/// The shells that wait in the sandbox with this mark.
fn waiting(mark: &str) -> Vec<u32> {
    let waits = |entry: fs::DirEntry| -> Option<u32> {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        let command = fs::read(entry.path().join("cmdline")).ok()?;
        let environ = fs::read(entry.path().join("environ")).ok()?;
        let holds = |text: &[u8], part: &str| String::from_utf8_lossy(text).contains(part);
        (holds(&command, "kill -61 $$") && holds(&environ, mark)).then_some(pid)
    };
    fs::read_dir("/proc").unwrap().flatten().filter_map(waits).collect()
}

/// Everything a script can ask its shell and the kernel about itself, but for numbers that differ every time, and
/// for `PIPESTATUS` and `BASH_ARGC`, in which a shell that read a start-up file begins with a 0.
const INTROSPECTION: &str = r#"
    printf '%s|' "$_" "$0" "$#" "$-" "$?" "$!" "$LINENO"; echo
    declare -p | grep -v -E '^declare -\S+ (BASHPID|BASH_ARGC|PIPESTATUS|EPOCH|RANDOM|SRANDOM|PPID|SECONDS|_=)'
    declare -F; alias; trap; jobs; shopt; set -o; umask; ulimit -a; type -a cd
    env -0 | sort -z | tr '\0' '\n'
    ls -l /proc/$$/fd > /tmp/descriptors
    awk '{print $9, $10, $11}' /tmp/descriptors | sed 's/[0-9][0-9]*]/N]/'
    grep -E 'SigIgn|SigCgt|Seccomp|NoNewPrivs|Cap|Uid|Gid|Groups|Umask' /proc/$$/status
    cat /proc/$$/oom_score_adj; readlink /proc/$$/cwd /proc/$$/root /proc/$$/exe
"#;

#[test]
fn a_shell_that_waited_cannot_be_told_from_a_new_one() {
    everyone!(|who| async move {
        let place = Place::new(who);
        let (sandbox, mark) = marked_sandbox(&place).await;
        let new = run(&sandbox, INTROSPECTION).await.ok();
        assert!(new.contains("BASH_EXECUTION_STRING") && !new.contains("BASH_ENV"), "{new}");
        if seen() {
            until(|| waiting(&mark).len() == 1).await;
        }
        let waited = run(&sandbox, INTROSPECTION).await.ok();
        assert_same_lines(&new, &waited);
    });
}

/// Compares line by line, so that a difference can be read.
#[track_caller]
fn assert_same_lines(one: &str, other: &str) {
    let differing: Vec<_> = one.lines().zip(other.lines()).filter(|(a, b)| a != b).collect();
    assert!(differing.is_empty() && one.len() == other.len(), "{differing:#?}");
}

#[test]
fn the_shell_that_waits_is_the_one_that_runs_the_next_script() {
    everyone!(|who| async move {
        let place = Place::new(who);
        let (sandbox, mark) = marked_sandbox(&place).await;
        run(&sandbox, "true").await.ok();
        if seen() {
            for _ in 0..5 {
                until(|| waiting(&mark).len() == 1).await;
                let shell = waiting(&mark)[0];
                // The last of its numbers is the one in the innermost namespace.
                let status = fs::read_to_string(format!("/proc/{shell}/status")).unwrap();
                let numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:")).unwrap();
                let own = numbers.split_whitespace().last().unwrap();
                let text = "grep -ac BASH_ENV= /proc/$$/environ; echo $$";
                assert_eq!(run(&sandbox, text).await.ok(), format!("1\n{own}\n"));
            }
        }
    });
}

#[test]
fn a_shell_that_waited_counts_its_seconds_from_its_script_on() {
    everyone!(|who| async move {
        let place = Place::new(who);
        let (sandbox, mark) = marked_sandbox(&place).await;
        run(&sandbox, "true").await.ok();
        if seen() {
            until(|| waiting(&mark).len() == 1).await;
            let shell = waiting(&mark)[0];
            let made = fs::metadata(format!("/proc/{shell}")).unwrap().modified().unwrap();
            until(|| made.elapsed().unwrap().as_secs() >= 3).await;
        }
        let seconds = run(&sandbox, "echo $SECONDS").await.ok();
        assert!(["0\n", "1\n"].contains(&seconds.as_str()), "{seconds}");
    });
}

#[test]
fn scripts_of_every_form_run_as_they_would_in_a_new_shell() {
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
            "sh -c 'kill -SEGV $$'".to_owned(),
            "exec sh -c 'echo replaced; exit 3'".to_owned(),
            "echo one; exec 3>&1; echo three >&3; exec 3>&-".to_owned(),
            "shopt -s extglob; echo @(a|b)".to_owned(),
            "echo \"$BASH_EXECUTION_STRING\"".to_owned(),
            "'".repeat(1500) + "; echo",
            long(3000),
            long(4080),
            long(4095),
            long(4096),
            long(20_000),
            long(100_000),
        ];
        let mut waited = Vec::new();
        for form in &forms {
            waited.push(run(&sandbox, form).await);
        }
        for (form, waited) in forms.iter().zip(waited) {
            let argv = ["/bin/bash", "-c", form].map(str::to_owned).to_vec();
            let plain = Command { argv: Some(argv), ..script(&sandbox, "") };
            let plain = finish(sandbox.start(plain).await.unwrap()).await;
            let shown: String = form.chars().take(60).collect();
            assert_eq!(waited.both, plain.both, "{shown}");
            assert_eq!(waited.ended.exit, plain.ended.exit, "{shown}");
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
fn a_script_starts_where_it_is_to_start_and_in_nothing_of_that_name_that_is_gone() {
    everyone!(|who| async move {
        let place = Place::new(who);
        let (sandbox, mark) = marked_sandbox(&place).await;
        let root = sandbox.footing().workspace;
        let inside = |text: &str| Command { cwd: root.join("sub"), ..script(&sandbox, text) };
        run(&sandbox, "mkdir sub; echo old > sub/which").await.ok();
        for _ in 0..2 {
            let outcome = finish(sandbox.start(inside("cat which; pwd")).await.unwrap()).await.ok();
            assert_eq!(outcome, format!("old\n{}\n", root.join("sub").display()));
        }
        if seen() {
            until(|| waiting(&mark).len() == 1).await;
        }
        // A shell waits in the directory that goes away now.
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
fn a_shell_that_dies_while_it_waits_costs_no_command() {
    everyone!(|who| async move {
        let place = Place::new(who);
        let (sandbox, mark) = marked_sandbox(&place).await;
        run(&sandbox, "true").await.ok();
        for round in 0..5 {
            if seen() {
                until(|| waiting(&mark).len() == 1).await;
                let shell = waiting(&mark)[0];
                let pid = rustix::process::Pid::from_raw(shell.try_into().unwrap()).unwrap();
                rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
                until(|| waiting(&mark).is_empty()).await;
            }
            let text = format!("echo {round} >> rounds; cat rounds");
            let expected: String = (0..=round).map(|round| format!("{round}\n")).collect();
            assert_eq!(run(&sandbox, &text).await.ok(), expected);
        }
    });
}

#[test]
fn nothing_waits_once_the_sandbox_is_stopped() {
    everyone!(|who| async move {
        let place = Place::new(who);
        let (sandbox, mark) = marked_sandbox(&place).await;
        assert_eq!(run(&sandbox, "true").await.ended.exit, Exit::Code(0));
        if seen() {
            until(|| waiting(&mark).len() == 1).await;
        }
        sandbox.stop().await;
        until(|| waiting(&mark).is_empty()).await;
    });
}
/// Given its script while the kernel still lays out its arguments, a shell would lose its environment.
#[test]
fn shells_that_are_given_their_scripts_as_soon_as_they_can_be_have_all_they_need() {
    everyone!(|who| async move {
        let place = Place::new(who);
        let (sandbox, mark) = marked_sandbox(&place).await;
        let text = "[ -e /proc/$$/fd/3 ] && echo a descriptor; echo $MARK ${BASH_ENV-none} $HOME";
        let expected = run(&sandbox, text).await.ok();
        assert!(expected.starts_with(&format!("{mark} none /")), "{expected}");
        for _ in 0..200 {
            assert_eq!(run(&sandbox, text).await.ok(), expected);
        }
    });
}

/// Limits and scheduling of a process can be set by anyone of its user, so also by a command for its minder.
#[test]
fn what_a_command_sets_of_its_minder_no_other_command_has() {
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
fn a_minder_that_cannot_take_another_command_costs_none() {
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
fn signals_sent_to_a_minder_do_not_wait_for_the_next_command() {
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

/// A locale that is missing: bash says so when it starts, and it starts before it has a script.
#[test]
fn what_a_shell_says_while_it_waits_is_heard_once_in_its_place_and_by_nobody_else() {
    everyone!(|who| async move {
        let place = Place::new(who);
        let mut config = place.config();
        config.environment.push(("LC_ALL".to_owned(), "xx_YY.UTF-8".to_owned()));
        let sandbox = place.open(config).await.unwrap();
        let text = "for i in 1 2 3 4 5 6; do echo o$i; echo e$i >&2; done";
        let new = run(&sandbox, text).await.ok();
        assert!(new.contains("cannot change locale"), "{new}");
        for _ in 0..4 {
            assert_eq!(run(&sandbox, text).await.ok(), new);
        }
        let argv = ["echo", "hi"].map(str::to_owned).to_vec();
        let plain = Command { argv: Some(argv), ..script(&sandbox, "") };
        assert_eq!(finish(sandbox.start(plain).await.unwrap()).await.ok(), "hi\n");
        run(&sandbox, text).await.ok();
        let long = format!("echo {} | wc -c", "x".repeat(5000));
        let said = run(&sandbox, &long).await.ok();
        assert_eq!(said.matches("cannot change locale").count(), 1, "{said}");
    });
}

#[test]
fn where_the_environment_would_show_it_no_shell_is_started_ahead() {
    everyone!(|who| async move {
        for (name, value) in [
            ("SHELLOPTS", "xtrace"),
            ("SSH_CLIENT", "1 2 3"),
            ("BASH_FUNC_unset%%", "() { echo another unset; }"),
            ("SECONDS", "100"),
        ] {
            let place = Place::new(who);
            let mut config = place.config();
            config.environment.push((name.to_owned(), value.to_owned()));
            let config = Config { environment_names: vec![name.to_owned()], ..config };
            let sandbox = place.open(config).await.unwrap();
            // What a shell was started with stays to be seen there.
            let rc = "echo 'echo my own' > ~/.bashrc; grep -ac BASH_ENV= /proc/$$/environ; \
                      unset BASH_ENV; echo ${SECONDS%?}";
            run(&sandbox, rc).await.ok();
            let new = run(&sandbox, rc).await.ok();
            assert!(new.lines().any(|line| line == "0"), "{name}: {new}");
            // A trace names the shell's own number.
            let same = |said: &str| -> Vec<String> {
                said.lines().filter(|line| !line.starts_with("+ grep")).map(str::to_owned).collect()
            };
            for _ in 0..3 {
                assert_eq!(same(&run(&sandbox, rc).await.ok()), same(&new), "{name}");
            }
        }
    });
}

/// One that ends may have handed its view of its processes to one that goes on.
#[test]
fn no_shell_waits_while_a_command_runs() {
    everyone!(|who| async move {
        let place = Place::new(who);
        let (sandbox, mark) = marked_sandbox(&place).await;
        run(&sandbox, "true").await.ok();
        let stays = Command { background: true, ..script(&sandbox, "sleep 1000") };
        let stays = sandbox.start(stays).await.unwrap();
        for _ in 0..5 {
            let said = run(&sandbox, "echo $$").await.ok();
            assert!(SANDBOX == Tested::Docker || said == "2\n", "a namespace of its own: {said}");
            assert_eq!(waiting(&mark).len(), 0);
        }
        drop(stays);
        if SANDBOX == Tested::Docker {
            sandbox.stop().await;
            let (sandbox, mark) = marked_sandbox(&place).await;
            run(&sandbox, "true").await.ok();
            let reads = Command { stdin: Stdin::Piped, ..script(&sandbox, "cat") };
            let mut reads = sandbox.start(reads).await.unwrap();
            until(|| waiting(&mark).is_empty()).await;
            drop(reads.take_input());
            finish(reads).await.ok();
        }
    });
}
