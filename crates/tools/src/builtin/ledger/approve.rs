//! `approve`: judges submitted work good.

use schemars::JsonSchema;
use serde::Deserialize;
use windlass_core::commitment::{Order, Verdict};
use windlass_core::contract::Review;
use windlass_core::outcome::{Fact, Outcome};
use windlass_core::policy::{Class, Risk};
use windlass_core::tool_name;

use super::{order, prepare_change, signature};
use crate::builtin::Builtin;
use crate::tool::{Call, Category, Prepared, ToolContext};

pub(in crate::builtin) struct Approve;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::builtin) struct Arguments {
    /// The commitment: cmt_…; or the task that you review: task_….
    commitment: String,
    /// Why it is good.
    reason: Option<String>,
}

impl Builtin for Approve {
    type Arguments = Arguments;
    const NAME: &'static str = tool_name::APPROVE;
    const DESCRIPTION: &'static str = include_str!("../descriptions/approve.md");
    const CATEGORY: Category = Category::Orchestration;
    const MIN_CLASS: (Class, Risk) = (Class::Ledger, Risk::Low);
    const ALIASES: &'static [&'static str] = &["mentu_approve"];

    fn prepare(
        context: ToolContext,
        call: Call,
        arguments: Arguments,
    ) -> Result<Prepared, Outcome> {
        let reason = arguments.reason.unwrap_or_default();
        match judged_task(&call, &arguments.commitment)? {
            true => verdict(&call, Verdict::Approved, reason),
            false => {
                order(context, call, &arguments.commitment, Order::Approve(reason), "approves")
            }
        }
    }
}

/// The reviewed task, whatever its id.
const TASK: &str = "task";

/// Whether an id names a task, and not a commitment. An auditor judges the task that it was started to review, and no
/// other.
pub(super) fn judged_task(call: &Call, id: &str) -> Result<bool, Outcome> {
    let id = id.trim();
    if id != TASK && !id.starts_with("task_") {
        return Ok(false);
    }
    match signature(call)?.reviews {
        Some(task) if id == TASK || task.to_string().eq_ignore_ascii_case(id) => Ok(true),
        Some(task) => {
            Err(Outcome::failure(format!("you were started to review `{task}`, not `{id}`")))
        }
        None => Err(Outcome::failure("you were not started to review a task; name a commitment")),
    }
}

/// A verdict about the task that the agent was started to review.
pub(super) fn verdict(call: &Call, verdict: Verdict, reason: String) -> Result<Prepared, Outcome> {
    let by = signature(call)?.task.to_string();
    let (verb, approved) = match verdict {
        Verdict::Approved => ("approves", true),
        Verdict::Rejected => ("rejects", false),
    };
    let review = Review { approved, by, reason };
    Ok(prepare_change(format!("{verb} the reviewed work"), move || {
        Box::pin(async move {
            Outcome::ok("Your verdict is recorded. End with a short report.")
                .with(Fact::Verdict(review))
        })
    }))
}
