//! `image`: builds the container image, and checks that commands run in it.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::{Args, Subcommand};
use windlass_core::error::Remedy;
use windlass_core::id::TaskId;
use windlass_core::shown::{shown, shown_line};
use windlass_core::text::with_causes;
use windlass_sandbox::docker::{Build, DOCKERFILE, Engine};
use windlass_sandbox::{Command, Error, Exit, Sandbox};
use windlass_skills::regular;

use super::{Execute, Start};
use crate::config::read::MAX_FILE_BYTES;
use crate::config::types::SandboxMode;
use crate::failure::Failure;
use crate::next_action;
use crate::show::{note, out};
use crate::wiring::{self, Environment, sandbox};

/// Build and check the container image
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Image {
    /// What to do
    #[command(subcommand)]
    pub action: ImageAction,
}

const EXAMPLES: &str = "\
Examples:
  windlass image build                the default image, from Debian's packages
  windlass image build --browser      with Chromium
  CONTAINER_IMAGE=mine:1 windlass image check";

impl Execute for Image {
    fn execute(self, start: Start) -> Result<u8, Failure> {
        image(&start.environment()?, &self)
    }
}

/// What to do with the container image.
#[derive(Debug, Subcommand)]
pub enum ImageAction {
    /// Build the image, under the name in `sandbox.image`
    Build {
        /// Build from this Dockerfile instead of the built-in one
        #[arg(long, value_name = "DOCKERFILE")]
        file: Option<PathBuf>,
        /// The base image to build on
        #[arg(long, value_name = "IMAGE")]
        base: Option<String>,
        /// Add Chromium, for browsing
        #[arg(long)]
        browser: bool,
    },
    /// Check that the engine answers, the image exists and commands run in it
    Check,
}

/// Programs that agents often use; a missing one is reported.
const TOOLS: [&str; 6] = ["bash", "git", "rg", "python3", "node", "make"];

pub(super) fn image(environment: &Environment, args: &Image) -> Result<u8, Failure> {
    let config = environment.config(Path::new("."))?;
    let image = config.sandbox.image.clone();
    let runtime = wiring::runtime(wiring::Load::One)?;
    let engine = runtime.block_on(sandbox::engine(environment)).map_err(engine_failure)?;
    match &args.action {
        ImageAction::Build { file, base, browser } => {
            let dockerfile = match file {
                Some(path) => regular::read_text(path, MAX_FILE_BYTES)
                    .with_context(|| format!("`{}` cannot be read", path.display()))?,
                None => DOCKERFILE.to_owned(),
            };
            let base = base.iter().map(|base| ("BASE".to_owned(), base.clone()));
            let browser = browser.then(|| ("BROWSER".to_owned(), "yes".to_owned()));
            let arguments = base.chain(browser).collect();
            let build = Build { image: image.clone(), dockerfile, arguments };
            let print = |line: &str| note(&shown_line(line));
            runtime.block_on(engine.build(build, print)).map_err(engine_failure)?;
            out(&format!("built `{}`", shown_line(&image)));
            Ok(0)
        }
        ImageAction::Check => runtime.block_on(check(environment, &engine, &image)),
    }
}

/// Whether the image is there and commands run in it; 1 if not.
async fn check(environment: &Environment, engine: &Engine, image: &str) -> Result<u8, Failure> {
    out(&format!("engine   {} at {}", shown_line(engine.version()), shown_line(engine.name())));
    let Some(found) = engine.image(image).await.map_err(engine_failure)? else {
        return Err(engine_failure(Error::ImageMissing { image: image.to_owned() }));
    };
    let megabytes = found.size / 1_000_000;
    out(&format!(
        "image    `{}`, {}, {megabytes} MB",
        shown_line(image),
        shown_line(&found.architecture)
    ));
    let place = tempfile::tempdir().context("there is no room for a workspace to try it in")?;
    let root = TaskId::new(jiff::Timestamp::now());
    let trace = environment.data.join("traces").join(root.to_string());
    std::fs::create_dir_all(&trace).context("the data directory cannot be written to")?;
    let config = environment.config(place.path())?;
    let here = Environment { sandbox: Some(SandboxMode::Docker), ..environment.clone() };
    let opened = sandbox::open(&here, &config, place.path(), root).await;
    let said = match opened {
        Ok(opened) => {
            let said = found_tools(&*opened).await;
            opened.stop().await;
            for warning in opened.isolation().warnings {
                note(&shown(&warning));
            }
            said.map_err(engine_failure)
        }
        Err(details) => Err(Failure::of_details(&details)),
    };
    let _ = std::fs::remove_dir(&trace);
    let said = said?;
    for tool in TOOLS {
        let mark = if said.lines().any(|line| line == tool) { "yes" } else { "no" };
        out(&format!("{tool:<8} {mark}"));
    }
    let works = said.lines().any(|line| line == "works");
    out(if works { "commands run in it" } else { "commands do not run in it" });
    Ok(u8::from(!works))
}

async fn found_tools(sandbox: &dyn Sandbox) -> Result<String, Error> {
    let text = format!(
        "for tool in {}; do command -v $tool >/dev/null 2>&1 && echo $tool; done; echo works",
        TOOLS.join(" ")
    );
    let command = Command::script("check", text, sandbox.isolation().workspace);
    let mut running = sandbox.start(command).await?;
    let mut said = Vec::new();
    while let Some(chunk) = running.next().await {
        said.extend(chunk.bytes);
    }
    match running.wait().await.exit {
        Exit::Lost => Err(Error::Lost),
        Exit::Code(_) | Exit::Signal(_) | Exit::TimedOut | Exit::Killed | Exit::OutOfMemory => {
            Ok(String::from_utf8_lossy(&said).into_owned())
        }
    }
}

/// What the engine refuses. Another sandbox is not what a person wants here.
fn engine_failure(error: Error) -> Failure {
    let hint = match sandbox::remedy(&error) {
        Remedy::StartEngine => "start the container engine, or name another with DOCKER_HOST",
        Remedy::GetImage => {
            "build it with `windlass image build`, get it with `docker pull`, or name another with \
             CONTAINER_IMAGE"
        }
        Remedy::CheckSandbox => "see what the container engine says",
        remedy => next_action::remedy_words(remedy),
    };
    Failure::usage(with_causes(&error), hint)
}
