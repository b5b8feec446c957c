//! Values as columns hold them: instants, ids, words and JSON.

use std::str::FromStr;

use jiff::Timestamp;
use rusqlite::types::FromSql;
use rusqlite::{Connection, Params, Row};
use windlass_core::id::TaskId;
use windlass_core::status::TaskStatus;

use crate::Error;
use crate::error::Fault;

/// An instant in ISO form with a fixed number of digits, so that text order is time order (MS-135).
pub(crate) fn instant(at: Timestamp) -> String {
    format!("{at:.9}")
}

/// Parses an id, an instant or the name of a variant.
pub(crate) fn parse<T: FromStr>(table: &'static str, text: &str) -> Result<T, Fault> {
    text.parse().map_err(|_| Error::Malformed { table, value: text.to_owned() }.into())
}

/// The tasks that a query finds, in its order.
pub(crate) fn task_ids(
    tx: &Connection,
    sql: &str,
    values: impl Params,
) -> Result<Vec<TaskId>, Fault> {
    let mut statement = tx.prepare_cached(sql)?;
    let mut rows = statement.query(values)?;
    let mut ids = Vec::new();
    while let Some(row) = rows.next()? {
        ids.push(parse("tasks", &row.get::<_, String>(0)?)?);
    }
    Ok(ids)
}

/// The statuses that `wanted` holds for, as a JSON array that a query reads with `json_each`.
pub(crate) fn statuses(wanted: impl Fn(TaskStatus) -> bool) -> String {
    json(&TaskStatus::ALL.iter().copied().filter(|status| wanted(*status)).collect::<Vec<_>>())
}

/// A row of one table, with readers that name the table when a value makes no sense.
pub(crate) struct Columns<'a, 'b> {
    pub(crate) table: &'static str,
    pub(crate) row: &'a Row<'b>,
}

impl Columns<'_, '_> {
    pub(crate) fn raw<T: FromSql>(&self, column: &str) -> Result<T, Fault> {
        Ok(self.row.get(column)?)
    }

    pub(crate) fn text<T: FromStr>(&self, column: &str) -> Result<T, Fault> {
        parse(self.table, &self.raw::<String>(column)?)
    }

    pub(crate) fn optional<T: FromStr>(&self, column: &str) -> Result<Option<T>, Fault> {
        let text: Option<String> = self.raw(column)?;
        text.map(|text| parse(self.table, &text)).transpose()
    }

    pub(crate) fn json<T: serde::de::DeserializeOwned>(
        &self,
        column: &str,
    ) -> Result<Option<T>, Fault> {
        let text: Option<String> = self.raw(column)?;
        let Some(text) = text else { return Ok(None) };
        match serde_json::from_str(&text) {
            Ok(value) => Ok(Some(value)),
            Err(_) => Err(Error::Malformed { table: self.table, value: text }.into()),
        }
    }
}

/// A value of a type that windlass defines, as JSON.
pub(crate) fn json(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).expect("our types hold only JSON-representable data")
}
