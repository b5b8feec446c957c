//! `config`, `models`, `trust`: what is configured, whether it works, what a project may set.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Context as _;
use serde_json::json;
use windlass_core::axes::ModelMode;
use windlass_core::message::{Message, Prelude};
use windlass_model::Options;
use windlass_skills::Scope;
use windlass_term::{Table, TerminalStyle, numbers, strip_controls};

use super::ask;
use crate::args;
use crate::config::{self, Config, File, Flag, ModelChoice, Trust};
use crate::failure::Failure;
use crate::next_action;
use crate::show::{note, out};
use crate::wiring::{self, Environment, mcp, models, trust};

/// Enough for one word, with room for a model that thinks first.
const TEST_OUTPUT_TOKENS: u32 = 256;

pub(super) fn config(environment: &Environment, args: &args::ConfigArgs) -> Result<u8, Failure> {
    let config = environment.config(&args.workspace)?;
    let rows = config.report().into_iter().filter(|row| !args.changed || row.source != "default");
    if args.json {
        rows.for_each(|row| out(&serde_json::to_string(&row).unwrap_or_default()));
    } else {
        let mut table = Table::new(&["SETTING", "VALUE", "FROM"], &[]);
        rows.for_each(|row| {
            let value = row.value.unwrap_or_else(|| "-".to_owned());
            table.row(
                [row.key, value, row.source].iter().map(|cell| strip_controls(cell)).collect(),
            );
        });
        print(&table);
    }
    notices(&config);
    Ok(0)
}

pub(super) fn models(environment: &Environment, args: &args::Models) -> Result<u8, Failure> {
    let flag = |value: &String| Flag {
        flag: "--model".to_owned(),
        key: "models.model".to_owned(),
        value: value.clone(),
    };
    let flags = args.model.iter().map(flag).collect();
    let config = Environment { flags, ..environment.clone() }.config(&args.workspace)?;
    let mut table = Table::new(&["MODE", "MODEL", "WHERE"], &[]);
    let mut chosen: BTreeMap<String, ModelChoice> = BTreeMap::new();
    // With one model for every mode, one line says it.
    let modes = if args.model.is_some() { &[ModelMode::Smart][..] } else { ModelMode::ALL };
    for &mode in modes {
        let choice = config.models.for_mode(mode)?;
        let place = place(&config, choice);
        if args.json && !args.test {
            let window = config.context_window(choice);
            out(&json!({ "mode": mode, "model": choice.to_string(), "where": place.clone().ok(),
                "problem": place.as_ref().err(), "context_window": window })
            .to_string());
        }
        let place = place.unwrap_or_else(|problem| problem);
        let mode = if args.model.is_some() { "any".to_owned() } else { mode.to_string() };
        table.row(vec![mode, choice.to_string(), place]);
        chosen.insert(choice.to_string(), choice.clone());
    }
    if !args.json {
        print(&table);
        notices(&config);
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
            out(&json!({ "model": name, "works": works, "outcome": words }).to_string());
        } else {
            let paint = TerminalStyle::detect().results;
            let mark = if works { paint.green("works") } else { paint.red("fails") };
            out(&format!("{mark}  {name}: {}", strip_controls(words)));
        }
    }
    Ok(code)
}

/// Where a model is, or what is missing before it can be asked.
fn place(config: &Config, choice: &ModelChoice) -> Result<String, String> {
    match config.endpoint(choice) {
        Ok(Some(endpoint)) => {
            let key = if endpoint.key.is_some() { "with a key" } else { "without a key" };
            Ok(format!("{} ({key})", endpoint.base))
        }
        Ok(None) => Ok("a file".to_owned()),
        Err(errors) => Err(errors.0.first().map_or_else(String::new, |error| {
            let hint = error.hint.as_deref().unwrap_or_default();
            format!("{}: {hint}", error.problem)
        })),
    }
}

/// One tiny request; what came back, or what went wrong, in words.
async fn tested(config: &Config, choice: &ModelChoice) -> Result<String, String> {
    let model = models::open(config, choice).map_err(|details| {
        let hint = next_action::hint(&details).unwrap_or_default();
        format!("{} {hint}", details.message).trim_end().to_owned()
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
    let (tokens, latency) = (usage.input_tokens + usage.output_tokens, reply.latency.as_millis());
    Ok(format!("`{said}` in {latency} ms, {tokens} tokens, {cost}"))
}

/// Shows what a project's files would be allowed to do, and approves them as they are now: its settings,
/// its MCP servers, and skills that bring servers or hooks along (§15.13).
pub(super) fn trust(environment: &Environment, args: &args::Trust) -> Result<u8, Failure> {
    let files = approvable(environment, &args.workspace)?;
    let names = |files: &[File]| {
        let names: Vec<_> = files.iter().map(|file| format!("`{}`", file.path.display())).collect();
        names.join(", ")
    };
    if files.is_empty() {
        let path = config::read::project_file(&args.workspace);
        return Err(Failure::usage(
            format!("there is no `{}`", path.display()),
            "a project without that file, MCP servers or skills with hooks needs no approval",
        ));
    }
    let unknown = |file: &File| trust::of(&environment.data, file) == Trust::Unknown;
    let (files, known): (Vec<_>, Vec<_>) = files.into_iter().partition(unknown);
    if files.is_empty() {
        note(&format!("approved already, as it is now: {}", names(&known)));
        return Ok(0);
    }
    let names = names(&files);
    for file in &files {
        if file.path == config::read::project_file(&args.workspace) {
            show_settings(environment, &args.workspace, file)?;
        } else {
            out(&format!("{}:", file.path.display()));
            out(&strip_controls(&file.text));
        }
    }
    if !args.yes && !TerminalStyle::detect().can_ask {
        return Err(Failure::usage(
            format!("{names} not approved: nobody is there to ask"),
            "read what it says, then run `windlass trust --yes`",
        ));
    }
    if !args.yes && !ask::confirmed(&format!("Approve {names}, as shown?")) {
        note("not approved");
        return Ok(1);
    }
    for file in &files {
        trust::approve(&environment.data, file)
            .with_context(|| format!("`{}` cannot be written to", environment.data.display()))?;
        note(&format!("approved `{}`, until it changes", file.path.display()));
    }
    Ok(0)
}

/// Files of a project that do nothing, or not all they say, before a person has approved them.
fn approvable(environment: &Environment, workspace: &Path) -> Result<Vec<File>, Failure> {
    let skills = wiring::skills::now(environment, workspace);
    let of_project = |scope: Scope| scope == Scope::Project;
    let servers = mcp::skill_files(&skills).into_iter().filter(|(_, scope)| of_project(*scope));
    let hooked =
        skills.list().filter(|skill| of_project(skill.scope) && skill.meta.hooks.is_some());
    let paths = [config::read::project_file(workspace), mcp::project_file(workspace)]
        .into_iter()
        .chain(servers.map(|(path, _)| path))
        .chain(hooked.map(|skill| skill.path.clone()));
    let mut files = Vec::new();
    for path in paths {
        let file =
            mcp::open(&path).with_context(|| format!("`{}` cannot be read", path.display()))?;
        files.extend(file);
    }
    Ok(files)
}

fn show_settings(environment: &Environment, workspace: &Path, file: &File) -> Result<(), Failure> {
    let approve = |_: &File| Trust::Approved;
    let (env, flags) = (environment.variables.clone(), environment.flags.clone());
    let config = config::read::load(workspace, env, flags, &approve)?;
    let place = format!("{}:", file.path.display());
    let mut table = Table::new(&["SETTING", "VALUE", "FROM"], &[]);
    for row in config.report().into_iter().filter(|row| row.source.contains(&place)) {
        let value = row.value.unwrap_or_default();
        table.row([row.key, value, row.source].iter().map(|cell| strip_controls(cell)).collect());
    }
    print(&table);
    notices(&config);
    Ok(())
}

/// What the person should know about their configuration.
pub(super) fn notices(config: &Config) {
    for notice in &config.notices {
        note(&format!("notice: {}", strip_controls(&notice.to_string())));
    }
}

pub(super) fn print(table: &Table) {
    let paint = TerminalStyle::detect().results;
    for (number, line) in table.lines().iter().enumerate() {
        out(&if number == 0 { paint.dim(line) } else { line.clone() });
    }
}
