//! `bash` and what it leaves running, as the loop calls them.

use serde_json::json;
use windlass_core::outcome::{AbortCause, CallEnding, Fact};
use windlass_core::policy::{Class, Risk};
use windlass_store::outputs::Stream;

use crate::bench::Bench;

/// ES-184, ES-206
#[tokio::test]
async fn both_streams_come_back_in_the_order_they_were_written() {
    let mut bench = Bench::new();
    let command = "echo one; echo two >&2; echo three";
    assert_eq!(bench.ok("bash", json!({ "command": command })).await, "one\ntwo\nthree\n");
}

#[tokio::test]
async fn a_failing_command_tells_its_exit_code() {
    let mut bench = Bench::new();
    let outcome = bench.call("bash", json!({ "command": "echo no such name; exit 101" })).await;
    assert_eq!(outcome.ending, CallEnding::Error);
    assert_eq!(outcome.exit_code, Some(101));
    assert_eq!(outcome.text, "no such name\n[exit code 101]");
    assert_eq!(outcome.display_text(), "no such name\n", "people read the code from its field");
}

#[tokio::test]
async fn people_are_shown_a_commands_colours() {
    let mut bench = Bench::new();
    let red = json!({ "command": "printf '\\033[31mred\\033[0m\\n'" });
    let outcome = bench.call("bash", red).await;
    assert_eq!(outcome.text, "␛[31mred␛[0m\n");
    assert_eq!(outcome.display_text(), "\u{1b}[31mred\u{1b}[0m\n");
    let plain = bench.call("bash", json!({ "command": "echo plain" })).await;
    assert_eq!(plain.display, None, "the same text is kept once");
}

/// Bash runs each line before it reads the next: had it been run, the first would have left its mark.
#[tokio::test]
async fn a_command_with_a_syntax_error_is_returned_and_does_not_run() {
    let mut bench = Bench::new();
    let texts = [
        ("echo ran > mark\nif true; then", "syntax error: unexpected end of file"),
        ("echo ran > mark\necho \"never closed", "unexpected EOF while looking for matching"),
        ("echo ran > mark\n; )", "syntax error near unexpected token"),
    ];
    for (text, wrong) in texts {
        let said = bench.error("bash", json!({ "command": text })).await;
        assert!(
            said.starts_with("bash cannot read this command, so nothing of it was run."),
            "{said}"
        );
        assert!(said.contains(wrong), "{said}");
        assert!(!bench.path("mark").exists(), "{text}");
    }
}

/// O-29: what bash would take and cannot be read beforehand is as risky as before.
#[tokio::test]
async fn what_only_bash_can_read_is_still_asked_about() {
    let mut bench = Bench::new();
    let said = bench.assessed("bash", json!({ "command": "cat <<END\nnever ended" })).await;
    assert!(said.starts_with("opaque HIGH: cannot be read"), "{said}");
}

#[tokio::test]
async fn a_command_too_long_for_a_shell_is_the_models_error() {
    let mut bench = Bench::new();
    let command = format!("rm x; : {}", "a".repeat(200_000));
    let said = bench.prepare("bash", json!({ "command": command })).await.err().unwrap();
    assert!(said.text.contains("200008 bytes long, and a shell takes at most"), "{}", said.text);
}

#[tokio::test]
async fn data_without_a_nul_is_named_and_not_pasted() {
    let mut bench = Bench::new();
    let data: Vec<u8> =
        (0u32..5000).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8 | 1).collect();
    bench.put("data", data);
    let said = bench.ok("bash", json!({ "command": "cat data" })).await;
    assert!(said.len() < 300, "{said}");
    let read = bench.ok("read", json!({ "path": "data" })).await;
    assert!(read.contains("a binary file"), "{read}");
}

#[tokio::test]
async fn a_command_ended_by_a_signal_says_which() {
    let mut bench = Bench::new();
    let outcome = bench.call("bash", json!({ "command": "kill -SEGV $$" })).await;
    assert_eq!(outcome.text, "[ended by signal 11]");
    assert_eq!(outcome.display_text(), "ended by signal 11");
    assert_eq!(outcome.aborted_by, Some(AbortCause::Signal(11)));
}

#[tokio::test]
async fn standard_input_is_closed() {
    let mut bench = Bench::new();
    assert_eq!(bench.ok("bash", json!({ "command": "cat; echo end" })).await, "end\n");
}

#[tokio::test]
async fn silence_is_said() {
    let mut bench = Bench::new();
    assert_eq!(bench.ok("bash", json!({ "command": "true" })).await, "(no output)");
}

#[tokio::test]
async fn the_working_directory_is_kept_between_calls() {
    let mut bench = Bench::new();
    bench.ok("bash", json!({ "command": "mkdir -p a/b && cd a/b" })).await;
    let text = bench.ok("bash", json!({ "command": "pwd" })).await;
    assert!(text.trim_end().ends_with("/a/b"), "{text}");
    std::fs::remove_dir_all(bench.path("a")).unwrap();
    let text = bench.ok("bash", json!({ "command": "pwd" })).await;
    assert!(text.starts_with("[the working directory is gone; this ran in "), "{text}");
}

#[tokio::test]
async fn a_background_command_whose_directory_is_gone_runs_in_the_workspace() {
    let mut bench = Bench::new();
    bench.ok("bash", json!({ "command": "mkdir -p a/b && cd a/b" })).await;
    std::fs::remove_dir_all(bench.path("a")).unwrap();
    let text = bench.ok("bash", json!({ "command": "pwd", "background": true })).await;
    assert!(text.starts_with("[the working directory is gone; this ran in "), "{text}");
    let id = bench.last_call().to_string();
    bench.poll("bash_output", json!({ "id": id }), "exit code 0").await;
}

/// What has ended is not kept for ever: a task may start any number of them.
#[tokio::test]
async fn background_commands_that_ended_long_ago_are_forgotten() {
    let mut bench = Bench::new();
    let mut ids = Vec::new();
    for _ in 0..40 {
        bench.ok("bash", json!({ "command": "echo here", "background": true })).await;
        ids.push(bench.last_call().to_string());
        let id = &ids[ids.len() - 1];
        bench.poll("bash_output", json!({ "id": id }), "exit code 0").await;
    }
    let last = bench.ok("bash_output", json!({ "id": ids[39] })).await;
    assert_eq!(last, "(nothing new)\n[exit code 0]");
    let first = bench.error("bash_output", json!({ "id": ids[0] })).await;
    assert!(first.contains("ended long ago"), "{first}");
}

/// ES-279, AX-103: the timeout ends the command with everything it started.
#[tokio::test]
async fn a_command_that_takes_too_long_is_ended() {
    let mut bench = Bench::new();
    let outcome =
        bench.call("bash", json!({ "command": "echo begun; sleep 600", "timeout": 1 })).await;
    assert_eq!(outcome.ending, CallEnding::Error);
    assert_eq!(
        outcome.text,
        "begun\n[timed out after 1 s; it and everything it started were stopped]"
    );
}

#[tokio::test]
async fn a_call_that_is_stopped_ends_its_tree() {
    let mut bench = Bench::new();
    let fifo = bench.path("fifo");
    rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, rustix::fs::Mode::RWXU).unwrap();
    let command = "(sleep 600; echo late > later) & echo up > fifo; wait";
    let prepared = bench.prepare("bash", json!({ "command": command })).await.unwrap();
    let stop = bench.stop.clone();
    let stopping = async {
        // The command writes when it is under way; only then is it stopped.
        tokio::task::spawn_blocking(move || std::fs::read_to_string(fifo).unwrap()).await.unwrap();
        stop.cancel();
    };
    let (outcome, ()) = tokio::join!((prepared.act)(), stopping);
    assert_eq!(outcome.ending, CallEnding::Cancelled);
    assert!(!bench.path("later").exists());
}

/// AX-013, AX-014, AX-038…042, AX-103, AX-111
#[tokio::test]
async fn long_output_is_cut_in_its_row_and_whole_in_a_file() {
    let mut bench = Bench::new();
    let command = "head -c 102400 /dev/zero | tr '\\0' x; echo small >&2";
    bench.ok("bash", json!({ "command": command })).await;
    let id = bench.last_call().to_string();
    let outputs = bench.store.outputs();
    let out = outputs.get(&id, Stream::Stdout).unwrap().unwrap();
    assert!(out.truncated);
    assert_eq!(out.original_size, 102_400);
    let path = out.full_output_path.unwrap();
    assert!(path.ends_with(format!("{id}_stdout.txt")));
    assert_eq!(std::fs::metadata(&path).unwrap().len(), 102_400);
    assert!(out.content.ends_with(&format!(
        "\n\n[Output truncated at 30KB. Full output (102400 bytes): {}]",
        path.display()
    )));
    let err = outputs.get(&id, Stream::Stderr).unwrap().unwrap();
    assert_eq!((err.content.as_str(), err.truncated), ("small\n", false));
}

/// ES-228, ES-229, ES-230: what the model sees is bounded, the whole is in the workspace.
#[tokio::test]
async fn an_endless_line_is_bounded_for_the_model_and_whole_in_scratch() {
    let mut bench = Bench::new();
    let command = "head -c 10000000 /dev/zero | tr '\\0' x; echo; echo the end";
    let outcome = bench.call("bash", json!({ "command": command })).await;
    assert!(outcome.text.len() <= 8_000 * 4, "{}", outcome.text.len());
    assert!(outcome.text.contains("bytes left out …]"));
    assert!(outcome.text.contains("the end"), "the end is kept");
    let cut = outcome.truncated.unwrap();
    let name = cut.full_output_path.strip_prefix("/workspace/").unwrap();
    assert_eq!(cut.original_size, 10_000_000 + 9);
    assert_eq!(std::fs::metadata(bench.path(name)).unwrap().len(), 10_000_000 + 9);
    let notice = format!(
        "\n\n[OUTPUT TRUNCATED — full output saved to {}. Use read tool to access.]",
        cut.full_output_path
    );
    assert!(outcome.text.ends_with(&notice), "{}", &outcome.text[outcome.text.len() - 200..]);
}

#[tokio::test]
async fn bytes_that_are_not_text_and_terminal_commands_are_made_harmless() {
    let mut bench = Bench::new();
    let command = r"printf 'a\0b\377c\033[2Jd\n'";
    assert_eq!(bench.ok("bash", json!({ "command": command })).await, "a\u{fffd}b\u{fffd}c␛[2Jd\n");
}

#[tokio::test]
async fn a_background_command_is_read_in_pieces_and_its_end_reported() {
    let mut bench = Bench::new();
    let fifo = bench.path("fifo");
    rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, rustix::fs::Mode::RWXU).unwrap();
    let command = "echo one; cat fifo; echo two";
    let outcome = bench.call("bash", json!({ "command": command, "background": true })).await;
    let id = bench.last_call().to_string();
    assert!(matches!(&outcome.facts[..], [Fact::BackgroundStarted { .. }]), "{outcome:?}");

    let text = bench.poll("bash_output", json!({ "id": id }), "one").await;
    assert_eq!(text, "one\n[still running]");
    assert_eq!(
        bench.ok("bash_output", json!({ "id": id })).await,
        "(nothing new)\n[still running]"
    );
    tokio::task::spawn_blocking(move || std::fs::write(fifo, "x\n").unwrap()).await.unwrap();
    let text = bench.poll("bash_output", json!({ "id": id }), "exit code 0").await;
    assert!(text.ends_with("[exit code 0]"), "{text}");
    assert_eq!(bench.world.shell.exited(), [], "an end that was read is not reported again");
}

#[tokio::test]
async fn a_background_command_can_be_ended() {
    let mut bench = Bench::new();
    bench.ok("bash", json!({ "command": "sleep 600", "background": true })).await;
    let id = bench.last_call().to_string();
    bench.ok("bash_kill", json!({ "id": id })).await;
    let text = bench.poll("bash_output", json!({ "id": id }), "[stopped").await;
    assert!(text.contains("stopped, with everything it started"), "{text}");
    let unknown = bench.call("bash_kill", json!({ "id": "call_00000000000000000000000000" })).await;
    assert_eq!(unknown.ending, CallEnding::Error);
}

/// ES-258, ES-262, ES-263
#[tokio::test]
async fn commands_are_read_before_they_run() {
    let mut bench = Bench::new();
    let mut of = async |command: &str| {
        let prepared = bench.prepare("bash", json!({ "command": command })).await.unwrap();
        (prepared.assessment.class, prepared.assessment.risk)
    };
    assert_eq!(of("make thing; ./thing").await.1, Risk::Medium);
    assert_eq!(of("rm notes.txt").await, (Class::Destructive, Risk::High));
    assert_eq!(of("rm -rf build").await, (Class::Catastrophic, Risk::Critical));
    assert_eq!(of("cat notes.txt").await.0, Class::Read);
}

#[tokio::test]
async fn data_is_named_and_kept_and_not_pasted() {
    let mut bench = Bench::new();
    let command = json!({ "command": "printf 'hello' | iconv -t utf-16; cat /bin/true" });
    let text = bench.ok("bash", command).await;
    assert!(
        text.starts_with("[binary output of ") && text.contains(" bytes is not shown"),
        "{text}"
    );
    let names = json!({ "command": "printf 'src/main.rs\\0src/lib.rs\\0README.md\\0'" });
    assert!(bench.ok("bash", names).await.contains("src/lib.rs"));
}

#[tokio::test]
async fn a_cut_tears_no_character_and_counts_lines() {
    let mut bench = Bench::new();
    let letters = json!({ "command": "printf a; for i in $(seq 20000); do printf é; done" });
    let text = bench.ok("bash", letters).await;
    assert!(text.contains("left out …]") && !text.contains('\u{fffd}'), "{text}");
    let lines = json!({ "command": "seq 100000" });
    let text = bench.ok("bash", lines).await;
    let mark = text.lines().find(|line| line.contains("left out …]")).unwrap();
    let left_out: usize = mark.split(' ').nth(1).unwrap().parse().unwrap();
    let shown = text.lines().filter(|line| line.parse::<u32>().is_ok()).count();
    assert_eq!(shown + left_out, 100_000, "{mark}");
}

#[tokio::test]
async fn a_key_is_not_in_what_a_command_printed() {
    let mut bench = Bench::new();
    bench.store.secrets().hide([("OPENAI_API_KEY", "sk-live-0123456789")]);
    let slowly =
        json!({ "command": "printf sk-live-; printf 0123456789; echo sk-live-0123456789 >&2" });
    let text = bench.ok("bash", slowly).await;
    assert_eq!(text.matches("[redacted: OPENAI_API_KEY]").count(), 2, "{text}");
}
