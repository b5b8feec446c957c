//! Aligned columns.

use unicode_width::UnicodeWidthStr as _;

/// A cell wider than this does not make its whole column wide.
const WIDEST: usize = 48;

/// Rows of text in columns as wide as their widest cell.
pub struct Table {
    rows: Vec<Vec<String>>,
    right: &'static [usize],
}

impl Table {
    /// A table with these headings; `right` names the columns that hold numbers.
    pub fn new(headings: &[&str], right: &'static [usize]) -> Self {
        Self { rows: vec![headings.iter().map(|&heading| heading.to_owned()).collect()], right }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    /// The lines, headings first.
    pub fn lines(&self) -> Vec<String> {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let widest = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells
                .map(|cell: &String| cell.width())
                .filter(|&width| width <= WIDEST)
                .max()
                .unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(widest).collect();
        self.rows.iter().map(|row| self.line(row, &widths)).collect()
    }

    fn line(&self, row: &[String], widths: &[usize]) -> String {
        let cells = row.iter().zip(widths).enumerate().map(|(column, (cell, &width))| {
            let space = " ".repeat(width.saturating_sub(cell.width()));
            if self.right.contains(&column) { space + cell } else { cell.clone() + &space }
        });
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    }
}
