//! One agent's tools on a throwaway workspace, called as the loop calls them.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;
use windlass_core::id::{CallId, TaskId};
use windlass_core::outcome::{CallEnding, Fact, Outcome};
use windlass_sandbox::Host;
use windlass_shell::Context;
use windlass_skills::{SkillRegistry, Skills};
use windlass_store::{Options, Store};
use windlass_tools::shell::CommandLimits;
use windlass_tools::workspace::{Places, Workspace};
use windlass_tools::{Call, Ledger, Notices, Prepared, Registry, Shell, TaskFacts, ToolContext};

/// Commands on the host: what isolates them has tests of its own.
fn shell(workspace: &Path, store: Store) -> Shell {
    let (data, workspace) = (store.dir().root().to_owned(), workspace.to_owned());
    let environment: Vec<_> = std::env::vars().collect();
    let host = Host::new(data, workspace.clone(), &environment, &[]).unwrap();
    let limits = CommandLimits {
        default_timeout: Duration::from_secs(120),
        max_timeout: Duration::from_secs(600),
        shown_bytes: 32_000,
    };
    let gate = Context::new(workspace.display().to_string(), "/nowhere");
    let task = TaskId::derived("bench", "task");
    Shell::new(Arc::new(host), store, task, Arc::new(Timestamp::now), limits, gate)
}

/// A directory with a workspace `ws` in it and room beside it.
pub struct Bench {
    pub outside: TempDir,
    pub world: ToolContext,
    pub registry: Registry,
    pub facts: TaskFacts,
    pub stop: CancellationToken,
    pub store: Store,
    _data: TempDir,
    calls: u32,
}

impl Bench {
    pub fn new() -> Self {
        Self::with(|_| Places::default())
    }

    /// With places made beside the workspace.
    pub fn with(places: impl FnOnce(&Path) -> Places) -> Self {
        let outside = tempfile::tempdir().unwrap();
        std::fs::create_dir(outside.path().join("ws")).unwrap();
        let workspace =
            Workspace::open(&outside.path().join("ws"), places(outside.path())).unwrap();
        let data = tempfile::tempdir().unwrap();
        let store = Store::open(data.path(), Options::default()).unwrap();
        let world = ToolContext {
            workspace: Arc::new(workspace),
            skills: SkillRegistry::fixed(Skills::empty()),
            embeddings: None,
            pictures: store.pictures(),
            ledger: Ledger { store: store.clone(), clock: Arc::new(jiff::Timestamp::now) },
            shell: Arc::new(shell(&outside.path().join("ws"), store.clone())),
            notices: Notices::default(),
        };
        Self {
            outside,
            world,
            registry: Registry::builtin(),
            facts: TaskFacts::default(),
            stop: CancellationToken::new(),
            store,
            _data: data,
            calls: 0,
        }
    }

    /// With these skills.
    pub fn with_skills(mut self, skills: Skills) -> Self {
        self.world.skills = SkillRegistry::fixed(skills);
        self
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.outside.path().join("ws").join(name)
    }

    /// Puts a file into the workspace behind the agent's back.
    pub fn put(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    pub fn text(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    pub fn next_call(&mut self) -> CallId {
        self.calls += 1;
        CallId::derived("bench", &self.calls.to_string())
    }

    /// The call that was made last.
    pub fn last_call(&self) -> CallId {
        CallId::derived("bench", &self.calls.to_string())
    }

    /// Repeats a call until its text contains something; fails when it never does.
    pub async fn poll(&mut self, tool: &str, arguments: Value, wanted: &str) -> String {
        let mut seen = String::new();
        let mut again = tokio::time::interval(Duration::from_millis(2));
        for _ in 0..10_000 {
            again.tick().await;
            let text = self.ok(tool, arguments.clone()).await;
            if text.contains(wanted) {
                return text;
            }
            seen = text;
        }
        panic!("`{tool}` never said `{wanted}`; at last: {seen}");
    }

    /// Checks and prepares a call.
    pub async fn prepare(&mut self, tool: &str, arguments: Value) -> Result<Prepared, Outcome> {
        let id = self.next_call();
        let arguments = self.registry.check(tool, &arguments.to_string())?;
        let facts = Arc::new(self.facts.clone());
        let (limit_tokens, stop) = (8_000, self.stop.clone());
        let live = windlass_tools::LiveOutput::default();
        let call = Call { id, arguments, facts, limit_tokens, stop, live };
        self.registry.get(tool).unwrap().prepare(&self.world, call).await
    }

    /// Runs a call to its outcome and remembers what follows from it, as the task's state does.
    pub async fn call(&mut self, tool: &str, arguments: Value) -> Outcome {
        let outcome = match self.prepare(tool, arguments).await {
            Ok(prepared) => (prepared.act)().await,
            Err(outcome) => outcome,
        };
        for fact in &outcome.facts {
            match fact {
                Fact::FileRead { path, hash } | Fact::FileChanged { path, hash, .. } => {
                    self.facts.known_files.insert(path.clone(), hash.clone());
                }
                Fact::WorkingDirectory { path } => {
                    self.facts.working_directory = Some(path.clone());
                }
                Fact::Plan(_)
                | Fact::Published(_)
                | Fact::SkillRead { .. }
                | Fact::Evidence(_)
                | Fact::Verdict(_)
                | Fact::BackgroundStarted { .. } => {}
            }
        }
        outcome
    }

    /// The text of a call that works.
    pub async fn ok(&mut self, tool: &str, arguments: Value) -> String {
        let outcome = self.call(tool, arguments).await;
        assert_eq!(outcome.ending, CallEnding::Ok, "{}", outcome.text);
        outcome.text
    }

    /// The text of a call that fails.
    pub async fn error(&mut self, tool: &str, arguments: Value) -> String {
        let outcome = self.call(tool, arguments).await;
        assert_eq!(outcome.ending, CallEnding::Error, "{}", outcome.text);
        assert!(outcome.facts.is_empty(), "a failed call leaves no facts");
        outcome.text
    }

    /// Class, risk and reason of a call that is not run.
    pub async fn assessed(&mut self, tool: &str, arguments: Value) -> String {
        match self.prepare(tool, arguments).await {
            Ok(Prepared { assessment: it, .. }) => {
                format!("{} {}: {}", it.class, it.risk, it.reason)
            }
            Err(outcome) => panic!("{}", outcome.text),
        }
    }
}
