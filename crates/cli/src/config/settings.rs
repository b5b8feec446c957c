//! All settings, as one table: what each is called, may be, is by default, and who may set it.
//!
//! Invariant: this table is the only place that knows a setting. The typed structs, the readers, the
//! rows of `windlass config` and `docs/configuration.md` all come from it.

use std::net::SocketAddr;
use std::time::Duration;

use secrecy::SecretString;
use windlass_core::axes::{ModelMode, PermissionProfile, RunControl, WorkMode};
use windlass_core::command::Outage;
use windlass_core::policy::WorkspaceRemoval;
use windlass_core::question::MAX_DOLLARS;
use windlass_core::reasoning::Effort;

use super::kind::{TimeUnit, ValueKind, YEAR};
use super::types::{
    Base, ByteSize, ClassRule, DenyRule, Editing, Keep, ModeModel, ModelChoice, Network, Notify,
    Placement, RepairPolicy, SandboxMode, SearchProvider, SkillPolicy, Tables, TerminalScreen,
    Timeout,
};
use super::values::Values;

/// Who may set something. All may be set by the user's file; a variable or flag counts as the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Authority {
    /// A project's file too.
    Project,
    /// A project's file once a person has approved it (`windlass trust`).
    Approved,
    /// Never a project's file.
    User,
    /// The user's file alone: not even a variable or flag.
    UserFile,
}

/// One setting: what it is called, what it may be, and who may set it.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// Its whole name, such as `agent.max_iterations`.
    pub key: &'static str,
    /// What it may be.
    pub kind: ValueKind,
    /// What it is by default, as a person would write it; empty where it has no value.
    pub default: &'static str,
    /// Who may set it.
    pub who: Authority,
    /// Names in the environment beyond the one that follows from its key.
    pub explicit_env: &'static [&'static str],
    /// What it is for.
    pub about: &'static str,
}

/// The settings of one table of the file.
#[derive(Clone, Copy, Debug)]
pub struct Section {
    /// The table's name.
    pub name: &'static str,
    /// What its settings have in common.
    pub about: &'static str,
    /// In reading order.
    pub settings: &'static [Setting],
}

/// Every section, in reading order.
pub const SECTIONS: [&Section; 14] = [
    &Models::SECTION,
    &Agent::SECTION,
    &Compaction::SECTION,
    &Subagents::SECTION,
    &Sandbox::SECTION,
    &Policy::SECTION,
    &Coordinator::SECTION,
    &Web::SECTION,
    &Mcp::SECTION,
    &Runners::SECTION,
    &Store::SECTION,
    &Server::SECTION,
    &Ui::SECTION,
    &Tui::SECTION,
];

/// Tables whose settings have names in the environment that follow from the key (§15.17).
const PREFIXES: [(&str, &str); 4] = [
    ("agent.", "AGENT_"),
    ("subagents.", "SUBAGENT_"),
    ("sandbox.", "CONTAINER_"),
    ("coordinator.", "COORDINATOR_"),
];

impl Setting {
    /// Its names in the environment; the first that is set counts.
    pub fn env_names(&self) -> Vec<String> {
        let explicit = self.explicit_env.iter().map(|&name| name.to_owned());
        let follows = |(table, prefix): &(&str, &str)| {
            let name = self.key.strip_prefix(table)?;
            self.kind.fits_a_word().then(|| format!("{prefix}{}", name.to_ascii_uppercase()))
        };
        explicit.chain(PREFIXES.iter().find_map(follows)).collect()
    }

    /// The setting that this variable of the environment sets, where its declaration names the variable.
    pub fn of_variable(name: &str) -> Option<&'static Self> {
        all().find(|setting| setting.explicit_env.contains(&name))
    }

    /// The setting of this name.
    pub fn find(key: &str) -> Option<&'static Self> {
        all().find(|setting| setting.key == key)
    }
}

/// Every setting, in reading order.
pub fn all() -> impl Iterator<Item = &'static Setting> {
    SECTIONS.iter().flat_map(|section| section.settings)
}

/// What is known of a model, in `[models."NAME"]`.
pub const MODEL_FACTS: [Setting; 6] = {
    const fn fact(key: &'static str, kind: ValueKind, about: &'static str) -> Setting {
        Setting { key, kind, default: "", who: Authority::Approved, explicit_env: &[], about }
    }
    [
        fact("context_window", WINDOW, " Context window in tokens."),
        fact("input", PRICE, " US dollars per million prompt tokens; `output` is also required."),
        fact("output", PRICE, " US dollars per million reply tokens; `input` is also required."),
        fact("cached", PRICE, " The same for prompt tokens read from the cache; else as `input`."),
        fact(
            "cache_write",
            PRICE,
            " The same for prompt tokens written to the cache; else as `input`.",
        ),
        fact(
            "vision",
            ValueKind::Switch,
            " Whether it can see pictures; one that cannot reads what they are called.",
        ),
    ]
};

/// A provider, in `[models.providers.NAME]`. What is not said comes from its built-in entry.
pub const PROVIDER_FIELDS: [Setting; 8] = {
    const fn field(key: &'static str, kind: ValueKind, about: &'static str) -> Setting {
        Setting { key, kind, default: "", who: Authority::Approved, explicit_env: &[], about }
    }
    [
        field("base", HTTP, " Where its API is; needed for a provider that is not built in."),
        field(
            "key_env",
            ValueKind::Text,
            " The environment variable with its key; not needed on loopback.",
        ),
        field(
            "wire",
            ValueKind::Word(&["chat", "responses", "anthropic"]),
            " Its protocol: Chat Completions, OpenAI's Responses or Anthropic's Messages. `openai` at its own \
              base speaks `responses`, at any other `chat`.",
        ),
        field("headers", ValueKind::Pairs, " Headers of every request."),
        field(
            "query",
            ValueKind::Pairs,
            " Parameters of every request's URL, such as `api-version`.",
        ),
        field(
            "reasoning",
            ValueKind::Word(&["off", "drop", "return", "require", "signatures"]),
            " How a model's reasoning is used in later requests: its models do not reason; it is shown only; \
              it is sent back; it is sent back, and an empty `reasoning_content` where there is none; it is sent \
              back, and a stand-in for a call's missing signature.",
        ),
        field("vision", ValueKind::Switch, " Whether its models take pictures."),
        field("max_output", TOKENS, " The most tokens its models can answer with."),
    ]
};

const WINDOW: ValueKind = ValueKind::Whole(1_000, 100_000_000);
const PRICE: ValueKind = ValueKind::Number(0.0, 100_000.0);
const HTTP: ValueKind = ValueKind::Url(&["http", "https"]);
const TOKENS: ValueKind = ValueKind::Whole(1, 10_000_000);

const fn seconds(min: u64, max: u64) -> ValueKind {
    ValueKind::Time(TimeUnit::Seconds, Duration::from_secs(min), Duration::from_secs(max))
}

const fn milliseconds(min: u64, max: u64) -> ValueKind {
    ValueKind::Time(TimeUnit::Milliseconds, Duration::from_millis(min), Duration::from_millis(max))
}

/// Declares a table: the struct its values become, its rows, and how the one comes from the other.
macro_rules! section {
    ($(#[doc = $about:literal])+ $table:literal $name:ident { $(
        $(#[doc = $doc:literal])+
        $field:ident: $type:ty = $kind:expr, $default:literal, $who:ident $(, $env:literal)*;
    )* }) => {
        $(#[doc = $about])+
        #[derive(Clone, Debug)]
        pub struct $name { $($(#[doc = $doc])+ pub $field: $type,)* }

        impl $name {
            pub(super) const SECTION: Section = Section {
                name: $table,
                about: concat!($($about),+),
                settings: &[$(Setting {
                    key: concat!($table, ".", stringify!($field)),
                    kind: $kind,
                    default: $default,
                    who: Authority::$who,
                    explicit_env: &[$($env),*],
                    about: concat!($($doc),+),
                },)*],
            };

            pub(super) fn of(values: &Values) -> Self {
                Self { $($field: values.typed(concat!($table, ".", stringify!($field))),)* }
            }
        }
    };
}

section! {
    /// Which models answer, where they are, and how patiently they are asked.
    "models" Models {
        /// The everyday model, and how much it thinks. If nothing is set: `gpt-4o` with LiteLLM, `gpt-5.5` with OpenAI, `claude-sonnet-5` with only Anthropic.
        smart: Option<ModeModel> = ValueKind::Mode, "", Approved, "LITELLM_MODEL";
        /// The quick and cheap model, for small bounded work; as `smart` where unset.
        fast: Option<ModeModel> = ValueKind::Mode, "", Approved;
        /// The model for planning, debugging and review; as `smart` where unset.
        deep: Option<ModeModel> = ValueKind::Mode, "", Approved;
        /// One model whatever the model mode is; what `--model` and a task set.
        model: Option<ModelChoice> = ValueKind::Model, "", Approved;
        /// How much the model thinks before it answers, whatever the model mode says; what `--effort` sets. A provider takes some of these or all.
        effort: Option<Effort> = ValueKind::Word(&["none", "minimal", "low", "medium", "high", "max"]), "", Approved;
        /// Where the LiteLLM proxy, or any server that speaks Chat Completions, is.
        litellm_api_base: Option<Base> = HTTP, "", Approved, "LITELLM_API_BASE";
        /// Its key; not needed on loopback.
        litellm_api_key: Option<SecretString> = ValueKind::Secret, "", Approved, "LITELLM_API_KEY";
        /// Where OpenAI's API is.
        openai_base_url: Base = HTTP, "https://api.openai.com/v1", Approved, "OPENAI_BASE_URL";
        /// The key for it.
        openai_api_key: Option<SecretString> = ValueKind::Secret, "", Approved, "OPENAI_API_KEY";
        /// Where Anthropic's API is.
        anthropic_base_url: Base = HTTP, "https://api.anthropic.com", Approved, "ANTHROPIC_BASE_URL";
        /// The key for it.
        anthropic_api_key: Option<SecretString> = ValueKind::Secret, "", Approved, "ANTHROPIC_API_KEY";
        /// Where embeddings come from; memories are searched by words alone where unset.
        embeddings_api_base: Option<Base> = HTTP, "", Approved, "EMBEDDINGS_API_BASE";
        /// The key for it; not needed on loopback.
        embeddings_api_key: Option<SecretString> = ValueKind::Secret, "", Approved, "EMBEDDINGS_API_KEY";
        /// The model that makes them.
        embeddings_model: String = ValueKind::Text, "text-embedding-3-small", Approved, "EMBEDDINGS_MODEL";
        /// How often a failed request is tried again.
        max_retries: u32 = ValueKind::Whole(0, 20), "3", Project;
        /// The wait before the first retry.
        backoff_base_ms: Duration = milliseconds(1, 600_000), "1000", Project;
        /// By how much each wait is longer than the one before.
        backoff_multiplier: f64 = ValueKind::Number(1.0, 10.0), "2", Project;
        /// The longest wait between retries; a server's `retry-after` may ask for more.
        max_backoff_ms: Duration = milliseconds(1, 3_600_000), "30000", Project;
        /// How long a model or a CLI agent may send nothing before it counts as stalled.
        stall_seconds: Duration = seconds(1, 86_400), "300", Project;
        /// When the model server is still gone after the retries: `park` pauses the task and resumes it automatically, with growing pauses, for at most a day; `fail` fails it. Where unset, a `TaskCommand` from a stream fails and everything else is parked.
        outage: Option<Outage> = ValueKind::Word(&["park", "fail"]), "", Project;
    }
}

section! {
    /// The limits of one agent and of autonomous work.
    "agent" Agent {
        /// Steps (model replies with tool calls) before a task fails; the final reply does not count.
        max_iterations: u32 = ValueKind::Whole(1, 1_000_000), "200", Project;
        /// Active time of a task; time spent blocked or paused does not count.
        timeout_seconds: Timeout = ValueKind::Timeout, "", Project;
        /// Largest tool result in the context, in tokens; the whole is kept in a file.
        tool_output_max_tokens: u64 = ValueKind::Whole(100, 1_000_000), "8000", Project;
        /// Context window in tokens, for every model; else `[models."NAME"]` says it.
        context_window: Option<u64> = WINDOW, "", Project;
        /// What one task may cost in US dollars; at the limit a person is asked.
        budget_usd: Option<f64> = ValueKind::Number(0.0, MAX_DOLLARS), "", Approved;
        /// Prompt and reply tokens of one task and its sub-agents; at the limit a person is asked.
        budget_tokens: Option<u64> = ValueKind::Whole(1, 1_000_000_000_000), "", Project;
        /// Model replies of one task and its sub-agents; at the limit a person is asked.
        budget_turns: Option<u64> = ValueKind::Whole(1, 1_000_000_000), "", Project;
        /// Active seconds of one task; at the limit a person is asked.
        budget_seconds: Option<u64> = ValueKind::Whole(1, 1_000_000_000), "", Project;
        /// Whether finished tasks are remembered (goal, answer, saved notes), and later tasks of the same directory read those that fit. Tasks of a script are left out unless this is set to `true`.
        memories: bool = ValueKind::Switch, "true", Project;
        /// Whether the fast model answers the prompts that `windlass assist` prepares.
        reasoning_assist: bool = ValueKind::Switch, "false", User;
        /// How often a failed task may be retried.
        max_retries: u32 = ValueKind::Whole(0, 100), "3", Project;
        /// Identical calls in a row, with identical results, before the agent is nudged.
        max_identical_calls: u32 = ValueKind::Whole(2, 1_000), "3", Project;
        /// Failures in a row before the agent is nudged.
        max_consecutive_failures: u32 = ValueKind::Whole(2, 1_000), "5", Project;
        /// Last calls that are searched for a repeating cycle.
        pattern_window: u32 = ValueKind::Whole(6, 1_000), "10", Project;
        /// How long a `bash` command may take when the call does not say.
        bash_timeout_seconds: Duration = seconds(1, 86_400), "120", Project;
        /// How long a `bash` command may take at most.
        bash_max_timeout_seconds: Duration = seconds(1, 86_400), "600", Project;
        /// Tasks that one schedule starts within `autonomous_max_hours`; further runs are skipped.
        autonomous_max_tasks: u32 = ValueKind::Whole(1, 100_000), "25", Approved;
        /// Hours that a task with run control `autonomous` works before a person is asked whether to continue.
        autonomous_max_hours: Duration = ValueKind::Time(TimeUnit::Hours, Duration::from_secs(6 * 60), YEAR), "8", Approved;
        /// The work mode that a conversation starts with.
        chat_mode: WorkMode = ValueKind::Word(&["chat", "plan", "build", "review", "repair", "research"]), "chat", Approved;
        /// How far a new conversation goes alone.
        chat_control: RunControl = ValueKind::Word(&["manual", "assisted", "autonomous"]), "manual", Approved;
        /// Which configured model a new conversation asks.
        chat_model_mode: ModelMode = ValueKind::Word(&["fast", "smart", "deep"]), "smart", Approved;
    }
}

section! {
    /// When and how older turns are summarized.
    "compaction" Compaction {
        /// Tokens kept free for the reply.
        response_reserve_tokens: u64 = TOKENS, "4096", Project;
        /// How full the window, less the reserve, may get before older turns are summarized.
        trigger_ratio: f64 = ValueKind::Number(0.1, 0.99), "0.85", Project, "AGENT_COMPACTION_TRIGGER_RATIO";
        /// Whether the agent saves notes first.
        memory_flush_enabled: bool = ValueKind::Switch, "true", Project, "AGENT_MEMORY_FLUSH_ENABLED";
        /// How many tokens before the trigger it saves them.
        memory_flush_soft_threshold_tokens: u64 = ValueKind::Whole(0, 10_000_000), "4000", Project;
        /// How long a summary may be.
        max_summary_tokens: u64 = ValueKind::Whole(100, 1_000_000), "2000", Project;
        /// How many recent turns stay whole.
        preserve_recent_turns: u32 = ValueKind::Whole(0, 10_000), "6", Project;
        /// The model that summarizes; the fast one where unset.
        summarization_model: Option<ModelChoice> = ValueKind::Model, "", Approved;
        /// Whether a finished plan step is a reason to summarize once the window is 70 % full.
        at_plan_step: bool = ValueKind::Switch, "false", Project;
    }
}

section! {
    /// Agents that agents start.
    "subagents" Subagents {
        /// How deep they nest; the main agent is 0, so 0 allows none.
        max_depth: u32 = ValueKind::Whole(0, 8), "2", Project;
        /// How long one may take when the call does not say.
        default_timeout_seconds: Duration = seconds(1, 86_400), "300", Project;
        /// How many one task and all below it may start.
        max_agents: u32 = ValueKind::Whole(0, 10_000), "32", Project;
    }
}

section! {
    /// Where effects happen, and what they reach.
    "sandbox" Sandbox {
        /// Containers or kernel namespaces; where unset, `docker` if an engine answers and has the image, else `local`.
        mode: Option<SandboxMode> = ValueKind::Sandbox, "", Approved;
        /// The container image.
        image: String = ValueKind::Text, "execution-agent:latest", Approved;
        /// Memory of one task.
        memory: ByteSize = ValueKind::Size(ByteSize(16 << 20), ByteSize(1 << 50)), "2g", Approved;
        /// Processors of one task; parts are allowed.
        cpu: f64 = ValueKind::Number(0.01, 1024.0), "2", Approved;
        /// Processes and threads of one task.
        pids_limit: u64 = ValueKind::Whole(8, 4_194_304), "1024", Approved;
        /// Public addresses through our proxy, nothing, or all the host reaches.
        network: Network = ValueKind::Word(&["restricted", "none", "open"]), "restricted", Approved;
        /// The only hosts that `restricted` reaches, such as `*.crates.io`; empty means all public ones.
        allow_hosts: Vec<String> = ValueKind::List, "", Approved;
        /// Private addresses or networks that may still be reached, such as `10.1.0.0/16`.
        allow_addresses: Vec<String> = ValueKind::Addresses, "", Approved;
        /// What of the home directory `local` shows, read-only, without credential files.
        read_only: Vec<String> = ValueKind::List, "~/.cargo, ~/.rustup, ~/.npm, ~/.nvm, ~/.pyenv, ~/.local/bin, ~/.bun, ~/.deno, ~/go", Approved;
    }
}

section! {
    /// What may happen without asking, and what may not happen at all.
    "policy" Policy {
        /// The profile that tasks start with.
        profile: Option<PermissionProfile> = ValueKind::Word(&["restricted", "normal", "trusted", "unrestricted"]), "", Approved;
        /// Whether `unrestricted` may be chosen at all.
        allow_unrestricted: bool = ValueKind::Switch, "false", UserFile;
        /// Commands that `restricted` allows in addition; never destructive ones.
        allow: Vec<String> = ValueKind::List, "", Approved;
        /// What is always denied, and why; the entries of all files count.
        deny: Vec<DenyRule> = ValueKind::Deny, "", Project;
        /// Patterns of commands that count as production, such as `make deploy`; the entries of all files count.
        production: Vec<String> = ValueKind::Union, "", Project;
        /// Whether `rm -rf` whose paths all lie inside the workspace is denied, or a person is asked.
        workspace_removal: WorkspaceRemoval = ValueKind::Word(&["deny", "ask"]), "deny", UserFile;
        /// Commands the class table does not know.
        classes: Vec<ClassRule> = ValueKind::Classes, "", Approved;
        /// What happens when the health check before a task is started finds something wrong: repair it, ask a person (a task that nobody watches is parked), or log it and continue if that is safe.
        auto_repair: RepairPolicy = ValueKind::Word(&["auto", "ask", "log-only"]), "ask", Approved;
        /// Sets of rules by name, `[policy.scopes.NAME]` with `deny` and `allow`: they count for an agent that follows a skill whose `genesis_scope` names the set.
        scopes: Tables = ValueKind::Scopes, "", Approved;
        /// What to do with a pattern that three tasks of a project have in common: nothing, propose a skill, or propose one that the fast model writes when it is accepted.
        skill_proposals: SkillPolicy = ValueKind::Word(&["off", "propose", "generate"]), "propose", Approved;
    }
}

section! {
    /// Sessions and how tasks reach workers.
    "coordinator" Coordinator {
        /// Tasks of one session at a time.
        max_concurrent_tasks: u32 = ValueKind::Whole(1, 10_000), "3", User;
        /// Sessions of one user with live tasks, in `serve`.
        max_sessions: u32 = ValueKind::Whole(1, 10_000), "5", User;
        /// Tasks that wait for a service to start them; the next one is refused.
        max_waiting_tasks: u32 = ValueKind::Whole(1, 1_000_000), "10000", User;
        /// How long a worker holds a session without renewing it.
        session_lease_ttl_ms: Duration = milliseconds(1_000, 3_600_000), "30000", User;
        /// The model that routes messages; the fast one where unset.
        router_model: Option<ModelChoice> = ValueKind::Model, "", User;
        /// How long routing a message may take; then it goes to the active task, or is a new one.
        router_timeout_seconds: Duration = seconds(1, 600), "20", User;
        /// How long a task that a service drives may give no sign of life before it is failed; never less than
        /// its longest command and a stalled model together, nor than a model that stalls each time it is asked.
        hang_seconds: Duration = seconds(60, 604_800), "1200", User;
        /// How long a service may give no sign of life before another one takes its tasks over, and before their commands are ended. Time in which the machine sleeps does not count.
        task_lease_ms: Duration = milliseconds(500, 3_600_000), "30000", User;
        /// Tasks that one `serve` or `worker` runs at once.
        worker_tasks: u32 = ValueKind::Whole(1, 10_000), "50", User;
        /// How long tasks may take to come to a turn boundary when a service stops.
        drain_seconds: Duration = seconds(1, 86_400), "30", User;
        /// How long what a dead worker took from the bus waits before another claims it.
        claim_after_ms: Duration = milliseconds(100, 3_600_000), "30000", User;
        /// Where tasks come from and results go; in this process where unset.
        redis_url: Option<Base> = ValueKind::Url(&["redis", "rediss"]), "", User, "REDIS_URL";
        /// Where memories are kept; in the data directory where unset.
        context_service_url: Option<Base> = HTTP, "", User, "CONTEXT_SERVICE_URL";
    }
}

section! {
    /// Searching the web, and fetching pages.
    "web" Web {
        /// Who answers `web_search`; the tool is not offered where unset.
        search_provider: Option<SearchProvider> = ValueKind::Word(&["searxng", "brave", "tavily"]), "", Approved;
        /// Where the provider is; needed for `searxng`.
        search_url: Option<Base> = HTTP, "", Approved;
        /// The provider's key; needed for `brave` and `tavily`.
        search_api_key: Option<SecretString> = ValueKind::Secret, "", Approved;
        /// Private addresses or networks that `web_fetch` may still reach, such as `10.1.0.0/16`; those of `sandbox.allow_addresses` also apply.
        allow_addresses: Vec<String> = ValueKind::Addresses, "", Approved;
        /// The Chromium program of the `browser` tool; looked for where unset, except in containers. `off` for no browser.
        browser: Option<String> = ValueKind::Text, "", User, "WINDLASS_BROWSER";
        /// Where Chromium runs.
        browser_placement: Placement = ValueKind::Word(&["sandbox", "host"]), "sandbox", User;
        /// A file of cookies with which the browser of each task starts, in Netscape's format, as `curl` writes it.
        browser_cookies: Option<String> = ValueKind::Text, "", User;
    }
}

section! {
    /// Which MCP servers there are, and where they run.
    "mcp" Mcp {
        /// Servers by name, besides those of `.mcp.json`: `[mcp.servers.NAME]`.
        servers: Tables = ValueKind::Tables, "", Approved;
        /// Where servers that speak over stdio run.
        placement: Placement = ValueKind::Word(&["sandbox", "host"]), "sandbox", User;
    }
}

section! {
    /// Other people's agents that workflows run; docs/runners.md.
    "runners" Runners {
        /// Programs by the name that a workflow calls them: `[runners.programs.NAME]` with `program`, `args` (`{prompt}` stands for the prompt), `env` (variables of yours that it gets), `set` (variables with values) and `reach` (servers as `HOST:PORT`).
        programs: Tables = ValueKind::Tables, "", UserFile;
    }
}

section! {
    /// What is kept, and where.
    "store" Store {
        /// The data directory; `$XDG_DATA_HOME/windlass` where unset.
        data_dir: Option<String> = ValueKind::Text, "", User;
        /// How long whole outputs are kept.
        outputs_keep_days: Duration = ValueKind::Time(TimeUnit::Days, Duration::from_secs(24 * 60 * 60), Duration::from_secs(3_650 * 24 * 60 * 60)), "7", User;
        /// How long finished tasks are kept, with their journals; see `windlass prune`.
        keep_days: Keep = ValueKind::Keep, "forever", User;
    }
}

section! {
    /// The HTTP API and the web page of `serve`.
    "server" Server {
        /// Where `serve` listens. An address that other machines can reach needs a certificate, or `--plain-http`.
        listen: Option<SocketAddr> = ValueKind::Listen, "", User;
        /// Names besides the address itself that a request's `Host` and `Origin` may have.
        allowed_hosts: Vec<String> = ValueKind::List, "", User;
        /// Proxies in front of the server. In their requests `X-Forwarded-For` names the client, for the access log and for the limit of wrong tokens.
        trusted_proxies: Vec<String> = ValueKind::Addresses, "", User;
        /// The path under which a proxy shows the page and the API, such as `/agents`. Requests with and without it are answered.
        base_path: Option<String> = ValueKind::Text, "", User;
        /// A file with the server's certificate and those above it, in PEM.
        tls_certificate: Option<String> = ValueKind::Text, "", User;
        /// A file with the certificate's key, in PEM.
        tls_key: Option<String> = ValueKind::Text, "", User;
        /// Where a notice goes when a question stays open, or when a task has failed or is stuck: an address that takes a POST of the text, such as `https://ntfy.sh/YOUR-TOPIC`. Nothing is sent while a page is in sight.
        notify_url: Option<Base> = HTTP, "", User;
        /// Sent to it as a bearer token.
        notify_token: Option<SecretString> = ValueKind::Secret, "", User, "WINDLASS_NOTIFY_TOKEN";
        /// How long something waits before a notice is sent.
        notify_after_seconds: Duration = seconds(1, 86_400), "30", User;
        /// Where you reach the page from elsewhere, for the link in a notice.
        public_url: Option<Base> = HTTP, "", User;
        /// People besides you, by name: `[server.users.NAME]` with `token_sha256` (64 digits) and `access` (`viewer` sees everything, `operator` sees and changes what is theirs, `admin` everything).
        users: Tables = ValueKind::Tables, "", User;
    }
}

section! {
    /// How windlass behaves at your terminal.
    "ui" Ui {
        /// How you learn that a question waits or a run has ended: not at all, by the terminal's bell, or by a notification of the desktop (OSC 9).
        notify: Notify = ValueKind::Word(&["off", "bell", "osc9"]), "off", User;
    }
}

section! {
    /// The interactive terminal that `windlass` opens.
    "tui" Tui {
        /// Where it draws: below what the shell printed, or on a screen of its own.
        screen: TerminalScreen = ValueKind::Word(&["inline", "full"]), "inline", User;
        /// Whether anything moves: spinners, the pulse of an autonomous session.
        animation: bool = ValueKind::Switch, "true", User;
        /// Whether everything is said in plain lines, for a screen reader: no spinners, signs or boxes, nothing that moves.
        screen_reader: bool = ValueKind::Switch, "false", User, "WINDLASS_SCREEN_READER";
        /// Whether the title of the window says the mode.
        title: bool = ValueKind::Switch, "true", User;
        /// Whether what was printed is printed again when the window gets another width. That clears the scrollback.
        rewrap: bool = ValueKind::Switch, "true", User;
        /// Whether the wheel scrolls where `screen` is `full`. Then hold Shift to select text with the mouse.
        mouse: bool = ValueKind::Switch, "true", User;
        /// How keys edit what you write: as in a shell, or as in vi; `/vim` switches over.
        editing: Editing = ValueKind::Word(&["readline", "vim"]), "readline", User;
        /// Whether the enhanced keyboard protocol is used. Switch it off if a terminal handles it badly.
        enhanced_keys: bool = ValueKind::Switch, "true", User, "WINDLASS_ENHANCED_KEYS";
        /// What the bottom line says besides what happens now, the most important first.
        status: Vec<String> = ValueKind::Words(&["time", "plan", "tokens", "cost", "context", "model", "effort"]), "time, plan, tokens, cost, context, model, effort", User;
        /// Keys that are bound differently from the default, such as `editor = "f4"` or `diff = "ctrl+x,d"`; `?` lists what can be bound.
        keys: Tables = ValueKind::Keys, "", User;
    }
}
