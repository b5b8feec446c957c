//! Twenty worktrees at once in a repository of 5,000 files: made, worked in, merged through the queue with three
//! conflicts that are resolved, and removed; time and disk beside plain `git worktree add`.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use tempfile::TempDir;
use windlass_core::event::{WorktreeChanged, WorktreeKind, WorktreeState};
use windlass_workflow::definition::Strategy;
use windlass_workflow::git::Git;
use windlass_workflow::merge::{self, Attempt, MergePreview, MergeRequest, MoveOutcome};
use windlass_workflow::worktree::{self, Removal};

use crate::figures::{Figure, Unit};

const FILES: usize = 5_000;
const TREES: usize = 20;
/// Worktrees that change the same line of a file as the first does.
const CONFLICTS: usize = 3;

pub fn figures() -> Result<Vec<Figure>> {
    let root = tempfile::tempdir()?;
    let repository = repository(&root)?;
    let git = Git::open(&repository)?;
    // Each comes first once, on a disk that has written what was before it: whoever comes second pays for the first.
    let (trees, made) =
        timed(root.path(), || side_by_side(&git, root.path(), &repository, "trees"))?;
    let ((), floor) = timed(root.path(), || plain(&repository, root.path(), "plain"))?;
    let ((), floor_again) = timed(root.path(), || plain(&repository, root.path(), "again"))?;
    let (_, made_again) =
        timed(root.path(), || side_by_side(&git, root.path(), &repository, "more"))?;
    let (made, floor) = (made + made_again, floor + floor_again);
    let (disk, plain_disk) =
        (disk_of(&root.path().join("trees"))?, disk_of(&root.path().join("plain"))?);
    trees.iter().enumerate().try_for_each(|(number, tree)| work(tree, number))?;
    let begun = Instant::now();
    let conflicts = merge_all(&git, &trees)?;
    let merged = begun.elapsed();
    ensure!(conflicts == CONFLICTS, "{conflicts} conflicts in place of {CONFLICTS}");
    let begun = Instant::now();
    let removed = trees
        .iter()
        .filter(|tree| matches!(worktree::remove(&git, tree, &[]), Ok(Removal::Removed)));
    let removed = removed.count();
    ensure!(removed == TREES, "{removed} of {TREES} worktrees were removed");
    let gone = begun.elapsed();
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    Ok(vec![
        Figure::ratio(format!("{TREES} worktrees of {FILES} files, made at once"), made, floor),
        Figure::new("their disk, to that of plain worktrees", disk / plain_disk, Unit::Times)
            .from(format!("{disk:.1} MB / {plain_disk:.1} MB")),
        Figure::new(
            format!("{TREES} merges through the queue, {CONFLICTS} conflicts resolved"),
            ms(merged),
            Unit::Milliseconds,
        ),
        Figure::new(format!("{removed} worktrees removed"), ms(gone), Unit::Milliseconds),
    ])
}

fn repository(root: &TempDir) -> Result<PathBuf> {
    let top = root.path().canonicalize()?.join("repository");
    for number in 0..FILES {
        let path = top.join(format!("src/{}/{number}.txt", number % 100));
        std::fs::create_dir_all(path.parent().context("it has a directory")?)?;
        std::fs::write(path, format!("file {number}\n").repeat(20))?;
    }
    std::fs::write(top.join("shared.txt"), "one\ntwo\nthree\n")?;
    for args in [
        "init -q -b main",
        "config user.name Ada",
        "config user.email ada@example.com",
        "add -A",
        "commit -qm start",
        "checkout -qb elsewhere",
    ] {
        by_hand(&top, args)?;
    }
    Ok(top)
}

fn by_hand(directory: &Path, args: &str) -> Result<String> {
    let output = Command::new("git").args(args.split(' ')).current_dir(directory).output()?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned()),
        false => bail!("git {args}: {}", String::from_utf8_lossy(&output.stderr)),
    }
}

/// Does something on a disk with nothing left to write, and says how long it took.
fn timed<T>(root: &Path, work: impl FnOnce() -> Result<T>) -> Result<(T, Duration)> {
    ensure!(Command::new("sync").arg("-f").arg(root).status()?.success(), "the disk is written");
    let begun = Instant::now();
    let done = work()?;
    Ok((done, begun.elapsed()))
}

/// The floor: git alone, one after the other, because it locks nothing against itself.
fn plain(repository: &Path, root: &Path, name: &str) -> Result<()> {
    for number in 0..TREES {
        let path = root.join(format!("{name}/{number}"));
        let add = format!("worktree add -q -b {name}-{number} {} main", path.display());
        by_hand(repository, &add)?;
    }
    Ok(())
}

fn side_by_side(
    git: &Git,
    root: &Path,
    repository: &Path,
    name: &str,
) -> Result<Vec<WorktreeChanged>> {
    let base = by_hand(repository, "rev-parse main")?;
    let tree = |number: usize| WorktreeChanged {
        name: number.to_string(),
        state: WorktreeState::Adding,
        kind: WorktreeKind::Single,
        sparse: Vec::new(),
        path: root.join(format!("{name}/{number}")).display().to_string(),
        branch: format!("windlass/{name}-{number}"),
        base: base.clone(),
        port: None,
        detail: None,
    };
    let trees: Vec<_> = (0..TREES).map(tree).collect();
    std::thread::scope(|scope| {
        let jobs: Vec<_> =
            trees.iter().map(|tree| scope.spawn(|| worktree::add(git, tree))).collect();
        jobs.into_iter().try_for_each(|job| match job.join() {
            Ok(made) => made.map_err(anyhow::Error::from),
            Err(_) => bail!("a worktree was not made"),
        })
    })?;
    Ok(trees)
}

/// Each changes a file of its own; the last ones also the line that the first has changed.
fn work(tree: &WorktreeChanged, number: usize) -> Result<()> {
    let path = Path::new(&tree.path);
    std::fs::write(
        path.join(format!("src/{number}/{number}.txt")),
        format!("changed by {number}\n"),
    )?;
    if number == 0 || number >= TREES - CONFLICTS {
        std::fs::write(path.join("shared.txt"), format!("one\nby {number}\nthree\n"))?;
    }
    by_hand(path, "add -A")?;
    by_hand(path, &format!("commit -qm {number}")).map(drop)
}

/// All at once, through the queue; how many conflicts there were.
fn merge_all(git: &Git, trees: &[WorktreeChanged]) -> Result<usize> {
    std::thread::scope(|scope| {
        let jobs: Vec<_> = trees.iter().map(|tree| scope.spawn(|| merge_one(git, tree))).collect();
        jobs.into_iter().try_fold(0, |conflicts, job| match job.join() {
            Ok(conflict) => conflict.map(|conflict| conflicts + usize::from(conflict)),
            Err(_) => bail!("a merge was not made"),
        })
    })
}

/// Merges one when it is its turn; whether it conflicts.
fn merge_one(git: &Git, tree: &WorktreeChanged) -> Result<bool> {
    let _turn = loop {
        match merge::try_turn(git)? {
            Some(turn) => break turn,
            None => std::thread::sleep(Duration::from_millis(1)),
        }
    };
    let wanted = MergeRequest {
        branch: &tree.branch,
        tree: Path::new(&tree.path),
        target: "main",
        strategy: Strategy::Merge,
        message: "Merge it",
    };
    let had_conflict = match merge::compute(git, &wanted)? {
        MergePreview::Conflict { .. } => {
            resolve(Path::new(&tree.path))?;
            true
        }
        MergePreview::Clean(_) | MergePreview::Nothing { .. } => false,
    };
    let MergePreview::Clean(computed) = merge::compute(git, &wanted)? else {
        bail!("`{}` cannot be merged", tree.branch);
    };
    let moved = merge::advance(git, "main", &computed, Attempt::First)?;
    ensure!(moved == MoveOutcome::Done, "{moved:?}");
    Ok(had_conflict)
}

/// What an agent does about a conflict: the target is merged into the branch, and both sides are kept.
fn resolve(tree: &Path) -> Result<()> {
    ensure!(by_hand(tree, "merge -q main").is_err(), "there is a conflict to be resolved");
    let shared = std::fs::read_to_string(tree.join("shared.txt"))?;
    let kept: Vec<&str> =
        shared.lines().filter(|line| !line.starts_with(['<', '=', '>'])).collect();
    std::fs::write(tree.join("shared.txt"), kept.join("\n") + "\n")?;
    by_hand(tree, "add -A")?;
    by_hand(tree, "commit -qm resolved").map(drop)
}

fn disk_of(directory: &Path) -> Result<f64> {
    let output = Command::new("du").args(["-sk"]).arg(directory).output()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let kilobytes: f64 = text.split_whitespace().next().context("du prints a number")?.parse()?;
    Ok(kilobytes / 1024.0)
}
