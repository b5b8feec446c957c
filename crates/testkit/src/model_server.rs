//! A scripted model behind real HTTP and SSE, on a port of this machine.
//!
//! It speaks Chat Completions (`…/chat/completions`), Responses (`…/responses`) and Messages (`…/messages`), refuses
//! reasoning that comes back changed where its script has any, and answers by, in this order: what was queued with [`ModelServer::next`], the closure of [`ModelServer::answer_with`],
//! and the script, where the number of replies already in a request chooses (so that a task that is
//! killed and resumed continues where it was) unless [`ModelServer::in_order`] was called.
//!
//! It runs on a thread of its own with a runtime of its own, so it serves async tests and tests that
//! start the real binary alike. It stops, and all its connections with it, when it is dropped.

use std::{
    collections::VecDeque,
    net::{SocketAddr, TcpListener},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread::JoinHandle,
    time::Instant,
};

use tokio::{runtime, sync::oneshot, task::JoinSet};
use windlass_model::{Script, script::RuleAnswer};

use crate::signal::Signal;

mod answer;
mod connection;
mod request;
mod seal;
mod sse;
mod tls;

pub use answer::{Answer, Gate};
pub use request::Request;
pub use tls::TlsServer;

/// A model server for tests.
pub struct ModelServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

type Rule = Box<dyn Fn(&Request) -> Option<Answer> + Send>;

#[derive(Default)]
pub(crate) struct Shared {
    plan: Mutex<Plan>,
    requests: Mutex<Vec<Request>>,
    arrived: Signal,
    connected: Signal,
    left: Signal,
    busy: Mutex<Busy>,
}

#[derive(Default)]
struct Plan {
    queue: VecDeque<Answer>,
    rule: Option<Rule>,
    script: Script,
    /// Whether the script holds reasoning, which must come back unchanged.
    thinks: bool,
    /// The next reply's place, when they are given in order.
    order: Option<usize>,
    forget: bool,
}

#[derive(Clone, Copy, Default)]
struct Busy {
    now: usize,
    most: usize,
}

impl ModelServer {
    /// Starts a server that plays a script (see `windlass_model::script` for the format).
    pub fn start(script: &str) -> Self {
        let script = script.parse().unwrap_or_else(|error| panic!("bad script: {error}"));
        Self::start_with(script)
    }

    /// Starts a server that has no script; queue answers, or give it a closure.
    pub fn start_empty() -> Self {
        Self::start_with(Script::default())
    }

    fn start_with(script: Script) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("a bound listener has an address");
        listener.set_nonblocking(true).expect("sockets can be made non-blocking");
        let shared = Arc::new(Shared::default());
        shared.plan().thinks = thinks(&script);
        shared.plan().script = script;
        let (stop, stopped) = oneshot::channel();
        let serving = Arc::clone(&shared);
        let thread = std::thread::spawn(move || serve(listener, serving, stopped));
        Self { address, shared, stop: Some(stop), thread: Some(thread) }
    }

    /// Where it listens, as `http://127.0.0.1:PORT`: a base for any wire.
    pub fn base(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The address it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Queues an answer that goes before everything else, once.
    pub fn next(&self, answer: Answer) -> &Self {
        self.shared.plan().queue.push_back(answer);
        self
    }

    /// Answers by content: where the closure has an answer, it goes before the script.
    pub fn answer_with(&self, rule: impl Fn(&Request) -> Option<Answer> + Send + 'static) -> &Self {
        self.shared.plan().rule = Some(Box::new(rule));
        self
    }

    /// Gives the script's replies in order of arrival, whatever the requests hold.
    pub fn in_order(&self) -> &Self {
        self.shared.plan().order = Some(0);
        self
    }

    /// Refuses reasoning that comes back changed, as with a script that holds some.
    pub fn checks_reasoning(&self) -> &Self {
        self.shared.plan().thinks = true;
        self
    }

    /// Keeps no bodies of requests from now on, for measurements.
    pub fn forget_bodies(&self) -> &Self {
        self.shared.plan().forget = true;
        self
    }

    /// Every request so far, in order of arrival.
    pub fn requests(&self) -> Vec<Request> {
        self.shared.requests().clone()
    }

    /// How many requests have arrived.
    pub fn request_count(&self) -> usize {
        self.shared.arrived.value()
    }

    /// Waits until that many requests have arrived in all.
    pub async fn requests_reach(&self, count: usize) {
        self.shared.arrived.expect(count, "requests").await;
    }

    /// As `requests_reach`, from a test without a runtime.
    pub fn requests_reach_blocking(&self, count: usize) {
        self.shared.arrived.expect_blocking(count, "requests");
    }

    /// How many connections were made; fewer than requests means they were reused.
    pub fn connections(&self) -> usize {
        self.shared.connected.value()
    }

    /// Waits until that many clients have left in the middle of an answer.
    pub async fn departures_reach(&self, count: usize) {
        self.shared.left.expect(count, "departed clients").await;
    }

    /// As `departures_reach`, from a test without a runtime.
    pub fn departures_reach_blocking(&self, count: usize) {
        self.shared.left.expect_blocking(count, "departed clients");
    }

    /// The most requests that were being answered at the same time.
    pub fn most_at_once(&self) -> usize {
        self.shared.busy().most
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            if ended.is_err() && !std::thread::panicking() {
                panic!("the model server failed; its own words are above");
            }
        }
    }
}

fn serve(listener: TcpListener, shared: Arc<Shared>, mut stopped: oneshot::Receiver<()>) {
    let runtime = runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async move {
        let listener = tokio::net::TcpListener::from_std(listener).expect("a listener");
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                _ = &mut stopped => break,
                Some(ended) = connections.join_next() => ended.expect("a connection's job"),
                Ok((socket, _)) = listener.accept() => {
                    let number = shared.connected.raise();
                    connections.spawn(connection::serve(socket, number, Arc::clone(&shared)));
                }
            }
        }
        connections.shutdown().await;
    });
}

impl Shared {
    fn plan(&self) -> MutexGuard<'_, Plan> {
        self.plan.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn requests(&self) -> MutexGuard<'_, Vec<Request>> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn busy(&self) -> MutexGuard<'_, Busy> {
        self.busy.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps a request and decides its answer; the number is the request's place among all.
    fn take(&self, request: Request) -> (Answer, usize) {
        let answer = self.plan().decide(&request);
        let mut kept = self.requests();
        let place = kept.len();
        let forget = self.plan().forget;
        kept.push(Request { body: if forget { Arc::default() } else { request.body }, ..request });
        drop(kept);
        self.arrived.raise();
        (answer, place)
    }

    /// Notes when a request's answer went out.
    fn answered(&self, place: usize, at: Instant) {
        if let Some(request) = self.requests().get_mut(place) {
            request.answered = Some(at);
        }
    }

    fn begin(&self) {
        let mut busy = self.busy();
        busy.now += 1;
        busy.most = busy.most.max(busy.now);
    }

    fn end(&self) {
        self.busy().now -= 1;
    }
}

fn thinks(script: &Script) -> bool {
    let of_rules = script.rules.iter().flat_map(|rule| match &rule.answer {
        RuleAnswer::Always(reply) => std::slice::from_ref(&**reply),
        RuleAnswer::InTurn(replies) => replies.as_slice(),
    });
    let mut all = script.replies.iter().chain(of_rules);
    all.any(|reply| !reply.think.is_empty() || reply.redacted.is_some())
}

impl Plan {
    fn decide(&mut self, request: &Request) -> Answer {
        if let Some(answer) = self.queue.pop_front() {
            return answer;
        }
        if self.thinks
            && let Some(refusal) = seal::refusal(request)
        {
            return refusal;
        }
        if let Some(answer) = self.rule.as_ref().and_then(|rule| rule(request)) {
            return answer;
        }
        let found = match &mut self.order {
            Some(next) => {
                *next += 1;
                let number = *next;
                self.script.replies.get(number - 1).ok_or(format!("no reply number {number}"))
            }
            None => self.script.answer(request),
        };
        match found {
            Ok(reply) => Answer::reply(reply.clone()),
            // Permanent, so that the client gives up at once and the test says why.
            Err(wrong) => Answer::error(400, &format!("script: {wrong}")),
        }
    }
}
