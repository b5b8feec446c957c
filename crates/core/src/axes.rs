//! The five axes: independent settings of a session. No value of one implies a value of another.

mod transitions;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A value that an axis, status or other closed set does not have.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("`{given}` is not {} {what}; allowed: {allowed}", article(what))]
pub struct UnknownValue {
    /// What was being read, such as `work mode`.
    pub what: &'static str,
    /// The text that was given.
    pub given: String,
    /// Every allowed value, separated by commas.
    pub allowed: String,
}

fn article(noun: &str) -> &'static str {
    if noun.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" }
}

/// Declares a closed set of words: the enum, its texts and the parser that names what is allowed.
#[macro_export]
macro_rules! string_enum {
    ($(#[$doc:meta])* $name:ident ($what:literal) { $($(#[$vdoc:meta])* $variant:ident = $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
        pub enum $name { $($(#[$vdoc])* #[serde(rename = $text)] $variant,)* }

        impl $name {
            /// Every value, in declared order.
            pub const ALL: &'static [$name] = &[$($name::$variant,)*];

            /// The word users write and read.
            pub const fn as_str(self) -> &'static str {
                match self { $($name::$variant => $text,)* }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::axes::UnknownValue;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                match text {
                    $($text => Ok($name::$variant),)*
                    _ => Err($crate::axes::UnknownValue {
                        what: $what,
                        given: text.to_owned(),
                        allowed: [$($text,)*].join(", "),
                    }),
                }
            }
        }
    };
}

string_enum! {
    /// What kind of work the agent is doing.
    WorkMode ("work mode") {
        /// Talking; nothing is built unless asked.
        Chat = "chat",
        /// Working out a plan for a person to accept.
        Plan = "plan",
        Build = "build",
        /// Judging work that exists.
        Review = "review",
        /// Repairing what is broken.
        Repair = "repair",
        /// Finding things out.
        Research = "research",
    }
}

impl WorkMode {
    /// Whether an agent may only read, take notes and keep its plan, whatever else is allowed.
    pub const fn is_read_only(self) -> bool {
        match self {
            Self::Plan | Self::Review | Self::Research => true,
            Self::Chat | Self::Build | Self::Repair => false,
        }
    }
}

string_enum! {
    /// How far the agent goes before a person looks.
    RunControl ("run control") {
        /// Everything above reading and notes is asked.
        Manual = "manual",
        /// Pauses after each unit.
        Assisted = "assisted",
        /// Runs until done or stopped by a limit.
        Autonomous = "autonomous",
    }
}

string_enum! {
    /// How much may happen without asking; ordered from least to most.
    PermissionProfile ("permission profile") {
        /// Reading and notes.
        Restricted = "restricted",
        /// Edits and local commands; asks for tests and builds.
        Normal = "normal",
        /// Builds and tests too; asks before anything leaves the machine or destroys.
        Trusted = "trusted",
        /// Publishes too; needs an explicit opt-in.
        Unrestricted = "unrestricted",
    }
}

string_enum! {
    /// Which of the configured models is used.
    ModelMode ("model mode") {
        /// The quick one.
        Fast = "fast",
        /// The everyday one.
        Smart = "smart",
        /// The one for hard problems.
        Deep = "deep",
    }
}

string_enum! {
    /// Where a person meets the session.
    Surface ("surface") {
        /// The terminal interface.
        Tui = "tui",
        /// The web pages; the server sets it.
        Web = "web",
        /// No one is watching.
        Headless = "headless",
        /// An editor or another program; its protocol sets it.
        Rpc = "rpc",
    }
}

/// One value of each axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Axes {
    /// What kind of work.
    pub work_mode: WorkMode,
    /// How far without a person.
    pub run_control: RunControl,
    /// How much without asking.
    pub permission_profile: PermissionProfile,
    pub model_mode: ModelMode,
    /// Where it is seen.
    pub surface: Surface,
}

impl Axes {
    /// How an interactive session starts.
    pub const fn interactive(surface: Surface) -> Self {
        Self {
            work_mode: WorkMode::Chat,
            run_control: RunControl::Manual,
            permission_profile: PermissionProfile::Normal,
            model_mode: ModelMode::Smart,
            surface,
        }
    }

    /// How a headless task starts.
    pub const fn headless() -> Self {
        Self {
            work_mode: WorkMode::Build,
            run_control: RunControl::Autonomous,
            permission_profile: PermissionProfile::Trusted,
            model_mode: ModelMode::Smart,
            surface: Surface::Headless,
        }
    }
}

impl fmt::Display for Axes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { work_mode, run_control, permission_profile, model_mode, surface: _ } = self;
        write!(f, "{work_mode} | {run_control} | {permission_profile} | {model_mode}")
    }
}

/// Reads one axis value, as every surface does.
pub fn parse<T: FromStr<Err = UnknownValue>>(text: &str) -> Result<T, UnknownValue> {
    text.trim().to_ascii_lowercase().parse()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_value_is_refused_with_the_allowed_ones() {
        let error = parse::<PermissionProfile>("root").unwrap_err();
        assert_eq!(
            error.to_string(),
            "`root` is not a permission profile; allowed: restricted, normal, trusted, unrestricted"
        );
    }

    #[test]
    fn sessions_start_as_designed() {
        assert_eq!(Axes::interactive(Surface::Tui).to_string(), "chat | manual | normal | smart");
        assert_eq!(Axes::headless().to_string(), "build | autonomous | trusted | smart");
    }
}
