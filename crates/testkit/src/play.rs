//! `play`: text in, text out. A goal and a scripted model in, the journal a person would want to read
//! out. One function knows the API, so that a refactoring touches it and not a hundred tests.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;
use windlass_agent::{Parts, Preview, Settings, Summarizer, budget, tree};
use windlass_coordinator::{AgentFactory, BoxFuture, Coordinator, Draft, Share};
use windlass_core::axes::Axes;
use windlass_core::command::{CompactionOverrides, ExecutionConfig, TaskResult};
use windlass_core::error::{ErrorDetails, ErrorType};
use windlass_core::event::{Driver, Event, Record};
use windlass_core::guard::Thresholds;
use windlass_core::id::TaskId;
use windlass_core::state::TaskState;
use windlass_core::status::TaskStatus;
use windlass_core::text::one_line;
use windlass_model::{Dialect, Model, Models, Provider, Retry};
use windlass_sandbox::Host;
use windlass_shell::Context;
use windlass_skills::{Skill, SkillRegistry, Skills};
use windlass_store::{Options, Store};
use windlass_tools::shell::Limits;
use windlass_tools::workspace::{Places, Workspace};
use windlass_tools::{Notices, Registry, Shell, ToolContext};

use crate::ModelServer;

/// Plays a script to its end and tells what happened, an event a line. The script is the model's, with
/// the goal in front: `goal: …`, then `replies: …`.
pub async fn play(script: &str) -> String {
    Stage::set(script).run().await
}

/// A machine for one or more runs of the same script.
pub struct Stage {
    /// The model.
    pub server: ModelServer,
    /// The control plane.
    pub coordinator: Coordinator,
    /// Its store, for a test that looks behind it.
    pub store: Store,
    root: tempfile::TempDir,
    goal: String,
    clock: Arc<Mutex<Option<Timestamp>>>,
    meanwhile: Meanwhile,
}

/// Answers open questions from another thread, to the end of each.
fn answer_those_that_are(coordinator: &Coordinator, status: TaskStatus, text: &'static str) {
    for asked in coordinator.inbox().open().expect("questions can be read") {
        let asker = asked.asker.expect("who asks is a task");
        if asker.status != status {
            continue;
        }
        let question = asked.row.question.id;
        let answering = coordinator.clone();
        let answer = move || {
            let runtime = tokio::runtime::Builder::new_current_thread().build();
            let answered = answering.inbox().answer(question, text, "ada");
            runtime.expect("a runtime").block_on(answered).expect("an open question");
        };
        std::thread::spawn(answer).join().expect("the answer is accepted");
    }
}

/// What happens elsewhere whenever the time is asked for.
type Meanwhile = Arc<Mutex<Option<Box<dyn FnMut() + Send>>>>;

impl Stage {
    /// Sets the stage for a script.
    pub fn set(script: &str) -> Self {
        let (goal, replies) = goal_and_replies(script);
        let server = ModelServer::start(&replies);
        let root = tempfile::tempdir().expect("a throwaway directory");
        std::fs::create_dir(root.path().join("workspace")).expect("a fresh directory is writable");
        let store =
            Store::open(root.path().join("data"), Options::default()).expect("a fresh store");
        let equip = Props { base: server.base(), store: store.clone() };
        let clock: Arc<Mutex<Option<Timestamp>>> = Arc::default();
        let meanwhile = Meanwhile::default();
        let (shown, happens) = (clock.clone(), meanwhile.clone());
        let now = move || {
            // Taken out while it happens: it may ask for the time itself.
            let mut happening = happens.lock().unwrap_or_else(PoisonError::into_inner).take();
            if let Some(happening) = &mut happening {
                happening();
            }
            if happening.is_some() {
                *happens.lock().unwrap_or_else(PoisonError::into_inner) = happening;
            }
            let set = *shown.lock().unwrap_or_else(PoisonError::into_inner);
            set.unwrap_or_else(Timestamp::now)
        };
        let coordinator = Coordinator::new(store.clone(), Arc::new(equip), Arc::new(now));
        Self { server, coordinator, store, root, goal, clock, meanwhile }
    }

    /// Answers, from elsewhere, what tasks of this status ask, whenever a task or the coordinator looks at
    /// the clock: at known places between two of their steps, which no wait could hit.
    pub fn answer_meanwhile(&self, status: TaskStatus, text: &'static str) {
        let coordinator = self.coordinator.clone();
        let happens = move || answer_those_that_are(&coordinator, status, text);
        let mut meanwhile = self.meanwhile.lock().unwrap_or_else(PoisonError::into_inner);
        *meanwhile = Some(Box::new(happens));
    }

    /// Stops the coordinator's clock at an instant; it stands there until it is set again.
    pub fn set_clock(&self, at: Timestamp) {
        *self.clock.lock().unwrap_or_else(PoisonError::into_inner) = Some(at);
    }

    /// Moves a clock that was set forward.
    pub fn advance(&self, by: SignedDuration) {
        self.set_clock(self.coordinator.now() + by);
    }

    /// The workspace.
    pub fn workspace(&self) -> std::path::PathBuf {
        self.root.path().join("workspace")
    }

    /// The goal, before it is handed in.
    pub fn draft(&self) -> Draft {
        Draft {
            user_id: None,
            goal: self.goal.clone(),
            constraints: Vec::new(),
            workspace: self.workspace(),
            share: Share::Allowed,
            axes: Axes::headless(),
            execution_config: ExecutionConfig::default(),
            resume_context: None,
            driver: Driver::Foreground,
            cost_budget: None,
            deadline: None,
            dependency_blockers: Vec::new(),
        }
    }

    /// Hands the goal in.
    pub async fn submit(&self) -> TaskId {
        self.coordinator.tasks().submit(self.draft()).await.expect("the goal is taken")
    }

    /// Drives a task until its segment ends.
    pub async fn drive(&self, task: TaskId) -> TaskResult {
        let stop = CancellationToken::new();
        self.coordinator.tasks().drive(task, &stop).await.expect("the task is driven")
    }

    /// Submits, drives and tells.
    pub async fn run(&self) -> String {
        let task = self.submit().await;
        self.drive(task).await;
        self.told(task)
    }

    /// A task's journal, as `play` tells it.
    pub fn told(&self, task: TaskId) -> String {
        let records = self.store.journal().of(task).expect("the journal is there");
        let told: Vec<String> = records.iter().filter_map(tell).collect();
        let lines = told.iter().enumerate();
        lines.map(|(index, line)| format!("{} {line}\n", index + 1)).collect()
    }
}

/// The goal's line apart from the rest, indentation removed.
fn goal_and_replies(script: &str) -> (String, String) {
    let lines: Vec<&str> = script.lines().filter(|line| !line.trim().is_empty()).collect();
    let indent = lines.iter().map(|line| line.len() - line.trim_start().len()).min().unwrap_or(0);
    let (goal, replies): (Vec<_>, Vec<_>) =
        lines.into_iter().map(|line| &line[indent..]).partition(|line| line.starts_with("goal:"));
    let goal = goal.first().expect("the script has a `goal:`").trim_start_matches("goal:").trim();
    (goal.to_owned(), replies.join("\n"))
}

/// One line for an event worth telling; ids and times, which vary, are left out.
fn tell(record: &Record) -> Option<String> {
    let words = match &record.event {
        Event::AgentStart(start) => start.goal.clone(),
        Event::LlmResponse(reply) if reply.calls.is_empty() => format!("say: {}", reply.text),
        Event::LlmResponse(reply) => {
            let calls = reply.calls.iter().map(|call| format!("{}: {}", call.name, call.arguments));
            calls.collect::<Vec<_>>().join(" + ")
        }
        Event::RiskCheck(check) => format!("{} {} {}", check.tool, check.class, check.decision),
        Event::ToolCall(call) => call.tool.clone(),
        Event::ToolResult(result) => {
            format!("{}: {}", result.outcome.ending, result.outcome.text)
        }
        Event::InjectionReceived(injection) => injection.content.clone(),
        Event::DoomLoopDetected(detected) => detected.message.clone(),
        Event::QuestionAsked(question) => question.question.clone(),
        Event::QuestionAnswered(answered) => answered.answer.text.clone(),
        Event::StatusChanged(moved) => format!("{} → {} ({})", moved.from, moved.to, moved.reason),
        Event::AgentEnd(result) => result.status.to_string(),
        _ => return None,
    };
    Some(format!("{:<18} {}", record.event.kind(), one_line(&words, 80)).trim_end().to_owned())
}

/// What agents work with on this stage.
struct Props {
    base: String,
    store: Store,
}

impl Props {
    fn agent(
        &self,
        task: &TaskState,
        previews: broadcast::Sender<Preview>,
    ) -> Result<Parts, ErrorDetails> {
        let broken = |error: &dyn std::fmt::Display| {
            ErrorDetails::new(ErrorType::Internal, error.to_string())
        };
        let model = self.model("openai/scripted", Retry::default())?;
        let directory = Path::new(&task.created.workspace);
        let workspace =
            Workspace::open(directory, Places::default()).map_err(|error| broken(&error))?;
        let world = ToolContext {
            workspace: Arc::new(workspace),
            skills: SkillRegistry::fixed(Skills::empty()),
            notices: Notices::default(),
            embeddings: None,
            shell: Arc::new(self.shell(directory, task.id()).map_err(|error| broken(&error))?),
        };
        let settings = Settings {
            max_iterations: 200,
            timeout: None,
            tool_output_max_tokens: 8_000,
            deny: Vec::new(),
            allow: Vec::new(),
            bound_by: Vec::new(),
            compaction: CompactionOverrides::default(),
            container: "host".to_owned(),
            footing: String::new(),
            workspace: directory.display().to_string(),
            instructions: None,
            compact_at_plan_step: false,
            guard: Thresholds::default(),
            sub_agent_timeout: Duration::from_secs(300),
            sub_agents: tree::Limits { max_depth: 2, max_agents: 32 },
            budget: budget::Limits::default(),
            price: None,
        };
        let summarizer = Summarizer { model: model.clone(), window: 128_000, price: None };
        let registry = Arc::new(Registry::builtin());
        let memory = None;
        let trusted = Arc::new(|_: &Skill| true);
        Ok(Parts { model, summarizer, registry, world, settings, memory, trusted, previews })
    }

    fn model(&self, name: &str, retry: Retry) -> Result<Arc<dyn Model>, ErrorDetails> {
        let broken = |error: &dyn std::fmt::Display| {
            ErrorDetails::new(ErrorType::Internal, error.to_string())
        };
        let provider = Provider { dialect: Dialect::OpenAi, base: self.base.clone(), key: None };
        let providers = [("openai".to_owned(), provider)].into();
        let settings = windlass_model::Settings { providers, retry, ..Default::default() };
        let name = name.parse().map_err(|error| broken(&error))?;
        Models::new(settings).open(&name).map_err(|error| broken(&error))
    }

    fn shell(&self, directory: &Path, task: TaskId) -> Result<Shell, windlass_sandbox::Error> {
        let environment: Vec<_> = std::env::vars().collect();
        let data = self.store.dir().root().to_owned();
        let host = Host::new(data, directory.to_owned(), &environment, &[])?;
        let limits = Limits {
            default_timeout: Duration::from_secs(120),
            max_timeout: Duration::from_secs(600),
            shown_bytes: 32_000,
        };
        let gate = Context::new(directory.display().to_string(), "/nowhere");
        let clock = Arc::new(Timestamp::now);
        Ok(Shell::new(Arc::new(host), self.store.clone(), task, clock, limits, gate))
    }
}

impl AgentFactory for Props {
    fn make<'a>(
        &'a self,
        task: &'a TaskState,
        previews: broadcast::Sender<Preview>,
    ) -> BoxFuture<'a, Result<Parts, ErrorDetails>> {
        Box::pin(std::future::ready(self.agent(task, previews)))
    }

    fn router(&self) -> BoxFuture<'_, Result<Arc<dyn Model>, ErrorDetails>> {
        Box::pin(std::future::ready(
            self.model("openai/router", Retry { max_retries: 0, ..Retry::default() }),
        ))
    }
}
