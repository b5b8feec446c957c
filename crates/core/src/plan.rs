//! The agent's working plan: the whole of it in every `update_plan` call, and its markdown (ES-139…149).

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use crate::string_enum;

string_enum! {
    /// How far one step is.
    StepStatus ("step status") {
        Pending = "pending",
        /// Being worked on.
        InProgress = "in_progress",
        Done = "done",
        /// Cannot continue for now.
        Blocked = "blocked",
        /// Not needed after all.
        Skipped = "skipped",
    }
}

impl StepStatus {
    /// The box in front of the step (ES-148).
    pub const fn icon(self) -> &'static str {
        match self {
            Self::Pending => "[ ]",
            Self::InProgress => "[>]",
            Self::Done => "[x]",
            Self::Blocked => "[!]",
            Self::Skipped => "[-]",
        }
    }
}

/// One step of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// The agent's own short name for it.
    pub id: String,
    /// What is to be done.
    pub description: String,
    /// How far it is.
    pub status: StepStatus,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notes: Option<String>,
}

/// A whole plan; there are no partial updates (ES-025).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkingPlan {
    /// The steps, in order.
    pub steps: Vec<Step>,
    /// What is being worked on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current_focus: Option<String>,
    /// How the goal is approached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overall_approach: Option<String>,
}

impl WorkingPlan {
    /// How many steps are done.
    pub fn done(&self) -> usize {
        self.steps.iter().filter(|step| step.status == StepStatus::Done).count()
    }

    /// The text of `.plan.md` (ES-147, ES-149).
    pub fn markdown(&self) -> String {
        let mut text = String::from("# Execution Plan\n\n");
        if let Some(approach) = &self.overall_approach {
            let _ = writeln!(text, "**Approach**: {approach}\n");
        }
        if let Some(focus) = &self.current_focus {
            let _ = writeln!(text, "**Current focus**: {focus}\n");
        }
        text.push_str("## Steps\n\n");
        for Step { id, description, status, notes } in &self.steps {
            let _ = write!(text, "- {} **{id}**: {description}", status.icon());
            if let Some(notes) = notes {
                let _ = write!(text, " — _{notes}_");
            }
            text.push('\n');
        }
        text
    }

    /// What the agent reads after an update (ES-146).
    pub fn acknowledgement(&self) -> String {
        let (done, total) = (self.done(), self.steps.len());
        format!("Plan updated ({done}/{total} done).\n\n{}", self.markdown())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// ES-146, ES-147, ES-148, ES-149
    #[test]
    fn a_plan_is_written_as_markdown_with_boxes() {
        let step = |id: &str, status, notes: Option<&str>| Step {
            id: id.into(),
            description: format!("do {id}"),
            status,
            notes: notes.map(Into::into),
        };
        let plan = WorkingPlan {
            steps: vec![
                step("1", StepStatus::Done, Some("went well")),
                step("2", StepStatus::InProgress, None),
                step("3", StepStatus::Pending, None),
                step("4", StepStatus::Blocked, None),
                step("5", StepStatus::Skipped, None),
            ],
            current_focus: Some("the second".into()),
            overall_approach: Some("one by one".into()),
        };
        insta::assert_snapshot!(plan.acknowledgement(), @r"
        Plan updated (1/5 done).

        # Execution Plan

        **Approach**: one by one

        **Current focus**: the second

        ## Steps

        - [x] **1**: do 1 — _went well_
        - [>] **2**: do 2
        - [ ] **3**: do 3
        - [!] **4**: do 4
        - [-] **5**: do 5
        ");
    }
}
