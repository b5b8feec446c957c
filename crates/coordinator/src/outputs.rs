//! What commands printed, as the store keeps it.

use std::collections::BTreeMap;

use jiff::Timestamp;
use windlass_core::event::{Event, ToolCall};
use windlass_core::id::{CallId, TaskId};
use windlass_core::outcome::Outcome;

pub use windlass_store::outputs::{Origin, OutputReader, OutputWriter, Stream, TruncatedOutput};

use crate::{Coordinator, Error};

/// What commands printed.
#[derive(Clone, Copy)]
pub struct Outputs<'a> {
    pub(crate) coordinator: &'a Coordinator,
}

/// A call and what is kept of its output.
#[derive(Clone, Debug)]
pub struct CallOutput {
    /// When it was started.
    pub at: Timestamp,
    pub call: ToolCall,
    /// What it came to; `None` while it runs.
    pub outcome: Option<Outcome>,
    /// How it ended, in words, where it ran in the background and has ended.
    pub background_exit: Option<String>,
    /// What each stream printed.
    pub kept: Vec<(Stream, TruncatedOutput)>,
}

impl Outputs<'_> {
    /// Every call of a task of whose output something is kept, in order.
    pub fn of(self, task: TaskId) -> Result<Vec<CallOutput>, Error> {
        let outputs = self.coordinator.store.outputs();
        let mut found: Vec<CallOutput> = Vec::new();
        let mut places: BTreeMap<CallId, usize> = BTreeMap::new();
        for record in self.coordinator.tasks().journal(task)? {
            match record.event {
                Event::ToolCall(call) => {
                    let mut kept = Vec::new();
                    for &stream in Stream::ALL {
                        let of_stream = outputs.get(&call.call.to_string(), stream)?;
                        kept.extend(of_stream.map(|kept| (stream, kept)));
                    }
                    if !kept.is_empty() {
                        places.insert(call.call, found.len());
                        let (outcome, background_exit) = (None, None);
                        let at = record.at;
                        found.push(CallOutput { at, call, outcome, background_exit, kept });
                    }
                }
                Event::ToolResult(result) => {
                    if let Some(&place) = places.get(&result.call) {
                        found[place].outcome = Some(result.outcome);
                    }
                }
                Event::CommandExited(exited) => {
                    if let Some(&place) = places.get(&exited.call) {
                        found[place].background_exit = Some(exited.exit);
                    }
                }
                _ => {}
            }
        }
        Ok(found)
    }

    /// The id of a call from its end; a text that fits none is left as it is, for `open` to refuse.
    pub fn find(self, text: &str) -> Result<String, Error> {
        let found = self.coordinator.store.ids().output(text)?;
        Ok(found.unwrap_or_else(|| text.to_owned()))
    }

    /// The task that a call belongs to; `None` where nothing of its output is kept, or it belongs to no task.
    pub fn task_of(self, id: &str) -> Result<Option<TaskId>, Error> {
        Ok(self.coordinator.store.tasks().of_output(id)?)
    }

    /// Whole outputs of a call, those of `streams` that are kept; at least one.
    pub fn open(self, id: &str, streams: &[Stream]) -> Result<Vec<OutputReader>, Error> {
        let outputs = self.coordinator.store.outputs();
        let mut found = Vec::new();
        for &stream in streams {
            match outputs.open(id, stream) {
                Ok(reader) => found.push(reader),
                Err(windlass_store::Error::UnknownOutput(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        match found.is_empty() {
            true => Err(windlass_store::Error::UnknownOutput(id.to_owned()).into()),
            false => Ok(found),
        }
    }

    /// Keeps an output that belongs to no task.
    pub fn writer(self, command_id: &str, stream: Stream) -> Result<OutputWriter, Error> {
        let origin = Origin { command_id: command_id.to_owned(), stream, task: None };
        Ok(self.coordinator.store.outputs().writer(origin)?)
    }
}
