//! The cost of viewing tasks: commands that go through many tasks, and the delay of somebody who follows a task.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use jiff::Timestamp;
use serde_json::Value;
use windlass_store::Filter;
use windlass_testkit::Answer;

use crate::figures::{Figure, Unit, quantile};
use crate::load::Bench;
use crate::place::{self, BenchDir};
use crate::service::{Calls, reply_of};

/// Tool rounds of the task that is followed.
const ROUNDS: usize = 40;

/// How long the model takes for each reply of it.
const LATENCY: Duration = Duration::from_millis(50);

/// The longest wait for the task that is followed.
const PATIENCE: Duration = Duration::from_secs(60);

/// Commands over a data directory with so many tasks.
pub fn after_many(place: &BenchDir, tasks: usize) -> Result<Vec<Figure>> {
    let mut figures = Vec::new();
    for (name, aim) in [("doctor", 5000.0), ("cost", 1000.0), ("tasks", 1000.0)] {
        let begun = Instant::now();
        // What `doctor` says of a model that is not there any more is not what is measured.
        let ended =
            windlass(place, &[name])?.stdout(Stdio::null()).stderr(Stdio::null()).status()?;
        let took = begun.elapsed();
        ensure!(ended.code().is_some_and(|code| code < 2), "`{name}` ended with {ended}");
        let what = format!("`{name}` over {tasks} tasks");
        let value = took.as_secs_f64() * 1e3;
        figures.push(Figure::new(what, value, Unit::Milliseconds).at_most(aim));
    }
    Ok(figures)
}

/// How long after an event `events --follow` of another process prints it.
pub async fn follow() -> Result<Figure> {
    let mut bench = Bench::start(1, |request| {
        Some(Answer::reply(reply_of(request.replies, ROUNDS, Calls::Glob)).delayed(LATENCY))
    })?;
    bench.submit(std::iter::once("measure".to_owned())).await?;
    let begun = Instant::now();
    let task = loop {
        let rows = bench.store.tasks().list(&Filter::default())?;
        if let Some(row) = rows.first() {
            break row.id.to_string();
        }
        if begun.elapsed() > PATIENCE {
            bail!("the task was not created in time");
        }
        tokio::time::sleep(LATENCY / 10).await;
    };
    let mut command = windlass(&bench.place, &["events", &task, "--follow", "--json"])?;
    let mut reader = command.stdout(Stdio::piped()).spawn()?;
    let lines = BufReader::new(reader.stdout.take().context("its output")?).lines();
    let late = tokio::task::spawn_blocking(move || late(lines)).await??;
    ensure!(reader.wait()?.success(), "the reader failed");
    bench.results.wait(&bench.store, &mut bench.serve, 1).await?;
    bench.stop()?;
    let value = quantile(&late, 0.95).as_secs_f64() * 1e3;
    let detail = format!("p50 {:.1} ms", quantile(&late, 0.5).as_secs_f64() * 1e3);
    let what = "`events --follow`: delay after the commit, p95";
    Ok(Figure::new(what, value, Unit::Milliseconds).at_most(20.0).from(detail))
}

/// How late each request was printed. Requests are committed when they are made, and nothing else happens then.
fn late(lines: impl Iterator<Item = std::io::Result<String>>) -> Result<Vec<Duration>> {
    let mut late = Vec::new();
    for line in lines {
        let (now, event) = (Timestamp::now(), serde_json::from_str::<Value>(&line?)?);
        if event["event_type"] == "llm_request" {
            let at: Timestamp = event["timestamp"].as_str().context("a time")?.parse()?;
            late.push(Duration::try_from(now.duration_since(at)).unwrap_or_default());
        }
    }
    // Those that were there before the reader came say nothing.
    let before = late.len().saturating_sub(ROUNDS - 10);
    Ok(late.split_off(before))
}

fn windlass(place: &BenchDir, arguments: &[&str]) -> Result<Command> {
    let mut command = Command::new(place::program("windlass")?);
    command
        .args(arguments)
        .arg("--data")
        .arg(place.data())
        .env_clear()
        .env("PATH", std::env::var("PATH").unwrap_or_default())
        .env("HOME", place.path("home"))
        .env("CONTAINER_MODE", "local")
        .stdin(Stdio::null());
    Ok(command)
}
