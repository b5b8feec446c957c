//! The one gate: a pure function that decides every tool call: allow, ask or deny.
//!
//! Invariants:
//! - Total: every class under every profile has its answer in the table; there is no default arm.
//! - Deciding changes nothing: the caller journals the verdict and acts on it.

pub mod class;
pub mod decide;
pub mod pattern;
pub mod files;
pub mod analysis;
pub mod allow;
pub mod rule_set;
pub mod permission_request;
pub mod denial;

pub use allow::{AllowRule, DenyRule, RuleScope};
pub use analysis::{Arrival, ArrivalSource, CommandAnalysis, GitSource, Script, ShellCommand, Via};
pub use class::{Assessment, Class, Risk};
pub use decide::{Decision, Layer, Rules, Verdict, decide};
pub use denial::Denial;
pub use pattern::Pattern;
pub use permission_request::{PermissionPart, PermissionRequest};
pub use rule_set::{RuleSet, ScopeRules, WorkspaceRemoval};
