//! What the gate costs: 10,000 commands through `windlass explain`, and a single decision.

use std::fmt::Write as _;
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use windlass_coordinator::explain::Explanation;
use windlass_core::axes::Axes;
use windlass_core::policy::RuleSet;
use windlass_shell::{Context, analyze};

use crate::figures::{Figure, Unit, median, quantile};
use crate::place::{BenchDir, program};

/// The number of commands that the aim is stated for.
const COMMANDS: usize = 10_000;

/// Commands in disguise and their look-alikes: class, risk, command.
const CORPUS: [&str; 2] = [
    include_str!("../../shell/tests/it/corpus/disguised.txt"),
    include_str!("../../shell/tests/it/corpus/harmless.txt"),
];

pub fn figures() -> Result<Vec<Figure>> {
    let commands = commands();
    let context = Context::new("/workspace", "/home/user");
    let axes = Axes::headless();
    let decide = |command: &String| {
        let begun = Instant::now();
        let explanation =
            Explanation::new(command, analyze(command, &context), &RuleSet::none(), &axes);
        let took = begun.elapsed();
        drop(explanation);
        took
    };
    let times: Vec<Duration> = commands.iter().map(decide).collect();
    let us = |time: Duration| time.as_secs_f64() * 1e6;
    let one = Figure::new("one decision, p99", us(quantile(&times, 0.99)), Unit::Microseconds);
    let one = one.at_most(300.0).from(format!("median {:.0} µs", us(median(&times))));
    let explained = explained(&commands)?;
    let what = format!("{COMMANDS} commands through `windlass explain`");
    let all = Figure::new(what, explained.as_secs_f64() * 1e3, Unit::Milliseconds).at_most(2000.0);
    Ok(vec![one, all])
}

/// How long the program takes for all, its start included.
fn explained(commands: &[String]) -> Result<Duration> {
    let place = BenchDir::new()?;
    let mut input = String::new();
    for command in commands {
        let _ = writeln!(input, "{}", serde_json::to_string(command)?);
    }
    let begun = Instant::now();
    let mut child = Command::new(program("windlass")?)
        .args(["explain", "--json", "--stdin"])
        .env("WINDLASS_DATA", place.data())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut pipe = child.stdin.take().context("its input is a pipe")?;
    let writing = std::thread::spawn(move || pipe.write_all(input.as_bytes()));
    let output = child.wait_with_output()?;
    let took = begun.elapsed();
    let _ = writing.join();
    ensure!(output.status.success(), "`windlass explain` ended with {}", output.status);
    let lines = output.stdout.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).count();
    ensure!(lines == commands.len(), "{lines} answers to {} commands", commands.len());
    Ok(took)
}

fn commands() -> Vec<String> {
    let lines = CORPUS.iter().flat_map(|file| file.lines());
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    let commands: Vec<String> = lines
        .filter_map(|line| line.splitn(3, ' ').nth(2))
        .map(|command| command.replace('⏎', "\n"))
        .collect();
    commands.iter().cycle().take(COMMANDS).cloned().collect()
}
