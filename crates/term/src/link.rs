//! Links that a terminal opens (OSC 8): what they look like, and texts without them.
//!
//! Invariant: an address in one is printable ASCII, so that nothing in it ends the sequence.

/// What every one of them begins with.
const BEGIN: &str = "\u{1b}]8;";
/// What ends a sequence, and a sequence that ends the link before it.
const TERMINATOR: &str = "\u{1b}\\";
pub const END: &str = "\u{1b}]8;;\u{1b}\\";

/// The sequence that begins a link to an address; `None` where it could not be written safely. Pieces of one address on
/// several rows are one link for a terminal.
pub fn begin(address: &str) -> Option<String> {
    let is_safe = !address.is_empty() && address.bytes().all(|byte| byte.is_ascii_graphic());
    // Pieces belong together by this name; FNV-1a is enough to tell the addresses on a screen apart.
    let name = address
        .bytes()
        .fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    is_safe.then(|| format!("{BEGIN}id={name:x};{address}{TERMINATOR}"))
}

/// The length of the sequence that a text begins with, where it is one of a link.
pub fn sequence(text: &str) -> Option<usize> {
    let rest = text.strip_prefix(BEGIN)?;
    let end = rest.find(TERMINATOR)?;
    Some(BEGIN.len() + end + TERMINATOR.len())
}

/// A line without links, for a terminal that does not know them.
pub fn without(line: &str) -> String {
    let mut plain = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(at) = rest.find(BEGIN) {
        plain.push_str(&rest[..at]);
        let length = sequence(&rest[at..]).unwrap_or(BEGIN.len());
        rest = &rest[at + length..];
    }
    plain + rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::strip_controls;

    #[test]
    fn a_link_can_be_removed_and_takes_no_room() {
        let line = format!("see {}x{END}.", begin("https://example.org").unwrap());
        assert_eq!(without(&line), "see x.");
        assert_eq!(strip_controls(&line), "see x.");
        assert_eq!(sequence(END), Some(END.len()));
        assert_eq!(without("plain"), "plain");
    }

    #[test]
    fn an_address_cannot_end_its_sequence() {
        for hostile in
            ["https://x\u{1b}\\y", "https://x\u{7}y", "https://x y", "https://\u{e9}", ""]
        {
            assert_eq!(begin(hostile), None);
        }
    }
}
