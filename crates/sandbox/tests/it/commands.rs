//! Running commands: output, endings, directories, input, time.

use std::path::PathBuf;
use std::time::Duration;

use windlass_sandbox::{Command, Error, Exit, Host, Sandbox, Stdin};

use crate::everyone;
use crate::support::{Place, finish, mark, marked, run, script};

/// ES-035, ES-275: the workspace is at `/workspace` and writable.
#[test]
fn a_script_runs_in_the_workspace_and_writes_there() {
    everyone!(|who| async move {
        let place = Place::new(who);
        let local = place.sandbox().await;
        let said = run(&local, "pwd; echo hello > made; cat made").await.ok();
        assert_eq!(said, "/workspace\nhello\n");
        assert_eq!(std::fs::read_to_string(place.workspace.join("made")).unwrap(), "hello\n");
    });
}

/// ES-038, ES-039.
#[test]
fn the_workspace_has_its_directories_from_the_first_command_on() {
    everyone!(|who| async move {
        let place = Place::new(who);
        let local = place.sandbox().await;
        run(&local, "echo x > output/a && echo x > .scratch/b").await.ok();
    });
}

#[test]
fn output_of_both_streams_comes_in_written_order() {
    everyone!(|who| async move {
        let place = Place::new(who);
        let local = place.sandbox().await;
        let text = "for i in $(seq 200); do echo out $i; echo err $i >&2; done";
        let expected: String = (1..=200).map(|i| format!("out {i}\nerr {i}\n")).collect();
        let outcome = run(&local, text).await;
        assert_eq!(outcome.both, expected);
        assert_eq!(outcome.out.lines().count(), 200);
        assert_eq!(outcome.err.lines().count(), 200);
    });
}

#[test]
fn streams_opened_by_name_reach_the_right_stream() {
    everyone!(|who| async move {
        let place = Place::new(who);
        let local = place.sandbox().await;
        let outcome = run(&local, "echo a > /dev/stderr; echo b > /dev/stdout").await;
        assert_eq!((outcome.out.as_str(), outcome.err.as_str()), ("b\n", "a\n"));
    });
}

#[test]
fn codes_and_signals_are_told_apart() {
    everyone!(|who| async move {
        let place = Place::new(who);
        let local = place.sandbox().await;
        for (text, exit) in [
            ("true", Exit::Code(0)),
            ("exit 3", Exit::Code(3)),
            ("kill -9 $$", Exit::Signal(9)),
            ("kill -SEGV $$", Exit::Signal(11)),
            ("exit 137", Exit::Code(137)),
            // The shell outlives its last program, and says how that ended.
            ("sh -c 'kill -SEGV $$'", Exit::Code(139)),
            ("no-such-command", Exit::Code(127)),
        ] {
            assert_eq!(run(&local, text).await.ended.exit, exit, "{text}");
        }
    });
}

#[test]
fn the_last_working_directory_comes_back_however_the_script_ends() {
    everyone!(|who| async move {
        let place = Place::new(who);
        let local = place.sandbox().await;
        run(&local, "mkdir -p a/b 'with space'").await.ok();
        for (text, cwd) in [
            ("cd a", Some("/workspace/a")),
            ("cd a/b; exit 3", Some("/workspace/a/b")),
            ("cd a; exec true", Some("/workspace/a")),
            ("cd a; kill -9 $$", Some("/workspace/a")),
            ("trap 'cd /' EXIT; cd a", Some("/")),
            ("cd 'with space'", Some("/workspace/with space")),
            ("(cd a); true", Some("/workspace")),
            ("mkdir gone; cd gone; rmdir ../gone", None),
            ("cd /usr", Some("/usr")),
        ] {
            let outcome = run(&local, text).await;
            assert_eq!(outcome.ended.cwd, cwd.map(PathBuf::from), "{text}");
        }
    });
}

/// Bash becomes the last program of a script instead of starting it, and that one may change its own directory.
#[test]
fn a_program_that_changes_its_own_directory_does_not_move_the_script() {
    everyone!(|who| async move {
        let place = Place::new(who);
        let local = place.sandbox().await;
        run(&local, "mkdir -p sub/deep").await.ok();
        for (text, cwd) in [
            ("mkdir -p a/b/c", "/workspace"),
            ("env -C sub ls", "/workspace"),
            ("ls && env -C sub ls", "/workspace"),
            ("bash -c 'cd sub'", "/workspace"),
            ("cd sub; env -C deep ls", "/workspace/sub"),
            ("cd sub && env -C deep false", "/workspace/sub"),
            ("trap - EXIT; env -C sub ls", "/workspace"),
            ("trap 'true' EXIT; env -C sub ls", "/workspace"),
            ("set -e; cd sub; false; cd deep", "/workspace/sub"),
            ("cd sub; env -C deep ls #", "/workspace/sub"),
        ] {
            let outcome = run(&local, text).await;
            let seen = outcome.ended.cwd.unwrap_or_else(|| "/workspace".into());
            assert_eq!(seen, PathBuf::from(cwd), "{text}");
        }
    });
}

#[test]
fn a_command_starts_in_its_directory_or_is_refused() {
    everyone!(|who| async move {
        let place = Place::new(who);
        let local = place.sandbox().await;
        run(&local, "mkdir sub").await.ok();
        let here = Command::script("a", "pwd", "/workspace/sub");
        assert_eq!(finish(local.start(here).await.unwrap()).await.both, "/workspace/sub\n");
        let nowhere = Command::script("b", "pwd", "/workspace/none");
        let error = local.start(nowhere).await.unwrap_err();
        assert_eq!(error.to_string(), "cannot start command `b`: enter `/workspace/none`");
        let nothing = Command { argv: Some(vec!["nonesuch".to_owned()]), ..script(&local, "") };
        let error = local.start(nothing).await.unwrap_err();
        assert_eq!(error.to_string(), "cannot start command `test`: run `nonesuch`");
        run(&local, "true").await.ok();
    });
}

#[test]
fn a_program_gets_its_arguments_and_environment_unchanged() {
    everyone!(|who| async move {
        let place = Place::new(who);
        let local = place.sandbox().await;
        let argv = ["printf", "%s|", "a b", "$HOME", "*"].map(str::to_owned).to_vec();
        let outcome =
            local.start(Command { argv: Some(argv), ..script(&local, "") }).await.unwrap();
        assert_eq!(finish(outcome).await.both, "a b|$HOME|*|");
        let mut command = script(&local, "echo $GREETING");
        command.env = vec![("GREETING".to_owned(), "hi".to_owned())];
        assert_eq!(finish(local.start(command).await.unwrap()).await.both, "hi\n");
    });
}

#[test]
fn standard_input_is_closed_or_carried() {
    everyone!(|who| async move {
        let place = Place::new(who);
        let local = place.sandbox().await;
        assert_eq!(run(&local, "cat; echo end").await.ok(), "end\n");
        let command = Command { stdin: Stdin::Piped, ..script(&local, "sha256sum") };
        let mut running = local.start(command).await.unwrap();
        let mut input = running.take_input().unwrap();
        let megabytes = vec![b'x'; 3 << 20];
        input.write(&megabytes).await;
        drop(input);
        let expected = run(&local, "head -c 3145728 /dev/zero | tr '\\0' x | sha256sum").await.ok();
        assert_eq!(finish(running).await.ok(), expected);
    });
}

/// ES-279: a command that takes too long is cut.
#[test]
fn a_timeout_ends_the_whole_tree_and_says_so() {
    everyone!(|who| async move {
        let place = Place::new(who);
        let local = place.sandbox().await;
        let mark = mark();
        let text = format!("trap '' TERM; (trap '' TERM; sleep {mark}) & sleep {mark}");
        let mut command = script(&local, &text);
        command.timeout = Some(Duration::from_millis(50));
        command.grace = Duration::from_millis(50);
        let outcome = finish(local.start(command).await.unwrap()).await;
        assert_eq!(outcome.ended.exit, Exit::TimedOut);
        assert_eq!(marked(&mark), Vec::<String>::new(), "nothing of it is left");
    });
}

/// WF-019, WF-022: asked first, given its grace, and what was written stays.
#[test]
fn a_killed_command_is_asked_first_and_its_work_stays() {
    everyone!(|who| async move {
        let place = Place::new(who);
        let local = place.sandbox().await;
        let text = "trap 'echo asked > asked; exit' TERM; echo ready; while :; do sleep 0.01; done";
        let mut running = local.start(script(&local, text)).await.unwrap();
        running.next().await.unwrap();
        running.killer().kill(Duration::from_secs(60));
        assert_eq!(running.wait().await.exit, Exit::Killed);
        assert_eq!(std::fs::read_to_string(place.workspace.join("asked")).unwrap(), "asked\n");
    });
}

#[test]
fn a_slow_reader_makes_the_command_wait_and_loses_nothing() {
    everyone!(|who| async move {
        let place = Place::new(who);
        let local = place.sandbox().await;
        let text = "head -c 20000000 /dev/zero; echo done > done";
        let mut running = local.start(script(&local, text)).await.unwrap();
        let first = running.next().await.unwrap();
        // While nothing is taken the command cannot end: 20 MB fit into no window and no pipe. Another
        // command's whole life passes meanwhile.
        run(&local, "sleep 0.1").await.ok();
        assert!(!place.workspace.join("done").exists());
        let rest = finish(running).await;
        assert_eq!(first.bytes.len() + rest.out.len(), 20_000_000);
        assert!(place.workspace.join("done").exists());
    });
}

#[test]
fn any_bytes_come_through_unchanged() {
    everyone!(|who| async move {
        let place = Place::new(who);
        let local = place.sandbox().await;
        let text = r"for i in $(seq 0 255); do printf '\\x%02x' $i; done | xargs -0 printf";
        let mut running = local.start(script(&local, text)).await.unwrap();
        let mut bytes = Vec::new();
        while let Some(chunk) = running.next().await {
            bytes.extend(chunk.bytes);
        }
        assert_eq!(bytes, (0..=255).collect::<Vec<u8>>());
    });
}

#[test]
fn a_grandchild_holding_the_output_open_does_not_delay_the_result() {
    everyone!(|who| async move {
        let place = Place::new(who);
        let local = place.sandbox().await;
        let text = "echo first; setsid nohup sleep 100000 & echo last";
        assert_eq!(run(&local, text).await.ok(), "first\nlast\n");
        // A filter that only needs a moment gets it.
        let text = "exec > >(sleep 0.05; cat); echo through the filter";
        assert_eq!(run(&local, text).await.ok(), "through the filter\n");
    });
}

#[test]
fn a_background_command_outlives_its_handle_and_ends_with_the_sandbox() {
    everyone!(|who| async move {
        let place = Place::new(who);
        let local = place.sandbox().await;
        let text = "(while :; do date +%s%N > beat; sleep 0.01; done) & echo started";
        let command = Command { background: true, ..script(&local, text) };
        let mut running = local.start(command).await.unwrap();
        running.next().await.unwrap();
        drop(running);
        run(&local, "rm -f beat; until [ -s beat ]; do sleep 0.01; done").await.ok();
        local.stop().await;
        let beat = place.workspace.join("beat");
        std::fs::remove_file(&beat).unwrap();
        run(&local, "sleep 0.1").await.ok();
        assert!(!beat.exists(), "it went on after the sandbox was stopped");
    });
}

#[test]
fn a_script_too_long_for_a_program_is_refused_by_size() {
    everyone!(|who| async move {
        let place = Place::new(who);
        let local = place.sandbox().await;
        let error = local.start(script(&local, &"x".repeat(200_000))).await.unwrap_err();
        assert!(matches!(error, Error::TooLong { bytes: 200_000, .. }), "{error}");
        run(&local, &format!("true {}", "x".repeat(120_000))).await.ok();
    });
}

#[test]
fn a_hundred_commands_run_at_once() {
    everyone!(|who| async move {
        let place = Place::new(who);
        let local = place.sandbox().await;
        let mut running = Vec::new();
        for i in 0..100 {
            let text = format!("until [ -e go ]; do sleep 0.05; done; echo {i}");
            running.push(local.start(script(&local, &text)).await.unwrap());
        }
        run(&local, "touch go").await.ok();
        for (i, running) in running.into_iter().enumerate() {
            assert_eq!(finish(running).await.ok(), format!("{i}\n"));
        }
    });
}

#[test]
fn commands_run_with_a_data_directory_that_is_named_from_here() {
    everyone!(|who| async move {
        let place = Place::new(who);
        let here = std::env::current_dir().unwrap();
        let mut data: PathBuf = here.components().skip(1).map(|_| "..").collect();
        data.push(place.data.strip_prefix("/").unwrap());
        let path = [("PATH".to_owned(), std::env::var("PATH").unwrap())];
        let host = Host::new(data, place.workspace.clone(), &path, &[]).unwrap();
        assert_eq!(run(&host, "echo well").await.ok(), "well\n");
        host.stop().await;
    });
}
