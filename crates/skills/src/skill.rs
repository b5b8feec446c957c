//! One skill: instructions for a kind of work, and what is said about them.

use std::path::PathBuf;

use windlass_core::axes::{Axes, PermissionProfile};
use windlass_core::role::Role;
use windlass_core::string_enum;

string_enum! {
    /// Where a skill comes from.
    Scope ("skill scope") {
        /// With the program or its image.
        Builtin = "builtin",
        /// From the user's home.
        User = "user",
        /// From the project.
        Project = "project",
    }
}

string_enum! {
    /// Where a skill's instructions are followed (AX-032).
    Context ("skill context") {
        /// In the conversation that asked for it.
        Inline = "inline",
        /// In a sub-agent.
        Fork = "fork",
    }
}

/// Who looks at the skills: an agent is offered what its profile reaches and its role is meant for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Viewer {
    /// The profile in force.
    pub profile: PermissionProfile,
    /// The role, where it has one.
    pub role: Option<Role>,
}

impl Viewer {
    /// An agent under these axes.
    pub const fn of(axes: &Axes) -> Self {
        Self { profile: axes.permission_profile, role: Role::in_mode(axes.work_mode) }
    }
}

/// Whoever nobody has described may see what anyone may.
impl Default for Viewer {
    fn default() -> Self {
        Self { profile: PermissionProfile::Restricted, role: None }
    }
}

/// What following a skill changes (MS-156); the list is open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SideEffects {
    None,
    CodeEdits,
    /// Production; never on a model's own initiative (MS-161).
    ProductionMutation,
    /// Something we have no rule for.
    Other(String),
}

/// What a skill says about itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Meta {
    /// What it is called by; unique.
    pub name: String,
    /// When to use it.
    pub description: String,
    /// Whether a person can call it as `/name`.
    pub user_invocable: bool,
    /// Whether a model may use it unasked; never for what mutates production.
    pub model_invocable: bool,
    /// What following it changes.
    pub side_effects: SideEffects,
    /// The least profile it needs.
    pub permission_profile: PermissionProfile,
    /// The only tools it may use, where it names any.
    pub allowed_tools: Option<Vec<String>>,
    /// The role it is for; anyone where it does not say.
    pub author_type: Option<Role>,
    /// Where it is followed.
    pub context: Context,
    /// The policy scope it runs under.
    pub genesis_scope: Option<String>,
    /// Its hooks, as written.
    pub hooks: Option<serde_json::Value>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Skill {
    /// What it says about itself.
    pub meta: Meta,
    /// The whole file, frontmatter and all (ES-246).
    pub content: String,
    /// The instructions alone.
    pub body: String,
    /// Where it comes from.
    pub scope: Scope,
    /// Its file on the host.
    pub path: PathBuf,
    /// Other files of its folder.
    pub resources: Vec<Resource>,
    /// Tells this version from any other: the text, and size and time of the other files.
    pub version: String,
}

/// A file beside a `SKILL.md`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resource {
    /// Relative to the skill's folder, with `/` between names.
    pub name: String,
    pub bytes: u64,
    /// When it was last written, in nanoseconds; only compared.
    pub modified: u128,
    /// Whether it can be run.
    pub executable: bool,
}

impl Skill {
    /// Whether an agent may use it unasked (MS-155, MS-157, MS-161).
    pub fn is_offered_to(&self, viewer: Viewer) -> bool {
        self.meta.model_invocable && self.is_reached_by(viewer)
    }

    /// Whether it is for this role and the profile suffices, whoever calls for it.
    pub fn is_reached_by(&self, viewer: Viewer) -> bool {
        let for_role = self.meta.author_type.is_none_or(|role| Some(role) == viewer.role);
        for_role && self.meta.permission_profile <= viewer.profile
    }

    /// Whether both have one name. Case does not count: a person reads `Mine` and `mine` as one skill.
    pub(crate) fn has_name_of(&self, other: &Self) -> bool {
        self.meta.name.eq_ignore_ascii_case(&other.meta.name)
    }

    /// Its folder; `None` for a skill that is one file.
    pub fn folder(&self) -> Option<&std::path::Path> {
        let is_folder = self.path.file_name().is_some_and(|name| name == "SKILL.md");
        if is_folder { self.path.parent() } else { None }
    }
}
