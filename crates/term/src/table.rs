//! Aligned columns.

use crate::columns::width as columns_of;
use crate::wrap::wrap;

/// A cell wider than this does not make its whole column wide.
const WIDEST: usize = 48;

/// Rows of text in columns as wide as their widest cell.
pub struct Table {
    rows: Vec<Vec<String>>,
    right: Vec<usize>,
}

impl Table {
    /// A table with these headings; `right` names the columns that hold numbers.
    pub fn new(headings: &[&str], right: &[usize]) -> Self {
        let headings = headings.iter().map(|&heading| heading.to_owned()).collect();
        Self { rows: vec![headings], right: right.to_vec() }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    /// How wide its widest line is.
    pub fn width(&self) -> usize {
        self.lines().iter().map(|line| columns_of(line)).max().unwrap_or(0)
    }

    /// The lines where they fit into this many columns. Where they do not, each row becomes its first cell
    /// and below it the others, each behind its heading.
    pub fn fit(&self, columns: usize) -> Vec<String> {
        if self.width() <= columns {
            return self.lines();
        }
        let Some((headings, rows)) = self.rows.split_first() else { return Vec::new() };
        let mut lines = Vec::new();
        for row in rows {
            lines.extend(row.first().cloned());
            let cells = headings.iter().zip(row).skip(1).filter(|(_, cell)| !cell.is_empty());
            let cells = cells.map(|(heading, cell)| format!("{} {cell}", heading.to_lowercase()));
            let text = format!("  {}", cells.collect::<Vec<_>>().join(" · "));
            lines.extend(wrap(&text, columns).lines().map(str::to_owned));
        }
        lines
    }

    /// The lines, headings first.
    pub fn lines(&self) -> Vec<String> {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let widest = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells
                .map(|cell: &String| columns_of(cell))
                .filter(|&width| width <= WIDEST)
                .max()
                .unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(widest).collect();
        self.rows.iter().map(|row| self.line(row, &widths)).collect()
    }

    fn line(&self, row: &[String], widths: &[usize]) -> String {
        let cells = row.iter().zip(widths).enumerate().map(|(column, (cell, &width))| {
            let space = " ".repeat(width.saturating_sub(columns_of(cell)));
            if self.right.contains(&column) { space + cell } else { cell.clone() + &space }
        });
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_that_is_too_wide_becomes_a_list() {
        let mut table = Table::new(&["TASK", "AGE", "GOAL"], &[]);
        table.row(vec!["7K2M".into(), "5m".into(), "fix the build".into()]);
        table.row(vec!["8XYZ".into(), String::new(), "tidy up the tests".into()]);
        assert_eq!(table.fit(30), table.lines());
        insta::assert_snapshot!(table.fit(20).join("\n"), @r"
        7K2M
          age 5m · goal fix
          the build
        8XYZ
          goal tidy up the
          tests
        ");
    }
}
