//! `mcp`: which servers a task would have, and what one of them offers.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::{ArgGroup, Args, Subcommand};
use serde_json::json;
use windlass_core::id::TaskId;
use windlass_core::shown::{shown, shown_line};
use windlass_sandbox::Sandbox;
use windlass_term::{Table, TerminalStyle};
use windlass_tools::mcp::{
    DefinitionError, Listing, McpHost, McpTool, PRESETS, Server, Servers, ToolChange, Transport,
    parse_server, shown_name,
};
use windlass_tools::{Notices, Tool as _};

use super::{Execute, Start, config};
use crate::args::{SandboxArgs, values};
use crate::config::Config;
use crate::config::edit::{self, NewServer};
use crate::failure::Failure;
use crate::show::{self, note, out, out_json};
use crate::wiring::mcp::McpServers;
use crate::wiring::{self, Environment, mcp, sandbox, skills};

/// List, add and test MCP servers
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Mcp {
    /// What to do
    #[command(subcommand)]
    pub action: McpAction,
    /// The project's directory
    #[arg(long, global = true, value_name = "DIR", default_value = ".", value_parser = values::directory())]
    pub workspace: PathBuf,
}

const EXAMPLES: &str = "\
Examples:
  windlass mcp list                   of .mcp.json, your settings and skills
  windlass mcp test time              start it, and see what it offers
  windlass mcp test time --pin        accept what it says now
  windlass mcp add time uvx mcp-server-time
  windlass mcp presets                servers that need no configuration";

impl Execute for Mcp {
    fn execute(self, start: Start) -> Result<u8, Failure> {
        mcp(start, &self)
    }
}

/// What to do with MCP servers.
#[derive(Debug, Subcommand)]
pub enum McpAction {
    /// List the servers that a task would have here
    List {
        /// Print each server as a line of JSON
        #[arg(long)]
        json: bool,
    },
    /// Start a server and print what it offers, and how that differs from what is pinned
    Test {
        /// The server's name, as `windlass mcp list` shows it
        name: String,
        /// Pin the tools it offers now, with their descriptions
        #[arg(long)]
        pin: bool,
        /// Print the result as JSON
        #[arg(long)]
        json: bool,
        /// Where it runs
        #[command(flatten)]
        sandbox: SandboxArgs,
    },
    /// Add a server to your configuration file
    #[command(group(ArgGroup::new("server").required(true).args(["command", "url"])))]
    #[command(override_usage = ADD_USAGE)]
    Add {
        /// What to call it
        name: String,
        /// The program that is the server, and its arguments
        #[arg(value_name = "COMMAND", trailing_var_arg = true, allow_hyphen_values = true)]
        command: Vec<String>,
        /// Where it answers over HTTP, in place of a program
        #[arg(long, value_name = "URL")]
        url: Option<String>,
    },
    /// List the built-in servers that can be configured by name alone
    Presets,
}

const ADD_USAGE: &str = "\
windlass mcp add <NAME> <COMMAND>...
       windlass mcp add <NAME> --url <URL>";

/// The longest description in a list, in characters.
const SHOWN_CHARS: usize = 60;

fn mcp(start: Start, args: &Mcp) -> Result<u8, Failure> {
    let workspace = &args.workspace;
    match &args.action {
        McpAction::List { json } => list(&start.environment()?, workspace, *json),
        McpAction::Test { name, pin, json, sandbox } => {
            let environment = start.sandbox(sandbox).environment()?;
            test(&environment, workspace, name, *pin, *json)
        }
        McpAction::Add { name, command, url } => {
            let server = match (url, command.split_first()) {
                (None, Some((program, args))) => {
                    NewServer::Program { command: program.clone(), args: args.to_vec() }
                }
                (url, _) => NewServer::Address(url.clone().unwrap_or_default()),
            };
            check(name, &server)?;
            let (path, _) = config::change_user_file(|text| edit::add_server(text, name, &server))?;
            let (place, name) = (shown_line(&path.display().to_string()), shown_line(name));
            note(&format!("added to {place}; try it with `windlass mcp test {name}`"));
            Ok(0)
        }
        McpAction::Presets => {
            let style = TerminalStyle::detect();
            for preset in &PRESETS {
                out(&style.results.bold(preset.name));
                for line in [preset.about, &preset.command_line()] {
                    out(&format!("  {line}"));
                }
            }
            Ok(0)
        }
    }
}

/// Refuses what could not be started once it is in the configuration.
fn check(name: &str, server: &NewServer) -> Result<(), Failure> {
    let written = match server {
        NewServer::Program { command, args } => json!({ "command": command, "args": args }),
        NewServer::Address(url) => json!({ "url": url }),
    };
    let hint = "give a program and its arguments, or `--url https://…`";
    // What a variable holds is known where the server is started.
    if written.to_string().contains("${") {
        return Ok(());
    }
    let read = parse_server(name, &written, &BTreeMap::new());
    let refused = |error: DefinitionError| Failure::usage(shown_line(&error.to_string()), hint);
    read.map(drop).map_err(refused)
}

/// The configuration here, and the servers that work here could start.
fn servers_here(
    environment: &Environment,
    workspace: &Path,
) -> Result<(Config, McpServers), Failure> {
    let config = environment.config(workspace)?;
    let skills = skills::now(environment, workspace);
    let found = mcp::startable_servers(environment, &config, workspace, &skills);
    show::keys::hide(wiring::pairs(&found.keys()));
    Ok((config, found))
}

fn list(environment: &Environment, workspace: &Path, json: bool) -> Result<u8, Failure> {
    let (config, found) = servers_here(environment, workspace)?;
    let mut table = Table::new(&["SERVER", "RUNS", "WHERE", "TRUSTED"], &[]);
    for definition in &found.definitions {
        let place = match definition.program() {
            Some(_) => config.mcp.placement.as_str(),
            None => "elsewhere",
        };
        let (name, runs, trusted) = (&definition.name, definition.summary(), definition.trusted);
        if json {
            out_json(
                &json!({ "name": name, "runs": runs, "where": place, "trusted": trusted })
                    .to_string(),
            );
        }
        let trusted = if trusted { "yes" } else { "no" };
        table.row(vec![shown_line(name), shown_line(&runs), place.to_owned(), trusted.to_owned()]);
    }
    for definition in &found.waiting {
        let (name, runs) = (&definition.name, definition.summary());
        if json {
            out_json(&json!({ "name": name, "runs": runs, "awaits_approval": true }).to_string());
        }
        table.row(vec![shown_line(name), shown_line(&runs), "awaits your approval".to_owned()]);
    }
    let is_empty = found.definitions.is_empty() && found.waiting.is_empty();
    if !json && !is_empty {
        show::print_table(&table);
    }
    if !json && is_empty {
        note(match found.notices.is_empty() {
            true => "no MCP servers; name some in `.mcp.json` or under `[mcp.servers]`",
            false => "no MCP servers can be started yet",
        });
    }
    found.notices.iter().for_each(|notice| note(&format!("notice: {}", shown(notice))));
    Ok(0)
}

fn test(
    environment: &Environment,
    workspace: &Path,
    name: &str,
    pin: bool,
    json: bool,
) -> Result<u8, Failure> {
    let (config, found) = servers_here(environment, workspace)?;
    found.notices.iter().for_each(|notice| note(&format!("notice: {}", shown(notice))));
    let definition = found.definitions.into_iter().find(|definition| definition.name == name);
    let definition = definition.ok_or_else(|| {
        match found.waiting.iter().any(|definition| definition.name == name) {
            true => Failure::usage(
                format!("MCP server `{name}` awaits your approval"),
                "look at what it runs with `windlass trust`",
            ),
            false => Failure::usage(
                format!("there is no MCP server `{name}` that can be started here"),
                "see `windlass mcp list`",
            ),
        }
    })?;
    let root = TaskId::new(jiff::Timestamp::now());
    // The sandbox shows a task its trace, so there has to be one.
    let trace = environment.data.join("traces").join(root.to_string());
    std::fs::create_dir_all(&trace).map_err(anyhow::Error::from)?;
    let runtime = wiring::runtime(wiring::Load::One)?;
    let outcome = runtime.block_on(async {
        let (host, sandbox) = host(environment, &config, workspace, root).await?;
        let servers = Servers::new(vec![definition], &host);
        let outcome = test_server(&servers, pin, json).await;
        servers.close().await;
        sandbox.stop().await;
        outcome
    });
    let _ = std::fs::remove_dir(&trace);
    outcome
}

async fn host(
    environment: &Environment,
    config: &Config,
    workspace: &Path,
    root: TaskId,
) -> Result<(McpHost, Arc<dyn Sandbox>), Failure> {
    let workspace = workspace.canonicalize().unwrap_or_else(|_| workspace.to_owned());
    let opened = sandbox::open(environment, config, &workspace, root).await;
    let opened = opened.map_err(|details| Failure::of_details(&details))?;
    let host = mcp::host(environment, config, &workspace, &opened, Notices::default());
    Ok((host.map_err(anyhow::Error::from)?, opened))
}

async fn test_server(servers: &Servers, pin: bool, json: bool) -> Result<u8, Failure> {
    let Some(server) = servers.iter().next() else { return Ok(0) };
    let (listing, changes) = match server.compare().await {
        Ok(compared) => compared,
        Err(why) => {
            let message = format!("MCP server `{}` does not work: {why}", server.name());
            let hint = match server.definition().transport {
                Transport::Http { .. } => {
                    "check that the address is right and that something answers there"
                }
                Transport::Stdio { .. } => {
                    "check that its program runs in the sandbox: `windlass exec --test …`"
                }
            };
            return Err(Failure { code: 1, ..Failure::usage(message, hint) });
        }
    };
    show(server, &listing, json);
    for change in &changes {
        note(&match change {
            ToolChange::Added(tool) => format!("new since it was pinned: {}", shown_line(tool)),
            ToolChange::Changed(tool) => {
                format!("changed since it was pinned: {}", shown_line(tool))
            }
            ToolChange::Removed(tool) => format!("gone since it was pinned: {}", shown_line(tool)),
        });
    }
    if pin {
        server.meet().await.map_err(|why| anyhow::anyhow!("{why}"))?;
        note("pinned as it is now");
    } else if !changes.is_empty() {
        note("agents still see what is pinned; accept this with `--pin`");
    }
    Ok(u8::from(!changes.is_empty() && !pin))
}

fn show(server: &Arc<Server>, listing: &Listing, json: bool) {
    let mut table = Table::new(&["TOOL", "CLASS", "ABOUT"], &[]);
    for info in &listing.tools {
        let tool = McpTool::new(Arc::clone(server), info.clone());
        let class = tool.min_class().0;
        if json {
            out_json(&json!({ "tool": tool.shown_name(), "wire": tool.name(), "class": class.to_string(),
                "description": info.description, "parameters": info.parameters })
            .to_string());
            continue;
        }
        let about = windlass_core::text::one_line(&info.description, SHOWN_CHARS);
        let name = shown_name(server.name(), &info.name);
        table.row(vec![shown_line(&name), class.to_string(), shown_line(&about)]);
    }
    if !json {
        show::print_table(&table);
    }
}
