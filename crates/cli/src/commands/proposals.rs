//! `skills proposals`: what tasks here have in common, and the skill that would be written for it.

mod accepting;
mod draft;

use clap::{Args, Subcommand};
use serde_json::json;
use windlass_coordinator::skill_proposals::{Proposal, ProposalStatus};
use windlass_core::shown::{shown, shown_line, shown_path};
use windlass_term::{Table, numbers};

use super::{AppContext, Start};
use crate::Hooks;
use crate::failure::Failure;
use crate::show::{self, note, out, out_json};
pub(super) use accepting::Accepting;

impl AppContext {
    /// What it takes to accept proposed skills.
    pub(super) fn accepting(&self, hooks: Hooks) -> Accepting {
        let (coordinator, environment) = (self.coordinator.clone(), self.environment.clone());
        Accepting { coordinator, environment, hooks }
    }
}

/// Arguments of `skills proposals`.
#[derive(Debug, Args)]
pub struct Proposals {
    /// What to do; without it the proposals are listed
    #[command(subcommand)]
    pub action: Option<ProposalsAction>,
    /// Print each proposal as a line of JSON
    #[arg(long)]
    pub json: bool,
}

/// What to do with proposals.
#[derive(Debug, Subcommand)]
pub enum ProposalsAction {
    /// Print one proposal: what tasks did, and the skill that would be written
    Show {
        /// Its number, as the list shows it
        number: i64,
    },
    /// Try the skill, and write it into the project if it helps
    Accept {
        /// Its number, as the list shows it
        number: i64,
        /// Call the skill so
        #[arg(long, value_name = "NAME")]
        name: Option<String>,
        /// Commit it with git
        #[arg(long)]
        commit: bool,
    },
    /// Decline one; the same is not proposed again
    Reject {
        /// Its number, as the list shows it
        number: i64,
        /// The reason, which is kept with the proposal
        #[arg(long, value_name = "TEXT", default_value = "")]
        reason: String,
    },
}

pub(super) fn proposals(start: Start, args: &Proposals) -> Result<u8, Failure> {
    let hooks = start.hooks.clone();
    let app = start.app()?;
    let accepting = app.accepting(hooks);
    match &args.action {
        None => list(&app, args.json),
        Some(ProposalsAction::Show { number }) => show(&accepting, *number, args.json),
        Some(ProposalsAction::Reject { number, reason }) => reject(&accepting, *number, reason),
        Some(ProposalsAction::Accept { number, name, commit }) => {
            accept(&accepting, *number, name.as_deref(), *commit)
        }
    }
}

fn list(app: &AppContext, json: bool) -> Result<u8, Failure> {
    let all = app.coordinator.skill_proposals().all(None)?;
    let mut table = Table::new(&["NUMBER", "STATUS", "SKILL", "FOR", "TASKS", "PROJECT"], &[]);
    for proposal in &all {
        if json {
            out_json(&as_json(proposal).to_string());
            continue;
        }
        let first = proposal.evidence.first();
        table.row(vec![
            proposal.number.to_string(),
            proposal.status.to_string(),
            shown_line(&proposal.name),
            first
                .map(|first| shown_line(&windlass_core::text::one_line(&first.words(), 60)))
                .unwrap_or_default(),
            first.map_or(0, |first| first.tasks.len()).to_string(),
            shown_line(&proposal.project),
        ]);
    }
    match (all.is_empty(), json) {
        (true, false) => note("no proposals; three tasks of a project that do the same make one"),
        (false, false) => show::print_table(&table),
        (_, true) => {}
    }
    Ok(0)
}

fn as_json(proposal: &Proposal) -> serde_json::Value {
    json!({
        "number": proposal.number, "project": proposal.project, "name": proposal.name,
        "status": proposal.status, "note": proposal.note, "made_at": proposal.made_at.to_string(),
        "goal": proposal.goal, "evidence": proposal.evidence,
    })
}

fn show(accepting: &Accepting, number: i64, json: bool) -> Result<u8, Failure> {
    let proposal = accepting.find(number)?;
    if json {
        out_json(&as_json(&proposal).to_string());
        return Ok(0);
    }
    out(&format!(
        "Proposal {number}: skill `{}` for {}",
        proposal.name,
        shown_line(&proposal.project)
    ));
    for finding in &proposal.evidence {
        let count = numbers::plural(finding.tasks.len(), "task");
        out(&shown(&format!("  in {count}: {}", finding.words())));
        let tasks: Vec<String> = finding.tasks.iter().map(ToString::to_string).collect();
        out(&format!("    {}", tasks.join(" ")));
    }
    match proposal.status {
        ProposalStatus::Open => match accepting.find_draft(&proposal) {
            Ok(Some(draft)) => out(&format!("\n{}", shown(draft.text.trim_end()))),
            Ok(None) => note("the fast model writes it when you accept it"),
            Err(why) => note(&why.error.to_string()),
        },
        status => out(&shown(&format!("{status}: {}", proposal.note))),
    }
    if proposal.status == ProposalStatus::Open {
        note(&format!(
            "accept it with `windlass skills proposals accept {number}`, or `reject {number}`"
        ));
    }
    Ok(0)
}

fn reject(accepting: &Accepting, number: i64, reason: &str) -> Result<u8, Failure> {
    let proposal = accepting.find(number)?;
    accepting.decide(&proposal, ProposalStatus::Rejected, reason)?;
    out(&format!("rejected {number}; it is not proposed again"));
    Ok(0)
}

fn accept(
    accepting: &Accepting,
    number: i64,
    name: Option<&str>,
    commit: bool,
) -> Result<u8, Failure> {
    let proposal = accepting.still_open(number)?;
    let name = name.map_or_else(|| proposal.name.clone(), str::to_owned);
    let proposal = Proposal { name, ..proposal };
    accepting.target(&proposal)?;
    let draft = match accepting.find_draft(&proposal)? {
        Some(draft) => draft,
        None => accepting.draft(&proposal)?,
    };
    note("trying it: its eval case without the skill, then with it");
    let written = accepting.write(&proposal, &draft, commit)?;
    out(&shown_path(&written.directory));
    if written.commit.is_none() {
        note("commit it with the project, so that everybody has it");
    }
    Ok(0)
}
