//! What a server's tool is called: `mcp:<server>:<tool>` for people, `mcp__server__tool` on the wire.

use sha2::{Digest as _, Sha256};
use windlass_core::hash::hex;

/// What every provider takes.
const MAX_WIRE_CHARS: usize = 64;
/// How much of the hash follows a name that was cut or changed.
const HASH_CHARS: usize = 8;

/// The name people read and write.
pub fn shown_name(server: &str, tool: &str) -> String {
    format!("mcp:{server}:{tool}")
}

/// The name the model calls it by: letters, digits, `_` and `-`, at most 64. A name that had to be
/// changed ends in a hash of what it was, so that two tools never share one.
pub fn wire_name(server: &str, tool: &str) -> String {
    let clean = |text: &str| -> String {
        let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        text.chars().map(|c| if fits(c) { c } else { '_' }).collect()
    };
    let name = format!("mcp__{}__{}", clean(server), clean(tool));
    let unchanged = clean(server) == server && clean(tool) == tool && !server.contains("__");
    if unchanged && name.len() <= MAX_WIRE_CHARS {
        return name;
    }
    let hash = Sha256::digest(format!("{server}\0{tool}"));
    let hash = hex(&hash[..HASH_CHARS / 2]);
    let room = MAX_WIRE_CHARS - HASH_CHARS - 1;
    format!("{}_{hash}", &name[..name.len().min(room)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_fit_the_wire_and_stay_apart() {
        assert_eq!(wire_name("time", "get_current_time"), "mcp__time__get_current_time");
        assert_eq!(shown_name("time", "now"), "mcp:time:now");
        let long = "a".repeat(80);
        let names = [
            wire_name("s", &long),
            wire_name("s", &format!("{long}b")),
            wire_name("s", "a.b"),
            wire_name("s", "a_b"),
            wire_name("s", "a b"),
            wire_name("a__b", "c"),
            wire_name("a", "b__c"),
            wire_name("s", "ä"),
        ];
        let apart: std::collections::BTreeSet<_> = names.iter().collect();
        assert_eq!(apart.len(), names.len(), "{names:?}");
        for name in &names {
            assert!(name.len() <= 64, "{name}");
            assert!(name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-'));
        }
    }
}
