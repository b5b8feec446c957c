//! The scripted model: each task appends one line after another until it may finish.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use windlass_testkit::{Answer, ModelServer, Request};

/// How long a reply takes: long enough to be killed in, short enough for many.
const LATENCY: Duration = Duration::from_millis(60);

/// Replies after which a person is asked.
const ASKS_AFTER: [usize; 3] = [2, 9, 20];

/// When tasks may finish.
#[derive(Clone, Default)]
pub struct Finish(Arc<AtomicBool>);

impl Finish {
    pub fn now(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    fn is_due(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}

pub fn start() -> (ModelServer, Finish) {
    let server = ModelServer::start_empty();
    server.forget_bodies();
    let finish = Finish::default();
    let due = finish.clone();
    server.answer_with(move |request: &Request| Some(reply(request.replies, due.is_due())));
    (server, finish)
}

/// The reply depends only on how many replies came before, so a killed task continues where it stopped.
fn reply(number: usize, due: bool) -> Answer {
    let script = if ASKS_AFTER.contains(&number) {
        format!("ask_user: {{question: \"number {number}?\"}}")
    } else if due && number > ASKS_AFTER[2] {
        "say: done".to_owned()
    } else {
        // No two lines are equal, so a repeated line was written twice.
        format!("bash: echo line-{number} >> lines.txt")
    };
    Answer::script(&script).delayed(LATENCY)
}
