//! An executor works on a commitment that is claimed for it, and leaves the role when that claim is lost (AX-083).

use windlass_core::axes::{Axes, WorkMode};
use windlass_core::event::{Event, ModeChanged};
use windlass_core::id::ChangeId;
use windlass_core::role::Role;
use windlass_core::session::Source;
use windlass_core::state::TaskState;
use windlass_store::{CommitmentRow, Level};

use crate::journal::Journal;
use crate::{Agent, Error};

/// Who takes a role away from an agent whose claim is lost.
const LEDGER: &str = "the ledger";

impl Agent {
    /// Takes the role of an executor away when nothing is claimed for it any more. What is left can report, and changes
    /// nothing unless a person asks for it.
    pub(crate) async fn check_claim(&self, task: &mut Journal) -> Result<(), Error> {
        let state = task.state();
        if !state.role.is_some_and(Role::requires_commitment) || !self.claims(task)?.is_empty() {
            return Ok(());
        }
        let work_mode = match state.created.conversation {
            true => WorkMode::Chat,
            false => WorkMode::Review,
        };
        let (from, to) = (state.axes, Axes { work_mode, ..state.axes });
        let reason = "the commitment is not claimed any more".to_owned();
        let changed = ModeChanged {
            // It is a change of the session too; a sub-agent's is its own.
            change: (state.created.depth == 0).then(|| ChangeId::new(task.now())),
            ..ModeChanged::by_task(from, to, Source::Role, reason, LEDGER)
        };
        task.commit(vec![Event::ModeChanged(changed)], Level::Synced).await.map(drop)
    }

    /// What is claimed for the agent.
    pub(crate) fn claims(&self, task: &Journal) -> Result<Vec<CommitmentRow>, Error> {
        let state = task.state();
        let (session, user) = (state.command().session_id, state.created.user_id.as_deref());
        Ok(task.store().commitments().held_in(session, user)?)
    }

    /// The commitments that an executor reads about; empty for others.
    pub(crate) fn commitments_for_prompt(&self, state: &TaskState) -> String {
        if !state.role.is_some_and(Role::requires_commitment) {
            return String::new();
        }
        let ledger = self.parts.world.ledger.store.commitments();
        let (session, user) = (state.command().session_id, state.created.user_id.as_deref());
        // Without the list the agent still has its role; the ledger's tools say what is wrong.
        let held = ledger.held_in(session, user).unwrap_or_default();
        let lines = held.iter().map(|row| match ledger.get(row.id) {
            Ok(found) if !found.body.is_empty() => {
                format!(
                    "- `{}` {}\n\n  {}",
                    row.id,
                    row.title,
                    found.body.trim().replace('\n', "\n  ")
                )
            }
            Ok(_) | Err(_) => format!("- `{}` {}", row.id, row.title),
        });
        lines.collect::<Vec<_>>().join("\n")
    }
}
