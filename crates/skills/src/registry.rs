//! The skills as they are now: read by many, replaced as a whole when a file changes.
//!
//! Invariants:
//! - A reader holds one consistent set for as long as it likes (AX-049).
//! - What agents see under `/skills` is in place before the new set is.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::mirror::SkillMirror;
use crate::skill::Scope;
use crate::watch::{self, Watch};
use crate::{ApprovalFn, Problem, Skills};

/// The skills as they are now. Cheap to clone; all clones are one registry.
#[derive(Clone)]
pub struct SkillRegistry {
    inner: Arc<Inner>,
    /// Ends with the last clone that has it.
    watch: Option<Arc<Watch>>,
}

struct Inner {
    places: Vec<(PathBuf, Scope)>,
    /// The only skills that it has; all there are without.
    only: Option<Vec<String>>,
    approved: ApprovalFn,
    mirror: Option<SkillMirror>,
    current: Mutex<Arc<Skills>>,
    replaced: Condvar,
    /// One reload at a time.
    reloading: Mutex<()>,
    /// When reading last began.
    read_at: Mutex<Option<Instant>>,
}

impl SkillRegistry {
    /// Reads these directories, later ones winning, and keeps `mirror` as agents are to see them.
    pub fn open(
        places: Vec<(PathBuf, Scope)>,
        approved: ApprovalFn,
        mirror: Option<SkillMirror>,
    ) -> Self {
        let registry = Self::holding(Skills::default(), None, places, approved, mirror);
        registry.read();
        registry
    }

    /// The same, following its files for as long as a clone of it lives.
    pub fn follow(
        places: Vec<(PathBuf, Scope)>,
        approved: ApprovalFn,
        mirror: Option<SkillMirror>,
    ) -> Self {
        Self::follow_only(None, places, approved, mirror)
    }

    /// The same with these skills alone: no other is read, shown or listed (C-28).
    pub fn follow_only(
        only: Option<Vec<String>>,
        places: Vec<(PathBuf, Scope)>,
        approved: ApprovalFn,
        mirror: Option<SkillMirror>,
    ) -> Self {
        let mut registry = Self::holding(Skills::default(), only, places, approved, mirror);
        registry.watch = Some(Arc::new(watch::start(registry.clone())));
        registry
    }

    /// A registry that never changes.
    pub fn fixed(skills: Skills) -> Self {
        Self::holding(skills, None, Vec::new(), Arc::new(|_| false), None)
    }

    fn holding(
        skills: Skills,
        only: Option<Vec<String>>,
        places: Vec<(PathBuf, Scope)>,
        approved: ApprovalFn,
        mirror: Option<SkillMirror>,
    ) -> Self {
        let (current, replaced) = (Mutex::new(Arc::new(skills)), Condvar::new());
        let (reloading, read_at) = (Mutex::new(()), Mutex::new(None));
        let inner = Inner { places, only, approved, mirror, current, replaced, reloading, read_at };
        Self { inner: Arc::new(inner), watch: None }
    }

    /// The set as it is now.
    pub fn current(&self) -> Arc<Skills> {
        Arc::clone(&self.inner.current.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Waits until the set is as wanted, which a watch may bring about; `None` when it is not in time.
    pub fn wait_until(
        &self,
        mut wanted: impl FnMut(&Skills) -> bool,
        patience: Duration,
    ) -> Option<Arc<Skills>> {
        let current = self.inner.current.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.inner.replaced.wait_timeout_while(current, patience, |now| !wanted(now));
        let (current, late) = waited.unwrap_or_else(PoisonError::into_inner);
        (!late.timed_out()).then(|| Arc::clone(&current))
    }

    /// Where skills are looked for, the one that wins last.
    pub fn places(&self) -> &[(PathBuf, Scope)] {
        &self.inner.places
    }

    /// What agents see as `/skills`.
    pub fn shown(&self) -> Option<&Path> {
        self.inner.mirror.as_ref().map(SkillMirror::shown)
    }

    /// Reads everything and replaces the set; returns the old one and the new one.
    pub(crate) fn read(&self) -> (Arc<Skills>, Arc<Skills>) {
        let _one = self.inner.reloading.lock().unwrap_or_else(PoisonError::into_inner);
        *self.inner.read_at.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
        let before = self.current();
        let mut after = Skills::load_over(&self.inner.places, &self.inner.approved, &before);
        if let Some(only) = &self.inner.only {
            after = after.subset(only);
        }
        for problem in after.problems().iter().filter(|one| !before.problems().contains(one)) {
            report(problem);
        }
        if let Some(mirror) = &self.inner.mirror {
            mirror.sync(&after).iter().for_each(report);
        }
        let after = Arc::new(after);
        *self.inner.current.lock().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&after);
        self.inner.replaced.notify_all();
        (before, after)
    }

    /// Reads everything again unless that was begun less than `age` ago.
    pub fn refresh(&self, age: Duration) {
        let read_at = *self.inner.read_at.lock().unwrap_or_else(PoisonError::into_inner);
        if read_at.is_none_or(|then| then.elapsed() >= age) {
            self.reload();
        }
    }

    /// Reads everything again and logs what changed (AX-045, AX-046).
    pub fn reload(&self) {
        let (before, after) = self.read();
        for skill in after.list() {
            let name = &skill.meta.name;
            let known = before
                .get(name)
                .is_some_and(|old| old.version == skill.version && old.path == skill.path);
            if !known {
                tracing::info!("Reloaded skill: {name}");
            }
        }
        for skill in before.list().filter(|skill| after.get(&skill.meta.name).is_none()) {
            tracing::info!("Unloaded skill: {}", skill.meta.name);
        }
    }
}

impl fmt::Debug for SkillRegistry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SkillRegistry").field("places", &self.inner.places).finish_non_exhaustive()
    }
}

fn report(problem: &Problem) {
    tracing::warn!("Skill not usable as it is: {problem}");
}
