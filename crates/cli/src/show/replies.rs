//! The answer to a slash command, in a terminal or a pipe.

use unicode_width::UnicodeWidthStr as _;
use windlass_coordinator::slash::{Block, Field, Reply};
use windlass_core::shown::{shown, shown_line};
use windlass_term::wrap::wrap;
use windlass_term::{Table, TerminalStyle};

use super::{out, print_table};

/// A name wider than this does not push the values of the others aside.
const NAME_WIDTH: usize = 28;

/// Prints an answer on stdout.
pub fn print(reply: &Reply, style: TerminalStyle) {
    print_blocks(&reply.blocks, style);
}

/// Prints the parts of an answer on stdout.
pub fn print_blocks(blocks: &[Block], style: TerminalStyle) {
    let mut after_heading = true;
    for block in blocks {
        if !after_heading {
            out("");
        }
        after_heading = matches!(block, Block::Heading { .. });
        match block {
            Block::Words { text } => out(&wrap_words(&shown(text), style, 0)),
            Block::Heading { text } => out(&style.results.bold(&shown_line(text))),
            Block::Fields { fields } => print_fields(fields, style),
            Block::Table { headings, rows, numbers } => {
                let headings: Vec<&str> = headings.iter().map(String::as_str).collect();
                let mut table = Table::new(&headings, numbers);
                for row in rows {
                    table.row(row.iter().map(|cell| shown_line(cell)).collect());
                }
                print_table(&table);
            }
        }
    }
}

/// Names in one column and what they mean beside them; a long name has a line to itself.
fn print_fields(fields: &[Field], style: TerminalStyle) {
    let names = fields.iter().map(|field| field.name.width());
    let width = names.filter(|&width| width <= NAME_WIDTH).max().unwrap_or(0);
    for Field { name, value } in fields {
        let (name, value) = (shown_line(name), wrap_words(&shown(value), style, width + 4));
        let value = value.replace('\n', &format!("\n{:indent$}", "", indent = width + 4));
        let space = " ".repeat(width.saturating_sub(name.width()));
        match name.width() <= width {
            true => out(&format!("  {name}{space}  {value}")),
            false => out(&format!("  {name}\n{:indent$}{value}", "", indent = width + 4)),
        }
    }
}

/// Broken between words on a terminal, elsewhere unchanged.
fn wrap_words(text: &str, style: TerminalStyle, indent: usize) -> String {
    match style.is_stdout_terminal {
        true => wrap(text, style.line_width().saturating_sub(indent).max(20)),
        false => text.to_owned(),
    }
}
