//! Diffs as coloured lines.

use crate::{Paint, numbers, strip_controls};

/// Lines of a diff that are shown; the file has the rest.
const MAX_LINES: usize = 14;

/// A unified diff as indented lines without its file header. A long diff is cut and says how much is
/// left out.
pub fn lines(diff: &str, paint: Paint, width: usize) -> Vec<String> {
    let diff = strip_controls(diff);
    let is_header = |line: &str| line.starts_with("---") || line.starts_with("+++");
    let all: Vec<&str> = diff.lines().filter(|line| !is_header(line)).collect();
    let shown = all.iter().take(MAX_LINES).map(|line| {
        let shown = cut(line, width);
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
