//! The answer to a slash command as lines.

use windlass_coordinator::slash::{Block, Field};
use windlass_core::shown::{shown, shown_line};
use windlass_term::wrap::wrap;
use windlass_term::{Paint, Table};

use crate::text::{broken, padded, width};

/// A name wider than this does not push the values of the others aside.
const NAME_WIDTH: usize = 28;
/// With less room for the values beside the names, they stand below them.
const LEAST_VALUE: usize = 12;

/// The blocks one below the other, for a terminal of this width.
pub fn lines(blocks: &[Block], paint: Paint, columns: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for block in blocks {
        match block {
            Block::Words { text } => lines.extend(split(&wrap(&shown(text), columns))),
            Block::Heading { text } => lines.push(paint.bold(&shown_line(text))),
            Block::Fields { fields } => lines.extend(self::fields(fields, columns)),
            Block::Table { headings, rows, numbers } => {
                let headings: Vec<&str> = headings.iter().map(String::as_str).collect();
                let mut table = Table::new(&headings, numbers);
                for row in rows {
                    table.row(row.iter().map(|cell| shown_line(cell)).collect());
                }
                lines.extend(table.fit(columns));
            }
        }
    }
    lines
}

fn split(text: &str) -> Vec<String> {
    text.lines().map(str::to_owned).collect()
}

/// Names in one column and what they mean beside them; a long name has a line to itself.
fn fields(fields: &[Field], columns: usize) -> Vec<String> {
    let names = fields.iter().map(|field| width(&field.name));
    let widest = names.filter(|wide| *wide <= NAME_WIDTH.min(columns / 2)).max().unwrap_or(0);
    let widest = if columns < widest + 4 + LEAST_VALUE { 0 } else { widest };
    let mut lines = Vec::new();
    for Field { name, value } in fields {
        let name = shown_line(name);
        let (value, room) = (shown(value), columns.saturating_sub(widest + 4).max(10));
        let mut values = value.lines().flat_map(|line| broken(line, room));
        match width(&name) <= widest {
            true => {
                let first = values.next().unwrap_or_default();
                lines.push(format!("  {}  {first}", padded(&name, widest)));
            }
            false => lines.push(format!("  {name}")),
        }
        lines.extend(values.map(|line| format!("{}{line}", " ".repeat(widest + 4))));
    }
    lines
}
