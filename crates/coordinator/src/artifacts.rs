//! What tasks and people put into files: one handle for each kind.

use crate::{Changes, Coordinator, Deliverables, Outputs, Pictures};

/// What commands printed, and the pictures and files of tasks.
#[derive(Clone, Copy)]
pub struct Artifacts<'a> {
    pub(crate) coordinator: &'a Coordinator,
}

impl<'a> Artifacts<'a> {
    /// What commands printed.
    pub fn outputs(self) -> Outputs<'a> {
        Outputs { coordinator: self.coordinator }
    }

    /// Pictures that people attach to goals and messages.
    pub fn pictures(self) -> Pictures<'a> {
        Pictures { coordinator: self.coordinator }
    }

    /// What tasks have changed in files.
    pub fn changes(self) -> Changes<'a> {
        Changes { coordinator: self.coordinator }
    }

    /// What tasks have published.
    pub fn deliverables(self) -> Deliverables<'a> {
        Deliverables { coordinator: self.coordinator }
    }
}
