//! Tokens: random, kept in a file of the owner's or as a hash in the configuration.

use std::fmt;
use std::fs::OpenOptions;
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

use ring::digest;
use ring::rand::{SecureRandom as _, SystemRandom};

/// Random bytes of a token.
const TOKEN_BYTES: usize = 32;

/// The longest file that is read as a token.
const MAX_FILE_BYTES: u64 = 4096;

/// A token as it may be written down: its SHA-256, 64 hexadecimal digits.
#[derive(Clone, PartialEq, Eq)]
pub struct TokenHash([u8; 32]);

impl TokenHash {
    /// The hash of a token.
    pub fn of(token: &str) -> Self {
        let mut hash = [0; 32];
        hash.copy_from_slice(digest::digest(&digest::SHA256, token.as_bytes()).as_ref());
        Self(hash)
    }

    /// Reads a hash as it is written in the configuration.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.strip_prefix("sha256:").unwrap_or(text);
        if text.len() != 64 || !text.is_ascii() {
            return None;
        }
        let mut hash = [0; 32];
        for (at, byte) in hash.iter_mut().enumerate() {
            *byte = u8::from_str_radix(text.get(at * 2..at * 2 + 2)?, 16).ok()?;
        }
        Some(Self(hash))
    }

    /// Whether two hashes are the same, in a time that does not depend on where they differ.
    pub fn is_same(&self, other: &Self) -> bool {
        self.0.iter().zip(other.0).fold(0, |differs, (one, two)| differs | (one ^ two)) == 0
    }
}

impl fmt::Display for TokenHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for TokenHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenHash(…)")
    }
}

/// A new random token, as hexadecimal digits.
pub fn random() -> io::Result<String> {
    let mut bytes = [0; TOKEN_BYTES];
    SystemRandom::new().fill(&mut bytes).map_err(|_| io::Error::other("no random numbers"))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// The token in a file, which is made if it is missing. A file that others could read is
/// replaced, because its token may be known.
pub fn read_or_make(path: &Path) -> io::Result<String> {
    for _ in 0..2 {
        match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
            Ok(mut file) => {
                let token = random()?;
                file.write_all(format!("{token}\n").as_bytes())?;
                file.sync_all()?;
                return Ok(token);
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
        let file = OpenOptions::new().read(true).open(path)?;
        let is_private = file.metadata()?.permissions().mode() & 0o077 == 0;
        let mut text = String::new();
        file.take(MAX_FILE_BYTES).read_to_string(&mut text)?;
        let token = text.trim();
        if is_private && token.len() >= TOKEN_BYTES {
            return Ok(token.to_owned());
        }
        // Empty, cut, or open to others: a new one takes its place.
        std::fs::remove_file(path)?;
    }
    Err(io::Error::other("another process changes the token's file"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_is_read_as_it_is_written() {
        let hash = TokenHash::of("secret");
        assert!(TokenHash::parse(&hash.to_string()).unwrap().is_same(&hash));
        assert!(TokenHash::parse(&format!("sha256:{hash}")).unwrap().is_same(&hash));
        assert!(!hash.is_same(&TokenHash::of("Secret")));
        for bad in ["", "12", "g".repeat(64).as_str(), "é".repeat(32).as_str()] {
            assert!(TokenHash::parse(bad).is_none(), "{bad}");
        }
    }

    #[test]
    fn the_token_is_made_once_and_is_the_owners_alone() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("token");
        let token = read_or_make(&path).unwrap();
        assert_eq!(token.len(), 2 * TOKEN_BYTES);
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(read_or_make(&path).unwrap(), token);
        // One that others could have read is not trusted any more.
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        assert_ne!(read_or_make(&path).unwrap(), token);
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }
}
