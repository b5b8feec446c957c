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
mod scenario;
mod long;
mod modes;
mod planning;
mod contract;
mod flow;
mod workspaces;

use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use machine::{Crash, Machine, Power};
use scenario::Outcome;

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
    let failed_others = torment_modes() + torment_planning() + torment_contract() + torment_long();
    let unbroken = Machine::new().play(None);
    assert!(unbroken.commits > 20, "the scenario commits often: {}", unbroken.commits);
    let points: Vec<_> = [Power::Stays, Power::Fails]
        .into_iter()
        .flat_map(|power| unbroken.crash_points().into_iter().map(move |crash| (crash, power)))
        .collect();
    let mut failed = torment(&points, &unbroken);
    for command in 1..=scenario::COMMANDS {
        let outcome = Machine::new().play_killed_during(command);
        if let Err(difference) = outcome.same_as(&unbroken) {
            failed += 1;
            println!("killed during command {command}: {difference}");
        }
    }
    let (points, commits) = (points.len() + scenario::COMMANDS, unbroken.commits);
    println!(
        "{points} crash points: before and after each of {commits} commits, twice, and during {} \
         commands",
        scenario::COMMANDS
    );
    failed + failed_others
}

/// The same for a session whose mode changes.
fn torment_modes() -> usize {
    let unbroken = modes::play(None);
    let points = unbroken.crash_points();
    let failed = side_by_side(&points, |&(crash, power)| {
        let played = modes::play(Some((crash, power)));
        played
            .same_as(&unbroken)
            .map_err(|difference| format!("modes killed {crash}: {difference}"))
    });
    println!("{} crash points of changing modes", points.len());
    failed
}

/// The same for a plan that is accepted and carried out.
fn torment_planning() -> usize {
    let unbroken = planning::play(None);
    assert!(unbroken.is_whole(), "the plan is accepted and carried out");
    let points = unbroken.crash_points();
    let failed = side_by_side(&points, |&(crash, power)| {
        planning::play(Some((crash, power)))
            .same_as(&unbroken)
            .map_err(|difference| format!("plan killed {crash}, power {power:?}: {difference}"))
    });
    println!("{} crash points of a plan that is accepted", points.len());
    failed
}

/// The same for a task that is verified and reviewed, and for the ledger.
fn torment_contract() -> usize {
    let unbroken = contract::play(None);
    let points = unbroken.crash_points();
    let failed = side_by_side(&points, |&(crash, power)| {
        let played = contract::play(Some((crash, power)));
        played
            .same_as(&unbroken)
            .map_err(|difference| format!("contract killed {crash}: {difference}"))
    });
    println!("{} crash points of a completion contract", points.len());
    failed
}

/// The same for a workflow, killed also around its git commands.
fn torment_flow() -> usize {
    let unbroken = flow::unbroken();
    let points = unbroken.points();
    let failed = side_by_side(&points, |&kill| flow::play(kill, &unbroken));
    println!("{} crash points: {}", points.len(), unbroken.describe());
    failed
}

/// The same for warm worktrees, pull requests and workspaces that commands make.
fn torment_workspaces() -> usize {
    let unbroken = workspaces::unbroken();
    let points = unbroken.points();
    let failed = side_by_side(&points, |&kill| workspaces::play(kill, &unbroken));
    println!("{} crash points of other workspaces", points.len());
    failed
}

/// The same for a task that is compacted and has sub-agents.
fn torment_long() -> usize {
    let unbroken = long::play(None);
    assert!(unbroken.compactions > 0, "the scenario is compacted");
    let points = unbroken.crash_points();
    let failed = side_by_side(&points, |&(crash, power)| {
        long::play(Some((crash, power))).same_as(&unbroken).map_err(|difference| {
            format!("long task killed {crash}, power {power:?}: {difference}")
        })
    });
    println!(
        "{} crash points of {} compactions and three sub-agents",
        points.len(),
        unbroken.compactions
    );
    failed
}

/// Plays every point, several at a time; returns how many came to another end.
fn torment(points: &[(Crash, Power)], unbroken: &Outcome) -> usize {
    side_by_side(points, |&(crash, power)| {
        let outcome = Machine::new().play(Some((crash, power)));
        outcome
            .same_as(unbroken)
            .map_err(|difference| format!("killed {crash}, power {power:?}: {difference}"))
    })
}

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
