//! What belongs to a plan as any surface can draw it.

use windlass_core::text::one_line;
use windlass_plan::{Plan, Snapshot};
use windlass_store::{Decision, Issue};

use super::Activation;
use crate::slash::Block;

/// How wide a text of a row gets.
const WIDTH: usize = 60;

/// Names in one line, or `none`.
fn names(list: &[String]) -> String {
    match list.is_empty() {
        true => "none".to_owned(),
        false => list.join(", "),
    }
}

impl Activation {
    /// What was loaded, exactly.
    pub fn blocks(&self) -> Vec<Block> {
        let scope = |is_named: bool| if is_named { "" } else { " (all of the project)" };
        let mut blocks = vec![Block::fields([
            ("plan", format!("{} ({})", self.name, self.title)),
            ("file", self.path.clone()),
            ("skills", format!("{}{}", names(&self.skills), scope(self.names_skills))),
            (
                "MCP servers",
                format!("{}{}", names(&self.mcp_servers), scope(self.names_mcp_servers)),
            ),
            ("agents", names(&self.agents)),
            ("tasks", format!("{} in {} phases", self.tasks, self.phases)),
        ])];
        if !self.finished.is_empty() {
            let text = format!("finished before: {}", names(&self.finished));
            blocks.push(Block::Words { text });
        }
        let notices = self.notices.iter().map(|text| Block::Words { text: text.clone() });
        blocks.extend(notices);
        blocks
    }
}

/// A plan as its manifest says it.
pub fn plan_blocks(plan: &Plan) -> Vec<Block> {
    let all = |list: &Option<Vec<String>>| {
        list.as_ref().map_or_else(|| "all of the project".to_owned(), |list| names(list))
    };
    let agents: Vec<_> = plan.assigned_agents.iter().map(|agent| agent.name.clone()).collect();
    let rows = plan.tasks().map(|(phase, task)| {
        let list = |list: &Option<Vec<String>>| list.as_ref().map(|list| names(list));
        vec![
            phase.id.clone(),
            task.id.clone(),
            plan.agent_of(phase, task).unwrap_or_default().to_owned(),
            task.depends_on.join(", "),
            list(&task.skills).unwrap_or_else(|| "as the plan".to_owned()),
            list(&task.tools).unwrap_or_else(|| "all".to_owned()),
            task.title.clone(),
        ]
    });
    vec![
        Block::fields([
            ("plan", format!("{} ({})", plan.id, plan.title)),
            ("skills", all(&plan.required_skills)),
            ("MCP servers", all(&plan.required_mcp_tools)),
            ("agents", names(&agents)),
        ]),
        Block::table(
            &["PHASE", "TASK", "AGENT", "AFTER", "SKILLS", "TOOLS", "TITLE"],
            &[],
            rows.collect(),
        ),
    ]
}

/// Issues as a table.
pub fn issue_blocks(issues: &[Issue]) -> Vec<Block> {
    if issues.is_empty() {
        return vec![Block::Words { text: "There are no issues.".to_owned() }];
    }
    let row = |issue: &Issue| {
        let state = issue.resolution.map_or("open".to_owned(), |resolution| resolution.to_string());
        vec![
            issue.id.to_string(),
            issue.severity.to_string(),
            issue.task_id.clone().unwrap_or_default(),
            issue.owner_team.clone().unwrap_or_default(),
            state,
            one_line(&issue.description, WIDTH),
        ]
    };
    let rows = issues.iter().map(row).collect();
    vec![Block::table(&["ISSUE", "SEVERITY", "TASK", "OWNER", "STATE", "DESCRIPTION"], &[], rows)]
}

/// Decisions as a table.
pub fn decision_blocks(decisions: &[Decision]) -> Vec<Block> {
    if decisions.is_empty() {
        return vec![Block::Words { text: "There are no decisions.".to_owned() }];
    }
    let row = |decision: &Decision| {
        vec![
            decision.id.to_string(),
            decision.task_id.clone().unwrap_or_default(),
            one_line(&decision.title, WIDTH),
            one_line(&decision.reasoning, WIDTH),
            decision.alternatives.join(", "),
        ]
    };
    let rows = decisions.iter().map(row).collect();
    vec![Block::table(&["DECISION", "TASK", "TITLE", "REASONING", "ALTERNATIVES"], &[], rows)]
}

/// A snapshot, field by field.
pub fn snapshot_blocks(snapshot: &Snapshot) -> Vec<Block> {
    let count = |count: usize| if count == 0 { "none".to_owned() } else { count.to_string() };
    let mut blocks = vec![Block::fields([
        ("plan", snapshot.plan.clone()),
        ("task", snapshot.task.clone()),
        ("timestamp", snapshot.timestamp.to_string()),
        ("failingTests", count(snapshot.failing_tests.len())),
        ("techDebt", count(snapshot.tech_debt.len())),
        ("openDecisions", count(snapshot.open_decisions.len())),
        ("nextTaskIntent", snapshot.next_task_intent.clone()),
    ])];
    if !snapshot.failing_tests.is_empty() {
        let tests = snapshot.failing_tests.iter();
        let rows =
            tests.map(|one| vec![one.file.clone(), one.test_name.clone(), one.error.clone()]);
        blocks.push(Block::table(&["FAILING TEST IN", "NAME", "ERROR"], &[], rows.collect()));
    }
    if !snapshot.tech_debt.is_empty() {
        let debts = snapshot.tech_debt.iter();
        let rows =
            debts.map(|one| vec![one.file.clone(), one.what.clone(), one.why_deferred.clone()]);
        blocks.push(Block::table(&["TECH DEBT IN", "WHAT", "WHY DEFERRED"], &[], rows.collect()));
    }
    if !snapshot.open_decisions.is_empty() {
        let rows = snapshot.open_decisions.iter().map(|one| vec![one.clone()]).collect();
        blocks.push(Block::table(&["OPEN DECISION"], &[], rows));
    }
    blocks
}
