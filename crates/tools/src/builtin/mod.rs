//! The tools that need nothing but a workspace and skills, one file each.
//!
//! A tool here is its argument type and one plain function, `prepare`, that looks and decides what the
//! call would do; both that and the acting run on threads where blocking is harmless.

mod read;
mod write;
mod edit;
mod update_plan;
mod save_memo;
mod ask_user;

use std::future::pending;
use std::panic::resume_unwind;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;
use windlass_core::outcome::Outcome;
use windlass_core::policy::{Class, Risk};

use crate::schema;
use crate::tool::{Act, Call, Category, Kind, Prepared, Tool, World};
use crate::workspace;

/// All of them, in the order the model is shown them.
pub(crate) fn all() -> Vec<Arc<dyn Tool>> {
    vec![
        Arc::new(read::Read),
        Arc::new(write::Write),
        Arc::new(edit::Edit),
        Arc::new(update_plan::UpdatePlan),
        Arc::new(save_memo::SaveMemo),
        Arc::new(ask_user::AskUser),
    ]
}

/// What one of our own tools consists of.
trait Builtin: Send + Sync + 'static {
    type Arguments: DeserializeOwned + JsonSchema + Send + 'static;

    const NAME: &'static str;
    const DESCRIPTION: &'static str;
    const CATEGORY: Category;
    const LEAST: (Class, Risk);
    const KIND: Kind = Kind::Plain;

    fn prepare(world: World, call: Call, given: Self::Arguments) -> Result<Prepared, Outcome>;
}

impl<B: Builtin> Tool for B {
    fn name(&self) -> &'static str {
        B::NAME
    }

    fn description(&self) -> &'static str {
        B::DESCRIPTION.trim_ascii_end()
    }

    fn parameters(&self) -> Value {
        schema::of::<B::Arguments>()
    }

    fn category(&self) -> Category {
        B::CATEGORY
    }

    fn least(&self) -> (Class, Risk) {
        B::LEAST
    }

    fn kind(&self) -> Kind {
        B::KIND
    }

    fn prepare(&self, world: &World, mut call: Call) -> BoxFuture<'_, Result<Prepared, Outcome>> {
        let world = world.clone();
        Box::pin(blocking(move || {
            let given = serde_json::from_value(call.arguments.take()).map_err(|error| {
                Outcome::error(format!("The arguments of `{}` do not fit: {error}", B::NAME))
            })?;
            B::prepare(world, call, given)
        }))
    }
}

/// Runs plain code where it may block. Its panic is ours.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(value) => value,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => resume_unwind(panic),
            // Only a runtime that shuts down cancels; then nobody waits for this any more.
            Err(_) => pending().await,
        },
    }
}

/// An act of plain code.
fn act(work: impl FnOnce() -> Outcome + Send + 'static) -> Act {
    Box::new(move || Box::pin(blocking(work)))
}

/// What the model reads about a path that cannot be used.
fn failed(error: workspace::Error) -> Outcome {
    Outcome::error(format!("Error: {error}."))
}

/// `1 line`, `2 lines`.
fn counted(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}
