//! Proposed skills on their way into a project: what would be written, and which are being tried.
//!
//! Invariants:
//! - A person accepts what was shown: the request names the mark of the draft that they have seen.
//! - A proposal is tried once at a time. Why the last try wrote nothing is known until the server ends.
//! - A try is over once its proposal is decided, even if the thread that decided it has not returned yet.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;
use tokio::sync::watch;
use utoipa::ToSchema;
use windlass_coordinator::skill_proposals::{Proposal, ProposalStatus};

use crate::api::digest_of;

/// What accepting a proposal would write.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct SkillDraft {
    /// The directory that the files go into.
    pub directory: String,
    pub files: Vec<DraftFile>,
    /// Files of the project that are copied into it, for its eval case.
    pub copies: Vec<String>,
}

/// A file that would be written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct DraftFile {
    /// Its path in the directory.
    pub path: String,
    pub text: String,
}

impl SkillDraft {
    /// Another one for every other draft.
    pub fn mark(&self) -> String {
        digest_of(&serde_json::json!(self).to_string())[..32].to_owned()
    }
}

/// Writes proposed skills. The program does it: only it has models, sandboxes and the configuration of projects.
/// Everything here may take its time, so it is called on threads of its own.
pub trait SkillWriter: Send + Sync {
    /// What would be written; `None` while a model would have to write it first. The error says why nothing can be.
    fn find_draft(&self, proposal: &Proposal) -> Result<Option<SkillDraft>, String>;

    /// The same; a model writes it where the policy says so, and it is kept until it is accepted.
    fn draft(&self, proposal: &Proposal) -> Result<SkillDraft, String>;

    /// Tries what is known, writes it into the project if it helps, and closes the proposal. The error says why not.
    fn accept(&self, proposal: &Proposal, commit: bool) -> Result<(), String>;
}

/// How a try of a proposed skill stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trial {
    Running {
        since: Timestamp,
    },
    /// Nothing was written, and why.
    Refused(String),
}

/// How long a server that stops waits for tries. Files and a commit are written in less; a model may take longer, and
/// has written nothing yet.
const FINISH_TIME: Duration = Duration::from_secs(10);

/// The tries of proposed skills. Cheap to clone.
#[derive(Clone)]
pub struct SkillTrials {
    trials: Arc<Mutex<HashMap<i64, Trial>>>,
    changes: Arc<watch::Sender<u64>>,
    /// The threads that try.
    threads: Arc<Mutex<Vec<JoinHandle<()>>>>,
}

impl Default for SkillTrials {
    fn default() -> Self {
        let changes = Arc::new(watch::Sender::new(0));
        Self { trials: Arc::default(), changes, threads: Arc::default() }
    }
}

impl SkillTrials {
    /// Counts the changes, from now on.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// How the try of a proposal stands; `None` where it was not tried, or is decided.
    pub fn of(&self, proposal: &Proposal) -> Option<Trial> {
        let is_open = proposal.status == ProposalStatus::Open;
        is_open.then(|| self.last(proposal.number)).flatten()
    }

    fn last(&self, number: i64) -> Option<Trial> {
        self.all().get(&number).cloned()
    }

    /// Begins a try; `None` where one is under way.
    pub fn begin(&self, number: i64, since: Timestamp) -> Option<RunningTrial> {
        let mut all = self.all();
        if matches!(all.get(&number), Some(Trial::Running { .. })) {
            return None;
        }
        all.insert(number, Trial::Running { since });
        drop(all);
        self.changes.send_modify(|count| *count += 1);
        Some(RunningTrial { number, trials: self.clone() })
    }

    /// Runs a try on a thread of its own, which `finish` waits for.
    pub fn spawn(&self, trial: RunningTrial, run: impl FnOnce(RunningTrial) + Send + 'static) {
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        threads.retain(|thread| !thread.is_finished());
        threads.push(std::thread::spawn(move || run(trial)));
    }

    /// Waits until no try writes into a project any more, for a limited time.
    pub async fn finish(&self) {
        let mut changes = self.changes();
        let ended = async { while self.is_running() && changes.changed().await.is_ok() {} };
        if tokio::time::timeout(FINISH_TIME, ended).await.is_err() {
            let seconds = FINISH_TIME.as_secs();
            tracing::warn!(
                "a proposed skill is still tried after {seconds} seconds; the try is abandoned"
            );
            return;
        }
        let threads =
            std::mem::take(&mut *self.threads.lock().unwrap_or_else(PoisonError::into_inner));
        for thread in threads {
            // Its try has ended; one that panicked has said so.
            let _ = thread.join();
        }
    }

    fn is_running(&self) -> bool {
        self.all().values().any(|trial| matches!(trial, Trial::Running { .. }))
    }

    fn end(&self, number: i64, refused: Option<String>) {
        let mut all = self.all();
        match refused {
            Some(why) => all.insert(number, Trial::Refused(why)),
            None => all.remove(&number),
        };
        drop(all);
        self.changes.send_modify(|count| *count += 1);
    }

    fn all(&self) -> MutexGuard<'_, HashMap<i64, Trial>> {
        self.trials.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A try that is under way.
pub struct RunningTrial {
    number: i64,
    trials: SkillTrials,
}

impl RunningTrial {
    /// Tries and writes, on the thread that calls it.
    pub fn run(self, writer: &dyn SkillWriter, proposal: &Proposal, commit: bool) {
        let ended = writer.accept(proposal, commit);
        self.trials.end(self.number, ended.err());
    }
}

/// One whose thread ended early is not under way any more.
impl Drop for RunningTrial {
    fn drop(&mut self) {
        if matches!(self.trials.last(self.number), Some(Trial::Running { .. })) {
            self.trials
                .end(self.number, Some("the try ended early; the log may say why".to_owned()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proposal_is_tried_once_at_a_time() {
        let trials = SkillTrials::default();
        let now = Timestamp::UNIX_EPOCH;
        let first = trials.begin(1, now).unwrap();
        assert!(trials.begin(1, now).is_none(), "it is under way");
        assert!(trials.begin(2, now).is_some(), "another one is not");
        drop(first);
        assert!(
            matches!(trials.last(1), Some(Trial::Refused(_))),
            "a thread that panics ends its try"
        );
        assert!(trials.begin(1, now).is_some());
    }

    #[tokio::test]
    async fn a_server_that_stops_waits_for_a_try_that_writes() {
        let trials = SkillTrials::default();
        let trial = trials.begin(1, Timestamp::UNIX_EPOCH).unwrap();
        let (begin, begun) = std::sync::mpsc::channel();
        let written = Arc::new(Mutex::new(false));
        let file = Arc::clone(&written);
        trials.spawn(trial, move |_trial| {
            begun.recv().unwrap();
            *file.lock().unwrap() = true;
        });
        begin.send(()).unwrap();
        trials.finish().await;
        assert!(*written.lock().unwrap());
    }

    #[test]
    fn a_decided_proposal_is_not_being_tried() {
        let trials = SkillTrials::default();
        let trial = trials.begin(1, Timestamp::UNIX_EPOCH).unwrap();
        let proposal = |status: ProposalStatus| Proposal {
            number: 1,
            project: "/p".to_owned(),
            name: "tests".to_owned(),
            status,
            note: String::new(),
            made_at: Timestamp::UNIX_EPOCH,
            evidence: Vec::new(),
            goal: String::new(),
        };
        assert!(trials.of(&proposal(ProposalStatus::Open)).is_some());
        assert_eq!(trials.of(&proposal(ProposalStatus::Accepted)), None, "its thread still runs");
        assert_eq!(trials.of(&proposal(ProposalStatus::Rejected)), None);
        drop(trial);
        assert_eq!(trials.of(&proposal(ProposalStatus::Rejected)), None, "the try was refused");
    }

    #[test]
    fn every_other_draft_has_another_mark() {
        let file = |text: &str| DraftFile { path: "SKILL.md".to_owned(), text: text.to_owned() };
        let draft = |text: &str| SkillDraft {
            directory: "/p".to_owned(),
            files: vec![file(text)],
            copies: Vec::new(),
        };
        assert_eq!(draft("a").mark(), draft("a").mark());
        assert_ne!(draft("a").mark(), draft("b").mark());
    }
}
