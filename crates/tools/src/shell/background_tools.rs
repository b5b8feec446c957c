//! `bash_output` and `bash_kill`: looking after background commands.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use windlass_core::id::CallId;
use windlass_core::outcome::{Outcome, Recovery};
use windlass_core::policy::{Assessment, Class, Risk};

use super::background::Unread;
use super::{Shell, exit_words};
use crate::schema;
use crate::tool::{Act, Call, Category, Prepared, Tool, ToolContext};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The command, by the name that `bash` gave it.
    id: String,
}

pub(super) struct BashOutput;
pub(super) struct BashKill;

impl Tool for BashOutput {
    fn name(&self) -> &'static str {
        "bash_output"
    }

    fn description(&self) -> &'static str {
        include_str!("descriptions/bash_output.md").trim_ascii_end()
    }

    fn parameters(&self) -> Value {
        schema::of::<Arguments>()
    }

    fn category(&self) -> Category {
        Category::Environment
    }

    fn aliases(&self) -> &'static [&'static str] {
        &["bash"]
    }

    fn prepare(
        &self,
        context: &ToolContext,
        call: Call,
    ) -> BoxFuture<'_, Result<Prepared, Outcome>> {
        let shell = Arc::clone(&context.shell);
        Box::pin(std::future::ready(named(call).map(|id| {
            let assessment = Assessment::of(Class::Read, format!("reads the output of `{id}`"));
            let act: Act = Box::new(move || Box::pin(async move { read(&shell, id) }));
            Prepared::new(assessment, Recovery::Rerun, act)
        })))
    }
}

impl Tool for BashKill {
    fn name(&self) -> &'static str {
        "bash_kill"
    }

    fn description(&self) -> &'static str {
        include_str!("descriptions/bash_kill.md").trim_ascii_end()
    }

    fn parameters(&self) -> Value {
        schema::of::<Arguments>()
    }

    fn category(&self) -> Category {
        Category::Environment
    }

    fn aliases(&self) -> &'static [&'static str] {
        &["bash"]
    }

    fn min_class(&self) -> (Class, Risk) {
        (Class::LocalCommand, Risk::Medium)
    }

    fn prepare(
        &self,
        context: &ToolContext,
        call: Call,
    ) -> BoxFuture<'_, Result<Prepared, Outcome>> {
        let shell = Arc::clone(&context.shell);
        Box::pin(std::future::ready(named(call).map(|id| {
            let assessment = Assessment::of(Class::LocalCommand, format!("ends `{id}`"));
            let act: Act = Box::new(move || {
                Box::pin(async move {
                    if shell.kill(id) {
                        Outcome::ok(format!("Ending `{id}`."))
                    } else {
                        unknown(id)
                    }
                })
            });
            // A command that is gone cannot be ended twice.
            Prepared::new(assessment, Recovery::Rerun, act)
        })))
    }
}

fn named(mut call: Call) -> Result<CallId, Outcome> {
    let given: Arguments = serde_json::from_value(call.arguments.take())
        .map_err(|error| Outcome::error(format!("The arguments do not fit: {error}")))?;
    given.id.parse().map_err(|_| {
        Outcome::error(format!("`{}` is not the name of a background command.", given.id))
    })
}

fn read(shell: &Shell, id: CallId) -> Outcome {
    let Some(Unread { text, exit }) = shell.take_unread(id) else { return unknown(id) };
    let state = match exit {
        None => "still running".to_owned(),
        Some(exit) => exit_words(exit, None).unwrap_or_else(|| "exit code 0".to_owned()),
    };
    let text = if text.is_empty() { "(nothing new)\n".to_owned() } else { text };
    let line_end = if text.ends_with('\n') { "" } else { "\n" };
    Outcome::ok(format!("{text}{line_end}[{state}]"))
}

fn unknown(id: CallId) -> Outcome {
    Outcome::error(format!(
        "There is no background command `{id}`; it ended long ago or with an earlier run of this task, or \
         never was."
    ))
}
