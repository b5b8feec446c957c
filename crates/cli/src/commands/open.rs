//! `open`: a link that signs a browser in at the running server.

use std::process::{Command, Stdio};

use anyhow::Context as _;
use clap::Args;

use super::{AppContext, Execute, Start};
use crate::failure::Failure;
use crate::show::{note, out};
use crate::wiring::http;

/// Open the web page of a running `serve`, signed in
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Open {
    /// Print the link and open nothing
    #[arg(long)]
    pub print: bool,
}

const EXAMPLES: &str = "\
Examples:
  windlass open                       in the browser of this machine
  windlass open --print               the link, for a browser elsewhere

The link works once, for ten minutes.";

impl Execute for Open {
    fn execute(self, start: Start) -> Result<u8, Failure> {
        open(&start.app()?, &self)
    }
}

/// Programs that open an address in a browser.
const OPENERS: [&str; 2] = ["xdg-open", "open"];

fn open(app: &AppContext, args: &Open) -> Result<u8, Failure> {
    let url = http::running(&app.coordinator)?;
    let user = app.environment.user();
    let link = windlass_server::login_link(&app.coordinator, &url, &user)
        .context("the login link could not be made")?;
    out(&link);
    if !args.print && app.style.is_stdout_terminal && !OPENERS.iter().any(|by| opens(by, &link)) {
        note("no browser could be started; open the link yourself");
    }
    Ok(0)
}

/// Whether a program took the link. What it prints is not for this terminal.
fn opens(program: &str, link: &str) -> bool {
    let started = Command::new(program)
        .arg(link)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    started.is_ok_and(|status| status.success())
}
