//! `commit`: promises a piece of work.

use schemars::JsonSchema;
use serde::Deserialize;
use windlass_core::commitment::{CommitmentOpened, check_title};
use windlass_core::id::CommitmentId;
use windlass_core::outcome::Outcome;
use windlass_core::policy::{Class, Risk};
use windlass_core::tool_name;

use super::{failure, prepare_change, signature, words};
use crate::builtin::Builtin;
use crate::tool::{Call, Category, Prepared, ToolContext};

pub(in crate::builtin) struct Commit;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::builtin) struct Arguments {
    /// What is promised, in one line.
    #[schemars(length(min = 1))]
    title: String,
    /// What to change, where, and how it is proven.
    body: Option<String>,
}

impl Builtin for Commit {
    type Arguments = Arguments;
    const NAME: &'static str = tool_name::COMMIT;
    const DESCRIPTION: &'static str = include_str!("../descriptions/commit.md");
    const CATEGORY: Category = Category::Orchestration;
    const MIN_CLASS: (Class, Risk) = (Class::Ledger, Risk::Low);
    const ALIASES: &'static [&'static str] = &["mentu_commit"];

    fn prepare(
        context: ToolContext,
        call: Call,
        arguments: Arguments,
    ) -> Result<Prepared, Outcome> {
        let by = signature(&call)?;
        let opened = CommitmentOpened {
            title: arguments.title.trim().to_owned(),
            body: arguments.body.unwrap_or_default(),
            by: by.actor().party,
            session_id: Some(by.session),
            task_id: Some(by.task),
            project: Some(by.project),
            user_id: by.user,
            key: Some(call.id.to_string()),
        };
        check_title(&opened.title, &opened.body)
            .map_err(|refusal| Outcome::failure(refusal.to_string()))?;
        // The same call makes the same commitment.
        let id = CommitmentId::derived(&call.id.to_string(), "commitment");
        Ok(prepare_change(format!("promises \"{}\"", opened.title), move || {
            Box::pin(async move {
                let ledger = &context.ledger;
                match ledger.store.commitments().open(id, (ledger.clock)(), opened).await {
                    Ok(commitment) => Outcome::ok(words(&commitment)),
                    Err(error) => failure(error),
                }
            })
        }))
    }
}
