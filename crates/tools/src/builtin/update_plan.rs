//! `update_plan`: the whole working plan, written to its file (ES-139…149).

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde_json::Value;
use windlass_core::layout::Own;
use windlass_core::outcome::{Fact, Outcome};
use windlass_core::plan::{Step, StepStatus, WorkingPlan};
use windlass_core::policy::{Assessment, Class, Risk};
use windlass_core::tool_name;

use super::rewrite::Rewrite;
use super::{Builtin, path_error};
use crate::tool::{Call, Category, Prepared, ToolContext};
use crate::workspace::Purpose;

pub(super) struct UpdatePlan;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// All steps of the plan, in order; this replaces the plan as a whole.
    steps: Vec<StepArgument>,
    /// What you are working on right now.
    current_focus: Option<String>,
    /// How you approach the goal.
    overall_approach: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct StepArgument {
    /// Short name of the step, the same in every update.
    id: String,
    /// What is to be done.
    description: String,
    /// How far it is.
    #[schemars(schema_with = "statuses")]
    status: StepStatus,
    /// A remark: what came of it, what blocks it, why it was skipped.
    notes: Option<String>,
}

fn statuses(_: &mut SchemaGenerator) -> Schema {
    let words: Vec<_> = StepStatus::ALL.iter().map(|status| status.as_str()).collect();
    json_schema!({ "type": "string", "enum": words })
}

impl From<Arguments> for WorkingPlan {
    fn from(arguments: Arguments) -> Self {
        let Arguments { steps, current_focus, overall_approach } = arguments;
        let step = |StepArgument { id, description, status, notes }| Step {
            id,
            description,
            status,
            notes,
        };
        Self { steps: steps.into_iter().map(step).collect(), current_focus, overall_approach }
    }
}

impl Builtin for UpdatePlan {
    type Arguments = Arguments;
    const NAME: &'static str = tool_name::UPDATE_PLAN;
    const DESCRIPTION: &'static str = include_str!("descriptions/update_plan.md");
    const CATEGORY: Category = Category::ContextEngineering;
    const MIN_CLASS: (Class, Risk) = (Class::Note, Risk::Low);
    const IS_NOTE: bool = true;

    /// The plan tools of other agents say `completed`, and models have learned it there.
    fn replace_synonyms(arguments: &mut Value) {
        let steps = arguments.get_mut("steps").and_then(Value::as_array_mut);
        let statuses = steps.into_iter().flatten().filter_map(|step| step.get_mut("status"));
        for status in statuses.filter(|status| **status == "completed") {
            *status = StepStatus::Done.as_str().into();
        }
    }

    fn prepare(
        context: ToolContext,
        call: Call,
        arguments: Arguments,
    ) -> Result<Prepared, Outcome> {
        let plan = WorkingPlan::from(arguments);
        // A link in its place that leads elsewhere is refused here: a note must not become an edit.
        let file = context.workspace.layout().path(Own::Plan);
        let current = context.workspace.write_target(&file, Purpose::Plan).map_err(path_error)?;
        let rewrite = Rewrite {
            current,
            content: plan.markdown().into_bytes(),
            purpose: Purpose::Plan,
            assessment: Assessment::of(Class::Note, "updates the working plan"),
            text: plan.acknowledgement(),
            diff: None,
            fact: Some(Fact::Plan(plan)),
        };
        Ok(rewrite.prepare(context.workspace, call.id))
    }
}
