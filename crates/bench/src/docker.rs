//! What a container costs: a command in one beside the engine's own exec, bringing one up, many at once.

use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use tokio::task::JoinSet;
use windlass_core::layout::Layout;
use windlass_sandbox::docker::{Config, ENGINE_PATIENCE, Engine};
use windlass_sandbox::{
    Command, Docker, Egress, Exit, HomeFiles, Network, ResourceLimits, Sandbox,
};

use crate::Effort;
use crate::figures::{Figure, Unit, median, ms};
use crate::place::BenchDir;

/// Containers at once.
const AT_ONCE: usize = 20;

pub async fn figures(effort: Effort) -> Result<Vec<Figure>> {
    let place = BenchDir::new()?;
    let (mut bringing, mut ending) = (Vec::new(), Vec::new());
    for at in 0..effort.containers() {
        let begun = Instant::now();
        let docker = open(&place, at).await?;
        run(&docker).await?;
        bringing.push(begun.elapsed());
        let begun = Instant::now();
        docker.stop().await;
        ending.push(begun.elapsed());
    }
    let bring = median(&bringing).as_secs_f64() * 1e3;
    let bring =
        Figure::new("a container, to the end of its first command", bring, Unit::Milliseconds);
    let bring = bring.from(format!("its end {}", ms(median(&ending))));

    let docker = open(&place, 0).await?;
    run(&docker).await?;
    let id = docker.container().await.context("there is no container")?;
    let (mut through, mut execs) = (Vec::new(), Vec::new());
    for _ in 0..effort.execs() {
        let begun = Instant::now();
        exec(&id).await?;
        execs.push(begun.elapsed());
        // Each is far shorter, so a single one would be chance.
        for _ in 0..10 {
            let begun = Instant::now();
            run(&docker).await?;
            through.push(begun.elapsed());
        }
    }
    docker.stop().await;
    let name = "a command in a container, beside `docker exec`";
    let ratio = Figure::ratio(name, median(&through), median(&execs)).at_most(1.0 / 25.0);
    Ok(vec![bring, ratio, at_once(&place).await?])
}

/// Starts `AT_ONCE` containers in parallel, runs a command in each, and removes them.
async fn at_once(place: &BenchDir) -> Result<Figure> {
    let begun = Instant::now();
    let mut opening = JoinSet::new();
    for at in 0..AT_ONCE {
        let (config, host) = (config(place, at)?, address()?);
        opening.spawn(async move {
            let docker = Docker::open(Engine::at(&host).await?, config).await?;
            run(&docker).await?;
            anyhow::Ok(docker)
        });
    }
    let mut all = Vec::new();
    while let Some(opened) = opening.join_next().await {
        all.push(opened??);
    }
    let took = begun.elapsed();
    let begun = Instant::now();
    let mut stopping = JoinSet::new();
    for docker in all {
        stopping.spawn(async move { docker.stop().await });
    }
    while stopping.join_next().await.is_some() {}
    let name = format!("{AT_ONCE} containers at once, to the end of each one's first command");
    let figure = Figure::new(name, took.as_secs_f64() * 1e3, Unit::Milliseconds);
    Ok(figure.from(format!("their end {}", ms(begun.elapsed()))))
}

fn address() -> Result<String> {
    std::env::var("WINDLASS_TEST_DOCKER").context("no engine: run this by `scripts/bench`")
}

async fn open(place: &BenchDir, at: usize) -> Result<Docker> {
    Ok(Docker::open(Engine::at(&address()?).await?, config(place, at)?).await?)
}

fn config(place: &BenchDir, at: usize) -> Result<Config> {
    Ok(Config {
        data: place.data(),
        workspace: place.workspace(),
        layout: Layout::service(),
        added: Vec::new(),
        home_files: HomeFiles::default(),
        task: format!("bench-{at}"),
        image: std::env::var("WINDLASS_TEST_IMAGE")?,
        environment: Vec::new(),
        environment_names: Vec::new(),
        hidden: Vec::new(),
        skills: None,
        trace: None,
        network: Network::Restricted(Egress::public()),
        limits: ResourceLimits {
            memory_bytes: 2 << 30,
            processes: 1024,
            ..ResourceLimits::DEFAULT
        },
        nano_cpus: 2_000_000_000,
        engine_patience: ENGINE_PATIENCE,
    })
}

async fn run(sandbox: &Docker) -> Result<()> {
    let command = Command::script("bench", "true", sandbox.isolation().workspace);
    let ended = sandbox.start(command).await?.wait().await;
    ensure!(ended.exit == Exit::Code(0), "{ended:?}");
    Ok(())
}

/// The same command by the engine's own means.
async fn exec(id: &str) -> Result<()> {
    let mut command = tokio::process::Command::new("docker");
    command.args(["exec", id, "bash", "-c", "true"]).env("DOCKER_HOST", address()?);
    let output = command.output().await?;
    ensure!(output.status.success(), "`docker exec` ended with {}", output.status);
    Ok(())
}
