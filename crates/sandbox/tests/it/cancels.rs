//! A thousand cancels at random moments of random process trees.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::task::JoinSet;
use windlass_sandbox::{Exit, Sandbox};

use crate::everyone;
use crate::support::{Place, Who, mark, marked, script};

/// How many trees live at once: enough to mix, few enough for two cores to make progress.
const AT_ONCE: usize = 24;

/// A small generator whose whole state is its seed, so that a failure can be repeated.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        // Steele, Lea and Flood's SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % sides
    }
}

/// A random tree: every process in it writes to the file again and again for as long as it lives.
fn tree(dice: &mut Dice, file: &str, mark: &str) -> String {
    let mut text = String::from(": MARK; ");
    if dice.roll(4) == 0 {
        text.push_str("trap '' TERM; ");
    }
    for _ in 0..=dice.roll(3) {
        let beat = format!("while :; do echo x >> {file}; sleep 0.0{}; done", 2 + dice.roll(7));
        let branch = match dice.roll(7) {
            0 => format!("( {beat} ) &"),
            1 => format!("( ( {beat} ) & ) &"),
            2 => format!("setsid bash -c ': MARK; {beat}' &"),
            3 => format!("nohup bash -c ': MARK; trap \"\" TERM; {beat}' > /dev/null 2>&1 &"),
            4 => format!("( trap '' TERM HUP INT; {beat} ) &"),
            5 => format!("bash -c ': MARK; kill -STOP $$; {beat}' &"),
            _ => format!("( exec > /dev/null 2>&1; ( setsid bash -c ': MARK; {beat}' & ) ) &"),
        };
        let _ = write!(text, "{branch} ");
    }
    text.push_str(match dice.roll(3) {
        // What it waits for may be gone at once; it must not end before it is cancelled.
        0 => "wait; exec sleep MARK",
        1 => "while :; do sleep 0.05; done",
        _ => "exec sleep MARK",
    });
    text.replace("MARK", mark)
}

struct Cancelled {
    file: PathBuf,
    size: u64,
    took: Duration,
}

async fn cancel(sandbox: Arc<dyn Sandbox>, seed: u64, place: PathBuf, mark: String) -> Cancelled {
    let mut dice = Dice(seed);
    let name = format!("beats-{seed}");
    let text = tree(&mut dice, &name, &mark);
    let running = sandbox.start(script(&*sandbox, &text)).await.unwrap();
    tokio::time::sleep(Duration::from_millis(dice.roll(60))).await;
    let grace = [0, 50, 200, 1000][usize::try_from(dice.roll(4)).unwrap()];
    let begun = Instant::now();
    running.killer().kill(Duration::from_millis(grace));
    let ended = running.wait().await;
    let took = begun.elapsed();
    assert_eq!(ended.exit, Exit::Killed, "seed {seed}: {text}");
    let file = place.join(name);
    Cancelled { size: size(&file), file, took }
}

fn size(file: &Path) -> u64 {
    fs::metadata(file).map_or(0, |found| found.len())
}

async fn cancels(place: &Place, sandbox: Arc<dyn Sandbox>, count: u64, seed: u64) {
    let mark = mark();
    let mut jobs = JoinSet::new();
    let mut done = Vec::new();
    for at in 0..count {
        if jobs.len() >= AT_ONCE {
            done.push(jobs.join_next().await.unwrap().unwrap());
        }
        let job = cancel(sandbox.clone(), seed + at, place.workspace.clone(), mark.clone());
        jobs.spawn(job);
    }
    while let Some(cancelled) = jobs.join_next().await {
        done.push(cancelled.unwrap());
    }
    assert_eq!(marked(&mark), Vec::<String>::new(), "survivors, seed {seed}");
    let grown: BTreeMap<&Path, u64> = done
        .iter()
        .filter(|cancelled| size(&cancelled.file) != cancelled.size)
        .map(|cancelled| (cancelled.file.as_path(), size(&cancelled.file)))
        .collect();
    assert_eq!(grown, BTreeMap::new(), "written after the end, seed {seed}");
    let mut times: Vec<Duration> = done.iter().map(|cancelled| cancelled.took).collect();
    times.sort();
    println!(
        "{count} cancels, seed {seed}: median {:?}, p99 {:?}, longest {:?}",
        times[times.len() / 2],
        times[times.len() * 99 / 100],
        times[times.len() - 1]
    );
}

/// As root the thousand are shared between the three kinds of users.
#[test]
fn a_thousand_cancels_leave_no_survivor_and_no_later_write() {
    everyone!(|who| async move {
        let place = Place::new(who);
        let alone = who == Who::User && !crate::support::is_child();
        let (in_local, on_host) = if alone { (700, 300) } else { (234, 100) };
        // Any seed will do, and the one that failed is printed.
        let seed = u64::from(std::process::id()) * 1_000_000;
        cancels(&place, Arc::new(place.sandbox().await), in_local, seed).await;
        cancels(&place, Arc::new(place.host()), on_host, seed + 10_000).await;
    });
}
