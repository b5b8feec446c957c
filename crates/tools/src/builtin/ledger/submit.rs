//! `submit`: hands a commitment in.

use schemars::JsonSchema;
use serde::Deserialize;
use windlass_core::commitment::Order;
use windlass_core::outcome::Outcome;
use windlass_core::policy::{Class, Risk};
use windlass_core::tool_name;

use super::order;
use crate::builtin::Builtin;
use crate::tool::{Call, Category, Prepared, ToolContext};

pub(in crate::builtin) struct Submit;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::builtin) struct Arguments {
    /// The commitment: cmt_….
    commitment: String,
    /// What was done, in a few words.
    summary: Option<String>,
}

impl Builtin for Submit {
    type Arguments = Arguments;
    const NAME: &'static str = tool_name::SUBMIT;
    const DESCRIPTION: &'static str = include_str!("../descriptions/submit.md");
    const CATEGORY: Category = Category::Orchestration;
    const MIN_CLASS: (Class, Risk) = (Class::Ledger, Risk::Low);
    const ALIASES: &'static [&'static str] = &["mentu_submit"];

    fn prepare(
        context: ToolContext,
        call: Call,
        arguments: Arguments,
    ) -> Result<Prepared, Outcome> {
        let submit = Order::Submit(arguments.summary.unwrap_or_default());
        order(context, call, &arguments.commitment, submit, "hands in")
    }
}
