//! Many tasks of a service, and what they cost: a crowd, a long queue, a start after many, a restart after a kill, a
//! steady minute, and the size of a year.

use std::collections::HashMap;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use futures_util::future::try_join_all;
use jiff::Timestamp;
use windlass_coordinator::bus::{Bus as _, EmbeddedBus, InStream};
use windlass_store::{Options, Store};
use windlass_testkit::{Answer, ModelServer, Request};

use crate::Effort;
use crate::figures::{Figure, Unit, quantile};
use crate::looks;
use crate::place::{BenchDir, Started};
use crate::service::{Calls, Results, command, cpu_seconds, peak_megabytes, reply_of, serve, stop};

/// Tasks of a day, and days of a year, for what a year takes.
const TASKS_A_DAY: f64 = 1000.0;
const DAYS: f64 = 365.0;

/// For how many days traces and unused workspaces are kept.
const TRACE_DAYS: f64 = 7.0;

/// How many replies a short task has.
const SHORT_REPLIES: usize = 3;

/// The longest wait for anything here.
const PATIENCE: Duration = Duration::from_secs(900);

/// How often a wait looks.
const LOOK: Duration = Duration::from_millis(5);

/// The time between two turns of a task in a steady minute.
const BEAT: Duration = Duration::from_secs(5);

/// A service on a data directory of its own.
pub(crate) struct Bench {
    pub(crate) place: BenchDir,
    server: ModelServer,
    pub(crate) store: Store,
    bus: EmbeddedBus,
    pub(crate) serve: Started,
    pub(crate) results: Results,
}

impl Bench {
    pub(crate) fn start(
        tasks: usize,
        answer: impl Fn(&Request) -> Option<Answer> + Send + 'static,
    ) -> Result<Self> {
        let place = BenchDir::new()?;
        let server = ModelServer::start_empty();
        server.forget_bodies();
        server.answer_with(answer);
        let store = Store::open(place.data(), Options::default())?;
        let bus = EmbeddedBus::new(store.clone(), Arc::new(Timestamp::now));
        let serve = serve(&place, &server, tasks)?;
        Ok(Self { place, server, store, bus, serve, results: Results::default() })
    }

    /// Submits tasks of the goals.
    pub(crate) async fn submit(&self, goals: impl Iterator<Item = String>) -> Result<usize> {
        let commands: Vec<_> = goals.map(|goal| command(&goal)).collect::<Result<_>>()?;
        let submitted =
            commands.iter().map(|body| self.bus.submit(InStream::TaskCommand, None, body));
        try_join_all(submitted).await?;
        Ok(commands.len())
    }

    /// Submits tasks and waits for all; the processor time that they took.
    async fn run(&mut self, count: usize) -> Result<f64> {
        let before = cpu_seconds(self.serve.child.id());
        self.submit((0..count).map(|_| "measure".to_owned())).await?;
        self.results.wait(&self.store, &mut self.serve, count).await?;
        Ok(cpu_seconds(self.serve.child.id()) - before)
    }

    /// Stops the service; its data stays until the place is dropped.
    pub(crate) fn stop(self) -> Result<BenchDir> {
        stop(self.serve)?;
        Ok(self.place)
    }
}

/// The data of measurements that are over. Where ten thousand files were removed a moment ago, ext4 takes ten times as
/// long to make one: it passes over what was removed lately. So all is removed when all is measured.
type Places = Vec<BenchDir>;

/// All figures of load.
pub fn figures(effort: Effort) -> Result<Vec<Figure>> {
    let runtime = tokio::runtime::Runtime::new()?;
    let mut places = Places::new();
    let done = &mut places;
    runtime.block_on(async {
        let (mut figures, long) = crowd(effort, done).await.context("a crowd")?;
        let short = few(effort, done).await.context("short tasks")?;
        let (queue, many) = queue(effort, done).await.context("a queue")?;
        figures.extend(queue);
        figures.push(start(&long, &short));
        figures.push(year(&long, &short, &many));
        figures.push(resume(effort, done).await.context("a restart")?);
        figures.push(steady(effort, done).await.context("a steady minute")?);
        figures.push(looks::follow().await.context("following a task")?);
        Ok(figures)
    })
}

fn count(effort: Effort, full: usize) -> usize {
    match effort {
        Effort::Quick => full / 10,
        Effort::Full => full,
    }
}

/// Replies of a task with this many rounds of reading.
fn rounds(rounds: usize) -> impl Fn(&Request) -> Option<Answer> + Send + 'static {
    move |request| Some(Answer::reply(reply_of(request.replies, rounds, Calls::Glob)))
}

/// What one of many tasks has taken.
struct TaskCost {
    tasks: usize,
    replies: usize,
    /// Its processor time in seconds.
    cpu: f64,
    /// What is kept of it, and what goes with its trace, in bytes.
    kept: f64,
    traces: f64,
}

impl TaskCost {
    /// From the data of a service that has stopped: then the log of the database is folded in.
    fn of(data: &Path, tasks: usize, replies: usize, cpu: f64) -> Self {
        // Unused workspaces go with traces.
        let traces = disk_bytes(&data.join("traces")) + disk_bytes(&data.join("workspaces"));
        let all = disk_bytes(data);
        // Of one size, however many tasks there were: what is kept for a full disk, and the helper that sandboxes start.
        let once = disk_bytes(&data.join("reserve")) + disk_bytes(&data.join("helper"));
        let each = |bytes: u64| bytes as f64 / tasks as f64;
        let kept = each(all.saturating_sub(traces + once));
        Self { tasks, replies, cpu, kept, traces: each(traces) }
    }

    /// What each further reply takes, where a task of fewer took `less` of something and this one `more`.
    fn of_a_reply(&self, shorter: &Self, more: f64, less: f64) -> f64 {
        (more - less) / (self.replies - shorter.replies) as f64
    }
}

/// Many tasks at once: processor time of a turn, and memory.
async fn crowd(effort: Effort, done: &mut Places) -> Result<(Vec<Figure>, TaskCost)> {
    let (tasks, turns) = (count(effort, 1000), 20);
    let mut bench = Bench::start(tasks, rounds(turns))?;
    let cpu = bench.run(tasks).await?;
    let peak = peak_megabytes(bench.serve.child.id())?;
    let place = bench.stop()?;
    let cost = TaskCost::of(&place.data(), tasks, turns + 1, cpu / tasks as f64);
    done.push(place);
    let name = |what: &str| format!("serve: {tasks} tasks × {turns} turns: {what}");
    let figures = vec![
        Figure::new(
            name("processor time of a turn"),
            cpu * 1e3 / (tasks * (turns + 1)) as f64,
            Unit::Milliseconds,
        )
        .at_most(0.8)
        .from(format!("{cpu:.1} s in all")),
        Figure::new(name("peak memory"), peak, Unit::Megabytes).at_most(600.0),
    ];
    Ok((figures, cost))
}

/// Short tasks after as many others as a crowd has.
async fn few(effort: Effort, done: &mut Places) -> Result<TaskCost> {
    const MEASURED: usize = 200;
    let tasks = count(effort, 1000);
    let mut bench = Bench::start(tasks, rounds(SHORT_REPLIES - 1))?;
    bench.run(tasks).await?;
    let cpu = bench.run(MEASURED).await?;
    let place = bench.stop()?;
    let each = cpu / MEASURED as f64;
    let cost = TaskCost::of(&place.data(), tasks + MEASURED, SHORT_REPLIES, each);
    done.push(place);
    Ok(cost)
}

/// What a start costs when there are many tasks already: what a short task takes beyond its replies.
fn start(long: &TaskCost, short: &TaskCost) -> Figure {
    let reply = long.of_a_reply(short, long.cpu, short.cpu);
    let start = short.cpu - reply * short.replies as f64;
    let what = format!("processor time of a start at {} tasks", long.tasks);
    Figure::new(what, start * 1e3, Unit::Milliseconds).at_most(4.0).from(format!(
        "{:.2} ms a task of {} replies",
        short.cpu * 1e3,
        short.replies
    ))
}

/// What a year of long tasks takes on disk: what one of many short tasks takes, and its further replies.
fn year(long: &TaskCost, short: &TaskCost, many: &TaskCost) -> Figure {
    let further = (long.replies - many.replies) as f64;
    let kept = many.kept + further * long.of_a_reply(short, long.kept, short.kept);
    let traces = many.traces + further * long.of_a_reply(short, long.traces, short.traces);
    let year = kept * TASKS_A_DAY * DAYS + traces * TASKS_A_DAY * TRACE_DAYS;
    let what = format!("a year of 1,000 tasks a day of {} replies", long.replies);
    let kilobytes = kept / 1e3;
    let tasks = many.tasks;
    Figure::new(what, year / 1e9, Unit::Gigabytes)
        .at_most(15.0)
        .from(format!("{kilobytes:.1} kB a task, by {tasks} tasks, traces for {TRACE_DAYS} days"))
}

/// A long queue beside an empty one, and the start of a task after it.
async fn queue(effort: Effort, done: &mut Places) -> Result<(Vec<Figure>, TaskCost)> {
    const AT_ONCE: usize = 50;
    const TURNS: usize = SHORT_REPLIES;
    let mut bench = Bench::start(AT_ONCE, rounds(TURNS - 1))?;
    // The first ones pay for what is made once.
    bench.run(AT_ONCE).await?;
    let mut empty = 0.0;
    for _ in 0..10 {
        empty += bench.run(AT_ONCE).await?;
    }
    let empty = empty / (10 * AT_ONCE * TURNS) as f64;
    let queued = count(effort, 10_000);
    let long = bench.run(queued).await? / (queued * TURNS) as f64;
    let what = format!("{queued} queued tasks of {TURNS} replies: processor time of a turn");
    let detail = format!("{:.2} ms, empty queue {:.2} ms", long * 1e3, empty * 1e3);
    let queue = Figure::new(what, long / empty, Unit::Times).at_most(1.2).from(detail);

    // What a task takes beyond its replies, of which an empty queue's turns are a bound.
    let mut after = 0.0;
    for _ in 0..4 {
        after += bench.run(AT_ONCE).await?;
    }
    let after = after / (4 * AT_ONCE) as f64;
    let what = format!("a task of {TURNS} replies after {queued} others: processor time");
    let detail = format!("{:.2} ms before them", empty * TURNS as f64 * 1e3);
    let start = Figure::new(what, after * 1e3, Unit::Milliseconds)
        .at_most(4.0 + 0.8 * TURNS as f64)
        .from(detail);
    let place = bench.stop()?;
    // The first ones, those of an empty queue and those after it.
    let all = queued + (1 + 10 + 4) * AT_ONCE;
    let cost = TaskCost::of(&place.data(), all, TURNS, after);
    let mut figures = vec![queue, start];
    figures.extend(looks::after_many(&place, queued)?);
    done.push(place);
    Ok((figures, cost))
}

/// All tasks are at work again after the service was killed.
async fn resume(effort: Effort, done: &mut Places) -> Result<Figure> {
    let tasks = count(effort, 1000);
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&asked);
    let bench = Bench::start(tasks, move |request| {
        if request.replies == 0 {
            return Some(Answer::reply(reply_of(0, 1, Calls::Glob)));
        }
        counted.fetch_add(1, Ordering::SeqCst);
        Some(Answer::reply(reply_of(1, 1, Calls::Glob)).delayed(PATIENCE))
    })?;
    bench.submit((0..tasks).map(|_| "measure".to_owned())).await?;
    let reach = async |wanted: usize| {
        let begun = Instant::now();
        while asked.load(Ordering::SeqCst) < wanted {
            if begun.elapsed() > PATIENCE {
                bail!("{} of {wanted} in time", asked.load(Ordering::SeqCst));
            }
            tokio::time::sleep(LOOK).await;
        }
        Ok(())
    };
    reach(tasks).await?;
    let Bench { place, server, mut serve, .. } = bench;
    serve.child.kill()?;
    serve.child.wait()?;
    let begun = Instant::now();
    let mut again = crate::service::serve(&place, &server, tasks)?;
    reach(2 * tasks).await?;
    let took = begun.elapsed();
    again.child.kill()?;
    again.child.wait()?;
    done.push(place);
    let what = format!("{tasks} tasks at work again after a kill");
    Ok(Figure::new(what, took.as_secs_f64() * 1e3, Unit::Milliseconds).at_most(5000.0))
}

/// Tasks that each have a turn every five seconds: the service's own time between a reply and the next request.
async fn steady(effort: Effort, done: &mut Places) -> Result<Figure> {
    let tasks = count(effort, 1000);
    let turns = match effort {
        Effort::Quick => 3,
        Effort::Full => 13,
    };
    let due: Mutex<HashMap<usize, Instant>> = Mutex::default();
    let own: Arc<Mutex<Vec<Duration>>> = Arc::default();
    let times = Arc::clone(&own);
    let mut bench = Bench::start(tasks, move |request| {
        let number = number_in(&request.body)?;
        let mut due = due.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sent) = due.remove(&number)
            && request.replies > 1
        {
            let late = request.received.saturating_duration_since(sent);
            times.lock().unwrap_or_else(PoisonError::into_inner).push(late);
        }
        // The first turns are spread over one beat, so that they are not all at once.
        let delay = match request.replies {
            0 => BEAT.mul_f64(number as f64 / tasks as f64),
            _ => BEAT,
        };
        due.insert(number, request.received + delay);
        Some(Answer::reply(reply_of(request.replies, turns, Calls::Glob)).delayed(delay))
    })?;
    let submitted = bench.submit((0..tasks).map(|number| format!("measure #{number}#"))).await?;
    bench.results.wait(&bench.store, &mut bench.serve, submitted).await?;
    done.push(bench.stop()?);
    let own = own.lock().unwrap_or_else(PoisonError::into_inner);
    let (half, most) = (quantile(&own, 0.5), quantile(&own, 0.99));
    let what = format!("{tasks} tasks, a turn every 5 s: own time of a turn, p99");
    let detail = format!("p50 {:.1} ms, {} turns", half.as_secs_f64() * 1e3, own.len());
    let value = most.as_secs_f64() * 1e3;
    Ok(Figure::new(what, value, Unit::Milliseconds).at_most(50.0).from(detail))
}

/// The number that a goal has in a request.
fn number_in(body: &[u8]) -> Option<usize> {
    let mark = b"measure #";
    let at = body.windows(mark.len()).position(|found| found == mark)? + mark.len();
    let digits = body[at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    std::str::from_utf8(&body[at..at + digits]).ok()?.parse().ok()
}

/// What a directory takes on the disk. Links are not followed.
fn disk_bytes(path: &Path) -> u64 {
    let Ok(found) = std::fs::symlink_metadata(path) else { return 0 };
    let below = match found.is_dir() {
        true => std::fs::read_dir(path).into_iter().flatten().flatten(),
        false => return found.blocks() * 512,
    };
    found.blocks() * 512 + below.map(|entry| disk_bytes(&entry.path())).sum::<u64>()
}
