//! Pictures in a conversation. A journal names them; their bytes are kept once, by hash, in the data directory.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::string_enum;

/// Pixels per token, where nothing better is known: what providers say about pictures of the sizes that are sent.
const PIXELS_PER_TOKEN: u64 = 750;
/// The smallest estimate: providers count something for a picture of any size.
const LEAST_TOKENS: u64 = 85;

string_enum! {
    /// How a picture that is kept is encoded. Every provider takes these; others are converted.
    PictureFormat ("picture format") {
        Png = "image/png",
        Jpeg = "image/jpeg",
    }
}

impl PictureFormat {
    /// What people call it.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Png => "PNG",
            Self::Jpeg => "JPEG",
        }
    }
}

/// The SHA-256 of a picture's bytes, in 64 hexadecimal digits. It names a file, so nothing else is accepted.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PictureHash(String);

/// Why a text does not name a picture.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not the hash of a picture: it has 64 hexadecimal digits, in lower case")]
pub struct BadPictureHash(String);

impl PictureHash {
    /// The hash in hexadecimal digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for PictureHash {
    type Err = BadPictureHash;

    fn from_str(text: &str) -> Result<Self, BadPictureHash> {
        Self::try_from(text.to_owned())
    }
}

impl TryFrom<String> for PictureHash {
    type Error = BadPictureHash;

    fn try_from(text: String) -> Result<Self, BadPictureHash> {
        let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        match text.len() == 64 && text.bytes().all(is_digit) {
            true => Ok(Self(text)),
            false => Err(BadPictureHash(text)),
        }
    }
}

impl From<PictureHash> for String {
    fn from(hash: PictureHash) -> Self {
        hash.0
    }
}

impl fmt::Display for PictureHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A picture that is kept, as messages and events name it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Picture {
    pub hash: PictureHash,
    pub format: PictureFormat,
    /// In pixels, as it is sent.
    pub width: u32,
    pub height: u32,
    /// How many bytes are kept.
    pub bytes: u64,
    /// What it is called, such as the path of its file.
    pub name: String,
}

impl Picture {
    /// The estimate of how many tokens it takes.
    pub fn tokens(&self) -> u64 {
        (u64::from(self.width) * u64::from(self.height))
            .div_ceil(PIXELS_PER_TOKEN)
            .max(LEAST_TOKENS)
    }

    /// What replaces it where it is not shown, in one line.
    pub fn note(&self, why: &str) -> String {
        format!("[{self} is not shown: {why}]")
    }
}

impl fmt::Display for Picture {
    /// In one line, whatever its name holds.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { format, width, height, .. } = self;
        let name: String = self.name.chars().filter(|char| !char.is_control()).collect();
        write!(f, "picture `{name}`, {} {width}×{height}", format.title())
    }
}

/// A picture that is ready to be kept and sent: checked, and no larger than providers take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PictureData {
    pub format: PictureFormat,
    pub width: u32,
    pub height: u32,
    pub bytes: Vec<u8>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picture(width: u32, height: u32) -> Picture {
        let hash = "0123456789abcdef".repeat(4).parse().unwrap();
        let name = "a\nb.png".to_owned();
        Picture { hash, format: PictureFormat::Png, width, height, bytes: 10, name }
    }

    #[test]
    fn a_picture_is_estimated_by_its_pixels() {
        assert_eq!(picture(1, 1).tokens(), LEAST_TOKENS);
        assert_eq!(picture(750, 1_000).tokens(), 1_000);
        assert_eq!(picture(u32::MAX, u32::MAX).tokens(), 24_595_658_753_492_823);
    }

    #[test]
    fn a_note_is_one_line() {
        let note = picture(3, 2).note("it is too old");
        assert_eq!(note, "[picture `ab.png`, PNG 3×2 is not shown: it is too old]");
    }

    #[test]
    fn only_a_hash_names_a_picture() {
        for text in
            ["", "..", "../../etc/passwd", &"0".repeat(63), &"G".repeat(64), &"A".repeat(64)]
        {
            assert!(text.parse::<PictureHash>().is_err(), "{text}");
            assert!(serde_json::from_value::<PictureHash>(text.into()).is_err(), "{text}");
        }
        let hash: PictureHash = "af09".repeat(16).parse().unwrap();
        assert_eq!(serde_json::to_value(&hash).unwrap(), "af09".repeat(16));
    }
}
