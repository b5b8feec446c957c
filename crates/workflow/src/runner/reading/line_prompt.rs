//! Questions that are answered in the line in which the cursor waits.

use super::form::{Question, Reply};
use super::menu::{number, question_above};
use super::{FoundQuestion, Row};

/// The question in the last line of the screen, where the cursor is.
pub(super) fn find(rows: &[&Row], cursor_row: usize) -> Option<FoundQuestion> {
    let (last, above) = rows.split_last()?;
    // A cursor in the next row is there because the program ended the line before it waits.
    if cursor_row < last.at || cursor_row > last.at + 1 {
        return None;
    }
    let text = last.text.trim_end();
    let context = || {
        let near = &above[above.len().saturating_sub(25)..];
        near.iter().map(|row| row.text.as_str()).collect::<Vec<_>>().join("\n")
    };
    if let Some((question, options, words)) = choices(text) {
        let reply = Reply::Words(words);
        let question = Question::new(question, context(), options, reply);
        return Some(FoundQuestion { at: last.at, question });
    }
    if let Some(found) = numbered(rows, last) {
        return Some(found);
    }
    let lower = text.to_lowercase();
    let goes_on = ["press enter", "press any key", "hit enter", "press return"];
    if goes_on.iter().any(|words| lower.contains(words)) && !lower.contains("interrupt") {
        let options = vec!["Continue".to_owned()];
        let reply = Reply::Words(vec![String::new()]);
        let question = Question::new(text.to_owned(), context(), options, reply);
        return Some(FoundQuestion { at: last.at, question });
    }
    is_open_question(text).then(|| {
        let question = Question::new(text.to_owned(), context(), Vec::new(), Reply::Line);
        FoundQuestion { at: last.at, question }
    })
}

/// A list of letters or words at the end of a line: `[Y/n]`, `(yes/no)`, `(Y)es/(N)o/(A)ll [Yes]:`.
fn choices(text: &str) -> Option<(String, Vec<String>, Vec<String>)> {
    let text = text.trim_end_matches([':', '>', '?', ' ']);
    if let Some(found) = bracketed_letters(text) {
        return Some(found);
    }
    let open = text.rfind(['[', '('])?;
    let inside = text[open + 1..].strip_suffix([']', ')'])?;
    let words: Vec<&str> = inside.split(['/', '|', ',']).map(str::trim).collect();
    let is_word = |word: &str| {
        !word.is_empty()
            && word.len() <= 12
            && word.chars().all(|char| char.is_alphabetic() || char == '\'')
    };
    let question = text[..open].trim().to_owned();
    if words.len() < 2 || !words.iter().all(|word| is_word(word)) || question.is_empty() {
        return None;
    }
    // At least a yes and a no: a list of languages in brackets is no question.
    let has =
        |names: &[&str]| words.iter().any(|word| names.contains(&word.to_lowercase().as_str()));
    if !(has(&["y", "yes"]) && has(&["n", "no"])) {
        return None;
    }
    let options = words.iter().map(|word| spelled(word)).collect();
    Some((question, options, words.iter().map(|word| word.to_lowercase()).collect()))
}

/// `(Y)es/(N)o/(D)on't ask again [Yes]`, `[a]llow  [d]eny`: options with their letter in brackets.
fn bracketed_letters(text: &str) -> Option<(String, Vec<String>, Vec<String>)> {
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
        words.push(part[1..2].to_lowercase());
    }
    let question = text[..first].trim().to_owned();
    let is_plain = options.iter().all(|option| option.len() > 1 && option.len() <= 40);
    (options.len() >= 2 && is_plain && !question.is_empty()).then_some((question, options, words))
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
    let (above, context) = question_above(rows, first);
    let question = if above.is_empty() { last.text.clone() } else { above };
    let words = (1..=options.len()).map(|number| number.to_string()).collect();
    let question = Question::new(question, context, options, Reply::Words(words));
    Some(FoundQuestion { at: last.at, question })
}

/// A line that ends in a question mark or asks for a named thing.
fn is_open_question(text: &str) -> bool {
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
    match text.chars().last() {
        Some('?') => asks || lower.starts_with("? "),
        Some(':') => asks || names.iter().any(|name| lower.trim_end_matches(':').ends_with(name)),
        _ => false,
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
