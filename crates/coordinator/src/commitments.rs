//! Commitments: promised work, who has claimed it, what proves it, and what was said of it.

use std::path::Path;

use windlass_core::axes::Axes;
use windlass_core::command::TaskCommand;
use windlass_core::commitment::{
    Actor, Commitment, CommitmentOpened, CommitmentState, Evidence, EvidenceKind, Order, Party,
    Refusal, check_evidence,
};
use windlass_core::id::{CommitmentId, EvidenceId, SessionId, TaskId};
use windlass_core::question::{QuestionKind, ReviewAnswer};
use windlass_core::role::Role;
use windlass_store::{CommitmentFilter, CommitmentRow, NewProof, QuestionState};

use crate::{Coordinator, Error};

/// The ledger of commitments.
#[derive(Clone, Copy)]
pub struct Commitments<'a> {
    pub(crate) coordinator: &'a Coordinator,
}

/// A commitment that a person makes.
#[derive(Clone, Debug, Default)]
pub struct NewCommitment {
    pub title: String,
    pub body: String,
    /// The session that it belongs to, if to one.
    pub session: Option<SessionId>,
    /// The directory that it is about.
    pub project: Option<String>,
}

/// Evidence that a person gives.
#[derive(Clone, Debug)]
pub struct GivenEvidence {
    pub kind: EvidenceKind,
    /// What it is: a text, or the bytes of a file.
    pub content: Option<Vec<u8>>,
    /// Where a file was.
    pub path: Option<String>,
    pub url: Option<String>,
    pub description: String,
}

impl Commitments<'_> {
    /// Makes a commitment.
    pub async fn open(self, new: NewCommitment, by: &str) -> Result<Commitment, Error> {
        let now = self.coordinator.now();
        let opened = CommitmentOpened {
            title: new.title.trim().to_owned(),
            body: new.body,
            by: Party::Person(by.to_owned()),
            session_id: new.session,
            task_id: None,
            project: new.project,
            user_id: Some(by.to_owned()),
            key: None,
        };
        let id = CommitmentId::new(now);
        Ok(self.coordinator.store.commitments().open(id, now, opened).await?)
    }

    /// Claims, submits, judges or releases a commitment.
    pub async fn act(self, id: CommitmentId, order: Order, by: &str) -> Result<Commitment, Error> {
        let verdict = match &order {
            Order::Approve(_) => Some(ReviewAnswer::Approve),
            Order::Reject(reason) => Some(ReviewAnswer::Reject { reason: reason.clone() }),
            Order::Claim | Order::Capture(_) | Order::Submit(_) | Order::Release(_) => None,
        };
        let ledger = self.coordinator.store.commitments();
        let now = self.coordinator.now();
        let commitment = ledger.act(id, now, Actor::person(by), order, None).await?;
        if let Some(verdict) = verdict {
            self.settle_review(&commitment, &verdict, by).await?;
        }
        self.coordinator.queue().wake();
        Ok(commitment)
    }

    /// Keeps a piece of evidence, for a commitment or for none.
    pub async fn capture(
        self,
        id: Option<CommitmentId>,
        given: GivenEvidence,
        by: &str,
    ) -> Result<Evidence, Error> {
        let refused = |refusal: Refusal| Error::Store(refusal.into());
        let text = given.content.as_deref().map(String::from_utf8_lossy);
        check_evidence(given.kind, given.path.as_deref(), given.url.as_deref(), text.as_deref())
            .map_err(refused)?;
        let now = self.coordinator.now();
        let new = NewProof {
            id: EvidenceId::new(now),
            kind: given.kind,
            uri: given.path.or(given.url),
            content: given.content,
            description: given.description,
            task: None,
        };
        let ledger = self.coordinator.store.commitments();
        Ok(ledger.capture(id, now, Actor::person(by), new, None).await?)
    }

    /// The commitment that a text is the id, a unique suffix or a unique prefix of.
    pub fn find(self, text: &str) -> Result<CommitmentId, Error> {
        Ok(self.coordinator.store.ids().commitment(text)?)
    }

    pub fn get(self, id: CommitmentId) -> Result<Commitment, Error> {
        Ok(self.coordinator.store.commitments().get(id)?)
    }

    /// Commitments, the newest first.
    pub fn list(self, filter: &CommitmentFilter) -> Result<Vec<CommitmentRow>, Error> {
        Ok(self.coordinator.store.commitments().list(filter)?)
    }

    /// What is claimed for a session: by one of its tasks, or in its project by the owner of the session.
    pub fn claimed_in(self, session: SessionId) -> Result<Vec<CommitmentRow>, Error> {
        let (user, project) = self.owner_and_project(session)?;
        let store = &self.coordinator.store;
        Ok(windlass_agent::commitments_held(store, session, user.as_deref(), project.as_deref())?)
    }

    /// Whose a session is, and the project that it works in.
    fn owner_and_project(
        self,
        session: SessionId,
    ) -> Result<(Option<String>, Option<String>), Error> {
        let Some(row) = self.coordinator.store.sessions().get(session)? else {
            return Ok((None, None));
        };
        let project = row.workspace.map(|workspace| self.project_of(Path::new(&workspace)));
        Ok((row.user_id, project))
    }

    /// The project of a directory, as commitments name it.
    pub(crate) fn project_of(self, directory: &Path) -> String {
        let boundary = self.coordinator.agents.site(directory).boundary;
        boundary.unwrap_or_else(|| directory.display().to_string())
    }

    /// Refuses a role that needs a claimed commitment where the session has none.
    pub(crate) fn check_role_in(self, session: SessionId, role: Role) -> Result<(), Error> {
        let (user, project) = self.owner_and_project(session)?;
        self.check_role(role, session, user.as_deref(), project.as_deref())
    }

    /// The same for a task that begins in this project (AX-056). What is submitted is not worked on any more, and what
    /// a person has claimed in another project is not worked on here.
    pub(crate) fn check_role(
        self,
        role: Role,
        session: SessionId,
        user: Option<&str>,
        project: Option<&str>,
    ) -> Result<(), Error> {
        if !role.requires_commitment() {
            return Ok(());
        }
        let store = &self.coordinator.store;
        let here = windlass_agent::commitments_held(store, session, user, project)?;
        if here.iter().any(|row| row.state == CommitmentState::Claimed) {
            return Ok(());
        }
        let others = store.commitments().claimed_in(session, user)?;
        let Some(row) = here.into_iter().chain(others).next() else {
            return Err(Error::NothingClaimed { session });
        };
        let problem = match (row.state, row.project) {
            (CommitmentState::Claimed, Some(project)) => format!("belongs to `{project}`"),
            (state, _) => format!("is {state}"),
        };
        Err(Error::CannotExecute { id: row.id, problem })
    }

    /// The axes of a task in this directory that may begin in a role.
    pub(crate) fn axes_for(
        self,
        command: &TaskCommand,
        axes: Axes,
        user: Option<&str>,
        directory: Option<&Path>,
    ) -> Result<Axes, Error> {
        let Some(role) = command.execution_config.role else { return Ok(axes) };
        let project = directory.map(|directory| self.project_of(directory));
        self.check_role(role, command.session_id, user, project.as_deref())?;
        Ok(role.axes(axes))
    }

    /// The content of a piece of evidence; `None` where nothing but an address is kept.
    pub fn content(self, evidence: &Evidence) -> Option<Vec<u8>> {
        self.coordinator.store.commitments().content(evidence)
    }

    /// A verdict about the last commitment of a task under review is the verdict about its work.
    async fn settle_review(
        self,
        commitment: &Commitment,
        verdict: &ReviewAnswer,
        by: &str,
    ) -> Result<(), Error> {
        let Some(Party::Agent(task)) = &commitment.claimed_by else { return Ok(()) };
        let Some(question) = self.open_review(*task)? else { return Ok(()) };
        let claimed = CommitmentFilter {
            claimed_by: commitment.claimed_by.clone(),
            state: Some(CommitmentState::Submitted),
            ..CommitmentFilter::default()
        };
        if *verdict == ReviewAnswer::Approve && !self.list(&claimed)?.is_empty() {
            return Ok(());
        }
        match self.coordinator.inbox().answer(question, &verdict.to_string(), by).await {
            // Somebody else has just judged it.
            Ok(_) | Err(Error::Store(windlass_store::Error::AlreadyAnswered { .. })) => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn open_review(self, task: TaskId) -> Result<Option<windlass_core::id::QuestionId>, Error> {
        let asked = self.coordinator.store.questions().of(task)?;
        let open = asked.into_iter().find(|row| {
            row.question.kind == QuestionKind::Review && matches!(row.state, QuestionState::Open)
        });
        Ok(open.map(|row| row.question.id))
    }
}
