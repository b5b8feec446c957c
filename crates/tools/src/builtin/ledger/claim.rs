//! `claim`: takes a commitment on.

use schemars::JsonSchema;
use serde::Deserialize;
use windlass_core::commitment::Order;
use windlass_core::outcome::Outcome;
use windlass_core::policy::{Class, Risk};
use windlass_core::tool_name;

use super::order;
use crate::builtin::Builtin;
use crate::tool::{Call, Category, Prepared, ToolContext};

pub(in crate::builtin) struct Claim;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::builtin) struct Arguments {
    /// The commitment: cmt_….
    commitment: String,
}

impl Builtin for Claim {
    type Arguments = Arguments;
    const NAME: &'static str = tool_name::CLAIM;
    const DESCRIPTION: &'static str = include_str!("../descriptions/claim.md");
    const CATEGORY: Category = Category::Orchestration;
    const MIN_CLASS: (Class, Risk) = (Class::Ledger, Risk::Low);
    const ALIASES: &'static [&'static str] = &["mentu_claim"];

    fn prepare(
        context: ToolContext,
        call: Call,
        arguments: Arguments,
    ) -> Result<Prepared, Outcome> {
        order(context, call, &arguments.commitment, Order::Claim, "claims")
    }
}
