//! The texts that the model reads: the system prompt from its sections, the task message, and notices.
//!
//! Every text is a file in `prompts/`, reviewed like code. A section that does not apply is left out.

use std::fmt::Write as _;

use windlass_core::axes::{Axes, PermissionProfile, WorkMode};
use windlass_core::command::TaskCommand;
use windlass_core::event::TaskCreated;
use windlass_core::id::CallId;
use windlass_core::layout::{Layout, LayoutKind, Own};
use windlass_core::message::{Message, ToolSpec};
use windlass_core::model_text::neutralize;
use windlass_core::picture::Picture;
use windlass_core::planning::PlanTask;
use windlass_core::policy::decide::{by_profile, is_usable_in};
use windlass_core::policy::{Class, Decision};
use windlass_core::role::Role;

use crate::memory::RecalledMemories;

/// The result of a call with an unknown outcome.
pub const UNKNOWN_OUTCOME: &str = include_str!("prompts/unknown_outcome.md");
/// The result of a call that its task ended before.
pub const NOT_RUN: &str = include_str!("prompts/not_run.md");
/// Why a call or a sub-agent was ended by a person who interrupted the work.
pub const INTERRUPTED: &str = include_str!("prompts/interrupted.md");
/// The result of a call that a person interrupted the work before.
pub const NOT_BEGUN: &str = include_str!("prompts/not_begun.md");
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

/// Why an older picture is only named after a compaction.
pub const FADED: &str = include_str!("prompts/faded.md");

/// What an agent is advised to do when a hook refuses a call.
pub const HOOK_SUGGESTION: &str = include_str!("prompts/hook_suggestion.md");

/// What the system prompt is made from.
pub struct PromptInput<'a> {
    /// The tools offered, in order.
    pub tools: &'a [ToolSpec],
    /// The axes in force.
    pub axes: Axes,
    /// The role in force.
    pub role: Option<Role>,
    /// The commitments that an executor works on, one line each.
    pub commitments: &'a str,
    /// Where the agent's files are, as it sees them.
    pub layout: &'a Layout,
    /// Names and descriptions of the skills.
    pub skills: &'a [(String, String)],
    /// The project's own instructions for agents.
    pub instructions: Option<&'a str>,
    /// Whether it is shown a tool that starts sub-agents.
    pub can_delegate: bool,
    /// Its place in a plan.
    pub plan: Option<&'a PlanTask>,
}

/// The system prompt (ES-124…131, ES-405…415).
pub fn system(about: &PromptInput<'_>) -> String {
    let mut sections = vec![
        include_str!("prompts/identity.md").to_owned(),
        fill(include_str!("prompts/tools.md"), &[("tools", &tool_list(about.tools))]),
        include_str!("prompts/planning.md").to_owned(),
        include_str!("prompts/working.md").to_owned(),
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
            ("rules", &rules(&about.axes, about.role)),
        ],
    ));
    sections.push(work_mode(about.axes.work_mode, about.role));
    sections.extend(role(about));
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
    if let Some((plan, text)) =
        about.plan.and_then(|plan| Some((plan, plan.agent_prompt.as_ref()?)))
    {
        let agent = plan.agent.as_deref().unwrap_or_default();
        let values = [("agent", agent), ("plan", &plan.name), ("instructions", text.trim())];
        sections.push(fill(include_str!("prompts/plan_agent.md"), &values));
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
        ("rules", &rules(&about.axes, about.role)),
    ];
    let mut sections = vec![
        include_str!("prompts/minimal.md").to_owned(),
        fill(include_str!("prompts/tools.md"), &[("tools", &tool_list(about.tools))]),
        files(about.layout),
        about.layout.fill(include_str!("prompts/context.md")),
        fill(include_str!("prompts/safety.md"), &values),
    ];
    sections.extend(read_only_section(about.axes.work_mode, about.role));
    sections.extend(role(about));
    sections.push(include_str!("prompts/denials.md").to_owned());
    sections.join("\n")
}

/// What the work mode means for an agent (MS-022, MS-029, MS-030, MS-045).
fn work_mode(mode: WorkMode, role: Option<Role>) -> String {
    let text = match mode {
        WorkMode::Chat => include_str!("prompts/modes/chat.md"),
        WorkMode::Plan => include_str!("prompts/modes/plan.md"),
        WorkMode::Build => include_str!("prompts/modes/build.md"),
        WorkMode::Review => include_str!("prompts/modes/review.md"),
        WorkMode::Repair => include_str!("prompts/modes/repair.md"),
        WorkMode::Research => include_str!("prompts/modes/research.md"),
    };
    match read_only(mode, role) {
        Some(limits) => format!("{text}\n{limits}"),
        None => text.to_owned(),
    }
}

/// What a work mode that is read-only forbids; nothing for the others.
fn read_only(mode: WorkMode, role: Option<Role>) -> Option<String> {
    if role == Some(Role::Auditor) {
        return Some(include_str!("prompts/audit.md").to_owned());
    }
    let way_out = match mode {
        WorkMode::Plan => "Such changes are what your plan is for.",
        WorkMode::Review | WorkMode::Research => {
            "When the goal needs such a change, say in your final message exactly what should be changed; the \
             user can have it made in work mode `build`."
        }
        WorkMode::Chat | WorkMode::Build | WorkMode::Repair => return None,
    };
    Some(fill(include_str!("prompts/read_only.md"), &[("way_out", way_out)]))
}

/// The same for a sub-agent, which has one piece of the work.
fn read_only_section(mode: WorkMode, role: Option<Role>) -> Option<String> {
    let limits = read_only(mode, role)?;
    Some(format!("# Work Mode\n\nYou work in mode `{mode}`. {limits}"))
}

/// That the user has accepted a plan, with its text where that is not what the agent said.
pub fn plan_accepted(axes: &Axes, path: &str, text: Option<&String>) -> String {
    let values = [
        ("mode", axes.work_mode.as_str()),
        ("control", axes.run_control.as_str()),
        ("profile", axes.permission_profile.as_str()),
        ("path", path),
    ];
    let accepted = line(include_str!("prompts/plan_accepted.md"), &values);
    let edited = include_str!("prompts/plan_accepted_edited.md");
    text.map_or(accepted.clone(), |text| accepted + &line(edited, &[("text", text.as_str())]))
}

/// That the user has edited a plan which is to be revised.
pub fn plan_edited(text: &str) -> String {
    line(include_str!("prompts/plan_edited.md"), &[("text", text)])
}

/// Tells an agent at work that its rules have changed.
pub fn mode_changed(before: &Axes, now: &Axes, role: Option<Role>) -> String {
    let (before, now) = (before.to_string(), now.to_string());
    let values = [("before", before.as_str()), ("axes", now.as_str())];
    let changed = line(include_str!("prompts/mode_changed.md"), &values);
    match role {
        Some(role) => format!("{changed} You work in the role `{role}` now."),
        None => changed,
    }
}

/// What the role means for an agent (AX-077).
fn role(about: &PromptInput<'_>) -> Option<String> {
    let role = about.role?;
    let work = match about.commitments.is_empty() {
        true => String::new(),
        false => line(include_str!("prompts/claimed.md"), &[("commitments", about.commitments)]),
    };
    Some(format!("# Role\n\n{}\n{work}", role.prompt()))
}

/// What of a completion contract is not met, for the agent that has to meet it.
pub fn contract_unmet(unmet: &str) -> String {
    line(include_str!("prompts/contract_unmet.md"), &[("unmet", unmet)])
}

/// What an auditor is to judge.
pub fn audit_goal(task: &str, goal: &str, said: &str, checks: &str) -> String {
    let values = [("task", task), ("goal", goal), ("said", said), ("checks", checks)];
    line(include_str!("prompts/audit_goal.md"), &values)
}

/// That an auditor has rejected the work.
pub fn audit_rejected(by: &str, reason: &str) -> String {
    line(include_str!("prompts/audit_rejected.md"), &[("by", by), ("reason", reason)])
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
pub fn summary_message(sections: &str) -> String {
    fill(include_str!("prompts/compacted.md"), &[("sections", sections)])
}

/// The sections of [`compacted`], in the order of the file; those without a text are left out.
pub fn compacted_sections(values: &[(&str, &str)]) -> String {
    let template = include_str!("prompts/compacted_sections.md").trim_end();
    let has_text = |section: &&str| {
        let is_in = |key: &str| section.contains(&format!("{{{{{key}}}}}"));
        values.iter().any(|(key, text)| !text.is_empty() && is_in(key))
    };
    let sections = template.trim_start_matches("## ").split("\n\n## ").filter(has_text);
    let filled = sections.map(|section| fill(&format!("## {section}"), values));
    filled.collect::<Vec<_>>().join("\n\n")
}

/// The summary of an earlier compaction, for the summarizer of the next.
pub fn earlier_summary(earlier: &str) -> String {
    line(include_str!("prompts/earlier_summary.md"), &[("earlier", earlier)])
}

/// That so many of the changed files are not named.
pub fn earlier_files(count: usize) -> String {
    line(include_str!("prompts/earlier_files.md"), &[("count", &count.to_string())])
}

/// The first and the newest of the files that hold earlier turns.
pub fn turn_files(first: &str, last: &str) -> String {
    line(include_str!("prompts/turn_files.md"), &[("first", first), ("last", last)])
}

/// A text without its middle.
#[derive(Clone, Copy)]
pub struct ShortenedOutput<'a> {
    pub head: &'a str,
    pub tail: &'a str,
    pub left_out: usize,
}

impl ShortenedOutput<'_> {
    /// What the summarizer reads of it.
    pub fn text(self) -> String {
        self.fill(include_str!("prompts/shortened.md"), &[])
    }

    /// What stays of the result of a call, and where the whole of it is.
    pub fn result(self, call: CallId, file: Option<&str>) -> String {
        let call = call.to_string();
        match file {
            Some(file) => {
                self.fill(include_str!("prompts/shrunk.md"), &[("file", file), ("call", &call)])
            }
            None => self.fill(include_str!("prompts/shrunk_lost.md"), &[]),
        }
    }

    fn fill(self, template: &str, more: &[(&str, &str)]) -> String {
        let bytes = self.left_out.to_string();
        let own = [("head", self.head), ("tail", self.tail), ("bytes", &bytes)];
        line(template, &[&own, more].concat())
    }
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

/// Why an agent that follows a skill can only read: nobody has said what the skill's scope allows.
pub fn unknown_scope(skill: &str, scope: &str) -> String {
    line(include_str!("prompts/unknown_scope.md"), &[("skill", skill), ("scope", scope)])
}

/// Why a tool cannot be used in a task of a plan.
pub fn outside_plan(plan: &PlanTask) -> String {
    let tools = plan.tools.as_deref().unwrap_or_default().join("`, `");
    let values = [("task", plan.key.as_str()), ("tools", &tools)];
    line(include_str!("prompts/outside_plan.md"), &values)
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

/// Names the pictures of a result, in the order in which they are shown before it.
pub fn pictures(tool: &str, pictures: &[Picture]) -> String {
    let names: Vec<_> = pictures.iter().map(ToString::to_string).collect();
    let values = [("tool", tool), ("pictures", &names.join("; "))];
    line(include_str!("prompts/pictures.md"), &values)
}

/// What a hook says about a call that ran.
pub fn hook_remark(skill: &str, words: &str) -> String {
    line(include_str!("prompts/hook_remark.md"), &[("skill", skill), ("words", words)])
}

/// The messages a conversation opens with (ES-123, ES-132…135, ES-297).
pub fn opening(
    created: &TaskCreated,
    recalled: &RecalledMemories,
    layout: &Layout,
    environment: Option<&str>,
) -> Vec<Message> {
    let command = &created.command;
    if let Some(resumed) = &command.resume_context {
        let mut messages = resumed.previous_messages.clone();
        let injection = &resumed.injection;
        let message = |text| Message::with_pictures(text, injection.pictures.clone());
        messages.extend(injection.text_for_model().map(message));
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
    if !recalled.memories.is_empty() {
        let _ = write!(text, "\n{}", include_str!("prompts/memories.md"));
        for memory in &recalled.memories {
            let _ = writeln!(text, "- {}", neutralize(memory.trim()).replace('\n', "\n  "));
        }
    }
    if let Some(known) = &recalled.task_context {
        let _ = write!(text, "\n# What is known of this task\n\n{}\n", neutralize(known.trim()));
    }
    if let Some(directory) = layout.task_directory() {
        let values = [("directory", directory.as_str())];
        let _ = write!(text, "\n{}", fill(include_str!("prompts/task_directory.md"), &values));
    }
    if let Some(environment) = environment {
        let _ = write!(text, "\n{environment}");
    }
    vec![Message::with_pictures(text, created.pictures.clone())]
}

/// Where the agent works, one line for each fact.
pub fn environment(lines: &str) -> String {
    fill(include_str!("prompts/environment.md"), &[("lines", lines)])
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

/// The names alone: what each is for comes with its schema, and saying it twice costs every request.
fn tool_list(tools: &[ToolSpec]) -> String {
    let names: Vec<String> = tools.iter().map(|tool| format!("`{}`", tool.name)).collect();
    format!("{}.", names.join(", "))
}

/// The gate's table for these axes, in words (ES-129, ES-412).
fn rules(axes: &Axes, role: Option<Role>) -> String {
    let of = |wanted: Decision| -> String {
        let decision = |class| match is_usable_in(axes.work_mode, class) {
            _ if role == Some(Role::Auditor) && class == Class::Test => Decision::Allow,
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

pub(crate) fn fill(template: &str, values: &[(&str, &str)]) -> String {
    // Values are inserted in one pass, so that a value holding a placeholder is left as it is.
    let mut text = String::with_capacity(template.len());
    let mut rest = template;
    while let Some((before, after)) = rest.split_once("{{") {
        let Some((name, tail)) = after.split_once("}}") else { break };
        text.push_str(before);
        let value = values.iter().find(|(key, _)| *key == name).map_or("", |(_, value)| value);
        // Values come from files, repositories and other agents; nobody may have looked at them.
        text.push_str(&neutralize(value));
        rest = tail;
    }
    text.push_str(rest);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_characters_of_values_are_marked() {
        let values = [("text", "a\u{200b}\u{202e}\u{e0041}\u{1b}[2J\u{9b} {{text}}")];
        let marked = "<a\\u{200B}\\u{202E}\\u{E0041}␛[2J\u{fffd} {{text}}>";
        assert_eq!(fill("<{{text}}>", &values), marked);
    }
}
