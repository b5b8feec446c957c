//! A session's stream: appended by whoever commands the session, and by what happens to its tasks (§15.21).
//!
//! Invariants:
//! - An append from outside names the sequence number it was decided on; one that is too late is refused, and
//!   its caller looks again.
//! - What a task's event means for its session is appended in the transaction of that event, so that no crash
//!   comes between them.
//! - No event holds a key of ours.
//! - A session from before there were streams begins its stream with what its row says.

use std::borrow::Cow;

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension};
use windlass_core::event::{EVENT_VERSION, Event, ModeChanged, Record, StatusChanged};
use windlass_core::id::{ChangeId, InjectionId, SessionId, TaskId};
use windlass_core::injection::{Control, Injection};
use windlass_core::policy::allow::AllowRule;
use windlass_core::question::{Answer, Permission, Question};
use windlass_core::role::RoleChange;
use windlass_core::session::{
    AxesChange, Boundary, RuleGranted, SessionCreated, SessionEvent, SessionRecord, SessionState,
    Source, TaskBegun,
};
use windlass_core::status::{StatusReason, TaskStatus};

use crate::error::Fault;
use crate::journal::chain::{COLUMNS, Chain, StoredRow};
use crate::words::LIVE;
use crate::{Error, Level, SecretList, Sessions, journal, mailbox, projections, row, sessions};

/// What is appended to a session at once, and the messages about it for its tasks.
#[derive(Clone, Debug, Default)]
pub struct SessionAppend {
    pub events: Vec<SessionEvent>,
    /// Mail for tasks of the session, accepted in the same transaction. A task that has ended gets none.
    pub mail: Vec<(TaskId, Injection)>,
}

impl Sessions<'_> {
    /// A session's state and the number of its last event; `None` where nothing is known of it.
    pub fn state(self, session: SessionId) -> Result<Option<(SessionState, u64)>, Error> {
        self.store.read(|tx| state(tx, session))
    }

    /// Sessions in which a person has allowed something, the last used first.
    pub fn with_granted_rules(self) -> Result<Vec<SessionId>, Error> {
        self.store.read(|tx| {
            let mut statement = tx.prepare_cached(
                "SELECT id FROM sessions WHERE EXISTS
                     (SELECT 1 FROM events WHERE stream = sessions.id AND kind = 'rule_granted')
                 ORDER BY updated_at DESC, id",
            )?;
            let rows = statement.query_map((), |row| row.get::<_, String>(0))?;
            rows.map(|row| row::parse("sessions", &row?)).collect()
        })
    }

    /// Everything in a session's stream.
    pub fn journal(self, session: SessionId) -> Result<Vec<SessionRecord>, Error> {
        self.store.read(|tx| records(tx, session))
    }

    /// Appends to a session whose last event has the number `expected`; synced. Returns the number of the last
    /// event then.
    pub async fn append(
        self,
        session: SessionId,
        expected: u64,
        at: Timestamp,
        append: SessionAppend,
    ) -> Result<u64, Error> {
        let secrets = self.store.secrets();
        let SessionAppend { events, mail } = append;
        let events: Vec<_> = events.into_iter().map(|event| clean(secrets, event)).collect();
        let mail: Vec<_> =
            mail.into_iter().map(|(task, mail)| (task, secrets.clean_value(mail))).collect();
        let seq = self
            .store
            .write(Level::Synced, move |tx| {
                let found = state(tx, session)?.map_or(0, |(_, seq)| seq);
                if found != expected {
                    return Err(Error::SessionMoved { session }.into());
                }
                let seq = append_events(tx, session, at, events)?;
                for (task, injection) in mail {
                    send(tx, task, &injection, at)?;
                }
                Ok(seq)
            })
            .await?;
        self.store.inner.counters.count_mail();
        Ok(seq)
    }
}

/// An event without keys.
fn clean(secrets: &SecretList, event: SessionEvent) -> SessionEvent {
    let (kind, body) = event.parts();
    match secrets.known().redact(&body) {
        Cow::Borrowed(_) => event,
        Cow::Owned(clean) => SessionEvent::from_parts(kind, EVENT_VERSION, &clean).unwrap_or(event),
    }
}

/// Sends mail to a task, unless it has ended meanwhile.
fn send(tx: &Connection, task: TaskId, injection: &Injection, at: Timestamp) -> Result<(), Fault> {
    match mailbox::accept(tx, task, injection, &row::json(injection), at) {
        Err(Fault::Store(Error::TaskEnded { .. })) => Ok(()),
        sent => sent.map(drop),
    }
}

/// Appends events where the stream ends now.
fn append_events(
    tx: &Connection,
    session: SessionId,
    at: Timestamp,
    events: Vec<SessionEvent>,
) -> Result<u64, Fault> {
    let mut chain = tail(tx, session)?;
    if chain.seq == 0 && !matches!(events.first(), Some(SessionEvent::SessionCreated(_)) | None) {
        // Its row is from before there were streams.
        let created = created_by_row(tx, session)?
            .ok_or_else(|| Error::UnknownSession(session.to_string()))?;
        append_one(tx, session, at, SessionEvent::SessionCreated(created), &mut chain)?;
    }
    for event in events {
        append_one(tx, session, at, event, &mut chain)?;
    }
    projections::set_session_tail(tx, &session.to_string(), chain)?;
    Ok(chain.seq)
}

fn append_one(
    tx: &Connection,
    session: SessionId,
    at: Timestamp,
    event: SessionEvent,
    chain: &mut Chain,
) -> Result<(), Fault> {
    let (kind, body) = event.parts();
    let content = journal::Content { kind, body, hash: None };
    let pos = journal::append_row(tx, session.to_string(), at, content, chain)?;
    let record = SessionRecord { pos, session, seq: chain.seq, at, event };
    projections::apply_session(tx, &record)
}

fn tail(tx: &Connection, session: SessionId) -> Result<Chain, Fault> {
    let found: Option<(i64, Option<_>)> = tx
        .prepare_cached("SELECT last_seq, last_hash FROM sessions WHERE id = ?1")?
        .query_row([session.to_string()], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    Ok(found.map_or_else(Chain::default, |(seq, hash)| Chain { seq: seq.unsigned_abs(), hash }))
}

fn created_by_row(tx: &Connection, session: SessionId) -> Result<Option<SessionCreated>, Fault> {
    let found = sessions::find(tx, session)?;
    Ok(found.map(|row| SessionCreated {
        axes: row.axes,
        user_id: row.user_id,
        workspace: None,
        interactive: false,
        added: Vec::new(),
        cost_budget: None,
    }))
}

pub(crate) fn records(tx: &Connection, session: SessionId) -> Result<Vec<SessionRecord>, Fault> {
    let sql = format!("SELECT {COLUMNS} FROM events WHERE stream = ?1 ORDER BY seq");
    let mut statement = tx.prepare_cached(&sql)?;
    let mut rows = statement.query([session.to_string()])?;
    let (mut chain, mut found) = (Chain::default(), Vec::new());
    while let Some(row) = rows.next()? {
        let stored = StoredRow::read(row)?;
        chain.follow(&stored)?;
        found.push(stored.session_record(session)?);
    }
    Ok(found)
}

fn state(tx: &Connection, session: SessionId) -> Result<Option<(SessionState, u64)>, Fault> {
    let records = records(tx, session)?;
    let mut state = None;
    for record in &records {
        match (&mut state, &record.event) {
            (None, SessionEvent::SessionCreated(created)) => {
                state = Some(SessionState::begin(record.at, created.clone()));
            }
            (None, _) => {}
            (Some(state), event) => state.apply(event),
        }
    }
    let seq = records.last().map_or(0, |record| record.seq);
    if let Some(state) = state {
        return Ok(Some((state, seq)));
    }
    let Some(row) = sessions::find(tx, session)? else { return Ok(None) };
    let mut begun =
        created_by_row(tx, session)?.map(|made| SessionState::begin(row.created_at, made));
    if let Some(state) = &mut begun {
        state.conversation = row.tasks.last().copied();
    }
    Ok(begun.map(|state| (state, 0)))
}

impl StoredRow {
    /// What it says of a session.
    pub(crate) fn session_record(self, session: SessionId) -> Result<SessionRecord, Fault> {
        let text = |bytes: &[u8]| std::str::from_utf8(bytes).map(str::to_owned).ok();
        let unreadable = || self.damaged(journal::UNREADABLE);
        let at = self.at.instant().ok_or_else(unreadable)?;
        let kind = text(&self.kind).ok_or_else(unreadable)?;
        let body = text(&self.body).ok_or_else(unreadable)?;
        let version = u32::try_from(self.version).unwrap_or(u32::MAX);
        let event = SessionEvent::from_parts(&kind, version, &body)
            .map_err(|source| Error::Unreadable { pos: self.pos, source: source.into() })?;
        Ok(SessionRecord { pos: self.pos, session, seq: self.seq, at, event })
    }
}

/// A task was created: its session begins with it, or continues with it.
pub(crate) fn follow_creation(tx: &Connection, record: &Record) -> Result<(), Fault> {
    let Event::TaskCreated(created) = &record.event else { return Ok(()) };
    if created.parent.is_some() {
        return Ok(());
    }
    let session = created.command.session_id;
    let mut events = Vec::new();
    if tail(tx, session)?.seq == 0 {
        events.push(SessionEvent::SessionCreated(SessionCreated {
            axes: created.axes,
            user_id: created.user_id.clone(),
            workspace: None,
            interactive: created.conversation,
            added: Vec::new(),
            cost_budget: None,
        }));
    }
    // What a person says next is not meant for a task of a plan, unless the session has nothing else.
    if created.plan.is_none() || !events.is_empty() {
        events.push(SessionEvent::TaskBegun(TaskBegun { task: record.task }));
    }
    append_events(tx, session, record.at, events).map(drop)
}

/// What these events of a task mean for its session.
pub(crate) fn follow(tx: &Connection, records: &[Record]) -> Result<(), Fault> {
    for record in records {
        match &record.event {
            Event::ModeChanged(changed) => follow_change(tx, record, changed)?,
            Event::StatusChanged(moved) => {
                if ends_unit(tx, record, moved)? {
                    follow_unit_end(tx, record)?;
                }
                if !moved.to.is_running() {
                    follow_standstill(tx, record)?;
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// Whether a unit ends with it. A conversation that is closed while it waits for a message has ended its unit before.
fn ends_unit(tx: &Connection, record: &Record, moved: &StatusChanged) -> Result<bool, Fault> {
    let waits = |to, reason| to == TaskStatus::Paused && reason == StatusReason::AwaitingMessage;
    if !moved.to.is_terminal() {
        return Ok(waits(moved.to, moved.reason));
    }
    let before: Option<(String, String)> = tx
        .prepare_cached(
            "SELECT to_status, reason FROM task_transitions WHERE task_id = ?1 AND id < ?2
             ORDER BY id DESC LIMIT 1",
        )?
        .query_row((record.task.to_string(), record.pos), |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    let Some((to, reason)) = before else { return Ok(true) };
    let (to, reason) =
        (row::parse("task_transitions", &to)?, row::parse("task_transitions", &reason)?);
    Ok(!waits(to, reason))
}

/// Work that has stopped ends no step: what was asked for meanwhile holds at once. The tasks have their own message
/// of it, and follow when they next run.
fn follow_standstill(tx: &Connection, record: &Record) -> Result<(), Fault> {
    let Some(session) = session_of(tx, record.task)? else { return Ok(()) };
    if has_other_work(tx, session, record.task)? {
        return Ok(());
    }
    let Some((state, _)) = state(tx, session)? else { return Ok(()) };
    let events = state.at_standstill(Some(record.task));
    match events.is_empty() {
        true => Ok(()),
        false => append_events(tx, session, record.at, events).map(drop),
    }
}

/// Whether another task of the session is being worked on.
fn has_other_work(tx: &Connection, session: SessionId, task: TaskId) -> Result<bool, Fault> {
    let mut statement = tx.prepare_cached(
        "SELECT status FROM tasks WHERE session_id = ?1 AND parent_id IS NULL AND id <> ?2",
    )?;
    let mut rows = statement.query((session.to_string(), task.to_string()))?;
    while let Some(row) = rows.next()? {
        let status: TaskStatus = row::parse("tasks", &row.get::<_, String>(0)?)?;
        if status.is_running() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The session of a task that has no parent.
fn session_of(tx: &Connection, task: TaskId) -> Result<Option<SessionId>, Fault> {
    let found: Option<String> = tx
        .prepare_cached("SELECT session_id FROM tasks WHERE id = ?1 AND parent_id IS NULL")?
        .query_row([task.to_string()], |row| row.get(0))
        .optional()?;
    found.map(|session| row::parse("tasks", &session)).transpose()
}

/// The first task that reaches the boundary carries a change out for the session.
fn follow_change(tx: &Connection, record: &Record, changed: &ModeChanged) -> Result<(), Fault> {
    let (Some(change), Some(session)) = (changed.change, session_of(tx, record.task)?) else {
        return Ok(());
    };
    let Some((state, _)) = state(tx, session)? else { return Ok(()) };
    let changed = match state.pending.iter().find(|one| one.change == change) {
        Some(request) => state.carry_out(request, Some(record.task)),
        // The session has carried it out before.
        None if is_known(tx, session, change)? => return Ok(()),
        // A plan that was accepted, or a role that was lost, changes the session, and not one task alone.
        None if matches!(changed.source, Source::Plan | Source::Role) => ModeChanged {
            from: state.axes,
            to: AxesChange::between(&changed.from, &changed.to).apply(&state.axes),
            task: Some(record.task),
            ..changed.clone()
        },
        None => return Ok(()),
    };
    let event = SessionEvent::ModeChanged(changed);
    append_events(tx, session, record.at, vec![event]).map(drop)
}

fn is_known(tx: &Connection, session: SessionId, change: ChangeId) -> Result<bool, Fault> {
    Ok(records(tx, session)?.iter().any(|record| match &record.event {
        SessionEvent::ModeChanged(changed) => changed.change == Some(change),
        _ => false,
    }))
}

/// The end of a unit carries out what waited for it; tasks that live follow when they next run.
fn follow_unit_end(tx: &Connection, record: &Record) -> Result<(), Fault> {
    let Some(session) = session_of(tx, record.task)? else { return Ok(()) };
    let Some((state, _)) = state(tx, session)? else { return Ok(()) };
    let boundary = boundary(tx, session, record.task)?;
    let events = state.at_unit_end(record.task, boundary);
    if events.is_empty() {
        return Ok(());
    }
    let changes: Vec<_> = events
        .iter()
        .filter_map(|event| match event {
            SessionEvent::ModeChanged(changed) => Some(changed.clone()),
            _ => None,
        })
        .collect();
    append_events(tx, session, record.at, events)?;
    for (number, changed) in changes.iter().enumerate() {
        for task in live_tasks(tx, session)? {
            let name = format!("unit end {number} {}", record.pos);
            let injection = announcement(task, &name, changed);
            send(tx, task, &injection, record.at)?;
        }
    }
    Ok(())
}

/// What the end of a task is the end of: its phase too, where no other task of the phase is left.
fn boundary(tx: &Connection, session: SessionId, task: TaskId) -> Result<Boundary, Fault> {
    let is_left: bool = tx
        .prepare_cached(&format!(
            "SELECT EXISTS (
                 SELECT 1 FROM plan_tasks AS own
                 JOIN plan_tasks AS other ON other.session_id = own.session_id
                     AND other.plan_id = own.plan_id AND other.phase = own.phase
                 JOIN tasks ON tasks.id = other.task_id
                 WHERE own.task_id = ?1 AND own.session_id = ?2 AND other.task_id <> ?1
                     AND tasks.{LIVE})"
        ))?
        .query_row((task.to_string(), session.to_string()), |row| row.get(0))?;
    Ok(if is_left { Boundary::Unit } else { Boundary::Milestone })
}

/// The message that tells a task of a change of its session.
pub fn announcement(task: TaskId, name: &str, changed: &ModeChanged) -> Injection {
    let role = match (changed.source, changed.role) {
        (_, Some(role)) => Some(RoleChange::Take(role)),
        (Source::Role, None) => Some(RoleChange::Leave),
        // A task that has a role of its own keeps it, unless its work mode changes.
        (_, None) => None,
    };
    let change = changed.change.map(|change| change.to_string()).unwrap_or_default();
    let id = InjectionId::derived(&format!("{change} {name}"), &task.to_string());
    let control = Control::ChangeAxes {
        change: changed.change.unwrap_or_else(|| ChangeId::derived(&change, name)),
        wanted: AxesChange { role, ..AxesChange::between(&changed.from, &changed.to) },
        scope: changed.scope,
        source: changed.source,
        reason: changed.reason.clone(),
    };
    Injection::control(id, control).from(&changed.by)
}

/// The tasks of a session that have not ended and have no parent.
fn live_tasks(tx: &Connection, session: SessionId) -> Result<Vec<TaskId>, Fault> {
    row::task_ids(
        tx,
        &format!(
            "SELECT id FROM tasks WHERE session_id = ?1 AND parent_id IS NULL
             AND {LIVE} ORDER BY created_at, id"
        ),
        [session.to_string()],
    )
}

/// A person allowed all calls of a kind: that holds for the session. What a sub-agent was allowed holds for it
/// alone (WF-018).
pub(crate) fn follow_answer(
    tx: &Connection,
    task: TaskId,
    question: &Question,
    answer: &Answer,
    at: Timestamp,
) -> Result<(), Fault> {
    let Some(rule) = granted_rule(question, &answer.text) else { return Ok(()) };
    let Some(session) = session_of(tx, task)? else { return Ok(()) };
    let Some((state, _)) = state(tx, session)? else { return Ok(()) };
    if state.rules.contains(rule) {
        return Ok(());
    }
    let by = answer.by.clone();
    let granted = SessionEvent::RuleGranted(RuleGranted { rule: rule.clone(), task, by });
    append_events(tx, session, at, vec![granted])?;
    for other in live_tasks(tx, session)?.into_iter().filter(|other| *other != task) {
        let id = InjectionId::derived(&format!("{} grant", question.id), &other.to_string());
        let control = Control::Grant { rule: rule.clone() };
        send(tx, other, &Injection::control(id, control).from(&answer.by), at)?;
    }
    Ok(())
}

fn granted_rule<'q>(question: &'q Question, text: &str) -> Option<&'q AllowRule> {
    let allows_all = question.permission(text) == Some(Permission::AllowAll);
    question.grants.as_ref().filter(|_| allows_all)
}
