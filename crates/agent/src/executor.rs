//! An executor works on a commitment that is claimed for it, and leaves the role when that claim is lost (AX-083).

use windlass_core::axes::{Axes, WorkMode};
use windlass_core::event::{Event, ModeChanged};
use windlass_core::id::ChangeId;
use windlass_core::role::Role;
use windlass_core::session::Source;
use windlass_store::Level;

use crate::Error;
use crate::commitments::Commitments;
use crate::journal::Journal;

/// Who takes a role away from an agent whose claim is lost.
const LEDGER: &str = "the ledger";

/// Takes the role of an executor away when nothing is claimed for it. What is left can report, and changes
/// nothing unless a person asks for it.
pub(crate) async fn check_claim(task: &mut Journal) -> Result<(), Error> {
    let state = task.state();
    if !state.role.is_some_and(Role::requires_commitment)
        || !Commitments::of(task).claimed_commitments()?.is_empty()
    {
        return Ok(());
    }
    let work_mode = match state.created.conversation {
        true => WorkMode::Chat,
        false => WorkMode::Review,
    };
    let (from, to) = (state.axes, Axes { work_mode, ..state.axes });
    let reason = "the commitment is no longer claimed".to_owned();
    let changed = ModeChanged {
        // It is a change of the session too; a sub-agent's is its own.
        change: (state.created.depth == 0).then(|| ChangeId::new(task.now())),
        ..ModeChanged::by_task(from, to, Source::Role, reason, LEDGER)
    };
    task.commit(vec![Event::ModeChanged(changed)], Level::Synced).await.map(drop)
}
