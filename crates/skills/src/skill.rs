//! One skill: instructions for a kind of work, and what is said about them.

use std::path::PathBuf;

use windlass_core::axes::PermissionProfile;
use windlass_core::words;

words! {
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

words! {
    /// Where a skill's instructions are followed (AX-032).
    Context ("skill context") {
        /// In the conversation that asked for it.
        Inline = "inline",
        /// In a sub-agent.
        Fork = "fork",
    }
}

/// What following a skill changes (MS-156); the list is open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SideEffects {
    /// Nothing.
    None,
    /// The code.
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
    /// The role that wrote it.
    pub author_type: Option<String>,
    /// Where it is followed.
    pub context: Context,
    /// The policy scope it runs under.
    pub genesis_scope: Option<String>,
    /// Its hooks, as written.
    pub hooks: Option<serde_json::Value>,
}

/// One skill.
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
    /// Other files of its folder, relative to it.
    pub resources: Vec<String>,
}
