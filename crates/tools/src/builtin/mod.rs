//! The tools that need nothing but a workspace and skills, one file each.
//!
//! A tool here is its argument type and one plain function, `prepare`, that looks and decides what the
//! call would do; both that and the acting run on threads where blocking is harmless.

mod read;
mod write;
mod edit;
mod rewrite;
mod diff;
mod glob;
mod grep;
mod update_plan;
mod save_memo;
mod search_memo;
mod meaning;
mod passages;
mod ask_user;
mod spawn_agent;
mod list_skills;
mod read_skill;
mod publish_deliverable;
mod ledger;

pub use ask_user::UserQuestion;
pub use ledger::{Ledger, Signature};
pub use spawn_agent::SpawnArguments;

use std::future::pending;
use std::panic::resume_unwind;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;
use windlass_core::outcome::{Outcome, Recovery};
use windlass_core::policy::{Assessment, Class, Risk};

use crate::schema;
use crate::tool::{Act, Call, Category, Executor, Prepared, Subject, Tool, ToolContext};
use crate::workspace::{self, FileKind, ScanOutcome, Stop};

/// All of them, in the order the model is shown them.
pub(crate) fn all() -> Vec<Arc<dyn Tool>> {
    let files: Vec<Arc<dyn Tool>> = vec![
        Arc::new(read::Read),
        Arc::new(write::Write),
        Arc::new(edit::Edit),
        Arc::new(glob::Glob),
        Arc::new(grep::Grep),
    ];
    files.into_iter().chain(crate::shell::all()).chain(notes()).chain(ledger::all()).collect()
}

fn notes() -> Vec<Arc<dyn Tool>> {
    vec![
        Arc::new(update_plan::UpdatePlan),
        Arc::new(save_memo::SaveMemo),
        Arc::new(search_memo::SearchMemo),
        Arc::new(ask_user::AskUser),
        Arc::new(spawn_agent::SpawnAgent),
        Arc::new(list_skills::ListSkills),
        Arc::new(read_skill::ReadSkill),
        Arc::new(publish_deliverable::PublishDeliverable),
    ]
}

/// What one of our own tools consists of.
pub(crate) trait Builtin: Send + Sync + 'static {
    type Arguments: DeserializeOwned + JsonSchema + Send + 'static;

    /// The name the model calls it by.
    const NAME: &'static str;
    /// What it is for, in words for the model: a file in `descriptions/`.
    const DESCRIPTION: &'static str;
    /// What it is for, as lists group it.
    const CATEGORY: Category;
    /// The most harmless thing a call of it can be; a profile that denies even this is not offered the tool.
    const MIN_CLASS: (Class, Risk);
    /// Who carries its calls out.
    const KIND: Executor = Executor::Plain;
    /// Whether it keeps the agent's own plan and notes.
    const IS_NOTE: bool = false;
    /// Whether an agent can use it whatever tools the skill it follows names.
    const IS_ALWAYS_ALLOWED: bool = Self::IS_NOTE;
    /// Other names that a skill may call it by, such as those of other agents.
    const ALIASES: &'static [&'static str] = &[];
    /// The argument that names the file a call is about.
    const FILE_ARGUMENT: &'static str = "path";

    /// Replaces words that other agents' tools use with ours.
    fn replace_synonyms(_arguments: &mut Value) {}

    /// What a call is about.
    fn subject(arguments: &Value) -> Subject {
        let file = arguments[Self::FILE_ARGUMENT].as_str();
        file.map_or(Subject::Other, |path| Subject::File(path.to_owned()))
    }

    fn prepare(
        context: ToolContext,
        call: Call,
        arguments: Self::Arguments,
    ) -> Result<Prepared, Outcome>;
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

    fn min_class(&self) -> (Class, Risk) {
        B::MIN_CLASS
    }

    fn executor(&self) -> Executor {
        B::KIND
    }

    fn is_note(&self) -> bool {
        B::IS_NOTE
    }

    fn is_always_allowed(&self) -> bool {
        B::IS_ALWAYS_ALLOWED
    }

    fn aliases(&self) -> &'static [&'static str] {
        B::ALIASES
    }

    fn replace_synonyms(&self, arguments: &mut Value) {
        B::replace_synonyms(arguments);
    }

    fn subject(&self, arguments: &Value) -> Subject {
        B::subject(arguments)
    }

    fn prepare(
        &self,
        context: &ToolContext,
        mut call: Call,
    ) -> BoxFuture<'_, Result<Prepared, Outcome>> {
        let context = context.clone();
        Box::pin(blocking(move || {
            let arguments = serde_json::from_value(call.arguments.take()).map_err(|error| {
                Outcome::error(format!("The arguments of `{}` do not fit: {error}", B::NAME))
            })?;
            B::prepare(context, call, arguments)
        }))
    }
}

/// Runs plain code where it may block. Its panic is ours.
pub(crate) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
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
pub(crate) fn act(work: impl FnOnce() -> Outcome + Send + 'static) -> Act {
    Box::new(move || Box::pin(blocking(work)))
}

/// An act that goes over many files and ends early when nobody waits for it any more.
fn scan_act(work: impl FnOnce(&Stop) -> Outcome + Send + 'static) -> Act {
    struct StopOnDrop(Stop);
    impl Drop for StopOnDrop {
        fn drop(&mut self) {
            self.0.stop();
        }
    }
    Box::new(move || {
        Box::pin(async move {
            let stop = Stop::default();
            let _held = StopOnDrop(stop.clone());
            blocking(move || work(&stop)).await
        })
    })
}

/// A call that only reads.
pub(crate) fn read_only(reason: String, act: Act) -> Prepared {
    Prepared::new(Assessment::of(Class::Read, reason), Recovery::Rerun, act)
}

/// A call that reads what is at a path, `usual` for an ordinary file. An approval to read a secret holds for the file that
/// the path leads to now.
fn prepare_read(
    workspace: &workspace::Workspace,
    path: &str,
    usual: Assessment,
    recovery: Recovery,
    act: Act,
) -> Prepared {
    let kind = workspace.kind(path);
    let bound = match kind {
        FileKind::Secret => workspace.bound_file(path),
        FileKind::Ordinary | FileKind::Rule => None,
    };
    let leads_to = bound.as_ref().map_or(path, |file| file.path.as_str());
    let assessment = kind.read(leads_to, usual);
    let bound = bound.into_iter().collect();
    Prepared { bound, ..Prepared::new(assessment, recovery, act) }
}

/// What a scan could not see, for the end of its result.
fn unseen(scanned: ScanOutcome) -> String {
    let mut text = String::new();
    if scanned.unreadable > 0 {
        text.push_str(&format!(
            "\n[directories or names that could not be read: {}]",
            scanned.unreadable
        ));
    }
    if scanned.gave_up {
        text.push_str(
            "\n[gave up before the end: too many files or too deep; start lower with `path`]",
        );
    }
    text
}

/// What the model reads about a path that cannot be used, and what to do about it where that is clear.
fn path_error(error: workspace::Error) -> Outcome {
    let hint = match &error {
        workspace::Error::NotFound { .. } => " Use glob to find the file.",
        workspace::Error::IsDirectory { .. } => " Use glob to list the files in it.",
        workspace::Error::BadPath { .. }
        | workspace::Error::Outside { .. }
        | workspace::Error::Mount { .. }
        | workspace::Error::NotADirectory { .. }
        | workspace::Error::Special { .. }
        | workspace::Error::Protected { .. }
        | workspace::Error::Hidden { .. }
        | workspace::Error::TooLarge { .. }
        | workspace::Error::Changed { .. }
        | workspace::Error::TooManyLinks { .. }
        | workspace::Error::Io { .. } => "",
    };
    Outcome { display: Some(error.to_string()), ..Outcome::failure(format!("{error}.{hint}")) }
}
