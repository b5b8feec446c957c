//! A skill's hooks: commands that run before a tool, and may refuse it, or after it (AX-022, AX-034).
//!
//! Two ways of writing them are read: a list, `- event: before_tool`, `tools: [bash]`, `command: …`; and
//! the map that other agents use, `PreToolUse: [{matcher: "Bash|Edit", hooks: [{command: …}]}]`. What
//! names another event, or no command, is kept as written and never run.

use serde_json::Value;

use crate::invoke::is_name_of;
use crate::skill::Skill;

/// When a hook is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HookTime {
    /// Before a tool runs; it may refuse the call.
    BeforeTool,
    /// After a tool ran; what it says against the outcome is added to it.
    AfterTool,
}

impl HookTime {
    /// Its name in what the hook receives.
    pub fn name(self) -> &'static str {
        match self {
            Self::BeforeTool => "before_tool",
            Self::AfterTool => "after_tool",
        }
    }

    fn is_called(self, written: &str) -> bool {
        let plain: String = written.chars().filter(char::is_ascii_alphanumeric).collect();
        let known: [&str; 2] = match self {
            Self::BeforeTool => ["beforetool", "pretooluse"],
            Self::AfterTool => ["aftertool", "posttooluse"],
        };
        known.contains(&plain.to_ascii_lowercase().as_str())
    }
}

impl Skill {
    /// Whether it brings any hooks along.
    pub fn has_hooks(&self) -> bool {
        self.meta.hooks.is_some()
    }

    /// The commands to run at this moment of a call of the tool of these names, in the order written.
    pub fn hooks(&self, when: HookTime, tool: &[&str]) -> Vec<String> {
        let matches = |tools: Option<&Value>| match tools {
            None => true,
            Some(Value::String(text)) => {
                let text = text.trim();
                matches!(text, "" | "*") || text.split('|').any(|name| is_name_of(name, tool))
            }
            Some(Value::Array(list)) => {
                list.iter().filter_map(Value::as_str).any(|name| is_name_of(name, tool))
            }
            Some(_) => false,
        };
        let text = |value: &Value| value.as_str().map(str::to_owned);
        match &self.meta.hooks {
            Some(Value::Array(list)) => list
                .iter()
                .filter(|hook| hook["event"].as_str().is_some_and(|event| when.is_called(event)))
                .filter(|hook| matches(hook.get("tools").or_else(|| hook.get("matcher"))))
                .filter_map(|hook| text(&hook["command"]))
                .collect(),
            Some(Value::Object(events)) => events
                .iter()
                .filter(|(event, _)| when.is_called(event))
                .flat_map(|(_, groups)| groups.as_array().into_iter().flatten())
                .filter(|group| matches(group.get("matcher").or_else(|| group.get("tools"))))
                .flat_map(|group| group["hooks"].as_array().into_iter().flatten())
                .filter_map(|hook| text(&hook["command"]))
                .collect(),
            Some(_) | None => Vec::new(),
        }
    }
}
