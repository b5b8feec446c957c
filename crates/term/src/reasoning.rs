//! What a model thought, dimmed and folded: one line, or all of it where a person asked for everything.

use windlass_core::reasoning::Reasoning;
use windlass_core::text::one_line;

use crate::wrap::wrap;
use crate::{Detail, Paint, numbers, strip_controls};

/// The sign before a thought.
const SIGN: &str = "∴";
/// Columns of the sign and the spaces around it.
const MARGIN: usize = 4;

/// The lines for one reply's reasoning; none where the provider shows nothing of it.
pub fn lines(reasoning: &Reasoning, paint: Paint, width: usize, detail: Detail) -> Vec<String> {
    let text = strip_controls(&reasoning.text());
    let all: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let Some((first, rest)) = all.split_first() else { return Vec::new() };
    match detail {
        Detail::Brief => {
            let more = match rest.len() {
                0 => String::new(),
                count => format!(" (+{})", numbers::plural(count as u64, "line")),
            };
            let room = width.saturating_sub(MARGIN + more.len()).max(1);
            vec![paint.dim(&format!("{SIGN} {}{more}", one_line(first.trim(), room)))]
        }
        Detail::Full => {
            let room = width.saturating_sub(MARGIN).max(1);
            let wrapped: Vec<String> = all.iter().map(|line| wrap(line, room)).collect();
            let wrapped = wrapped.iter().flat_map(|lines| lines.lines());
            let sign = |(index, line): (usize, &str)| {
                paint.dim(&format!("{} {line}", if index == 0 { SIGN } else { " " }))
            };
            wrapped.enumerate().map(sign).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use windlass_core::reasoning::Thought;

    use super::*;

    fn reasoning(texts: &[&str]) -> Reasoning {
        let thought = |text: &&str| Thought { text: (*text).to_owned(), ..Thought::default() };
        Reasoning { model: "m".to_owned(), thoughts: texts.iter().map(thought).collect() }
    }

    fn shown_part(reasoning: &Reasoning, detail: Detail) -> String {
        lines(reasoning, Paint { on: false }, 40, detail).join("\n")
    }

    #[test]
    fn a_thought_is_folded_to_its_first_line() {
        let two = reasoning(&["The build fails in the parser.\nRead it first.", "Then run it."]);
        assert_eq!(shown_part(&two, Detail::Brief), "∴ The build fails in the p… (+2 lines)");
        assert_eq!(
            shown_part(&two, Detail::Full),
            "∴ The build fails in the parser.\n  Read it first.\n  Then run it."
        );
        assert_eq!(shown_part(&reasoning(&["Short."]), Detail::Brief), "∴ Short.");
        assert_eq!(shown_part(&reasoning(&["", " \n"]), Detail::Full), "");
    }
}
