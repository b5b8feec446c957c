//! What holds for every command, not only for those of the corpus.

use proptest::prelude::*;
use windlass_core::policy::Risk;
use windlass_shell::analyze;

use crate::corpus::{context, entries};

/// Every supported wrapper, as a function from a command to the wrapped command.
const WRAPPERS: &[(&str, Wrap)] = &[
    ("env", Wrap::Before("env A=b ")),
    ("nohup", Wrap::Before("nohup ")),
    ("nice", Wrap::Before("nice -n 5 ")),
    ("timeout", Wrap::Before("timeout -k 1 5 ")),
    ("time", Wrap::Before("time ")),
    ("command", Wrap::Before("command ")),
    ("exec", Wrap::Before("exec ")),
    ("setsid", Wrap::Before("setsid ")),
    ("stdbuf", Wrap::Before("stdbuf -oL ")),
    ("busybox", Wrap::Before("busybox ")),
    ("xargs", Wrap::Before("echo x | xargs ")),
    ("sudo", Wrap::Before("sudo ")),
    ("find", Wrap::Around("find . -exec ", " \\;")),
    ("sh -c", Wrap::Text("sh -c ")),
    ("bash -lc", Wrap::Text("bash -lc ")),
    ("eval", Wrap::Text("eval ")),
    ("watch", Wrap::Text("watch ")),
    ("script", Wrap::Text("script -qc ")),
    ("ssh", Wrap::Text("ssh host ")),
    ("trap", Wrap::TextThen("trap ", " EXIT")),
    ("here-string", Wrap::Text("bash <<< ")),
    ("echo to sh", Wrap::TextThen("echo ", " | sh")),
    ("env -S", Wrap::Text("env sh -c ")),
    ("subshell", Wrap::Lines("(", ")")),
    ("braces", Wrap::Lines("{", "}")),
    ("if", Wrap::Lines("if true; then", "fi")),
    ("while", Wrap::Lines("while true; do", "done")),
    ("for", Wrap::Lines("for i in 1 2; do", "done")),
    ("case", Wrap::Lines("case x in x)", ";; esac")),
    ("function", Wrap::Lines("wrapped_it() {", "}\nwrapped_it")),
    ("substitution", Wrap::Lines("echo $(", ")")),
    ("process substitution", Wrap::Lines("cat <(", ")")),
    ("background", Wrap::Lines("{", "} &")),
    ("here-document", Wrap::Lines("bash <<'END_OF_IT'", "END_OF_IT")),
];

enum Wrap {
    /// Words before a simple command.
    Before(&'static str),
    Around(&'static str, &'static str),
    /// The whole text as one quoted word.
    Text(&'static str),
    TextThen(&'static str, &'static str),
    /// The whole text on lines between two others.
    Lines(&'static str, &'static str),
}

impl Wrap {
    fn apply(&self, command: &str) -> Option<String> {
        let quoted = format!("'{}'", command.replace('\'', r"'\''"));
        match self {
            // A prefix reaches only the first simple command, so only simple ones are tried.
            Self::Before(before) => {
                let input_is_its_own = !(before.contains('|') && command.contains('<'));
                (is_simple(command) && input_is_its_own).then(|| format!("{before}{command}"))
            }
            Self::Around(before, after) => (is_simple(command) && !command.contains(['>', '<']))
                .then(|| format!("{before}{command}{after}")),
            Self::Text(before) => Some(format!("{before}{quoted}")),
            Self::TextThen(before, after) => (!command.contains('\\') && !command.starts_with('-'))
                .then(|| format!("{before}{quoted}{after}")),
            Self::Lines(before, after) => {
                (!command.is_empty()).then(|| format!("{before}\n{command}\n{after}"))
            }
        }
    }
}

/// Whether the text is one command that starts with a plain word and does nothing to its shell.
fn is_simple(command: &str) -> bool {
    let first = command.split(' ').next().unwrap_or_default();
    let of_shell = [
        "if", "for", "while", "until", "case", "[[", "f()", "function", "coproc", "time", "eval",
        "source", ".", "set", "trap", "alias", "export", "declare", "exec", "builtin", "hash",
        "history", "read", "test", "printf", "select", "cd", "ls()", ":", "true", "command",
        "then", "bomb()",
    ];
    first.chars().all(|c| c.is_ascii_alphanumeric() || "/._-".contains(c))
        && !first.is_empty()
        && !of_shell.contains(&first)
        && !command.contains([';', '&', '|', '\n', '#', '`', '('])
}

fn risk(command: &str) -> Risk {
    analyze(command, &context()).assessment.risk
}

#[test]
fn wrapping_a_command_of_the_corpus_never_lowers_its_risk() {
    let mut lowered = Vec::new();
    for (index, entry) in entries().into_iter().enumerate() {
        let alone = risk(&entry.command);
        // Each wrapper gets every third command, in turn, to keep the suite quick.
        let every = 3;
        for (name, wrap) in WRAPPERS.iter().skip(index % every).step_by(every) {
            if let Some(wrapped) = wrap.apply(&entry.command)
                && risk(&wrapped) < alone
            {
                lowered.push(format!("{name}: {wrapped}"));
            }
        }
    }
    assert!(lowered.is_empty(), "{} lowered:\n{}", lowered.len(), lowered.join("\n"));
}

#[test]
fn adding_a_command_never_lowers_the_risk() {
    let entries = entries();
    let joints = ["; ", " && ", " || ", "\n", " | ", " & "];
    let mut lowered = Vec::new();
    for (index, entry) in entries.iter().enumerate() {
        let alone = risk(&entry.command);
        // A here-document must end its line, and two `&` do not parse.
        let plain = !entry.command.contains("<<") && !entry.command.ends_with('&');
        let joint = if plain { joints[index % joints.len()] } else { "\n" };
        let texts = [format!("{}{joint}ls", entry.command), format!("ls{joint}{}", entry.command)];
        lowered.extend(texts.into_iter().filter(|text| risk(text) < alone));
    }
    assert!(lowered.is_empty(), "{} lowered:\n{}", lowered.len(), lowered.join("\n"));
}

/// Pieces that shell text is made of, so that random text gets past the first character.
fn shell_text() -> impl Strategy<Value = String> {
    let pieces = prop::sample::select(vec![
        "rm",
        " -rf",
        " x",
        " ",
        ";",
        "|",
        "&",
        "&&",
        "\n",
        "(",
        ")",
        "{",
        "}",
        "$(",
        "`",
        "\"",
        "'",
        "$'",
        "\\",
        "<<E\n",
        "\nE\n",
        "<<<",
        "<(",
        ">",
        "2>&1",
        "${x:-",
        "${",
        "$x",
        "$((",
        "))",
        "[[",
        "]]",
        " if ",
        " then ",
        " fi ",
        " do ",
        " done ",
        " for i in ",
        " while ",
        " case x in ",
        " esac ",
        ";;",
        "x=",
        "a[",
        "]=",
        "f()",
        "sh -c ",
        "eval ",
        "xargs ",
        "find . -exec ",
        "#",
        "*",
        "?",
        "~",
        "{a,b}",
        "{1..3}",
        "!",
        "=",
        "é",
        "\u{0}",
        "sed ",
        "'s/a/b/e'",
        "awk ",
        "git ",
        "-c ",
        "push ",
        "env ",
        "sudo ",
        "python -c ",
        "9999999999>",
        "\t",
    ]);
    prop::collection::vec(pieces, 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_read_without_a_panic(text in any::<String>()) {
        analyze(&text, &context());
    }

    #[test]
    fn text_of_shell_pieces_is_read_without_a_panic(text in shell_text()) {
        analyze(&text, &context());
    }

    #[test]
    fn any_bytes_are_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        analyze(&String::from_utf8_lossy(&bytes), &context());
    }

    #[test]
    fn random_text_after_a_dangerous_command_never_hides_it(text in shell_text()) {
        let analysis = analyze(&format!("rm -rf x\n{text}"), &context());
        // Text that does not parse is opaque as a whole, and asks.
        prop_assert!(analysis.assessment.risk >= Risk::High, "{text:?}");
    }

    #[test]
    fn a_reading_is_as_bad_as_its_worst_command(text in shell_text()) {
        let analysis = analyze(&text, &context());
        for command in analysis.flat() {
            prop_assert!(command.assessment.risk <= analysis.assessment.risk);
            prop_assert!(command.assessment.class <= analysis.assessment.class);
        }
    }
}
