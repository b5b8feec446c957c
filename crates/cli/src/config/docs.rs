//! `docs/configuration.md`, rendered from the table of settings.

use std::fmt::Write as _;

use super::report::unset;
use windlass_model::PROVIDERS;

use super::settings::{self, Authority, MODEL_FACTS, PROVIDER_FIELDS, Setting};

const OPENING: &str = "\
# Configuration

Settings come from these places; a later one wins:

1. the defaults below
2. your file, `~/.config/windlass/config.toml` (or in `$XDG_CONFIG_HOME/windlass`)
3. the project's file, `.windlass/config.toml`
4. the environment; a variable that is set but empty counts as unset
5. flags
6. a task's own `execution_config`

`windlass config` shows every value and where it came from. A value that is not allowed is an error that
names the setting, the place and what is allowed. Keys and passwords are never shown.

Times are numbers in the unit of the setting's name, or text: `90s`, `2h 30m`, `PT10M`. Sizes are
bytes, or text: `512m`, `2g` (powers of 1024). In a variable, a list is separated by commas.

**By a project** says whether the project's own file may set it: *yes*; *approved*, once a person has
approved that file as it is (`windlass trust`), until then it is ignored with a notice; or *no*.
Lists of what is denied or counts as production grow with every file, so a project can make them only stricter.

A run keeps what it loaded at its start: a configuration file, script or list of MCP servers that changes
meanwhile counts from the next `run` or `resume`. `windlass serve` loads them each time it starts or resumes a
task. Skills are followed while they change.

A minimal file:

```toml
[models]
smart = \"litellm/gpt-4o\"
litellm_api_base = \"http://localhost:4000\"

[models.\"gpt-4o\"]
context_window = 128_000
input = 2.5      # US dollars per million tokens
output = 10
cached = 1.25

[models.deep]
model = \"anthropic/claude-opus-5\"
effort = \"high\"  # none, minimal, low, medium, high or max

[models.providers.acme]
base = \"https://llm.acme.example/v1\"
key_env = \"ACME_KEY\"
wire = \"chat\"

[policy]
production = [\"kubectl --context prod\"]
deny = [{ pattern = \"git push --force\", reason = \"history is shared\" }]
```
";

/// What the program takes from the environment and keeps nowhere.
const CLOSING: &str = "
## Beside the settings

| variable | what it does |
|---|---|
| `RUST_LOG` | log lines on stderr, for example `info` or `windlass_agent=debug`; `--log-format json` for programs |
| `OTEL_EXPORTER_OTLP_ENDPOINT` | spans of runs, requests and tool calls to this OpenTelemetry collector (OTLP over HTTP), with the `gen_ai.*` names; off unless set. The other `OTEL_*` variables of the exporter are honoured |
| `NO_COLOR` | no colours |
";

/// The whole table of settings, as markdown.
pub fn markdown() -> String {
    let mut page = OPENING.to_owned();
    for section in settings::SECTIONS {
        write_section(&mut page, section.name, section.about, section.settings.iter());
        if section.name == "models" {
            let about = " What is known of one model, by `provider/model` or by its name alone. The program \
                         knows the prices and windows of current models (`windlass models` shows them and \
                         their date); values given here win. A model without a price has an unknown cost, not none.";
            write_section(&mut page, "models.\"NAME\"", about, MODEL_FACTS.iter());
            let about = providers_about();
            write_section(&mut page, "models.providers.NAME", &about, PROVIDER_FIELDS.iter());
        }
    }
    page.push_str(CLOSING);
    page
}

fn providers_about() -> String {
    let names: Vec<_> = PROVIDERS
        .iter()
        .map(|known| {
            format!("`{}` ({}; `{}`, `{}`)", known.name, known.title, known.base_env, known.key_env)
        })
        .collect();
    format!(
        "Where models are served. Built in, each with the variables of its base and its key: {}. A table here \
         goes before the built-in entry; any other name is a provider of your own, and its models are `NAME/model`. \
         A server on loopback needs no key. `windlass models` lists what is usable, and `windlass models --test` \
         tries it.",
        names.join(", ")
    )
}

fn write_section<'a>(
    page: &mut String,
    name: &str,
    about: &str,
    settings: impl Iterator<Item = &'a Setting>,
) {
    // Writing to a string cannot fail.
    let _ = write!(page, "\n## `[{name}]`\n\n{}\n\n", about.trim());
    page.push_str("| setting | default | allowed | environment | by a project | what it is |\n");
    page.push_str("|---|---|---|---|---|---|\n");
    for setting in settings {
        let key = setting.key.rsplit('.').next().unwrap_or(setting.key);
        let default = match setting.default {
            "" => unset(setting).to_owned(),
            default => format!("`{default}`"),
        };
        let names: Vec<_> = setting.env_names().iter().map(|name| format!("`{name}`")).collect();
        let project = match setting.who {
            Authority::Project => "yes",
            Authority::Approved => "approved",
            Authority::User => "no",
            Authority::UserFile => "no; your file only",
        };
        let cells = [
            format!("`{key}`"),
            default,
            setting.kind.allowed_values(),
            names.join(" "),
            project.to_owned(),
            setting.about.trim().to_owned(),
        ];
        let _ = writeln!(page, "| {} |", cells.map(|cell| cell.replace('|', "\\|")).join(" | "));
    }
}
