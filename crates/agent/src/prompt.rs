//! The texts that the model reads: the system prompt from its sections, the task message, and notices.
//!
//! Every text is a file in `prompts/`, reviewed like code. A section that does not apply is left out.

use std::fmt::Write as _;

use windlass_core::axes::{Axes, PermissionProfile, WorkMode};
use windlass_core::command::TaskCommand;
use windlass_core::id::CallId;
use windlass_core::layout::{Layout, LayoutKind, Own};
use windlass_core::message::{Message, ToolSpec};
use windlass_core::policy::decide::{by_profile, is_usable_in};
use windlass_core::policy::{Class, Decision};

use crate::memory::RecalledMemories;

/// The result of a call with an unknown outcome.
pub const UNKNOWN_OUTCOME: &str = include_str!("prompts/unknown_outcome.md");
/// The result of a call that its task ended before.
pub const NOT_RUN: &str = include_str!("prompts/not_run.md");
/// The result of an answered `ask_user` call.
pub const ANSWERED: &str = include_str!("prompts/answered.md");
/// What replaces the turns that were too long to send together, while notes are saved.
pub const LEFT_OUT: &str = include_str!("prompts/left_out.md");
/// Follows when notes are saved.
pub const FLUSHED: &str = include_str!("prompts/flushed.md");
/// Asks for the rest of a reply that was cut at the model's output limit.
pub const CUT: &str = include_str!("prompts/cut.md");
/// Reports that the provider's filter stopped the last reply.
pub const WITHHELD: &str = include_str!("prompts/withheld.md");

/// What an agent is advised to do when a hook refuses a call.
pub const HOOK_SUGGESTION: &str = include_str!("prompts/hook_suggestion.md");

/// What the system prompt is made from.
pub struct PromptInput<'a> {
    /// The tools offered, in order.
    pub tools: &'a [ToolSpec],
    /// The axes in force.
    pub axes: Axes,
    /// Where the agent's files are, as it sees them.
    pub layout: &'a Layout,
    /// Names and descriptions of the skills.
    pub skills: &'a [(String, String)],
    /// The project's own instructions for agents.
    pub instructions: Option<&'a str>,
    /// Whether it is shown a tool that starts sub-agents.
    pub can_delegate: bool,
}

/// The system prompt (ES-124…131, ES-405…415).
pub fn system(about: &PromptInput<'_>) -> String {
    let mut sections = vec![
        include_str!("prompts/identity.md").to_owned(),
        fill(include_str!("prompts/tools.md"), &[("tools", &tool_list(about.tools))]),
        include_str!("prompts/planning.md").to_owned(),
        files(about.layout),
        about.layout.fill(include_str!("prompts/context.md")),
    ];
    if about.can_delegate {
        sections.push(include_str!("prompts/sub_agents.md").to_owned());
    }
    sections.push(include_str!("prompts/events.md").to_owned());
    sections.push(include_str!("prompts/deliverables.md").to_owned());
    sections.push(fill(
        include_str!("prompts/safety.md"),
        &[
            ("profile", about.axes.permission_profile.as_str()),
            ("control", about.axes.run_control.as_str()),
            ("rules", &rules(&about.axes)),
        ],
    ));
    sections.extend(read_only(about.axes.work_mode));
    sections.push(include_str!("prompts/denials.md").to_owned());
    if !about.skills.is_empty() {
        let list: String =
            about.skills.iter().map(|(name, what)| format!("- `{name}`: {what}\n")).collect();
        sections.push(fill(include_str!("prompts/skills.md"), &[("skills", list.trim_end())]));
    }
    if let Some(text) = about.instructions {
        let text = text.trim();
        sections.push(fill(include_str!("prompts/project.md"), &[("instructions", text)]));
    }
    sections.push(include_str!("prompts/completion.md").to_owned());
    sections.join("\n")
}

/// The system prompt of a sub-agent: tools, workspace, safety (ES-239).
pub fn minimal(about: &PromptInput<'_>) -> String {
    let (profile, control) = (about.axes.permission_profile, about.axes.run_control);
    let values = [
        ("profile", profile.as_str()),
        ("control", control.as_str()),
        ("rules", &rules(&about.axes)),
    ];
    let mut sections = vec![
        include_str!("prompts/minimal.md").to_owned(),
        fill(include_str!("prompts/tools.md"), &[("tools", &tool_list(about.tools))]),
        files(about.layout),
        about.layout.fill(include_str!("prompts/context.md")),
        fill(include_str!("prompts/safety.md"), &values),
    ];
    sections.extend(read_only(about.axes.work_mode));
    sections.push(include_str!("prompts/denials.md").to_owned());
    sections.join("\n")
}

/// What a work mode that is read-only means; nothing for the others.
fn read_only(mode: WorkMode) -> Option<String> {
    let purpose = match mode {
        WorkMode::Plan => "work out a plan for someone who carries it out.",
        WorkMode::Review => "judge work that exists, and report what you find.",
        WorkMode::Research => "find things out, and report what you find.",
        WorkMode::Chat | WorkMode::Build | WorkMode::Repair => return None,
    };
    let values = [("mode", mode.as_str()), ("purpose", purpose)];
    Some(fill(include_str!("prompts/read_only.md"), &values))
}

/// Where files are and belong.
fn files(layout: &Layout) -> String {
    let text = match layout.kind() {
        LayoutKind::Service => include_str!("prompts/files.md"),
        LayoutKind::Personal => include_str!("prompts/files_personal.md"),
    };
    let (start, top) = (layout.start(), layout.top());
    let text = layout.fill(text);
    fill(&text, &[("start", &start), ("workspace", top)])
}

/// Asks the agent to save its notes (ES-158).
pub fn flush(layout: &Layout) -> String {
    line(include_str!("prompts/flush.md"), &[("memo", &layout.absolute(Own::Memo))])
}

/// The instructions of the summarizer (ES-162, ES-171).
pub fn summarize(words: u64) -> String {
    fill(include_str!("prompts/summarize.md"), &[("words", &words.to_string())])
}

/// Asks for another summary when one cannot be used.
pub fn summarize_again(problem: &str, words: u64) -> String {
    let words = words.to_string();
    fill(include_str!("prompts/summarize_again.md"), &[("problem", problem), ("words", &words)])
}

/// One part of the record that it summarizes.
pub fn record_part(part: usize, parts: usize, record: &str) -> String {
    let (part, parts) = (part.to_string(), parts.to_string());
    let values = [("part", part.as_str()), ("parts", &parts), ("record", record)];
    fill(include_str!("prompts/record_part.md"), &values)
}

/// The message that replaces what was dropped from a context.
pub fn compacted(sections: &str) -> String {
    fill(include_str!("prompts/compacted.md"), &[("sections", sections)])
}

/// That a background command has ended.
pub fn command_exited(call: CallId, command: &str, exit: &str) -> String {
    let call = call.to_string();
    let values = [("call", call.as_str()), ("command", command), ("exit", exit)];
    line(include_str!("prompts/command_exited.md"), &values)
}

/// Says that the sandbox was restarted, which ended a background command and `others` more.
pub fn sandbox_restarted(call: CallId, command: &str, others: usize) -> String {
    let call = call.to_string();
    let more = if others == 0 { String::new() } else { format!(" and {others} more") };
    let values = [("call", call.as_str()), ("command", command), ("more", &more)];
    line(include_str!("prompts/sandbox_restarted.md"), &values)
}

/// That the sandbox was lost.
pub fn sandbox_lost(why: &str) -> String {
    line(include_str!("prompts/sandbox_lost.md"), &[("why", why)])
}

/// Why a sub-agent was not started: there were too many.
pub fn too_many_agents(limit: u32) -> String {
    line(include_str!("prompts/too_many_agents.md"), &[("limit", &limit.to_string())])
}

/// Why a sub-agent is not started: it would be nested too deep.
pub fn too_deep(depth: u32) -> String {
    line(include_str!("prompts/too_deep.md"), &[("depth", &depth.to_string())])
}

/// Why a tool cannot be used while notes are saved.
pub fn only_notes(tools: &[&str]) -> String {
    line(include_str!("prompts/only_notes.md"), &[("tools", &tools.join("`, `"))])
}

/// Why a tool cannot be used by an agent that follows a skill.
pub fn outside_skill(skill: &str, tools: &[String]) -> String {
    let values = [("skill", skill), ("tools", &tools.join("`, `"))];
    line(include_str!("prompts/outside_skill.md"), &values)
}

/// Why a tool is not available.
pub fn out_of_profile(tool: &str, profile: PermissionProfile) -> String {
    let values = [("tool", tool), ("profile", profile.as_str())];
    line(include_str!("prompts/out_of_profile.md"), &values)
}

/// Why a hook refuses a call.
pub fn hook_refused(skill: &str, words: &str) -> String {
    line(include_str!("prompts/hook_refused.md"), &[("skill", skill), ("words", words)])
}

/// What a hook says about a call that ran.
pub fn hook_remark(skill: &str, words: &str) -> String {
    line(include_str!("prompts/hook_remark.md"), &[("skill", skill), ("words", words)])
}

/// The messages a conversation opens with (ES-123, ES-132…135, ES-297).
pub fn opening(
    command: &TaskCommand,
    recalled: &RecalledMemories,
    layout: &Layout,
) -> Vec<Message> {
    if let Some(resumed) = &command.resume_context {
        let mut messages = resumed.previous_messages.clone();
        messages.extend(resumed.injection.text_for_model().map(Message::user));
        return messages;
    }
    let mut text = fill(include_str!("prompts/task.md"), &[("goal", command.goal.trim())]);
    let mut list = |title: &str, items: &[String]| {
        if !items.is_empty() {
            let _ = write!(text, "\n# {title}\n\n");
            for item in items {
                let _ = writeln!(text, "- {item}");
            }
        }
    };
    list("Constraints", &command.constraints);
    list("What is remembered from earlier work", &recalled.memories);
    if let Some(known) = &recalled.task_context {
        let _ = write!(text, "\n# What is known of this task\n\n{}\n", known.trim());
    }
    if let Some(directory) = layout.task_directory() {
        let values = [("directory", directory.as_str())];
        let _ = write!(text, "\n{}", fill(include_str!("prompts/task_directory.md"), &values));
    }
    vec![Message::user(text)]
}

/// What a person asks for after a task has ended.
pub fn follow_up(command: &TaskCommand) -> String {
    let mut text = command.goal.trim().to_owned();
    if !command.constraints.is_empty() {
        let list: String = command.constraints.iter().map(|item| format!("\n- {item}")).collect();
        let _ = write!(text, "\n\nConstraints:\n{list}");
    }
    text
}

fn tool_list(tools: &[ToolSpec]) -> String {
    let lines = tools.iter().map(|tool| {
        let first = tool.description.lines().next().unwrap_or_default();
        format!("- `{}`: {first}", tool.name)
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// The gate's table for these axes, in words (ES-129, ES-412).
fn rules(axes: &Axes) -> String {
    let of = |wanted: Decision| -> String {
        let decision = |class| match is_usable_in(axes.work_mode, class) {
            true => by_profile(class, axes.permission_profile),
            false => Decision::Deny,
        };
        let classes = Class::ALL.iter().filter(|&&class| decision(class) == wanted);
        let words: Vec<_> = classes.map(|class| in_words(*class)).collect();
        words.join("; ")
    };
    let mut text = String::new();
    for (decision, meaning) in [
        (Decision::Allow, "Runs at once"),
        (Decision::Ask, "Waits until the user has agreed"),
        (Decision::Deny, "Is refused"),
    ] {
        let classes = of(decision);
        if !classes.is_empty() {
            let _ = writeln!(text, "- {meaning}: {classes}.");
        }
    }
    if axes.run_control == windlass_core::axes::RunControl::Manual {
        text.push_str(
            "- Run control is manual: everything above reading and notes waits for the user.\n",
        );
    }
    text.trim_end().to_owned()
}

const fn in_words(class: Class) -> &'static str {
    match class {
        Class::Read => "reading files, searching, looking things up",
        Class::Note => "plans, memos, questions, deliverables",
        Class::Ledger => "commitments and evidence",
        Class::Edit => "changing files in the workspace",
        Class::Delegate => "starting sub-agents",
        Class::LocalCommand => "ordinary commands in the workspace",
        Class::Test => "tests and linters",
        Class::Build => {
            "builds, installs, local commits, running the project's own code, acting on web pages"
        }
        Class::Publish => {
            "sending something elsewhere (pushes, pull requests, forms, requests that carry a file's, a \
             variable's or a command's content)"
        }
        Class::Production => {
            "anything that touches production or protected branches, and files that change your own \
             rules (`.windlass/`, `.mcp.json`, skills, `AGENTS.md`)"
        }
        Class::Destructive => {
            "deleting (`rm`), changing permissions or owners, ending processes, \
                               discarding work, writing outside the workspace"
        }
        Class::Opaque => "commands that cannot be read beforehand",
        Class::Catastrophic => {
            "recursive forced deletion (`rm -rf`), `sudo` and other privileges, \
                                formatting and raw device writes"
        }
    }
}

/// A text that becomes part of another one.
fn line(template: &str, values: &[(&str, &str)]) -> String {
    fill(template.trim_end(), values)
}

fn fill(template: &str, values: &[(&str, &str)]) -> String {
    // Values are inserted in one pass, so that a value holding a placeholder is left as it is.
    let mut text = String::with_capacity(template.len());
    let mut rest = template;
    while let Some((before, after)) = rest.split_once("{{") {
        let Some((name, tail)) = after.split_once("}}") else { break };
        text.push_str(before);
        let value = values.iter().find(|(key, _)| *key == name).map_or("", |(_, value)| value);
        text.push_str(value);
        rest = tail;
    }
    text.push_str(rest);
    text
}
