//! `doctor`: is the store sound, what does the sandbox stand on, is a model configured.

use std::path::PathBuf;

use clap::Args;
use windlass_core::axes::ModelMode;
use windlass_core::id::TaskId;
use windlass_core::shown::shown;
use windlass_term::numbers;

use super::{AppContext, Execute, Start};
use crate::args::SandboxArgs;
use crate::failure::Failure;
use crate::show::{self, out};
use crate::wiring::{mcp, models, sandbox, skills, web};

/// Check the store, the sandbox and the configuration
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Doctor {
    /// The directory whose project file, skills and MCP servers are checked
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub workspace: PathBuf,
    /// Which sandbox to check
    #[command(flatten)]
    pub sandbox: SandboxArgs,
}

const EXAMPLES: &str = "\
Examples:
  windlass doctor";

impl Execute for Doctor {
    fn execute(self, start: Start) -> Result<u8, Failure> {
        doctor(&start.sandbox(&self.sandbox).app()?, &self)
    }
}

/// How many problems of one kind are listed.
const SHOWN: usize = 20;

/// Looks at everything, says what it finds; 1 if something is wrong.
pub(super) fn doctor(app: &AppContext, args: &Doctor) -> Result<u8, Failure> {
    let mut wrong = 0;
    let mut say = |fine: bool, what: &str, words: &str| {
        wrong += u32::from(!fine);
        let paint = app.style.results;
        let mark = if fine { paint.green("ok   ") } else { paint.red("wrong") };
        out(&format!("{mark}  {what:<9} {}", shown(words)));
    };

    let storage = app.coordinator.storage();
    let differences = storage.verify()?;
    match differences.len() {
        0 => {
            say(true, "store", &format!("{} agrees with its journal", storage.database().display()))
        }
        many => say(false, "store", &format!("{many} places disagree with the journal")),
    }
    for difference in differences.iter().take(SHOWN) {
        out(&format!("         {}", shown(&difference.to_string())));
    }

    let config = match app.environment.config(&args.workspace) {
        Ok(config) => config,
        Err(failure) => {
            say(false, "config", &failure.error.to_string());
            return Ok(1);
        }
    };
    say(true, "config", "every value is allowed");
    match config.models.for_mode(ModelMode::Smart) {
        Ok(choice) => match models::open(&config, choice) {
            Ok(_) => say(true, "model", &format!("{choice}; ask it with `windlass models --test`")),
            Err(details) => say(false, "model", &details.message),
        },
        Err(errors) => say(false, "model", &errors.to_string()),
    }

    let workspace = args.workspace.canonicalize().unwrap_or_else(|_| args.workspace.clone());
    let root = TaskId::new(app.coordinator.now());
    // The sandbox shows a task its trace, so there has to be one.
    let trace = storage.trace_directory(root);
    let _ = std::fs::create_dir_all(&trace);
    let opened = sandbox::open_with(&app.environment, &config, &workspace, root, None);
    let opened = app.runtime.block_on(opened);
    match opened {
        Ok(opened) => {
            let isolation = opened.sandbox.isolation();
            let mut kind = isolation.kind.to_string();
            if let Some(why) = &opened.why {
                kind = format!("{kind} ({why})");
            }
            say(true, "sandbox", &format!("{kind}: {}", isolation.facts.join("; ")));
            for warning in &isolation.warnings {
                out(&format!("         {}", shown(warning)));
            }
            app.runtime.block_on(opened.sandbox.stop());
        }
        Err(details) => say(false, "sandbox", &details.message),
    }
    let _ = std::fs::remove_dir(&trace);
    let (tools, missing) = web::tools(&config);
    let names = tools.iter().map(|tool| tool.name()).chain(missing.iter().map(String::as_str));
    say(true, "web", &names.collect::<Vec<_>>().join("; "));
    let found = skills::now(&app.environment, &workspace);
    say(found.problems().is_empty(), "skills", &format!("{} can be used", found.list().count()));
    for problem in found.problems().iter().take(SHOWN) {
        out(&format!("         {}", shown(&problem.to_string())));
    }
    let servers = mcp::found(&app.environment, &config, &workspace, &found);
    say(
        true,
        "mcp",
        &format!("{} can be started", numbers::plural(servers.definitions.len(), "server")),
    );
    for notice in servers.notices.iter().take(SHOWN) {
        out(&format!("         {}", shown(notice)));
    }
    show::print_config_notices(&config);
    Ok(u8::from(wrong > 0))
}
