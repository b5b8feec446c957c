//! What agents work with on a stage: the test server's model, a shell without isolation, a fixed set of
//! skills.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::broadcast;
use windlass_agent::{ContractInForce, Parts, Preview, Settings, Summarizer, budget, tree};
use windlass_coordinator::{AgentFactory, BoxFuture};
use windlass_core::command::{CompactionOverrides, Outage};
use windlass_core::error::{ErrorDetails, ErrorType};
use windlass_core::guard::Thresholds;
use windlass_core::id::TaskId;
use windlass_core::policy::RuleSet;
use windlass_core::state::TaskState;
use windlass_model::{Model, Models, Provider, Retry, Wire};
use windlass_sandbox::Host;
use windlass_shell::Context;
use windlass_skills::{Scope, Skill, SkillRegistry, Skills};
use windlass_store::Store;
use windlass_tools::shell::CommandLimits;
use windlass_tools::workspace::{Places, Workspace};
use windlass_tools::{Ledger, Notices, Registry, Shell, ToolContext};

use super::scene::{self, Scene};

/// The largest tool result in the context, in tokens, unless a scene says otherwise.
const OUTPUT_TOKENS: u64 = 8_000;
/// The context window, in tokens, unless a scene says otherwise.
const WINDOW: u64 = 128_000;
/// Tests do not wait for a model that fails on purpose.
const FIRST_RETRY: Duration = Duration::from_millis(1);

pub(super) struct Props {
    base: String,
    store: Store,
    limits: scene::SceneLimits,
    vision: bool,
    instructions: Option<String>,
    skills: PathBuf,
    rules: RuleSet,
    contract: Option<Arc<ContractInForce>>,
}

impl Props {
    pub(super) fn new(base: String, store: Store, scene: &Scene, root: &Path) -> Self {
        let (limits, instructions) = (scene.limits, scene.instructions.clone());
        Self {
            base,
            store,
            limits,
            vision: scene.vision,
            instructions,
            skills: root.join(scene::SKILLS),
            rules: scene.rules(),
            contract: scene.contract(),
        }
    }

    fn agent(
        &self,
        task: &TaskState,
        previews: broadcast::Sender<Preview>,
    ) -> Result<Parts, ErrorDetails> {
        let model =
            self.model("openai/scripted", Retry { base: FIRST_RETRY, ..Retry::default() })?;
        let directory = Path::new(&task.created.workspace);
        // As a container would show it, so that what the model reads is the same in every run.
        let places = Places { layout: task.created.layout(), ..Places::default() };
        let workspace = Workspace::open(directory, places).map_err(|e| internal(&e))?;
        let world = ToolContext {
            workspace: Arc::new(workspace),
            skills: SkillRegistry::fixed(Skills::load(
                &[(self.skills.clone(), Scope::User)],
                &(Arc::new(|_: &windlass_skills::Skill| false) as windlass_skills::ApprovalFn),
            )),
            notices: Notices::default(),
            embeddings: None,
            pictures: self.store.pictures(),
            ledger: Ledger { store: self.store.clone(), clock: Arc::new(Timestamp::now) },
            shell: Arc::new(self.shell(directory, task.id()).map_err(|e| internal(&e))?),
        };
        let window = self.limits.window.unwrap_or(WINDOW);
        let summarizer = Summarizer { model: model.clone(), window, price: None };
        let wishes = &task.command().execution_config;
        let settings = Settings {
            timeout: wishes.timeout_seconds.map(Duration::from_secs),
            outage: wishes.outage.unwrap_or_else(|| task.created.outage_by_origin()),
            ..self.settings()
        };
        let registry = Arc::new(Registry::builtin());
        let memory = None;
        let trusted = Arc::new(|_: &Skill| true);
        let models = None;
        Ok(Parts {
            model,
            summarizer,
            registry,
            world,
            settings,
            memory,
            trusted,
            previews,
            models,
        })
    }

    fn settings(&self) -> Settings {
        let compaction = CompactionOverrides {
            context_window_tokens: self.limits.window,
            response_reserve_tokens: self.limits.window.map(|_| 0),
            preserve_recent_turns: self.limits.recent_turns,
            memory_flush_enabled: self.limits.flush,
            ..CompactionOverrides::default()
        };
        Settings {
            max_iterations: self.limits.max_iterations.unwrap_or(200),
            timeout: None,
            outage: Outage::Park,
            tool_output_max_tokens: self.limits.output_tokens.unwrap_or(OUTPUT_TOKENS),
            rules: self.rules.clone(),
            bound_by: Vec::new(),
            shows_ledger: false,
            contract: self.contract.clone(),
            compaction,
            container: "host".to_owned(),
            sandbox_gaps: String::new(),
            instructions: self.instructions.clone(),
            environment: None,
            compact_at_plan_step: false,
            guard: Thresholds::default(),
            sub_agent_timeout: Duration::from_secs(300),
            sub_agents: tree::AgentLimits { max_depth: 2, max_agents: 32 },
            budget: budget::SpendingLimits {
                turns: self.limits.turns,
                ..budget::SpendingLimits::default()
            },
            price: None,
        }
    }

    fn model(&self, name: &str, retry: Retry) -> Result<Arc<dyn Model>, ErrorDetails> {
        let provider = Provider::new(Wire::Chat, &self.base, None);
        let providers = [("openai".to_owned(), provider)].into();
        let vision = [(name.to_owned(), self.vision)].into();
        let settings = windlass_model::Settings { providers, retry, vision, ..Default::default() };
        let name = name.parse().map_err(|error| internal(&error))?;
        Models::new(settings).open(&name).map_err(|error| internal(&error))
    }

    fn shell(&self, directory: &Path, task: TaskId) -> Result<Shell, windlass_sandbox::Error> {
        let environment: Vec<_> = std::env::vars().collect();
        let data = self.store.dir().root().to_owned();
        let host = Host::new(data, directory.to_owned(), &environment, &[])?;
        let limits = CommandLimits {
            default_timeout: Duration::from_secs(120),
            max_timeout: Duration::from_secs(600),
            shown_bytes: 32_000,
        };
        let gate = Context::new(directory.display().to_string(), "/nowhere");
        let clock = Arc::new(Timestamp::now);
        Ok(Shell::new(Arc::new(host), self.store.clone(), task, clock, limits, gate))
    }
}

fn internal(error: &dyn std::fmt::Display) -> ErrorDetails {
    ErrorDetails::new(ErrorType::Internal, error.to_string())
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
