//! The exhaustive crash test: the program is killed before and after every commit, resumed, and must
//! come to the same end as if nothing had happened.
//!
//! The binary is both sides: started with `WINDLASS_CRASH` it is `windlass` with a hook that ends it by
//! SIGKILL at one chosen commit; started without, it goes through every point in turn. A second pass
//! also cuts the write-ahead log to its last synced length, as a power failure would.
//!
//! What is compared: the files in the workspace, the conversation the model saw last (byte for byte),
//! the result, and how often each effect happened, counted by the effect itself.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test with a harness of its own: it panics and prints as tests do"
)]

mod machine;
mod play;
mod git;
mod scenario;
mod long;
mod modes;
mod planning;
mod contract;
mod flow;
mod workspaces;

use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use machine::{Crash, Power};

/// Machines at once; most of the time one waits for its disk.
const SIDE_BY_SIDE: usize = 6;

fn main() -> ExitCode {
    if std::env::var_os(machine::CHILD).is_some() {
        return machine::be_windlass();
    }
    // `cargo test -- NAME` filters by name.
    let wanted = std::env::args().skip(1).find(|arg| !arg.starts_with('-'));
    let is_wanted = |name: &str| wanted.as_deref().is_none_or(|wanted| name.contains(wanted));
    let chosen: Vec<_> = TESTS.iter().filter(|(name, _)| is_wanted(name)).collect();
    println!("\nrunning {} tests", chosen.len());
    let mut bad = 0;
    for (name, test) in &chosen {
        let failed = test();
        bad += usize::from(failed > 0);
        println!("test {name} ... {}", if failed == 0 { "ok" } else { "FAILED" });
    }
    let verdict = if bad == 0 { "ok" } else { "FAILED" };
    let (ok, out) = (chosen.len() - bad, TESTS.len() - chosen.len());
    println!(
        "\ntest result: {verdict}. {ok} passed; {bad} failed; 0 ignored; 0 measured; {out} filtered out"
    );
    ExitCode::from(u8::from(bad > 0))
}

/// Kills the program at many points and says how many came to another end.
type Torment = fn() -> usize;

/// The tests of this binary, by their names.
const TESTS: [(&str, Torment); 3] = [
    ("every_crash_point_comes_to_the_same_end", torment_tasks),
    ("every_crash_point_of_a_workflow_comes_to_the_same_end", torment_flow),
    ("every_crash_point_of_other_workspaces_comes_to_the_same_end", torment_workspaces),
];

/// Tasks of every kind.
fn torment_tasks() -> usize {
    let unbroken = scenario::play(None);
    assert!(unbroken.commits > 20, "the scenario commits often: {}", unbroken.commits);
    let mut failed = torment("tasks", &unbroken.crash_points(), |crash| {
        scenario::play(Some(crash)).same_as(&unbroken)
    });
    for command in 1..=scenario::COMMANDS {
        if let Err(difference) = scenario::play_killed_during(command).same_as(&unbroken) {
            failed += 1;
            println!("killed during command {command}: {difference}");
        }
    }
    let unbroken = modes::play(None);
    failed += torment("modes", &unbroken.crash_points(), |crash| {
        modes::play(Some(crash)).same_as(&unbroken)
    });
    let unbroken = planning::play(None);
    assert!(unbroken.is_whole(), "the plan is accepted and carried out");
    failed += torment("a plan", &unbroken.crash_points(), |crash| {
        planning::play(Some(crash)).same_as(&unbroken)
    });
    let unbroken = contract::play(None);
    failed += torment("a completion contract", &unbroken.crash_points(), |crash| {
        contract::play(Some(crash)).same_as(&unbroken)
    });
    let unbroken = long::play(None);
    assert!(unbroken.compactions > 0, "the scenario is compacted");
    failed += torment("a compacted task", &unbroken.crash_points(), |crash| {
        long::play(Some(crash)).same_as(&unbroken)
    });
    failed
}

/// Plays one scenario at every point; returns how many came to another end.
fn torment(
    what: &str,
    points: &[(Crash, Power)],
    play: impl Fn((Crash, Power)) -> Result<(), String> + Sync,
) -> usize {
    let failed = side_by_side(points, |&(crash, power)| {
        play((crash, power))
            .map_err(|difference| format!("{what} killed {crash}, power {power:?}: {difference}"))
    });
    println!("{} crash points of {what}", points.len());
    failed
}

/// A workflow, killed also around its git commands.
fn torment_flow() -> usize {
    let unbroken = flow::unbroken();
    let points = flow::points(&unbroken);
    let failed = side_by_side(&points, |&kill| flow::play(kill, &unbroken));
    println!("{} crash points of a workflow: {}", points.len(), unbroken.describe());
    failed
}

/// The same for warm worktrees, pull requests and workspaces that commands make.
fn torment_workspaces() -> usize {
    let unbroken = workspaces::unbroken();
    let points = workspaces::points(&unbroken);
    let failed = side_by_side(&points, |&kill| workspaces::play(kill, &unbroken));
    println!("{} crash points of other workspaces: {}", points.len(), unbroken.describe());
    failed
}

/// Plays every point, several at a time; returns how many came to another end.
fn side_by_side<T: Sync>(points: &[T], play: impl Fn(&T) -> Result<(), String> + Sync) -> usize {
    let next = AtomicUsize::new(0);
    let failed = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..SIDE_BY_SIDE {
            scope.spawn(|| {
                while let Some(point) = points.get(next.fetch_add(1, Relaxed)) {
                    if let Err(difference) = play(point) {
                        failed.fetch_add(1, Relaxed);
                        println!("{difference}");
                    }
                }
            });
        }
    });
    failed.into_inner()
}
