//! The tools that tasks of a plan have besides all others: they log issues and decisions, and save the snapshot of
//! step 99. What they take is what the commands take.
//!
//! Invariant: a call that starts again after a crash writes the same rows and the same file, because ids come from
//! the call.

mod decision;
mod issue;
mod save_snapshot;

use std::marker::PhantomData;
use std::path::PathBuf;
use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde_json::Value;
use windlass_core::outcome::{Outcome, Recovery};
use windlass_core::planning::PlanTask;
use windlass_core::policy::{Assessment, Class, Risk};
use windlass_store::Store;
use windlass_tools::{Call, Category, Prepared, Tool, ToolContext};

/// Where a task of a plan leaves what it logs.
#[derive(Clone)]
pub struct PlanLog {
    pub store: Store,
    /// The directory that the plan belongs to.
    pub project: PathBuf,
    pub place: PlanTask,
    /// Reads the time.
    pub now: fn() -> Timestamp,
}

impl PlanLog {
    fn project_name(&self) -> String {
        self.project.display().to_string()
    }
}

/// The tools of a task, in the order the model sees them.
pub fn all(log: &PlanLog) -> Vec<Arc<dyn Tool>> {
    vec![
        NoteTool::<issue::IssueNote>::shared(log),
        NoteTool::<decision::DecisionNote>::shared(log),
        NoteTool::<save_snapshot::SnapshotNote>::shared(log),
    ]
}

/// Something that a task writes down about its work by calling a tool.
trait Note: Sized + Send + 'static {
    /// The tool that writes it.
    const TOOL: &'static str;
    const DESCRIPTION: &'static str;
    /// What a call does, for the person who is asked.
    const REASON: &'static str;
    const KIND: NoteKind;

    fn parameters() -> Value;

    /// The note that a call asks for.
    fn read(log: &PlanLog, call: Call) -> Result<Self, Outcome>;

    fn write(self, log: PlanLog) -> impl Future<Output = Outcome> + Send;
}

/// How a tool is treated that writes a note.
#[derive(Clone, Copy, PartialEq, Eq)]
enum NoteKind {
    /// A row for people.
    Log,
    /// What the task knows. It is also written while notes are saved before a compaction.
    Memory,
}

/// The tool that writes one kind of note.
struct NoteTool<N> {
    log: PlanLog,
    note: PhantomData<fn() -> N>,
}

impl<N: Note> NoteTool<N> {
    fn shared(log: &PlanLog) -> Arc<dyn Tool> {
        Arc::new(Self { log: log.clone(), note: PhantomData })
    }
}

impl<N: Note> Tool for NoteTool<N> {
    fn name(&self) -> &str {
        N::TOOL
    }

    fn description(&self) -> &str {
        N::DESCRIPTION.trim_ascii_end()
    }

    fn parameters(&self) -> Value {
        N::parameters()
    }

    fn category(&self) -> Category {
        Category::ContextEngineering
    }

    fn min_class(&self) -> (Class, Risk) {
        (Class::Note, Risk::Low)
    }

    fn is_always_allowed(&self) -> bool {
        true
    }

    fn is_note(&self) -> bool {
        N::KIND == NoteKind::Memory
    }

    fn prepare(&self, _: &ToolContext, call: Call) -> BoxFuture<'_, Result<Prepared, Outcome>> {
        let log = self.log.clone();
        let prepared = N::read(&log, call).map(|note| {
            let act = Box::new(move || note.write(log).boxed());
            Prepared::new(Assessment::of(Class::Note, N::REASON), Recovery::Rerun, act)
        });
        Box::pin(std::future::ready(prepared))
    }
}

/// The arguments of a call as a type.
fn arguments<A: DeserializeOwned>(call: Call) -> Result<A, Outcome> {
    serde_json::from_value(call.arguments)
        .map_err(|error| Outcome::error(format!("The arguments do not fit: {error}.")))
}

/// What an agent reads when a row could not be written.
fn not_written(error: &windlass_store::Error) -> Outcome {
    Outcome::failure(format!("It was not written down: {error}."))
}
