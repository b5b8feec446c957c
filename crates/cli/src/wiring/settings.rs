//! From configuration to the limits of one agent.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use windlass_agent::{ContractInForce, Settings, budget, tree};
use windlass_core::axes::RunControl;
use windlass_core::command::CompactionOverrides;
use windlass_core::event::{Driver, WorkflowPart};
use windlass_core::guard::Thresholds;
use windlass_core::policy::Pattern;
use windlass_core::state::TaskState;

use super::{Project, gate, models, sandbox};
use crate::config::types::Origin;
use crate::config::{Config, ModelChoice};

/// One result fills at most this part of the window (`docs/design.md` §6).
const MAX_WINDOW_SHARE: u64 = 4;

/// The limits of a task's agent, without what depends on its contract.
pub(super) fn of_task(
    config: &Config,
    choice: &ModelChoice,
    task: &TaskState,
    opened: &sandbox::OpenSandbox,
    standing: Vec<Pattern>,
) -> Settings {
    let isolation = opened.sandbox.isolation();
    let kind = isolation.kind.to_string();
    Settings {
        max_iterations: config.agent.max_iterations,
        timeout: time_limit(config, task),
        outage: config.models.outage.unwrap_or_else(|| task.created.outage_by_origin()),
        tool_output_max_tokens: output_tokens(config, choice),
        compaction: compaction(config, choice),
        guard: Thresholds {
            max_identical_calls: config.agent.max_identical_calls as usize,
            max_consecutive_failures: config.agent.max_consecutive_failures as usize,
            pattern_window: config.agent.pattern_window as usize,
        },
        compact_at_plan_step: config.compaction.at_plan_step,
        rules: gate::rule_set(config, standing),
        bound_by: Vec::new(),
        shows_ledger: false,
        contract: None,
        // A default choice is shown with its reason.
        container: match &opened.why {
            Some(why) => format!("{kind} ({why})"),
            None => kind,
        },
        sandbox_gaps: isolation.warnings.join(" "),
        instructions: crate::instructions::load(
            Path::new(&task.created.workspace),
            Path::new(task.created.boundary()),
        ),
        environment: None,
        sub_agent_timeout: config.subagents.default_timeout_seconds,
        sub_agents: tree::AgentLimits {
            max_depth: config.subagents.max_depth,
            max_agents: config.subagents.max_agents,
        },
        budget: budget::SpendingLimits {
            cost_usd: task.created.cost_budget.or(config.agent.budget_usd),
            tokens: config.agent.budget_tokens,
            turns: config.agent.budget_turns,
            seconds: seconds(config, task.axes.run_control),
        },
        price: models::price(config, choice),
    }
}

/// How long a task may be active. A step of a workflow has the limits of its file, whoever drives the run; its command has
/// a limit of its own.
fn time_limit(config: &Config, task: &TaskState) -> Option<Duration> {
    let origin = match (task.created.workflow.as_deref(), task.created.driver) {
        (Some(WorkflowPart::Script(_)), _) => return None,
        (Some(_), _) | (None, Driver::Foreground) => Origin::Person,
        (None, Driver::Service) => Origin::Command,
    };
    config.agent.timeout_seconds.limit(origin)
}

/// What must hold before a task is done: what it brings itself, else the contract of its project.
pub(super) fn contract(task: &TaskState, project: &Project) -> Option<Arc<ContractInForce>> {
    let given = task.command().execution_config.contract.as_deref();
    let own = given.map(|given| {
        let (contract, approved) = (given.contract.clone(), given.approved);
        Arc::new(ContractInForce {
            contract,
            source: "the task's own contract".to_owned(),
            approved,
        })
    });
    own.or_else(|| project.contract().cloned())
}

/// Compaction as it is configured, for the window of a model.
pub(super) fn compaction(config: &Config, choice: &ModelChoice) -> CompactionOverrides {
    let compaction = &config.compaction;
    CompactionOverrides {
        context_window_tokens: Some(config.context_window(choice)),
        response_reserve_tokens: Some(compaction.response_reserve_tokens),
        compaction_trigger_ratio: Some(compaction.trigger_ratio),
        memory_flush_enabled: Some(compaction.memory_flush_enabled),
        memory_flush_soft_threshold_tokens: Some(compaction.memory_flush_soft_threshold_tokens),
        max_summary_tokens: Some(compaction.max_summary_tokens),
        preserve_recent_turns: Some(compaction.preserve_recent_turns),
    }
}

/// The largest result of a call in the window of a model.
pub(super) fn output_tokens(config: &Config, choice: &ModelChoice) -> u64 {
    let window = config.context_window(choice);
    config.agent.tool_output_max_tokens.min(window / MAX_WINDOW_SHARE)
}

/// How long a task may work: its budget, and for autonomous work the limit of that (MS-207).
fn seconds(config: &Config, control: RunControl) -> Option<u64> {
    let alone = match control {
        RunControl::Autonomous => Some(config.agent.autonomous_max_hours.as_secs()),
        RunControl::Manual | RunControl::Assisted => None,
    };
    config.agent.budget_seconds.into_iter().chain(alone).min()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Sources;

    /// MS-207, MS-048: the nearest limit counts, and only autonomous work has the second.
    #[test]
    fn autonomous_work_is_bounded_in_time() {
        let config = |variables: &[(&str, &str)]| {
            let env = variables.iter().map(|(name, value)| ((*name).into(), (*value).into()));
            let sources =
                Sources { user: None, project: None, env: env.collect(), flags: Vec::new() };
            Config::load(&sources).unwrap()
        };
        let usual = config(&[]);
        assert_eq!(seconds(&usual, RunControl::Autonomous), Some(8 * 3600));
        assert_eq!(seconds(&usual, RunControl::Assisted), None);
        let longer = config(&[("AGENT_AUTONOMOUS_MAX_HOURS", "100")]);
        assert_eq!(seconds(&longer, RunControl::Autonomous), Some(360_000));
        let budget = config(&[("AGENT_BUDGET_SECONDS", "60")]);
        assert_eq!(seconds(&budget, RunControl::Autonomous), Some(60));
        assert_eq!(seconds(&budget, RunControl::Manual), Some(60));
    }
}
