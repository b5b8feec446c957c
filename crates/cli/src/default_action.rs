//! What a command does when it is called without a subcommand: it lists or shows something useful.

use std::ffi::OsString;

use clap::error::ErrorKind;

/// The subcommand that only looks, by the command that it belongs to.
const DEFAULTS: &[(&str, &str)] = &[
    ("plan", "list"),
    ("skills", "list"),
    ("mcp", "list"),
    ("commitments", "list"),
    ("workflow", "list"),
    ("schedule", "list"),
    ("modes", "show"),
    ("parallel", "status"),
    ("image", "check"),
];

/// The same line with the subcommand that was left out, where it may be that one: nothing follows the command, or
/// options alone.
pub fn complete(error: &clap::Error, words: &[OsString]) -> Option<Vec<OsString>> {
    let may_be = matches!(
        error.kind(),
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
            | ErrorKind::MissingSubcommand
            | ErrorKind::UnknownArgument
    );
    let named = |word: &OsString| DEFAULTS.iter().find(|(command, _)| word == command);
    let (at, (_, action)) =
        words.iter().enumerate().skip(1).find_map(|(at, word)| Some((at, named(word)?)))?;
    may_be.then(|| [&words[..=at], &[action.into()], &words[at + 1..]].concat())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Args, parser};

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').map(Into::into).collect()
    }

    /// Every command that has subcommands does something useful without one.
    #[test]
    fn each_command_with_subcommands_can_be_called_without_one() {
        for command in parser().get_subcommands().filter(|one| one.has_subcommands()) {
            let bare = words(&format!("windlass {}", command.get_name()));
            let parsed = Args::parse_words(&bare);
            let completed = parsed.as_ref().err().and_then(|error| complete(error, &bare));
            let works = completed.is_some_and(|words| Args::parse_words(&words).is_ok());
            assert!(parsed.is_ok() || works, "windlass {}", command.get_name());
        }
    }

    #[test]
    fn options_follow_the_subcommand_that_was_left_out() {
        let line = words("windlass --data d skills --json");
        let completed = complete(&Args::parse_words(&line).unwrap_err(), &line).unwrap();
        assert_eq!(completed, words("windlass --data d skills list --json"));
        assert!(Args::parse_words(&completed).is_ok());
    }
}
