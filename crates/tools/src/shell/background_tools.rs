//! `bash_output` and `bash_kill`: reading and ending background commands.

use schemars::JsonSchema;
use serde::Deserialize;
use windlass_core::id::CallId;
use windlass_core::outcome::{Outcome, Recovery};
use windlass_core::policy::{Assessment, Class, Risk};
use windlass_core::tool_name;

use super::background::Unread;
use super::{Shell, exit_words};
use crate::builtin::{Builtin, act, read_only};
use crate::tool::{Call, Category, Prepared, ToolContext};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// The command, by the name that `bash` gave it.
    id: String,
}

pub(super) struct BashOutput;
pub(super) struct BashKill;

impl Builtin for BashOutput {
    type Arguments = Arguments;
    const NAME: &'static str = tool_name::BASH_OUTPUT;
    const DESCRIPTION: &'static str = include_str!("descriptions/bash_output.md");
    const CATEGORY: Category = Category::Environment;
    const MIN_CLASS: (Class, Risk) = (Class::Read, Risk::Low);
    const ALIASES: &'static [&'static str] = &[tool_name::BASH];

    fn prepare(
        context: ToolContext,
        _call: Call,
        arguments: Arguments,
    ) -> Result<Prepared, Outcome> {
        let id = command_id(&arguments)?;
        let act = act(move || read(&context.shell, id));
        Ok(read_only(format!("reads the output of `{id}`"), act))
    }
}

impl Builtin for BashKill {
    type Arguments = Arguments;
    const NAME: &'static str = tool_name::BASH_KILL;
    const DESCRIPTION: &'static str = include_str!("descriptions/bash_kill.md");
    const CATEGORY: Category = Category::Environment;
    const MIN_CLASS: (Class, Risk) = (Class::LocalCommand, Risk::Medium);
    const ALIASES: &'static [&'static str] = &[tool_name::BASH];

    fn prepare(
        context: ToolContext,
        _call: Call,
        arguments: Arguments,
    ) -> Result<Prepared, Outcome> {
        let id = command_id(&arguments)?;
        let assessment = Assessment::of(Class::LocalCommand, format!("ends `{id}`"));
        let act = act(move || match context.shell.kill(id) {
            true => Outcome::ok(format!("Ending `{id}`.")),
            false => unknown(id),
        });
        // A command that is gone cannot be ended twice.
        Ok(Prepared::new(assessment, Recovery::Rerun, act))
    }
}

fn command_id(arguments: &Arguments) -> Result<CallId, Outcome> {
    arguments.id.parse().map_err(|_| {
        Outcome::error(format!("`{}` is not the name of a background command.", arguments.id))
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
        "There is no background command `{id}`; it ended long ago or in an earlier run of this task, or \
         never existed."
    ))
}
