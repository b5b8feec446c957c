//! Which calls of a reply are carried out in one step.

use windlass_core::event::{RiskCheck, SubAgentSpawn, ToolCall};
use windlass_core::outcome::Outcome;
use windlass_core::question::Question;
use windlass_core::state::OpenCall;
use windlass_tools::Prepared;

/// What becomes of an open call.
pub(crate) enum CallStep {
    /// It does not run, or not now.
    WithoutRun(CallWithoutRun),
    /// A tool runs it.
    Run(Run),
    /// A sub-agent works on it.
    Spawn(Spawn),
}

/// A call that is settled by journaling: no tool and no sub-agent runs it.
pub(crate) enum CallWithoutRun {
    /// It has its result without running.
    Result { open: OpenCall, check: Option<RiskCheck>, outcome: Outcome },
    /// A person is asked; `call` is there when the call itself is the question.
    Ask { check: RiskCheck, call: Option<ToolCall>, question: Question },
}

impl CallWithoutRun {
    pub fn result(open: OpenCall, check: Option<RiskCheck>, outcome: Outcome) -> Self {
        Self::Result { open, check, outcome }
    }
}

/// A call that a tool runs. `check` is there unless it was started before a crash.
pub(crate) struct Run {
    pub open: OpenCall,
    pub check: Option<RiskCheck>,
    pub call: ToolCall,
    pub prepared: Prepared,
}

/// A call that a sub-agent works on. `check` is there unless it was started before a crash.
pub(crate) struct Spawn {
    pub open: OpenCall,
    pub check: Option<RiskCheck>,
    pub call: ToolCall,
    pub spawn: SubAgentSpawn,
}

/// What a call may run beside; it follows from its tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Concurrency {
    /// Others that only read.
    Readers,
    Children,
    Alone,
}

/// Calls that are carried out in one step, in the order of the reply.
#[derive(Default)]
pub(crate) struct Batch {
    /// Run side by side.
    pub group: Group,
    /// Settled after the group has ended.
    pub last: Option<CallWithoutRun>,
    concurrency: Option<Concurrency>,
}

/// Calls that run side by side.
#[derive(Default)]
pub(crate) enum Group {
    #[default]
    Empty,
    Runs(Vec<Run>),
    Spawns(Vec<Spawn>),
}

impl Batch {
    /// A batch of one call that does not run.
    pub fn settled(settled: CallWithoutRun) -> Self {
        Self { last: Some(settled), ..Self::default() }
    }

    /// Whether a call may join those that are there.
    pub(super) fn accepts(&self, concurrency: Concurrency) -> bool {
        match self.concurrency {
            None => true,
            Some(Concurrency::Alone) => false,
            Some(present) => present == concurrency,
        }
    }

    /// Adds a call; whether another may follow.
    pub(super) fn add(&mut self, plan: CallStep, concurrency: Concurrency) -> bool {
        self.concurrency = Some(concurrency);
        match (&mut self.group, plan) {
            (_, CallStep::WithoutRun(settled)) => {
                self.last = Some(settled);
                return false;
            }
            (Group::Runs(runs), CallStep::Run(run)) => runs.push(run),
            (Group::Spawns(spawns), CallStep::Spawn(spawn)) => spawns.push(spawn),
            (group @ Group::Empty, CallStep::Run(run)) => *group = Group::Runs(vec![run]),
            (group @ Group::Empty, CallStep::Spawn(spawn)) => *group = Group::Spawns(vec![spawn]),
            // A tool's calls are all of one kind, so this does not happen; the call waits for the next step.
            (Group::Runs(_), CallStep::Spawn(_)) | (Group::Spawns(_), CallStep::Run(_)) => {
                return false;
            }
        }
        true
    }

    /// The first call that runs and its check, unless it was started before a crash.
    pub fn first_new(&self) -> Option<(OpenCall, RiskCheck)> {
        let (open, check) = match &self.group {
            Group::Empty => return None,
            Group::Runs(runs) => runs.first().map(|run| (&run.open, &run.check))?,
            Group::Spawns(spawns) => spawns.first().map(|one| (&one.open, &one.check))?,
        };
        Some((open.clone(), check.clone()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settled() -> CallStep {
        let check = crate::testing::risk_check("read");
        let open = crate::testing::open_call("read", "{}");
        CallStep::WithoutRun(CallWithoutRun::result(open, Some(check), Outcome::ok("")))
    }

    #[test]
    fn readers_join_readers_and_nothing_joins_a_call_that_runs_alone() {
        use Concurrency::*;
        let with = |present| Batch { concurrency: Some(present), ..Batch::default() };
        for (present, next, joins) in [
            (Readers, Readers, true),
            (Children, Children, true),
            (Readers, Children, false),
            (Readers, Alone, false),
            (Alone, Readers, false),
            (Alone, Alone, false),
        ] {
            assert_eq!(with(present).accepts(next), joins, "{next:?} after {present:?}");
        }
        assert!(Batch::default().accepts(Alone), "the first call always has its turn");
    }

    #[test]
    fn a_call_that_does_not_run_ends_its_batch() {
        let mut batch = Batch::default();
        assert!(!batch.add(settled(), Concurrency::Readers));
        assert!(batch.last.is_some() && matches!(batch.group, Group::Empty));
    }
}
