//! `serve`: the coordinator and workers in one process, until a signal says stop.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use clap::Args;
use jiff::Timestamp;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use windlass_coordinator::bus::{Bus, EmbeddedBus, InStream, Redis};
use windlass_coordinator::{Activity, Coordinator, Lease, Service, open_files};
use windlass_core::axes::ModelMode;
use windlass_core::command::{ResultStatus, TaskResult};
use windlass_core::id::{CommandId, TaskId};
use windlass_core::shown::{shown, shown_line};
use windlass_core::text::one_line;
use windlass_server::{Server, SkillWriter};
use windlass_term::numbers;

use super::{AppContext, Execute, Start};
use crate::args::ServeArgs;
use crate::config::Config;
use crate::failure::{self, Failure};
use crate::show::{ending, note};
use crate::wiring;
use crate::wiring::http::{self, HttpArgs};

/// Run queued tasks, schedules and messages until stopped
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Serve {
    /// How it serves
    #[command(flatten)]
    pub options: ServeArgs,
    /// The address of the API and the page
    #[command(flatten)]
    pub http: HttpArgs,
}

const EXAMPLES: &str = "\
Examples:
  windlass serve                      the page, the API, and the tasks of this
                                      data directory
  REDIS_URL=redis://localhost windlass serve --tasks 20
                                      take them from Redis streams
  redis-cli XADD task-command '*' data '{\"command_id\":\"cmd_…\",…}'
                                      hand one in

Ctrl-C or SIGTERM once pauses every task after its current step and ends; the
next start resumes all of them. Twice ends at once.";

impl Execute for Serve {
    fn execute(self, start: Start) -> Result<u8, Failure> {
        let hooks = start.hooks.clone();
        let app = start.app_for_service(&self.options)?;
        let writer = Arc::new(app.accepting(hooks));
        run(&app, &self.options, ServiceRole::Whole(self.http, writer))
    }
}

/// What a service is there for.
pub(super) enum ServiceRole {
    /// It takes commands, drives tasks, and is there for people: it alone opens a socket.
    Whole(HttpArgs, Arc<dyn SkillWriter>),
    /// Driving tasks: it takes commands, and leaves what people say to a coordinator.
    Worker,
}

impl ServiceRole {
    const fn name(&self) -> &'static str {
        match self {
            Self::Whole(..) => "serving",
            Self::Worker => "working",
        }
    }

    fn streams(&self) -> Vec<InStream> {
        match self {
            Self::Whole(..) => InStream::ALL.to_vec(),
            Self::Worker => vec![InStream::TaskCommand],
        }
    }
}

/// Serves until a signal says stop, and then until every task is paused.
pub(super) fn run(app: &AppContext, args: &ServeArgs, role: ServiceRole) -> Result<u8, Failure> {
    // What a project says about itself is read for each task, in its own directory.
    let config = app.environment.config(Path::new("/"))?;
    app.runtime.block_on(async {
        // Before anything is announced: whoever reads that it serves may stop it at once.
        let signals = Signals::listen()?;
        let bus = bus(&config, &app.coordinator).await?;
        let coordinator = app
            .coordinator
            .clone()
            .with_limits(wiring::limits(&config))
            .with_leases(bus.clone() as Arc<dyn Lease>);
        let wanted = args.tasks.unwrap_or(config.coordinator.worker_tasks as usize).max(1);
        let tasks = wanted.min(open_files::task_capacity());
        if tasks < wanted {
            note(&format!(
                "notice: {tasks} tasks at once instead of {wanted}: the limit of open files allows no more \
                 (`ulimit -n`)"
            ));
        }
        let service = Service {
            name: name(),
            streams: role.streams(),
            tasks,
            claim_after: config.coordinator.claim_after_ms,
            drain: config.coordinator.drain_seconds,
        };
        let server = match &role {
            ServiceRole::Whole(args, writer) => {
                let writer = Arc::clone(writer);
                http::listen(&app.environment, &config, args, &coordinator, writer).await?
            }
            ServiceRole::Worker => None,
        };
        let (place, process) = (shown_line(&bus.place()), std::process::id());
        let up_to = numbers::plural(tasks, "task");
        note(&format!("{}, up to {up_to} at once; {place}; process {process}", role.name()));
        if config.models.for_mode(ModelMode::Smart).is_err() {
            note("notice: no model is configured, so tasks fail; `windlass models` says how to set one up");
        }
        server.as_ref().map(http::announce).transpose()?;
        until_stopped(service, coordinator, bus, server, signals).await
    })
}

/// The signals that end a service: Ctrl-C and a request to terminate.
struct Signals {
    interrupt: Signal,
    termination: Signal,
}

impl Signals {
    fn listen() -> Result<Self, Failure> {
        let listen = |kind| signal(kind).context("signals cannot be listened for");
        Ok(Self {
            interrupt: listen(SignalKind::interrupt())?,
            termination: listen(SignalKind::terminate())?,
        })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.termination.recv() => {}
        }
    }
}

async fn until_stopped(
    service: Service,
    coordinator: Coordinator,
    bus: Arc<dyn Bus>,
    server: Option<Server>,
    mut signals: Signals,
) -> Result<u8, Failure> {
    let stop = CancellationToken::new();
    let mut activity = coordinator.activity();
    let mut serving = JoinSet::new();
    serving.spawn(service.run(coordinator, bus, stop.clone()));
    if let Some(server) = server {
        serving.spawn(server.run(stop.clone()));
    }
    let mut failed = None;
    loop {
        tokio::select! {
            activity = activity.next() => {
                note(&log_line(&activity));
                continue;
            }
            ended = serving.join_next() => {
                let Some(ended) = ended else { break };
                // What ends first with an error ends all.
                let ended = ended.context("the service ended badly")?;
                stop.cancel();
                failed = failed.or(ended.err());
                continue;
            }
            () = signals.next() => {}
        }
        if stop.is_cancelled() {
            note("stopped at once; tasks recover at the next start");
            return Ok(failure::INTERRUPTED);
        }
        note("stopping: tasks pause after their current step; a second signal stops at once");
        stop.cancel();
    }
    match failed {
        Some(error) => Err(error.into()),
        None => {
            note("stopped; unfinished tasks resume at the next start");
            Ok(0)
        }
    }
}

/// How wide the words about a task get.
const WORDS_WIDTH: usize = 120;

/// One line for what the service did: when, to which task, what.
fn log_line(activity: &Activity) -> String {
    let clock = jiff::Zoned::now().strftime("%H:%M:%S").to_string();
    let line = |task: TaskId, words: &str| {
        format!("{clock}  {task}  {}", one_line(&shown(words.trim()), WORDS_WIDTH))
    };
    match activity {
        Activity::Started { task, goal, is_resumed: false } => {
            line(*task, &format!("started: {goal}"))
        }
        Activity::Started { task, goal, is_resumed: true } => {
            line(*task, &format!("resumed: {goal}"))
        }
        Activity::Ended(result) => line(result.task_id, &ending_words(result)),
        Activity::Missed(count) => {
            format!("{clock}  {} not shown", numbers::plural(*count, "line"))
        }
    }
}

fn ending_words(result: &TaskResult) -> String {
    match result.status {
        ResultStatus::Completed => ending::summary(result, false),
        ResultStatus::Failed => {
            let why = result.error_details.as_ref().map(|error| error.message.as_str());
            format!("failed: {}", why.unwrap_or("no reason was given"))
        }
        ResultStatus::BlockedUser => match &result.hitl_request {
            Some(asked) => format!("waits for an answer: {}", asked.question),
            None => "waits for an answer: see `windlass inbox`".to_owned(),
        },
        ResultStatus::Paused => "paused".to_owned(),
        ResultStatus::Cancelled => "cancelled".to_owned(),
    }
}

/// The bus that is configured. A Redis that does not answer yet is waited for.
async fn bus(config: &Config, coordinator: &Coordinator) -> Result<Arc<dyn Bus>, Failure> {
    let Some(url) = &config.coordinator.redis_url else {
        return Ok(Arc::new(EmbeddedBus::of(coordinator)));
    };
    let redis = Redis::new(url.expose().as_ref()).map_err(|error| Failure {
        hint: Some("write it as `redis://HOST:PORT/DB` (REDIS_URL)".to_owned()),
        ..anyhow::Error::from(error).into()
    })?;
    if let Err(error) = redis.check().await {
        if matches!(error, windlass_coordinator::bus::Error::WrongPassword { .. }) {
            let hint =
                "check the user name and password in REDIS_URL, as in `redis://USER:PASSWORD@HOST`";
            return Err(Failure::usage(error, hint));
        }
        note(&format!("notice: {}; it is tried again until it does", shown(&error.to_string())));
    }
    Ok(Arc::new(redis))
}

/// Another name for every process that ever was.
fn name() -> String {
    let random = CommandId::new(Timestamp::now()).to_string();
    format!("{}-{}", std::process::id(), random.trim_start_matches("cmd_"))
}
