//! Many tasks at once through one `serve`: how long until all results are published, beside the time that
//! the model's own latency takes.

use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use jiff::Timestamp;
use rustix::process::{Pid, Signal, kill_process};
use windlass_coordinator::bus::{Bus, EmbeddedBus, InStream};
use windlass_core::command::{ResultStatus, TaskCommand};
use windlass_core::id::{CommandId, SessionId, TaskId};
use windlass_model::script::{ScriptedCall, ScriptedReply};
use windlass_store::{Options, OutStream, Store};
use windlass_testkit::{Answer, ModelServer};

use crate::Effort;
use crate::figures::{Figure, Unit};
use crate::place::{self, BenchDir, Started};
use crate::server::turn_with;

/// Tool rounds of each task; the final reply comes on top.
const TURNS: usize = 20;

/// How long the model takes for each reply.
const LATENCY: Duration = Duration::from_millis(50);

/// The longest that all tasks may take.
const PATIENCE: Duration = Duration::from_secs(600);

/// How often the wait checks whether they are done.
const LOOK: Duration = Duration::from_millis(10);

/// Results read at once.
const PAGE: usize = 1000;

/// What the tasks of one measurement call in each turn.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Calls {
    /// A tool that only reads, in the process of the service.
    Glob,
    /// A command, in the sandbox of each task.
    Bash,
}

/// Measures the time of `count` tasks, compared with the ideal.
pub fn figures(effort: Effort) -> Result<Vec<Figure>> {
    let crowds: &[(usize, Calls)] = match effort {
        Effort::Quick => &[(200, Calls::Glob)],
        Effort::Full => &[(200, Calls::Glob), (200, Calls::Bash), (1000, Calls::Glob)],
    };
    let runtime = tokio::runtime::Runtime::new()?;
    crowds
        .iter()
        .map(|&(count, calls)| {
            let measured = runtime.block_on(crowd(count, calls));
            measured.with_context(|| format!("{count} tasks of a service"))
        })
        .collect()
}

async fn crowd(count: usize, calls: Calls) -> Result<Figure> {
    let place = BenchDir::new()?;
    let server = ModelServer::start_empty();
    server.forget_bodies();
    server.answer_with(move |request| {
        Some(Answer::reply(reply(request.replies, calls)).delayed(LATENCY))
    });
    let store = Store::open(place.data(), Options::default())?;
    let bus = EmbeddedBus::new(store.clone(), Arc::new(Timestamp::now));
    let mut serve = serve(&place, &server, count)?;
    // The commands are built before the clock starts, so that they can be handed in at once.
    let commands: Vec<_> = (0..count).map(|_| command("measure")).collect::<Result<_>>()?;
    let begun = Instant::now();
    let submitted = commands.iter().map(|body| bus.submit(InStream::TaskCommand, None, body));
    futures_util::future::try_join_all(submitted).await?;
    let process = serve.child.id();
    Results::default().wait(&store, &mut serve, count).await?;
    let took = begun.elapsed();
    let (megabytes, cpu) = (peak_megabytes(process)?, cpu_seconds(process));
    stop(serve)?;
    let ideal = LATENCY * (TURNS as u32 + 1);
    let turns = count * (TURNS + 1);
    let what = match calls {
        Calls::Glob => "reads",
        Calls::Bash => "commands",
    };
    let detail = format!(
        "{:.1} s, ideal {:.2} s; {:.0} turns/s, ideal {:.0}; peak {megabytes:.0} MB, {cpu:.1} s of CPU",
        took.as_secs_f64(),
        ideal.as_secs_f64(),
        turns as f64 / took.as_secs_f64(),
        turns as f64 / ideal.as_secs_f64(),
    );
    let name =
        format!("serve: {count} tasks of {TURNS} {what}, {} ms latency", LATENCY.as_millis());
    let slower = took.as_secs_f64() / ideal.as_secs_f64();
    Ok(Figure::new(name, slower, Unit::Times).from(detail))
}

pub(crate) fn serve(place: &BenchDir, server: &ModelServer, tasks: usize) -> Result<Started> {
    let mut command = Command::new(place::program("windlass")?);
    command
        .args(["serve", "--sandbox", "local", "--tasks", &tasks.to_string(), "--data"])
        .arg(place.data())
        .env_clear()
        .env("PATH", std::env::var("PATH").unwrap_or_default())
        .env("HOME", place.path("home"))
        .env("LITELLM_API_BASE", server.base())
        .env("LITELLM_MODEL", "scripted")
        // A long queue is what is measured.
        .env("COORDINATOR_MAX_WAITING_TASKS", "100000")
        // Its log would be a line for each task; what it says about itself is wanted.
        .env("RUST_LOG", "error")
        .stderr(Stdio::inherit());
    place::start(command)
}

pub(crate) fn command(goal: &str) -> Result<String> {
    let now = Timestamp::now();
    Ok(serde_json::to_string(&TaskCommand {
        command_id: CommandId::new(now),
        session_id: SessionId::new(now),
        task_id: TaskId::new(now),
        goal: goal.to_owned(),
        constraints: Vec::new(),
        execution_config: Default::default(),
        resume_context: None,
    })?)
}

fn reply(turn: usize, calls: Calls) -> ScriptedReply {
    reply_of(turn, TURNS, calls)
}

/// The reply of one turn of a task with this many rounds of calls.
pub(crate) fn reply_of(turn: usize, rounds: usize, calls: Calls) -> ScriptedReply {
    let (name, arguments) = match calls {
        // Another pattern each time: a call that is repeated without effect is a loop.
        Calls::Glob => ("glob", serde_json::json!({ "pattern": format!("note-{turn}-*") })),
        Calls::Bash => ("bash", serde_json::json!({ "command": format!("echo {turn} >> notes") })),
    };
    let call = ScriptedCall { id: None, name: name.to_owned(), arguments: arguments.to_string() };
    turn_with(call, turn, turn >= rounds)
}

/// The results that a service publishes, read from where the last wait ended: old ones are removed by and by.
#[derive(Default)]
pub(crate) struct Results {
    last: i64,
}

impl Results {
    /// Waits until `count` more are published, each of a task that is done.
    pub(crate) async fn wait(
        &mut self,
        store: &Store,
        serve: &mut Started,
        count: usize,
    ) -> Result<()> {
        let begun = Instant::now();
        let mut seen = 0;
        while seen < count {
            for entry in store.bus().read(OutStream::TaskResult.as_str(), self.last, PAGE)? {
                let result: windlass_core::command::TaskResult = serde_json::from_str(&entry.body)?;
                ensure!(result.status == ResultStatus::Completed, "{:?}", result.error_details);
                seen += 1;
                self.last = entry.id;
            }
            if let Some(ended) = serve.child.try_wait()? {
                bail!(
                    "the service ended with {ended} after {seen} of {count} tasks; its log is above"
                );
            }
            if begun.elapsed() > PATIENCE {
                bail!("{seen} of {count} tasks were done in time");
            }
            tokio::time::sleep(LOOK).await;
        }
        Ok(())
    }
}

pub(crate) fn stop(mut serve: Started) -> Result<()> {
    let pid = i32::try_from(serve.child.id()).ok().and_then(Pid::from_raw).context("a pid")?;
    kill_process(pid, Signal::TERM)?;
    let ended = serve.child.wait()?;
    ensure!(ended.success(), "the service ended with {ended}");
    Ok(())
}

/// Peak resident memory, as the kernel counts it.
pub(crate) fn peak_megabytes(process: u32) -> Result<f64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    let kib = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<f64>().ok());
    Ok(kib.context("no peak in the status of the service")? / 1024.0)
}

/// Processor time of the process and of the children it has waited for.
pub(crate) fn cpu_seconds(process: u32) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let fields = stat.rsplit_once(')').map(|(_, fields)| fields).unwrap_or_default();
    let ticks = fields.split_whitespace().skip(11).take(4);
    let ticks: f64 = ticks.filter_map(|field| field.parse::<f64>().ok()).sum();
    ticks / rustix::param::clock_ticks_per_second() as f64
}
