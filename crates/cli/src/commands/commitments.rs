//! `commitments`: promised work, who has claimed it, what proves it, and what was said of it.

mod page;

use std::path::PathBuf;

use clap::{Args, Subcommand};
use jiff::Timestamp;
use windlass_coordinator::{CommitmentFilter, GivenEvidence, NewCommitment};
use windlass_core::commitment::{CommitmentState, EvidenceKind, MAX_EVIDENCE_BYTES, Order};
use windlass_core::id::{CommitmentId, TaskId};
use windlass_core::shown::shown_line;
use windlass_skills::regular;

use super::{AppContext, Execute, Start};
use crate::args::values;
use crate::failure::Failure;
use crate::show::{note, out, out_json};
use crate::wiring::place::TaskDirectories;

/// List promised work, claim it, prove it, submit it, judge it
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Commitments {
    #[command(subcommand)]
    pub action: CommitmentsAction,
    /// Print the result as JSON
    #[arg(long, global = true)]
    pub json: bool,
}

#[derive(Debug, Subcommand)]
pub enum CommitmentsAction {
    /// List commitments, the newest first
    List {
        /// Only those in this state: open, claimed, submitted or approved
        #[arg(long, value_parser = values::one_of(CommitmentState::ALL, CommitmentState::as_str), hide_possible_values = true)]
        state: Option<CommitmentState>,
    },
    /// Show a commitment with its evidence
    Show {
        /// Its id or any unique suffix of it
        id: String,
        /// Print the content of this piece of evidence
        #[arg(long, value_name = "EVIDENCE")]
        evidence: Option<String>,
    },
    /// Promise a piece of work
    Commit {
        /// What is promised, in one line
        title: String,
        /// What to change, where, and how it is proven
        #[arg(long, default_value = "")]
        body: String,
    },
    /// Claim an open commitment
    Claim {
        /// Its id or any unique suffix of it
        id: String,
    },
    /// Add evidence to a commitment
    Capture(Capture),
    /// Submit a commitment that you have claimed and proven
    Submit {
        /// Its id or any unique suffix of it
        id: String,
        /// What was done
        #[arg(long, default_value = "")]
        summary: String,
    },
    /// Approve what somebody else has submitted
    Approve {
        /// Its id or any unique suffix of it
        id: String,
        /// Why it is good
        #[arg(long, default_value = "")]
        reason: String,
    },
    /// Reject what somebody else has submitted; it goes back to them
    Reject {
        /// Its id or any unique suffix of it
        id: String,
        /// What is wrong
        #[arg(long)]
        reason: String,
    },
    /// Give a claim back, or take it away
    Release {
        /// Its id or any unique suffix of it
        id: String,
        /// Why it is released
        #[arg(long, default_value = "")]
        reason: String,
    },
}

/// Evidence for a commitment.
#[derive(Debug, Args)]
pub struct Capture {
    /// Its id or any unique suffix of it
    pub id: String,
    /// What it is: test_output, diff, file, url, screenshot or note
    #[arg(long = "type", value_name = "TYPE", value_parser = values::one_of(EvidenceKind::ALL, EvidenceKind::as_str), hide_possible_values = true)]
    pub kind: EvidenceKind,
    /// A file that is the evidence
    #[arg(long)]
    pub path: Option<PathBuf>,
    /// A text that is the evidence
    #[arg(long, conflicts_with = "path")]
    pub content: Option<String>,
    /// An address that shows it
    #[arg(long)]
    pub url: Option<String>,
    /// What the evidence shows
    #[arg(long, default_value = "")]
    pub description: String,
}

const EXAMPLES: &str = "\
Examples:
  windlass commitments list --state open
  windlass commitments commit 'Use JWT in the auth flow'
  windlass commitments claim 7K2P
  windlass commitments capture 7K2P --type test_output --path test.log
  windlass commitments submit 7K2P --summary 'done, with tests'
  windlass commitments reject 7K2P --reason 'the refresh token is untested'

Nobody approves what they have claimed or submitted themselves.";

impl Execute for Commitments {
    fn execute(self, start: Start) -> Result<u8, Failure> {
        let app = start.app_for_work()?;
        match self.action {
            CommitmentsAction::List { state } => list(&app, state, self.json),
            CommitmentsAction::Show { id, evidence } => {
                show(&app, &id, evidence.as_deref(), self.json)
            }
            CommitmentsAction::Commit { title, body } => commit(&app, title, body, self.json),
            CommitmentsAction::Capture(given) => capture(&app, given, self.json),
            CommitmentsAction::Claim { id } => act(&app, &id, Order::Claim, self.json),
            CommitmentsAction::Submit { id, summary } => {
                act(&app, &id, Order::Submit(summary), self.json)
            }
            CommitmentsAction::Approve { id, reason } => {
                act(&app, &id, Order::Approve(reason), self.json)
            }
            CommitmentsAction::Reject { id, reason } => {
                act(&app, &id, Order::Reject(reason), self.json)
            }
            CommitmentsAction::Release { id, reason } => {
                act(&app, &id, Order::Release(reason), self.json)
            }
        }
    }
}

fn list(app: &AppContext, state: Option<CommitmentState>, json: bool) -> Result<u8, Failure> {
    let filter = CommitmentFilter { state, ..CommitmentFilter::default() };
    let rows = app.coordinator.commitments().list(&filter)?;
    if json {
        rows.iter().for_each(|row| out_json(&serde_json::to_string(row).unwrap_or_default()));
        return Ok(0);
    }
    if rows.is_empty() {
        note("there are no commitments; make one with `windlass commitments commit TITLE`");
        return Ok(0);
    }
    let home = app.environment.variables.get("HOME").map_or("", String::as_str);
    page::print_list(&rows, app.coordinator.now(), home);
    Ok(0)
}

fn show(app: &AppContext, id: &str, evidence: Option<&str>, json: bool) -> Result<u8, Failure> {
    let commitments = app.coordinator.commitments();
    let commitment = commitments.get(commitments.find(id)?)?;
    if let Some(wanted) = evidence {
        let wanted = wanted.to_ascii_uppercase();
        let ends = |text: &str| text.to_ascii_uppercase().ends_with(&wanted);
        let found = commitment.evidence.iter().find(|one| ends(&one.id.to_string()));
        let Some(found) = found else {
            let words = format!("`{}` has no evidence `{wanted}`", commitment.id);
            return Err(Failure::usage(words, format!("see `windlass commitments show {id}`")));
        };
        match commitments.content(found) {
            Some(content) => out(&windlass_core::shown::shown(&String::from_utf8_lossy(&content))),
            None => out(&shown_line(&found.uri)),
        }
        return Ok(0);
    }
    match json {
        true => out_json(&serde_json::to_string(&commitment).unwrap_or_default()),
        false => page::print(&commitment, app.coordinator.now()),
    }
    Ok(0)
}

fn commit(app: &AppContext, title: String, body: String, json: bool) -> Result<u8, Failure> {
    let here = std::env::current_dir().map_err(anyhow::Error::from)?;
    let placed =
        TaskDirectories::of_directory(&app.environment, &here, TaskId::new(Timestamp::now()));
    let project = Some(placed.top.display().to_string());
    let new = NewCommitment { title, body, session: None, project };
    let user = app.environment.user();
    let commitment = app.runtime.block_on(app.coordinator.commitments().open(new, &user))?;
    match json {
        true => out_json(&serde_json::to_string(&commitment).unwrap_or_default()),
        false => out(&commitment.id.to_string()),
    }
    Ok(0)
}

fn act(app: &AppContext, id: &str, order: Order, json: bool) -> Result<u8, Failure> {
    let commitments = app.coordinator.commitments();
    let id: CommitmentId = commitments.find(id)?;
    let user = app.environment.user();
    let commitment = app.runtime.block_on(commitments.act(id, order, &user))?;
    match json {
        true => out_json(&serde_json::to_string(&commitment).unwrap_or_default()),
        false => note(&format!("{id} is {}", page::state_words(&commitment))),
    }
    Ok(0)
}

fn capture(app: &AppContext, given: Capture, json: bool) -> Result<u8, Failure> {
    let commitments = app.coordinator.commitments();
    let id = commitments.find(&given.id)?;
    let content = match (&given.path, given.content) {
        (Some(path), _) => Some(read(path)?),
        (None, content) => content.map(String::into_bytes),
    };
    let evidence = GivenEvidence {
        kind: given.kind,
        content,
        path: given.path.map(|path| path.display().to_string()),
        url: given.url,
        description: given.description,
    };
    let user = app.environment.user();
    let kept = app.runtime.block_on(commitments.capture(Some(id), evidence, &user))?;
    match json {
        true => out_json(&serde_json::to_string(&kept).unwrap_or_default()),
        false => note(&format!("{} {}: sha256 {}", kept.id, kept.kind, kept.sha256)),
    }
    Ok(0)
}

fn read(path: &std::path::Path) -> Result<Vec<u8>, Failure> {
    let wrong = |problem: String| {
        let words = format!("`{}` {problem}", path.display());
        Failure::usage(words, "name a file that you can read with `--path FILE`")
    };
    regular::read(path, MAX_EVIDENCE_BYTES as u64)
        .map_err(|error| wrong(format!("cannot be read: {error}")))
}
