//! Where a quoted run, an expansion or a here-document ends, in bytes.

/// The index of the `)` that closes what was opened before `at`.
pub(super) fn skip_parentheses(text: &[u8], mut at: usize) -> Option<usize> {
    let mut word_start = true;
    let mut documents: Vec<(Vec<u8>, bool)> = Vec::new();
    loop {
        let byte = *text.get(at)?;
        match byte {
            b')' => return Some(at),
            b'(' => at = skip_parentheses(text, at + 1)?,
            b'#' if word_start => {
                while text.get(at + 1).is_some_and(|b| *b != b'\n') {
                    at += 1;
                }
            }
            b'<' if text[at..].starts_with(b"<<<") => at += 2,
            b'<' if text[at..].starts_with(b"<<") => {
                let (tag, tabs, end) = document_tag(text, at + 2)?;
                documents.push((tag, tabs));
                at = end - 1;
            }
            b'\n' => {
                for (tag, tabs) in documents.drain(..) {
                    at = skip_document(text, at + 1, &tag, tabs)?;
                }
            }
            _ => at = skip_one(text, at)?,
        }
        word_start = matches!(byte, b' ' | b'\t' | b'\n' | b';' | b'&' | b'|' | b'(');
        at += 1;
    }
}

/// The index of the `}` that closes what was opened before `at`.
pub(super) fn skip_braces(text: &[u8], mut at: usize) -> Option<usize> {
    loop {
        match *text.get(at)? {
            b'}' => return Some(at),
            _ => at = skip_one(text, at)? + 1,
        }
    }
}

/// The index of the last byte of what starts at `at`: a quoted run, an expansion, or one byte.
fn skip_one(text: &[u8], mut at: usize) -> Option<usize> {
    match text[at] {
        b'\\' => Some(at + 1),
        b'\'' => {
            let ansi_c = at > 0 && text[at - 1] == b'$';
            at += 1;
            while *text.get(at)? != b'\'' {
                at += if ansi_c && text[at] == b'\\' { 2 } else { 1 };
            }
            Some(at)
        }
        b'"' => {
            at += 1;
            while *text.get(at)? != b'"' {
                at = match text[at] {
                    b'\'' => at,
                    _ => skip_one(text, at)?,
                } + 1;
            }
            Some(at)
        }
        b'`' => {
            at += 1;
            while *text.get(at)? != b'`' {
                at += if text[at] == b'\\' { 2 } else { 1 };
            }
            Some(at)
        }
        b'$' if text.get(at + 1) == Some(&b'(') => skip_parentheses(text, at + 2),
        b'$' if text.get(at + 1) == Some(&b'{') => skip_braces(text, at + 2),
        _ => Some(at),
    }
}

/// The unquoted tag of a here-document, whether tabs are removed, and where the tag ends.
fn document_tag(text: &[u8], mut at: usize) -> Option<(Vec<u8>, bool, usize)> {
    let tabs = text.get(at) == Some(&b'-');
    at += usize::from(tabs);
    while matches!(text.get(at), Some(b' ' | b'\t')) {
        at += 1;
    }
    let mut tag = Vec::new();
    while let Some(byte) = text.get(at) {
        match byte {
            b' ' | b'\t' | b'\n' | b';' | b'&' | b'|' | b')' | b'<' | b'>' => break,
            b'\'' | b'"' | b'\\' => {}
            _ => tag.push(*byte),
        }
        at += 1;
    }
    Some((tag, tabs, at))
}

/// The index of the newline after the line that is `tag`, or of the text's last byte.
fn skip_document(text: &[u8], mut at: usize, tag: &[u8], tabs: bool) -> Option<usize> {
    loop {
        let rest = text.get(at..).filter(|rest| !rest.is_empty())?;
        let end = rest.iter().position(|b| *b == b'\n').unwrap_or(rest.len());
        let mut line = &rest[..end];
        while tabs && line.first() == Some(&b'\t') {
            line = &line[1..];
        }
        // The closing parenthesis may follow the tag on its line.
        match line.strip_prefix(tag) {
            Some([]) => return Some(at + end),
            Some(after @ [b')', ..]) => return Some(at + end - after.len() - 1),
            _ => {}
        }
        at += end + 1;
    }
}
