//! How long reading and deciding a command takes, measured over the corpus.
//!
//! `cargo run --release -p windlass-core --example policy_speed`

use std::time::{Duration, Instant};

use windlass_core::policy::command::{Context, read};
use windlass_core::policy::explain::Explanation;

const RUNS: usize = 10_000;

#[expect(clippy::print_stdout, reason = "printing figures is what it is for")]
fn main() {
    let files = [
        include_str!("../tests/it/corpus/disguised.txt"),
        include_str!("../tests/it/corpus/harmless.txt"),
    ];
    let commands: Vec<String> = files
        .iter()
        .flat_map(|file| file.lines())
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .filter_map(|line| line.splitn(3, ' ').nth(2))
        .map(|command| command.replace('⏎', "\n"))
        .collect();
    let context = Context::new("/workspace", "/home/user");
    let mut times: Vec<(Duration, &str)> = Vec::with_capacity(RUNS);
    let start = Instant::now();
    let mut bytes = 0;
    for command in commands.iter().cycle().take(RUNS) {
        let one = Instant::now();
        let explanation = Explanation::new(command, read(command, &context));
        times.push((one.elapsed(), command));
        bytes += serde_json::to_string(&explanation).map_or(0, |json| json.len());
    }
    let total = start.elapsed();
    times.sort();
    let at = |part: usize| times[times.len() * part / 1000 - 1].0;
    println!("{RUNS} commands, {} of them distinct, {bytes} bytes of JSON", commands.len());
    println!("total {total:?}; p50 {:?}, p99 {:?}, p99.9 {:?}", at(500), at(990), at(999));
    for (time, command) in times.iter().rev().take(3) {
        println!("  {time:?}  {}", command.replace('\n', "⏎"));
    }
}
