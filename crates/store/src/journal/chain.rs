//! The checksums of a stream: each covers its row and the one before it (§15.27), so that a changed, missing, added or
//! moved row is noticed.
//!
//! Rows that are older than the checksums are not covered: a stream's chain begins with its first row that has one.

use jiff::Timestamp;
use rusqlite::Row;
use rusqlite::types::{ToSql, ToSqlOutput, ValueRef};
use sha2::{Digest as _, Sha256};

use crate::error::Fault;
use crate::{Error, row};

/// Half of a SHA-256: enough to notice damage, and to name a content.
pub(crate) type Hash = [u8; 16];

/// The hash of some bytes.
pub(crate) fn hash(bytes: &[u8]) -> Hash {
    truncate_digest(Sha256::new().chain_update(bytes))
}

fn truncate_digest(digest: Sha256) -> Hash {
    let mut hash = Hash::default();
    hash.copy_from_slice(&digest.finalize()[..16]);
    hash
}

/// When an event was committed, as its row has it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum StoredTime {
    /// Nanoseconds since 1970.
    Nanoseconds(i64),
    /// A text, in rows of earlier versions and for times that are too far away.
    Text(Vec<u8>),
    #[default]
    Unreadable,
}

impl StoredTime {
    pub(crate) fn of(at: Timestamp) -> Self {
        match i64::try_from(at.as_nanosecond()) {
            Ok(nanoseconds) => Self::Nanoseconds(nanoseconds),
            Err(_) => Self::Text(row::instant(at).into_bytes()),
        }
    }

    fn read(value: ValueRef<'_>) -> Self {
        match value {
            ValueRef::Integer(nanoseconds) => Self::Nanoseconds(nanoseconds),
            ValueRef::Text(text) => Self::Text(text.to_vec()),
            ValueRef::Null | ValueRef::Real(_) | ValueRef::Blob(_) => Self::Unreadable,
        }
    }

    pub(crate) fn instant(&self) -> Option<Timestamp> {
        match self {
            Self::Nanoseconds(at) => Timestamp::from_nanosecond((*at).into()).ok(),
            Self::Text(text) => std::str::from_utf8(text).ok()?.parse().ok(),
            Self::Unreadable => None,
        }
    }

    /// As checksums cover it, and other tables have it.
    pub(crate) fn text(&self) -> Vec<u8> {
        match self {
            Self::Nanoseconds(_) => {
                self.instant().map(|at| row::instant(at).into_bytes()).unwrap_or_default()
            }
            Self::Text(text) => text.clone(),
            Self::Unreadable => Vec::new(),
        }
    }
}

impl ToSql for StoredTime {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(match self {
            Self::Nanoseconds(at) => ToSqlOutput::from(*at),
            Self::Text(text) => ToSqlOutput::Borrowed(ValueRef::Text(text)),
            Self::Unreadable => ToSqlOutput::Borrowed(ValueRef::Null),
        })
    }
}

/// A row of `events` as it is stored. Texts are bytes: damage may have made them something else.
pub(crate) struct StoredRow {
    pub(crate) pos: i64,
    pub(crate) stream: Vec<u8>,
    pub(crate) seq: u64,
    pub(crate) at: StoredTime,
    pub(crate) kind: Vec<u8>,
    pub(crate) version: i64,
    pub(crate) body: Vec<u8>,
    pub(crate) content: Option<Hash>,
    pub(crate) hash: Option<Hash>,
}

/// The columns that [`StoredRow::read`] expects, in its order.
pub(crate) const COLUMNS: &str = "pos, stream, seq, instant, kind, v, body, content, hash";

impl StoredRow {
    /// Reads a row; what is of another type than it should be is empty, and does not match the checksum.
    pub(crate) fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        let whole = |index| Ok::<_, rusqlite::Error>(row.get_ref(index)?.as_i64().unwrap_or(0));
        Ok(Self {
            pos: whole(0)?,
            stream: bytes(row.get_ref(1)?).to_vec(),
            seq: whole(2)?.unsigned_abs(),
            at: StoredTime::read(row.get_ref(3)?),
            kind: bytes(row.get_ref(4)?).to_vec(),
            version: whole(5)?,
            body: bytes(row.get_ref(6)?).to_vec(),
            content: short(row.get_ref(7)?),
            hash: short(row.get_ref(8)?),
        })
    }

    /// The checksum that the row should have after `previous`.
    pub(crate) fn checksum(&self, previous: Option<Hash>) -> Hash {
        let mut digest = Sha256::new();
        digest.update(previous.unwrap_or_default());
        digest.update(self.pos.to_le_bytes());
        digest.update(self.seq.to_le_bytes());
        digest.update(self.version.to_le_bytes());
        let content = self.content.as_ref().map_or(&[][..], |content| content);
        for part in [&self.stream[..], &self.at.text(), &self.kind, &self.body, content] {
            digest.update((part.len() as u64).to_le_bytes());
            digest.update(part);
        }
        truncate_digest(digest)
    }

    /// The error that names this event.
    pub(crate) fn damaged(&self, problem: &'static str) -> Fault {
        damaged(&self.stream, self.seq, self.pos, problem)
    }
}

pub(crate) fn damaged(stream: &[u8], seq: u64, pos: i64, problem: &'static str) -> Fault {
    let stream = String::from_utf8_lossy(stream).into_owned();
    Error::DamagedEvent { stream, seq, pos, problem }.into()
}

fn bytes(value: ValueRef<'_>) -> &[u8] {
    match value {
        ValueRef::Text(bytes) => bytes,
        ValueRef::Null | ValueRef::Integer(_) | ValueRef::Real(_) | ValueRef::Blob(_) => &[],
    }
}

/// A hash; one of another length or type matches nothing.
pub(crate) fn short(value: ValueRef<'_>) -> Option<Hash> {
    match value {
        ValueRef::Null => None,
        ValueRef::Blob(bytes) => Some(bytes.try_into().unwrap_or([0xFF; 16])),
        ValueRef::Integer(_) | ValueRef::Real(_) | ValueRef::Text(_) => Some([0xFF; 16]),
    }
}

/// Where one stream has been read up to.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Chain {
    pub(crate) seq: u64,
    pub(crate) hash: Option<Hash>,
}

impl Chain {
    /// Takes the next row of the stream, or says what is wrong with it.
    pub(crate) fn follow(&mut self, stored: &StoredRow) -> Result<(), Fault> {
        let expected = self.seq + 1;
        if stored.seq != expected {
            return Err(damaged(&stored.stream, expected, stored.pos, "it is missing"));
        }
        match (stored.hash, self.hash) {
            (None, Some(_)) => return Err(stored.damaged("it has no checksum")),
            (Some(hash), previous) if stored.checksum(previous) != hash => {
                return Err(stored.damaged("it does not match its checksum"));
            }
            (None, None) | (Some(_), _) => {}
        }
        (self.seq, self.hash) = (stored.seq, stored.hash);
        Ok(())
    }
}
