//! Every command teaches itself: `--help`, completions, the manual page.

use std::path::Path;
use std::process::Command;

use crate::program::Program;

fn program() -> Program {
    Program::playing("replies: [{say: done}]")
}

fn commands() -> Vec<String> {
    let program = windlass_cli::args::parser();
    program.get_subcommands().map(|command| command.get_name().to_owned()).collect()
}

/// MS-179: the prefix is the program's name, and nothing else.
#[test]
fn every_commands_help() {
    let program = program();
    for command in commands() {
        let help = program.windlass(&[&command, "--help"]).expect(0).stdout;
        assert!(help.contains(&format!("Usage: windlass {command}")), "{help}");
        assert!(help.contains("Examples:\n  windlass ") || help.contains("| windlass "), "{help}");
        insta::assert_snapshot!(format!("help_{command}"), help);
    }
}

/// MS-191
#[test]
fn the_programs_help() {
    insta::assert_snapshot!(program().windlass(&["--help"]).expect(0).stdout);
}

/// MS-190
#[test]
fn the_version() {
    let version = program().windlass(&["--version"]).expect(0).stdout;
    assert_eq!(version, format!("windlass {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn without_a_terminal_there_is_no_conversation_to_open() {
    let ran = program().windlass(&[]).expect(2);
    assert!(ran.stderr.contains("there is no terminal to open a conversation at"), "{ran:?}");
    assert!(ran.stderr.contains("`windlass chat`"), "{ran:?}");
}

#[test]
fn completions_and_the_manual_know_every_command_and_make_no_data_directory() {
    let program = program();
    for shell in ["bash", "fish", "zsh", "elvish", "powershell"] {
        let script = program.windlass(&["completions", shell]).expect(0).stdout;
        assert!(script.contains("WINDLASS_COMPLETE"), "{shell}: {script}");
    }
    let offered = completed(&program, &["windlass", ""]);
    assert!(commands().iter().all(|command| offered.contains(command)), "{offered:?}");
    let offered = completed(&program, &["windlass", "show", ""]);
    assert!(!offered.iter().any(|word| word == "show"), "{offered:?}");
    let manual = program.windlass(&["man"]).expect(0).stdout;
    for command in commands() {
        let heading = format!(".SH \"WINDLASS {}\"", command.to_uppercase());
        assert!(manual.contains(&heading), "{heading}");
    }
    for nested in ["SCHEDULE ADD", "SKILLS EVAL", "MCP TEST", "IMAGE BUILD"] {
        assert!(manual.contains(&format!(".SH \"WINDLASS {nested}\"")), "{nested}");
    }
    assert!(!manual.contains("(1)\\fR"), "it refers to no page that is not there");
    assert_eq!(manual.matches("\\-\\-log\\-format").count(), 1, "what all have is said once");
    assert!(!program.data_directory().exists());
}

/// An option that takes a word of a closed set completes to those words, not to files.
#[test]
fn completions_know_the_words_that_options_take() {
    let program = program();
    for (option, words) in [
        (["run", "--model-mode"], "fast smart deep"),
        (["run", "--sandbox"], "docker local host"),
        (["run", "--mode"], "chat plan build review repair research"),
        (["run", "--permission-profile"], "restricted normal trusted unrestricted"),
        (["tasks", "--status"], "todo running verifying reviewing blocked"),
    ] {
        let offered = completed(&program, &["windlass", option[0], option[1], ""]);
        let words: Vec<&str> = words.split(' ').collect();
        assert!(words.iter().all(|word| offered.iter().any(|got| got == word)), "{offered:?}");
    }
}

/// Tasks, questions and sessions complete by their ids in a real shell, from what is typed of them.
#[test]
fn a_shell_completes_the_ids_of_tasks_questions_and_sessions() {
    let program = Program::playing("replies: [{ask_user: {question: which one?}}]");
    program.windlass(&["run", "choose a colour"]).expect(3);
    let task = program.task();
    let short = &task[task.len() - 7..];
    assert_eq!(completed(&program, &["windlass", "show", ""]), [short]);
    assert_eq!(completed(&program, &["windlass", "show", &short[..3].to_lowercase()]), [short]);
    assert_eq!(completed(&program, &["windlass", "show", &task[..20]]), [task.as_str()]);
    assert_eq!(completed(&program, &["windlass", "show", "no-such-start"]), Vec::<String>::new());
    let question = program.windlass(&["inbox", "--json"]).expect(0).json_lines();
    let question = question[0]["question"]["id"].as_str().unwrap().to_owned();
    assert_eq!(completed(&program, &["windlass", "answer", ""]), [&question[question.len() - 7..]]);
    assert_eq!(completed(&program, &["windlass", "chat", "--session", ""]).len(), 1);
}

/// What bash offers for a line, by the script that `windlass completions bash` prints.
fn completed(program: &Program, words: &[&str]) -> Vec<String> {
    let script = program.windlass(&["completions", "bash"]).expect(0).stdout;
    let binary = Path::new(env!("CARGO_BIN_EXE_windlass"));
    let asked = "source \"$SCRIPT\"; COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); COMP_TYPE=9
        _clap_complete_windlass windlass \"${COMP_WORDS[COMP_CWORD]}\" \"\"
        printf '%s\\n' \"${COMPREPLY[@]}\"";
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), script).unwrap();
    let path = format!("{}:/usr/bin:/bin", binary.parent().unwrap().display());
    let ran = Command::new("bash")
        .args(["--norc", "-c", asked, "bash"])
        .args(words)
        .env("SCRIPT", file.path())
        .env("PATH", path)
        .env("WINDLASS_DATA", program.data_directory())
        .output()
        .unwrap();
    let text = String::from_utf8(ran.stdout).unwrap();
    // Options stand below the values of an argument.
    let values = text.lines().filter(|line| !line.is_empty() && !line.starts_with("--"));
    values.map(str::to_owned).collect()
}
