//! `reject`: judges submitted work not good enough.

use schemars::JsonSchema;
use serde::Deserialize;
use windlass_core::commitment::{Order, Verdict};
use windlass_core::outcome::Outcome;
use windlass_core::policy::{Class, Risk};
use windlass_core::tool_name;

use super::approve::{judged_task, verdict};
use super::order;
use crate::builtin::Builtin;
use crate::tool::{Call, Category, Prepared, ToolContext};

pub(in crate::builtin) struct Reject;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::builtin) struct Arguments {
    /// The commitment: cmt_…; or the task that you review: task_….
    commitment: String,
    /// What is wrong, and what would be right.
    #[schemars(length(min = 1))]
    reason: String,
}

impl Builtin for Reject {
    type Arguments = Arguments;
    const NAME: &'static str = tool_name::REJECT;
    const DESCRIPTION: &'static str = include_str!("../descriptions/reject.md");
    const CATEGORY: Category = Category::Orchestration;
    const MIN_CLASS: (Class, Risk) = (Class::Ledger, Risk::Low);
    const ALIASES: &'static [&'static str] = &["mentu_reject"];

    fn prepare(
        context: ToolContext,
        call: Call,
        arguments: Arguments,
    ) -> Result<Prepared, Outcome> {
        match judged_task(&call, &arguments.commitment)? {
            true => verdict(&call, Verdict::Rejected, arguments.reason),
            false => order(
                context,
                call,
                &arguments.commitment,
                Order::Reject(arguments.reason),
                "rejects",
            ),
        }
    }
}
