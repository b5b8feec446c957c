//! Roles: architect, executor and auditor. A role is a preset over the axes and a filter of tools (C-09).
//!
//! Invariants:
//! - A role never allows what the axes deny, with one exception: an auditor runs tests and linters.
//! - What a role refuses is refused by the gate, also for agents below (C-12).

use serde::{Deserialize, Serialize};

use crate::axes::{Axes, ModelMode, PermissionProfile, WorkMode};
use crate::policy::{Class, CommandAnalysis};
use crate::{string_enum, tool_name};

string_enum! {
    /// Who an agent is for the work (AX-035).
    Role ("role") {
        /// Plans, and makes commitments for others.
        Architect = "architect",
        /// Carries out a claimed commitment.
        Executor = "executor",
        /// Judges submitted work.
        Auditor = "auditor",
    }
}

/// A role as programs read it (AX-036).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModeConfig {
    pub mode: Role,
    /// The built-in tools that it has, where the profile reaches them. `bash(test)` is `bash` for commands of that
    /// class alone.
    pub allowed_tools: Vec<String>,
    /// Tools that it never has.
    pub denied_tools: Vec<String>,
    /// What its agents read besides the usual prompt.
    pub system_prompt_addition: String,
    pub requires_commitment: bool,
}

/// Tools for commands.
const SHELL: &[&str] = &[tool_name::BASH, tool_name::BASH_OUTPUT, tool_name::BASH_KILL];

/// Tools that read, take notes and talk to the user; every role has them.
const EVERY_ROLE: &[&str] = &[
    tool_name::READ,
    tool_name::GLOB,
    tool_name::GREP,
    tool_name::WEB_SEARCH,
    tool_name::WEB_FETCH,
    tool_name::LIST_SKILLS,
    tool_name::READ_SKILL,
    tool_name::UPDATE_PLAN,
    tool_name::SAVE_MEMO,
    tool_name::SEARCH_MEMO,
    tool_name::ASK_USER,
    tool_name::PUBLISH_DELIVERABLE,
];

impl Role {
    /// The role that skills for this mode are meant for; none has talk, repair and research to itself.
    pub const fn in_mode(mode: WorkMode) -> Option<Self> {
        match mode {
            WorkMode::Plan => Some(Self::Architect),
            WorkMode::Build => Some(Self::Executor),
            WorkMode::Review => Some(Self::Auditor),
            WorkMode::Chat | WorkMode::Repair | WorkMode::Research => None,
        }
    }

    /// The axes of the role; run control and surface stay as they are, and so does an executor's profile.
    #[must_use]
    pub const fn axes(self, axes: Axes) -> Axes {
        match self {
            Self::Architect => Axes {
                work_mode: WorkMode::Plan,
                permission_profile: PermissionProfile::Restricted,
                ..axes
            },
            Self::Executor => Axes { work_mode: WorkMode::Build, ..axes },
            Self::Auditor => Axes {
                work_mode: WorkMode::Review,
                permission_profile: PermissionProfile::Restricted,
                model_mode: ModelMode::Deep,
                ..axes
            },
        }
    }

    /// Whether it works on a commitment that is claimed (AX-056).
    pub const fn requires_commitment(self) -> bool {
        matches!(self, Self::Executor)
    }

    /// Whether it does less than an agent without a role.
    pub const fn is_narrowing(self) -> bool {
        matches!(self, Self::Architect | Self::Auditor)
    }

    /// What its agents read besides the usual prompt (AX-052, AX-055, AX-059).
    pub const fn prompt(self) -> &'static str {
        match self {
            Self::Architect => include_str!("prompts/roles/architect.md"),
            Self::Executor => include_str!("prompts/roles/executor.md"),
            Self::Auditor => include_str!("prompts/roles/auditor.md"),
        }
    }

    /// Its name as people read it.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Architect => "Architect",
            Self::Executor => "Executor",
            Self::Auditor => "Auditor",
        }
    }

    /// What a person reads who has switched to it (AX-115).
    pub const fn greeting(self) -> &'static str {
        match self {
            Self::Architect => {
                "Switched to Architect mode. You can plan and create commitments but cannot modify code directly."
            }
            Self::Executor => {
                "Switched to Executor mode. You can implement the claimed commitment, and nothing beyond it."
            }
            Self::Auditor => {
                "Switched to Auditor mode. You can read code, run tests and render verdicts but cannot modify code."
            }
        }
    }

    /// Whether its agents have a tool, given the most harmless thing that a call of it can be.
    pub fn has_tool(self, name: &str, class: Class) -> bool {
        let is_shell = SHELL.contains(&name);
        match (self, class) {
            (Self::Executor, _) => true,
            (Self::Architect | Self::Auditor, Class::Ledger) => self.ledger_tools().contains(&name),
            (Self::Architect, Class::Read | Class::Note | Class::Delegate) => !is_shell,
            (Self::Auditor, Class::Read | Class::Note) => true,
            (Self::Architect | Self::Auditor, _) => false,
        }
    }

    /// The tools for commitments that its agents have (AX-050, AX-054, AX-057).
    const fn ledger_tools(self) -> &'static [&'static str] {
        match self {
            Self::Architect => &[tool_name::COMMIT, tool_name::CAPTURE],
            Self::Executor => &[
                tool_name::COMMIT,
                tool_name::CLAIM,
                tool_name::CAPTURE,
                tool_name::SUBMIT,
                tool_name::APPROVE,
                tool_name::REJECT,
            ],
            Self::Auditor => &[tool_name::APPROVE, tool_name::REJECT, tool_name::CAPTURE],
        }
    }

    /// Why an auditor may not run a command: each part of it must read, test or lint (AX-057, C-12).
    pub fn command_violation(self, analysis: &CommandAnalysis) -> Option<String> {
        let commands = analysis.flat();
        let is_fit = |class| matches!(class, Class::Read | Class::Test);
        let unfit = commands.iter().find(|command| !is_fit(command.assessment.class));
        match self {
            Self::Auditor => unfit.map(|command| {
                format!(
                    "an auditor runs commands that read, test or lint, and `{}` is of class {}",
                    command.command, command.assessment.class
                )
            }),
            Self::Architect | Self::Executor => None,
        }
    }

    /// Why a call of a tool is refused.
    pub fn tool_violation(self, name: &str) -> String {
        format!("`{name}` is not a tool of the {self} role")
    }

    /// The role as programs read it.
    pub fn config(self) -> ModeConfig {
        let own: &[&str] = match self {
            Self::Architect => &[tool_name::SPAWN_AGENT],
            Self::Executor => &[
                tool_name::WRITE,
                tool_name::EDIT,
                tool_name::BASH,
                tool_name::BASH_OUTPUT,
                tool_name::BASH_KILL,
                tool_name::SPAWN_AGENT,
            ],
            Self::Auditor => &["bash(read)", "bash(test)", "bash(lint)", tool_name::BASH_OUTPUT],
        };
        let denied: &[&str] = match self {
            Self::Architect => &[tool_name::WRITE, tool_name::EDIT, tool_name::BASH],
            Self::Executor => &[],
            Self::Auditor => &[tool_name::WRITE, tool_name::EDIT],
        };
        let allowed = [EVERY_ROLE, own, self.ledger_tools()].concat();
        let names = |list: &[&str]| list.iter().map(|name| (*name).to_owned()).collect();
        ModeConfig {
            mode: self,
            allowed_tools: names(&allowed),
            denied_tools: names(denied),
            system_prompt_addition: self.prompt().to_owned(),
            requires_commitment: self.requires_commitment(),
        }
    }
}

/// What becomes of a role with a change of the axes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RoleChange {
    Take(Role),
    Leave,
}

impl RoleChange {
    /// The role of a sub-agent after the change: one that narrows stays, and one that is looser is not taken.
    pub const fn tighten(self, role: Option<Role>) -> Option<Role> {
        match (self, role) {
            (_, Some(own)) if own.is_narrowing() => role,
            (Self::Take(new), _) if new.is_narrowing() => Some(new),
            (Self::Take(_) | Self::Leave, _) => role,
        }
    }
}
