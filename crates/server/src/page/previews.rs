//! What tasks of this process say and print before it is committed, gathered so that a page that is loaded in the middle
//! of a reply shows all of it.
//!
//! Invariants:
//! - A partial reply is dropped when its reply is committed, and when it is begun again.
//! - What is kept of a task is bounded, and goes with the end of its segment.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;
use windlass_coordinator::{Coordinator, Error, Live, Notice, Preview, StreamEvent};
use windlass_core::event::Event;
use windlass_core::id::{CallId, TaskId};

/// Bytes of a partial reply; the rest is shown when it is committed.
const MAX_TEXT_BYTES: usize = 256 * 1024;
/// Bytes that are kept of what a running call prints, from its end.
const MAX_OUTPUT_BYTES: usize = 8 * 1024;

/// What a task says and prints right now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Partial {
    /// The reply so far.
    pub text: String,
    /// What the model thinks before it.
    pub thought: String,
    /// The tools that the reply calls so far.
    pub calls: Vec<String>,
    /// Why the reply is begun again.
    pub retry: Option<String>,
    /// What running calls have printed, its end.
    pub outputs: HashMap<CallId, String>,
    /// The event up to which commits were seen.
    seq: u64,
}

/// The partial replies of all tasks of this process. Cheap to clone.
#[derive(Clone)]
pub struct Previews(Arc<Shared>);

struct Shared {
    partials: Mutex<HashMap<TaskId, Partial>>,
    /// Counts everything that may change a page.
    changes: watch::Sender<u64>,
}

impl Default for Previews {
    fn default() -> Self {
        Self(Arc::new(Shared { partials: Mutex::default(), changes: watch::Sender::new(0) }))
    }
}

impl Previews {
    /// Gathers until the coordinator's store is closed.
    pub async fn run(self, coordinator: Coordinator) -> Result<(), Error> {
        let mut notices = coordinator.feed().notices();
        loop {
            match notices.next().await? {
                Notice::Committed => self.on_commit(&coordinator)?,
                Notice::Preview(preview) => self.on_preview(&coordinator, preview)?,
            }
            self.0.changes.send_modify(|count| *count += 1);
        }
    }

    /// Counts what may change a page, from now on.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.0.changes.subscribe()
    }

    /// What a task says and prints right now.
    pub fn of(&self, task: TaskId) -> Option<Partial> {
        self.partials().get(&task).cloned()
    }

    fn partials(&self) -> MutexGuard<'_, HashMap<TaskId, Partial>> {
        self.0.partials.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn on_preview(&self, coordinator: &Coordinator, preview: Preview) -> Result<(), Error> {
        let task = preview.task;
        let is_new = !self.partials().contains_key(&task);
        let row = if is_new { coordinator.tasks().get(task)? } else { None };
        let seq = row.map_or(0, |row| row.last_seq);
        let mut partials = self.partials();
        let partial = partials.entry(task).or_insert_with(|| Partial { seq, ..Partial::default() });
        partial.add(preview.live);
        Ok(())
    }

    /// Drops what is committed now.
    fn on_commit(&self, coordinator: &Coordinator) -> Result<(), Error> {
        let known: Vec<(TaskId, u64)> =
            self.partials().iter().map(|(task, partial)| (*task, partial.seq)).collect();
        for (task, seq) in known {
            let mut feed = coordinator.feed().follow(task, seq);
            while let Some(record) = feed.committed()? {
                let mut partials = self.partials();
                let Some(partial) = partials.get_mut(&task) else { break };
                if !partial.commit(record.seq, &record.event) {
                    partials.remove(&task);
                    break;
                }
            }
        }
        Ok(())
    }
}

impl Partial {
    fn add(&mut self, live: Live) {
        match live {
            Live::Reply(StreamEvent::Text(text)) => {
                self.retry = None;
                if self.text.len() + text.len() <= MAX_TEXT_BYTES {
                    self.text.push_str(&text);
                }
            }
            Live::Reply(StreamEvent::Reasoning(text)) => {
                self.retry = None;
                if self.thought.len() + text.len() <= MAX_TEXT_BYTES {
                    self.thought.push_str(&text);
                }
            }
            Live::Reply(StreamEvent::CallStarted { name, .. }) => {
                self.retry = None;
                self.calls.push(name);
            }
            Live::Reply(
                StreamEvent::Retrying { reason, .. } | StreamEvent::Waiting { reason, .. },
            ) => {
                self.drop_reply();
                self.retry = Some(reason);
            }
            Live::Reply(StreamEvent::CallArguments { .. } | StreamEvent::Bytes(_)) => {}
            Live::Output { call, text } => {
                let output = self.outputs.entry(call).or_default();
                output.push_str(&text);
                let mut start = output.len().saturating_sub(MAX_OUTPUT_BYTES);
                while !output.is_char_boundary(start) {
                    start += 1;
                }
                output.drain(..start);
            }
        }
    }

    fn drop_reply(&mut self) {
        self.text.clear();
        self.thought.clear();
        self.calls.clear();
        self.retry = None;
    }

    /// Takes note of a commit; `false` when the segment is over.
    fn commit(&mut self, seq: u64, event: &Event) -> bool {
        self.seq = seq;
        match event {
            Event::LlmResponse(_) | Event::LlmRequest(_) => self.drop_reply(),
            Event::ToolResult(result) => {
                self.outputs.remove(&result.call);
            }
            Event::AgentEnd(_) => return false,
            _ => {}
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_core::event::SandboxEnded;

    fn text(text: &str) -> Live {
        Live::Reply(StreamEvent::Text(text.to_owned()))
    }

    #[test]
    fn a_reply_grows_until_it_is_begun_again() {
        let mut partial = Partial::default();
        partial.add(text("one "));
        partial.add(text("two"));
        assert_eq!(partial.text, "one two");
        let (after, reason) = (std::time::Duration::ZERO, "gone".to_owned());
        partial.add(Live::Reply(StreamEvent::Retrying { attempt: 1, after, reason }));
        assert_eq!((partial.text.as_str(), partial.retry.as_deref()), ("", Some("gone")));
        partial.add(text("new"));
        assert_eq!((partial.text.as_str(), partial.retry.as_deref()), ("new", None));
    }

    #[test]
    fn of_an_output_the_end_is_kept() {
        let mut partial = Partial::default();
        let call = CallId::derived("task", "1");
        for _ in 0..3000 {
            partial.add(Live::Output { call, text: "wört ".to_owned() });
        }
        let kept = &partial.outputs[&call];
        assert!(kept.len() <= MAX_OUTPUT_BYTES && kept.ends_with("wört "), "{}", kept.len());
        let other = Event::SandboxEnded(SandboxEnded { kind: "local".to_owned() });
        assert!(partial.commit(7, &other));
        assert_eq!((partial.seq, partial.outputs.len()), (7, 1));
    }
}
