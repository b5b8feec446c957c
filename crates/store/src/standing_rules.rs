//! Standing rules: what a person allows in advance, for all projects or for one. Kept here and never in a
//! project's file, so that no clone can bring its own.

use jiff::Timestamp;

use crate::row::{self, Columns};
use crate::{Error, Level, Store};

/// How many rules there may be; all of them are tried at every call.
pub const MAX_STANDING_RULES: u32 = 500;

/// A rule to keep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewStandingRule {
    /// Which commands or tools, as a pattern.
    pub pattern: String,
    /// The project's directory; `None` for all.
    pub directory: Option<String>,
    /// Who gives it.
    pub by: String,
}

/// A rule that holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StandingRule {
    pub number: i64,
    pub pattern: String,
    /// The project's directory; `None` for all.
    pub directory: Option<String>,
    /// Who gave it.
    pub by: String,
    pub given_at: Timestamp,
}

/// What people allow in advance.
#[derive(Clone, Copy)]
pub struct StandingRules<'a> {
    pub(crate) store: &'a Store,
}

impl StandingRules<'_> {
    /// Keeps a rule and returns its number; the number of the one that already says the same.
    pub async fn add(self, at: Timestamp, rule: NewStandingRule) -> Result<i64, Error> {
        self.store
            .write(Level::Synced, move |tx| {
                let count: u32 =
                    tx.query_row("SELECT count(*) FROM standing_rules", (), |row| row.get(0))?;
                if count >= MAX_STANDING_RULES {
                    return Err(Error::TooManyRules { limit: MAX_STANDING_RULES }.into());
                }
                tx.prepare_cached(
                    "INSERT OR IGNORE INTO standing_rules (pattern, directory, given_by, given_at)
                     VALUES (?1, ?2, ?3, ?4)",
                )?
                .execute((
                    &rule.pattern,
                    rule.directory.as_deref().unwrap_or_default(),
                    &rule.by,
                    row::instant(at),
                ))?;
                let directory = rule.directory.as_deref().unwrap_or_default();
                Ok(tx.query_row(
                    "SELECT id FROM standing_rules WHERE pattern = ?1 AND directory = ?2",
                    (&rule.pattern, directory),
                    |row| row.get(0),
                )?)
            })
            .await
    }

    /// Every rule, oldest first.
    pub fn all(self) -> Result<Vec<StandingRule>, Error> {
        self.store.read(|tx| {
            let mut statement = tx.prepare_cached(
                "SELECT id, pattern, directory, given_by, given_at FROM standing_rules ORDER BY id",
            )?;
            let mut rows = statement.query(())?;
            let mut found = Vec::new();
            while let Some(row) = rows.next()? {
                let of = Columns { table: "standing_rules", row };
                let directory: String = of.raw("directory")?;
                found.push(StandingRule {
                    number: of.raw("id")?,
                    pattern: of.raw("pattern")?,
                    directory: Some(directory).filter(|directory| !directory.is_empty()),
                    by: of.raw("given_by")?,
                    given_at: of.text("given_at")?,
                });
            }
            Ok(found)
        })
    }

    /// Takes a rule back; whether there was one of this number.
    pub async fn remove(self, number: i64) -> Result<bool, Error> {
        self.store
            .write(Level::Synced, move |tx| {
                let removed = tx
                    .prepare_cached("DELETE FROM standing_rules WHERE id = ?1")?
                    .execute((number,))?;
                Ok(removed > 0)
            })
            .await
    }
}
