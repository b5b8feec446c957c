//! What the model gets to read of a tool's output: harmless, and cut to size.
//!
//! Invariants:
//! - At or below the limit a text passes unchanged; over it, the whole is in a file before the cut one
//!   is returned (ES-228, ES-229).
//! - No control character reaches the model or, through it, a terminal.

use windlass_core::id::CallId;
use windlass_core::layout::Own;
pub use windlass_core::model_text::neutralize;
use windlass_core::outcome::Truncation;
use windlass_core::text::{BYTES_PER_TOKEN, estimate_tokens, prefix, suffix};

use crate::workspace::{Error, Purpose, Replacement, Workspace};

/// How much of what is kept comes from the beginning, in percent; the end tells how it came out.
const HEAD_PERCENT: usize = 60;

/// How much of an output people see beside the call, in tokens. The whole is in the stored outputs, and
/// the journal need not hold it twice.
const PREVIEW_TOKENS: u64 = 2_000;

/// A text within the limit, and where the whole of it is if it had to be cut.
pub fn fit(
    text: String,
    call: CallId,
    limit_tokens: u64,
    workspace: &Workspace,
) -> (String, Option<Truncation>) {
    if estimate_tokens(text.len() as u64) <= limit_tokens {
        return (text, None);
    }
    let kept = save(&text, call, workspace).map_err(|error| error.to_string());
    let (size, lines) = (text.len() as u64, line_ends(text.as_bytes()));
    cut_pieces(&Pieces { head: &text, tail: &text, size, lines, limit_tokens, kept, capped: false })
}

/// An output that is too long, as far as it is at hand.
pub(crate) struct Pieces<'a> {
    /// Its beginning; may be all of it.
    pub head: &'a str,
    /// Its end; may be all of it.
    pub tail: &'a str,
    /// How long the whole is.
    pub size: u64,
    /// How many lines end in it.
    pub lines: u64,
    /// How long it may be.
    pub limit_tokens: u64,
    /// Where the whole was saved, as the agent reads it, or why it could not be.
    pub kept: Result<String, String>,
    /// Whether it was longer than what is ever saved.
    pub capped: bool,
}

/// An output as people see it beside the call: head and tail of it, the cut marked.
pub(crate) fn preview(head: &str, tail: &str, size: u64, lines: u64) -> String {
    if estimate_tokens(size) <= PREVIEW_TOKENS {
        return head.to_owned();
    }
    cut(head, tail, (size, lines), PREVIEW_TOKENS, "").trim_end().to_owned()
}

/// Head and tail, the cut marked, and where the whole is (ES-229, ES-230).
pub(crate) fn cut_pieces(pieces: &Pieces<'_>) -> (String, Option<Truncation>) {
    let Pieces { head, tail, size, lines, limit_tokens, kept, capped } = pieces;
    let notice = match kept {
        Ok(path) => {
            format!("[OUTPUT TRUNCATED — full output saved to {path}. Use read tool to access.]")
        }
        Err(error) => format!(
            "[OUTPUT TRUNCATED — the full output ({size} bytes) could not be saved: {error}]"
        ),
    };
    let notice = match capped {
        true => format!("[only the beginning of its {size} bytes was stored]\n\n{notice}"),
        false => notice,
    };
    let truncated = kept
        .as_ref()
        .ok()
        .map(|path| Truncation { full_output_path: path.clone(), original_size: *size });
    (cut(head, tail, (*size, *lines), *limit_tokens, &notice), truncated)
}

/// Saves the whole text and gives its path as the agent reads it.
fn save(text: &str, call: CallId, workspace: &Workspace) -> Result<String, Error> {
    let path = output_file(call, "txt", workspace);
    // After a crash the same call may be cut again; its file is then replaced.
    let before = workspace.hash(&path)?;
    workspace.replace(Replacement {
        call,
        path: &path,
        before: before.as_deref(),
        content: text.as_bytes(),
        purpose: Purpose::Harness,
    })?;
    Ok(workspace.layout().in_full(&path))
}

/// Where the whole output of a call is kept.
pub(crate) fn output_file(call: CallId, ending: &str, workspace: &Workspace) -> String {
    format!("{}/tool-output-{call}.{ending}", workspace.layout().path(Own::Scratch))
}

/// Head and tail with the cut marked between them, at line ends where there are any near.
fn cut(
    head: &str,
    tail: &str,
    (size, lines): (u64, u64),
    limit_tokens: u64,
    notice: &str,
) -> String {
    /// Room for the mark between the pieces.
    const MARK_BYTES: usize = 60;
    let limit = usize::try_from(limit_tokens.saturating_mul(BYTES_PER_TOKEN)).unwrap_or(usize::MAX);
    let room = limit.saturating_sub(notice.len() + 2 + MARK_BYTES);
    let begins = prefix(head, room / 100 * HEAD_PERCENT);
    let head = whole_lines_of_head(begins);
    let tail = whole_lines_of_tail(suffix(tail, room - room / 100 * HEAD_PERCENT));
    let left_out = size.saturating_sub((head.len() + tail.len()) as u64);
    // A head that was cut at a line end shows its last line whole, without the end.
    let last_line = u64::from(head.len() < begins.len());
    let shown_lines = line_ends(head.as_bytes()) + last_line + line_ends(tail.as_bytes());
    let lines_left_out = lines.saturating_sub(shown_lines);
    let tail = tail.trim_end_matches('\n');
    format!("{head}\n[… {lines_left_out} lines, {left_out} bytes left out …]\n{tail}\n\n{notice}")
}

/// How many lines end in a text.
pub(crate) fn line_ends(bytes: &[u8]) -> u64 {
    bytes.iter().filter(|byte| **byte == b'\n').count() as u64
}

fn whole_lines_of_head(head: &str) -> &str {
    match head.rfind('\n') {
        Some(end) if end >= head.len() / 2 => &head[..end],
        _ => head,
    }
}

fn whole_lines_of_tail(tail: &str) -> &str {
    match tail.find('\n') {
        Some(end) if end < tail.len() / 2 => &tail[end + 1..],
        _ => tail,
    }
}

/// Bytes as text for the model: invalid UTF-8 and NUL replaced, control characters made visible.
pub fn readable(bytes: &[u8]) -> String {
    neutralize(&String::from_utf8_lossy(bytes))
}

/// A file's name on one line: what a name can hold and a line cannot is made visible.
pub(crate) fn shown_name(path: &str) -> String {
    neutralize(path).replace('\n', "␊").replace('\t', "␉")
}

/// Whether bytes without a NUL can be shown as text: what no character begins with is rare in them. Text in an older
/// encoding has a few such bytes, data is half of them.
pub(crate) fn is_mostly_utf8(head: &[u8]) -> bool {
    const MAX_WRONG_PERCENT: usize = 10;
    /// A few bytes cost nothing, and are readable as they are.
    const MAX_WRONG_BYTES: usize = 64;
    let wrong: usize = head.utf8_chunks().map(|chunk| chunk.invalid().len()).sum();
    wrong <= MAX_WRONG_BYTES || wrong * 100 <= head.len() * MAX_WRONG_PERCENT
}

/// Whether an output is data and not text, by its beginning.
pub(crate) fn is_binary(head: &[u8]) -> bool {
    /// How much is looked at, as git does.
    const SNIFFED_BYTES: usize = 8_000;
    /// Text may hold a few controls, such as the NUL between names; data is full of them.
    const MAX_STRANGE_PERCENT: usize = 10;
    let head = &head[..head.len().min(SNIFFED_BYTES)];
    if !head.contains(&0) {
        return !is_mostly_utf8(head);
    }
    let strange = |byte: &&u8| matches!(byte, 0..=8 | 14..=26 | 28..=31 | 127);
    let magic: [&[u8]; 3] = [b"\x7fELF", b"\x89PNG", b"SQLite format 3\0"];
    magic.iter().any(|magic| head.starts_with(magic))
        || head.iter().filter(strange).count() * 100 > head.len() * MAX_STRANGE_PERCENT
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_name_of_a_file_is_one_line() {
        assert_eq!(shown_name("a\nb\u{1b}[31m\tc"), "a␊b␛[31m␉c");
    }

    #[test]
    fn data_is_told_from_text_with_a_few_nuls() {
        let utf16: Vec<u8> = "hello, world".encode_utf16().flat_map(u16::to_le_bytes).collect();
        assert!(is_binary(&utf16) && is_binary(b"\x7fELF\x02\x01\x01\0\0"));
        assert!(!is_binary(b"src/main.rs\0src/lib.rs\0tests/it/main.rs\0"));
        let data: Vec<u8> =
            (0u32..5000).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8 | 1).collect();
        assert!(is_binary(&data));
        assert!(!is_binary("ein Übungsgerät, grün und schön".as_bytes()));
        assert!(!is_binary(b"caf\xe9 au lait, in an older encoding\n"));
        assert!(!is_binary("caf\u{e9} \u{1b}[31mred\n".as_bytes()));
    }

    proptest! {
        /// ES-228, ES-230
        #[test]
        fn a_cut_text_is_within_its_limit_and_has_both_ends(
            text in "[a-zé\n]{1000,3000}", limit in 60u64..240,
        ) {
            let notice = "[OUTPUT TRUNCATED — somewhere]";
            let lines = line_ends(text.as_bytes());
            let cut = cut(&text, &text, (text.len() as u64, lines), limit, notice);
            prop_assert!(cut.len() as u64 <= limit * BYTES_PER_TOKEN);
            let kept = cut.strip_suffix(&format!("\n\n{notice}")).unwrap();
            let (head, rest) = kept.split_once("\n[… ").unwrap();
            let (lines_left_out, rest) = rest.split_once(" lines, ").unwrap();
            let (left_out, tail) = rest.split_once(" bytes left out …]\n").unwrap();
            prop_assert!(lines_left_out.parse::<u64>().unwrap() <= lines);
            let left_out: usize = left_out.parse().unwrap();
            prop_assert!(text.starts_with(head) && text.trim_end_matches('\n').ends_with(tail));
            prop_assert!(head.len() + left_out + tail.len() <= text.len());
        }
    }
}
