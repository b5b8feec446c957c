//! `event`: reports to a task what happened elsewhere.

use std::io::Read as _;

use anyhow::Context as _;
use clap::Args;
use windlass_coordinator::trigger::ExternalEventReceived;
use windlass_core::id::SessionId;
use windlass_core::injection::MAX_INJECTION_BYTES;

use super::{AppContext, Execute, Start, mail};
use crate::failure::Failure;
use crate::show;

/// Report an external event to a task
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct PassEvent {
    /// The task, or the session whose active task is meant: its id or any unique suffix of it
    pub to: String,
    /// What happened: text or JSON, passed on unchanged; `-` reads it from standard input
    pub payload: String,
    /// The event's source, recorded with it
    #[arg(long, value_name = "NAME", default_value = "cli")]
    pub source: String,
    /// An id of your own: an event that is sent again with the same id counts once
    #[arg(long, value_name = "ID")]
    pub id: Option<String>,
}

const EXAMPLES: &str = "\
Examples:
  windlass event 7K2M '{\"build\":\"green\"}'
  windlass event ses_7K2M \"the parcel has arrived\" --source mail
  curl -s https://ci.example/last | windlass event 7K2M - --id build-317";

impl Execute for PassEvent {
    fn execute(self, start: Start) -> Result<u8, Failure> {
        event(&start.app_for_work()?, &self)
    }
}

pub(super) fn event(app: &AppContext, args: &PassEvent) -> Result<u8, Failure> {
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
    let windlass_coordinator::TriggerOutcome::Injected { task } = handled else { return Ok(0) };
    show::note(&format!("event passed on to {task}"));
    app.runtime.block_on(mail::print_uptake(app, task))
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
