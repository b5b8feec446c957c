//! Diffs as coloured lines.

use windlass_core::shown::shown_line;

use crate::{Detail, Paint, numbers};

/// A diff of at most this many lines is shown whole.
const WHOLE_LINES: usize = 24;
/// Lines of one side of a change that are shown of a longer diff, so that the other side is seen too.
const SIDE_LINES: usize = 6;
/// Lines that are shown of a longer diff; `windlass diff` has the rest.
const FOLDED_LINES: usize = 40;

/// A unified diff as indented lines without its file header. A long one is folded and says how much is left
/// out; of each change both sides are shown.
pub fn lines(diff: &str, paint: Paint, width: usize, detail: Detail) -> Vec<String> {
    // Not `lines`, which would drop a carriage return. The header is the first two lines only: a removed
    // line may begin with `--` itself.
    let mut all: Vec<&str> = diff.strip_suffix('\n').unwrap_or(diff).split('\n').collect();
    if all.len() > 1 && all[0].starts_with("--- ") && all[1].starts_with("+++ ") {
        all.drain(..2);
    }
    let shown = |line: &str| {
        // The first character says what becomes of the line; the rest is the file's.
        let (mark, text) = line.split_at(line.chars().next().map_or(0, char::len_utf8));
        let whole = format!("{mark}{}", shown_line(text));
        let text = match detail {
            Detail::Brief => cut(&whole, width),
            Detail::Full => whole,
        };
        painted(line, &text, paint)
    };
    if detail == Detail::Full || all.len() <= WHOLE_LINES {
        return all.iter().map(|line| shown(line)).collect();
    }
    let mut lines = Vec::new();
    let mut rest = all.as_slice();
    while let Some(first) = rest.first() {
        let side = side(first);
        let run = rest.iter().take_while(|line| self::side(line) == side).count();
        let most = if side == Side::Both { run } else { SIDE_LINES };
        // One line is not worth a fold.
        let most = if run <= most + 1 { run } else { most };
        lines.extend(rest[..most].iter().map(|line| shown(line)));
        if run > most {
            let noun = if side == Side::Old { "more removed line" } else { "more added line" };
            lines.push(paint.dim(&format!("  … {}", numbers::plural(run - most, noun))));
        }
        rest = &rest[run..];
        if lines.len() >= FOLDED_LINES && !rest.is_empty() {
            lines.push(paint.dim(&format!("  … {}", numbers::plural(rest.len(), "more line"))));
            break;
        }
    }
    lines
}

/// Which version of the file a line belongs to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Old,
    New,
    Both,
}

fn side(line: &str) -> Side {
    match line.chars().next() {
        Some('-') => Side::Old,
        Some('+') => Side::New,
        _ => Side::Both,
    }
}

fn painted(line: &str, shown: &str, paint: Paint) -> String {
    let painted = match line.chars().next() {
        Some('+') => paint.green(shown),
        Some('-') => paint.red(shown),
        Some('@') => paint.dim(shown),
        _ => shown.to_owned(),
    };
    format!("  {painted}").trim_end().to_owned()
}

/// A line cut to a width; its indentation stays.
pub(crate) fn cut(line: &str, width: usize) -> String {
    let line = line.replace('\t', "    ");
    if line.chars().count() <= width {
        return line;
    }
    line.chars().take(width.saturating_sub(1)).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Paint = Paint { on: false };

    fn change(count: usize) -> String {
        let side = |sign: char| (0..count).map(move |n| format!("{sign}line {n}\n"));
        format!("--- a\n+++ b\n@@ -1 +1 @@\n{}", side('-').chain(side('+')).collect::<String>())
    }

    #[test]
    fn a_long_diff_shows_both_sides_and_how_much_is_folded() {
        let lines = lines(&change(60), PLAIN, 80, Detail::Brief);
        assert_eq!(lines.len(), 1 + 2 * (SIDE_LINES + 1));
        assert_eq!(lines[1], "  -line 0");
        assert_eq!(lines[1 + SIDE_LINES], "  … 54 more removed lines");
        assert_eq!(lines[2 + SIDE_LINES], "  +line 0");
        assert_eq!(lines.last().unwrap(), "  … 54 more added lines");
    }

    #[test]
    fn an_unfolded_diff_is_whole() {
        assert_eq!(lines(&change(60), PLAIN, 80, Detail::Full).len(), 121);
    }

    #[test]
    fn a_removed_line_that_looks_like_a_header_is_shown() {
        let lines = lines("@@ -1 +1 @@\n--- drop it\n+++ keep it\n", PLAIN, 80, Detail::Brief);
        assert_eq!(lines[1..], ["  --- drop it", "  +++ keep it"]);
    }
}
