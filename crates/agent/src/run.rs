//! The agent loop: ask the model, run what it asks for, journal both, repeat.
//!
//! Invariants:
//! - State is a fold: the loop remembers nothing. What comes next is a question to the state, so a
//!   resumed task and an unbroken one behave the same. (ES-045)
//! - Journal first: a reply is committed before any of its calls starts.
//! - Bounded: it ends by a final reply, a limit, a question or a signal. (ES-104, ES-105)

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;
use windlass_core::command::TaskResult;
use windlass_core::error::{ErrorDetails, ErrorType};
use windlass_core::event::{
    AgentStart, CommandExited, DoomLoopDetected, Event, LlmRequest, LlmResponse, SandboxLost,
};
use windlass_core::guard::{Intervention, Thresholds};
use windlass_core::id::{CallId, InjectionId};
use windlass_core::injection::Injection;
use windlass_core::message::{Prelude, ToolRequest};
use windlass_core::state::{Next, TaskState};
use windlass_core::status::{StatusReason, TaskStatus};
use windlass_model::{Fault, Options, Reply, StreamEvent};
use windlass_skills::{Viewer, change_notice};
use windlass_store::Level;
use windlass_tools::shell::Exited;

use crate::budget::Reservation;
use crate::compaction::Room;
use crate::ending::Ending;
use crate::interrupt::{Interrupt, Watch};
use crate::journal::Journal;
use crate::memory::Recalled;
use crate::prompt::{self, Surroundings};
use crate::report;
use crate::spans;
use crate::tree::Tree;
use crate::{Error, Parts, Preview};

/// The longest that a model's server may have a task wait; one that asks for more has failed it.
const LONGEST_HOLD: Duration = Duration::from_secs(7 * 24 * 3600);

/// How long a task is parked at least: an end and a new start of everything should be worth it. Doubled each
/// time in a row, so often.
const SHORTEST_HOLD: Duration = Duration::from_secs(60);
const MAX_DOUBLINGS: u32 = 6;

/// Times in a row that a server may have a task wait, about a day with the shortest waits; then it has failed
/// it.
const MAX_HOLDS: u32 = 24;

/// One agent: its parts, and the tree it belongs to.
pub struct Agent {
    pub(crate) parts: Parts,
    pub(crate) tree: Arc<Tree>,
}

impl Agent {
    /// Puts an agent together.
    pub fn new(parts: Parts, tree: Arc<Tree>) -> Self {
        Self { parts, tree }
    }

    /// Ends what its commands left running, and its sandbox.
    pub async fn close(&self) {
        self.parts.world.shell.close().await;
    }

    /// Works on the task until the segment ends, and journals how.
    pub async fn run(
        &self,
        task: &mut Journal,
        stop: &CancellationToken,
    ) -> Result<TaskResult, Error> {
        let span = spans::agent(task.task(), &self.parts.model.name().to_string());
        let result = self.segment(task, stop).instrument(span.clone()).await?;
        span.record("windlass.status", result.status.to_string());
        Ok(result)
    }

    async fn segment(
        &self,
        task: &mut Journal,
        stop: &CancellationToken,
    ) -> Result<TaskResult, Error> {
        task.drain().await?;
        // Sub-agents may spend what a person has just granted, before this agent asks again.
        self.tree.budget().heard(task.task(), &task.state().spending);
        let ending = match self.reason_not_to_start(task) {
            Some(ending) => ending,
            None => self.start_and_work(task, stop).await?,
        };
        self.conclude(task, ending, stop).await
    }

    async fn start_and_work(
        &self,
        task: &mut Journal,
        stop: &CancellationToken,
    ) -> Result<Ending, Error> {
        match self.start(task).await? {
            Some(ending) => Ok(ending),
            None => self.work(task, stop).await,
        }
    }

    /// Ends the segment. Somebody may speak up between the last look into the mailbox and the end; what
    /// was accepted is heard, so the work goes on then.
    async fn conclude(
        &self,
        task: &mut Journal,
        mut ending: Ending,
        stop: &CancellationToken,
    ) -> Result<TaskResult, Error> {
        loop {
            if matches!(ending, Ending::OverBudget) {
                self.ask_about_budget(task).await?;
            }
            // By itself, because an end that is refused takes nothing else back.
            task.commit(Vec::new(), Level::Written).await?;
            match self.end(task, ending).await {
                Err(Error::Store(windlass_store::Error::MailWaits(_))) => {
                    ending = match task.state().status {
                        TaskStatus::Running => self.work(task, stop).await?,
                        _ => self.start_and_work(task, stop).await?,
                    };
                }
                ended => return ended,
            }
        }
    }

    async fn work(&self, task: &mut Journal, stop: &CancellationToken) -> Result<Ending, Error> {
        loop {
            task.drain().await?;
            self.report_exits(task).await?;
            self.report_news(task).await?;
            if let Some(ending) = self.report_place(task).await? {
                return Ok(ending);
            }
            if let Some(ending) = self.signalled(task, stop) {
                return Ok(ending);
            }
            let step = match task.state().next() {
                Next::AskModel => match self.room(task) {
                    Room::Enough => self.ask(task, stop).await?,
                    Room::SaveNotes => self.save_notes(task).await?,
                    Room::Needed(_) if self.yields(task) => {
                        return Ok(Ending::Paused(StatusReason::ContextFull));
                    }
                    Room::Needed(trigger) => self.begin_compaction(task, trigger).await?,
                },
                Next::Compact => self.compact(task, stop).await?,
                Next::RunCalls => self.run_calls(task, stop).await?,
                Next::Wait(_) => return Ok(Ending::Blocked),
                Next::Finish(_) => return Ok(self.finished(task)),
            };
            if let Some(ending) = step {
                return Ok(ending);
            }
            if let Some(ending) = self.guard(task).await? {
                return Ok(ending);
            }
        }
    }

    async fn start(&self, task: &mut Journal) -> Result<Option<Ending>, Error> {
        let state = task.state();
        let command = state.command();
        let tools = self.parts.registry.specs(self.offered(state));
        let first = task.transcript().is_none();
        let (shelf, viewer) = (self.parts.world.skills.current(), Viewer::of(&state.axes));
        let skills = shelf.listing(viewer);
        // Tools that came or went since the last segment are told: a new epoch, with the same messages.
        let anew = first || task.context().tools() != Some(tools.as_slice());
        let prelude = anew.then(|| {
            let about = Surroundings {
                tools: &tools,
                axes: state.axes,
                workspace: &self.parts.settings.workspace,
                skills: &skills,
                instructions: self.parts.settings.instructions.as_deref(),
            };
            let system = match state.created.parent {
                None => prompt::system(&about),
                Some(_) => prompt::minimal(&about),
            };
            Prelude { system, tools: tools.clone() }
        });
        let recalled = match &self.parts.memory {
            Some(memory) if first => memory.recall(command).await,
            Some(_) | None => Ok(Recalled::default()),
        };
        let (recalled, unable) = match recalled {
            Ok(recalled) => (recalled, None),
            Err(error) => (Recalled::default(), Some(Ending::Failed(error))),
        };
        // A task that fails before it begins is begun when it is tried again.
        let begins = first && unable.is_none();
        let prelude = prelude.filter(|_| begins || !first);
        let told = prelude.is_some().then(|| shelf.versions(viewer));
        let context = if begins { prompt::opening(command, &recalled) } else { Vec::new() };
        let start = AgentStart {
            task_id: command.task_id,
            goal: command.goal.clone(),
            model: self.parts.model.name().to_string(),
            container: self.parts.settings.container.clone(),
            footing: self.parts.settings.footing.clone(),
            tools: tools.iter().map(|tool| tool.name.clone()).collect(),
            risk_policy: state.axes.permission_profile.to_string(),
            max_iterations: self.parts.settings.max_iterations,
            timeout_ms: self.parts.settings.timeout.map(|limit| limit.as_millis() as u64),
            compaction_config: serde_json::to_value(&self.parts.settings.compaction)
                .unwrap_or_default(),
            guard: Some(self.parts.settings.guard).filter(|guard| *guard != Thresholds::default()),
            prelude,
            skills: told.unwrap_or_default(),
            context,
        };
        let running = task.moved(TaskStatus::Running, StatusReason::User).map(Event::StatusChanged);
        let lost = lost_with_the_sandbox(state).map(Event::SandboxLost);
        let started = Event::AgentStart(Box::new(start));
        let events = running.into_iter().chain([started]).chain(lost).collect();
        task.commit(events, Level::Written).await?;
        Ok(unable)
    }

    /// Tells the agent which of its background commands have ended.
    async fn report_exits(&self, task: &mut Journal) -> Result<(), Error> {
        if task.state().final_text.is_some() {
            return Ok(());
        }
        let events: Vec<_> = self.parts.world.shell.exited().into_iter().map(exited).collect();
        if events.is_empty() { Ok(()) } else { task.commit(events, Level::Written).await }
    }

    /// Tells the agent what changed around it: skills, and what other parts have put into the news.
    async fn report_news(&self, task: &mut Journal) -> Result<(), Error> {
        let state = task.state();
        if state.next() != Next::AskModel {
            return Ok(());
        }
        let viewer = Viewer::of(&state.axes);
        let skills = change_notice(&state.told_skills, &self.parts.world.skills.current(), viewer);
        let others = self.parts.world.notices.take().into_iter().map(|text| (text, None));
        let told = others.chain(skills.map(|(text, told)| (text, Some(told))));
        let event = |(text, told): (String, Option<_>)| {
            let id = InjectionId::new(task.now());
            Event::InjectionReceived(Injection::notice(id, text, told.as_ref()))
        };
        let events: Vec<_> = told.map(event).collect();
        if events.is_empty() { Ok(()) } else { task.commit(events, Level::Written).await }
    }

    /// One reply of the model, journaled.
    async fn ask(
        &self,
        task: &mut Journal,
        stop: &CancellationToken,
    ) -> Result<Option<Ending>, Error> {
        let (messages, hash) =
            task.transcript().map_or((0, String::new()), |sent| (sent.len(), sent.hash()));
        let tokens = task.estimated_tokens();
        if self.tree.budget().may_wait() {
            // Others of the tree may have to settle first, and nothing noted waits that long.
            task.commit(Vec::new(), Level::Written).await?;
        }
        let reserved = match self.afford(task, self.parts.settings.price, tokens).await {
            Ok(reserved) => reserved,
            Err(_) => return Ok(Some(Ending::OverBudget)),
        };
        let gauge = self.limits().gauge(tokens);
        let request = LlmRequest {
            model: self.parts.model.name().to_string(),
            messages,
            estimated_tokens: tokens,
            hash,
            context: Some(gauge),
            reserved_usd: reserved.as_ref().map(Reservation::usd).filter(|usd| *usd > 0.0),
        };
        task.commit(vec![Event::LlmRequest(request)], Level::Written).await?;
        task.show_usage(gauge.percent).await?;

        let watch = Watch::over(task, self.parts.settings.timeout, stop);
        let Some(transcript) = task.transcript() else {
            return Err(Error::Empty { task: task.task() });
        };
        let (id, previews) = (task.task(), &self.parts.previews);
        let mut live = |live: StreamEvent| {
            // Nobody listening is fine: previews are for surfaces that happen to be there.
            let _ = previews.send(Preview { task: id, live });
        };
        let options = Options::default();
        let span = spans::chat(id, &self.parts.model.name().to_string());
        let reply = tokio::select! {
            reply = self.parts.model.reply(transcript, &options, &mut live).instrument(span.clone()) => reply,
            interrupt = watch.interrupted() => return self.interrupted(interrupt?),
        };
        match reply {
            Ok(reply) => {
                let response = self.response(task, reply);
                let usage = response.usage;
                span.record("gen_ai.usage.input_tokens", usage.input_tokens);
                span.record("gen_ai.usage.output_tokens", usage.output_tokens);
                task.note(vec![Event::LlmResponse(response)])?;
                self.paid(task, reserved, &usage, 1).await?;
                Ok(None)
            }
            Err(error) => self.refused(task, &error).await,
        }
    }

    /// A context that the provider finds too long is compacted once and sent once more.
    async fn refused(
        &self,
        task: &mut Journal,
        error: &windlass_model::Error,
    ) -> Result<Option<Ending>, Error> {
        let too_long = matches!(error.fault, Fault::ContextLength { .. });
        if too_long && !task.state().cycle.forced {
            tracing::warn!(task_id = %task.task(), %error, "Context refused as too long");
            return self.shorten(task).await;
        }
        let held = held(task.now(), task.state().holds, error);
        Ok(Some(held.unwrap_or(Ending::Failed(report::model_error(error)))))
    }

    /// A cancel and the end of the process are found by the loop itself; time is told here.
    fn interrupted(&self, interrupt: Interrupt) -> Result<Option<Ending>, Error> {
        Ok(match interrupt {
            Interrupt::Cancel | Interrupt::Shutdown => None,
            Interrupt::Timeout => Some(Ending::Failed(self.timed_out())),
        })
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
    async fn guard(&self, task: &mut Journal) -> Result<Option<Ending>, Error> {
        if !task.state().open_calls.is_empty() {
            return Ok(None);
        }
        match task.state().guard.verdict() {
            None => Ok(None),
            Some(Intervention::Nudge { pattern, number, message }) => {
                let message = message.to_owned();
                let detected = DoomLoopDetected { pattern, intervention: number, message };
                task.commit(vec![Event::DoomLoopDetected(detected)], Level::Written).await?;
                Ok(None)
            }
            Some(Intervention::Fail { pattern }) => {
                let message = "the agent kept repeating itself after three interventions";
                let error = ErrorDetails::new(ErrorType::DoomLoop, message);
                Ok(Some(Ending::Failed(error.diagnosed(pattern))))
            }
        }
    }
}

/// Who is told to stay away, for long or once more, parks until then; nothing is held meanwhile (ES-378).
fn held(now: Timestamp, before: u32, error: &windlass_model::Error) -> Option<Ending> {
    let asked = error.retry_delay().filter(|wait| *wait <= LONGEST_HOLD && before < MAX_HOLDS)?;
    let wait = asked.max(SHORTEST_HOLD * 2_u32.pow(before.min(MAX_DOUBLINGS)));
    // Whole seconds, and never too early.
    let seconds = i64::try_from(wait.as_secs()).ok()?.checked_add(1)?;
    let until = now.checked_add(SignedDuration::from_secs(seconds)).ok()?;
    let until = until.round(jiff::Unit::Second).ok()?;
    Some(Ending::Held(until, format!("{error}; it goes on at {until}")))
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
