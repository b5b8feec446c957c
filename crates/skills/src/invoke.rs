//! `/name arguments`: a person calls for a skill (AX-114, MS-154).

use crate::Skills;
use crate::skill::{Context, Skill, Viewer};

/// A skill called for, ready to be handed to an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invocation {
    pub name: String,
    /// What an agent reads that follows it itself: the instructions and what they are applied to.
    pub text: String,
    /// What an agent in the middle of something reads: the same, or to let a sub-agent follow it.
    pub message: String,
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
    NotForPeople { name: String },
    /// The profile or role is not what it needs.
    #[error("skill `{name}` needs {needed}")]
    OutOfReach {
        name: String,
        /// What would do.
        needed: String,
    },
}

/// Reads a person's `/name arguments`; `None` for any other text, also for a name that no skill has: it
/// may be a path or a command of the surface.
pub fn invoke(
    text: &str,
    skills: &Skills,
    viewer: Viewer,
) -> Option<Result<Invocation, InvocationError>> {
    let (skill, arguments) = called_skill(text, skills)?;
    let name = || skill.meta.name.clone();
    if !skill.meta.user_invocable {
        return Some(Err(InvocationError::NotForPeople { name: name() }));
    }
    if !skill.is_reached_by(viewer) {
        return Some(Err(InvocationError::OutOfReach {
            name: name(),
            needed: required_text(skill),
        }));
    }
    let text = expand(skill, arguments);
    let message = match skill.meta.context {
        Context::Inline => text.clone(),
        Context::Fork => delegation_text(skill, arguments),
    };
    Some(Ok(Invocation {
        name: name(),
        text,
        message,
        allowed_tools: skill.meta.allowed_tools.clone(),
        context: skill.meta.context,
        genesis_scope: skill.meta.genesis_scope.clone(),
    }))
}

/// What a sub-agent reads whose task an agent wrote as `/name arguments` (AX-032); `None` where that
/// names no skill the agent may use.
pub fn fork(task: &str, skills: &Skills, viewer: Viewer) -> Option<String> {
    let (skill, arguments) = called_skill(task, skills)?;
    skill.is_offered_to(viewer).then(|| expand(skill, arguments))
}

fn called_skill<'a>(text: &'a str, skills: &'a Skills) -> Option<(&'a Skill, &'a str)> {
    let rest = text.trim().strip_prefix('/')?;
    let (name, arguments) = match rest.split_once(char::is_whitespace) {
        Some((name, arguments)) => (name, arguments.trim()),
        None => (rest, ""),
    };
    Some((skills.get(name)?, arguments))
}

/// The skill that a goal is about, when it came from [`invoke`] or [`fork`].
pub fn skill_of_goal(goal: &str) -> Option<&str> {
    goal.strip_prefix(OPENING)?.split('`').next()
}

/// How much the arguments may add where a body names them; a body that names long ones often gets them once,
/// behind it.
const MAX_FILLED_IN_BYTES: usize = 1 << 20;

/// How the text of a followed skill begins.
const OPENING: &str = "Follow the skill `";

impl Skill {
    /// Whether a tool of these names may be used while this skill is followed (AX-034). Names are compared as
    /// other agents write them too: `Bash(git:*)` names `bash`, `WebFetch` names `web_fetch`.
    pub fn allows(&self, tool: &[&str]) -> bool {
        let Some(allowed) = &self.meta.allowed_tools else { return true };
        allowed.iter().any(|name| is_name_of(name, tool))
    }
}

/// Whether a skill means this tool by what it wrote.
pub(crate) fn is_name_of(written: &str, tool: &[&str]) -> bool {
    let plain = |text: &str| -> String {
        let name = text.split('(').next().unwrap_or_default();
        let fits = |c: &char| c.is_ascii_alphanumeric();
        name.chars().filter(fits).map(|c| c.to_ascii_lowercase()).collect()
    };
    let written = plain(written);
    tool.iter().any(|name| plain(name) == written)
}

fn delegation_text(skill: &Skill, arguments: &str) -> String {
    let name = &skill.meta.name;
    let task = format!("/{name} {arguments}");
    // The arguments come last: a person wrote them, and they may hold `{name}`.
    let text = include_str!("prompts/delegate.md").trim_end().replace("{name}", name);
    text.replace("{task}", task.trim_end())
}

fn required_text(skill: &Skill) -> String {
    let profile = skill.meta.permission_profile;
    match skill.meta.author_type {
        Some(role) => format!("profile `{profile}` or more and the role of {role}"),
        None => format!("profile `{profile}` or more"),
    }
}

fn expand(skill: &Skill, arguments: &str) -> String {
    let name = &skill.meta.name;
    let body = skill.body.trim();
    // As other agents' commands have it: a body that names its arguments gets them in their place.
    let places = body.matches("$ARGUMENTS").count();
    let fits = places.saturating_mul(arguments.len()) <= MAX_FILLED_IN_BYTES;
    let (body, rest) = match places > 0 && fits {
        true => (body.replace("$ARGUMENTS", arguments), ""),
        false => (body.to_owned(), arguments),
    };
    // The body comes last: it may hold `{name}`.
    let text = include_str!("prompts/follow.md").trim_end().replace("{name}", name);
    let mut parts = vec![text.replace("{body}", &body)];
    if !skill.resources.is_empty() {
        parts.push(include_str!("prompts/follow_files.md").trim_end().replace("{name}", name));
    }
    if let Some(tools) = &skill.meta.allowed_tools {
        let template = include_str!("prompts/follow_tools.md").trim_end();
        parts.push(template.replace("{tools}", &tools.join(", ")));
    }
    if !rest.is_empty() {
        let template = include_str!("prompts/follow_arguments.md").trim_end();
        parts.push(template.replace("{arguments}", rest));
    }
    parts.join("\n\n")
}
