//! Questions that are answered in the line in which the cursor waits.

use super::form::{Question, Reply};
use super::menu::{Above, number, words};
use super::signs::is_idle;
use super::{FoundQuestion, Row};

/// The question in the last line of the screen, where the cursor is.
pub(super) fn find(rows: &[&Row], cursor_row: usize) -> Option<FoundQuestion> {
    let (last, above) = rows.split_last()?;
    // A cursor in the next row is there because the program ended the line before it waits.
    if cursor_row < last.at || cursor_row > last.at + 1 {
        return None;
    }
    // A program that leaves the cursor in the line waits for its rest.
    let is_open = cursor_row == last.at;
    let text = last.text.trim_end();
    let context = || {
        let near = &above[above.len().saturating_sub(25)..];
        near.iter().map(|row| row.text.as_str()).collect::<Vec<_>>().join("\n")
    };
    if let Some((question, options, keys)) = choices(text, is_open) {
        let question = words(&question).to_owned();
        let reply = Reply::Words(keys);
        let question = Question::new(question, context(), options, reply);
        return Some(FoundQuestion { at: last.at, question });
    }
    if let Some(found) = numbered(rows, last) {
        return Some(found);
    }
    if is_pause(text) {
        let options = vec!["Continue".to_owned()];
        let reply = Reply::Words(vec![String::new()]);
        let question = Question::new(text.to_owned(), context(), options, reply);
        return Some(FoundQuestion { at: last.at, question });
    }
    is_open_question(text, is_open).then(|| {
        let text = words(text).to_owned();
        let question = Question::new(text, context(), Vec::new(), Reply::Line);
        FoundQuestion { at: last.at, question }
    })
}

/// Whether it only waits for Enter: a sentence begins with that. One that speaks of the key on its way is a text.
fn is_pause(text: &str) -> bool {
    let lower = text.to_lowercase();
    let pauses = ["press enter", "press any key", "hit enter", "press return"];
    let begins_sentence = |at: usize| {
        let before = lower[..at].trim_end();
        before.is_empty() || before.ends_with(['.', '!', '?', ':', '(', '[', '-', '—'])
    };
    // The key would end what the program does.
    let ends_it = |at: usize| {
        let what = lower[at..].split_once(" to ").map_or("", |(_, what)| what);
        ENDS.iter().any(|word| what.starts_with(word))
    };
    let found = pauses.iter().find_map(|words| lower.find(words));
    found.is_some_and(|at| begins_sentence(at) && !ends_it(at)) && !lower.contains("interrupt")
}

/// What a key may be for, other than that the program continues.
const ENDS: [&str; 7] = ["abort", "cancel", "stop", "quit", "exit", "skip", "interrupt"];

/// The question before the list, what is shown for each of its words, and what is typed for it.
type Choices = (String, Vec<String>, Vec<String>);

/// A list of letters or words at the end of a line: `[Y/n]`, `(yes/no/[fingerprint])`, `(Y)es/(N)o/(A)ll [Yes]:`.
fn choices(line: &str, is_open: bool) -> Option<Choices> {
    let text = line.trim_end_matches([':', '>', '?', ' ']);
    let is_asking = |question: &str| text.len() < line.len() || question.ends_with(['?', ':']);
    if let Some(found) = bracketed_letters(text).filter(|(question, ..)| is_asking(question)) {
        return Some(found);
    }
    let (before, inside) = match last_group(text) {
        // What Enter alone would mean, behind the list: `[Y/n] (default: y)`.
        Some((before, inside)) if !inside.contains(['/', ',', '|']) => match last_group(before) {
            Some(list) => list,
            None => return default_alone(before, inside),
        },
        // A line that has ended may be a text about such a list.
        Some((before, _)) if !is_open && !is_asking(before) => return None,
        Some(group) => group,
        None if is_open => text.rsplit_once(' ').filter(|(before, _)| before.ends_with('?'))?,
        None => return None,
    };
    let words: Vec<&str> =
        inside.split(['/', '|', ',']).map(|word| word.trim_matches([' ', '[', ']'])).collect();
    let is_word = |word: &str| {
        let is_plain = |char: char| char.is_alphabetic() || char == '\'';
        word == "?" || !word.is_empty() && word.len() <= 12 && word.chars().all(is_plain)
    };
    let question = before.trim().to_owned();
    if words.len() < 2 || !words.iter().all(|word| is_word(word)) || question.is_empty() {
        return None;
    }
    // At least a yes and a no: a list of languages in brackets is no question.
    let has =
        |names: &[&str]| words.iter().any(|word| names.contains(&word.to_lowercase().as_str()));
    if !(has(&["y", "yes"]) && has(&["n", "no"])) {
        return None;
    }
    let typed = typed(&words);
    let is_spelled = typed.iter().all(|word| *word == word.to_lowercase());
    let option = |word: &&str| if is_spelled { spelled(word) } else { (*word).to_owned() };
    Some((question, words.iter().map(option).collect(), typed))
}

/// What is typed for each word of a list: in small letters, unless these would mean two things (`n` and `N`).
fn typed(words: &[&str]) -> Vec<String> {
    let small: Vec<String> = words.iter().map(|word| word.to_lowercase()).collect();
    let are_different = small.iter().enumerate().all(|(at, word)| !small[at + 1..].contains(word));
    match are_different {
        true => small,
        false => words.iter().map(|word| (*word).to_owned()).collect(),
    }
}

/// What is in the last brackets of a line, and the text before them.
fn last_group(text: &str) -> Option<(&str, &str)> {
    let text = text.trim_end();
    let (open, close) = match text.chars().last()? {
        ')' => ('(', ')'),
        ']' => ('[', ']'),
        _ => return None,
    };
    let mut depth = 0_usize;
    for (at, char) in text.char_indices().rev() {
        if char == close {
            depth += 1;
        } else if char == open {
            depth -= 1;
            if depth == 0 {
                return Some((text[..at].trim_end(), &text[at + 1..text.len() - 1]));
            }
        }
    }
    None
}

/// `Ok to proceed? (y)`: a question whose only word is what Enter alone would mean.
fn default_alone(before: &str, inside: &str) -> Option<Choices> {
    let keys = match inside.trim().to_lowercase().as_str() {
        "y" | "n" => ["y", "n"],
        "yes" | "no" => ["yes", "no"],
        _ => return None,
    };
    let options = ["Yes", "No"].map(str::to_owned).to_vec();
    before.ends_with('?').then(|| (before.to_owned(), options, keys.map(str::to_owned).to_vec()))
}

/// `(Y)es/(N)o/(D)on't ask again [Yes]`, `[a]llow  [d]eny`: options with their letter in brackets.
fn bracketed_letters(text: &str) -> Option<Choices> {
    let text = match text.rsplit_once(" [") {
        // What Enter alone would mean.
        Some((before, default)) if default.ends_with(']') && default.len() > 2 => before,
        _ => text,
    };
    let starts: Vec<usize> =
        text.char_indices().map(|(at, _)| at).filter(|at| is_key(&text[*at..])).collect();
    let first = *starts.first()?;
    let ends = starts.iter().skip(1).copied().chain([text.len()]);
    let (mut options, mut words) = (Vec::new(), Vec::new());
    for (start, end) in starts.iter().zip(ends) {
        let part = text[*start..end].trim_end_matches(['/', ',', '|', ' ']);
        options.push(part.chars().filter(|char| !"()[]".contains(*char)).collect::<String>());
        words.push(&part[1..2]);
    }
    let question = text[..first].trim().to_owned();
    let is_plain = options.iter().all(|option| option.len() > 1 && option.len() <= 40);
    let is_list = options.len() >= 2 && is_plain && !question.is_empty();
    is_list.then(|| (question, options, typed(&words)))
}

/// A letter in brackets, followed by the rest of its word.
fn is_key(text: &str) -> bool {
    let bytes = text.as_bytes();
    matches!(bytes, [b'(', key, b')', next, ..] | [b'[', key, b']', next, ..]
        if key.is_ascii_alphabetic() && next.is_ascii_lowercase())
}

/// A numbered list above a line that asks for one of the numbers.
fn numbered(rows: &[&Row], last: &Row) -> Option<FoundQuestion> {
    let text = last.text.to_lowercase();
    let asks = ["choice", "choose", "select", "pick", "option", "enter a number", "1-", "#?"];
    if !asks.iter().any(|word| text.contains(word)) || !last.text.ends_with([':', '>', '?']) {
        return None;
    }
    let list = &rows[..rows.len() - 1];
    let first = list.iter().rposition(|row| number(&row.text).is_some_and(|(n, _)| n == 1))?;
    let options: Vec<String> = list[first..]
        .iter()
        .enumerate()
        .map_while(|(at, row)| number(&row.text).filter(|(n, _)| *n == at + 1))
        .map(|(_, words)| words.trim().to_owned())
        .collect();
    if options.len() < 2 || first + options.len() != list.len() {
        return None;
    }
    let above = Above::of(rows, first);
    let question = if above.text.is_empty() { last.text.clone() } else { above.text };
    let words = (1..=options.len()).map(|number| number.to_string()).collect();
    let question = Question::new(question, above.context, options, Reply::Words(words));
    Some(FoundQuestion { at: last.at, question })
}

/// Words of a sentence that ends in a colon because something follows.
const LEADING: [&str; 8] = ["here", "here's", "is", "are", "was", "this", "following", "below"];

/// A line that ends in a question mark or asks for a named thing. One in which the cursor waits may end in a default.
fn is_open_question(text: &str, is_open: bool) -> bool {
    let text = match last_group(text) {
        Some((before, _)) if is_open && before.ends_with([':', '?']) => return true,
        _ => text,
    };
    let lower = text.to_lowercase();
    let names = [
        "password",
        "passphrase",
        "api key",
        "token",
        "username",
        "your name",
        "email",
        "code",
        "answer",
    ];
    let starts = [
        "enter ",
        "type ",
        "please enter",
        "please provide",
        "please type",
        "what ",
        "which ",
        "name of",
    ];
    let asks =
        starts.iter().any(|word| lower.trim_start_matches(['?', ' ', '›', '>']).starts_with(word));
    let is_marked = lower.starts_with("? ") && !is_idle(text);
    // A text that leads to something says what follows; a prompt is short.
    let words: Vec<&str> = lower.split_whitespace().collect();
    let leads = words.iter().any(|word| LEADING.contains(word));
    let is_named = |name: &&str| match is_open {
        true => !leads && words.len() <= 10 && lower.contains(*name),
        false => !leads && words.len() <= 4 && lower.trim_end_matches(':').ends_with(*name),
    };
    match text.chars().last() {
        Some('?') => asks || is_marked,
        Some(':') => asks || names.iter().any(is_named) || is_open && is_marked,
        _ => is_open && is_marked,
    }
}

/// A letter as the word that it stands for.
fn spelled(word: &str) -> String {
    match word.to_lowercase().as_str() {
        "y" => "Yes".to_owned(),
        "n" => "No".to_owned(),
        "a" => "All".to_owned(),
        _ => word.to_owned(),
    }
}
