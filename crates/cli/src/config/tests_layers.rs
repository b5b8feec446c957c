//! Which layer wins, who may set what, and which notices people get.

use windlass_core::axes::{ModelMode, PermissionProfile};
use windlass_core::command::{CompactionOverrides, ExecutionConfig, Outage};
use windlass_core::reasoning::Effort;

use super::tests::{env, errors, file, flags, nothing, rows, user};
use super::types::SandboxMode;
use super::*;

fn project(text: &str, trust: Trust) -> Sources {
    Sources { project: Some((file(".windlass/config.toml", text), trust)), ..nothing() }
}

fn notices(config: &Config) -> String {
    config.notices.iter().map(|notice| format!("{notice}\n")).collect()
}

/// C-39, ES-369
#[test]
fn a_later_layer_wins_and_says_so() {
    let sources = Sources {
        user: Some(file(
            "~/config.toml",
            "[agent]\nmax_iterations = 1\ntool_output_max_tokens = 101\npattern_window = 11\nmax_retries = 1\n",
        )),
        project: Some((
            file(
                ".windlass/config.toml",
                "# ours\n\n[agent]\nmax_iterations = 2\ntool_output_max_tokens = 102\nmax_retries = 2",
            ),
            Trust::Unknown,
        )),
        ..env(&[("AGENT_MAX_ITERATIONS", "3"), ("AGENT_TOOL_OUTPUT_MAX_TOKENS", "103")])
    };
    let sources = Sources {
        flags: flags(&[("--max-iterations", "agent.max_iterations", "4")]).flags,
        ..sources
    };
    let config = Config::load(&sources).unwrap();
    let chosen = |row: &Row| row.source != "default" && row.key.starts_with("agent");
    insta::assert_snapshot!(rows(&config, chosen), @r"
    agent.max_iterations                       4                                flag --max-iterations
    agent.tool_output_max_tokens               103                              environment AGENT_TOOL_OUTPUT_MAX_TOKENS
    agent.max_retries                          2                                .windlass/config.toml:6
    agent.pattern_window                       11                               ~/config.toml:4
    ");

    let wishes = ExecutionConfig { max_iterations: Some(5), ..ExecutionConfig::default() };
    let task = config.for_task(&wishes).unwrap();
    assert_eq!((config.agent.max_iterations, task.agent.max_iterations), (4, 5));
    insta::assert_snapshot!(rows(&task, |row| row.source.starts_with("exec")), @r"agent.max_iterations                       5                                execution_config.max_iterations");
}

/// ES-293…296, ES-369: every field, and the rest from the configuration
#[test]
fn a_tasks_own_wishes_win_and_are_checked() {
    let config = Config::load(&env(&[
        ("LITELLM_MODEL", "gpt-4o"),
        ("AGENT_COMPACTION_TRIGGER_RATIO", "0.5"),
    ]))
    .unwrap();
    let compaction = CompactionOverrides {
        context_window_tokens: Some(32_000),
        response_reserve_tokens: Some(1_000),
        memory_flush_enabled: Some(false),
        memory_flush_soft_threshold_tokens: Some(10),
        max_summary_tokens: Some(500),
        preserve_recent_turns: Some(2),
        compaction_trigger_ratio: None,
    };
    let wishes = ExecutionConfig {
        timeout_seconds: Some(30),
        max_iterations: Some(7),
        model: Some("anthropic/claude".to_owned()),
        effort: Some(Effort::High),
        compaction: Some(compaction.clone()),
        outage: Some(Outage::Park),
        role: None,
        contract: None,
    };
    let task = config.for_task(&wishes).unwrap();
    insta::assert_snapshot!(rows(&task, |row| row.source != "default"), @r"
    models.smart                               litellm/gpt-4o                   environment LITELLM_MODEL
    models.fast                                litellm/gpt-4o                   follows models.smart
    models.deep                                litellm/gpt-4o                   follows models.smart
    models.model                               anthropic/claude                 execution_config.model
    models.effort                              high                             execution_config.effort
    models.outage                              park                             execution_config.outage
    agent.max_iterations                       7                                execution_config.max_iterations
    agent.timeout_seconds                      30                               execution_config.timeout_seconds
    agent.context_window                       32000                            execution_config.compaction.context_window_tokens
    compaction.response_reserve_tokens         1000                             execution_config.compaction.response_reserve_tokens
    compaction.trigger_ratio                   0.5                              environment AGENT_COMPACTION_TRIGGER_RATIO
    compaction.memory_flush_enabled            false                            execution_config.compaction.memory_flush_enabled
    compaction.memory_flush_soft_threshold_tokens 10                               execution_config.compaction.memory_flush_soft_threshold_tokens
    compaction.max_summary_tokens              500                              execution_config.compaction.max_summary_tokens
    compaction.preserve_recent_turns           2                                execution_config.compaction.preserve_recent_turns
    ");
    let chosen = task.models.for_mode(ModelMode::Fast).unwrap();
    assert_eq!(
        (chosen.model.to_string().as_str(), chosen.effort),
        ("anthropic/claude", Some(Effort::High))
    );

    let wrong = ExecutionConfig {
        timeout_seconds: Some(0),
        max_iterations: Some(0),
        model: Some("acme/x".to_owned()),
        effort: None,
        compaction: Some(CompactionOverrides {
            compaction_trigger_ratio: Some(f64::NAN),
            ..compaction
        }),
        outage: None,
        role: None,
        contract: None,
    };
    insta::assert_snapshot!(config.for_task(&wrong).unwrap_err(), @r"
    the configuration has 4 errors
      execution_config.timeout_seconds: `agent.timeout_seconds` = `0`: allowed: seconds from 1 to 31536000, text such as `2h 30m`, or `off`
      execution_config.max_iterations: `agent.max_iterations` = `0`: allowed: a whole number from 1 to 1000000
      execution_config.compaction.compaction_trigger_ratio: `compaction.trigger_ratio` = `NaN`: allowed: a number from 0.1 to 0.99
      execution_config.model: `models.model` = `acme/x`: unknown provider `acme` (if LiteLLM serves it under this name: `litellm/acme/x`; else describe it in `[models.providers.acme]`); allowed: `PROVIDER/NAME` (the providers are in `windlass models`), `script:FILE`, or `NAME` alone for `litellm/NAME`
    ");
}

/// ES-293, ES-361, MS-186: durations are seconds, words or ISO 8601.
#[test]
fn the_time_limit_is_on_for_task_commands_and_off_for_people() {
    let limits = |sources: &Sources| {
        let timeout = Config::load(sources).unwrap().agent.timeout_seconds;
        [Origin::Command, Origin::Person]
            .map(|origin| timeout.limit(origin).map(|limit| limit.as_secs()))
    };
    assert_eq!(limits(&nothing()), [Some(600), None]);
    for written in ["20m", "1200", "PT20M", "PT1200S"] {
        let limits = limits(&env(&[("AGENT_TIMEOUT_SECONDS", written)]));
        assert_eq!(limits, [Some(1200), Some(1200)], "{written}");
    }
    assert_eq!(limits(&user("[agent]\ntimeout_seconds = 'off'")), [None, None]);
}

#[test]
fn every_mistake_is_reported_with_its_place_and_what_is_allowed() {
    let user_file = "\
max_iterations = 3
[agent]
max_iterations = 0
max_iteration = 5
timeout_seconds = 'soon'
[agnet]
x = 1
[compaction]
trigger_ratio = 2
memory_flush_enabled = 'yes'
colour = 'red'
[models]
smart = 'a b/gpt-4o'
[models.gpt-4.1]
input = 1
[models.'gpt-4o']
inputs = 1
[policy]
deny = [{ pattern = 'x' }]
classes = [{ pattern = 'x', class = 'nice' }]
[sandbox]
memory = '1k'
mode = 'host'
network = 'bridge'
[mcp]
servers = { a = 1 }
[server]
listen = 8080
[store]
outputs_keep_days = 2026-01-01
";
    let sources = Sources {
        project: Some((
            file(".windlass/config.toml", "[agent\nx = \"\u{7}\"\ny ="),
            Trust::Unknown,
        )),
        env: env(&[
            ("CONTAINER_MODE", "podman"),
            ("SUBAGENT_MAX_DEPTH", "two"),
            ("LITELLM_API_BASE", "localhost:4000"),
        ])
        .env,
        flags: flags(&[
            ("--depth", "subagents.max_dept", "1"),
            ("--yolo", "policy.allow_unrestricted", "true"),
        ])
        .flags,
        ..user(user_file)
    };
    insta::assert_snapshot!(errors(&sources), @r#"
    the configuration has 25 errors
      ~/config.toml:1: `max_iterations`: there is no such setting (did you mean `agent.max_iterations`?)
      ~/config.toml:3: `agent.max_iterations` = `0`: allowed: a whole number from 1 to 1000000
      ~/config.toml:4: `agent.max_iteration`: there is no such setting (did you mean `agent.max_iterations`?)
      ~/config.toml:5: `agent.timeout_seconds` = `soon`: allowed: seconds from 1 to 31536000, text such as `2h 30m`, or `off`
      ~/config.toml:6: `agnet`: there is no such table; allowed: `models`, `agent`, `compaction`, `subagents`, `sandbox`, `policy`, `coordinator`, `web`, `mcp`, `runners`, `store`, `server`, `ui`, `tui` (did you mean `[agent]`?)
      ~/config.toml:9: `compaction.trigger_ratio` = `2`: allowed: a number from 0.1 to 0.99
      ~/config.toml:10: `compaction.memory_flush_enabled` = `yes`: allowed: true or false
      ~/config.toml:11: `compaction.colour`: there is no such setting (`[compaction]` has `response_reserve_tokens`, `trigger_ratio`, `memory_flush_enabled`, `memory_flush_soft_threshold_tokens`, `max_summary_tokens`, `preserve_recent_turns`, `summarization_model`, `at_plan_step`)
      ~/config.toml:13: `models.smart` = `a b/gpt-4o`: allowed: `PROVIDER/NAME` (the providers are in `windlass models`), `script:FILE`, or `NAME` alone for `litellm/NAME`; or `{ model = "…", effort = "…" }`, effort being one of `none`, `minimal`, `low`, `medium`, `high` or `max`
      ~/config.toml:14: `models."gpt-4".1`: there is no such setting of a model; allowed: `context_window`, `input`, `output`, `cached`, `cache_write`, `vision` (quote a name with dots: `[models."gpt-4.1"]`)
      ~/config.toml:17: `models."gpt-4o".inputs`: there is no such setting of a model; allowed: `context_window`, `input`, `output`, `cached`, `cache_write`, `vision`
      ~/config.toml:19: `policy.deny` = `[…]`: entry 1 has no text `reason`; allowed: a list of `{ pattern = "…", reason = "…" }`
      ~/config.toml:20: `policy.classes` = `[…]`: `nice` is not a class; allowed: a list of `{ pattern = "…", class = "…" }`, class being one of `read`, `note`, `ledger`, `edit`, `delegate`, `local command`, `test`, `build`, `publish`, `production`, `destructive`, `opaque` or `catastrophic`
      ~/config.toml:22: `sandbox.memory` = `1k`: allowed: a size from 16m to 1024t, such as `512m` or `2g`, or a number of bytes
      ~/config.toml:23: `sandbox.mode` = `host`: allowed: `docker` or `local` (`mock` means `local`); `host` only as a flag
      ~/config.toml:24: `sandbox.network` = `bridge`: allowed: `restricted`, `none` or `open`
      ~/config.toml:26: `mcp.servers` = `{…}`: `a` is not a table; allowed: tables with names
      ~/config.toml:28: `server.listen` = `8080`: allowed: an address and port such as `127.0.0.1:7878`
      ~/config.toml:30: `store.outputs_keep_days` = `2026-01-01`: allowed: days from 1 to 3650, or text such as `2h 30m`
      .windlass/config.toml:1: not valid TOML: unclosed table, expected `]`
      environment LITELLM_API_BASE: `models.litellm_api_base` = `localhost:4000`: allowed: a URL that starts with `http://` or `https://`
      environment SUBAGENT_MAX_DEPTH: `subagents.max_depth` = `two`: allowed: a whole number from 0 to 8
      environment CONTAINER_MODE: `sandbox.mode` = `podman`: allowed: `docker` or `local` (`mock` means `local`); `host` only as a flag
      --depth: there is no such setting (did you mean `subagents.max_depth`?)
      --yolo: can only be set in the user's configuration file
    "#);
}

/// §15.13
#[test]
fn an_unapproved_project_sets_only_what_it_may_and_is_reported() {
    let text = "\
[models]
smart = 'anthropic/claude'
litellm_api_key = 17
[models.'gpt-4o']
input = 0
[agent]
max_iterations = 50
[sandbox]
network = 'open'
[policy]
profile = 'trusted'
allow_unrestricted = true
allow = ['cargo publish']
production = ['deploy']
[mcp.servers.evil]
command = 'sh'
[coordinator]
redis_url = 'redis://elsewhere'
";
    let config = Config::load(&project(text, Trust::Unknown)).unwrap();
    assert!(config.needs_trust());
    insta::assert_snapshot!(notices(&config), @r#"
    .windlass/config.toml:2: `models.smart` is ignored until you approve the file: `windlass trust`
    .windlass/config.toml:3: `models.litellm_api_key` is ignored until you approve the file: `windlass trust`
    .windlass/config.toml:5: `models."gpt-4o".input` is ignored until you approve the file: `windlass trust`
    .windlass/config.toml:9: `sandbox.network` is ignored until you approve the file: `windlass trust`
    .windlass/config.toml:11: `policy.profile` is ignored until you approve the file: `windlass trust`
    .windlass/config.toml:12: `policy.allow_unrestricted` is ignored: only your own file may set it
    .windlass/config.toml:13: `policy.allow` is ignored until you approve the file: `windlass trust`
    .windlass/config.toml:15: `mcp.servers` is ignored until you approve the file: `windlass trust`
    .windlass/config.toml:18: `coordinator.redis_url` is ignored: only your own file may set it
    "#);
    insta::assert_snapshot!(rows(&config, |row| row.source != "default"), @r"
    agent.max_iterations                       50                               .windlass/config.toml:7
    policy.production                          deploy                           .windlass/config.toml:14
    ");

    let approved = text
        .replace("litellm_api_key = 17", "litellm_api_key = 'k'")
        .replace("input = 0", "input = 0\noutput = 0");
    let config = Config::load(&project(&approved, Trust::Approved)).unwrap();
    assert!(!config.needs_trust() && !config.policy.allow_unrestricted);
    insta::assert_snapshot!(notices(&config), @r"
    .windlass/config.toml:13: `policy.allow_unrestricted` is ignored: only your own file may set it
    .windlass/config.toml:19: `coordinator.redis_url` is ignored: only your own file may set it
    `models.fast` and `models.deep` are not set and are `anthropic/claude`, as `smart`
    ");
    insta::assert_snapshot!(rows(&config, |row| row.source != "default"), @r#"
    models.smart                               anthropic/claude                 .windlass/config.toml:2
    models.fast                                anthropic/claude                 follows models.smart
    models.deep                                anthropic/claude                 follows models.smart
    models.litellm_api_key                     set (hidden)                     .windlass/config.toml:3
    agent.max_iterations                       50                               .windlass/config.toml:8
    sandbox.network                            open                             .windlass/config.toml:10
    policy.profile                             trusted                          .windlass/config.toml:12
    policy.allow                               cargo publish                    .windlass/config.toml:14
    policy.production                          deploy                           .windlass/config.toml:15
    mcp.servers                                evil                             .windlass/config.toml:16
    models."gpt-4o".input                      0                                .windlass/config.toml:5
    models."gpt-4o".output                     0                                .windlass/config.toml:6
    "#);
}

/// MS-065, §8
#[test]
fn unrestricted_needs_the_users_own_file() {
    let profile = flags(&[("--profile", "policy.profile", "unrestricted")]);
    insta::assert_snapshot!(errors(&profile), @"--profile `unrestricted`: `unrestricted` is not allowed until you opt in (put `allow_unrestricted = true` under `[policy]` in your own configuration file (`windlass config path`))");
    let by_project = project("[policy]\nallow_unrestricted = true", Trust::Approved);
    let config = Config::load(&by_project).unwrap();
    insta::assert_snapshot!(config.permits(PermissionProfile::Unrestricted).unwrap_err(), @"--permission-profile `unrestricted`: `unrestricted` is not allowed until you opt in (put `allow_unrestricted = true` under `[policy]` in your own configuration file (`windlass config path`))");
    let opted_in = Sources { flags: profile.flags, ..user("[policy]\nallow_unrestricted = true") };
    let config = Config::load(&opted_in).unwrap();
    assert!(config.permits(PermissionProfile::Unrestricted).is_ok());
    assert_eq!(config.policy.profile, Some(PermissionProfile::Unrestricted));
}

#[test]
fn what_is_denied_or_production_only_grows() {
    let sources = Sources {
        project: Some((
            file(
                ".windlass/config.toml",
                "[policy]\nproduction = ['ship']\ndeny = [{pattern = 'b', reason = 'theirs'}]\n",
            ),
            Trust::Unknown,
        )),
        ..user(
            "[policy]\nproduction = ['deploy']\n[[policy.deny]]\npattern = 'a'\nreason = 'mine'\n",
        )
    };
    let config = Config::load(&sources).unwrap();
    insta::assert_snapshot!(rows(&config, |row| row.key.starts_with("policy") && row.source != "default"), @r"
    policy.deny                                a, b                             ~/config.toml:3, .windlass/config.toml:3
    policy.production                          deploy, ship                     ~/config.toml:2, .windlass/config.toml:2
    ");
}

/// ES-295, ES-353, MS-070…073, C-40
#[test]
fn models_resolve_at_load_and_visibly() {
    let cases = [
        ("nothing", nothing()),
        ("litellm only", env(&[("LITELLM_API_BASE", "http://localhost:4000")])),
        ("openai only", env(&[("OPENAI_API_KEY", "k")])),
        ("anthropic only", env(&[("ANTHROPIC_API_KEY", "k")])),
        ("bare name", env(&[("LITELLM_MODEL", "my-model")])),
        ("all three", user("[models]\nfast = 'a'\nsmart = 'b'\ndeep = 'openai/c'")),
        (
            "explicit",
            Sources {
                flags: flags(&[("--model", "models.model", "script:x.yaml")]).flags,
                ..user("[models]\nsmart = 'b'\ndeep = 'c'")
            },
        ),
    ];
    let mut seen = String::new();
    for (name, sources) in cases {
        let config = Config::load(&sources).unwrap();
        let by_mode = ModelMode::ALL.iter().map(|&mode| match config.models.for_mode(mode) {
            Ok(chosen) => chosen.model.to_string(),
            Err(_) => "none".to_owned(),
        });
        let by_mode: Vec<_> = by_mode.collect();
        seen.push_str(&format!("{name}: {}\n{}", by_mode.join(" | "), notices(&config)));
    }
    insta::assert_snapshot!(seen, @r"
    nothing: none | none | none
    litellm only: litellm/gpt-4o | litellm/gpt-4o | litellm/gpt-4o
    no model is named, so `litellm/gpt-4o` is used; choose with `--model`, or for good with `windlass config set models.smart litellm/gpt-4o`
    `models.fast` and `models.deep` are not set and are `litellm/gpt-4o`, as `smart`
    openai only: openai/gpt-5.5 | openai/gpt-5.5 | openai/gpt-5.5
    no model is named, so `openai/gpt-5.5` is used; choose with `--model`, or for good with `windlass config set models.smart openai/gpt-5.5`
    `models.fast` and `models.deep` are not set and are `openai/gpt-5.5`, as `smart`
    anthropic only: anthropic/claude-sonnet-5 | anthropic/claude-sonnet-5 | anthropic/claude-sonnet-5
    no model is named, so `anthropic/claude-sonnet-5` is used; choose with `--model`, or for good with `windlass config set models.smart anthropic/claude-sonnet-5`
    `models.fast` and `models.deep` are not set and are `anthropic/claude-sonnet-5`, as `smart`
    bare name: litellm/my-model | litellm/my-model | litellm/my-model
    `models.fast` and `models.deep` are not set and are `litellm/my-model`, as `smart`
    all three: litellm/a | litellm/b | openai/c
    explicit: script:x.yaml | script:x.yaml | script:x.yaml
    ");
    let none = Config::load(&nothing()).unwrap();
    insta::assert_snapshot!(none.models.for_mode(ModelMode::Smart).unwrap_err(), @r"
    no model is configured (give it a model, and check that it answers:
      export OPENAI_API_KEY=…        (or ANTHROPIC_API_KEY)
      windlass models --test
    With LiteLLM set `LITELLM_API_BASE` and `LITELLM_MODEL`; with Ollama `--model ollama/NAME` is enough. `windlass models` lists the providers, and `windlass demo` needs none.)
    ");
}

/// ES-351, ES-352, §15.17
#[test]
fn a_model_that_cannot_be_reached_says_what_is_missing() {
    let ask = |variables: &[(&str, &str)], model: &str| {
        let config = Config::load(&env(variables)).unwrap();
        let model: ModelChoice = model.parse().unwrap();
        match config.endpoint(&model) {
            Ok(Some(endpoint)) => format!("{} {}\n", endpoint.base, endpoint.key.is_some()),
            Ok(None) => "no endpoint\n".to_owned(),
            Err(error) => format!("{error}\n"),
        }
    };
    let seen = [
        ask(&[], "gpt-4o"),
        ask(&[("LITELLM_API_BASE", "https://llm.example.org")], "gpt-4o"),
        ask(&[("LITELLM_API_BASE", "http://localhost:4000")], "gpt-4o"),
        ask(&[("LITELLM_API_BASE", "https://llm.example.org"), ("LITELLM_API_KEY", "k")], "gpt-4o"),
        ask(&[], "openai/x"),
        ask(&[("ANTHROPIC_API_KEY", "k")], "anthropic/x"),
        ask(&[], "script:x.yaml"),
    ];
    insta::assert_snapshot!(seen.concat(), @r"
    `litellm/gpt-4o` is a model of LiteLLM, and its address is not set (set it, such as `LITELLM_API_BASE=http://localhost:4000`; for another provider write `openai/gpt-4o` or `anthropic/gpt-4o`)
    `litellm/gpt-4o` at https://llm.example.org needs a key (set `LITELLM_API_KEY`; if your server checks none, any text will do)
    http://localhost:4000 false
    https://llm.example.org true
    `openai/x` at https://api.openai.com/v1 needs a key (set `OPENAI_API_KEY`)
    https://api.anthropic.com true
    no endpoint
    ");
}

/// ES-151, MS-199
#[test]
fn a_model_is_looked_up_by_whole_name_then_by_name() {
    let text = "\
[models.'acme-1']
context_window = 128_000
input = 2.5
output = 10
cached = 1.25
[models.'openai/acme-1']
context_window = 64_000
";
    let config = Config::load(&user(text)).unwrap();
    let known = |name: &str| {
        let model = name.parse().unwrap();
        (config.context_window(&model), config.facts(&model).price.map(|price| price.output))
    };
    assert_eq!(known("acme-1"), (128_000, Some(10.0)));
    assert_eq!(known("openai/acme-1"), (64_000, None));
    assert_eq!(known("other"), (DEFAULT_CONTEXT_WINDOW, None));
    assert_eq!(known("openai/gpt-4o-mini"), (128_000, Some(0.6)));
    insta::assert_snapshot!(rows(&config, |row| row.key.contains('"')), @r#"
    models."acme-1".context_window             128000                           ~/config.toml:2
    models."acme-1".input                      2.5                              ~/config.toml:3
    models."acme-1".output                     10                               ~/config.toml:4
    models."acme-1".cached                     1.25                             ~/config.toml:5
    models."openai/acme-1".context_window      64000                            ~/config.toml:7
    "#);
    insta::assert_snapshot!(errors(&user("[models.'m']\ninput = 1\n[models.'n']\ncached = -1")), @r#"
    the configuration has 2 errors
      ~/config.toml:4: `models."n".cached` = `-1`: allowed: a number from 0 to 100000
      ~/config.toml:2: `models."m".input`: a price needs both `input` and `output`
    "#);
}

#[test]
fn values_that_cannot_go_together_are_refused() {
    let sources = user(
        "\
[agent]
context_window = 4000
bash_timeout_seconds = '1h'
[models]
backoff_base_ms = 60000
[web]
search_provider = 'brave'
",
    );
    insta::assert_snapshot!(errors(&sources), @r"
    the configuration has 4 errors
      ~/config.toml:2: `agent.context_window` = `4000`: allowed: more than `compaction.response_reserve_tokens` = 4096
      ~/config.toml:5: `models.backoff_base_ms`: the first wait may not be longer than `models.max_backoff_ms`
      ~/config.toml:3: `agent.bash_timeout_seconds`: may not be longer than `agent.bash_max_timeout_seconds`
      ~/config.toml:7: `web.search_provider`: `brave` needs `web.search_api_key`
    ");
}

/// ES-354
#[test]
fn the_sandbox_is_docker_or_local_and_host_only_by_flag() {
    let mode = |sources: &Sources| Config::load(sources).map(|config| config.sandbox.mode).ok();
    assert_eq!(mode(&nothing()), Some(None));
    assert_eq!(mode(&env(&[("CONTAINER_MODE", "docker")])), Some(Some(SandboxMode::Docker)));
    assert_eq!(mode(&env(&[("CONTAINER_MODE", "mock")])), Some(Some(SandboxMode::Local)));
    assert_eq!(mode(&env(&[("CONTAINER_MODE", "host")])), None);
    let flag = flags(&[("--sandbox", "sandbox.mode", "host")]);
    assert_eq!(mode(&flag), Some(Some(SandboxMode::Host)));
}

#[test]
fn an_empty_variable_is_unset_and_a_misspelt_one_is_noticed() {
    let variables =
        [("LITELLM_MODEL", ""), ("AGENT_MAX_ITERATION", "5"), ("AGENT_ID", "7"), ("PATH", "/bin")];
    let config = Config::load(&env(&variables)).unwrap();
    assert_eq!(config.models.smart, None);
    insta::assert_snapshot!(notices(&config), @r"environment AGENT_MAX_ITERATION: did you mean `AGENT_MAX_ITERATIONS`?");
}

#[test]
fn files_are_found_by_the_rules_and_read_with_a_limit() {
    let home = tempfile::tempdir().unwrap();
    let place = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let at = home.path().display().to_string();
    let by_home = BTreeMap::from([place("HOME", &at), place("XDG_CONFIG_HOME", "relative")]);
    let by_xdg = BTreeMap::from([place("HOME", "/nowhere"), place("XDG_CONFIG_HOME", &at)]);
    assert_eq!(read::user_file(&by_home), Some(home.path().join(".config/windlass/config.toml")));
    assert_eq!(read::user_file(&by_xdg), Some(home.path().join("windlass/config.toml")));
    assert_eq!(read::user_file(&BTreeMap::new()), None);

    let project = "[sandbox]\ncpu = 1";
    let load = |approved: &str| {
        read::load(home.path(), by_xdg.clone(), Vec::new(), &|file| match read::content_hash(
            &file.text,
        ) == read::content_hash(
            approved,
        ) {
            true => Trust::Approved,
            false => Trust::Unknown,
        })
    };
    assert_eq!(load("").unwrap().agent.max_iterations, 200);
    for directory in ["windlass", ".windlass"] {
        std::fs::create_dir(home.path().join(directory)).unwrap();
    }
    std::fs::write(home.path().join("windlass/config.toml"), "[agent]\nmax_iterations = 9")
        .unwrap();
    std::fs::write(home.path().join(".windlass/config.toml"), project).unwrap();
    let changed = load("an earlier text").unwrap();
    assert_eq!((changed.agent.max_iterations, changed.sandbox.cpu), (9, 2.0));
    assert!(changed.needs_trust());
    let approved = load(project).unwrap();
    assert_eq!((approved.sandbox.cpu, approved.needs_trust()), (1.0, false));

    std::fs::write(home.path().join("windlass/config.toml"), vec![b'#'; 2 << 20]).unwrap();
    std::fs::remove_file(home.path().join(".windlass/config.toml")).unwrap();
    std::fs::create_dir(home.path().join(".windlass/config.toml")).unwrap();
    let shown = load("").unwrap_err().to_string().replace(&at, "DIR");
    insta::assert_snapshot!(shown, @r"
    the configuration has 2 errors
      `DIR/windlass/config.toml` cannot be read: it is larger than 1 MiB (make it a text file that you can read, or move it away)
      `DIR/.windlass/config.toml` cannot be read: it is not a regular file (make it a text file that you can read, or move it away)
    ");
}

#[test]
fn every_known_provider_is_configured_by_its_variables() {
    for known in &windlass_model::PROVIDERS {
        let name = known.name;
        // Those that have settings of their own have the same default there.
        if let Some(base) = Setting::of_variable(known.base_env) {
            assert_eq!(base.default, known.base.unwrap_or_default(), "{name}");
        }
        let plain = Config::load(&nothing()).unwrap().provider(name).unwrap().unwrap();
        assert_eq!(plain.base.map(|base| base.to_string()).as_deref(), known.base, "{name}");
        assert!(plain.key.is_none(), "{name}");
        let variables =
            [(known.base_env, "https://example.org/x"), (known.key_env, "the-key-012345")];
        let config = Config::load(&env(&variables)).unwrap();
        let set = config.provider(name).unwrap().unwrap();
        assert_eq!(set.base.as_ref().unwrap().to_string(), "https://example.org/x", "{name}");
        assert!(set.is_usable(), "{name}");
        assert_eq!(set.wire, known.wire_elsewhere, "{name}");
        assert!(config.secrets().iter().any(|(_, key)| key == "the-key-012345"), "{name}");
        assert!(!format!("{config:?}").contains("the-key-012345"), "{name}");
    }
    let broken = env(&[("OLLAMA_BASE_URL", "localhost:11434")]);
    let broken = Config::load(&broken).unwrap().provider("ollama").unwrap().unwrap_err();
    assert!(broken.to_string().starts_with("environment OLLAMA_BASE_URL: "), "{broken}");
}
