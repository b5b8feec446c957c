//! Variables that a command sets: what is assigned, and all that an assignment means.

use super::Walk;
use crate::environment::{self, Scope};
use crate::expand::{self, combine};
use crate::state::{Arg, Values};
use crate::syntax::{Assign, Value};

/// The variables of the shell at this point of a walk.
pub(crate) struct Variables<'w, 'c> {
    pub(super) walk: &'w mut Walk<'c>,
}

impl Variables<'_, '_> {
    /// Sets a variable by a builtin, with all that an assignment means.
    pub(crate) fn set(&mut self, name: &str, values: Values) {
        environment::judge_assignment(self.walk, name, &values, Scope::Shell);
        self.evaluate_integer(name, &values);
        self.walk.state.set(name, values);
    }

    /// What is assigned to an integer is an expression.
    pub(super) fn evaluate_integer(&mut self, name: &str, values: &Values) {
        if self.walk.state.integers.contains(name) {
            for fields in values {
                self.walk.expander().arithmetic(&expand::join_fields(fields).text);
            }
        }
    }

    /// What an assignment assigns, in each way it may read.
    pub(super) fn values(&mut self, assign: &Assign) -> Values {
        let walk = &mut *self.walk;
        if let Some(index) = &assign.index {
            walk.expander().arithmetic(index);
        }
        match &assign.value {
            Value::One(word) => {
                let variants = walk.expander().word(word).into_iter();
                variants.map(|fields| vec![expand::join_fields(&fields)]).collect()
            }
            Value::Many(elements) => {
                let (mut all, mut in_order) = (vec![Vec::new()], true);
                for (position, (key, word)) in elements.iter().enumerate() {
                    if let Some(key) = key {
                        let key = walk.expander().arithmetic(key);
                        in_order &= key.known().is_some_and(|key| key.parse() == Ok(position));
                    }
                    let next = walk.expander().word(word);
                    all = combine(all, &next);
                }
                // Which element has which key is not followed.
                if in_order { all } else { vec![vec![Arg::unknown()]] }
            }
        }
    }
}
