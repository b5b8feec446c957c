//! Runs of workflows that are killed at commits and around git commands.

use std::fmt::Debug;

use windlass_store::CommitPhase;
use windlass_testkit::by_hand;

use crate::machine::{Crash, Machine, Power};
use crate::play::{self, Play};

/// Takes the place of git: at one chosen command that changes something it kills the program that started it, and
/// continues or dies with it. `kill-at` holds the number of the command and the moment.
const GIT: &str = r#"#!/bin/sh
here=$(dirname "$0")
case " $* " in
  *" worktree add "*|*" worktree remove "*|*" worktree prune "*|*" reset "*|*" add --all "*|*" commit "*|\
  *" commit-tree "*|*" notes "*|*" update-ref "*|*" merge --quiet "*|*" merge-tree "*|\
  *" checkout --quiet --detach "*|*" symbolic-ref HEAD "*|*" clean --quiet "*) ;;
  *) exec REAL "$@" ;;
esac
count=$(($(cat "$here/count" 2>/dev/null || echo 0) + 1))
echo "$count" > "$here/count"
read -r at moment < "$here/kill-at" 2>/dev/null || at=0
[ "$count" = "$at" ] || exec REAL "$@"
rm "$here/kill-at"
# A job in the background would lose the lock that it has as its input.
exec 3<&0
case "$moment" in
  before) kill -9 $PPID; exec REAL "$@" ;;
  during) REAL "$@" <&3 & kill -9 $PPID; kill -9 $!; wait ;;
  after) REAL "$@" <&3; kill -9 $PPID ;;
esac
"#;

/// When the program dies around a git command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KillMoment {
    /// Git continues without it.
    Before,
    /// Both die.
    During,
    /// Git has ended.
    After,
}

/// Where a run is killed.
#[derive(Clone, Copy, Debug)]
pub enum Kill {
    Commit(Crash, Power),
    Git(usize, KillMoment),
}

/// What an unbroken run came to, and how often it can be killed.
pub struct Unbroken<Outcome> {
    outcome: Outcome,
    per_process: Vec<u64>,
    git_commands: usize,
}

impl<Outcome: Debug + PartialEq> Unbroken<Outcome> {
    /// Plays a scenario that nothing kills.
    pub fn play(mut play: Play, run: impl FnOnce(&mut Play) -> Outcome) -> Self {
        let outcome = run(&mut play);
        let count = std::fs::read_to_string(play.machine.bin().join("count")).unwrap();
        Self { outcome, per_process: play.per_process, git_commands: count.trim().parse().unwrap() }
    }

    /// At every commit, and around every git command that changes something.
    pub fn points(
        &self,
        commits: &[(CommitPhase, Power)],
        git_commands: &[KillMoment],
    ) -> Vec<Kill> {
        let mut points: Vec<Kill> = play::points(&self.per_process, commits)
            .into_iter()
            .map(|(crash, power)| Kill::Commit(crash, power))
            .collect();
        for number in 1..=self.git_commands {
            points.extend(git_commands.iter().map(|&moment| Kill::Git(number, moment)));
        }
        points
    }

    /// What of a killed run is not as it was here.
    pub fn compare(&self, kill: Kill, outcome: &Outcome) -> Result<(), String> {
        match *outcome == self.outcome {
            true => Ok(()),
            false => {
                Err(format!("killed at {kill:?}: {outcome:#?}\nin place of\n{:#?}", self.outcome))
            }
        }
    }

    pub fn describe(&self) -> String {
        let commits: u64 = self.per_process.iter().sum();
        format!("{commits} commits and {} git commands", self.git_commands)
    }
}

/// Puts the git that kills in the place of the machine's; the commit to kill at, where it is one.
pub fn install_git(machine: &Machine, kill: Option<Kill>) -> Option<(Crash, Power)> {
    let bin = machine.bin();
    std::fs::create_dir(&bin).unwrap();
    let real = by_hand(&bin, "command -v git");
    std::fs::write(bin.join("git"), GIT.replace("REAL", real.trim())).unwrap();
    by_hand(&bin, "chmod +x git");
    match kill? {
        Kill::Commit(crash, power) => Some((crash, power)),
        Kill::Git(number, moment) => {
            let moment = format!("{moment:?}").to_lowercase();
            std::fs::write(bin.join("kill-at"), format!("{number} {moment}\n")).unwrap();
            None
        }
    }
}
