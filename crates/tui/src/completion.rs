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
}

/// What is known to complete from.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    pub commands: Vec<Command>,
    /// The files of the project; `None` until they were looked for.
    pub files: Option<Vec<String>>,
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

/// Whether the list of files is needed for the word at the cursor.
pub fn needs_files(text: &str, cursor: usize) -> bool {
    matches!(word(text, cursor), Some(Word::File { .. }))
}

/// What fits the word before the cursor; `None` where nothing does.
pub fn find(text: &str, cursor: usize, sources: &Sources) -> Option<Completion> {
    let (kind, start, items) = match word(text, cursor)? {
        Word::Command { start, text } => {
            let fits = |command: &&Command| command.name.starts_with(text);
            let item = |command: &Command| {
                let about = match command.arguments.is_empty() {
                    true => command.help.clone(),
                    false => format!("{} {}", command.help, command.arguments),
                };
                (command.name.clone(), about)
            };
            let items: Vec<_> = sources.commands.iter().filter(fits).map(item).collect();
            (CompletionKind::Command, start, items)
        }
        Word::Argument { start, command, before, text } => {
            let command = sources.commands.iter().find(|one| one.name == command)?.entry?;
            let words = command.completions(&before);
            let fits = words.into_iter().filter(|word| word.starts_with(text) && *word != text);
            (
                CompletionKind::Command,
                start,
                fits.map(|word| (word.to_owned(), String::new())).collect(),
            )
        }
        Word::File { start, text } => {
            let found = files::best(sources.files.as_deref()?, text, MOST);
            (
                CompletionKind::File,
                start,
                found.iter().map(|name| ((*name).to_owned(), String::new())).collect(),
            )
        }
    };
    (!items.is_empty()).then_some(Completion { kind, start, items, selected: 0 })
}

impl Completion {
    pub fn go(&mut self, rows: isize) {
        let count = self.items.len() as isize;
        self.selected = (self.selected as isize + rows).rem_euclid(count.max(1)) as usize;
    }

    /// What the selected entry puts in place of the word.
    pub fn chosen(&self) -> Option<String> {
        let (text, _) = self.items.get(self.selected)?;
        let is_directory = self.kind == CompletionKind::File && text.ends_with('/');
        Some(if is_directory { text.clone() } else { format!("{text} ") })
    }

    /// Whether the word is already what the selected entry says.
    pub fn is_complete(&self, text: &str, cursor: usize) -> bool {
        let word = text.get(self.start..cursor).unwrap_or_default();
        self.items.get(self.selected).is_some_and(|(item, _)| item == word)
    }

    /// The part of the list that is shown.
    pub fn window(&self, most: usize) -> std::ops::Range<usize> {
        let most = most.max(1).min(self.items.len());
        let first = (self.selected + 1).saturating_sub(most);
        first..first + most
    }
}
