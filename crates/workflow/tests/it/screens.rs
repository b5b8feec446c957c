//! The corpus of screens: every one is read as what it is, and answers are typed as the program expects them.

use windlass_workflow::runner::{Screen, ScreenState, read_screen};

const CORPUS: [&str; 6] = [
    include_str!("screens/permissions.txt"),
    include_str!("screens/choices.txt"),
    include_str!("screens/working.txt"),
    include_str!("screens/ended.txt"),
    include_str!("screens/errors.txt"),
    include_str!("screens/quiet.txt"),
];

/// Marks the cursor in a screen of the corpus.
const CURSOR: char = '▮';

/// One screen with what it must be read as.
struct Case {
    name: String,
    /// The kind, then for a question its text and its answers with their keys.
    expected: Vec<String>,
    screen: String,
}

fn corpus() -> Vec<Case> {
    let cases = CORPUS.iter().flat_map(|file| file.split("=== ").skip(1));
    cases
        .map(|case| {
            let (head, screen) = case.split_once("\n---\n").unwrap();
            let mut head = head.lines().map(str::to_owned);
            let name = head.next().unwrap();
            Case { name, expected: head.collect(), screen: screen.trim_end().to_owned() }
        })
        .collect()
}

/// Draws the screen with the real emulator. Where the corpus marks the cursor it is at the end.
fn seen(screen: &str) -> ScreenState {
    let mut terminal = Screen::default();
    let shown = screen.strip_suffix(CURSOR).unwrap_or(screen);
    assert!(!shown.contains(CURSOR), "the cursor is at the end: {screen}");
    terminal.write(shown.replace('\n', "\r\n").as_bytes());
    read_screen(&terminal.rows(), terminal.cursor_row())
}

fn keys_in_words(keys: &[u8]) -> String {
    let keys = String::from_utf8(keys.to_vec()).unwrap();
    let arrows = [("\x1b[A", "↑"), ("\x1b[B", "↓"), ("\x1b[C", "→"), ("\x1b[D", "←")];
    let named = arrows.iter().fold(keys, |keys, (bytes, name)| keys.replace(bytes, name));
    named.replace('\r', "⏎")
}

/// `Allow=⏎ Deny=↓⏎` in pairs; an answer may have spaces.
fn answers(line: &str) -> Vec<(String, String)> {
    let ends = line.split_inclusive('⏎');
    ends.map(|pair| pair.trim().split_once('=').unwrap())
        .map(|(answer, keys)| (answer.to_owned(), keys.to_owned()))
        .collect()
}

/// WF-009…WF-013: 117 screens of CLI agents and other programs, and not one wrong question.
#[test]
fn every_screen_of_the_corpus_is_read_right() {
    let corpus = corpus();
    assert_eq!(corpus.len(), 117);
    for (class, count) in [("question", 20), ("working", 10), ("finished", 10), ("error", 10)] {
        let found = corpus.iter().filter(|case| case.expected[0].starts_with(class)).count();
        assert!(found >= count, "{class}: {found}");
    }
    let mut wrong = Vec::new();
    for case in &corpus {
        let seen = seen(&case.screen);
        let read = match &seen {
            ScreenState::Working(activity) => vec![format!("working {activity}")],
            ScreenState::Finished => vec!["finished".to_owned()],
            ScreenState::Error(_) => vec!["error".to_owned()],
            ScreenState::Stopped(_) => vec!["error at its prompt".to_owned()],
            ScreenState::Nothing => vec!["nothing".to_owned()],
            ScreenState::Question(question) => {
                vec![format!("question {}", question.asks), question.text.clone()]
            }
        };
        let expected = &case.expected[..case.expected.len().min(2)];
        if read != expected {
            wrong.push(format!("{}: read {read:?}, expected {expected:?}", case.name));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// WF-013, WF-015: the options of each question, and the keys that choose them.
#[test]
fn every_answer_is_typed_as_its_program_expects_it() {
    let mut wrong = Vec::new();
    for case in corpus().iter().filter(|case| case.expected.len() > 2) {
        let ScreenState::Question(question) = seen(&case.screen) else {
            wrong.push(format!("{}: no question", case.name));
            continue;
        };
        let answers = answers(&case.expected[2]);
        for option in &question.options {
            if !answers.iter().any(|(answer, _)| answer == option) {
                wrong.push(format!("{}: nobody says how {option} is typed", case.name));
            }
        }
        for (answer, expected) in answers {
            let keys = question.keys(&answer).map(|keys| keys_in_words(&keys));
            if keys.as_deref() != Some(expected.as_str()) {
                wrong.push(format!("{}: {answer} is typed as {keys:?}, not {expected}", case.name));
            }
        }
        if !question.options.is_empty() && question.keys("something else entirely").is_some() {
            wrong.push(format!("{}: takes an answer that is no option", case.name));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// An answer is typed only while its own question is shown. No other screen of the corpus is taken for it, and neither
/// is the same screen when it asks about something else.
#[test]
fn no_screen_is_taken_for_the_question_of_another() {
    let corpus = corpus();
    let read: Vec<ScreenState> = corpus.iter().map(|case| seen(&case.screen)).collect();
    for (at, case) in corpus.iter().enumerate() {
        let ScreenState::Question(question) = &read[at] else { continue };
        for (other, found) in read.iter().enumerate().filter(|(other, _)| *other != at) {
            assert_ne!(found, &read[at], "{} for {}", corpus[other].name, case.name);
        }
        let Some(about) = question.context.lines().max_by_key(|line| line.len()) else { continue };
        let changed = about.replace(char::is_alphanumeric, "x");
        let screen = case.screen.replace(about, &changed);
        assert_ne!(screen, case.screen, "{}: {about}", case.name);
        assert_ne!(seen(&screen), read[at], "{} about something else", case.name);
    }
}
