//! What each built-in tool does: its class and risk, before `bash` is parsed. The table of `DESIGN.md` §6.

use super::class::{Assessment, Class, Risk};

/// What the caller knows about a call that changes how bad it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// `write` would replace a file that exists and was not read in this task.
    pub replaces_unread: bool,
    /// `browser` would submit a form.
    pub submits: bool,
    /// `browser` would click or type.
    pub interacts: bool,
    /// An MCP server marked trusted says the tool only reads.
    pub trusted_read_only: bool,
}

/// Tools that always do the same, by class.
const TOOLS: &[(Class, Risk, &[&str])] = &[
    (
        Class::Read,
        Risk::Low,
        &["read", "glob", "grep", "list_skills", "read_skill", "search_memo", "bash_output"],
    ),
    (Class::Note, Risk::Low, &["update_plan", "save_memo", "publish_deliverable", "ask_user"]),
    (Class::Edit, Risk::Low, &["edit"]),
    (Class::Edit, Risk::Medium, &["write"]),
    (Class::LocalCommand, Risk::Medium, &["bash_kill"]),
    (Class::Read, Risk::Medium, &["web_search", "web_fetch", "browser"]),
    (Class::Delegate, Risk::Medium, &["spawn_agent"]),
    (Class::Ledger, Risk::Low, &["commit", "claim", "capture", "submit", "approve", "reject"]),
];

/// Judges a call of any tool but `bash`, whose command is read instead; `None` for an unknown tool.
pub fn assess(tool: &str, facts: Facts) -> Option<Assessment> {
    if tool.starts_with("mcp:") || tool.starts_with("mcp__") {
        let (class, reason) = match facts.trusted_read_only {
            true => (Class::Read, "a trusted server says it only reads"),
            false => (Class::LocalCommand, "a tool of an MCP server"),
        };
        return Some(Assessment::of(class, reason).at_least(Risk::Medium));
    }
    let (class, risk, _) = TOOLS.iter().find(|(_, _, tools)| tools.contains(&tool))?;
    let judged = Assessment::of(*class, format!("`{tool}`")).at_least(*risk);
    Some(match tool {
        "write" if facts.replaces_unread => {
            Assessment::of(Class::Opaque, "replaces a file that was not read in this task")
        }
        "browser" if facts.submits => Assessment::of(Class::Publish, "submits a form"),
        "browser" if facts.interacts => Assessment::of(Class::Build, "acts on a web page"),
        _ => judged,
    })
}

/// The least class a call of this tool can have; decides whether it is offered at all. (MS-066)
pub fn least_class(tool: &str) -> Class {
    match tool {
        "bash" => Class::Read,
        _ => assess(tool, Facts { trusted_read_only: true, ..Facts::default() })
            .map_or(Class::LocalCommand, |judged| judged.class),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(tool: &str, facts: Facts) -> (Class, Risk) {
        let judged = assess(tool, facts).unwrap();
        (judged.class, judged.risk)
    }

    /// ES-254, ES-255, ES-256, ES-257, ES-259, ES-260
    #[test]
    fn tools_have_the_risk_of_the_design() {
        let plain = Facts::default();
        for tool in ["read", "glob", "grep", "list_skills", "read_skill"] {
            assert_eq!(found(tool, plain), (Class::Read, Risk::Low), "{tool}");
        }
        for tool in ["update_plan", "save_memo", "search_memo", "publish_deliverable"] {
            assert_eq!(found(tool, plain).1, Risk::Low, "{tool}");
        }
        assert_eq!(found("edit", plain), (Class::Edit, Risk::Low));
        assert_eq!(found("write", plain), (Class::Edit, Risk::Medium));
        for tool in ["web_search", "web_fetch", "browser"] {
            assert_eq!(found(tool, plain), (Class::Read, Risk::Medium), "{tool}");
        }
    }

    /// ES-261
    #[test]
    fn facts_raise_the_risk_of_a_call() {
        let submits = Facts { submits: true, ..Facts::default() };
        assert_eq!(found("browser", submits), (Class::Publish, Risk::High));
        let unread = Facts { replaces_unread: true, ..Facts::default() };
        assert_eq!(found("write", unread), (Class::Opaque, Risk::High));
    }

    #[test]
    fn an_mcp_tool_is_believed_to_read_only_when_its_server_is_trusted() {
        let trusted = Facts { trusted_read_only: true, ..Facts::default() };
        assert_eq!(found("mcp:files:read", trusted), (Class::Read, Risk::Medium));
        assert_eq!(found("mcp:files:read", Facts::default()), (Class::LocalCommand, Risk::Medium));
    }

    #[test]
    fn an_unknown_tool_has_no_judgement() {
        assert_eq!(assess("format_disk", Facts::default()), None);
    }
}
