//! What can be completed at the cursor: a slash command at the beginning, or a file after `@`.

use windlass_coordinator::files;
use windlass_coordinator::slash::SlashCommand;

/// Entries of the list that are shown at once.
pub const SHOWN: usize = 8;
/// Entries that are found.
const MOST: usize = 50;

/// A command of the slash table, as the list shows it.
#[derive(Clone, Debug)]
pub struct Command {
    /// With its slash.
    pub name: String,
    /// What may follow it.
    pub arguments: String,
    pub help: String,
    /// Its entry in the table, which knows what may follow it.
    pub entry: Option<&'static SlashCommand>,
}

/// Commands of the terminal itself.
const OF_TERMINAL: &[(&str, &str)] = &[
    ("/transcript", "The whole conversation, with search."),
    ("/diff", "What was changed."),
    ("/sessions", "Other conversations."),
    ("/agents", "Sub-agents and background commands."),
    ("/roles", "The roles, with the tools of each; Enter takes one."),
    ("/keys", "Which key does what, and how to change it."),
    ("/copy", "Copy the last reply."),
    ("/raw", "Print plain text, for copying."),
    ("/tui", "Inline, or on the full screen."),
    ("/vim", "Edit as in vi, on or off."),
    ("/editor", "Write in your editor."),
    ("/quit", "Leave."),
];

/// Whether the terminal itself does a command; the table of all surfaces does not know it.
pub fn is_of_terminal(name: &str) -> bool {
    OF_TERMINAL.iter().any(|(own, _)| *own == name)
}

impl Command {
    pub fn plain(name: &str, help: &str) -> Self {
        let (name, help) = (name.to_owned(), windlass_core::shown::shown_line(help));
        Self { name, arguments: String::new(), help, entry: None }
    }

    /// A command of the table that every surface has.
    pub fn of(entry: &'static SlashCommand) -> Self {
        Self {
            arguments: entry.arguments.to_owned(),
            entry: Some(entry),
            ..Self::plain(&format!("/{}", entry.name), entry.help)
        }
    }

    pub fn of_terminal() -> impl Iterator<Item = Self> {
        OF_TERMINAL.iter().map(|(name, help)| Self::plain(name, help))
    }
}

/// What is being completed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CompletionKind {
    Command,
    File,
}

/// A list of what fits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Completion {
    pub kind: CompletionKind,
    /// Where the word begins that is replaced.
    pub start: usize,
    /// What is put there, and what is said about it.
    pub items: Vec<(String, String)>,
    pub selected: usize,
    /// Whether the person has chosen one.
    pub is_chosen: bool,
}

/// What is known to complete from.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    pub commands: Vec<Command>,
    /// The files of the project; `None` until they were looked for.
    pub files: Option<Vec<String>>,
    /// A directory as a word names it, and what it holds.
    pub place: Option<(String, Vec<String>)>,
}

/// The word at the cursor, if it is one that can be completed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Word<'a> {
    Command { start: usize, text: &'a str },
    Argument { start: usize, command: &'a str, before: Vec<&'a str>, text: &'a str },
    File { start: usize, text: &'a str },
}

/// Finds the word before the cursor.
pub fn word(text: &str, cursor: usize) -> Option<Word<'_>> {
    let before = text.get(..cursor)?;
    if let Some(start) = open_quote(before) {
        return Some(Word::File { start, text: &before[start + 1..] });
    }
    let start = before
        .rfind(char::is_whitespace)
        .map_or(0, |at| at + before[at..].chars().next().map_or(1, char::len_utf8));
    let word = &before[start..];
    if let Some(file) = word.strip_prefix('@') {
        return Some(Word::File { start: start + 1, text: file });
    }
    if !before.starts_with('/') || before.contains('\n') {
        return None;
    }
    match before.split_once(char::is_whitespace) {
        None => Some(Word::Command { start: 0, text: word }),
        Some((command, _)) => {
            let before = before[command.len()..start].split_whitespace().collect();
            Some(Word::Argument { start, command, before, text: word })
        }
    }
}

/// Where the quote begins that a name with spaces is being written in, after `@`.
fn open_quote(before: &str) -> Option<usize> {
    let line = before.rfind('\n').map_or(0, |at| at + 1);
    let start = line + before[line..].rfind("@\"")?;
    let is_word = before[..start].chars().next_back().is_none_or(char::is_whitespace);
    let is_open = !before[start + 2..].contains('"');
    (is_word && is_open).then_some(start + 1)
}

/// What fits the word before the cursor; `None` where nothing does.
pub fn find(text: &str, cursor: usize, sources: &Sources) -> Option<Completion> {
    let (kind, start, items) = match word(text, cursor)? {
        Word::Command { start, text } => {
            let fits = |command: &&Command| fit(&command.name, text).is_some();
            let item = |command: &Command| {
                let about = match command.arguments.is_empty() {
                    true => command.help.clone(),
                    false => format!("{} {}", command.help, command.arguments),
                };
                (command.name.clone(), about)
            };
            let mut items: Vec<_> = sources.commands.iter().filter(fits).map(item).collect();
            items.sort_by_key(|(name, _)| fit(name, text));
            (CompletionKind::Command, start, items)
        }
        Word::Argument { start, command, before, text } => {
            let command = sources.commands.iter().find(|one| one.name == command)?.entry?;
            let words = command.completions(&before);
            // A whole word is sent as it is, also where another one begins with it.
            let is_whole = words.contains(&text);
            let fits = words.into_iter().filter(|word| !is_whole && word.starts_with(text));
            let items = fits.map(|word| (word.to_owned(), String::new()));
            (CompletionKind::Command, start, items.collect())
        }
        Word::File { start, text } => {
            let found = files_for(text, sources)?;
            let items = found.into_iter().map(|name| (name, String::new()));
            (CompletionKind::File, start, items.collect())
        }
    };
    let is_chosen = false;
    (!items.is_empty()).then_some(Completion { kind, start, items, selected: 0, is_chosen })
}

/// How well the name of a command fits what is written; the best first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Fit {
    /// Enter sends it, also where other names begin with it.
    Whole,
    Begins,
    /// A later word of the name begins with it.
    Within,
}

fn fit(name: &str, written: &str) -> Option<Fit> {
    let word = written.strip_prefix('/').filter(|word| word.len() > 1);
    let is_within = word.is_some_and(|word| name.contains(&format!("-{word}")));
    if name == written {
        Some(Fit::Whole)
    } else if name.starts_with(written) {
        Some(Fit::Begins)
    } else {
        is_within.then_some(Fit::Within)
    }
}

/// The directory that a word names when its files are not those of the project: its path up to the last slash.
pub fn place(word: &str) -> Option<&str> {
    let is_place = ["/", "~/", "../", "./"].iter().any(|begin| word.starts_with(begin));
    let end = word.rfind('/').filter(|_| is_place)?;
    Some(&word[..=end])
}

/// The files that fit a word; `None` until they were looked for.
fn files_for(word: &str, sources: &Sources) -> Option<Vec<String>> {
    let Some(place) = place(word) else {
        let found = files::best(sources.files.as_deref()?, word, MOST);
        return Some(found.into_iter().map(str::to_owned).collect());
    };
    let (_, names) = sources.place.as_ref().filter(|(listed, _)| listed == place)?;
    let wanted = &word[place.len()..];
    // What is hidden is offered to who asks for it.
    let is_offered = |name: &&String| wanted.starts_with('.') || !name.starts_with('.');
    let names: Vec<String> = names.iter().filter(is_offered).cloned().collect();
    let found = files::best(&names, wanted, MOST);
    Some(found.into_iter().map(|name| format!("{place}{name}")).collect())
}

impl Completion {
    pub fn go(&mut self, rows: isize) {
        self.is_chosen = true;
        let count = self.items.len() as isize;
        self.selected = (self.selected as isize + rows).rem_euclid(count.max(1)) as usize;
    }

    /// What the selected entry puts in place of the word.
    pub fn chosen(&self, word: &str) -> Option<String> {
        let (text, _) = self.items.get(self.selected)?;
        let is_file = self.kind == CompletionKind::File;
        let is_directory = is_file && text.ends_with('/');
        // As one word, which is attached whole.
        let is_quoted = is_file && text.contains(char::is_whitespace);
        Some(match (is_directory, is_quoted) {
            (true, false) => text.clone(),
            // Open, so that what is in it is completed next; chosen once more, it is the directory that is meant.
            (true, true) if word.strip_prefix('"') != Some(text.as_str()) => format!("\"{text}"),
            (_, true) => format!("\"{text}\" "),
            (false, false) => format!("{text} "),
        })
    }

    /// Whether nothing is to be completed: the word is already what the selected entry says, or a further argument is
    /// only offered, and neither begun nor chosen.
    pub fn is_complete(&self, text: &str, cursor: usize) -> bool {
        let word = text.get(self.start..cursor).unwrap_or_default();
        let is_offered = self.kind == CompletionKind::Command && !self.is_chosen;
        let is_same = self.items.get(self.selected).is_some_and(|(item, _)| item == word);
        is_same || (is_offered && word.is_empty())
    }

    /// The part of the list that is shown.
    pub fn window(&self, most: usize) -> std::ops::Range<usize> {
        let most = most.max(1).min(self.items.len());
        let first = (self.selected + 1).saturating_sub(most);
        first..first + most
    }
}
