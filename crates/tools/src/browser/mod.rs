//! `browser`: a page as a person would use it, in headless Chromium over its debugging protocol (ES-190, ES-249).
//!
//! Invariants:
//! - Chromium runs in the task's sandbox, and outside of it only where the user's configuration says so. Its traffic goes
//!   through windlass's proxy; what that would refuse is not asked for.
//! - What a call would do is decided by what its element was when the agent last saw it. A page where that has changed
//!   since is left alone: no form is sent by a call that was not decided as sending one.
//! - One browser for a task and its sub-agents, one profile for each of them, both thrown away.

mod connection;
mod cookies;
mod launch;
mod page;
mod element;
mod saved;
mod scene;
mod session;
mod judge;
mod actions;
mod view;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use windlass_core::id::TaskId;
use windlass_core::outcome::{CallEnding, Outcome};
use windlass_core::policy::{Class, Risk};
use windlass_core::question::BoundFile;
use windlass_core::tool_name;
use windlass_sandbox::{Egress, Sandbox};

use crate::schema;
use crate::tool::{Call, Category, Prepared, Tool, ToolContext};
use crate::web::Reach;
use crate::workspace::content_hash;
pub use cookies::parse_cookies;
use judge::{FormPermission, judge};
use launch::Chromium;
pub use launch::QUIET_FLAGS;
use saved::{BrowsingState, Form};
use session::{BrowserSession, CallSite};

/// How long a browser runs that nobody calls.
pub const IDLE_LIMIT: Duration = Duration::from_secs(120);
/// How long one call may take in all.
const CALL_LIMIT: Duration = Duration::from_secs(60);

/// What a browser is started with; every value comes from configuration.
#[derive(Clone)]
pub struct Config {
    /// The program, as the sandbox finds it.
    pub program: String,
    /// Where it runs.
    pub sandbox: Arc<dyn Sandbox>,
    /// What may be reached, where the sandbox has no proxy of its own.
    pub egress: Option<Egress>,
    /// What may be asked for.
    pub reach: Reach,
    /// Where is kept what it is started again with.
    pub state: PathBuf,
    /// Cookies that a person has imported, as the protocol takes them.
    pub cookies: Vec<Value>,
    /// How long it runs without a call; [`IDLE_LIMIT`].
    pub idle: Duration,
}

/// Why a call had no result.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("the browser could not be started: {0}")]
    NotStarted(String),
    #[error("the browser is gone: {0}")]
    Gone(String),
    #[error("the browser did not answer in time: {0}")]
    TooSlow(String),
    #[error("{0}")]
    Refused(String),
    #[error("it could not be reached: {0}")]
    NotReached(String),
    #[error("there is no element [{0}] on the page now; look at it again with `wait`")]
    NoElement(String),
    #[error(
        "this would submit a form, which it did not when you last saw the page; nothing was sent. Look at the \
         page again, then use `submit`"
    )]
    WouldSubmit,
    #[error(
        "the expression would change something; `evaluate` only reads. Use `click`, `type`, `select` or `submit`"
    )]
    SideEffect,
    #[error(
        "the form is not as it was when you last saw the page; nothing was sent. Look at the page again"
    )]
    FormChanged,
    #[error("no page is open; use `navigate` first")]
    NoPage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Action {
    Navigate,
    Click,
    Type,
    Submit,
    Select,
    Scroll,
    Wait,
    Text,
    Links,
    Screenshot,
    Evaluate,
    Tabs,
    Back,
    Close,
}

impl Action {
    /// The word for it in a call.
    fn name(self) -> String {
        let word = serde_json::to_value(self).unwrap_or_default();
        word.as_str().unwrap_or_default().to_owned()
    }
}

#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    action: Action,
    /// The address that `navigate` opens.
    url: Option<String>,
    /// An element's ref.
    #[serde(rename = "ref")]
    reference: Option<String>,
    /// What to type, select, evaluate or wait for; for `scroll`: down, up, top or bottom.
    text: Option<String>,
    /// The tab to switch to or to close.
    tab: Option<usize>,
    /// Answer dialogs with OK.
    accept_dialogs: Option<bool>,
}

/// The tool `browser`: one browser for all its calls.
pub struct Browser(Arc<Shared>);

struct Shared {
    config: Config,
    /// Held for a whole call: one at a time uses the browser.
    live: tokio::sync::Mutex<OpenBrowser>,
    /// What each agent has last seen.
    saved: Mutex<HashMap<TaskId, BrowsingState>>,
}

#[derive(Default)]
struct OpenBrowser {
    chromium: Option<Chromium>,
    sessions: HashMap<TaskId, BrowserSession>,
}

impl Browser {
    /// A browser for one task and those below it. Nothing starts yet.
    pub fn new(config: Config) -> Self {
        Self(Arc::new(Shared {
            config,
            live: tokio::sync::Mutex::default(),
            saved: Mutex::default(),
        }))
    }
}

impl Shared {
    /// What the agent has last seen, also before this process began.
    fn saved_state(&self, task: TaskId) -> BrowsingState {
        let mut all = self.saved.lock().unwrap_or_else(PoisonError::into_inner);
        all.entry(task).or_insert_with(|| BrowsingState::read(&self.config.state, task)).clone()
    }

    fn save(&self, task: TaskId, saved: BrowsingState) {
        if let Err(error) = saved.write(&self.config.state, task) {
            tracing::warn!(%task, %error, "What the browser shows could not be saved");
        }
        let mut all = self.saved.lock().unwrap_or_else(PoisonError::into_inner);
        all.insert(task, saved);
    }

    fn forget(&self, task: TaskId) {
        BrowsingState::remove(&self.config.state, task);
        self.saved
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(task, BrowsingState::default());
    }

    async fn run(
        &self,
        arguments: Arguments,
        place: CallSite,
        permission: FormPermission,
    ) -> Outcome {
        let mut live = self.live.lock().await;
        let task = place.task;
        match self.perform(&mut live, arguments, &place, permission).await {
            Ok(outcome) => outcome,
            Err(error) => {
                // A browser that is gone is started again by the next call.
                if matches!(error, Error::Gone(_) | Error::NotStarted(_)) {
                    *live = OpenBrowser::default();
                }
                let mut outcome = Outcome::failure(format!("{error}."));
                if let Some(session) = live.sessions.get(&task)
                    && let Some(chromium) = &live.chromium
                {
                    for note in session.take_notes(&chromium.connection) {
                        outcome.add_note(&format!("[{note}]"));
                    }
                }
                outcome
            }
        }
    }

    async fn perform(
        &self,
        live: &mut OpenBrowser,
        arguments: Arguments,
        place: &CallSite,
        permission: FormPermission,
    ) -> Result<Outcome, Error> {
        let task = place.task;
        if arguments.action == Action::Close && live.sessions.is_empty() {
            self.forget(task);
            return Ok(Outcome::ok("The browser is closed."));
        }
        if live.chromium.as_ref().is_some_and(|chromium| !chromium.connection.is_alive()) {
            *live = OpenBrowser::default();
        }
        let chromium = match &mut live.chromium {
            Some(chromium) => chromium,
            none => none.insert(Chromium::start(&self.config).await?),
        };
        let _use = chromium.connection.in_use();
        let mut session = match live.sessions.remove(&task) {
            Some(session) => session,
            None => {
                let saved = self.saved_state(task);
                BrowserSession::open(
                    &chromium.connection,
                    &self.config,
                    place,
                    saved,
                    arguments.action,
                )
                .await?
            }
        };
        let outcome = session.perform(&chromium.connection, &arguments, place, permission).await;
        if session.is_closed(&chromium.connection) {
            self.forget(task);
            session.close(&chromium.connection).await;
            if live.sessions.is_empty() {
                live.chromium = None;
            }
            return outcome;
        }
        self.save(task, session.state(&chromium.connection).await);
        live.sessions.insert(task, session);
        outcome
    }
}

impl Tool for Browser {
    fn name(&self) -> &str {
        tool_name::BROWSER
    }

    fn description(&self) -> &str {
        include_str!("description.md").trim_ascii_end()
    }

    fn parameters(&self) -> Value {
        schema::of::<Arguments>()
    }

    fn category(&self) -> Category {
        Category::Environment
    }

    fn min_class(&self) -> (Class, Risk) {
        (Class::Read, Risk::Medium)
    }

    fn is_exclusive(&self) -> bool {
        true
    }

    fn prepare(
        &self,
        context: &ToolContext,
        mut call: Call,
    ) -> BoxFuture<'_, Result<Prepared, Outcome>> {
        let task = context.shell.task();
        let prepared = || {
            let arguments: Arguments =
                serde_json::from_value(call.arguments.take()).map_err(|error| {
                    Outcome::error(format!("The arguments of `browser` do not fit: {error}"))
                })?;
            let saved = self.0.saved_state(task);
            let effect = judge(&self.0.config.reach, &arguments, &saved)?;
            let place = CallSite {
                task,
                call: call.id,
                workspace: Arc::clone(&context.workspace),
                pictures: context.pictures.clone(),
                limit_tokens: call.limit_tokens,
            };
            let (shared, permission) = (Arc::clone(&self.0), effect.form_permission());
            let act = Box::new(move || -> BoxFuture<'static, Outcome> {
                Box::pin(async move {
                    let running =
                        tokio::time::timeout(CALL_LIMIT, shared.run(arguments, place, permission));
                    match call.stop.run_until_cancelled(running).await {
                        Some(Ok(outcome)) => outcome,
                        Some(Err(_)) => Outcome::failure(format!(
                            "the browser took longer than {} s.",
                            CALL_LIMIT.as_secs()
                        )),
                        None => Outcome::ended(CallEnding::Cancelled, "Stopped with the task."),
                    }
                })
            });
            let form = effect.form;
            let bound = form.as_ref().map(|form| BoundFile {
                path: format!("form for {}", form.url),
                hash: Some(content_hash(form.text().as_bytes())),
            });
            Ok(Prepared {
                diff: form.as_ref().map(Form::text),
                bound: bound.into_iter().collect(),
                ..Prepared::new(effect.assessment, effect.recovery, act)
            })
        };
        Box::pin(std::future::ready(prepared()))
    }
}
