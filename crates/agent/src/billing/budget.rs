//! What a tree of agents may spend: reserved before a model call, settled after it.
//!
//! Invariants:
//! - A call starts only while something is left. What is in flight counts, so that agents side by side
//!   exceed a budget by at most one call together; a reservation that does not fit waits for the others.
//! - What was spent is a fold of the journals, so that it survives every crash.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use windlass_core::event::{BudgetHit, BudgetKind, BudgetLevel};
use windlass_core::id::TaskId;
use windlass_core::message::Usage;
use windlass_core::state::spending::STOP;
use windlass_core::state::{Spending, TaskState};

use crate::clock::Clock;

/// People are warned when this much of a budget is used, in percent.
const WARNING_PERCENT: f64 = 80.0;

/// What a tree may spend; what is `None` has no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SpendingLimits {
    pub cost_usd: Option<f64>,
    /// Prompt and reply tokens.
    pub tokens: Option<u64>,
    pub turns: Option<u64>,
    pub seconds: Option<u64>,
}

/// What a tree may spend and has spent.
pub struct Budget {
    limits: BTreeMap<BudgetKind, f64>,
    account: Mutex<Account>,
    settled: Notify,
    clock: Arc<dyn Clock>,
    /// The running time at which it was opened.
    opened: Duration,
}

#[derive(Default)]
struct Account {
    spent: BTreeMap<BudgetKind, f64>,
    reserved_usd: f64,
    in_flight: usize,
    raised: BTreeMap<TaskId, BTreeMap<BudgetKind, f64>>,
    warned: BTreeSet<BudgetKind>,
}

/// A call that is paid for; what is reserved is given back when it is dropped.
pub struct Reservation<'a> {
    budget: &'a Budget,
    usd: f64,
}

impl Budget {
    /// The budget of a tree whose tasks have come this far.
    pub(crate) fn new(
        limits: SpendingLimits,
        root: TaskId,
        tasks: &[TaskState],
        clock: Arc<dyn Clock>,
    ) -> Self {
        let given = [
            (BudgetKind::Cost, limits.cost_usd),
            (BudgetKind::Tokens, limits.tokens.map(|tokens| tokens as f64)),
            (BudgetKind::Turns, limits.turns.map(|turns| turns as f64)),
            (BudgetKind::Time, limits.seconds.map(|seconds| seconds as f64)),
        ];
        let mut account = Account::default();
        for state in tasks {
            let spending = &state.spending;
            account.add(BudgetKind::Cost, spending.own_usd + spending.lost_usd());
            account.add(BudgetKind::Tokens, spending.own_tokens as f64);
            account.add(BudgetKind::Turns, spending.own_turns as f64);
            if state.id() == root {
                account.add(BudgetKind::Time, state.work().active_ms() as f64 / 1_000.0);
            }
            account.raised.insert(state.id(), spending.raised.clone());
            account.warned.extend(&spending.warned);
        }
        Self {
            limits: given.into_iter().filter_map(|(kind, limit)| Some((kind, limit?))).collect(),
            account: Mutex::new(account),
            settled: Notify::new(),
            opened: clock.running_time(),
            clock,
        }
    }

    /// Whether a reservation can wait for others: only money is reserved.
    pub(crate) fn can_wait(&self) -> bool {
        self.limits.contains_key(&BudgetKind::Cost)
    }

    /// Takes over what people have granted to a task.
    pub(crate) fn sync_raises(&self, task: TaskId, spending: &Spending) {
        let mut account = self.lock();
        for kind in spending.raised.keys() {
            let before = account.raised.get(&task).and_then(|raised| raised.get(kind)).copied();
            if before != spending.raised.get(kind).copied() {
                account.warned.remove(kind);
            }
        }
        account.raised.insert(task, spending.raised.clone());
    }

    /// Reserves what a call may cost; waits while others hold what it needs. `Err` when a budget is
    /// used up.
    pub(crate) async fn reserve(&self, usd: f64) -> Result<Reservation<'_>, BudgetHit> {
        loop {
            let settled = self.settled.notified();
            {
                let mut account = self.lock();
                if let Some(hit) = self.exceeded_limit(&account) {
                    return Err(hit);
                }
                let remaining = self.remaining(&account, BudgetKind::Cost);
                if account.in_flight == 0 || usd <= remaining {
                    account.reserved_usd += usd;
                    account.in_flight += 1;
                    return Ok(Reservation { budget: self, usd });
                }
            }
            settled.await;
        }
    }

    /// Counts what was used.
    pub(crate) fn charge(&self, usage: &Usage, turns: u32) {
        let mut account = self.lock();
        account.add(BudgetKind::Cost, usage.cost_usd.unwrap_or(0.0));
        account.add(BudgetKind::Tokens, (usage.input_tokens + usage.output_tokens) as f64);
        account.add(BudgetKind::Turns, f64::from(turns));
    }

    /// The budget that is used up, if one is.
    pub(crate) fn hit(&self) -> Option<BudgetHit> {
        self.exceeded_limit(&self.lock())
    }

    /// A budget that is nearly used up and not yet warned about.
    pub(crate) fn warning(&self) -> Option<BudgetHit> {
        let mut account = self.lock();
        let hit = self.limits.keys().find_map(|&kind| {
            let (spent, limit) = (self.amount_spent(&account, kind), self.limit(&account, kind)?);
            let near = spent * 100.0 >= limit * WARNING_PERCENT && spent < limit;
            let level = BudgetLevel::Warning;
            (near && !account.warned.contains(&kind)).then_some(BudgetHit {
                budget: kind,
                level,
                spent,
                limit,
            })
        })?;
        account.warned.insert(hit.budget);
        Some(hit)
    }

    fn exceeded_limit(&self, account: &Account) -> Option<BudgetHit> {
        self.limits.keys().find_map(|&kind| {
            let (spent, limit) = (self.amount_spent(account, kind), self.limit(account, kind)?);
            let level = BudgetLevel::Exceeded;
            (spent >= limit).then_some(BudgetHit { budget: kind, level, spent, limit })
        })
    }

    fn limit(&self, account: &Account, kind: BudgetKind) -> Option<f64> {
        let raised: f64 = account.raised.values().filter_map(|raised| raised.get(&kind)).sum();
        Some(self.limits.get(&kind)? + raised)
    }

    fn amount_spent(&self, account: &Account, kind: BudgetKind) -> f64 {
        let now = match kind {
            BudgetKind::Time => self.clock.running_time().saturating_sub(self.opened).as_secs_f64(),
            BudgetKind::Cost | BudgetKind::Tokens | BudgetKind::Turns => 0.0,
        };
        account.spent.get(&kind).copied().unwrap_or(0.0) + now
    }

    fn remaining(&self, account: &Account, kind: BudgetKind) -> f64 {
        let limit = self.limit(account, kind).unwrap_or(f64::INFINITY);
        limit - self.amount_spent(account, kind) - account.reserved_usd
    }

    fn lock(&self) -> MutexGuard<'_, Account> {
        self.account.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Account {
    fn add(&mut self, kind: BudgetKind, amount: f64) {
        *self.spent.entry(kind).or_default() += amount;
    }
}

impl Reservation<'_> {
    /// What is reserved, when it is money at all; journaled with the request.
    pub(crate) fn known_usd(&self) -> Option<f64> {
        Some(self.usd).filter(|usd| *usd > 0.0)
    }

    /// Puts what the call took in place of what was reserved for it.
    pub(crate) fn settle(self, usage: &Usage, turns: u32) {
        self.budget.charge(usage, turns);
    }
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        let mut account = self.budget.lock();
        account.reserved_usd -= self.usd;
        account.in_flight -= 1;
        drop(account);
        self.budget.settled.notify_waiters();
    }
}

/// What a person is asked when a budget is used up: the question and the answers to choose from.
pub(crate) fn question(hit: &BudgetHit) -> (String, Vec<String>) {
    let (spent, limit) = (hit.spent, hit.limit);
    // Cents say little of a budget of a few cents.
    let digits = match hit.budget {
        BudgetKind::Cost if limit < 0.1 => 4,
        BudgetKind::Cost => 2,
        BudgetKind::Tokens | BudgetKind::Turns | BudgetKind::Time => 0,
    };
    let used = match hit.budget {
        BudgetKind::Cost => format!("${spent:.digits$} of ${limit:.digits$}"),
        BudgetKind::Tokens => format!("{spent:.0} of {limit:.0} tokens"),
        BudgetKind::Turns => format!("{spent:.0} of {limit:.0} turns"),
        BudgetKind::Time => format!("{spent:.0} of {limit:.0} seconds"),
    };
    // As much again, as often as it takes to have something left.
    let times = (spent / limit).floor().max(1.0);
    let least = 10f64.powi(-i32::try_from(digits).unwrap_or(0));
    let step = (limit * times).max(least);
    let question = format!("The {} budget is used up: {used}. Raise it, or stop?", hit.budget);
    (question, vec![format!("Raise by {step:.digits$}"), STOP.to_owned()])
}
