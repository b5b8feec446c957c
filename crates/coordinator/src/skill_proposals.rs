//! Skills that grow: what the tasks of a project have in common is gathered from their journals, without a model, and
//! becomes a proposal that a person decides about (MS-162…165, MS-215).
//!
//! Invariants:
//! - Three tasks make a repetition. What only one task does, however often, is not one.
//! - A proposal changes nothing: a skill is written when a person accepts it, or where the policy says so.
//! - One proposal for a project in seven days, and never a second one for the same thing.

use std::collections::BTreeMap;
use std::path::Path;

use jiff::SignedDuration;
use serde::{Deserialize, Serialize};
use windlass_core::command::ResultStatus;
use windlass_core::event::{Event, Record};
use windlass_core::id::{CallId, TaskId};
use windlass_core::injection::InjectionType;
use windlass_core::outcome::{CallEnding, Fact};
use windlass_core::policy::Class;
use windlass_core::state::TaskState;
use windlass_core::string_enum;
use windlass_core::text::one_line;
use windlass_core::tool_name;
pub use windlass_store::{EvidenceKind, ProposalStatus};
use windlass_store::{NewEvidence, NewProposal, ProposalRow, Recurrence};

use crate::{Coordinator, Error};

/// So many tasks make a repetition (O-51).
pub const MIN_TASKS: usize = 3;
/// Between two proposals for one project (O-51).
const COOLDOWN: SignedDuration = SignedDuration::from_hours(7 * 24);
/// The longest command, path or message that is compared.
const MAX_KEY_CHARS: usize = 500;
/// Pieces of evidence that one proposal names.
const MAX_SHOWN: usize = 12;
/// Words in the name of a proposed skill.
const MAX_NAME_WORDS: usize = 4;

string_enum! {
    /// What becomes of what tasks have in common.
    SkillPolicy ("skill policy") {
        /// It is not gathered.
        Off = "off",
        /// A person reads a proposal, and a skill is written from its evidence when they accept it.
        Propose = "propose",
        /// The same, and the fast model writes it.
        Generate = "generate",
    }
}

/// A proposed skill, with what speaks for it.
#[derive(Clone, Debug, PartialEq)]
pub struct Proposal {
    pub number: i64,
    /// The project's directory.
    pub project: String,
    /// What it would be called.
    pub name: String,
    pub status: ProposalStatus,
    /// Why it was decided so.
    pub note: String,
    pub made_at: jiff::Timestamp,
    /// What it is for: the first is what it was proposed for.
    pub evidence: Vec<Finding>,
    /// The goal of the latest of its tasks.
    pub goal: String,
}

/// One thing that several tasks did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    pub kind: EvidenceKind,
    /// The command, the file or the message.
    pub what: String,
    /// What the agents then did, or why it failed.
    #[serde(default)]
    pub detail: Detail,
    pub tasks: Vec<TaskId>,
}

impl Finding {
    /// What tasks have in common, in a sentence.
    pub fn words(&self) -> String {
        let what = &self.what;
        match (self.kind, &self.detail.then) {
            (EvidenceKind::Failure, Some(then)) => format!("`{what}` fails, `{then}` works"),
            (EvidenceKind::Failure, None) => format!("`{what}` fails"),
            (EvidenceKind::Correction, _) => format!("people say: {what}"),
            (EvidenceKind::Command, _) => format!("`{what}` is run"),
            (EvidenceKind::File, _) => format!("`{what}` is read"),
        }
    }
}

impl Proposal {
    /// What it is proposed for, in a line of an inbox.
    pub fn summary(&self) -> String {
        let what = self.evidence.first().map(Finding::words).unwrap_or_default();
        format!("Proposed skill `{}`: {what}", self.name)
    }

    /// What speaks for it, a line each.
    pub fn reasons(&self) -> Vec<String> {
        let line = |one: &Finding| format!("in {} tasks: {}", one.tasks.len(), one.words());
        self.evidence.iter().map(line).collect()
    }
}

/// What else is known of a thing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Detail {
    /// The command that worked next.
    pub then: Option<String>,
    /// What the one that failed said last.
    pub said: Option<String>,
}

/// What is kept of a proposal beside its columns.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct ProposalEvidence {
    evidence: Vec<Finding>,
    goal: String,
}

/// What tasks have in common, and what is proposed for it.
#[derive(Clone, Copy)]
pub struct SkillProposals<'a> {
    pub(crate) coordinator: &'a Coordinator,
}

impl SkillProposals<'_> {
    /// The proposals for a project, or for all, the latest last.
    pub fn all(self, project: Option<&str>) -> Result<Vec<Proposal>, Error> {
        let rows = self.coordinator.store.skill_proposals().all(project)?;
        Ok(rows.into_iter().map(proposal).collect())
    }

    /// Those that wait for a person.
    pub fn open(self) -> Result<Vec<Proposal>, Error> {
        let mut all = self.all(None)?;
        all.retain(|proposal| proposal.status == ProposalStatus::Open);
        Ok(all)
    }

    /// The proposal of this number.
    pub fn get(self, number: i64) -> Result<Option<Proposal>, Error> {
        Ok(self.all(None)?.into_iter().find(|proposal| proposal.number == number))
    }

    /// Decides about an open proposal; whether it was open.
    pub async fn decide(
        self,
        number: i64,
        status: ProposalStatus,
        note: &str,
    ) -> Result<bool, Error> {
        let (at, note) = (self.coordinator.now(), note.to_owned());
        Ok(self.coordinator.store.skill_proposals().decide(at, number, status, note).await?)
    }

    /// Gathers what a finished task did, and proposes a skill where others did the same.
    pub(crate) async fn add_task(
        self,
        state: &TaskState,
        status: ResultStatus,
    ) -> Result<Option<i64>, Error> {
        let created = &state.created;
        let own = self.coordinator.store.dir().workspaces();
        let is_project = !Path::new(&created.workspace).starts_with(own);
        let has_ended = matches!(status, ResultStatus::Completed | ResultStatus::Failed);
        if !is_project || !has_ended || created.parent.is_some() {
            return Ok(None);
        }
        let policy = self.coordinator.agents.skill_policy(Path::new(&created.workspace));
        if policy == SkillPolicy::Off {
            return Ok(None);
        }
        let project = created.boundary().to_owned();
        let evidence = gather(&self.coordinator.journals().of(state.id())?);
        let (store, now) = (&self.coordinator.store, self.coordinator.now());
        store.skill_proposals().record(now, project.clone(), state.id(), evidence).await?;
        let repeated = store.skill_proposals().recurrences(&project, MIN_TASKS)?;
        let Some(evidence) = choose(&repeated) else { return Ok(None) };
        let Some(first) = evidence.first() else { return Ok(None) };
        let kept = ProposalEvidence {
            goal: one_line(&created.command.goal, 2_000),
            evidence: evidence.clone(),
        };
        let new = NewProposal {
            project,
            name: name(first),
            kind: first.kind,
            key: first.what.clone(),
            evidence: serde_json::to_string(&kept).unwrap_or_default(),
        };
        Ok(store.skill_proposals().propose(now, COOLDOWN, new).await?)
    }
}

fn proposal(row: ProposalRow) -> Proposal {
    let kept: ProposalEvidence = serde_json::from_str(&row.evidence).unwrap_or_default();
    Proposal {
        number: row.number,
        project: row.project,
        name: row.name,
        status: row.status,
        note: row.note,
        made_at: row.made_at,
        evidence: kept.evidence,
        goal: kept.goal,
    }
}

/// What a task did, each thing once.
fn gather(journal: &[Record]) -> Vec<NewEvidence> {
    let mut gathered = EvidenceGatherer::default();
    for record in journal {
        match &record.event {
            Event::RiskCheck(check) => drop(gathered.classes.insert(check.call, check.class)),
            Event::ToolCall(call) if call.tool == tool_name::BASH => {
                let command = call.arguments["command"].as_str().unwrap_or_default();
                gathered.commands.insert(call.call, normalize(command));
            }
            Event::ToolResult(result) => {
                if let Some(command) = gathered.commands.remove(&result.call) {
                    let class = gathered.classes.get(&result.call).copied();
                    let said = result.outcome.display_text();
                    gathered.on_command(command, class, result.outcome.ending, said);
                }
                for fact in &result.outcome.facts {
                    if let Fact::FileRead { path, .. } = fact
                        && !path.contains(".windlass/")
                    {
                        gathered.add(EvidenceKind::File, path.clone(), Detail::default());
                    }
                }
            }
            Event::InjectionReceived(mail) if mail.injection_type == InjectionType::UserMessage => {
                gathered.add(EvidenceKind::Correction, normalize(&mail.content), Detail::default());
            }
            _ => {}
        }
    }
    gathered.into_evidence()
}

#[derive(Default)]
struct EvidenceGatherer {
    classes: BTreeMap<CallId, Class>,
    commands: BTreeMap<CallId, String>,
    found: Vec<(EvidenceKind, String, Detail)>,
    /// Failures that no command has worked after yet, by their place.
    failed: Vec<usize>,
}

impl EvidenceGatherer {
    fn on_command(
        &mut self,
        command: String,
        class: Option<Class>,
        ending: CallEnding,
        said: &str,
    ) {
        match ending {
            CallEnding::Ok => {
                for at in std::mem::take(&mut self.failed) {
                    self.found[at].2.then = Some(command.clone());
                }
                if class.is_some_and(|class| class > Class::Read) {
                    self.add(EvidenceKind::Command, command, Detail::default());
                }
            }
            CallEnding::Error => {
                let last = said.lines().rev().find(|line| !line.trim().is_empty());
                let said = last.map(|line| one_line(line, 200));
                self.add(EvidenceKind::Failure, command, Detail { then: None, said });
                self.failed.push(self.found.len() - 1);
            }
            // What was refused or stopped says nothing about the project.
            CallEnding::Denied | CallEnding::Cancelled | CallEnding::Unknown => {}
        }
    }

    fn add(&mut self, kind: EvidenceKind, key: String, detail: Detail) {
        if !key.is_empty() {
            self.found.push((kind, key, detail));
        }
    }

    fn into_evidence(self) -> Vec<NewEvidence> {
        let mut unique: BTreeMap<(EvidenceKind, String), Detail> = BTreeMap::new();
        for (kind, key, detail) in self.found {
            unique.insert((kind, key), detail);
        }
        let evidence = |((kind, key), detail): ((EvidenceKind, String), Detail)| NewEvidence {
            kind,
            key,
            detail: serde_json::to_string(&detail).unwrap_or_default(),
        };
        unique.into_iter().map(evidence).collect()
    }
}

/// A text as it is compared: in one line, and not without end.
fn normalize(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    one_line(&words.join(" "), MAX_KEY_CHARS)
}

/// What a skill is proposed for, and what else the same tasks did. What a person had to say counts first, then what did not
/// work; a command or a file alone is a habit, and two of them are a procedure.
fn choose(repeated: &[Recurrence]) -> Option<Vec<Finding>> {
    let order = [
        EvidenceKind::Correction,
        EvidenceKind::Failure,
        EvidenceKind::Command,
        EvidenceKind::File,
    ];
    let first = order.iter().find_map(|kind| {
        let of_kind = || repeated.iter().filter(|one| one.kind == *kind);
        let is_enough = match kind {
            EvidenceKind::Correction | EvidenceKind::Failure => true,
            EvidenceKind::Command | EvidenceKind::File => of_kind().count() > 1,
        };
        of_kind().filter(|_| is_enough).max_by_key(|one| one.tasks.len())
    })?;
    let shares = |one: &&Recurrence| {
        let shared = one.tasks.iter().filter(|task| first.tasks.contains(task));
        *one != first && shared.count() >= MIN_TASKS
    };
    let others = repeated.iter().filter(shares);
    Some(std::iter::once(first).chain(others).take(MAX_SHOWN).map(finding).collect())
}

fn finding(one: &Recurrence) -> Finding {
    Finding {
        kind: one.kind,
        what: one.key.clone(),
        detail: serde_json::from_str(&one.detail).unwrap_or_default(),
        tasks: one.tasks.clone(),
    }
}

/// A name from the first words of what it is for.
fn name(first: &Finding) -> String {
    let text = first.detail.then.as_ref().unwrap_or(&first.what).to_lowercase();
    let words = text.split(|letter: char| !letter.is_ascii_alphanumeric());
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).take(MAX_NAME_WORDS).collect();
    let name = format!("learned-{}", words.join("-"));
    name.chars().take(48).collect::<String>().trim_end_matches('-').to_owned()
}

#[cfg(test)]
mod tests;
