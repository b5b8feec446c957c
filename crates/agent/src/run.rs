//! The agent loop: ask the model, run what it asks for, journal both, repeat.
//!
//! Invariants:
//! - State is a fold: the loop remembers nothing. What comes next is a question to the state, so a
//!   resumed task and an unbroken one behave the same. (ES-045)
//! - Journal first: a reply is committed before any of its calls starts.
//! - Bounded: it ends by a final reply, a limit, a question or a signal. (ES-104, ES-105)

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;
use windlass_core::command::CompactionOverrides;
use windlass_core::command::TaskResult;
use windlass_core::error::{ErrorDetails, ErrorType};
use windlass_core::event::{
    AgentStart, CommandExited, DoomLoopDetected, Event, LlmRequest, LlmResponse, SandboxLost,
    StatusChanged,
};
use windlass_core::guard::Intervention;
use windlass_core::id::{CallId, TaskId};
use windlass_core::message::{Prelude, ToolRequest};
use windlass_core::policy::allow::DenyRule;
use windlass_core::policy::pattern::Pattern;
use windlass_core::state::{FoldError, Next, Signal, TaskState};
use windlass_core::status::{StatusReason, TaskStatus};
use windlass_model::{Live, Model, Options, Reply};
use windlass_store::Level;
use windlass_tools::registry::reachable_under;
use windlass_tools::shell::Exited;
use windlass_tools::{Registry, World};

use crate::interrupt::{Interrupt, Watch};
use crate::journal::Journal;
use crate::prompt::{self, Surroundings};
use crate::report;

/// What one agent works with; chosen by the coordinator, fixed for the segment.
pub struct Agent {
    /// Who answers.
    pub model: Arc<dyn Model>,
    /// What it can do.
    pub registry: Arc<Registry>,
    /// What its tools work with.
    pub world: World,
    /// Its limits and surroundings.
    pub settings: Settings,
    /// Where previews go; they are not journaled.
    pub previews: broadcast::Sender<Preview>,
}

/// The limits and surroundings of one agent.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Limit of tool rounds.
    pub max_iterations: u32,
    /// Limit of active time.
    pub timeout: Option<Duration>,
    /// Largest tool result in the context, in tokens.
    pub tool_output_max_tokens: u64,
    /// What is never run, whatever else is allowed.
    pub deny: Vec<DenyRule>,
    /// What `restricted` allows besides.
    pub allow: Vec<Pattern>,
    /// Compaction settings in force.
    pub compaction: CompactionOverrides,
    /// Where effects happen.
    pub container: String,
    /// How strong that is, in words.
    pub footing: String,
    /// The workspace as the agent sees it.
    pub workspace: String,
    /// What the project's own files tell agents.
    pub instructions: Option<String>,
    /// What is remembered from earlier work.
    pub memories: Vec<String>,
}

/// Something seen before it is journaled; a retry makes it void.
#[derive(Clone, Debug)]
pub struct Preview {
    /// Whose.
    pub task: TaskId,
    /// What.
    pub live: Live,
}

/// Why a loop could not go on at all; the task is left as its journal says.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The journal could not be read or written.
    #[error("the journal could not be read or written")]
    Store(#[from] windlass_store::Error),
    /// The trace could not be written.
    #[error("the trace could not be written")]
    Trace(#[from] io::Error),
    /// The journal contradicts itself.
    #[error("the journal of `{task}` contradicts itself")]
    Corrupt {
        /// The task.
        task: TaskId,
        /// How.
        source: FoldError,
    },
    /// There is no such journal.
    #[error("`{task}` has no journal")]
    Empty {
        /// The task.
        task: TaskId,
    },
}

/// How a segment ends.
#[derive(Debug)]
pub(crate) enum Ending {
    /// With a final reply.
    Done,
    /// On an open question.
    Blocked,
    /// By a person, a schedule or the end of the process.
    Paused(StatusReason),
    /// For good, by a person.
    Cancelled(Option<String>),
    /// For good, by an error or a limit.
    Failed(ErrorDetails),
}

impl Agent {
    /// Works on the task until the segment ends, and journals how.
    pub async fn run(
        &self,
        task: &mut Journal,
        stop: &CancellationToken,
    ) -> Result<TaskResult, Error> {
        task.drain().await?;
        let ending = match self.reason_not_to_start(task) {
            Some(ending) => ending,
            None => {
                self.start(task)?;
                self.work(task, stop).await?
            }
        };
        self.end(task, ending).await
    }

    async fn work(&self, task: &mut Journal, stop: &CancellationToken) -> Result<Ending, Error> {
        loop {
            task.drain().await?;
            self.report_exits(task)?;
            if let Some(ending) = self.signalled(task, stop) {
                return Ok(ending);
            }
            let step = match task.state().next() {
                Next::AskModel => self.ask(task, stop).await?,
                Next::RunCalls => self.run_calls(task, stop).await?,
                Next::Wait(_) => return Ok(Ending::Blocked),
                Next::Finish(_) => return Ok(Ending::Done),
            };
            if let Some(ending) = step {
                return Ok(ending);
            }
            if let Some(ending) = self.guard(task)? {
                return Ok(ending);
            }
        }
    }

    /// A task that waits for an answer is not started only to wait again.
    fn reason_not_to_start(&self, task: &Journal) -> Option<Ending> {
        match (&task.state().signal, task.state().next()) {
            (Some(Signal::Cancel(reason)), _) => Some(Ending::Cancelled(reason.clone())),
            (_, Next::Wait(_)) => Some(Ending::Blocked),
            _ => None,
        }
    }

    fn start(&self, task: &mut Journal) -> Result<(), Error> {
        let state = task.state();
        let command = state.command();
        let tools = self.registry.specs(reachable_under(state.axes.permission_profile));
        let first = task.transcript().is_none();
        let skills: Vec<_> = Vec::new();
        let prelude = first.then(|| Prelude {
            system: prompt::system(&Surroundings {
                tools: &tools,
                axes: state.axes,
                workspace: &self.settings.workspace,
                skills: &skills,
                instructions: self.settings.instructions.as_deref(),
            }),
            tools: tools.clone(),
        });
        let context =
            if first { prompt::opening(command, &self.settings.memories) } else { Vec::new() };
        let start = AgentStart {
            task_id: command.task_id,
            goal: command.goal.clone(),
            model: self.model.name().to_string(),
            container: self.settings.container.clone(),
            tools: tools.iter().map(|tool| tool.name.clone()).collect(),
            risk_policy: state.axes.permission_profile.to_string(),
            max_iterations: self.settings.max_iterations,
            timeout_ms: self.settings.timeout.map(|limit| limit.as_millis() as u64),
            compaction_config: serde_json::to_value(&self.settings.compaction).unwrap_or_default(),
            prelude,
            context,
        };
        tracing::info!(task_id = %start.task_id, goal = %start.goal, model = %start.model, "Task started");
        let running = task.moved(TaskStatus::Running, StatusReason::User).map(Event::StatusChanged);
        let lost = lost_with_the_sandbox(state).map(Event::SandboxLost);
        let started = Event::AgentStart(Box::new(start));
        let events = running.into_iter().chain([started]).chain(lost).collect();
        task.note(events)
    }

    /// Tells the agent which of its background commands have ended.
    fn report_exits(&self, task: &mut Journal) -> Result<(), Error> {
        if task.state().final_text.is_some() {
            return Ok(());
        }
        let events: Vec<_> = self.world.shell.exited().into_iter().map(exited).collect();
        task.note(events)
    }

    /// Signals in their order: cancelled, paused, out of time, out of rounds (ES-108).
    fn signalled(&self, task: &Journal, stop: &CancellationToken) -> Option<Ending> {
        let state = task.state();
        match &state.signal {
            Some(Signal::Cancel(reason)) => return Some(Ending::Cancelled(reason.clone())),
            Some(Signal::Pause) => return Some(Ending::Paused(StatusReason::User)),
            None => {}
        }
        if stop.is_cancelled() {
            return Some(Ending::Paused(StatusReason::Shutdown));
        }
        let used = Duration::from_millis(state.active_ms(task.now()));
        if self.settings.timeout.is_some_and(|limit| used >= limit) {
            return Some(Ending::Failed(self.timed_out()));
        }
        let rounds = state.usage.iterations;
        if state.next() == Next::RunCalls && rounds >= self.settings.max_iterations {
            let message = format!("the agent used up its {rounds} tool rounds");
            return Some(Ending::Failed(
                ErrorDetails::new(ErrorType::MaxIterationsExceeded, message)
                    .hinted("raise `agent.max_iterations` (AGENT_MAX_ITERATIONS) and retry"),
            ));
        }
        None
    }

    /// One reply of the model, journaled.
    async fn ask(
        &self,
        task: &mut Journal,
        stop: &CancellationToken,
    ) -> Result<Option<Ending>, Error> {
        let (messages, hash) =
            task.transcript().map_or((0, String::new()), |sent| (sent.len(), sent.hash()));
        let request = LlmRequest {
            model: self.model.name().to_string(),
            messages,
            estimated_tokens: task.estimated_tokens(),
            hash,
        };
        task.commit(vec![Event::LlmRequest(request)], Level::Written).await?;

        let watch = Watch::over(task, self.settings.timeout, stop);
        let Some(transcript) = task.transcript() else {
            return Err(Error::Empty { task: task.task() });
        };
        let (id, previews) = (task.task(), &self.previews);
        let mut live = |live: Live| {
            // Nobody listening is fine: previews are for surfaces that happen to be there.
            let _ = previews.send(Preview { task: id, live });
        };
        let options = Options::default();
        let reply = tokio::select! {
            reply = self.model.reply(transcript, &options, &mut live) => reply,
            interrupt = watch.interrupted() => return self.interrupted(interrupt?),
        };
        match reply {
            Ok(reply) => {
                let response = self.response(task, reply);
                task.note(vec![Event::LlmResponse(response)])?;
                Ok(None)
            }
            Err(error) => Ok(Some(Ending::Failed(report::model_error(&error)))),
        }
    }

    /// A cancel and the end of the process are found by the loop itself; time is told here.
    fn interrupted(&self, interrupt: Interrupt) -> Result<Option<Ending>, Error> {
        Ok(match interrupt {
            Interrupt::Cancel | Interrupt::Shutdown => None,
            Interrupt::Timeout => Some(Ending::Failed(self.timed_out())),
        })
    }

    pub(crate) fn timed_out(&self) -> ErrorDetails {
        let limit = self.settings.timeout.unwrap_or_default().as_secs_f64();
        ErrorDetails::new(
            ErrorType::Timeout,
            format!("the task used up its {limit} s of active time"),
        )
        .hinted("give it more time with `--timeout` (AGENT_TIMEOUT_SECONDS) and retry")
    }

    fn response(&self, task: &Journal, reply: Reply) -> LlmResponse {
        let now = task.now();
        let calls = reply.calls.into_iter().map(|call| ToolRequest {
            id: CallId::new(now),
            provider_id: call.provider_id,
            name: call.name,
            arguments: call.arguments,
        });
        LlmResponse {
            text: reply.text,
            calls: calls.collect(),
            finish: reply.finish,
            usage: reply.usage,
            model: reply.model,
            latency_ms: reply.latency.as_millis() as u64,
        }
    }

    /// Tells an agent that repeats itself, and gives up on one that does not listen (ES-264…269).
    fn guard(&self, task: &mut Journal) -> Result<Option<Ending>, Error> {
        if !task.state().open_calls.is_empty() {
            return Ok(None);
        }
        match task.state().guard.verdict() {
            None => Ok(None),
            Some(Intervention::Nudge { pattern, number, message }) => {
                tracing::warn!(task_id = %task.task(), pattern, "Doom loop detected");
                let message = message.to_owned();
                let detected = DoomLoopDetected { pattern, intervention: number, message };
                task.note(vec![Event::DoomLoopDetected(detected)])?;
                Ok(None)
            }
            Some(Intervention::Fail { pattern }) => {
                let message = "the agent kept repeating itself after three interventions";
                let error = ErrorDetails::new(ErrorType::DoomLoop, message);
                Ok(Some(Ending::Failed(error.diagnosed(pattern))))
            }
        }
    }

    /// Journals the ending: the status it leaves the task in, and the result.
    async fn end(&self, task: &mut Journal, ending: Ending) -> Result<TaskResult, Error> {
        let (to, reason, detail, error) = match ending {
            Ending::Done => (TaskStatus::Done, StatusReason::Finished, None, None),
            Ending::Blocked => (TaskStatus::Blocked, StatusReason::Question, None, None),
            Ending::Paused(reason) => (TaskStatus::Paused, reason, None, None),
            Ending::Cancelled(why) => (TaskStatus::Cancelled, StatusReason::User, why, None),
            Ending::Failed(error) => {
                let reason = match error.error_type {
                    ErrorType::Timeout => StatusReason::Timeout,
                    ErrorType::Deadline => StatusReason::Deadline,
                    _ => StatusReason::Error,
                };
                (TaskStatus::Failed, reason, Some(error.message.clone()), Some(error))
            }
        };
        let mut events = Vec::new();
        if to != task.state().status {
            let from = task.state().status;
            events.push(Event::StatusChanged(StatusChanged {
                from,
                to,
                reason,
                detail,
                error: error.clone(),
            }));
        }
        let result = report::result(task, to, reason, error);
        report::log(task, &result);
        events.push(Event::AgentEnd(Box::new(result.clone())));
        task.commit(events, Level::Synced).await?;
        Ok(result)
    }
}

fn exited(Exited { call, command, exit }: Exited) -> Event {
    let message = format!("Background command `{call}` (`{command}`) has ended: {exit}.");
    Event::CommandExited(CommandExited { call, command, exit, message })
}

/// Background commands end with the segment that started them; a later one tells the agent.
fn lost_with_the_sandbox(state: &TaskState) -> Option<SandboxLost> {
    let (call, command) = state.background.first_key_value()?;
    let more = match state.background.len() - 1 {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let reason = "the process that ran it ended".to_owned();
    let message = format!(
        "The sandbox was started anew. Background command `{call}` (`{command}`){more} ended with the \
         old one."
    );
    Some(SandboxLost { reason, message })
}
