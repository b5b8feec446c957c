//! `/name arguments`: a person calls for a skill (AX-114, MS-154).

use crate::Skills;
use crate::skill::{Context, Skill, Viewer};

/// A skill called for by a person, ready to be handed to an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invocation {
    /// The skill.
    pub name: String,
    /// What the agent reads: the instructions and what they are applied to.
    pub text: String,
    /// The only tools it may use, where it names any.
    pub allowed_tools: Option<Vec<String>>,
    /// Where it is followed.
    pub context: Context,
    /// The policy scope it runs under.
    pub genesis_scope: Option<String>,
}

/// Why a skill cannot be called for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvocationError {
    /// The skill is for agents only.
    #[error("skill `{name}` is not for people to call (`user-invocable: false`)")]
    NotForPeople {
        /// The skill.
        name: String,
    },
    /// The profile or role is not what it needs.
    #[error("skill `{name}` needs {needed}")]
    OutOfReach {
        /// The skill.
        name: String,
        /// What would do.
        needed: String,
    },
}

/// Reads `/name arguments`; `None` for any other text, also for a name that no skill has: it may be a
/// path or a command of the surface.
pub fn invoke(
    text: &str,
    skills: &Skills,
    viewer: Viewer,
) -> Option<Result<Invocation, InvocationError>> {
    let rest = text.trim().strip_prefix('/')?;
    let (name, arguments) = match rest.split_once(char::is_whitespace) {
        Some((name, arguments)) => (name, arguments.trim()),
        None => (rest, ""),
    };
    let skill = skills.get(name)?;
    let name = || skill.meta.name.clone();
    if !skill.meta.user_invocable {
        return Some(Err(InvocationError::NotForPeople { name: name() }));
    }
    if !skill.is_reached_by(viewer) {
        return Some(Err(InvocationError::OutOfReach { name: name(), needed: needed(skill) }));
    }
    Some(Ok(Invocation {
        name: name(),
        text: expanded(skill, arguments),
        allowed_tools: skill.meta.allowed_tools.clone(),
        context: skill.meta.context,
        genesis_scope: skill.meta.genesis_scope.clone(),
    }))
}

fn needed(skill: &Skill) -> String {
    let profile = skill.meta.permission_profile;
    match skill.meta.author_type {
        Some(role) => format!("profile `{profile}` or more and the role of {role}"),
        None => format!("profile `{profile}` or more"),
    }
}

fn expanded(skill: &Skill, arguments: &str) -> String {
    let name = &skill.meta.name;
    let body = skill.body.trim();
    // As other agents' commands have it: a body that names its arguments gets them in their place.
    let (body, rest) = match body.contains("$ARGUMENTS") {
        true => (body.replace("$ARGUMENTS", arguments), ""),
        false => (body.to_owned(), arguments),
    };
    let mut text =
        format!("Follow the skill `{name}`:\n\n<skill name=\"{name}\">\n{body}\n</skill>");
    if !skill.resources.is_empty() {
        text.push_str(&format!("\n\nOther files of this skill are under /skills/{name}/."));
    }
    if let Some(tools) = &skill.meta.allowed_tools {
        text.push_str(&format!("\n\nUse only these tools for it: {}.", tools.join(", ")));
    }
    if skill.meta.context == Context::Fork {
        text.push_str("\n\nCarry it out in a sub-agent (`spawn_agent`), if you have that tool.");
    }
    if !rest.is_empty() {
        text.push_str(&format!("\n\nApply it to: {rest}"));
    }
    text
}
