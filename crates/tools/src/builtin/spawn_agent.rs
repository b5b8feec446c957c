//! `spawn_agent`: another agent works on a piece of the task. The loop carries it out (ES-217…222).

use schemars::JsonSchema;
use serde::Deserialize;
use windlass_core::axes::ModelMode;
use windlass_core::outcome::{Outcome, Recovery};
use windlass_core::policy::{Assessment, Class, Risk};
use windlass_core::question::BoundFile;
use windlass_core::text::one_line;
use windlass_core::tool_name;

use super::edit::refuse_unseen;
use super::{Builtin, act, path_error};
use crate::tool::{Call, Category, Executor, Prepared, ToolContext};
use crate::workspace::Purpose;

/// The longest that a sub-agent may be given.
const MAX_TIMEOUT_SECONDS: u64 = 86_400;

pub(super) struct SpawnAgent;

/// What a sub-agent is to do, as the arguments of `spawn_agent`; read by the loop.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct SpawnArguments {
    /// What the sub-agent should do, complete in itself: it knows nothing else.
    #[schemars(length(min = 1))]
    pub task: String,
    /// A short name for it.
    pub label: Option<String>,
    /// How long it may take, in seconds. Default: 300.
    #[schemars(range(min = 1, max = 86_400))]
    pub timeout_seconds: Option<u64>,
    /// A file in the workspace that its final message is also written to.
    pub write_output_to: Option<String>,
    /// Which configured model it uses. Default: yours.
    pub model: Option<ModelChoice>,
}

/// The models that a person has configured, by what they are for: an agent cannot name any other.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum ModelChoice {
    Fast,
    Smart,
    Deep,
}

impl From<ModelChoice> for ModelMode {
    fn from(choice: ModelChoice) -> Self {
        match choice {
            ModelChoice::Fast => Self::Fast,
            ModelChoice::Smart => Self::Smart,
            ModelChoice::Deep => Self::Deep,
        }
    }
}

impl Builtin for SpawnAgent {
    type Arguments = SpawnArguments;
    const NAME: &'static str = tool_name::SPAWN_AGENT;
    const DESCRIPTION: &'static str = include_str!("descriptions/spawn_agent.md");
    const CATEGORY: Category = Category::Orchestration;
    const MIN_CLASS: (Class, Risk) = (Class::Delegate, Risk::Medium);
    const ALIASES: &'static [&'static str] = &["task"];
    const KIND: Executor = Executor::SubAgent;

    fn prepare(
        context: ToolContext,
        call: Call,
        arguments: SpawnArguments,
    ) -> Result<Prepared, Outcome> {
        if arguments.timeout_seconds.is_some_and(|seconds| seconds > MAX_TIMEOUT_SECONDS) {
            return Err(Outcome::failure(format!(
                "a sub-agent gets at most {MAX_TIMEOUT_SECONDS} seconds."
            )));
        }
        let what = one_line(arguments.label.as_deref().unwrap_or(&arguments.task), 80);
        let mut bound = Vec::new();
        let assessment = match &arguments.write_output_to {
            None => Assessment::of(Class::Delegate, format!("starts a sub-agent: {what}")),
            Some(path) => {
                let current =
                    context.workspace.write_target(path, Purpose::Agent).map_err(path_error)?;
                let (path, known) = (&current.path, call.facts.known_files.get(&current.path));
                if let Some(now) = &current.hash {
                    refuse_unseen(path, known, now, "call")?;
                }
                bound.push(BoundFile { path: path.clone(), hash: current.hash.clone() });
                let reason = format!("starts a sub-agent whose output writes `{path}`: {what}");
                let usual = Assessment::of(Class::Edit, reason).at_least(Risk::Medium);
                current.kind.change("writes", path, usual)
            }
        };
        // The loop starts the sub-agent, and declares the recovery with its id.
        let recovery = Recovery::Unknown;
        let act = act(|| Outcome::failure("sub-agents cannot be started here."));
        Ok(Prepared { bound, ..Prepared::new(assessment, recovery, act) })
    }
}
