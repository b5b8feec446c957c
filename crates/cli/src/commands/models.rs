//! `models`: which models are configured, and whether they answer.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::Args;
use serde_json::json;
use windlass_core::axes::ModelMode;
use windlass_core::message::{Message, Prelude};
use windlass_core::shown::shown;
use windlass_model::{KnownModel, Options};
use windlass_term::{Table, TerminalStyle, numbers};

use super::{Execute, Start};
use crate::config::{Config, Flag, ModelChoice};
use crate::failure::Failure;
use crate::next_action;
use crate::show::{self, out, out_json};
use crate::wiring::{self, Environment, models};

/// Show which models are configured, and test that they answer
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct ListModels {
    /// Send each model one small request, without retries, and print what came back
    #[arg(long)]
    pub test: bool,
    /// Only this model, as `PROVIDER/NAME` or `script:FILE`; it need not be configured
    #[arg(long, value_name = "MODEL")]
    pub model: Option<String>,
    /// The directory whose project file is read
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub workspace: PathBuf,
    /// Print the result as JSON
    #[arg(long)]
    pub json: bool,
}

const EXAMPLES: &str = "\
Examples:
  windlass models                     which model each mode uses
  windlass models --test              does each answer?
  windlass models --test --model anthropic/NAME

To set one up, one of:
  export OPENAI_API_KEY=…
  export ANTHROPIC_API_KEY=…
  export LITELLM_API_BASE=http://localhost:4000 LITELLM_MODEL=NAME";

impl Execute for ListModels {
    fn execute(self, start: Start) -> Result<u8, Failure> {
        models(&start.environment()?, &self)
    }
}

/// Enough for one word, with room for a model that thinks first.
const TEST_OUTPUT_TOKENS: u32 = 256;

pub(super) fn models(environment: &Environment, args: &ListModels) -> Result<u8, Failure> {
    let flag = |value: &String| Flag {
        flag: "--model".to_owned(),
        key: "models.model".to_owned(),
        value: value.clone(),
    };
    let flags = args.model.iter().map(flag).collect();
    let config = Environment { flags, ..environment.clone() }.config(&args.workspace)?;
    let mut table = Table::new(&["MODE", "MODEL", "WINDOW", "PRICE IN/OUT", "WHERE"], &[]);
    let mut chosen: BTreeMap<String, ModelChoice> = BTreeMap::new();
    // With one model for every mode, one line says it.
    let modes = if args.model.is_some() { &[ModelMode::Smart][..] } else { ModelMode::ALL };
    for &mode in modes {
        let choice = config.models.for_mode(mode)?;
        let place = place(&config, choice);
        if args.json && !args.test {
            let (window, price) = (config.context_window(choice), config.facts(choice).price);
            let price = price.map(|price| json!({ "input": price.input, "output": price.output }));
            out_json(
                &json!({ "mode": mode, "model": choice.to_string(), "where": place.clone().ok(),
                "problem": place.as_ref().err(), "context_window": window,
                "usd_per_million_tokens": price })
                .to_string(),
            );
        }
        let place = place.unwrap_or_else(|problem| format!("not usable: {problem}"));
        let mode = if args.model.is_some() { "any".to_owned() } else { mode.to_string() };
        let (window, price) = (window(&config, choice), price(&config, choice));
        table.row(vec![mode, choice.to_string(), window, price, place]);
        chosen.insert(choice.to_string(), choice.clone());
    }
    if !args.json {
        show::print_table(&table);
        show::note(&format!(
            "Prices are US dollars per million tokens. The built-in ones are of {}; [models.\"NAME\"] in the \
             configuration changes them.",
            KnownModel::renewed()
        ));
        show::print_config_notices(&config);
        if args.test {
            out("");
        }
    }
    if !args.test {
        return Ok(0);
    }
    let runtime = wiring::runtime(wiring::Load::One)?;
    let mut code = 0;
    for (name, choice) in chosen {
        let outcome = runtime.block_on(tested(&config, &choice));
        let (works, words) = match &outcome {
            Ok(words) => (true, words),
            Err(words) => (false, words),
        };
        code = if works { code } else { 1 };
        if args.json {
            out_json(&json!({ "model": name, "works": works, "outcome": words }).to_string());
        } else {
            let paint = TerminalStyle::detect().results;
            let mark = if works { paint.green("works") } else { paint.red("fails") };
            out(&format!("{mark}  {name}: {}", shown(words)));
        }
    }
    Ok(code)
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

/// One small request; what came back, or what went wrong, in words.
async fn tested(config: &Config, choice: &ModelChoice) -> Result<String, String> {
    // Somebody waits for the answer: the first failure says what is wrong.
    let mut config = config.clone();
    config.models.max_retries = 0;
    let model = models::open(&config, choice).map_err(|details| {
        let hint = next_action::hint(&details).map(|hint| format!(" ({hint})"));
        format!("{}{}", details.message, hint.unwrap_or_default())
    })?;
    let system = "You are asked whether you can be reached.".to_owned();
    let mut transcript = model.transcript(&Prelude { system, tools: Vec::new() });
    transcript.push(&Message::user("Answer with the one word: pong"));
    let options = Options { max_output_tokens: Some(TEST_OUTPUT_TOKENS), ..Options::default() };
    let reply = model.reply(&transcript, &options, &mut |_| {}).await.map_err(|error| {
        let causes =
            std::iter::successors(std::error::Error::source(&error), |cause| cause.source());
        causes.fold(error.to_string(), |all, cause| format!("{all}: {cause}"))
    })?;
    let usage = reply.usage;
    let said = windlass_core::text::one_line(reply.text.trim(), 40);
    let cost = usage.cost_usd.map_or("cost unknown".to_owned(), numbers::dollars);
    let tokens = numbers::tokens(usage.input_tokens + usage.output_tokens);
    let latency = reply.latency.as_millis();
    Ok(format!("it answered `{said}` in {latency} ms ({tokens}, {cost})"))
}
