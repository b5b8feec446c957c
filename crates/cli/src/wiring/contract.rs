//! The completion contract of a project: found, read, and whether a person has approved what it runs (§15.13).

use std::path::{Path, PathBuf};
use std::sync::Arc;

use windlass_agent::ContractInForce;
use windlass_core::contract::{Check, Contract};
use windlass_plan::read_contract;

use super::trust::ApprovableFile;
use super::{Environment, mcp};
use crate::config::read::Upwards;
use crate::config::{File, Trust};
use crate::failure::Failure;

/// Where a contract may be; the first one counts.
const NAMES: [&str; 2] = [".windlass/completion.json", ".claude/completion.json"];

/// The places of a project's contract, whether it is there or not.
pub fn files(workspace: &Path) -> impl Iterator<Item = PathBuf> {
    let upwards = Upwards::from(workspace);
    NAMES.into_iter().map(move |name| upwards.nearest(name))
}

/// The contract for work in a directory; what is wrong with it is said with its place.
pub fn load(
    environment: &Environment,
    workspace: &Path,
) -> Result<Option<Arc<ContractInForce>>, Failure> {
    for path in files(workspace) {
        let found = mcp::open(&path).map_err(|error| {
            let hint = "make it a text file that you can read, or move it away";
            Failure::usage(format!("`{}` cannot be read: {error}", path.display()), hint)
        })?;
        if let Some(file) = found {
            return active(environment, workspace, file).map(Some);
        }
    }
    Ok(None)
}

fn active(
    environment: &Environment,
    workspace: &Path,
    file: File,
) -> Result<Arc<ContractInForce>, Failure> {
    let contract = read_contract(&file.text).map_err(|error| {
        let hint = "correct it, or move it away; see docs/commitments.md for the format";
        Failure::usage(format!("`{}`: {error}", file.path.display()), hint)
    })?;
    let contract = match find_upwards(workspace, &file.path) {
        Some(top) => resolve_from_top(contract, &top),
        None => contract,
    };
    let source = file.path.display().to_string();
    let approved = ApprovableFile::new(workspace, file).trust(&environment.data) == Trust::Approved;
    Ok(Arc::new(ContractInForce { contract, source, approved }))
}

/// The way from the directory that work starts in up to the project's, where that is another.
fn find_upwards(workspace: &Path, file: &Path) -> Option<String> {
    let start = workspace.canonicalize().ok()?;
    let project = file.parent()?.parent()?.canonicalize().ok()?;
    let depth = start.strip_prefix(&project).ok()?.components().count();
    (depth > 0).then(|| vec![".."; depth].join("/"))
}

/// A contract of a directory above: its paths and commands are meant from there.
fn resolve_from_top(contract: Contract, top: &str) -> Contract {
    Contract {
        required_files: contract
            .required_files
            .iter()
            .map(|path| format!("{top}/{path}"))
            .collect(),
        checks: contract
            .checks
            .into_iter()
            .map(|check| Check {
                command: check.command.map(|command| format!("cd {top} && {command}")),
                ..check
            })
            .collect(),
        ..contract
    }
}
