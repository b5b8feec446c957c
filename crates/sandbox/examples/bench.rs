//! What the helper costs: a trivial command against a plain spawn, many at once, many helpers idle.
//!
//! `cargo run --release -p windlass-sandbox --example bench`
#![expect(clippy::print_stdout, reason = "its result is what it prints")]

use std::path::PathBuf;
use std::time::{Duration, Instant};

use windlass_sandbox::local::{Config, Limits, Namespaces};
use windlass_sandbox::{Command, Egress, Exit, Host, Local, Network, Sandbox};

const ROUNDS: usize = 300;
const AT_ONCE: usize = 100;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let top = tempfile::tempdir()?;
    let workspace = top.path().join("work");
    let data = top.path().join("data");
    std::fs::create_dir(&workspace)?;
    let config = |network: Network| Config {
        data: data.clone(),
        workspace: workspace.clone(),
        home: top.path().to_owned(),
        environment: std::env::vars().collect(),
        environment_names: Vec::new(),
        read_only: Vec::new(),
        hidden: Vec::new(),
        skills: None,
        trace: None,
        network,
        limits: Limits::DEFAULT,
        namespaces: Namespaces::WhereGranted,
    };
    let restricted = || config(Network::Restricted(Egress::public()));
    let local = Local::open(restricted()).await?;
    let environment: Vec<(String, String)> = std::env::vars().collect();
    let host = Host::new(data.clone(), workspace.clone(), &environment, &[])?;
    for fact in local.footing().facts {
        println!("footing: {fact}");
    }

    let begun = Instant::now();
    let opened = Local::open(restricted()).await?;
    println!("open (probe): {:?}", begun.elapsed());
    let begun = Instant::now();
    trivial(&opened).await?;
    println!("first command, with the sandbox: {:?}", begun.elapsed());
    opened.stop().await;

    // Taken in turns, so that a busy machine disturbs all alike.
    let (mut plain, mut in_local, mut on_host) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        plain.push(timed(plain_spawn()).await?);
        in_local.push(timed(trivial(&local)).await?);
        on_host.push(timed(trivial(&host)).await?);
    }
    let plain = median(&mut plain);
    println!("plain spawn of `bash -c true`: {plain:?}");
    for (name, times) in [("local", &mut in_local), ("host", &mut on_host)] {
        let median = median(times);
        let ratio = median.as_secs_f64() / plain.as_secs_f64();
        println!("through the helper, {name}: {median:?}, {ratio:.2} times");
    }

    let begun = Instant::now();
    let plain = futures(AT_ONCE, plain_spawn).await?;
    println!("{plain} plain spawns at once: {:?}", begun.elapsed());
    let begun = Instant::now();
    let done = futures(AT_ONCE, || trivial(&local)).await?;
    println!("{done} commands at once, local: {:?}", begun.elapsed());

    const MEGABYTES: u32 = 512;
    let script = format!("head -c {MEGABYTES}M /dev/zero");
    let begun = Instant::now();
    let command = Command::script("bench", script, local.footing().workspace);
    local.start(command).await?.wait().await;
    let rate = f64::from(MEGABYTES) / begun.elapsed().as_secs_f64();
    println!("output through the helper: {rate:.0} MiB/s");

    let mut idle = Vec::new();
    let begun = Instant::now();
    for _ in 0..AT_ONCE {
        let sandbox = Local::open(restricted()).await?;
        trivial(&sandbox).await?;
        idle.push(sandbox);
    }
    println!("{AT_ONCE} sandboxes opened and used once: {:?}", begun.elapsed());
    let (processes, private, resident) = helpers_memory(&data)?;
    println!(
        "{processes} helper processes idle: {} KiB private, {} KiB resident on average",
        private / processes.max(1),
        resident / processes.max(1),
    );
    let begun = Instant::now();
    for sandbox in &idle {
        sandbox.stop().await;
    }
    println!("{AT_ONCE} sandboxes stopped: {:?}", begun.elapsed());
    local.stop().await;
    host.stop().await;
    Ok(())
}

async fn timed<T>(
    work: impl Future<Output = Result<T, Box<dyn std::error::Error>>>,
) -> Result<Duration, Box<dyn std::error::Error>> {
    let begun = Instant::now();
    work.await?;
    Ok(begun.elapsed())
}

async fn trivial(sandbox: &dyn Sandbox) -> Result<(), Box<dyn std::error::Error>> {
    let command = Command::script("bench", "true", sandbox.footing().workspace);
    let ended = sandbox.start(command).await?.wait().await;
    if ended.exit == Exit::Code(0) { Ok(()) } else { Err(format!("{ended:?}").into()) }
}

async fn plain_spawn() -> Result<(), Box<dyn std::error::Error>> {
    let output = tokio::process::Command::new("bash").args(["-c", "true"]).output().await?;
    if output.status.success() { Ok(()) } else { Err("plain spawn failed".into()) }
}

async fn futures<'a, F>(
    count: usize,
    work: impl Fn() -> F,
) -> Result<usize, Box<dyn std::error::Error>>
where
    F: Future<Output = Result<(), Box<dyn std::error::Error>>> + 'a,
{
    let mut running: Vec<_> = (0..count).map(|_| Box::pin(work())).collect();
    let mut done = 0;
    std::future::poll_fn(|context| {
        running.retain_mut(|future| match future.as_mut().poll(context) {
            std::task::Poll::Ready(Ok(())) => {
                done += 1;
                false
            }
            std::task::Poll::Ready(Err(_)) => false,
            std::task::Poll::Pending => true,
        });
        if running.is_empty() { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
    if done == count { Ok(done) } else { Err(format!("{done} of {count} succeeded").into()) }
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort();
    times[times.len() / 2]
}

/// Processes that run our helper, their private and their resident memory in KiB.
fn helpers_memory(data: &std::path::Path) -> Result<(u64, u64, u64), Box<dyn std::error::Error>> {
    let (mut count, mut private, mut resident) = (0, 0, 0);
    for entry in std::fs::read_dir("/proc")? {
        let path: PathBuf = entry?.path();
        if !std::fs::read_link(path.join("exe")).is_ok_and(|exe| exe.starts_with(data)) {
            continue;
        }
        let Ok(rollup) = std::fs::read_to_string(path.join("smaps_rollup")) else { continue };
        let sum = |prefix: &str| -> u64 {
            rollup
                .lines()
                .filter(|line| line.starts_with(prefix))
                .filter_map(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok())
                .sum()
        };
        count += 1;
        private += sum("Private_");
        resident += sum("Rss:");
    }
    Ok((count, private, resident))
}
