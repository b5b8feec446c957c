//! Notes cut into passages, each about a paragraph long.

/// Bytes after which a passage ends with the current line.
const PASSAGE_BYTES: usize = 800;

/// A piece of a note.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Passage {
    /// The note's path.
    pub path: String,
    /// Its first line, from 1.
    pub line: usize,
    pub text: String,
}

/// A note in passages: paragraphs, joined while they are short.
pub(super) fn passages(path: &str, text: &str) -> Vec<Passage> {
    let mut passages: Vec<Passage> = Vec::new();
    let mut open = false;
    for (index, line) in text.lines().enumerate() {
        let heading = line.starts_with('#');
        match passages.last_mut() {
            Some(last) if open && !heading && last.text.len() + line.len() < PASSAGE_BYTES => {
                last.text.push('\n');
                last.text.push_str(line);
            }
            _ if line.trim().is_empty() => {}
            _ => {
                let (path, text) = (path.to_owned(), line.to_owned());
                passages.push(Passage { path, line: index + 1, text });
                open = true;
            }
        }
    }
    for passage in &mut passages {
        passage.text.truncate(passage.text.trim_end().len());
    }
    passages
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_cut_at_headings_and_when_it_gets_long() {
        let text =
            format!("# One\n\nfirst\n\n## Two\nsecond\n\n{}\nlast\n", "x".repeat(PASSAGE_BYTES));
        let lines: Vec<_> =
            passages("n", &text).into_iter().map(|p| (p.line, p.text.len())).collect();
        assert_eq!(lines, [(1, 12), (5, 13), (8, 800), (9, 4)]);
    }
}
