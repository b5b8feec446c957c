//! The kernel's watches, counted: several registries want the same directories.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use notify::{Event, RecommendedWatcher, RecursiveMode, Watcher as _};

use super::watch_set::WatchSet;

/// How watches were set.
pub(super) enum Set {
    /// As far as the kernel lets us.
    Done,
    /// A directory has disappeared meanwhile.
    Gone,
}

pub(super) struct Watches {
    /// `None` where the kernel refuses; then everything is looked at now and then.
    watcher: Option<RecommendedWatcher>,
    /// How many want each directory, with everything below it or alone.
    counts: HashMap<PathBuf, Count>,
    refused: bool,
}

#[derive(Clone, Copy, Default)]
struct Count {
    trees: usize,
    alone: usize,
}

impl Watches {
    pub fn new(handler: impl Fn(notify::Result<Event>) + Send + 'static) -> Self {
        let made = notify::recommended_watcher(handler);
        if let Err(error) = &made {
            tracing::warn!("Skills are checked now and then instead of being watched: {error}");
        }
        Self { refused: made.is_err(), watcher: made.ok(), counts: HashMap::new() }
    }

    /// Whether the kernel refuses watches.
    pub fn is_refused(&self) -> bool {
        self.refused
    }

    /// Watches what a set names, once more where it is watched already: another directory may be there now.
    pub fn add(&mut self, watch_set: &WatchSet) -> Set {
        let trees = watch_set.trees.iter().map(|path| (path, RecursiveMode::Recursive));
        let above = watch_set.above.iter().map(|path| (path, RecursiveMode::NonRecursive));
        let mut added = Vec::new();
        for (path, mode) in trees.chain(above) {
            if self.set(path, mode).is_err() {
                added.into_iter().for_each(|(path, mode)| self.release_one(path, mode));
                return Set::Gone;
            }
            added.push((path, mode));
        }
        Set::Done
    }

    fn set(&mut self, path: &Path, mode: RecursiveMode) -> Result<(), ()> {
        let count = self.counts.get(path).copied().unwrap_or_default();
        // A directory that is watched with everything below it stays so.
        let effective = if count.trees > 0 { RecursiveMode::Recursive } else { mode };
        if let Some(watcher) = &mut self.watcher {
            match watcher.watch(path, effective) {
                Ok(()) => {}
                Err(error) if is_gone(&error) => return Err(()),
                Err(error) => {
                    if !std::mem::replace(&mut self.refused, true) {
                        tracing::warn!(
                            "Some skills are checked now and then instead of being watched: {error}"
                        );
                    }
                }
            }
        }
        let count = self.counts.entry(path.to_owned()).or_default();
        *of(count, mode) += 1;
        Ok(())
    }

    /// Ends the watches that nobody else wants.
    pub fn release(&mut self, watch_set: &WatchSet) {
        watch_set.trees.iter().for_each(|path| self.release_one(path, RecursiveMode::Recursive));
        watch_set.above.iter().for_each(|path| self.release_one(path, RecursiveMode::NonRecursive));
    }

    fn release_one(&mut self, path: &Path, mode: RecursiveMode) {
        let Some(count) = self.counts.get_mut(path) else { return };
        let wants = of(count, mode);
        *wants = wants.saturating_sub(1);
        if count.trees + count.alone > 0 {
            return;
        }
        self.counts.remove(path);
        if let Some(watcher) = &mut self.watcher {
            // It may be gone, and its watch with it.
            let _ = watcher.unwatch(path);
        }
    }
}

fn of(count: &mut Count, mode: RecursiveMode) -> &mut usize {
    match mode {
        RecursiveMode::Recursive => &mut count.trees,
        RecursiveMode::NonRecursive => &mut count.alone,
    }
}

fn is_gone(error: &notify::Error) -> bool {
    match &error.kind {
        notify::ErrorKind::PathNotFound | notify::ErrorKind::WatchNotFound => true,
        notify::ErrorKind::Io(error) => error.kind() == std::io::ErrorKind::NotFound,
        _ => false,
    }
}
