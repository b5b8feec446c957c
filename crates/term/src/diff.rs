//! Diffs as coloured lines.

use windlass_core::shown::shown_line;

use crate::{Paint, numbers};

/// Lines of a diff that are shown; the file has the rest.
const MAX_LINES: usize = 14;

/// A unified diff as indented lines without its file header. A long diff is cut and says how much is
/// left out.
pub fn lines(diff: &str, paint: Paint, width: usize) -> Vec<String> {
    // Not `lines`, which would drop a carriage return. The header is the first two lines only: a removed
    // line may begin with `--` itself.
    let mut all: Vec<&str> = diff.strip_suffix('\n').unwrap_or(diff).split('\n').collect();
    if all.len() > 1 && all[0].starts_with("--- ") && all[1].starts_with("+++ ") {
        all.drain(..2);
    }
    let shown = all.iter().take(MAX_LINES).map(|line| {
        // The first character says what becomes of the line; the rest is the file's.
        let (mark, text) = line.split_at(line.chars().next().map_or(0, char::len_utf8));
        let shown = cut(&format!("{mark}{}", shown_line(text)), width);
        let painted = match line.chars().next() {
            Some('+') => paint.green(&shown),
            Some('-') => paint.red(&shown),
            Some('@') => paint.dim(&shown),
            _ => shown,
        };
        format!("  {painted}").trim_end().to_owned()
    });
    let hidden = all.len().saturating_sub(MAX_LINES);
    let more =
        (hidden > 0).then(|| paint.dim(&format!("  … {}", numbers::plural(hidden, "more line"))));
    shown.chain(more).collect()
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

    #[test]
    fn a_long_diff_is_cut_and_says_so() {
        let diff: String = (0..20).map(|n| format!("+line {n}\n")).collect();
        let lines = lines(&format!("--- a\n+++ b\n{diff}"), Paint { on: false }, 80);
        assert_eq!(lines.len(), MAX_LINES + 1);
        assert_eq!(lines[0], "  +line 0");
        assert_eq!(lines[MAX_LINES], "  … 6 more lines");
    }
}
