//! The HTTP surface of `serve`: many readers of one busy task, many requests, and the price of a scrape.

mod page;

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use jiff::Timestamp;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use windlass_coordinator::bus::{Bus, EmbeddedBus, InStream};
use windlass_core::command::TaskCommand;
use windlass_store::{Options, Store};
use windlass_testkit::{Answer, ModelServer};

use crate::Effort;
use crate::figures::{Figure, Unit, quantile};
use crate::place::{BenchDir, Started};
use crate::service::{self, Calls};

/// Readers of one task's stream.
const READERS: usize = 500;

/// Tool rounds of the task that they read.
const ROUNDS: usize = 60;

/// How long the model takes for each reply.
const LATENCY: Duration = Duration::from_millis(30);

/// Connections that ask for a task at once.
const CLIENTS: usize = 16;

/// How long anything here may take.
const PATIENCE: Duration = Duration::from_secs(120);

/// A running `serve` and how it is reached.
struct Site {
    serve: Started,
    store: Store,
    model: ModelServer,
    _place: BenchDir,
    host: String,
    token: String,
}

pub fn figures(effort: Effort) -> Result<Vec<Figure>> {
    let runtime = tokio::runtime::Runtime::new()?;
    runtime.block_on(async {
        let site = Arc::new(Site::start().await?);
        let mut figures = readers(&site).await.context("readers of a stream")?;
        figures.push(requests(&site, effort).await.context("requests")?);
        figures.push(page::size(&site).await.context("the first page")?);
        figures.push(page::drawn(&site, effort).await.context("drawing the first page")?);
        figures.push(scrapes(&site, effort).await.context("scrapes")?);
        let site = Arc::into_inner(site).context("somebody still uses the server")?;
        service::stop(site.serve)?;
        Ok(figures)
    })
}

impl Site {
    async fn start() -> Result<Self> {
        let place = BenchDir::new()?;
        let model = ModelServer::start_empty();
        model.forget_bodies();
        model.answer_with(|request| {
            let rounds = if request.model == "short" { 0 } else { ROUNDS };
            let reply = service::reply_of(request.replies, rounds, Calls::Glob);
            Some(Answer::reply(reply).delayed(if rounds == 0 { Duration::ZERO } else { LATENCY }))
        });
        let store = Store::open(place.data(), Options::default())?;
        let serve = service::serve(&place, &model, 50)?;
        let begun = Instant::now();
        let url = loop {
            match std::fs::read_to_string(place.data().join("server.url")) {
                Ok(url) if !url.is_empty() => break url,
                _ if begun.elapsed() > PATIENCE => bail!("the server does not listen"),
                _ => tokio::time::sleep(Duration::from_millis(10)).await,
            }
        };
        let host = url.trim().trim_start_matches("http://").to_owned();
        let token = std::fs::read_to_string(place.data().join("token"))?.trim().to_owned();
        Ok(Self { serve, store, model, _place: place, host, token })
    }

    async fn connect(&self) -> Result<BufReader<TcpStream>> {
        Ok(BufReader::new(TcpStream::connect(&self.host).await?))
    }

    fn request(&self, path: &str, accept: &str) -> String {
        let (host, token) = (&self.host, &self.token);
        format!(
            "GET {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\nAccept: {accept}\r\n\r\n"
        )
    }

    /// The body of an answer, which must be a good one.
    async fn get(&self, stream: &mut BufReader<TcpStream>, path: &str) -> Result<Vec<u8>> {
        stream.get_mut().write_all(self.request(path, "*/*").as_bytes()).await?;
        let (mut length, mut line) = (0, String::new());
        stream.read_line(&mut line).await?;
        ensure!(line.starts_with("HTTP/1.1 200"), "{path}: {line}");
        loop {
            line.clear();
            stream.read_line(&mut line).await?;
            if line.trim().is_empty() {
                break;
            }
            if let Some(number) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = number.trim().parse()?;
            }
        }
        let mut body = vec![0; length];
        stream.read_exact(&mut body).await?;
        Ok(body)
    }

    /// How many bytes an answer has when it is compressed.
    async fn compressed(&self, path: &str) -> Result<usize> {
        let (host, token) = (&self.host, &self.token);
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\nAccept: */*\r\nAccept-Encoding: gzip\r\nConnection: close\r\n\r\n"
        );
        let mut stream = self.connect().await?;
        stream.get_mut().write_all(request.as_bytes()).await?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await?;
        let end = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n");
        let end = end.context("an answer without an end of its head")?;
        let head = String::from_utf8_lossy(&answer[..end]).to_ascii_lowercase();
        ensure!(head.starts_with("http/1.1 200"), "{path}: {head}");
        ensure!(head.contains("content-encoding: gzip"), "{path} is not compressed: {head}");
        Ok(answer.len() - end - 4)
    }

    async fn submit(&self, goal: &str, model: Option<&str>) -> Result<String> {
        let mut command: TaskCommand = serde_json::from_str(&service::command(goal)?)?;
        command.execution_config.model = model.map(str::to_owned);
        let bus = EmbeddedBus::new(self.store.clone(), Arc::new(Timestamp::now));
        bus.submit(InStream::TaskCommand, None, &serde_json::to_string(&command)?).await?;
        Ok(command.task_id.to_string())
    }
}

/// 500 readers of one busy task, and one that reads nothing: the time from commit to reader, and the memory.
async fn readers(site: &Arc<Site>) -> Result<Vec<Figure>> {
    let task = site.submit("be busy", None).await?;
    let path = format!("/v1/tasks/{task}/events");
    // A task is there as soon as the service has taken it in.
    let begun = Instant::now();
    let mut probe = site.connect().await?;
    while site.get(&mut probe, &format!("/v1/tasks/{task}")).await.is_err() {
        ensure!(begun.elapsed() < PATIENCE, "the task was not taken in");
        probe = site.connect().await?;
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let before = service::peak_megabytes(site.serve.child.id())?;
    let mut stalled = site.connect().await?;
    stalled.get_mut().write_all(site.request(&path, "text/event-stream").as_bytes()).await?;
    let mut jobs = JoinSet::new();
    for _ in 0..READERS {
        let (site, path) = (Arc::clone(site), path.clone());
        jobs.spawn(async move { tokio::time::timeout(PATIENCE, read(&site, &path)).await? });
    }
    let mut waits = Vec::new();
    while let Some(read) = jobs.join_next().await {
        waits.extend(read??);
    }
    let after = service::peak_megabytes(site.serve.child.id())?;
    let p95 = quantile(&waits, 0.95).as_secs_f64() * 1e3;
    let detail = format!(
        "{} events read; p50 {:.1} ms",
        waits.len(),
        quantile(&waits, 0.5).as_secs_f64() * 1e3
    );
    let name = format!("{READERS} readers of one task: commit to reader, p95");
    let each = (after - before).max(0.0);
    Ok(vec![
        Figure::new(name, p95, Unit::Milliseconds).at_most(50.0).from(detail),
        Figure::new(format!("{READERS} readers: memory that they add"), each, Unit::Megabytes)
            .at_most(100.0),
    ])
}

/// How long after its commit each event arrived, from when everybody has caught up.
async fn read(site: &Site, path: &str) -> Result<Vec<Duration>> {
    let mut stream = site.connect().await?;
    stream.get_mut().write_all(site.request(path, "text/event-stream").as_bytes()).await?;
    let (connected, mut waits, mut line) = (Timestamp::now(), Vec::new(), String::new());
    loop {
        line.clear();
        ensure!(stream.read_line(&mut line).await? > 0, "the stream ended early");
        let Some(data) = line.strip_prefix("data: ") else { continue };
        let event: serde_json::Value = serde_json::from_str(data.trim())?;
        let Some(at) = event["timestamp"].as_str() else { continue };
        let at: Timestamp = at.parse()?;
        // What was there before the reader was is history.
        if at > connected {
            let wait = Timestamp::now().duration_since(at);
            waits.push(Duration::try_from(wait).unwrap_or_default());
        }
        if event["event_type"] == "agent_end" {
            return Ok(waits);
        }
    }
}

/// The time that one of many requests for a task takes: 1,000 a second is a millisecond each.
async fn requests(site: &Arc<Site>, effort: Effort) -> Result<Figure> {
    let each = match effort {
        Effort::Quick => 100,
        Effort::Full => 1000,
    };
    let task = site.submit("answer", Some("short")).await?;
    let path = format!("/v1/tasks/{task}");
    until_done(site, &path).await?;
    let begun = Instant::now();
    let mut jobs = JoinSet::new();
    for _ in 0..CLIENTS {
        let (site, path) = (Arc::clone(site), path.clone());
        jobs.spawn(async move {
            let mut stream = site.connect().await?;
            for _ in 0..each {
                site.get(&mut stream, &path).await?;
            }
            anyhow::Ok(())
        });
    }
    while let Some(asked) = jobs.join_next().await {
        asked??;
    }
    let took = begun.elapsed().as_secs_f64();
    let count = (CLIENTS * each) as f64;
    let detail = format!("{:.0} requests/s on {CLIENTS} connections", count / took);
    let name = "GET /v1/tasks/{id}: time of each, of many at once";
    Ok(Figure::new(name, took / count * 1e6, Unit::Microseconds).at_most(1000.0).from(detail))
}

/// What a scrape costs after many finished tasks, compared with after few.
async fn scrapes(site: &Arc<Site>, effort: Effort) -> Result<Figure> {
    let more = match effort {
        Effort::Quick => 100,
        Effort::Full => 1000,
    };
    let few = scrape(site).await?;
    let mut last = String::new();
    for _ in 0..more {
        last = site.submit("finish", Some("short")).await?;
    }
    until_done(site, &format!("/v1/tasks/{last}")).await?;
    let many = scrape(site).await?;
    let name = format!("/metrics after {more} more finished tasks");
    Ok(Figure::ratio(name, many, few).at_most(2.0))
}

/// The time of one scrape, in the middle of some; the first takes in what is new.
async fn scrape(site: &Site) -> Result<Duration> {
    let mut stream = site.connect().await?;
    site.get(&mut stream, "/metrics").await?;
    let mut times = Vec::new();
    for _ in 0..50 {
        let begun = Instant::now();
        site.get(&mut stream, "/metrics").await?;
        times.push(begun.elapsed());
    }
    Ok(quantile(&times, 0.5))
}

async fn until_done(site: &Site, path: &str) -> Result<()> {
    let begun = Instant::now();
    loop {
        let mut stream = site.connect().await?;
        if let Ok(body) = site.get(&mut stream, path).await {
            let task: serde_json::Value = serde_json::from_slice(&body)?;
            if task["status"] == "done" {
                return Ok(());
            }
        }
        ensure!(
            begun.elapsed() < PATIENCE,
            "{path} does not end; {} requests",
            site.model.request_count()
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
