//! What somebody meant by a mistyped command or option.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use strsim::damerau_levenshtein;

use crate::args;

/// Longer words are not compared: comparing is slow, and nobody types such a name.
const LONGEST: usize = 40;

/// Commands by what other programs call them.
const SYNONYMS: &[(&str, &str)] = &[
    ("list", "tasks"),
    ("ls", "tasks"),
    ("ls", "list"),
    ("ps", "tasks"),
    ("history", "tasks"),
    ("start", "run"),
    ("new", "run"),
    ("ask", "run"),
    ("do", "run"),
    ("stop", "cancel"),
    ("kill", "cancel"),
    ("abort", "cancel"),
    ("continue", "resume"),
    ("questions", "inbox"),
    ("approve", "answer"),
    ("reply", "answer"),
    ("message", "send"),
    ("tell", "send"),
    ("follow", "attach"),
    ("watch", "attach"),
    ("tail", "logs"),
    ("usage", "cost"),
    ("budget", "cost"),
    ("settings", "config"),
    ("setup", "config"),
    ("init", "config"),
    ("login", "models"),
    ("auth", "models"),
    ("server", "serve"),
    ("web", "open"),
    ("ui", "open"),
    ("cron", "schedule"),
    ("agents", "tasks"),
    ("tools", "mcp"),
    ("plans", "plan"),
    ("workflows", "workflow"),
    ("clean", "prune"),
    ("gc", "prune"),
    ("check", "doctor"),
    ("repair", "doctor"),
    ("health", "doctor"),
    ("roles", "modes"),
    ("allow", "permissions"),
    ("rules", "permissions"),
];

/// The same error with the command or option that was most likely meant. The parser's own guess does not
/// know that two letters change places, which is the most common mistake.
pub fn suggest(mut error: clap::Error, words: &[OsString]) -> clap::Error {
    let (kind, wrong) = match error.kind() {
        ErrorKind::InvalidSubcommand => {
            (ContextKind::SuggestedSubcommand, ContextKind::InvalidSubcommand)
        }
        ErrorKind::UnknownArgument => (ContextKind::SuggestedArg, ContextKind::InvalidArg),
        _ => return error,
    };
    let context = wrong;
    let Some(ContextValue::String(wrong)) = error.get(context).cloned() else { return error };
    if let Some(text) = text_like_option(&error, words) {
        // The parser names the first letters of it.
        error.insert(context, ContextValue::String(text));
        error.remove(ContextKind::Suggested);
        error.remove(ContextKind::SuggestedArg);
        return error;
    }
    let parser = args::parser();
    let command = find_command(&parser, words);
    let known: Vec<String> = match kind {
        ContextKind::SuggestedArg => {
            // Of those at the top, a command takes the global ones.
            let global = parser.get_arguments().filter(|argument| argument.is_global_set());
            let arguments = command.get_arguments().chain(global);
            arguments.filter_map(|arg| Some(format!("--{}", arg.get_long()?))).collect()
        }
        _ => command.get_subcommands().map(|command| command.get_name().to_owned()).collect(),
    };
    // "To pass it as a value, use `-- --yes`": hardly anybody means that.
    error.remove(ContextKind::Suggested);
    let synonym = || {
        let word = wrong.to_lowercase();
        let mut names = SYNONYMS.iter().filter(|(other, _)| *other == word);
        names.find_map(|(_, name)| known.iter().find(|known| known == name).cloned())
    };
    // A name that is not close does not help: the parser would suggest `cost` for `lst`.
    let has_guess = error.remove(kind).is_some();
    let meant = nearest(&wrong, &known).or_else(synonym);
    if has_guess || meant.is_some() {
        // The parser's own usage line has its own guess in it.
        let usage = usage(parser.clone(), words);
        error.insert(ContextKind::Usage, ContextValue::StyledStr(usage));
    }
    if let Some(meant) = meant {
        let meant = match kind {
            ContextKind::SuggestedArg => ContextValue::String(meant),
            _ => ContextValue::Strings(vec![meant]),
        };
        error.insert(kind, meant);
    }
    error
}

/// The text that the parser took for an option, because it begins with `-`. An option is `-x` or `--word`.
pub fn text_like_option(error: &clap::Error, words: &[OsString]) -> Option<String> {
    let Some(ContextValue::String(wrong)) = error.get(ContextKind::InvalidArg) else { return None };
    let parser = args::parser();
    if error.kind() != ErrorKind::UnknownArgument
        || find_command(&parser, words).get_positionals().next().is_none()
    {
        return None;
    }
    let is_text = |word: &&str| {
        let letters = word.trim_start_matches('-');
        word.contains(char::is_whitespace) || !letters.starts_with(char::is_alphabetic)
    };
    let mut given = words.iter().skip(1).filter_map(|word| word.to_str());
    let text = given.find(|word| word.starts_with(wrong.as_str()) && word.starts_with('-'))?;
    Some(text).filter(is_text).map(str::to_owned)
}

/// How the command is used that the words name.
fn usage(mut parser: clap::Command, words: &[OsString]) -> clap::builder::StyledStr {
    // Names a subcommand with the words before it.
    parser.build();
    find_command(&parser, words).clone().render_usage()
}

/// The command that the words name, as far as they name one.
fn find_command<'a>(parser: &'a clap::Command, words: &[OsString]) -> &'a clap::Command {
    let mut command = parser;
    for word in words.iter().skip(1).filter_map(|word| word.to_str()) {
        // `help` is followed by the name of a command too.
        match command.find_subcommand(word) {
            Some(next) => command = next,
            None if word == "help" || word.starts_with('-') => {}
            None => break,
        }
    }
    command
}

/// The known word with the fewest edits; where two have as few, the one of the same length.
fn nearest(wrong: &str, known: &[String]) -> Option<String> {
    let letters = wrong.trim_start_matches('-').chars().count();
    if !wrong.is_ascii() || letters > LONGEST {
        return None;
    }
    let most = if letters > 4 { 2 } else { 1 };
    let edits =
        |known: &&String| (damerau_levenshtein(wrong, known), known.len().abs_diff(wrong.len()));
    let similar = known.iter().min_by_key(edits).filter(|known| edits(known).0 <= most);
    // `--profile` for `--permission-profile`.
    let part = wrong.trim_start_matches('-');
    let is_part_of = |known: &&String| part.len() > 3 && known.contains(&format!("-{part}"));
    similar.or_else(|| known.iter().find(is_part_of)).cloned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_that_was_meant_is_suggested() {
        let suggested = |line: &str| {
            let words: Vec<OsString> = line.split(' ').map(Into::into).collect();
            let error = args::Args::parse_words(&words).unwrap_err();
            let error = suggest(error, &words);
            let found = error.get(ContextKind::SuggestedSubcommand);
            match found.or_else(|| error.get(ContextKind::SuggestedArg)) {
                Some(ContextValue::String(one)) => one.clone(),
                Some(ContextValue::Strings(all)) => all.join(" "),
                _ => "nothing".to_owned(),
            }
        };
        for (line, meant) in [
            ("windlass run x --modle y", "--model"),
            ("windlass run x --sanbox host", "--sandbox"),
            ("windlass run x --profile trusted", "--permission-profile"),
            ("windlass tasks --jsno", "--json"),
            ("windlass serve --model x", "nothing"),
            ("windlass taks", "tasks"),
            ("windlass rnu x", "run"),
            ("windlass staus", "status"),
            ("windlass schedule lsit", "list"),
            ("windlass help taks", "tasks"),
            ("windlass help foo", "nothing"),
            ("windlass lst", "nothing"),
            ("windlass list", "tasks"),
            ("windlass stop", "cancel"),
            ("windlass schedule ls", "list"),
            ("windlass fix", "nothing"),
        ] {
            assert_eq!(suggested(line), meant, "{line}");
        }
    }
}
