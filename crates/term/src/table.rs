//! Tables of text: each column is as wide as its widest cell, and a cell that is too long is wrapped.

use crate::columns::width as columns_of;
use crate::wrap::wrap;

/// A cell wider than this does not make its whole column wide, unless most cells of the column are.
const WIDEST: usize = 48;
/// Columns of text whose cells are broken keep at least this width: narrower ones are hard to read.
const NARROWEST: usize = 20;
/// Between two columns.
const GAP: usize = 2;

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

    /// The lines where they fit into this many columns, if need be with the texts in the widest columns broken between
    /// words. Where that is not enough, each row becomes its first cell and below it the others, each after its
    /// heading.
    pub fn fit(&self, columns: usize) -> Vec<String> {
        if self.width() <= columns {
            return self.lines();
        }
        if let Some(widths) = self.narrow_columns(columns) {
            return self.rows.iter().flat_map(|row| self.break_cells(row, &widths)).collect();
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
            let widths: Vec<usize> = cells.map(|cell: &String| columns_of(cell)).collect();
            let wide = widths.iter().filter(|&&width| width > WIDEST).count();
            // The first is the heading.
            let are_wide = wide * 2 >= widths.len().max(2);
            let counted = widths.into_iter().filter(|&width| are_wide || width <= WIDEST);
            counted.max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(widest).collect();
        self.rows.iter().map(|row| self.line(row, &widths)).collect()
    }

    /// How wide each column is, where the widest ones are narrowed until all fit; `None` where they cannot be.
    fn narrow_columns(&self, columns: usize) -> Option<Vec<usize>> {
        let count = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let cells = |at: usize| self.rows.iter().filter_map(move |row| row.get(at));
        let widest = |at: usize| cells(at).map(|cell| columns_of(cell)).max().unwrap_or(0);
        let mut widths: Vec<usize> = (0..count).map(widest).collect();
        let least = |at: usize| {
            let words = cells(at).flat_map(|cell| cell.split(' '));
            let longest = words.map(columns_of).max().unwrap_or(0);
            let is_number = self.right.contains(&at);
            if is_number { widths[at] } else { longest.max(NARROWEST).min(widths[at]) }
        };
        let least: Vec<usize> = (0..count).map(least).collect();
        let room = columns.checked_sub(GAP * count.saturating_sub(1))?;
        while widths.iter().sum::<usize>() > room {
            let can_shrink = (0..count).filter(|at| widths[*at] > least[*at]);
            let at = can_shrink.max_by_key(|at| widths[*at])?;
            widths[at] -= 1;
        }
        Some(widths)
    }

    /// A row whose cells are broken into lines of these widths.
    fn break_cells(&self, row: &[String], widths: &[usize]) -> Vec<String> {
        let cell = |(cell, width): (&String, &usize)| -> Vec<String> {
            wrap(cell, *width).lines().map(|line| line.trim_start().to_owned()).collect()
        };
        let cells: Vec<Vec<String>> = row.iter().zip(widths).map(cell).collect();
        let height = cells.iter().map(Vec::len).max().unwrap_or(0);
        let part = |at: usize| -> Vec<String> {
            cells.iter().map(|lines| lines.get(at).cloned().unwrap_or_default()).collect()
        };
        (0..height).map(|at| self.line(&part(at), widths)).collect()
    }

    fn line(&self, row: &[String], widths: &[usize]) -> String {
        let cells = row.iter().zip(widths).enumerate().map(|(column, (cell, &width))| {
            let space = " ".repeat(width.saturating_sub(columns_of(cell)));
            if self.right.contains(&column) { space + cell } else { cell.clone() + &space }
        });
        cells.collect::<Vec<_>>().join(&" ".repeat(GAP)).trim_end().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One long cell leaves the others where they are; a column of long cells has its next heading where it belongs.
    #[test]
    fn a_column_of_long_cells_is_as_wide_as_they_are() {
        let long = "p".repeat(WIDEST + 10);
        let mut table = Table::new(&["PATH", "WHY"], &[]);
        table.row(vec![long.clone(), "old".into()]);
        let [heading, row] = table.lines().try_into().unwrap();
        assert_eq!(heading.find("WHY"), row.find("old"));
        table.row(vec!["a".into(), "new".into()]);
        table.row(vec!["b".into(), "new".into()]);
        let lines = table.lines();
        assert_eq!((lines[0].find("WHY"), lines[2].find("new")), (Some(6), Some(6)), "{lines:?}");
    }

    #[test]
    fn the_texts_of_a_table_that_is_too_wide_are_broken() {
        let mut table = Table::new(&["TIME", "EVENT", "WHAT", "N"], &[3]);
        let what = "the script has 10 replies, and reply 11 was asked for";
        table.row(vec!["14:23".into(), "failed".into(), what.into(), "7".into()]);
        table.row(vec!["14:24".into(), "ended".into(), String::new(), "12".into()]);
        insta::assert_snapshot!(table.fit(50).join("\n"), @r"
        TIME   EVENT   WHAT                              N
        14:23  failed  the script has 10 replies, and    7
                       reply 11 was asked for
        14:24  ended                                    12
        ");
        // A word is never broken: what is one can be copied.
        let mut table = Table::new(&["TASK", "GOAL"], &[]);
        table.row(vec!["task_5KTC4DNEYG4EPNASC47BENJ9JF".into(), "fix the whole build".into()]);
        assert_eq!(table.fit(40)[0], "task_5KTC4DNEYG4EPNASC47BENJ9JF");
    }

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
