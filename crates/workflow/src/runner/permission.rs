//! How an answer to a program's permission question is read, and when two questions are the same.

use sha2::{Digest, Sha256};
use windlass_core::question::{PERMISSION_OPTIONS, Permission};

/// What a person decided. Whatever is not clearly a yes is a no, with their words for the program.
pub(super) fn read_permission(text: &str) -> Permission {
    let [allow, deny, allow_all] = PERMISSION_OPTIONS;
    let text = text.trim();
    let is = |word: &str| text.eq_ignore_ascii_case(word);
    if is(allow) || is("y") || is("yes") {
        return Permission::Allow;
    }
    if is(allow_all) {
        return Permission::AllowAll;
    }
    let comment = match text.split_once(':') {
        Some((word, comment)) if word.trim().eq_ignore_ascii_case(deny) => comment,
        _ if is(deny) || is("n") || is("no") => "",
        _ => text,
    };
    Permission::Deny { comment: comment.trim().to_owned() }
}

/// The same for the same parts.
pub(super) fn fingerprint(parts: &[&str]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        // The length first, so that no two lists of parts look alike.
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part.as_bytes());
    }
    hash.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_clear_yes_allows() {
        let deny = |comment: &str| Permission::Deny { comment: comment.to_owned() };
        assert_eq!(read_permission("Allow"), Permission::Allow);
        assert_eq!(read_permission("allow all"), Permission::AllowAll);
        assert_eq!(read_permission("Deny"), deny(""));
        assert_eq!(read_permission("Deny: use a branch"), deny("use a branch"));
        assert_eq!(read_permission("yes, but not on main"), deny("yes, but not on main"));
        assert_eq!(read_permission(""), deny(""));
    }
}
