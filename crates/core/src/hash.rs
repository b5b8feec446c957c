//! SHA-256 as text: what identifies a content, and what an approval is bound to.

use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};

/// The SHA-256 of some bytes, in hexadecimal digits.
pub fn sha256(bytes: impl AsRef<[u8]>) -> String {
    hex(&Sha256::digest(bytes.as_ref()))
}

/// Bytes as hexadecimal digits, in lower case.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut digits, byte| {
        // Writing to a string cannot fail.
        let _ = write!(digits, "{byte:02x}");
        digits
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_is_64_digits_and_keeps_leading_zeros() {
        assert_eq!(hex(&[0, 10, 255]), "000aff");
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(sha256(""), empty);
    }
}
