//! What the sandbox's helper costs: a trivial command beside a plain spawn, much output, many at once, many idle.

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use tokio::io::AsyncReadExt as _;
use windlass_core::layout::Layout;
use windlass_sandbox::local::{Config, Namespaces};
use windlass_sandbox::{Command, Egress, Exit, HomeFiles, Local, Network, ResourceLimits, Sandbox};

use crate::Effort;
use crate::figures::{Figure, Unit, median, ms};
use crate::memory;
use crate::place::BenchDir;

/// Commands and sandboxes at once.
const AT_ONCE: usize = 100;

/// What a command with much output prints.
const OUTPUT_BYTES: usize = 100_000_000;

pub async fn figures(effort: Effort) -> Result<Vec<Figure>> {
    let place = BenchDir::new()?;
    let sandbox = Local::open(config(&place)).await?;
    run(&sandbox).await?;
    let (mut through, mut plain) = (Vec::new(), Vec::new());
    for _ in 0..effort.commands() {
        through.push(timed(run(&sandbox)).await?);
        plain.push(timed(spawn(place.workspace())).await?);
    }
    let ratio = Figure::ratio(
        "a command through the helper, beside a plain spawn",
        median(&through),
        median(&plain),
    );

    let crowd = timed(at_once(|| run(&sandbox))).await?;
    let spawns = timed(at_once(|| spawn(place.workspace()))).await?;
    let crowded =
        Figure::ratio(format!("{AT_ONCE} commands at once, beside plain spawns"), crowd, spawns);
    let much = timed(print(&sandbox)).await?;
    let piped = timed(print_plainly()).await?;
    let speed =
        |took: Duration| format!("{:.0} MB/s", OUTPUT_BYTES as f64 / 1e6 / took.as_secs_f64());
    let output = Figure::ratio("100 MB of output through the helper, beside a pipe", much, piped)
        .from(format!("{} / {}", speed(much), speed(piped)));
    sandbox.stop().await;
    Ok([vec![ratio.at_most(2.0), crowded.at_most(2.0), output], idle(&place).await?].concat())
}

/// Measures the memory of many sandboxes that have each run one command.
async fn idle(place: &BenchDir) -> Result<Vec<Figure>> {
    let own = std::process::id();
    let before = memory::of_tree(own)?;
    let (mut idle, mut opening, mut first) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..AT_ONCE {
        let begun = Instant::now();
        let sandbox = Local::open(config(place)).await?;
        opening.push(begun.elapsed());
        first.push(timed(run(&sandbox)).await?);
        idle.push(sandbox);
    }
    let after = memory::of_tree(own)?;
    for sandbox in &idle {
        sandbox.stop().await;
    }
    let each = (after.0.proportional - before.0.proportional) / AT_ONCE as u64;
    let memory = Figure::new(
        format!("{AT_ONCE} idle helpers: memory of each"),
        memory::megabytes(each),
        Unit::Megabytes,
    );
    let detail = format!("proportional; {} processes", after.1 - before.1);
    let open = median(&opening).as_secs_f64() * 1e3;
    let open = Figure::new("opening a sandbox", open, Unit::Milliseconds);
    let detail_open = format!("its first command {}", ms(median(&first)));
    Ok(vec![memory.from(detail), open.from(detail_open)])
}

fn config(place: &BenchDir) -> Config {
    Config {
        data: place.data(),
        workspace: place.workspace(),
        layout: Layout::service(),
        added: Vec::new(),
        home_files: HomeFiles::default(),
        home: place.path("home"),
        environment: std::env::vars().collect(),
        environment_names: Vec::new(),
        read_only: Vec::new(),
        hidden: Vec::new(),
        skills: None,
        trace: None,
        network: Network::Restricted(Egress::public()),
        limits: ResourceLimits::DEFAULT,
        namespaces: Namespaces::IfAvailable,
    }
}

async fn run(sandbox: &Local) -> Result<()> {
    let command = Command::script("bench", "true", sandbox.isolation().workspace);
    let ended = sandbox.start(command).await?.wait().await;
    ensure!(ended.exit == Exit::Code(0), "{ended:?}");
    Ok(())
}

async fn print(sandbox: &Local) -> Result<()> {
    let text = format!("head -c {OUTPUT_BYTES} /dev/zero");
    let command = Command::script("bench", text, sandbox.isolation().workspace);
    let mut running = sandbox.start(command).await?;
    let mut count = 0;
    while let Some(chunk) = running.next().await {
        count += chunk.bytes.len();
    }
    let ended = running.wait().await;
    ensure!(ended.exit == Exit::Code(0) && count == OUTPUT_BYTES, "{count} bytes, {ended:?}");
    Ok(())
}

async fn print_plainly() -> Result<()> {
    let mut command = tokio::process::Command::new("bash");
    command.args(["-c", &format!("head -c {OUTPUT_BYTES} /dev/zero")]).stdout(Stdio::piped());
    let mut child = command.spawn()?;
    let mut output = child.stdout.take().context("no output")?;
    let mut buffer = vec![0; 64 * 1024];
    let mut count = 0;
    loop {
        match output.read(&mut buffer).await? {
            0 => break,
            read => count += read,
        }
    }
    ensure!(child.wait().await?.success() && count == OUTPUT_BYTES, "{count} bytes");
    Ok(())
}

async fn spawn(directory: impl AsRef<Path>) -> Result<()> {
    let mut command = tokio::process::Command::new("bash");
    let output = command.args(["-c", "true"]).current_dir(directory).output().await?;
    ensure!(output.status.success(), "a plain spawn ended with {}", output.status);
    Ok(())
}

async fn timed(work: impl Future<Output = Result<()>>) -> Result<Duration> {
    let begun = Instant::now();
    work.await?;
    Ok(begun.elapsed())
}

async fn at_once<F: Future<Output = Result<()>>>(work: impl Fn() -> F) -> Result<()> {
    let mut running: Vec<_> = (0..AT_ONCE).map(|_| Box::pin(work())).collect();
    let mut failed = None;
    std::future::poll_fn(|context| {
        running.retain_mut(|one| match one.as_mut().poll(context) {
            std::task::Poll::Ready(Ok(())) => false,
            std::task::Poll::Ready(Err(error)) => {
                failed = Some(error);
                false
            }
            std::task::Poll::Pending => true,
        });
        if running.is_empty() { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
    failed.map_or(Ok(()), Err)
}
