//! Brace expansion: one word to the words it stands for, before anything else is expanded.

/// The most words one brace expansion is followed through.
const MOST_BRACES: usize = 64;

/// `a{b,c}d` as `abd acd`: textual and first, as the shell does it.
pub(super) fn expand(word: &str) -> Vec<String> {
    let mut done = Vec::new();
    let mut queue = vec![word.to_owned()];
    while let Some(next) = queue.pop() {
        match first_brace(&next) {
            Some((start, end, choices))
                if done.len() + queue.len() + choices.len() <= MOST_BRACES =>
            {
                for choice in choices.iter().rev() {
                    queue.push(format!("{}{choice}{}", &next[..start], &next[end..]));
                }
            }
            _ => done.push(next),
        }
    }
    done
}

/// Where the first brace expression of `word` starts and ends, and what it may be.
fn first_brace(word: &str) -> Option<(usize, usize, Vec<String>)> {
    let bytes = word.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 1,
            b'\'' | b'"' | b'`' => at = close_quote(bytes, at)?,
            b'$' if matches!(bytes.get(at + 1), Some(b'(' | b'{' | b'[')) => {
                at = close_expansion(bytes, at + 1)?;
            }
            b'{' => {
                if let Some(found) = brace_at(word, at) {
                    return Some(found);
                }
            }
            _ => {}
        }
        at += 1;
    }
    None
}

fn brace_at(word: &str, start: usize) -> Option<(usize, usize, Vec<String>)> {
    let bytes = word.as_bytes();
    let (mut depth, mut from, mut choices) = (0_usize, start + 1, Vec::new());
    let mut at = start + 1;
    loop {
        match *bytes.get(at)? {
            b'\\' => at += 1,
            b'\'' | b'"' | b'`' => at = close_quote(bytes, at)?,
            b'$' if matches!(bytes.get(at + 1), Some(b'(' | b'{' | b'[')) => {
                at = close_expansion(bytes, at + 1)?;
            }
            b'{' => depth += 1,
            b'}' if depth > 0 => depth -= 1,
            b'}' => break,
            b',' if depth == 0 => {
                choices.push(word[from..at].to_owned());
                from = at + 1;
            }
            _ => {}
        }
        at += 1;
    }
    if choices.is_empty() {
        choices = sequence(&word[start + 1..at])?;
    } else {
        choices.push(word[from..at].to_owned());
    }
    Some((start, at + 1, choices))
}

/// `a..e` letter by letter; of numbers only the ends, since no command is named by them.
fn sequence(inner: &str) -> Option<Vec<String>> {
    let (first, last) = inner.split_once("..")?;
    let last = last.split("..").next()?;
    if first.parse::<i64>().is_ok() && last.parse::<i64>().is_ok() {
        return Some(vec![first.to_owned(), last.to_owned()]);
    }
    let (&[first], &[last]) = (first.as_bytes(), last.as_bytes()) else { return None };
    (first.is_ascii_alphabetic() && last.is_ascii_alphabetic()).then(|| {
        (first.min(last)..=first.max(last)).map(|byte| char::from(byte).to_string()).collect()
    })
}

fn close_quote(bytes: &[u8], start: usize) -> Option<usize> {
    let mut at = start + 1;
    while *bytes.get(at)? != bytes[start] {
        at += if bytes[start] != b'\'' && bytes[at] == b'\\' { 2 } else { 1 };
    }
    Some(at)
}

fn close_expansion(bytes: &[u8], start: usize) -> Option<usize> {
    let (open, close) = match bytes[start] {
        b'(' => (b'(', b')'),
        b'{' => (b'{', b'}'),
        _ => (b'[', b']'),
    };
    let (mut depth, mut at) = (0_usize, start);
    loop {
        match *bytes.get(at)? {
            b'\\' => at += 1,
            b'\'' | b'"' | b'`' => at = close_quote(bytes, at)?,
            byte if byte == open => depth += 1,
            byte if byte == close => {
                depth -= 1;
                if depth == 0 {
                    return Some(at);
                }
            }
            _ => {}
        }
        at += 1;
    }
}
