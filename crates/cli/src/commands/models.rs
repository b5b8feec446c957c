//! `models`: which models and providers are configured, and what they can do.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::Args;
use serde_json::{Value, json};
use windlass_core::axes::ModelMode;
use windlass_core::shown::{shown, shown_line};
use windlass_model::{KnownModel, Provider, list_models};
use windlass_term::{Paint, Table, TerminalStyle, numbers};

use super::model_checks::{self, TestedModel};
use super::{Execute, Start};
use crate::args::values;
use crate::config::{Config, ConfiguredProvider, Flag, ModelChoice, ModelSelection};
use crate::failure::Failure;
use crate::show::{self, out, out_json};
use crate::wiring::{self, Environment};

/// Show which models and providers are configured, and test what they can do
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct ListModels {
    /// Ask each model, or only this one, a few small questions and print what works
    #[arg(long, value_name = "MODEL", num_args = 0..=1)]
    pub test: Option<Option<String>>,
    /// Only this model, PROVIDER/NAME or script:FILE; it need not be configured
    #[arg(long, value_name = "MODEL")]
    pub model: Option<String>,
    /// The directory whose project file is read
    #[arg(long, value_name = "DIR", default_value = ".", value_parser = values::directory())]
    pub workspace: PathBuf,
    /// Print the result as JSON
    #[arg(long)]
    pub json: bool,
}

const EXAMPLES: &str = "\
Examples:
  windlass models                     the model of each mode, and the providers
  windlass models --test              what can each model do?
  windlass models --test anthropic/NAME

To set one up, one of:
  export OPENAI_API_KEY=…
  export ANTHROPIC_API_KEY=…
  export LITELLM_API_BASE=http://localhost:4000 LITELLM_MODEL=NAME
  windlass run \"…\" --model ollama/NAME   a local server needs no key";

/// Names of a server's models that fit in a line.
const LISTED: usize = 6;

impl Execute for ListModels {
    fn execute(self, start: Start) -> Result<u8, Failure> {
        models(&start.environment()?, &self)
    }
}

impl ListModels {
    /// The one model that is asked about.
    fn only_model(&self) -> Option<&String> {
        self.test.iter().flatten().next().or(self.model.as_ref())
    }
}

pub(super) fn models(environment: &Environment, args: &ListModels) -> Result<u8, Failure> {
    let flag = |value: &String| Flag {
        flag: if args.model.is_some() { "--model" } else { "--test" }.to_owned(),
        key: "models.model".to_owned(),
        value: value.clone(),
    };
    let flags = args.only_model().map(flag).into_iter().collect();
    let config = Environment { flags, ..environment.clone() }.config(&args.workspace)?;
    let runtime = wiring::runtime(wiring::Load::One)?;
    let modes = modes(&config, args)?;
    if !args.json {
        print_modes(&config, args, &modes);
    }
    if args.test.is_some() {
        return Ok(runtime.block_on(test_all(&config, args, &modes)));
    }
    if args.json {
        modes.iter().for_each(|(mode, chosen)| out_json(&mode_json(&config, *mode, chosen)));
    }
    if args.only_model().is_none() {
        let listed = runtime.block_on(providers(&config));
        print_providers(&listed, args.json);
    }
    Ok(0)
}

/// The model of each mode; with one model for every mode, one line says it.
fn modes(config: &Config, args: &ListModels) -> Result<Vec<(ModelMode, ModelSelection)>, Failure> {
    let wanted = if args.only_model().is_some() { &[ModelMode::Smart][..] } else { ModelMode::ALL };
    let mut modes = Vec::new();
    for &mode in wanted {
        match config.models.for_mode(mode) {
            Ok(chosen) => modes.push((mode, chosen)),
            // Without a model there is still the list of providers.
            Err(_) if args.test.is_none() => {}
            Err(errors) => return Err(errors.into()),
        }
    }
    Ok(modes)
}

fn print_modes(config: &Config, args: &ListModels, modes: &[(ModelMode, ModelSelection)]) {
    if modes.is_empty() {
        show::note("no model is configured; set up one of the providers below");
        return;
    }
    let columns = ["MODE", "MODEL", "EFFORT", "WINDOW", "PRICE IN/OUT", "CAN", "WHERE"];
    let mut table = Table::new(&columns, &[]);
    for (mode, ModelSelection { model, effort }) in modes {
        let mode = if args.only_model().is_some() { "any".to_owned() } else { mode.to_string() };
        let effort = effort.map_or("-".to_owned(), |effort| effort.to_string());
        let place = place(config, model).unwrap_or_else(|why| format!("not usable: {why}"));
        let (window, price, can) =
            (window(config, model), price(config, model), capability_words(config, model));
        table.row(vec![mode, model.to_string(), effort, window, price, can, place]);
    }
    show::print_table(&table);
    show::note(&format!(
        "Prices are US dollars per million tokens. The built-in ones are of {}; [models.\"NAME\"] in the \
         configuration changes them.",
        KnownModel::last_renewed()
    ));
    show::print_config_notices(config);
    out("");
}

fn mode_json(config: &Config, mode: ModelMode, chosen: &ModelSelection) -> String {
    let (model, place) = (&chosen.model, place(config, &chosen.model));
    let price = config.facts(model).price;
    let price = price.map(|price| json!({ "input": price.input, "output": price.output }));
    json!({
        "mode": mode, "model": model.to_string(), "effort": chosen.effort,
        "where": place.clone().ok(), "problem": place.as_ref().err(),
        "context_window": config.context_window(model), "usd_per_million_tokens": price,
        "reasons": known_model(model).map(|known| known.reasons), "sees": config.facts(model).vision,
    })
    .to_string()
}

async fn test_all(config: &Config, args: &ListModels, modes: &[(ModelMode, ModelSelection)]) -> u8 {
    let mut code = 0;
    let chosen: BTreeMap<String, &ModelSelection> = modes
        .iter()
        .map(|(_, chosen)| (format!("{} {:?}", chosen.model, chosen.effort), chosen))
        .collect();
    for chosen in chosen.into_values() {
        let tested = model_checks::test(config, chosen).await;
        code = if tested.answer.is_ok() { code } else { 1 };
        let name = chosen.model.to_string();
        if args.json {
            out_json(&tested_json(&name, &tested));
        } else {
            print_tested(&name, &tested, TerminalStyle::detect().results);
        }
    }
    code
}

fn tested_json(name: &str, tested: &TestedModel) -> String {
    let (works, outcome) = match &tested.answer {
        Ok(words) => (true, words),
        Err(words) => (false, words),
    };
    json!({ "model": name, "works": works, "outcome": outcome, "checks": tested.checks })
        .to_string()
}

fn print_tested(name: &str, tested: &TestedModel, paint: Paint) {
    let (mark, words) = match &tested.answer {
        Ok(words) => (paint.green("works"), words),
        Err(words) => (paint.red("fails"), words),
    };
    out(&format!("{mark}  {name}: {}", shown(words)));
    for check in &tested.checks {
        let mark = if check.works { paint.green("yes") } else { paint.yellow("no ") };
        out(&format!("       {mark}  {:<14}  {}", check.ability, shown(&check.found)));
    }
}

/// A provider, and what a server on this machine says of its models.
struct ListedProvider {
    provider: ConfiguredProvider,
    models: Option<Result<Vec<String>, String>>,
}

/// All providers. Servers on this machine are asked for their models; others would want a key and time.
async fn providers(config: &Config) -> Vec<Result<ListedProvider, String>> {
    let mut listed = Vec::new();
    for found in config.providers() {
        let provider = match found {
            Ok(provider) => provider,
            Err(error) => {
                listed.push(Err(error.to_string()));
                continue;
            }
        };
        let local = provider.base.clone().filter(|base| base.is_loopback());
        let models = match local {
            Some(base) => {
                let settings: Provider = provider.settings(&base);
                Some(list_models(&settings).await)
            }
            None => None,
        };
        listed.push(Ok(ListedProvider { provider, models }));
    }
    listed
}

fn print_providers(listed: &[Result<ListedProvider, String>], as_json: bool) {
    let mut table = Table::new(&["PROVIDER", "WIRE", "KEY", "WHERE"], &[]);
    let mut problems = Vec::new();
    for one in listed {
        let (provider, models) = match one {
            Ok(ListedProvider { provider, models }) => (provider, models),
            Err(problem) => {
                problems.push(problem);
                continue;
            }
        };
        if as_json {
            out_json(&provider_json(provider, models.as_ref()));
            continue;
        }
        let base = match &provider.base {
            Some(base) => base.to_string(),
            None => match provider.known {
                Some(known) => format!("not set ({})", known.base_env),
                None => "not set".to_owned(),
            },
        };
        let models = models.as_ref().map(|models| format!(": {}", models_line(models)));
        let place = format!("{base}{}", models.unwrap_or_default());
        let wire = provider.wire.to_string();
        table.row(vec![provider.name.clone(), wire, key(provider), shown_line(&place)]);
    }
    if !as_json {
        show::print_table(&table);
    }
    problems.iter().for_each(|problem| show::note(&shown(problem)));
}

fn models_line(models: &Result<Vec<String>, String>) -> String {
    match models {
        Err(problem) => problem.clone(),
        Ok(names) if names.is_empty() => "no models".to_owned(),
        Ok(names) => {
            let more = names.len().saturating_sub(LISTED);
            let first = names.iter().take(LISTED).cloned().collect::<Vec<_>>().join(", ");
            if more > 0 { format!("{first} and {more} more") } else { first }
        }
    }
}

/// Which key was found.
fn key(provider: &ConfiguredProvider) -> String {
    let local = provider.base.as_ref().is_some_and(|base| base.is_loopback());
    match (&provider.key, &provider.key_env) {
        (Some(_), Some(variable)) => format!("found ({variable})"),
        (Some(_), None) => "found".to_owned(),
        (None, _) if local => "not needed".to_owned(),
        (None, Some(variable)) => format!("missing ({variable})"),
        (None, None) => "missing (no `key_env`)".to_owned(),
    }
}

fn provider_json(
    provider: &ConfiguredProvider,
    models: Option<&Result<Vec<String>, String>>,
) -> String {
    let (names, problem) = match models {
        Some(Ok(names)) => (json!(names), Value::Null),
        Some(Err(problem)) => (Value::Null, json!(problem)),
        None => (Value::Null, Value::Null),
    };
    json!({
        "provider": provider.name, "wire": provider.wire, "usable": provider.is_usable(),
        "base": provider.base.as_ref().map(ToString::to_string), "key": key(provider),
        "models": names, "problem": problem,
    })
    .to_string()
}

/// How much a model can read at once; a question mark where that is assumed.
fn window(config: &Config, choice: &ModelChoice) -> String {
    let known = config.agent.context_window.or(config.facts(choice).context_window);
    let mark = if known.is_some() { "" } else { "?" };
    format!("{}{mark}", numbers::count(config.context_window(choice)))
}

/// What a model costs, input before output.
fn price(config: &Config, choice: &ModelChoice) -> String {
    let price = config.facts(choice).price;
    price.map_or("unknown".to_owned(), |price| format!("${}/${}", price.input, price.output))
}

fn known_model(choice: &ModelChoice) -> Option<KnownModel> {
    choice.to_string().parse().ok().and_then(|name| KnownModel::find(&name))
}

/// What a model can do besides answering, as far as that is known.
fn capability_words(config: &Config, choice: &ModelChoice) -> String {
    let reasons = known_model(choice).map(|known| known.reasons);
    let abilities = [("reason", reasons), ("see", config.facts(choice).vision)];
    let words: Vec<_> =
        abilities.iter().filter(|(_, can)| *can == Some(true)).map(|(word, _)| *word).collect();
    match (words.is_empty(), reasons) {
        (false, _) => words.join(", "),
        (true, Some(_)) => "-".to_owned(),
        (true, None) => "?".to_owned(),
    }
}

/// Where a model is, or what is missing before it can be asked.
fn place(config: &Config, choice: &ModelChoice) -> Result<String, String> {
    match config.endpoint(choice) {
        Ok(Some(endpoint)) => {
            let key = if endpoint.key.is_some() { "key set" } else { "no key" };
            Ok(format!("{}, {key}", endpoint.base))
        }
        Ok(None) => Ok("a script".to_owned()),
        Err(errors) => Err(errors.0.first().map_or_else(String::new, |error| {
            let hint = error.hint.as_deref().unwrap_or_default();
            format!("{} ({hint})", error.problem)
        })),
    }
}
