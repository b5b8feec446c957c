//! Text that the shell evaluates once more: arithmetic, and names of variables with an index.
//!
//! `x='a[$(rm y)]'; echo $((x))` runs `rm`: arithmetic takes the value of `x` as an expression, and an index in
//! an expression is expanded.

use super::{Expander, join_fields};
use crate::state::Arg;

/// How many values of values are followed.
const DEEPEST_VALUE: usize = 6;

impl Expander<'_, '_> {
    /// Evaluates an arithmetic expression, and the values of the variables that it names.
    pub(crate) fn arithmetic(&mut self, text: &str) -> Arg {
        let expanded = self.document(text);
        if expanded.text != text {
            self.evaluate_again(&expanded.text);
        }
        self.evaluate_names(&expanded.text, DEEPEST_VALUE);
        expanded
    }

    /// A word used as a variable's name: an index in it is evaluated, even where it was quoted.
    pub(crate) fn evaluate_index(&mut self, name: &Arg) {
        let Some((_, index)) = name.text.split_once('[') else { return };
        self.evaluate_again(index);
        self.evaluate_names(index, DEEPEST_VALUE);
    }

    /// The values of the names in a word that may be compared as a number.
    pub(crate) fn evaluate_values(&mut self, word: &Arg) {
        self.evaluate_names(&word.text, DEEPEST_VALUE);
    }

    fn evaluate_again(&mut self, text: &str) {
        if text.contains("$(") || text.contains('`') || text.contains("${") {
            let known = text.replace(crate::state::UNKNOWN, "");
            self.document(&known);
        }
    }

    /// The values of the names in an expression are expressions themselves.
    fn evaluate_names(&mut self, text: &str, depth: usize) {
        if depth == 0 {
            return;
        }
        for name in text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_') {
            if !name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
                continue;
            }
            for fields in self.walk.state.value(name).unwrap_or_default() {
                let value = join_fields(&fields).text;
                // Only an index is expanded again; plain text is a name or an error.
                if value.contains('[') || value.contains('`') || value.contains("$(") {
                    self.evaluate_again(&value);
                }
                if value != text {
                    self.evaluate_names(&value, depth - 1);
                }
            }
        }
    }
}
