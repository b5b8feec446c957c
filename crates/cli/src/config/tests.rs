//! The table of settings holds together, and every kind reads what it says it allows.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use proptest::prelude::*;
use secrecy::ExposeSecret as _;

use super::kind::{TimeUnit, Value, ValueKind};
use super::settings::{Authority, MODEL_FACTS, SECTIONS, Setting, all};
use super::types::{Base, ByteSize, ModelChoice};
use super::written::Raw;
use super::*;

/// Nothing but what a test adds.
pub(super) fn nothing() -> Sources {
    Sources { user: None, project: None, env: BTreeMap::new(), flags: Vec::new() }
}

pub(super) fn file(path: &str, text: &str) -> File {
    File { path: path.into(), text: text.to_owned() }
}

pub(super) fn user(text: &str) -> Sources {
    Sources { user: Some(file("~/config.toml", text)), ..nothing() }
}

pub(super) fn env(variables: &[(&str, &str)]) -> Sources {
    let env = variables.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
    Sources { env, ..nothing() }
}

pub(super) fn flags(flags: &[(&str, &str, &str)]) -> Sources {
    let flags = flags.iter().map(|(flag, key, value)| Flag {
        flag: (*flag).into(),
        key: (*key).into(),
        value: (*value).into(),
    });
    Sources { flags: flags.collect(), ..nothing() }
}

pub(super) fn errors(sources: &Sources) -> String {
    match Config::load(sources) {
        Ok(_) => "no errors".to_owned(),
        Err(errors) => errors.to_string(),
    }
}

/// Chosen rows, as `windlass config` shows them.
pub(super) fn rows(config: &Config, which: impl Fn(&Row) -> bool) -> String {
    let line = |row: Row| {
        let value = row.effective;
        format!("{:42} {:32} {}\n", row.key, value, row.source)
    };
    config.report().into_iter().filter(which).map(line).collect()
}

/// ES-104, ES-151…157, ES-293, ES-294, ES-355…368, ES-374…377, MS-207
#[test]
fn every_setting_has_the_designed_default() {
    let config = Config::load(&nothing()).unwrap();
    insta::assert_snapshot!(rows(&config, |_| true), @r"
    models.smart                               not set                          default
    models.fast                                as `models.smart`                default
    models.deep                                as `models.smart`                default
    models.model                               none: the model mode decides     default
    models.effort                              none: the model mode or the provider decides default
    models.litellm_api_base                    not set                          default
    models.litellm_api_key                     not set                          default
    models.openai_base_url                     https://api.openai.com/v1        default
    models.openai_api_key                      not set                          default
    models.anthropic_base_url                  https://api.anthropic.com        default
    models.anthropic_api_key                   not set                          default
    models.embeddings_api_base                 none: memories are searched by words default
    models.embeddings_api_key                  not set                          default
    models.embeddings_model                    text-embedding-3-small           default
    models.max_retries                         3                                default
    models.backoff_base_ms                     1000                             default
    models.backoff_multiplier                  2                                default
    models.max_backoff_ms                      30000                            default
    models.stall_seconds                       300                              default
    models.outage                              park for `run`, fail for a task of another program default
    agent.max_iterations                       200                              default
    agent.timeout_seconds                      off for `run`, 600 for a task of another program default
    agent.tool_output_max_tokens               8000                             default
    agent.context_window                       what is known of the model, else 128000 default
    agent.budget_usd                           no limit                         default
    agent.budget_tokens                        no limit                         default
    agent.budget_turns                         no limit                         default
    agent.budget_seconds                       no limit                         default
    agent.memories                             true                             default
    agent.reasoning_assist                     false                            default
    agent.max_retries                          3                                default
    agent.max_identical_calls                  3                                default
    agent.max_consecutive_failures             5                                default
    agent.pattern_window                       10                               default
    agent.bash_timeout_seconds                 120                              default
    agent.bash_max_timeout_seconds             600                              default
    agent.autonomous_max_tasks                 25                               default
    agent.autonomous_max_hours                 8                                default
    agent.chat_mode                            chat                             default
    agent.chat_control                         manual                           default
    agent.chat_model_mode                      smart                            default
    compaction.response_reserve_tokens         4096                             default
    compaction.trigger_ratio                   0.85                             default
    compaction.memory_flush_enabled            true                             default
    compaction.memory_flush_soft_threshold_tokens 4000                             default
    compaction.max_summary_tokens              2000                             default
    compaction.preserve_recent_turns           6                                default
    compaction.summarization_model             as `models.fast`                 default
    compaction.at_plan_step                    false                            default
    subagents.max_depth                        2                                default
    subagents.default_timeout_seconds          300                              default
    subagents.max_agents                       32                               default
    sandbox.mode                               auto: docker if available, else local default
    sandbox.image                              execution-agent:latest           default
    sandbox.memory                             2g                               default
    sandbox.cpu                                2                                default
    sandbox.pids_limit                         1024                             default
    sandbox.network                            restricted                       default
    sandbox.allow_hosts                        all public hosts                 default
    sandbox.allow_addresses                    none                             default
    sandbox.read_only                          ~/.cargo, ~/.rustup, ~/.npm, ~/.nvm, ~/.pyenv, ~/.local/bin, ~/.bun, ~/.deno, ~/go default
    policy.profile                             trusted                          default
    policy.allow_unrestricted                  false                            default
    policy.allow                               none                             default
    policy.deny                                none                             default
    policy.production                          none                             default
    policy.workspace_removal                   deny                             default
    policy.classes                             none                             default
    policy.auto_repair                         ask                              default
    policy.scopes                              none                             default
    policy.skill_proposals                     propose                          default
    coordinator.max_concurrent_tasks           3                                default
    coordinator.max_sessions                   5                                default
    coordinator.max_waiting_tasks              10000                            default
    coordinator.session_lease_ttl_ms           30000                            default
    coordinator.router_model                   as `models.fast`                 default
    coordinator.router_timeout_seconds         20                               default
    coordinator.hang_seconds                   1200                             default
    coordinator.task_lease_ms                  30000                            default
    coordinator.worker_tasks                   50                               default
    coordinator.drain_seconds                  30                               default
    coordinator.claim_after_ms                 30000                            default
    coordinator.redis_url                      none: no other process is needed default
    coordinator.context_service_url            none: memories are in the data directory default
    web.search_provider                        none: `web_search` is not offered default
    web.search_url                             not set                          default
    web.search_api_key                         not set                          default
    web.allow_addresses                        none                             default
    web.browser                                not set                          default
    web.browser_placement                      sandbox                          default
    web.browser_cookies                        not set                          default
    mcp.servers                                none                             default
    mcp.placement                              sandbox                          default
    runners.programs                           none                             default
    store.data_dir                             $XDG_DATA_HOME/windlass or ~/.local/share/windlass default
    store.outputs_keep_days                    7                                default
    store.keep_days                            forever                          default
    server.listen                              127.0.0.1:7878, or a free port where that is taken default
    server.allowed_hosts                       none                             default
    server.trusted_proxies                     none                             default
    server.base_path                           not set                          default
    server.tls_certificate                     not set                          default
    server.tls_key                             not set                          default
    server.notify_url                          not set                          default
    server.notify_token                        not set                          default
    server.notify_after_seconds                30                               default
    server.public_url                          not set                          default
    server.users                               none                             default
    ui.notify                                  off                              default
    tui.screen                                 inline                           default
    tui.animation                              true                             default
    tui.screen_reader                          false                            default
    tui.title                                  true                             default
    tui.rewrap                                 true                             default
    tui.mouse                                  true                             default
    tui.editing                                readline                         default
    tui.enhanced_keys                          true                             default
    tui.status                                 time, plan, tokens, cost, context, model, effort default
    tui.keys                                   none                             default
    ");
}

#[test]
fn every_setting_has_its_own_name_variables_and_description() {
    let (mut keys, mut names) = (BTreeSet::new(), BTreeSet::new());
    for setting in all() {
        assert!(keys.insert(setting.key), "{} is there twice", setting.key);
        for name in setting.env_names() {
            assert!(names.insert(name.clone()), "{name} sets two things");
        }
        let about = setting.about.trim();
        assert!(about.ends_with('.') && !about.contains('\n'), "{}: {about}", setting.key);
    }
}

/// ES-351…368, and the other names of `docs/design.md` §13
#[test]
fn every_environment_name_of_the_design_sets_its_setting() {
    let names = [
        ("LITELLM_API_KEY", "models.litellm_api_key", "k"),
        ("LITELLM_API_BASE", "models.litellm_api_base", "http://localhost:4000"),
        ("LITELLM_MODEL", "models.smart", "gpt-4o"),
        ("CONTAINER_MODE", "sandbox.mode", "docker"),
        ("CONTAINER_IMAGE", "sandbox.image", "builder:7"),
        ("CONTAINER_MEMORY", "sandbox.memory", "512m"),
        ("CONTAINER_CPU", "sandbox.cpu", "1.5"),
        ("REDIS_URL", "coordinator.redis_url", "redis://localhost:6379"),
        ("CONTEXT_SERVICE_URL", "coordinator.context_service_url", "http://localhost:3001"),
        ("AGENT_MAX_ITERATIONS", "agent.max_iterations", "10"),
        ("AGENT_TIMEOUT_SECONDS", "agent.timeout_seconds", "60"),
        ("AGENT_CONTEXT_WINDOW", "agent.context_window", "200_000"),
        ("AGENT_COMPACTION_TRIGGER_RATIO", "compaction.trigger_ratio", "0.5"),
        ("AGENT_MEMORY_FLUSH_ENABLED", "compaction.memory_flush_enabled", "false"),
        ("AGENT_TOOL_OUTPUT_MAX_TOKENS", "agent.tool_output_max_tokens", "4000"),
        ("SUBAGENT_MAX_DEPTH", "subagents.max_depth", "1"),
        ("SUBAGENT_DEFAULT_TIMEOUT_SECONDS", "subagents.default_timeout_seconds", "30"),
        ("COORDINATOR_MAX_CONCURRENT_TASKS", "coordinator.max_concurrent_tasks", "9"),
        ("COORDINATOR_SESSION_LEASE_TTL_MS", "coordinator.session_lease_ttl_ms", "5000"),
        ("OPENAI_API_KEY", "models.openai_api_key", "k"),
        ("OPENAI_BASE_URL", "models.openai_base_url", "https://example.org/v1"),
        ("ANTHROPIC_API_KEY", "models.anthropic_api_key", "k"),
        ("ANTHROPIC_BASE_URL", "models.anthropic_base_url", "https://example.org"),
        ("EMBEDDINGS_API_BASE", "models.embeddings_api_base", "http://localhost:8080"),
        ("CONTAINER_ALLOW_HOSTS", "sandbox.allow_hosts", "crates.io, *.rs"),
    ];
    let together: Vec<_> = names.iter().map(|(name, _, value)| (*name, *value)).collect();
    let config = Config::load(&env(&together)).unwrap();
    for (name, key, _) in names {
        let row = config.report().into_iter().find(|row| row.key == key).unwrap();
        assert_eq!(row.source, format!("environment {name}"), "{key}");
    }
    insta::assert_snapshot!(rows(&config, |row| row.source.starts_with("env")), @r"
    models.smart                               litellm/gpt-4o                   environment LITELLM_MODEL
    models.litellm_api_base                    http://localhost:4000            environment LITELLM_API_BASE
    models.litellm_api_key                     set (hidden)                     environment LITELLM_API_KEY
    models.openai_base_url                     https://example.org/v1           environment OPENAI_BASE_URL
    models.openai_api_key                      set (hidden)                     environment OPENAI_API_KEY
    models.anthropic_base_url                  https://example.org              environment ANTHROPIC_BASE_URL
    models.anthropic_api_key                   set (hidden)                     environment ANTHROPIC_API_KEY
    models.embeddings_api_base                 http://localhost:8080            environment EMBEDDINGS_API_BASE
    agent.max_iterations                       10                               environment AGENT_MAX_ITERATIONS
    agent.timeout_seconds                      60                               environment AGENT_TIMEOUT_SECONDS
    agent.tool_output_max_tokens               4000                             environment AGENT_TOOL_OUTPUT_MAX_TOKENS
    agent.context_window                       200000                           environment AGENT_CONTEXT_WINDOW
    compaction.trigger_ratio                   0.5                              environment AGENT_COMPACTION_TRIGGER_RATIO
    compaction.memory_flush_enabled            false                            environment AGENT_MEMORY_FLUSH_ENABLED
    subagents.max_depth                        1                                environment SUBAGENT_MAX_DEPTH
    subagents.default_timeout_seconds          30                               environment SUBAGENT_DEFAULT_TIMEOUT_SECONDS
    sandbox.mode                               docker                           environment CONTAINER_MODE
    sandbox.image                              builder:7                        environment CONTAINER_IMAGE
    sandbox.memory                             512m                             environment CONTAINER_MEMORY
    sandbox.cpu                                1.5                              environment CONTAINER_CPU
    sandbox.allow_hosts                        crates.io, *.rs                  environment CONTAINER_ALLOW_HOSTS
    coordinator.max_concurrent_tasks           9                                environment COORDINATOR_MAX_CONCURRENT_TASKS
    coordinator.session_lease_ttl_ms           5000                             environment COORDINATOR_SESSION_LEASE_TTL_MS
    coordinator.redis_url                      redis://localhost:6379           environment REDIS_URL
    coordinator.context_service_url            http://localhost:3001            environment CONTEXT_SERVICE_URL
    ");
}

/// The smallest and largest of each kind, so that no allowed value fails to become its field.
fn extremes(kind: ValueKind) -> Vec<String> {
    let time = |unit: TimeUnit, time| unit.count(time);
    match kind {
        ValueKind::Whole(min, max) => vec![min.to_string(), max.to_string()],
        ValueKind::Number(min, max) => vec![min.to_string(), max.to_string()],
        ValueKind::Switch => vec!["true".into(), "off".into()],
        ValueKind::Words(words) => vec![words.join(",")],
        ValueKind::Text | ValueKind::Secret | ValueKind::List | ValueKind::Union => {
            vec!["x".into()]
        }
        ValueKind::Url(schemes) => {
            schemes.iter().map(|scheme| format!("{scheme}://host")).collect()
        }
        ValueKind::Listen => vec!["[::1]:80".into()],
        ValueKind::Word(words) => words.iter().map(|&word| word.into()).collect(),
        ValueKind::Sandbox => vec!["docker".into(), "mock".into(), "host".into()],
        ValueKind::Time(unit, min, max) => vec![time(unit, max), format!("{}ms", min.as_millis())],
        ValueKind::Timeout => vec!["off".into(), "1".into(), "31536000".into()],
        ValueKind::Keep => vec!["forever".into(), "1".into(), "36500".into()],
        ValueKind::Size(min, max) => vec![min.to_string(), max.to_string()],
        ValueKind::Addresses => vec!["10.0.0.5, 10.1.0.0/16, fd00::/8".into()],
        ValueKind::Model | ValueKind::Mode => vec!["gpt-4o".into(), "script:demo.yaml".into()],
        ValueKind::Deny
        | ValueKind::Classes
        | ValueKind::Tables
        | ValueKind::Scopes
        | ValueKind::Pairs
        | ValueKind::Keys => {
            vec![]
        }
    }
}

#[test]
fn every_allowed_extreme_becomes_its_field() {
    let opt_in = user(
        "[policy]\nallow_unrestricted = true\n[web]\nsearch_url = 'http://s'\nsearch_api_key = 'k'",
    );
    let by_word =
        |setting: &&Setting| setting.kind.fits_a_word() && setting.who != Authority::UserFile;
    for setting in all().filter(by_word) {
        let refusal = format!("allowed: {}", setting.kind.allowed_values());
        for value in extremes(setting.kind) {
            let flags = flags(&[("--x", setting.key, &value)]).flags;
            // An extreme may clash with another setting's default, but is itself allowed.
            if let Err(errors) = Config::load(&Sources { flags, ..opt_in.clone() }) {
                let refused = errors.0.iter().any(|error| error.problem == refusal);
                assert!(!refused, "{} = {value}: {errors}", setting.key);
            }
        }
    }
}

#[test]
fn sizes_times_and_models_read_as_people_write_them() {
    let cases: &[(ValueKind, &[&str])] = &[
        (
            ValueKind::Size(ByteSize(1), ByteSize(1 << 50)),
            &["2g", "2GiB", "512 MB", "1024", "3x", "g", "-1", "99999999999t"],
        ),
        (ValueKind::Timeout, &["600", "90s", "1.5", "2h 30m", "PT10M", "off", "0", "-5s", "soon"]),
        (
            ValueKind::Model,
            &[
                "gpt-4o",
                "openai/gpt-4o",
                "litellm/azure/gpt-4o",
                "script:a b.yaml",
                "acme/gpt-4o",
                "a?b/c",
                "openai/",
                "script:",
                "a b",
            ],
        ),
        (ValueKind::Addresses, &["10.0.0.5, ::1/128", "10.0.0.0/33", "intranet", "10.0.0.0/"]),
        (ValueKind::Switch, &["true", "1", "No", "off", "maybe"]),
        (ValueKind::Sandbox, &["docker", "mock", "LOCAL", "podman"]),
        (ValueKind::Number(0.1, 0.99), &["0.85", "1", "nan", "inf", ""]),
    ];
    let mut seen = String::new();
    for (kind, values) in cases {
        for value in *values {
            let read = match kind.read(&Raw::Word((*value).to_owned())) {
                Ok(Value::Model(model)) => format!("Model({model})"),
                Ok(value) => format!("{value:?}"),
                Err(refused) => format!("refused {}", refused.0),
            };
            seen.push_str(&format!("{value:24} {}\n", read.trim()));
        }
    }
    insta::assert_snapshot!(seen, @r#"
    2g                       Size(ByteSize(2147483648))
    2GiB                     Size(ByteSize(2147483648))
    512 MB                   Size(ByteSize(536870912))
    1024                     Size(ByteSize(1024))
    3x                       refused
    g                        refused
    -1                       refused
    99999999999t             refused
    600                      Timeout(After(600s))
    90s                      Timeout(After(90s))
    1.5                      Timeout(After(1.5s))
    2h 30m                   Timeout(After(9000s))
    PT10M                    Timeout(After(600s))
    off                      Timeout(Off)
    0                        refused
    -5s                      refused
    soon                     refused
    gpt-4o                   Model(litellm/gpt-4o)
    openai/gpt-4o            Model(openai/gpt-4o)
    litellm/azure/gpt-4o     Model(litellm/azure/gpt-4o)
    script:a b.yaml          Model(script:a b.yaml)
    acme/gpt-4o              Model(acme/gpt-4o)
    a?b/c                    refused
    openai/                  refused the model's name is missing after `openai/`
    script:                  refused the file's name is missing after `script:`
    a b                      refused
    10.0.0.5, ::1/128        List(["10.0.0.5", "::1/128"])
    10.0.0.0/33              refused `10.0.0.0/33` is neither an address nor a network
    intranet                 refused `intranet` is neither an address nor a network
    10.0.0.0/                refused `10.0.0.0/` is neither an address nor a network
    true                     Switch(true)
    1                        Switch(true)
    No                       Switch(false)
    off                      Switch(false)
    maybe                    refused
    docker                   Sandbox(Docker)
    mock                     Sandbox(Local)
    LOCAL                    Sandbox(Local)
    podman                   refused
    0.85                     Number(0.85)
    1                        refused
    nan                      refused
    inf                      refused
                             refused
    "#);
}

#[test]
fn a_password_in_a_url_is_not_shown() {
    let url = "redis://worker:hunter2@cache.example.org:6380/1";
    let config = Config::load(&env(&[("REDIS_URL", url)])).unwrap();
    let base = config.coordinator.redis_url.clone().unwrap();
    assert_eq!(base.to_string(), "redis://(hidden)@cache.example.org:6380/1");
    assert_eq!(base.expose().as_str(), url);
    assert!(!format!("{config:?}").contains("hunter2"));
    assert!(!errors(&env(&[("REDIS_URL", "http://worker:hunter2@x")])).contains("hunter2"));
}

#[test]
fn loopback_is_distinguished_from_other_hosts() {
    let loopback = |url: &str| Base::new(url::Url::parse(url).unwrap()).is_loopback();
    assert!(
        ["http://localhost:4000", "http://127.0.0.9", "http://[::1]:80"]
            .iter()
            .all(|u| loopback(u))
    );
    assert!(
        !["http://localhost.example.org", "http://10.0.0.1", "http://127.0.0.1.nip.io"]
            .iter()
            .any(|u| loopback(u))
    );
}

/// ES-351
#[test]
fn keys_are_hidden_in_rows_errors_and_debug_output() {
    let config =
        Config::load(&env(&[("LITELLM_API_KEY", "sk-secret"), ("OPENAI_API_KEY", "sk-secret")]));
    let config = config.unwrap();
    assert_eq!(config.models.litellm_api_key.as_ref().unwrap().expose_secret(), "sk-secret");
    let shown = format!("{config:?}{}", serde_json::to_string(&config.report()).unwrap());
    assert!(!shown.contains("sk-secret") && shown.contains("set (hidden)"));
    let unclosed = user("[models]\nlitellm_api_key = \"sk-secret\nsk-secret = ");
    assert!(!errors(&unclosed).contains("sk-secret"), "{}", errors(&unclosed));
    let wrong =
        user("[models]\nlitellm_api_key = ['sk-secret']\nopenai_api_key = \"sk-secret\\u0007\"");
    insta::assert_snapshot!(errors(&wrong), @r"
    the configuration has 2 errors
      ~/config.toml:2: `models.litellm_api_key`: allowed: a key, as text on one line
      ~/config.toml:3: `models.openai_api_key`: allowed: a key, as text on one line
    ");
}

#[test]
fn the_documentation_is_current() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/configuration.md");
    if std::env::var_os("WINDLASS_WRITE_DOCS").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, docs::markdown()).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == docs::markdown(),
        "docs/configuration.md is not what the settings say; run this test with WINDLASS_WRITE_DOCS=1"
    );
}

#[test]
fn the_example_of_the_documentation_is_valid() {
    let page = docs::markdown();
    let example = page.split("```toml\n").nth(1).unwrap().split("```").next().unwrap();
    Config::load(&user(example)).unwrap();
}

fn words() -> impl Strategy<Value = String> {
    let keys = all().map(|setting: &Setting| setting.key.to_owned());
    let tables = SECTIONS.iter().map(|section| format!("[{}]", section.name));
    let facts = MODEL_FACTS.iter().map(|fact| fact.key.to_owned());
    let rest = [
        "=",
        "\"",
        "'",
        "[",
        "]",
        "{",
        "}",
        ",",
        "\n",
        ".",
        "1",
        "-1",
        "1e999",
        "0x",
        "true",
        "2g",
        "[models.\"x\"]",
        "[[policy.deny]]",
        "é",
        "\u{0}",
    ];
    let all = keys.chain(tables).chain(facts).chain(rest.map(str::to_owned));
    prop::collection::vec(prop::sample::select(all.collect::<Vec<_>>()), 0..40)
        .prop_map(|words| words.join(" "))
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn loading_never_panics(text in prop_oneof![any::<String>(), words()], value in any::<String>()) {
        let env = all().flat_map(|setting| setting.env_names()).map(|name| (name, value.clone()));
        let all_flags = all().map(|setting| Flag {
            flag: "--x".to_owned(), key: setting.key.to_owned(), value: value.clone(),
        });
        let sources = Sources {
            user: Some(file("u", &text)),
            project: Some((file("p", &text), Trust::Unknown)),
            env: env.collect(),
            flags: all_flags.collect(),
        };
        let _ = Config::load(&sources).map_err(|errors| errors.to_string());
        let alone = Config::load(&user(&text)).map(|config| config.report());
        let _ = alone.map_err(|errors| errors.to_string());
    }

    #[test]
    fn a_printed_size_or_model_reads_as_itself(bytes in any::<u64>(), model in "[a-z0-9./-]{1,20}") {
        prop_assert_eq!(ByteSize(bytes).to_string().parse(), Ok(ByteSize(bytes)));
        if let Ok(model) = model.parse::<ModelChoice>() {
            prop_assert_eq!(model.to_string().parse(), Ok(model));
        }
    }

    #[test]
    fn any_time_that_is_taken_is_within_its_bounds(text in "[0-9]{0,12} ?(s|m|h|ms|d|PT1H)?") {
        let (min, max) = (Duration::from_secs(1), Duration::from_secs(86_400));
        if let Ok(kind::Value::Time(time, _)) = ValueKind::Time(TimeUnit::Seconds, min, max).read(&Raw::Word(text)) {
            prop_assert!((min..=max).contains(&time));
        }
    }
}
