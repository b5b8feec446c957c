//! A real Chromium without a window, spoken to over its debugging pipe.
//!
//! One process serves all tests of a binary; each test has a context of its own, with its own cookies. It ends when the
//! pipe is closed, at the latest with the process that started it.

use std::collections::{HashMap, VecDeque};
use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use windlass_tools::browser::QUIET_FLAGS;

mod page;

pub use page::Page;

/// How long a test may wait for the browser before it is a failure.
const PATIENCE: Duration = Duration::from_secs(60);

/// Events of a page that are kept.
const MAX_EVENTS: usize = 20_000;

/// A running browser.
pub struct Browser {
    child: Mutex<Child>,
    input: Mutex<File>,
    shared: Arc<Shared>,
    next_id: AtomicU64,
    _home: tempfile::TempDir,
}

/// What the browser has said.
#[derive(Default)]
struct Shared {
    said: Mutex<BrowserMessages>,
    changed: Condvar,
}

#[derive(Default)]
struct BrowserMessages {
    answers: HashMap<u64, Value>,
    events: VecDeque<Value>,
    is_over: bool,
}

impl Shared {
    fn said(&self) -> MutexGuard<'_, BrowserMessages> {
        self.said.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Browser {
    /// Starts the program.
    pub fn start(program: &str) -> Self {
        let home = tempfile::tempdir().expect("a throwaway directory");
        let (input, output) = (home.path().join("in"), home.path().join("out"));
        for pipe in [&input, &output] {
            let mode = rustix::fs::Mode::from_bits_truncate(0o600);
            rustix::fs::mkfifoat(rustix::fs::CWD, pipe, mode).expect("a pipe");
        }
        let child = launch(program, home.path(), &input, &output);
        // In the order in which the shell opens them: each waits for the other side.
        let to_browser = File::options().write(true).open(&input).expect("the browser reads");
        let from_browser = File::open(&output).expect("the browser writes");
        let shared = Arc::new(Shared::default());
        let reading = Arc::clone(&shared);
        std::thread::spawn(move || read(from_browser, &reading));
        Self {
            child: Mutex::new(child),
            input: Mutex::new(to_browser),
            shared,
            next_id: AtomicU64::new(1),
            _home: home,
        }
    }

    /// A new person at a browser of their own: other cookies, other storage.
    pub fn context(&self) -> Context<'_> {
        let made = self.call(None, "Target.createBrowserContext", json!({}));
        Context { browser: self, id: text(&made["browserContextId"]) }
    }

    /// Sends a command, to a page or to the browser, and returns what it answers.
    fn call(&self, session: Option<&str>, method: &str, params: Value) -> Value {
        let answer = self.try_call(session, method, params);
        answer.unwrap_or_else(|error| panic!("{method}: {error}"))
    }

    /// The same, where the browser may refuse: a page that is left while it is asked does.
    fn try_call(&self, session: Option<&str>, method: &str, params: Value) -> Result<Value, Value> {
        let id = self.send(session, method, params).expect("the browser runs");
        let mut answer = self.wait(method, |said| said.answers.remove(&id));
        match answer.get_mut("error") {
            Some(error) => Err(error.take()),
            None => Ok(answer["result"].take()),
        }
    }

    /// Sends a command and returns its number, by which its answer is known.
    fn send(&self, session: Option<&str>, method: &str, params: Value) -> std::io::Result<u64> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let mut command = json!({ "id": id, "method": method, "params": params });
        if let Some(session) = session {
            command["sessionId"] = session.into();
        }
        let mut bytes = command.to_string().into_bytes();
        bytes.push(0);
        let mut input = self.input.lock().unwrap_or_else(PoisonError::into_inner);
        input.write_all(&bytes).map(|()| id)
    }

    /// Waits until something was said.
    fn wait<T>(&self, what: &str, mut find: impl FnMut(&mut BrowserMessages) -> Option<T>) -> T {
        let mut said = self.shared.said();
        loop {
            if let Some(found) = find(&mut said) {
                return found;
            }
            assert!(!said.is_over, "{what}: the browser has ended");
            let waited = self.shared.changed.wait_timeout(said, PATIENCE);
            let (next, late) = waited.unwrap_or_else(PoisonError::into_inner);
            assert!(!late.timed_out(), "waited too long for the browser: {what}");
            said = next;
        }
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let mut child = self.child.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = child.kill();
        let _ = child.wait();
    }
}

/// One person's browser.
pub struct Context<'a> {
    browser: &'a Browser,
    id: String,
}

impl<'a> Context<'a> {
    /// A new tab.
    pub fn page(&self) -> Page<'a> {
        let wanted = json!({ "url": "about:blank", "browserContextId": self.id });
        let made = self.browser.call(None, "Target.createTarget", wanted);
        let target = text(&made["targetId"]);
        let attach = json!({ "targetId": target, "flatten": true });
        let attached = self.browser.call(None, "Target.attachToTarget", attach);
        Page::open(self.browser, target, text(&attached["sessionId"]))
    }
}

fn launch(program: &str, home: &Path, input: &PathBuf, output: &PathBuf) -> Child {
    // The browser reads commands from descriptor 3 and answers on 4; a shell puts the pipes there.
    let script = r#"exec "$0" "$@" 3<"$WINDLASS_PIPE_IN" 4>"$WINDLASS_PIPE_OUT""#;
    Command::new("sh")
        .args(["-c", script, program])
        .args(QUIET_FLAGS)
        .args(["--no-sandbox", "--font-render-hinting=none", "--lang=en-GB"])
        .arg(format!("--user-data-dir={}", home.join("profile").display()))
        .env("WINDLASS_PIPE_IN", input)
        .env("WINDLASS_PIPE_OUT", output)
        .env("HOME", home)
        .env("TZ", "UTC")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the browser starts")
}

fn read(from: File, shared: &Shared) {
    let mut reader = BufReader::new(from);
    let mut bytes = Vec::new();
    while reader.read_until(0, &mut bytes).is_ok_and(|read| read > 0) {
        let message: Value =
            serde_json::from_slice(bytes.strip_suffix(&[0]).unwrap_or(&bytes)).unwrap_or_default();
        let mut said = shared.said();
        match message["id"].as_u64() {
            Some(id) => {
                said.answers.insert(id, message);
            }
            None => {
                if said.events.len() >= MAX_EVENTS {
                    said.events.pop_front();
                }
                said.events.push_back(message);
            }
        }
        drop(said);
        shared.changed.notify_all();
        bytes.clear();
    }
    shared.said().is_over = true;
    shared.changed.notify_all();
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
