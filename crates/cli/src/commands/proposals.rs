//! `skills proposals`: what tasks here have in common, and the skill that would come of it.
//!
//! Invariant: nothing is written into a project before its files are linted and an eval case has failed without the skill
//! and passed with it (MS-166, MS-168).

mod draft;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::{Args, Subcommand};
use serde_json::json;
use windlass_coordinator::skill_proposals::{Proposal, ProposalStatus, SkillPolicy};
use windlass_core::shown::{shown, shown_line, shown_path};
use windlass_skills::eval::cases;
use windlass_skills::{Scope, parse_markdown};
use windlass_term::{Table, numbers};

use super::eval;
use super::{AppContext, Start};
use crate::failure::Failure;
use crate::show::{self, note, out, out_json};
use crate::wiring::{self, Environment, skills};
use draft::Draft;

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
        /// Why
        #[arg(long, value_name = "TEXT", default_value = "")]
        reason: String,
    },
}

pub(super) fn proposals(start: Start, args: &Proposals) -> Result<u8, Failure> {
    let hooks = start.hooks.clone();
    let environment = start.environment()?;
    let app = start.app()?;
    match &args.action {
        None => list(&app, args.json),
        Some(ProposalsAction::Show { number }) => show(&app, &environment, *number, args.json),
        Some(ProposalsAction::Reject { number, reason }) => reject(&app, *number, reason),
        Some(ProposalsAction::Accept { number, name, commit }) => {
            let accepting =
                Accepting { app: &app, environment: &environment, hooks, commit: *commit };
            accepting.accept(*number, name.as_deref())
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

fn find(app: &AppContext, number: i64) -> Result<Proposal, Failure> {
    app.coordinator.skill_proposals().get(number)?.ok_or_else(|| {
        Failure::usage(
            format!("there is no proposal {number}"),
            "`windlass skills proposals` lists them",
        )
    })
}

fn show(
    app: &AppContext,
    environment: &Environment,
    number: i64,
    json: bool,
) -> Result<u8, Failure> {
    let proposal = find(app, number)?;
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
    let config = environment.config(Path::new(&proposal.project))?;
    match (proposal.status, config.policy.skill_proposals) {
        (ProposalStatus::Open, SkillPolicy::Generate) => {
            note("the fast model writes it when you accept it");
        }
        (ProposalStatus::Open, _) => match Draft::from_evidence(&proposal) {
            Ok(draft) => out(&format!("\n{}", shown(draft.text.trim_end()))),
            Err(why) => note(&why),
        },
        (status, _) => out(&shown(&format!("{status}: {}", proposal.note))),
    }
    if proposal.status == ProposalStatus::Open {
        note(&format!(
            "accept it with `windlass skills proposals accept {number}`, or `reject {number}`"
        ));
    }
    Ok(0)
}

fn reject(app: &AppContext, number: i64, reason: &str) -> Result<u8, Failure> {
    let proposal = find(app, number)?;
    decide(app, &proposal, ProposalStatus::Rejected, reason)?;
    out(&format!("rejected {number}; it is not proposed again"));
    Ok(0)
}

fn decide(
    app: &AppContext,
    proposal: &Proposal,
    status: ProposalStatus,
    note: &str,
) -> Result<(), Failure> {
    let number = proposal.number;
    let deciding = app.coordinator.skill_proposals().decide(number, status, note);
    match app.runtime.block_on(deciding)? {
        true => Ok(()),
        false => Err(closed(proposal)),
    }
}

fn closed(proposal: &Proposal) -> Failure {
    let message = format!("proposal {} is {} already", proposal.number, proposal.status);
    Failure::usage(message, "`windlass skills proposals` lists those that are open")
}

struct Accepting<'a> {
    app: &'a AppContext,
    environment: &'a Environment,
    hooks: crate::Hooks,
    commit: bool,
}

impl Accepting<'_> {
    fn accept(&self, number: i64, name: Option<&str>) -> Result<u8, Failure> {
        let proposal = find(self.app, number)?;
        if proposal.status != ProposalStatus::Open {
            return Err(closed(&proposal));
        }
        let project = Path::new(&proposal.project);
        let proposal = Proposal {
            name: name.map_or_else(|| proposal.name.clone(), str::to_owned),
            ..proposal.clone()
        };
        let target = self.target(project, &proposal.name)?;
        let draft = self.draft(&proposal)?;
        let staged = self.environment.data.join("proposals").join(number.to_string());
        let _ = fs::remove_dir_all(&staged);
        let folder = staged.join(&proposal.name);
        draft.write(&folder, project).context("the draft cannot be written")?;
        lint(&folder, &draft, &proposal.name)?;
        note("trying it: its eval case without the skill, then with it");
        eval::prove(self.environment, project, &staged, &proposal.name, &self.hooks)?;
        copy(&folder, &target)
            .with_context(|| format!("`{}` cannot be written", target.display()))?;
        let _ = fs::remove_dir_all(&staged);
        let commit =
            if self.commit { Some(commit(project, &target, &proposal.name)?) } else { None };
        let words = commit.map_or("written".to_owned(), |hash| format!("written, commit {hash}"));
        decide(self.app, &proposal, ProposalStatus::Accepted, &words)?;
        out(&shown_path(&target));
        if !self.commit {
            note("commit it with the project, so that everybody has it");
        }
        Ok(0)
    }

    /// Where the skill goes; a name that is taken is refused.
    fn target(&self, project: &Path, name: &str) -> Result<PathBuf, Failure> {
        let places = skills::directories(self.environment, project);
        let place = places.iter().rev().find(|(_, scope)| *scope == Scope::Project);
        let (place, _) = place
            .ok_or_else(|| Failure::usage("there is no directory for it", "its project is gone"))?;
        let target = place.join(name);
        if target.exists() || skills::now(self.environment, project).get(name).is_some() {
            let message = format!("there is a skill `{name}` already");
            return Err(Failure::usage(message, "give this one another name with `--name`"));
        }
        Ok(target)
    }

    /// By the fast model only where the policy says so (MS-164).
    fn draft(&self, proposal: &Proposal) -> Result<Draft, Failure> {
        let config = self.environment.config(Path::new(&proposal.project))?;
        match config.policy.skill_proposals {
            SkillPolicy::Generate => {
                let chosen = config.models.for_mode(windlass_core::axes::ModelMode::Fast)?;
                let model = wiring::models::open(&config, &chosen);
                let model = model.map_err(|details| Failure::of_details(&details))?;
                let written = self.app.runtime.block_on(Draft::by_model(&*model, proposal));
                written.map_err(|why| refused(&format!("the model's draft cannot be used: {why}")))
            }
            SkillPolicy::Propose | SkillPolicy::Off => {
                Draft::from_evidence(proposal).map_err(|why| refused(&why))
            }
        }
    }
}

fn refused(why: &str) -> Failure {
    Failure::usage(
        format!("nothing was written: {why}"),
        "write it yourself with `windlass skills new NAME`, or `reject` the proposal",
    )
}

/// A skill that is written by a program is held to more than one that a person writes: no warning is passed over.
fn lint(folder: &Path, draft: &Draft, name: &str) -> Result<(), Failure> {
    let wrong = match parse_markdown(&draft.text, name) {
        Ok(parsed) => parsed.warning,
        Err(error) => Some(error),
    };
    if let Some(error) = wrong {
        return Err(refused(&error.reason));
    }
    let (found, problems) = cases(folder);
    match (problems.first(), found.is_empty()) {
        (Some(problem), _) => Err(refused(&problem.to_string())),
        (None, true) => Err(refused("it has no eval case")),
        (None, false) => Ok(()),
    }
}

fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        match entry.file_type()?.is_dir() {
            true => copy(&entry.path(), &target)?,
            false => drop(fs::copy(entry.path(), target)?),
        }
    }
    Ok(())
}

/// Commits the skill's files and nothing else; returns the commit's short hash (MS-167).
fn commit(project: &Path, target: &Path, name: &str) -> Result<String, Failure> {
    let git = |args: &[&str]| -> Result<String, Failure> {
        let mut command = std::process::Command::new("git");
        let ran =
            command.arg("-C").arg(project).args(args).output().context("git cannot be run")?;
        match ran.status.success() {
            true => Ok(String::from_utf8_lossy(&ran.stdout).trim().to_owned()),
            false => {
                let why = String::from_utf8_lossy(&ran.stderr);
                let message =
                    format!("the skill is written, and git refused: {}", shown_line(why.trim()));
                Err(Failure::usage(message, "commit it yourself"))
            }
        }
    };
    let path = target.display().to_string();
    git(&["add", "--force", "--", &path])?;
    git(&[
        "commit",
        "--quiet",
        "--message",
        &format!("Add the skill {name}"),
        "--only",
        "--",
        &path,
    ])?;
    git(&["rev-parse", "--short", "HEAD"])
}
