//! Every command teaches itself: `--help`, completions, the manual page.

use crate::program::Program;

fn program() -> Program {
    Program::playing("replies: [{say: done}]")
}

fn commands() -> Vec<String> {
    let program = windlass_cli::args::parser();
    program.get_subcommands().map(|command| command.get_name().to_owned()).collect()
}

/// Must show 5; MS-179: the prefix is the program's name, and nothing else.
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
        assert!(commands().iter().all(|command| script.contains(command)), "{shell}");
    }
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
    let script = program().windlass(&["completions", "bash"]).expect(0).stdout;
    for words in [
        "fast smart deep",
        "docker local host",
        "chat plan build review repair research",
        "restricted normal trusted unrestricted",
        "todo running verifying reviewing blocked",
    ] {
        assert!(script.contains(&format!("compgen -W \"{words}")), "{words}");
    }
}
