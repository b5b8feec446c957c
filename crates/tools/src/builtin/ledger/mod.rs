//! The tools for commitments (AX-061): `commit`, `claim`, `capture`, `submit`, `approve`, `reject`.
//!
//! Invariant: each order carries the id of its call as its key, so that a call which is repeated after a crash takes
//! effect once.

mod approve;
mod capture;
mod claim;
mod commit;
mod reject;
mod submit;

use std::sync::Arc;

use futures_util::future::BoxFuture;
use jiff::Timestamp;
use windlass_core::commitment::{Actor, Commitment, Order, Party};
use windlass_core::id::{CommitmentId, SessionId, TaskId};
use windlass_core::outcome::{Outcome, Recovery};
use windlass_core::policy::{Assessment, Class};
use windlass_core::text::with_causes;
use windlass_store::Store;

use crate::tool::{Act, Call, Prepared, Tool, ToolContext};

/// All of them, in the order of a commitment's life.
pub(super) fn all() -> Vec<Arc<dyn Tool>> {
    vec![
        Arc::new(commit::Commit),
        Arc::new(claim::Claim),
        Arc::new(capture::Capture),
        Arc::new(submit::Submit),
        Arc::new(approve::Approve),
        Arc::new(reject::Reject),
    ]
}

/// Whose call it is, as the ledger keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature {
    pub session: SessionId,
    /// The task whose agent calls.
    pub task: TaskId,
    /// The root of its tree: whoever works for one agent works for the same.
    pub root: TaskId,
    /// The person for whom it works.
    pub user: Option<String>,
    /// The directory that it works in.
    pub project: String,
    /// The task whose finished work it was started to judge.
    pub reviews: Option<TaskId>,
}

impl Signature {
    pub(super) fn actor(&self) -> Actor {
        Actor::agent(self.root, self.user.clone())
    }
}

/// The ledger, as tools use it.
#[derive(Clone)]
pub struct Ledger {
    pub store: Store,
    pub clock: Arc<dyn Fn() -> Timestamp + Send + Sync>,
}

/// The signature of a call; without one there is nobody whom the ledger could name.
fn signature(call: &Call) -> Result<Signature, Outcome> {
    let unsigned = || Outcome::failure("commitments cannot be used here");
    call.facts.signature.clone().ok_or_else(unsigned)
}

/// The commitment that a text names.
fn find(context: &ToolContext, text: &str) -> Result<CommitmentId, Outcome> {
    context.ledger.store.ids().commitment(text).map_err(failure)
}

fn failure(error: windlass_store::Error) -> Outcome {
    Outcome::failure(with_causes(&error))
}

fn prepare_change(
    what: String,
    act: impl FnOnce() -> BoxFuture<'static, Outcome> + Send + 'static,
) -> Prepared {
    let act: Act = Box::new(act);
    // By its key it takes effect once, so it can be run again.
    Prepared::new(Assessment::of(Class::Ledger, what), Recovery::Rerun, act)
}

/// Carries out an order about a commitment.
fn order(
    context: ToolContext,
    call: Call,
    id: &str,
    order: Order,
    verb: &'static str,
) -> Result<Prepared, Outcome> {
    let (signature, id) = (signature(&call)?, find(&context, id)?);
    let key = Some(call.id.to_string());
    Ok(prepare_change(format!("{verb} `{id}`"), move || {
        Box::pin(async move {
            let ledger = &context.ledger;
            let at = (ledger.clock)();
            let done = ledger.store.commitments().act(id, at, signature.actor(), order, key).await;
            match done {
                Ok(commitment) => Outcome::ok(words(&commitment)),
                Err(error) => failure(error),
            }
        })
    }))
}

/// Where a commitment stands, for the model.
fn words(commitment: &Commitment) -> String {
    let Commitment { id, title, state, .. } = commitment;
    let claimed = match &commitment.claimed_by {
        Some(Party::Agent(task)) => format!(", claimed by `{task}`"),
        Some(Party::Person(name)) => format!(", claimed by {name}"),
        None => String::new(),
    };
    let verdict = match (commitment.verdict, &commitment.verdict_reason) {
        (Some(verdict), Some(reason)) => format!(", {verdict}: {reason}"),
        _ => String::new(),
    };
    format!("Commitment `{id}` \"{title}\" is {state}{claimed}{verdict}.")
}
