//! What a change of a file looks like: the whole for a person who is asked, a glance for one who watches.

use std::time::Duration;

use similar::TextDiff;
use windlass_core::text::prefix;

/// A glance is not a patch.
const MAX_GLANCE_BYTES: usize = 4_000;
/// The longest diff that a person is asked about. The journal keeps it, so it has a limit; what is left out is
/// counted in its last line.
const MAX_WHOLE_BYTES: usize = 512 << 10;
/// Lines around a change.
const CONTEXT_LINES: usize = 2;
/// How long finding a small diff may take before a coarse one does.
const SEARCH_TIME: Duration = Duration::from_millis(200);

/// Everything that a change adds and removes.
pub(super) fn whole(old: &str, new: &str) -> String {
    let diff = TextDiff::configure().timeout(SEARCH_TIME).diff_lines(old, new);
    let text = diff.unified_diff().context_radius(CONTEXT_LINES).to_string();
    if text.len() <= MAX_WHOLE_BYTES {
        return text;
    }
    let shown = prefix(&text, MAX_WHOLE_BYTES);
    let shown = shown.rfind('\n').map_or(shown, |end| &shown[..end]);
    let lines = text[shown.len()..].lines().filter(|line| !line.is_empty()).count();
    format!("{shown}\n[{lines} more changed lines are too many to show]\n")
}

/// The beginning of a change.
pub(super) fn glance(whole: &str) -> String {
    if whole.len() <= MAX_GLANCE_BYTES {
        return whole.to_owned();
    }
    format!("{}\n[diff cut]\n", prefix(whole, MAX_GLANCE_BYTES))
}
