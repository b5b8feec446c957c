//! Arguments of the commands that are about the program itself.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand};

use super::{Place, Printing};

/// Arguments of `demo`.
#[derive(Debug, ClapArgs)]
pub struct Demo {
    /// Keep the throwaway directory, to look around in it
    #[arg(long)]
    pub keep: bool,
    /// How to print
    #[command(flatten)]
    pub printing: Printing,
}

/// Arguments of `exec`.
#[derive(Debug, ClapArgs)]
pub struct Exec {
    /// The command, for the shell
    #[arg(long, value_name = "COMMAND", required = true)]
    pub test: String,
    /// The directory to work in
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub workspace: PathBuf,
    /// Print where the output is kept, as JSON
    #[arg(long)]
    pub json: bool,
    /// Where it runs
    #[command(flatten)]
    pub place: Place,
}

/// Arguments of `config`.
#[derive(Debug, ClapArgs)]
pub struct ConfigArgs {
    /// The directory whose project file counts
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub workspace: PathBuf,
    /// Only settings that are not at their default
    #[arg(long)]
    pub changed: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `models`.
#[derive(Debug, ClapArgs)]
pub struct Models {
    /// Send each model one tiny request and say what came back
    #[arg(long)]
    pub test: bool,
    /// Only this model, as `provider/model` or `script:FILE`, configured or not
    #[arg(long, value_name = "MODEL")]
    pub model: Option<String>,
    /// The directory whose project file counts
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub workspace: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `trust`.
#[derive(Debug, ClapArgs)]
pub struct Trust {
    /// The project's directory
    #[arg(value_name = "DIR", default_value = ".")]
    pub workspace: PathBuf,
    /// Approve without asking
    #[arg(long, short)]
    pub yes: bool,
}

/// Arguments of `doctor`.
#[derive(Debug, ClapArgs)]
pub struct Doctor {
    /// The directory to look from
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub workspace: PathBuf,
    /// Which sandbox to look at
    #[command(flatten)]
    pub place: Place,
}

/// Arguments of `completions`.
#[derive(Debug, ClapArgs)]
pub struct Completions {
    /// Your shell
    #[arg(value_enum)]
    pub shell: clap_complete::Shell,
}

/// Arguments of `image`.
#[derive(Debug, ClapArgs)]
pub struct Image {
    /// What to do
    #[command(subcommand)]
    pub what: ImageWhat,
}

/// What to do with the image of containers.
#[derive(Debug, Subcommand)]
pub enum ImageWhat {
    /// Build it, under the name that `sandbox.image` has
    Build {
        /// Build from this file instead of the built-in one
        #[arg(long, value_name = "DOCKERFILE")]
        file: Option<PathBuf>,
        /// Begin with this image
        #[arg(long, value_name = "IMAGE")]
        base: Option<String>,
        /// Add Chromium
        #[arg(long)]
        browser: bool,
    },
    /// See that the engine answers, the image is there and commands run in it
    Check,
}
