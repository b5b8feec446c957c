//! What a session's own events do to the projections.

use rusqlite::Connection;
use windlass_core::axes::Axes;
use windlass_core::role::Role;
use windlass_core::session::{Rated, SessionCreated, SessionEvent, SessionRecord};

use super::{TransitionSource, insert_transition};
use crate::error::Fault;
use crate::journal::chain::Chain;
use crate::row::{instant, json};

/// Applies one event of a session; [`set_session_tail`] completes that.
pub(crate) fn apply_session(tx: &Connection, record: &SessionRecord) -> Result<(), Fault> {
    let session = record.session.to_string();
    let set = |column: &str, value: Option<&str>| -> Result<(), Fault> {
        // `column` is never input.
        tx.prepare_cached(&format!("UPDATE sessions SET {column} = ?2 WHERE id = ?1"))?
            .execute((&session, value))?;
        Ok(())
    };
    match &record.event {
        SessionEvent::SessionCreated(created) => insert(tx, record, created)?,
        SessionEvent::ModeChanged(changed) => {
            set_axes(tx, &session, &changed.to)?;
            set("role", changed.role.map(Role::as_str))?;
            let task = changed.task.map(|task| task.to_string());
            let place =
                TransitionSource { pos: record.pos, session: &session, task: task.as_deref() };
            insert_transition(tx, place, changed, record.at)?;
        }
        SessionEvent::ModelChosen(chosen) => set("model", chosen.model.as_deref())?,
        SessionEvent::TaskBegun(begun) => set("conversation", Some(&begun.task.to_string()))?,
        SessionEvent::Cleared(_) => set("conversation", None)?,
        SessionEvent::Archived(archived) => {
            tx.prepare_cached("UPDATE sessions SET archived = ?2 WHERE id = ?1")?
                .execute((&session, archived.is_archived))?;
        }
        SessionEvent::Rated(rated) => insert_rating(tx, record, rated)?,
        // The state is read from the stream where these matter.
        SessionEvent::ModeRequested(_)
        | SessionEvent::RuleGranted(_)
        | SessionEvent::RuleRevoked(_) => {}
    }
    set("updated_at", Some(&instant(record.at)))
}

/// Writes where a session's stream ends.
pub(crate) fn set_session_tail(tx: &Connection, session: &str, end: Chain) -> Result<(), Fault> {
    tx.prepare_cached("UPDATE sessions SET last_seq = ?2, last_hash = ?3 WHERE id = ?1")?
        .execute((session, i64::try_from(end.seq).unwrap_or(i64::MAX), end.hash))?;
    Ok(())
}

fn insert(tx: &Connection, record: &SessionRecord, created: &SessionCreated) -> Result<(), Fault> {
    let Axes { work_mode, run_control, permission_profile, model_mode, surface } = created.axes;
    tx.prepare_cached(
        "INSERT INTO sessions (id, work_mode, run_control, permission_profile, model_mode, surface,
                               created_at, updated_at, user_id, workspace, interactive)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?7, ?8, ?9, ?10)
         ON CONFLICT (id) DO UPDATE SET user_id = coalesce(user_id, ?8),
             workspace = coalesce(workspace, ?9), interactive = ?10",
    )?
    .execute((
        record.session.to_string(),
        work_mode.as_str(),
        run_control.as_str(),
        permission_profile.as_str(),
        model_mode.as_str(),
        surface.as_str(),
        instant(record.at),
        &created.user_id,
        &created.workspace,
        created.interactive,
    ))?;
    Ok(())
}

fn set_axes(tx: &Connection, session: &str, to: &Axes) -> Result<(), Fault> {
    let Axes { work_mode, run_control, permission_profile, model_mode, surface } = to;
    tx.prepare_cached(
        "UPDATE sessions SET work_mode = ?2, run_control = ?3, permission_profile = ?4,
                model_mode = ?5, surface = ?6
         WHERE id = ?1",
    )?
    .execute((
        session,
        work_mode.as_str(),
        run_control.as_str(),
        permission_profile.as_str(),
        model_mode.as_str(),
        surface.as_str(),
    ))?;
    Ok(())
}

fn insert_rating(tx: &Connection, record: &SessionRecord, rated: &Rated) -> Result<(), Fault> {
    tx.prepare_cached(
        "INSERT INTO ratings
             (id, session_id, task_id, stars, note, model, axes, rated_by, timestamp)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
    )?
    .execute((
        record.pos,
        record.session.to_string(),
        rated.task.to_string(),
        rated.stars,
        &rated.note,
        &rated.model,
        json(&rated.axes),
        &rated.by,
        instant(record.at),
    ))?;
    Ok(())
}
