//! Identifiers: a UUIDv7 written as a prefix and 26 Crockford base-32 characters (`task_01J9…`).
//!
//! Invariants:
//! - Printing then parsing is identity, and printed ids sort by creation time.
//! - Parsing accepts lower case and the look-alikes `i`, `l` → 1 and `o` → 0.

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use uuid::Uuid;

const DIGITS: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/// Characters after the prefix.
const LENGTH: usize = 26;

/// The value of each byte as a digit; ids are read and written for every event.
const VALUES: [u8; 256] = digit_values();
const NO_DIGIT: u8 = u8::MAX;

const fn digit_values() -> [u8; 256] {
    let mut values = [NO_DIGIT; 256];
    let mut value = 0;
    while value < DIGITS.len() {
        values[DIGITS[value] as usize] = value as u8;
        values[DIGITS[value].to_ascii_lowercase() as usize] = value as u8;
        value += 1;
    }
    let mut look_alikes: &[(u8, u8)] = &[(b'I', 1), (b'L', 1), (b'O', 0)];
    while let [(letter, value), rest @ ..] = look_alikes {
        values[*letter as usize] = *value;
        values[letter.to_ascii_lowercase() as usize] = *value;
        look_alikes = rest;
    }
    values
}

/// Text that is not an id of the wanted kind.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("`{text}` is not an id like `{prefix}_01J9…`")]
pub struct ParseError {
    prefix: &'static str,
    text: String,
}

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident = $prefix:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(Uuid);

        impl $name {
            /// What every id of this kind starts with.
            pub const PREFIX: &'static str = $prefix;

            /// A new id, sorted after those made before `at`.
            pub fn new(at: Timestamp) -> Self {
                Self(uuid_at(at))
            }

            /// The id that always belongs to `name` under `parent`: same in, same out.
            pub fn derived(parent: &str, name: &str) -> Self {
                Self(derived(parent, name))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(concat!($prefix, "_"))?;
                f.write_str(std::str::from_utf8(&encode(self.0)).unwrap_or_default())
            }
        }

        impl FromStr for $name {
            type Err = ParseError;

            fn from_str(text: &str) -> Result<Self, ParseError> {
                text.strip_prefix(concat!($prefix, "_"))
                    .and_then(decode)
                    .map(Self)
                    .ok_or_else(|| ParseError { prefix: $prefix, text: text.to_owned() })
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                let text = std::borrow::Cow::<'de, str>::deserialize(from)?;
                text.parse().map_err(de::Error::custom)
            }
        }
    )*};
}

ids! {
    /// Identifies one task for its whole life.
    TaskId = "task";
    /// Identifies one user's conversation.
    SessionId = "ses";
    /// Identifies one tool call; ours, not the provider's.
    CallId = "call";
    /// Identifies one thing waiting for a person.
    QuestionId = "q";
    /// Identifies one message pushed into a task; a second with the same id is dropped.
    InjectionId = "inj";
    /// Identifies one change of a session's axes.
    ChangeId = "chg";
    /// Identifies one submission, so that a repeated one starts nothing.
    CommandId = "cmd";
    /// Identifies one commitment; the commitment ledger gives it.
    CommitmentId = "cmt";
    /// Identifies one piece of evidence for a commitment.
    EvidenceId = "evd";
    /// Identifies one repeating or delayed trigger.
    ScheduleId = "sch";
    /// Identifies one plan of one project.
    PlanId = "plan";
    /// Identifies one issue that somebody logged while a plan was worked on.
    IssueId = "iss";
    /// Identifies one decision that somebody logged while a plan was worked on.
    DecisionId = "dec";
}

fn uuid_at(at: Timestamp) -> Uuid {
    let seconds = u64::try_from(at.as_second()).unwrap_or(0);
    let nanos = u32::try_from(at.subsec_nanosecond()).unwrap_or(0);
    Uuid::new_v7(uuid::Timestamp::from_unix(uuid::NoContext, seconds, nanos))
}

fn derived(parent: &str, name: &str) -> Uuid {
    use sha2::{Digest, Sha256};
    let mut hash = Sha256::new();
    hash.update(parent.as_bytes());
    hash.update([0]);
    hash.update(name.as_bytes());
    let digest = hash.finalize();
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&digest[..16]);
    Uuid::from_bytes(bytes)
}

fn encode(id: Uuid) -> [u8; LENGTH] {
    let mut value = id.as_u128();
    let mut text = [0; LENGTH];
    for digit in text.iter_mut().rev() {
        *digit = DIGITS[(value & 31) as usize];
        value >>= 5;
    }
    text
}

fn decode(text: &str) -> Option<Uuid> {
    if text.len() != LENGTH {
        return None;
    }
    let mut value: u128 = 0;
    for (index, letter) in text.bytes().enumerate() {
        let digit = VALUES[usize::from(letter)];
        if digit == NO_DIGIT || (index == 0 && digit > 7) {
            return None;
        }
        value = value << 5 | u128::from(digit);
    }
    Some(Uuid::from_u128(value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn an_id_printed_and_parsed_is_the_same_id(value in any::<u128>()) {
            let id = TaskId(Uuid::from_u128(value));
            prop_assert_eq!(id.to_string().parse::<TaskId>(), Ok(id));
            prop_assert_eq!(id.to_string().to_lowercase().parse::<TaskId>(), Ok(id));
        }

        #[test]
        fn parsing_an_id_never_panics(text in ".*") {
            let _ = text.parse::<TaskId>();
        }
    }

    #[test]
    fn letters_that_look_like_digits_are_read_as_them() {
        let id: TaskId = format!("task_0{}", "1".repeat(25)).parse().unwrap();
        assert_eq!(format!("task_o{}Li", "I1".repeat(11) + "l").parse(), Ok(id));
        assert!(format!("task_0{}", "U".repeat(25)).parse::<TaskId>().is_err());
    }

    #[test]
    fn ids_sort_by_the_time_they_were_made() {
        let early = TaskId::new(Timestamp::from_second(1_000).unwrap()).to_string();
        let late = TaskId::new(Timestamp::from_second(2_000).unwrap()).to_string();
        assert!(early < late);
    }
}
