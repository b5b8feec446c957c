//! One task at a time: start-up, turns, memory and bytes of the real program beside the floor's.
//!
//! Both sides take turns, so that a busy machine disturbs them alike. The first turn of a run makes the
//! sandbox; it is a figure of its own, and left out of the others on both sides.

use std::time::Duration;

use anyhow::{Context as _, Result};

use crate::Effort;
use crate::bodies;
use crate::figures::{Figure, Unit, median, ms, quantile};
use crate::memory::{self, Memory, Watch};
use crate::place::{BenchDir, Started};
use crate::server::{Observation, Server};

/// What a turn runs: the same command, once only looking and once with an effect.
pub const COMMANDS: [(&str, &str); 2] =
    [("read-only", "cat notes.txt; echo {n}"), ("effect", "echo {n} >> effects.txt")];

/// How much more than the floor's a median turn may cost. An effect is synced before it starts, and its
/// command has a supervisor of its own.
fn median_aim(name: &str) -> f64 {
    if name == "effect" { 1.8 } else { 1.5 }
}

/// How many turns at either end of a long run are compared.
const ENDS: usize = 100;

/// Start-up to the first request, in a data directory that exists.
pub fn start_up(effort: Effort) -> Result<Vec<Figure>> {
    let place = BenchDir::new()?;
    let server = Server::start("true", 0, None);
    let (mut ours, mut floor) = (Vec::new(), Vec::new());
    // The first makes the data directory and is not counted.
    conversation(&server, 0, place.windlass(&server)?)?;
    bodies::write(&place.bodies(), &server.last_body(), &[server.last_body().len() as u64])?;
    for _ in 0..effort.starts() {
        ours.push(first_request(&server, place.windlass(&server)?)?);
        floor.push(first_request(&server, place.floor(&server, "true", 1)?)?);
    }
    let (middle, p95) = (median(&ours), quantile(&ours, 0.95));
    let detail = format!("p95 {}; floor {}", ms(p95), ms(median(&floor)));
    let value = middle.as_secs_f64() * 1e3;
    let figure = Figure::new("start-up to first request", value, Unit::Milliseconds);
    Ok(vec![figure.at_most(30.0).from(detail)])
}

fn first_request(server: &Server, started: Started) -> Result<Duration> {
    let at = started.at;
    Ok(conversation(server, 0, started)?.first.saturating_duration_since(at))
}

/// Turns of every length, for one command.
pub fn turns(effort: Effort, name: &str, command: &str) -> Result<Vec<Figure>> {
    let mut figures = Vec::new();
    for &(turns, rounds) in effort.lengths() {
        let compared = compare(command, turns, rounds)
            .with_context(|| format!("{turns} turns with a {name} command"))?;
        let what = |which: &str| format!("{name}, {turns} turns: {which}");
        let Compared { ours, floor, .. } = &compared;
        let middle = Figure::ratio(what("median"), median(ours), median(floor));
        figures.push(middle.at_most(median_aim(name)));
        let (high, low) = (quantile(ours, 0.95), quantile(floor, 0.95));
        figures.push(Figure::ratio(what("p95"), high, low).at_most(2.0));
        if turns > 2 * ENDS {
            figures.extend(flatness(name, turns, &compared));
        }
        let first = median(&compared.first).as_secs_f64() * 1e3;
        let first = Figure::new(what("first turn"), first, Unit::Milliseconds);
        figures.push(first.from("makes the sandbox"));
        let sent = compared.bytes as f64 / (1024.0 * 1024.0);
        let sent = Figure::new(what("bytes sent"), sent, Unit::Megabytes);
        figures.push(sent.from("the floor sends the same"));
    }
    Ok(figures)
}

/// Bytes that a model thinks before each reply.
const REASONING_BYTES: usize = 4 * 1024;

/// Turns with reasoning beside turns without: it is journaled with each reply and sent back with each request.
pub fn reasoning(effort: Effort) -> Result<Vec<Figure>> {
    let (name, command) = COMMANDS[0];
    let (turns, rounds) = effort.lengths()[1];
    let thought = "The build fails where the parser ends. ".repeat(REASONING_BYTES / 39);
    let (with, without) = (BenchDir::new()?, BenchDir::new()?);
    let thinking = Server::start_thinking(command, turns, None, &[thought]);
    let plain = Server::start(command, turns, None);
    let (mut thoughtful, mut quick) = (Vec::new(), Vec::new());
    for _ in 0..rounds.max(2) {
        let seen = conversation(&thinking, turns, with.windlass(&thinking)?)?;
        thoughtful.extend_from_slice(&seen.turns[1..]);
        let seen = conversation(&plain, turns, without.windlass(&plain)?)?;
        quick.extend_from_slice(&seen.turns[1..]);
    }
    let what = format!("{name}, {turns} turns: 4 KB of reasoning a turn, beside none");
    Ok(vec![Figure::ratio(what, median(&thoughtful), median(&quick)).at_most(1.1)])
}

/// What both sides took for the same conversation.
struct Compared {
    /// All turns but the first of each run.
    ours: Vec<Duration>,
    floor: Vec<Duration>,
    /// The first turn of each run of windlass.
    first: Vec<Duration>,
    bytes: u64,
}

fn compare(command: &str, turns: usize, rounds: usize) -> Result<Compared> {
    let place = BenchDir::new()?;
    let server = Server::start(command, turns, None);
    let mut compared =
        Compared { ours: Vec::new(), floor: Vec::new(), first: Vec::new(), bytes: 0 };
    for round in 0..rounds {
        let seen = conversation(&server, turns, place.windlass(&server)?)?;
        if round == 0 {
            bodies::write(&place.bodies(), &server.last_body(), &seen.bytes)?;
            compared.bytes = seen.bytes.iter().sum();
        }
        compared.first.extend(seen.turns.first());
        compared.ours.extend(&seen.turns[1..]);
        let seen = conversation(&server, turns, place.floor(&server, command, 1)?)?;
        compared.floor.extend(&seen.turns[1..]);
    }
    Ok(compared)
}

/// Whether late turns cost what early ones did, beside the bytes that the floor sends too.
fn flatness(name: &str, turns: usize, compared: &Compared) -> Vec<Figure> {
    let part = |times: &[Duration], late: bool| {
        let runs = times.chunks_exact(turns - 1);
        let of = |run: &[Duration]| {
            if late { run[run.len() - ENDS..].to_vec() } else { run[..ENDS].to_vec() }
        };
        median(&runs.flat_map(of).collect::<Vec<_>>())
    };
    let (early, late) = (part(&compared.ours, false), part(&compared.ours, true));
    let (below, above) = (part(&compared.floor, false), part(&compared.floor, true));
    let growth = |from: Duration, to: Duration| to.as_secs_f64() / from.as_secs_f64();
    let grown = Figure::new(
        format!("{name}: growth from first {ENDS} to last {ENDS} of {turns}, beside the floor's"),
        growth(early, late) / growth(below, above),
        Unit::Times,
    );
    let detail = format!("{} to {}; floor {} to {}", ms(early), ms(late), ms(below), ms(above));
    vec![grown.at_most(1.25).from(detail)]
}

/// The most memory the process tree takes in a run.
pub fn peak_memory(effort: Effort, name: &str, command: &str) -> Result<Vec<Figure>> {
    let place = BenchDir::new()?;
    let turns = effort.watched_turns();
    let server = Server::start(command, turns, None);
    let (ours, seen) = measure_turns(&server, turns, place.windlass(&server)?)?;
    bodies::write(&place.bodies(), &server.last_body(), &seen.bytes)?;
    let (floor, _) = measure_turns(&server, turns, place.floor(&server, command, 1)?)?;
    let detail = format!(
        "resident, {:.1} MB proportional; floor {:.1} MB",
        memory::megabytes(ours.proportional),
        memory::megabytes(floor.resident),
    );
    let what = format!("{name}, {turns} turns: peak memory of the tree");
    let peak = Figure::new(what, memory::megabytes(ours.resident), Unit::Megabytes);
    Ok(vec![peak.at_most(45.0).from(detail)])
}

fn measure_turns(server: &Server, turns: usize, started: Started) -> Result<(Memory, Observation)> {
    let watch = Watch::start(started.child.id());
    let seen = conversation(server, turns, started);
    Ok((watch.end()?, seen?))
}

/// Lets a program run to its end and gives what the server saw of it.
fn conversation(server: &Server, turns: usize, started: Started) -> Result<Observation> {
    started.finish()?;
    server.conversation(turns)
}
