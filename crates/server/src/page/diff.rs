//! A unified diff as HTML: numbered lines, each of which can be commented on.

use maud::{Markup, html};
use windlass_core::shown::shown_line;

/// One line of a diff.
#[derive(Debug, PartialEq, Eq)]
struct Line<'a> {
    kind: LineKind,
    old: Option<usize>,
    new: Option<usize>,
    text: &'a str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LineKind {
    Hunk,
    Added,
    Removed,
    Same,
}

impl LineKind {
    const fn class(self) -> &'static str {
        match self {
            Self::Hunk => "hunk",
            Self::Added => "add",
            Self::Removed => "del",
            Self::Same => "same",
        }
    }

    const fn sign(self) -> &'static str {
        match self {
            Self::Hunk => "",
            Self::Added => "+",
            Self::Removed => "−",
            Self::Same => " ",
        }
    }
}

/// The first lines of a diff, which can be commented on: a comment names this file. Where there are more, it says so,
/// with a link to them.
pub fn commentable(diff: &str, path: &str, most: usize) -> Markup {
    let lines = lines(diff);
    let shown = &lines[..lines.len().min(most)];
    html! {
        (table(shown, Some(path)))
        @if shown.len() < lines.len() {
            p.earlier { "The first " (shown.len()) " of " (lines.len()) " lines. " a href="?whole=1" { "Show all" } }
        }
    }
}

/// A diff to read.
pub fn render(diff: &str) -> Markup {
    table(&lines(diff), None)
}

/// What a diff leaves of a file: its new lines and those around them, with a gap between places.
pub fn after(diff: &str) -> String {
    let mut text = String::new();
    for line in lines(diff) {
        match line.kind {
            LineKind::Hunk if text.is_empty() => {}
            LineKind::Hunk => text.push_str("\n…\n\n"),
            LineKind::Added | LineKind::Same => {
                text.push_str(line.text);
                text.push('\n');
            }
            LineKind::Removed => {}
        }
    }
    text
}

fn table(lines: &[Line<'_>], path: Option<&str>) -> Markup {
    html! {
        div.diff.scroll tabindex="0" {
            table {
                @for line in lines {
                    tr class=(line.kind.class()) {
                        @if line.kind == LineKind::Hunk {
                            td.ln colspan="2" {}
                            td.code { (shown_line(line.text)) }
                        } @else {
                            td.ln { (number(line.old)) }
                            td.ln { (number(line.new)) }
                            td.code {
                                span.sign aria-hidden="true" { (line.kind.sign()) }
                                span.visually-hidden { (spoken(line.kind)) }
                                (shown_line(line.text))
                                @if let Some(path) = path {
                                    button.comment type="button" data-comment
                                        data-path=(path) data-line=(number(line.new.or(line.old)))
                                        data-text=(line.text)
                                        aria-label=(comment_label(line)) title="Comment on this line" { "+" }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn comment_label(line: &Line<'_>) -> String {
    match (line.new, line.old) {
        (Some(new), _) => format!("Comment on line {new}"),
        (None, Some(old)) => format!("Comment on removed line {old}"),
        (None, None) => "Comment".to_owned(),
    }
}

const fn spoken(kind: LineKind) -> &'static str {
    match kind {
        LineKind::Added => "added: ",
        LineKind::Removed => "removed: ",
        LineKind::Hunk | LineKind::Same => "",
    }
}

fn number(number: Option<usize>) -> String {
    number.map(|number| number.to_string()).unwrap_or_default()
}

/// How many lines came and went.
pub fn counts(diff: &str) -> (usize, usize) {
    let all = lines(diff);
    let count = |kind: LineKind| all.iter().filter(|line| line.kind == kind).count();
    (count(LineKind::Added), count(LineKind::Removed))
}

fn lines(diff: &str) -> Vec<Line<'_>> {
    let (mut old, mut new) = (0, 0);
    let mut found = Vec::new();
    let mut in_hunk = false;
    for text in diff.lines() {
        if let Some((old_start, new_start)) = hunk_start(text) {
            (old, new, in_hunk) = (old_start, new_start, true);
            found.push(Line { kind: LineKind::Hunk, old: None, new: None, text });
            continue;
        }
        // The names of the files; the page says them already.
        if !in_hunk || text.starts_with('\\') {
            continue;
        }
        let kind = match text.as_bytes().first() {
            Some(b'+') => LineKind::Added,
            Some(b'-') => LineKind::Removed,
            _ => LineKind::Same,
        };
        let line = Line {
            kind,
            old: (kind != LineKind::Added).then_some(old),
            new: (kind != LineKind::Removed).then_some(new),
            text: text.get(1..).unwrap_or_default(),
        };
        old += usize::from(line.old.is_some());
        new += usize::from(line.new.is_some());
        found.push(line);
    }
    found
}

/// The first lines of a hunk: `@@ -3,7 +3,8 @@`.
fn hunk_start(text: &str) -> Option<(usize, usize)> {
    let rest = text.strip_prefix("@@ -")?;
    let (old, rest) = rest.split_once(" +")?;
    let (new, _) = rest.split_once(" @@")?;
    let first = |range: &str| range.split(',').next().and_then(|start| start.parse().ok());
    Some((first(old)?, first(new)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIFF: &str =
        "--- a/x\n+++ b/x\n@@ -2,3 +2,3 @@\n a\n-b\n+<c>\n d\n\\ No newline at end of file\n";

    #[test]
    fn lines_are_numbered_on_both_sides() {
        let numbers: Vec<_> =
            lines(DIFF).iter().map(|line| (line.kind, line.old, line.new)).collect();
        let expected = [
            (LineKind::Hunk, None, None),
            (LineKind::Same, Some(2), Some(2)),
            (LineKind::Removed, Some(3), None),
            (LineKind::Added, None, Some(3)),
            (LineKind::Same, Some(4), Some(4)),
        ];
        assert_eq!(numbers, expected);
        assert_eq!(counts(DIFF), (1, 1));
    }

    #[test]
    fn a_line_of_a_file_is_text_and_carries_its_comment() {
        let drawn = commentable(DIFF, "src/\"x\".rs", 9).0;
        assert!(drawn.contains("&lt;c&gt;") && !drawn.contains("<c>"), "{drawn}");
        assert!(drawn.contains(r#"data-path="src/&quot;x&quot;.rs" data-line="3""#), "{drawn}");
        assert!(!render(DIFF).0.contains("data-comment") && !drawn.contains("Show all"));
    }

    #[test]
    fn a_long_diff_says_how_much_of_it_is_shown() {
        let drawn = commentable(DIFF, "x", 2).0;
        assert!(
            drawn.contains("The first 2 of 5 lines.") && !drawn.contains("&lt;c&gt;"),
            "{drawn}"
        );
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_drawn(text in "[-+@ 0-9,\\n\\\\a-c]{0,120}") {
            render(&text);
        }
    }
}
