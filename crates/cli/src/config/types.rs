//! The types settings become: parsed once, and from then on they cannot be wrong.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use serde_json::Value as Json;
use url::Url;
pub use windlass_coordinator::health::RepairPolicy;
pub use windlass_coordinator::skill_proposals::SkillPolicy;
use windlass_core::policy::Class;
use windlass_core::reasoning::Effort;
use windlass_core::string_enum;
use windlass_model::{PROVIDERS, Price};

/// The start of a model's name that plays a file instead of asking a provider.
const SCRIPT: &str = "script:";

/// A model as people name it: `provider/model`, or `script:FILE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ModelChoice {
    /// A model of a provider.
    Served {
        /// Who serves it: a provider that is known, or one of `[models.providers]`.
        provider: String,
        /// Its name there; may itself hold slashes.
        model: String,
    },
    /// A file of replies.
    Script(PathBuf),
}

/// What a model may be called, as errors and the documentation say it.
pub fn model_forms() -> String {
    let bare = PROVIDERS[0].name;
    format!(
        "`PROVIDER/NAME` (the providers are in `windlass models`), `{SCRIPT}FILE`, or `NAME` alone for `{bare}/NAME`"
    )
}

impl FromStr for ModelChoice {
    type Err = String;

    /// A name alone is one of LiteLLM's (ES-353). The error says what is wrong, or is empty.
    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(file) = text.strip_prefix(SCRIPT) {
            return match file.is_empty() {
                true => Err("the file's name is missing after `script:`".to_owned()),
                false => Ok(Self::Script(file.into())),
            };
        }
        if text.is_empty() || text.contains(|c: char| c.is_whitespace() || c.is_control()) {
            return Err(String::new());
        }
        let (provider, model) = text.split_once('/').unwrap_or((PROVIDERS[0].name, text));
        match model {
            "" => Err(format!("the model's name is missing after `{provider}/`")),
            _ if !is_provider_name(provider) => Err(String::new()),
            model => Ok(Self::Served { provider: provider.to_owned(), model: model.to_owned() }),
        }
    }
}

/// Whether a provider can be called this.
pub fn is_provider_name(text: &str) -> bool {
    let word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    !text.is_empty() && text != "script" && text.chars().all(word)
}

impl fmt::Display for ModelChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Served { provider, model } => write!(f, "{provider}/{model}"),
            Self::Script(file) => write!(f, "{SCRIPT}{}", file.display()),
        }
    }
}

/// What a model mode is set to: a model, how much it thinks, or both.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModeModel {
    /// The model; as `smart` where only the effort is set.
    pub model: Option<ModelChoice>,
    pub effort: Option<Effort>,
}

impl fmt::Display for ModeModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.model, self.effort) {
            (Some(model), None) => write!(f, "{model}"),
            (Some(model), Some(effort)) => write!(f, "{model}, effort {effort}"),
            (None, effort) => write!(f, "effort {}", effort.map_or("", Effort::as_str)),
        }
    }
}

/// The model that is asked, and how much it should think.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelSelection {
    pub model: ModelChoice,
    /// The provider decides where it is not set.
    pub effort: Option<Effort>,
}

impl From<ModelChoice> for ModelSelection {
    fn from(model: ModelChoice) -> Self {
        Self { model, effort: None }
    }
}

/// A URL that does not print its password.
#[derive(Clone, PartialEq, Eq)]
pub struct Base(Url);

impl Base {
    /// Wraps a parsed URL.
    pub const fn new(url: Url) -> Self {
        Self(url)
    }

    /// The URL with all that is in it; for connecting, not for printing.
    pub const fn expose(&self) -> &Url {
        &self.0
    }

    /// Whether it points at this very machine; then a model server needs no key (§15.17).
    pub fn is_loopback(&self) -> bool {
        match self.0.host() {
            Some(url::Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
            Some(url::Host::Ipv4(address)) => address.is_loopback(),
            Some(url::Host::Ipv6(address)) => address.is_loopback(),
            None => false,
        }
    }
}

impl fmt::Display for Base {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.username().is_empty() && self.0.password().is_none() && self.0.query().is_none() {
            return write!(f, "{}", self.0.as_str().trim_end_matches('/'));
        }
        let host = self.0.host_str().unwrap_or_default();
        let port = self.0.port().map(|port| format!(":{port}")).unwrap_or_default();
        let path = self.0.path().trim_end_matches('/');
        write!(f, "{}://(hidden)@{host}{port}{path}", self.0.scheme())
    }
}

impl fmt::Debug for Base {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Base({self})")
    }
}

/// How long a task may be active.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timeout {
    /// Not set: the limit depends on where the task comes from.
    ByOrigin,
    /// Active for as long as it takes.
    Off,
    /// It fails after this much active time.
    After(Duration),
}

/// How long something is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// It is never removed.
    Forever,
    /// Until it is this old.
    For(Duration),
}

/// Where a task comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A `TaskCommand` of another program.
    Command,
    /// A person, by `run`.
    Person,
}

/// The limit of a `TaskCommand` that does not name one (ES-293).
pub const COMMAND_TIMEOUT: Duration = Duration::from_secs(600);

impl Timeout {
    /// The limit of active time for a task from `origin`.
    pub const fn limit(self, origin: Origin) -> Option<Duration> {
        match (self, origin) {
            (Self::After(limit), _) => Some(limit),
            (Self::ByOrigin, Origin::Command) => Some(COMMAND_TIMEOUT),
            (Self::ByOrigin, Origin::Person) | (Self::Off, _) => None,
        }
    }
}

/// A number of bytes; written `2g`, `512m`, `64k` or plainly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ByteSize(pub u64);

/// The units of sizes, largest first; powers of 1024, as container engines count.
const UNITS: [(&str, u64); 4] = [("t", 1 << 40), ("g", 1 << 30), ("m", 1 << 20), ("k", 1 << 10)];

impl FromStr for ByteSize {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let text = text.trim().to_ascii_lowercase();
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let (number, unit) = text.split_at(digits);
        let number: u64 = number.parse().map_err(|_| ())?;
        let unit = match unit.trim() {
            "" | "b" => 1,
            unit => {
                let unit = unit.strip_suffix("ib").or(unit.strip_suffix('b')).unwrap_or(unit);
                UNITS.iter().find(|(name, _)| *name == unit).ok_or(())?.1
            }
        };
        number.checked_mul(unit).map(Self).ok_or(())
    }
}

impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match UNITS.iter().find(|(_, size)| self.0 >= *size && self.0.is_multiple_of(*size)) {
            Some((name, size)) => write!(f, "{}{name}", self.0 / size),
            None => write!(f, "{}", self.0),
        }
    }
}

string_enum! {
    /// Where effects happen.
    SandboxMode ("sandbox") {
        /// A container per task.
        Docker = "docker",
        /// Kernel namespaces on this machine.
        Local = "local",
        /// No isolation; only ever by an explicit flag.
        Host = "host",
    }
}

string_enum! {
    /// What a sandbox reaches.
    Network ("network") {
        /// Public addresses, through our proxy.
        Restricted = "restricted",
        /// No address at all.
        None = "none",
        /// Everything the host reaches.
        Open = "open",
    }
}

string_enum! {
    /// How a person learns that something waits for them.
    Notify ("notify") {
        Off = "off",
        /// The terminal's bell.
        Bell = "bell",
        /// A notification of the desktop, where the terminal passes it on (OSC 9).
        Osc9 = "osc9",
    }
}

string_enum! {
    /// Where the terminal draws.
    TerminalScreen ("screen") {
        /// Below what the shell printed, in the terminal's own scrollback.
        Inline = "inline",
        /// On a screen of its own.
        Full = "full",
    }
}

string_enum! {
    /// How keys edit what is written.
    Editing ("editing") {
        /// As in a shell.
        Readline = "readline",
        /// As in vi.
        Vim = "vim",
    }
}

string_enum! {
    /// Where a program that we start ourselves runs.
    Placement ("placement") {
        /// In the task's sandbox.
        Sandbox = "sandbox",
        /// On the host, with the rights of windlass.
        Host = "host",
    }
}

string_enum! {
    /// Who answers `web_search`.
    SearchProvider ("search provider") {
        /// A SearXNG server that the user runs.
        Searxng = "searxng",
        Brave = "brave",
        Tavily = "tavily",
    }
}

/// A pattern that is denied, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DenyRule {
    /// What it matches; the policy reads it.
    pub pattern: String,
    /// The reason that the agent and people read.
    pub reason: String,
}

/// A command the class table does not know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassRule {
    /// What it matches; the policy reads it.
    pub pattern: String,
    /// What it counts as.
    pub class: Class,
}

/// Named tables that another part reads, such as MCP servers. Prints names only: they may hold keys.
#[derive(Clone, Default)]
pub struct Tables(pub BTreeMap<String, Json>);

impl fmt::Debug for Tables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// Names with texts, such as headers. Prints names only: a text may be a key.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Pairs(pub BTreeMap<String, String>);

impl fmt::Debug for Pairs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// What is known about one model: `[models."NAME"]`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ModelFacts {
    /// Its context window in tokens (ES-151).
    pub context_window: Option<u64>,
    /// What it costs; absent means unknown, not free.
    pub price: Option<Price>,
    /// Whether it can see pictures.
    pub vision: Option<bool>,
}
