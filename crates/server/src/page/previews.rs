//! What tasks of this process say and print before it is committed, gathered so that a page that is loaded in the middle
//! of a reply shows all of it.
//!
//! Invariants:
//! - A partial reply belongs to one request. A page shows it only while that request has no reply in the journal.
//! - What is kept of a task is bounded, and goes with the end of its segment.
//! - Nothing is read from the store: a service whose pages nobody looks at pays for no reads.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;
use windlass_coordinator::{Coordinator, Error, Notice, Preview, PreviewContent, StreamEvent};
use windlass_core::id::{CallId, TaskId};

/// Bytes of a partial reply; the rest is shown when it is committed.
const MAX_TEXT_BYTES: usize = 256 * 1024;
/// Bytes that are kept of what a running call prints, from its end.
const MAX_OUTPUT_BYTES: usize = 8 * 1024;
/// Calls whose output is kept beyond a request. What is still running prints again.
const MAX_OUTPUTS: usize = 32;

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
    /// What calls and commands in the background have printed, its end.
    pub outputs: HashMap<CallId, String>,
    /// The event that asked for the reply.
    pub request: Option<u64>,
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
                Notice::Committed => {}
                Notice::Preview(preview) => self.add(preview),
                // The end of some segments may be among them.
                Notice::Missed => self.partials().clear(),
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

    fn add(&self, preview: Preview) {
        let mut partials = self.partials();
        match preview.live {
            PreviewContent::Ended => drop(partials.remove(&preview.task)),
            live => partials.entry(preview.task).or_default().add(live),
        }
    }
}

impl Partial {
    fn add(&mut self, live: PreviewContent) {
        match live {
            // What commands in the background print stays in sight.
            PreviewContent::Asked { seq } => {
                self.drop_reply();
                self.request = Some(seq);
                if self.outputs.len() > MAX_OUTPUTS {
                    self.outputs.clear();
                }
            }
            PreviewContent::Ended => *self = Self::default(),
            PreviewContent::Reply(StreamEvent::Text(text)) => {
                self.retry = None;
                if self.text.len() + text.len() <= MAX_TEXT_BYTES {
                    self.text.push_str(&text);
                }
            }
            PreviewContent::Reply(StreamEvent::Reasoning(text)) => {
                self.retry = None;
                if self.thought.len() + text.len() <= MAX_TEXT_BYTES {
                    self.thought.push_str(&text);
                }
            }
            PreviewContent::Reply(StreamEvent::CallStarted { name, .. }) => {
                self.retry = None;
                self.calls.push(name);
            }
            PreviewContent::Reply(
                StreamEvent::Retrying { reason, .. } | StreamEvent::Waiting { reason, .. },
            ) => {
                self.drop_reply();
                self.retry = Some(reason);
            }
            PreviewContent::Reply(StreamEvent::CallArguments { .. } | StreamEvent::Bytes(_)) => {}
            PreviewContent::Output { call, text } => {
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

    /// Drops what belongs to a reply.
    pub fn drop_reply(&mut self) {
        self.text.clear();
        self.thought.clear();
        self.calls.clear();
        self.retry = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> PreviewContent {
        PreviewContent::Reply(StreamEvent::Text(text.to_owned()))
    }

    #[test]
    fn a_reply_grows_until_it_is_begun_again() {
        let mut partial = Partial::default();
        partial.add(text("one "));
        partial.add(text("two"));
        assert_eq!(partial.text, "one two");
        let (after, reason) = (std::time::Duration::ZERO, "gone".to_owned());
        partial.add(PreviewContent::Reply(StreamEvent::Retrying { attempt: 1, after, reason }));
        assert_eq!((partial.text.as_str(), partial.retry.as_deref()), ("", Some("gone")));
        partial.add(text("new"));
        assert_eq!((partial.text.as_str(), partial.retry.as_deref()), ("new", None));
    }

    #[test]
    fn of_an_output_the_end_is_kept() {
        let mut partial = Partial::default();
        let call = CallId::derived("task", "1");
        for _ in 0..3000 {
            partial.add(PreviewContent::Output { call, text: "wört ".to_owned() });
        }
        let kept = &partial.outputs[&call];
        assert!(kept.len() <= MAX_OUTPUT_BYTES && kept.ends_with("wört "), "{}", kept.len());
    }

    #[test]
    fn the_next_request_and_the_end_remove_what_was_kept() {
        let (previews, task) = (Previews::default(), TaskId::derived("a", "b"));
        let call = CallId::derived("task", "1");
        let add = |live| previews.add(Preview { task, live });
        add(PreviewContent::Asked { seq: 3 });
        add(text("one"));
        add(PreviewContent::Output { call, text: "printed".to_owned() });
        let partial = previews.of(task).unwrap();
        assert_eq!((partial.request, partial.text.as_str()), (Some(3), "one"));
        add(PreviewContent::Asked { seq: 7 });
        let partial = previews.of(task).unwrap();
        assert_eq!((partial.request, partial.text.as_str()), (Some(7), ""));
        // A command may run on in the background.
        assert_eq!(partial.outputs[&call], "printed");
        add(PreviewContent::Ended);
        assert_eq!(previews.of(task), None);
    }
}
