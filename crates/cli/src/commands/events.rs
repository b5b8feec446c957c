//! `event` and `sessions`: telling tasks what happened elsewhere, and looking at conversations.

use std::io::Read as _;

use anyhow::Context as _;
use windlass_core::id::SessionId;
use windlass_core::injection::MAX_INJECTION_BYTES;
use windlass_core::trigger::ExternalEventReceived;
use windlass_term::{Table, numbers, strip_controls};

use super::AppContext;
use crate::args::{ExternalEvent, Sessions};
use crate::failure::Failure;
use crate::show::{self, out};

pub(super) fn event(app: &AppContext, args: &ExternalEvent) -> Result<u8, Failure> {
    let coordinator = &app.coordinator;
    let payload = payload(&args.payload)?;
    let session = match args.to.starts_with(SessionId::PREFIX) {
        true => coordinator.sessions().find(&args.to)?,
        false => None,
    };
    let task = match session {
        Some(_) => None,
        None => Some(coordinator.tasks().find(&args.to)?),
    };
    let event = ExternalEventReceived {
        request_id: args.id.clone(),
        task_id: task,
        session_id: session,
        source: Some(args.source.clone()),
        payload,
    };
    let handled = app.runtime.block_on(coordinator.triggers().external_event_received(event))?;
    let windlass_coordinator::Handled::Injected { task } = handled else { return Ok(0) };
    show::note(&format!("event passed on to {task}"));
    app.runtime.block_on(super::mail::print_uptake(app, task))
}

/// JSON stays JSON; anything else is text.
fn payload(text: &str) -> Result<serde_json::Value, Failure> {
    let mut read = String::new();
    let text = match text {
        "-" => {
            let mut input = std::io::stdin().lock().take(MAX_INJECTION_BYTES as u64 + 1);
            input
                .read_to_string(&mut read)
                .context("the event cannot be read from standard input")?;
            read.trim()
        }
        given => given.trim(),
    };
    if text.is_empty() {
        return Err(Failure::usage("the event is empty", "say what happened, as text or JSON"));
    }
    let object = text.starts_with(['{', '[']);
    let json = object.then(|| serde_json::from_str(text).ok()).flatten();
    Ok(json.unwrap_or_else(|| text.into()))
}

pub(super) fn sessions(app: &AppContext, args: &Sessions) -> Result<u8, Failure> {
    let coordinator = &app.coordinator;
    let sessions = coordinator.sessions();
    if let Some(text) = &args.session {
        let none =
            || Failure::usage(format!("there is no session `{text}`"), "see `windlass sessions`");
        let state = sessions.view(sessions.find(text)?.ok_or_else(none)?)?;
        match args.json {
            true => out(&serde_json::to_string(&state).unwrap_or_default()),
            false => out(&strip_controls(&state.to_string())),
        }
        return Ok(0);
    }
    let rows = sessions.newest(args.limit)?;
    if args.json {
        for row in rows {
            let state = sessions.view(row.id)?;
            out(&serde_json::to_string(&state).unwrap_or_default());
        }
        return Ok(0);
    }
    if rows.is_empty() {
        show::note("no sessions; start a task with `windlass run \"…\"`");
        return Ok(0);
    }
    let mut table = Table::new(&["SESSION", "USER", "TASKS", "AGE", "ACTIVE"], &[2, 3]);
    for row in rows {
        table.row(vec![
            row.id.to_string(),
            strip_controls(row.user_id.as_deref().unwrap_or("-")),
            row.tasks.len().to_string(),
            numbers::age(row.updated_at, coordinator.now()),
            row.active_task_id.map(|task| task.to_string()).unwrap_or_else(|| "-".to_owned()),
        ]);
    }
    table.lines().iter().for_each(|line| out(line));
    Ok(0)
}
