//! What commands printed, as the store keeps it.

use std::collections::BTreeMap;

use jiff::Timestamp;
use windlass_core::event::{Event, ToolCall, WorkflowPart};
use windlass_core::id::{CallId, TaskId};
use windlass_core::outcome::Outcome;
use windlass_core::secrets::RedactedStream;

use windlass_store::Filter;
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
    /// Its result; `None` while it runs.
    pub outcome: Option<Outcome>,
    /// How it ended, in words, where it ran in the background and has ended.
    pub background_exit: Option<String>,
    /// What each stream printed.
    pub kept: Vec<(Stream, TruncatedOutput)>,
}

/// What another program has printed that worked on a step of a workflow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramOutput {
    pub task: TaskId,
    pub step: String,
    pub runner: String,
    pub text: String,
}

impl Outputs<'_> {
    /// The tasks whose commands are those of a task: itself, and all that work for it where it is a run of a workflow, the
    /// oldest first.
    pub fn tasks_of(self, task: TaskId) -> Result<Vec<TaskId>, Error> {
        let journal = self.coordinator.journals().readable(task)?;
        let created = journal.first().and_then(|record| record.event.created());
        let part = created.and_then(|created| created.workflow.as_deref());
        if !matches!(part, Some(WorkflowPart::Run(_))) {
            return Ok(vec![task]);
        }
        let filter = Filter { root: Some(task), ..Filter::default() };
        let rows = self.coordinator.store.tasks().list(&filter)?;
        Ok(rows.into_iter().rev().map(|row| row.id).collect())
    }

    /// What other programs have printed: the one that works on this task, and those of the steps of a run.
    pub fn of_programs(self, task: TaskId) -> Result<Vec<ProgramOutput>, Error> {
        let mut tasks = vec![task];
        for record in self.coordinator.journals().readable(task)? {
            if let Event::WorkflowStepStarted(step) = record.event {
                tasks.extend(step.task);
            }
        }
        let mut found = Vec::new();
        for task in tasks {
            found.extend(self.of_program(task)?);
        }
        Ok(found)
    }

    fn of_program(self, task: TaskId) -> Result<Option<ProgramOutput>, Error> {
        let mut found = None;
        for record in self.coordinator.journals().readable(task)? {
            match (record.event, &mut found) {
                (Event::TaskCreated(created), _) => {
                    if let Some(WorkflowPart::Program { step, runner, .. }) =
                        created.workflow.map(|part| *part)
                    {
                        found = Some(ProgramOutput { task, step, runner, text: String::new() });
                    }
                }
                (Event::RunnerReported(reported), Some(found)) => {
                    found.text.push_str(reported.output.as_deref().unwrap_or_default());
                }
                _ => {}
            }
        }
        Ok(found)
    }

    /// Every call of a task of whose output something is kept, in order.
    pub fn of(self, task: TaskId) -> Result<Vec<CallOutput>, Error> {
        self.of_after(task, None, usize::MAX)
    }

    /// The same after a call, at most `limit`.
    pub fn of_after(
        self,
        task: TaskId,
        after: Option<CallId>,
        limit: usize,
    ) -> Result<Vec<CallOutput>, Error> {
        let outputs = self.coordinator.store.outputs();
        let mut found: Vec<CallOutput> = Vec::new();
        let mut places: BTreeMap<CallId, usize> = BTreeMap::new();
        let mut is_behind = after.is_some();
        for record in self.coordinator.journals().readable(task)? {
            match record.event {
                Event::ToolCall(call) if is_behind => is_behind = after != Some(call.call),
                Event::ToolCall(_) if found.len() >= limit => {}
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
                // The three kinds above are all that an output consists of.
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

    /// Takes the keys out of what a command prints, piece by piece, before it is kept or shown.
    pub fn redacted(self) -> RedactedStream {
        self.coordinator.store.secrets().known().stream()
    }

    /// Keeps an output that belongs to no task.
    pub fn writer(self, command_id: &str, stream: Stream) -> Result<OutputWriter, Error> {
        let origin = Origin { command_id: command_id.to_owned(), stream, task: None };
        Ok(self.coordinator.store.outputs().writer(origin)?)
    }
}
