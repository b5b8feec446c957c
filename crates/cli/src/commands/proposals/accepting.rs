//! Accepting a proposed skill: drafted, linted, tried, written. The command does it, and `serve` does it for its page.
//!
//! Invariant: nothing is written into a project before its files are linted and an eval case has failed without the skill
//! and passed with it (MS-166, MS-168).

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use windlass_coordinator::Coordinator;
use windlass_coordinator::skill_proposals::{Proposal, ProposalStatus, SkillPolicy};
use windlass_core::shown::{shown_line, shown_path};
use windlass_server::{DraftFile, SkillDraft, SkillWriter};
use windlass_skills::eval::cases;
use windlass_skills::{Scope, inside, parse_markdown};
use windlass_tools::workspace::repository::boundary;
use windlass_tools::workspace::working_tree;

use super::super::eval;
use super::draft::ProposalDraft;
use crate::Hooks;
use crate::failure::Failure;
use crate::wiring::{self, Environment, Load, skills};

/// Characters of a commit that name it.
const SHORT_HASH: usize = 10;

/// What it takes to accept proposals.
#[derive(Clone)]
pub struct Accepting {
    pub coordinator: Coordinator,
    pub environment: Environment,
    pub hooks: Hooks,
}

/// A skill that was written.
pub struct SavedSkill {
    pub directory: PathBuf,
    /// The short hash of its commit, where it was committed.
    pub commit: Option<String>,
}

impl Accepting {
    /// What would be written; `None` while the fast model would have to write it first (MS-164).
    pub fn find_draft(&self, proposal: &Proposal) -> Result<Option<ProposalDraft>, Failure> {
        match self.policy(proposal)? {
            SkillPolicy::Generate => Ok(ProposalDraft::read(&self.draft_file(proposal))),
            SkillPolicy::Propose | SkillPolicy::Off => {
                ProposalDraft::from_evidence(proposal).map(Some).map_err(|why| not_drafted(&why))
            }
        }
    }

    /// The same; the fast model writes it where the policy says so. It is kept, so that what is accepted is what was shown.
    pub fn draft(&self, proposal: &Proposal) -> Result<ProposalDraft, Failure> {
        if let SkillPolicy::Propose | SkillPolicy::Off = self.policy(proposal)? {
            return ProposalDraft::from_evidence(proposal).map_err(|why| not_drafted(&why));
        }
        let config = self.environment.config(Path::new(&proposal.project))?;
        let chosen = config.models.for_mode(windlass_core::axes::ModelMode::Fast)?;
        let model = wiring::models::open(&config, &chosen);
        let model = model.map_err(|details| Failure::of_details(&details))?;
        let written =
            wiring::runtime(Load::One)?.block_on(ProposalDraft::by_model(&*model, proposal));
        let draft =
            written.map_err(|why| unusable(&format!("the model's draft cannot be used: {why}")))?;
        draft.keep(&self.draft_file(proposal)).context("the draft cannot be kept")?;
        Ok(draft)
    }

    /// Tries a draft and writes it if it helps, then closes the proposal.
    pub fn write(
        &self,
        proposal: &Proposal,
        draft: &ProposalDraft,
        commits: bool,
    ) -> Result<SavedSkill, Failure> {
        let project = Path::new(&proposal.project);
        let directory = self.target(proposal)?;
        let staged = self.place(proposal).join("tried");
        let _ = fs::remove_dir_all(&staged);
        let folder = staged.join(&proposal.name);
        draft.write(&folder, project).context("the draft cannot be written")?;
        lint(&folder, draft, &proposal.name)?;
        eval::prove(&self.environment, project, &staged, &proposal.name, &self.hooks)?;
        // Somebody may have declined it meanwhile.
        self.still_open(proposal.number)?;
        let cannot = || format!("`{}` cannot be written", shown_path(&directory));
        // The directory of a project's skills is two below its own, and no link in the project leads out of that.
        let top = directory.ancestors().nth(3).unwrap_or(&directory);
        let inner = directory.strip_prefix(top).unwrap_or(&directory);
        inside::make_directory(top, inner).with_context(cannot)?;
        copy(&folder, &directory).with_context(cannot)?;
        let commit = match commits {
            true => Some(commit(&self.environment, project, &directory, &proposal.name)?),
            false => None,
        };
        let words = match &commit {
            Some(hash) => format!("written, commit {hash}"),
            None => "written".to_owned(),
        };
        self.decide(proposal, ProposalStatus::Accepted, &words)?;
        let _ = fs::remove_dir_all(self.place(proposal));
        Ok(SavedSkill { directory, commit })
    }

    pub fn decide(
        &self,
        proposal: &Proposal,
        status: ProposalStatus,
        note: &str,
    ) -> Result<(), Failure> {
        let deciding = self.coordinator.skill_proposals().decide(proposal.number, status, note);
        match wiring::runtime(Load::One)?.block_on(deciding)? {
            true => Ok(()),
            false => self.still_open(proposal.number).map(|_| ()),
        }
    }

    /// The proposal of this number, where it is still to be decided.
    pub fn still_open(&self, number: i64) -> Result<Proposal, Failure> {
        let proposal = self.find(number)?;
        match proposal.status {
            ProposalStatus::Open => Ok(proposal),
            ProposalStatus::Accepted | ProposalStatus::Rejected => {
                let message = format!("proposal {number} is already {}", proposal.status);
                Err(Failure::usage(
                    message,
                    "`windlass skills proposals` lists those that are open",
                ))
            }
        }
    }

    pub fn find(&self, number: i64) -> Result<Proposal, Failure> {
        self.coordinator.skill_proposals().get(number)?.ok_or_else(|| {
            Failure::usage(
                format!("there is no proposal {number}"),
                "`windlass skills proposals` lists them",
            )
        })
    }

    fn policy(&self, proposal: &Proposal) -> Result<SkillPolicy, Failure> {
        Ok(self.environment.config(Path::new(&proposal.project))?.policy.skill_proposals)
    }

    /// What is kept of a proposal until it is decided.
    fn place(&self, proposal: &Proposal) -> PathBuf {
        self.environment.data.join("proposals").join(proposal.number.to_string())
    }

    fn draft_file(&self, proposal: &Proposal) -> PathBuf {
        self.place(proposal).join(format!("{}.json", proposal.name))
    }

    /// Where the skill goes; a name that is taken is refused.
    pub fn target(&self, proposal: &Proposal) -> Result<PathBuf, Failure> {
        let (project, name) = (Path::new(&proposal.project), &proposal.name);
        let places = skills::directories(&self.environment, project);
        let place = places.iter().rev().find(|(_, scope)| *scope == Scope::Project);
        let (place, _) = place
            .ok_or_else(|| Failure::usage("there is no directory for it", "its project is gone"))?;
        let target = place.join(name);
        if target.exists() || skills::now(&self.environment, project).get(name).is_some() {
            let message = format!("there is a skill `{name}` already");
            return Err(Failure::usage(message, "give this one another name with `--name`"));
        }
        Ok(target)
    }

    fn skill_draft(
        &self,
        proposal: &Proposal,
        draft: &ProposalDraft,
    ) -> Result<SkillDraft, Failure> {
        let files = draft.files().into_iter();
        let files = files.map(|(path, text)| DraftFile { path: path.to_owned(), text });
        Ok(SkillDraft {
            directory: self.target(proposal)?.display().to_string(),
            files: files.collect(),
            copies: draft.copies(Path::new(&proposal.project)),
        })
    }
}

/// For the page of `serve`.
impl SkillWriter for Accepting {
    fn find_draft(&self, proposal: &Proposal) -> Result<Option<SkillDraft>, String> {
        let known = self.find_draft(proposal).map_err(failure_words)?;
        known.map(|draft| self.skill_draft(proposal, &draft).map_err(failure_words)).transpose()
    }

    fn draft(&self, proposal: &Proposal) -> Result<SkillDraft, String> {
        let draft = self.draft(proposal).map_err(failure_words)?;
        self.skill_draft(proposal, &draft).map_err(failure_words)
    }

    fn accept(&self, proposal: &Proposal, commit: bool) -> Result<(), String> {
        let known = self.find_draft(proposal).map_err(failure_words)?;
        let draft = known.ok_or("there is no draft")?;
        self.write(proposal, &draft, commit).map(|_| ()).map_err(failure_words)
    }
}

/// What went wrong, and what to do next, in a sentence.
fn failure_words(failure: Failure) -> String {
    let hint = failure.hint.map(|hint| format!("; {hint}")).unwrap_or_default();
    format!("{:#}{hint}", failure.error)
}

fn unusable(why: &str) -> Failure {
    not_drafted(&format!("nothing was written: {why}"))
}

fn not_drafted(why: &str) -> Failure {
    Failure::usage(
        why,
        "write it yourself with `windlass skills new NAME`, or decline the proposal",
    )
}

/// A skill that is written by a program is held to more than one that a person writes: no warning is passed over.
fn lint(folder: &Path, draft: &ProposalDraft, name: &str) -> Result<(), Failure> {
    let wrong = match parse_markdown(&draft.text, name) {
        Ok(parsed) => parsed.warning,
        Err(error) => Some(error),
    };
    if let Some(error) = wrong {
        return Err(unusable(&error.reason));
    }
    let (found, problems) = cases(folder, Scope::Project);
    match (problems.first(), found.is_empty()) {
        (Some(problem), _) => Err(unusable(&problem.to_string())),
        (None, true) => Err(unusable("it has no eval case")),
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

/// Commits the skill's files and nothing else; returns the commit's short hash (MS-167). Nothing that the repository
/// names runs for it: an agent can have configured it.
fn commit(
    environment: &Environment,
    project: &Path,
    target: &Path,
    name: &str,
) -> Result<String, Failure> {
    let refused = |why: String| {
        let message = format!("the skill is written, and git refused: {}", shown_line(&why));
        Failure::usage(message, "commit it yourself")
    };
    let home = wiring::place::home(environment);
    let top = boundary(project, home.as_deref());
    let who = wiring::place::git_identity(environment, &top)
        .ok_or_else(|| refused("it does not know who you are".to_owned()))?;
    let message = format!("Add the skill {name}");
    let made = working_tree::commit((&top, target), &message, &who, environment.search_path());
    let hash = wiring::runtime(Load::One)?.block_on(made).map_err(refused)?;
    Ok(hash.chars().take(SHORT_HASH).collect())
}
