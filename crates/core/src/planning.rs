//! Plans as other parts know them: what a manifest says about one of its tasks, and the words of issues.
//!
//! Invariant: what a task of a plan may use is fixed when the task is made. A manifest that changes later
//! changes no task that exists.

use serde::{Deserialize, Serialize};

use crate::id::PlanId;
use crate::plan::{Step, StepStatus, WorkingPlan};
use crate::string_enum;

/// The first step of every task of a plan (PL-058, PL-059); `{{task}}` stands for the task's name in the plan.
pub const STEP_0: &str = include_str!("prompts/step_0.md");

/// The last step of every task of a plan (PL-060…062).
pub const STEP_99: &str = include_str!("prompts/step_99.md");

string_enum! {
    /// How bad an issue is (PL-012), and how much can go wrong in a task (MS-216).
    Severity ("severity") {
        Low = "low",
        Medium = "medium",
        High = "high",
        Critical = "critical",
    }
}

string_enum! {
    /// What became of an issue (PL-071).
    Resolution ("resolution") {
        Fixed = "fixed",
        NotAnIssue = "not_an_issue",
        Duplicate = "duplicate",
        WontFix = "wont_fix",
    }
}

string_enum! {
    /// What a task of a plan changes (MS-216), in the words that skills use for their side effects.
    #[derive(Default)]
    Mutation ("mutation") {
        /// It only reads.
        None = "none",
        #[default]
        CodeEdits = "code-edits",
        ProductionMutation = "production-mutation",
    }
}

string_enum! {
    /// Whether a person agrees before a task of a plan starts (MS-216).
    #[derive(Default)]
    Approval ("approval") {
        #[default]
        None = "none",
        Required = "required",
    }
}

/// The place of a task in a plan, and what the plan lets it use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanTask {
    pub plan: PlanId,
    /// The plan's own name.
    pub name: String,
    pub phase: String,
    /// The task's name in the plan.
    pub key: String,
    /// The agent of the roster that works on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// What that agent's definition tells it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_prompt: Option<String>,
    /// The only skills that it sees; all where nothing is said (C-28).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skills: Option<Vec<String>>,
    /// The only MCP servers that it reaches; all where nothing is said (C-30).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub servers: Option<Vec<String>>,
    /// The only tools that it may call, besides those for plans, notes and questions; all where nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    /// How much can go wrong in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub risk: Option<Severity>,
    #[serde(default)]
    pub mutation: Mutation,
    #[serde(default)]
    pub approval: Approval,
    /// Commands that must pass before it is done.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub verification: Vec<String>,
}

impl PlanTask {
    /// A text of the plan with the task's name in it.
    pub fn fill(&self, text: &str) -> String {
        text.trim_end().replace("{{task}}", &self.key)
    }

    /// The working plan that the task begins with.
    pub fn steps(&self) -> WorkingPlan {
        let step = |id: &str, description: String| Step {
            id: id.to_owned(),
            description,
            status: StepStatus::Pending,
            notes: None,
        };
        let first_line = |text: &str| self.fill(text.lines().next().unwrap_or_default());
        WorkingPlan {
            steps: vec![
                step("0", first_line(STEP_0)),
                step("1", format!("Do the work of task {} of plan {}", self.key, self.name)),
                step("99", first_line(STEP_99)),
            ],
            current_focus: None,
            overall_approach: None,
        }
    }

    /// Whether a tool may be called by one of these names. A name of the list is a tool's, an alias of it, or
    /// `mcp:server:tool` and `mcp:server` for tools of servers.
    pub fn allows(&self, names: &[&str]) -> bool {
        let Some(tools) = &self.tools else { return true };
        let allowed = |listed: &String| names.iter().any(|name| is_same_tool(listed, name));
        tools.iter().any(allowed)
    }
}

/// Whether a name of a list means a tool of this name.
fn is_same_tool(listed: &str, name: &str) -> bool {
    if listed.eq_ignore_ascii_case(name) {
        return true;
    }
    let Some(server) = listed.strip_prefix("mcp:") else { return false };
    let wire = |text: &str| text.replace(':', "__");
    let Some(tool) = name.strip_prefix("mcp__").or_else(|| name.strip_prefix("mcp:")) else {
        return false;
    };
    let (server, tool) = (wire(server), wire(tool));
    tool == server || tool.strip_prefix(&server).is_some_and(|rest| rest.starts_with("__"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(tools: &[&str]) -> PlanTask {
        PlanTask {
            plan: PlanId::derived("/project", "demo"),
            name: "demo".to_owned(),
            phase: "p1".to_owned(),
            key: "t01".to_owned(),
            agent: None,
            agent_prompt: None,
            skills: None,
            servers: None,
            tools: Some(tools.iter().map(|tool| (*tool).to_owned()).collect()),
            risk: None,
            mutation: Mutation::CodeEdits,
            approval: Approval::None,
            verification: Vec::new(),
        }
    }

    /// PL-007: tools by their name, by the name that other agents use, and by server.
    #[test]
    fn a_list_of_tools_names_them_in_several_ways() {
        let task = task(&["Read", "bash", "mcp:context7:query-docs", "mcp:files"]);
        for names in [
            &["read", "Read"][..],
            &["bash"],
            &["mcp__context7__query-docs"],
            &["mcp__files__write"],
            &["mcp:files:write"],
        ] {
            assert!(task.allows(names), "{names:?}");
        }
        for names in
            [&["write", "Write"][..], &["mcp__context7__other"], &["mcp__files2__read"], &["mcp__"]]
        {
            assert!(!task.allows(names), "{names:?}");
        }
        assert!(PlanTask { tools: None, ..task }.allows(&["write"]));
    }
}
