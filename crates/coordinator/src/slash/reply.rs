//! What a command answers: blocks that a terminal, a page or a program can each draw in its own way.

use std::fmt;

use serde::{Deserialize, Serialize};
use windlass_core::axes::Axes;
use windlass_core::id::TaskId;

/// The answer to a slash command.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reply {
    /// The command, without its slash.
    pub command: String,
    pub blocks: Vec<Block>,
    /// What the surface has to do or know.
    #[serde(default, skip_serializing_if = "Effect::is_none")]
    pub effect: Effect,
}

/// A part of an answer. Texts are not escaped for terminals; a surface does that.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "block", rename_all = "snake_case")]
pub enum Block {
    /// A sentence, or a few.
    Words { text: String },
    /// The title of what follows.
    Heading { text: String },
    /// Names and values.
    Fields { fields: Vec<Field> },
    /// Rows under headings.
    Table {
        headings: Vec<String>,
        rows: Vec<Vec<String>>,
        /// The columns that hold numbers.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        numbers: Vec<usize>,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Field {
    pub name: String,
    pub value: String,
}

/// What the surface has to do or know after a command.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(tag = "effect", rename_all = "snake_case")]
pub enum Effect {
    #[default]
    None,
    /// The axes are others now, or will be.
    Axes { axes: Axes },
    /// A task has something to do. A surface that drives its tasks itself drives this one.
    Work { task: TaskId },
    /// A task was cancelled or paused, or is about to be.
    Steered { task: TaskId },
    /// The conversation is over.
    Cleared,
}

impl Effect {
    pub const fn is_none(&self) -> bool {
        matches!(self, Self::None)
    }
}

impl Reply {
    /// An answer in words.
    pub(crate) fn words(command: &str, text: impl Into<String>) -> Self {
        Self::of(command, vec![Block::Words { text: text.into() }])
    }

    pub(crate) fn of(command: &str, blocks: Vec<Block>) -> Self {
        Self { command: command.to_owned(), blocks, effect: Effect::None }
    }

    pub(crate) fn with(mut self, effect: Effect) -> Self {
        self.effect = effect;
        self
    }
}

impl Block {
    pub(crate) fn heading(text: impl Into<String>) -> Self {
        Self::Heading { text: text.into() }
    }

    pub(crate) fn fields<N: Into<String>>(fields: impl IntoIterator<Item = (N, String)>) -> Self {
        let field = |(name, value): (N, String)| Field { name: name.into(), value };
        Self::Fields { fields: fields.into_iter().map(field).collect() }
    }

    pub fn table(headings: &[&str], numbers: &[usize], rows: Vec<Vec<String>>) -> Self {
        let headings = headings.iter().map(|heading| (*heading).to_owned()).collect();
        Self::Table { headings, rows, numbers: numbers.to_vec() }
    }
}

/// As plain text, for surfaces that have nothing better.
impl fmt::Display for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, block) in self.blocks.iter().enumerate() {
            if place > 0 {
                writeln!(f)?;
            }
            write!(f, "{block}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Words { text } | Self::Heading { text } => f.write_str(text),
            Self::Fields { fields } => {
                let width = fields.iter().map(|field| field.name.chars().count()).max();
                for (place, Field { name, value }) in fields.iter().enumerate() {
                    let gap = if place > 0 { "\n" } else { "" };
                    write!(f, "{gap}{name:<width$}  {value}", width = width.unwrap_or(0))?;
                }
                Ok(())
            }
            Self::Table { headings, rows, numbers } => plain_table(f, headings, rows, numbers),
        }
    }
}

fn plain_table(
    f: &mut fmt::Formatter<'_>,
    headings: &[String],
    rows: &[Vec<String>],
    numbers: &[usize],
) -> fmt::Result {
    let lines: Vec<&[String]> =
        std::iter::once(headings).chain(rows.iter().map(Vec::as_slice)).collect();
    let width = |column: usize| {
        let cells = lines.iter().filter_map(|line| line.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..headings.len()).map(width).collect();
    for (place, line) in lines.iter().enumerate() {
        let mut text = String::new();
        for (column, cell) in line.iter().enumerate() {
            let width = widths.get(column).copied().unwrap_or(0);
            match numbers.contains(&column) {
                true => text.push_str(&format!("{cell:>width$}  ")),
                false => text.push_str(&format!("{cell:<width$}  ")),
            }
        }
        let gap = if place > 0 { "\n" } else { "" };
        write!(f, "{gap}{}", text.trim_end())?;
    }
    Ok(())
}
