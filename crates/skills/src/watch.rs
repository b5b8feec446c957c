//! Noticing that skill files change: by the kernel's events, and by a scan every few minutes.
//!
//! Invariants:
//! - Watches are set before files are read, so nothing falls between.
//! - A directory that is not there yet is noticed when it appears: its nearest ancestor is watched (O-40).
//! - Many changes close together are one reload (AX-081).

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender, TrySendError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use notify::event::{Event, EventKind, ModifyKind};
use notify::{RecommendedWatcher, RecursiveMode, Watcher as _};

use crate::registry::SkillRegistry;
use crate::skill::Scope;

/// How long files must be quiet before they are read.
const DEBOUNCE: Duration = Duration::from_millis(100);
/// How long a stream of changes may put reading off.
const MAX_WAIT: Duration = Duration::from_secs(1);
/// How often everything is scanned anyway: kernels drop events, and network disks send none.
const RESCAN: Duration = Duration::from_secs(180);
/// The same where the kernel refuses watches (its limit per user is reached).
const POLL: Duration = Duration::from_secs(2);
/// How often watches are set again when a directory disappears meanwhile. After that the next change or the
/// next scan sets them.
const WATCH_ATTEMPTS: usize = 3;
/// Events on their way to the reader; when more come at once, everything is read anyway.
const QUEUE: usize = 4096;

/// Follows the files of a [`SkillRegistry`] for as long as it lives.
#[derive(Debug)]
pub(crate) struct Watch {
    signals: SyncSender<Signal>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
enum Signal {
    Happened(Event),
    Stop,
}

impl Drop for Watch {
    fn drop(&mut self) {
        if let Some(thread) = self.thread.take() {
            // The thread empties a full queue, so this waits and does not hang.
            let _ = self.signals.send(Signal::Stop);
            let _ = thread.join();
        }
    }
}

/// Reads the files of a registry for the first time and starts to follow them.
pub(crate) fn start(registry: SkillRegistry) -> Watch {
    let (signals, received) = mpsc::sync_channel(QUEUE);
    let needs_full_reload = Arc::new(AtomicBool::new(false));
    let (watcher, wanted) = (None, Arc::default());
    let mut follower = Follower {
        registry,
        signals: signals.clone(),
        received,
        needs_full_reload,
        watcher,
        wanted,
    };
    // Set here, not in the thread: a change right after this call is seen.
    follower.set_watches();
    follower.registry.read();
    let spawned =
        std::thread::Builder::new().name("skills".to_owned()).spawn(move || follower.follow());
    if let Err(error) = &spawned {
        tracing::warn!("Skills are not watched: {error}");
    }
    Watch { signals, thread: spawned.ok() }
}

struct Follower {
    registry: SkillRegistry,
    signals: SyncSender<Signal>,
    received: Receiver<Signal>,
    /// Events were lost, or watches could not be set: set watches again and read everything.
    needs_full_reload: Arc<AtomicBool>,
    /// `None` where the kernel refuses; then we poll.
    watcher: Option<RecommendedWatcher>,
    wanted: Arc<Wanted>,
}

impl Follower {
    fn follow(&mut self) {
        loop {
            let patience = if self.watcher.is_some() { RESCAN } else { POLL };
            let mut batch = Batch::default();
            match self.received.recv_timeout(patience) {
                Ok(Signal::Happened(event)) => {
                    if !batch.take(event, &self.wanted) && !self.needs_full_reload() {
                        continue;
                    }
                    if self.gather(&mut batch).is_none() {
                        return;
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Ok(Signal::Stop) | Err(RecvTimeoutError::Disconnected) => return,
            }
            for path in &batch.paths {
                tracing::info!("Detected change: {}", path.display());
            }
            let moved = batch.moved || self.needs_full_reload.swap(false, Ordering::Relaxed);
            if moved || self.watcher.is_none() || *self.wanted != Wanted::by(&self.registry) {
                self.set_watches();
            }
            self.registry.reload();
        }
    }

    /// Takes what else comes until it is quiet; `None` when we are to stop.
    fn gather(&self, batch: &mut Batch) -> Option<()> {
        let begun = Instant::now();
        let mut quiet = begun + DEBOUNCE;
        loop {
            let until = quiet.min(begun + MAX_WAIT);
            match self.received.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(Signal::Happened(event)) => {
                    if batch.take(event, &self.wanted) {
                        quiet = Instant::now() + DEBOUNCE;
                    }
                }
                Err(RecvTimeoutError::Timeout) => return Some(()),
                Ok(Signal::Stop) | Err(RecvTimeoutError::Disconnected) => return None,
            }
        }
    }

    fn needs_full_reload(&self) -> bool {
        self.needs_full_reload.load(Ordering::Relaxed)
    }

    /// Watches everything that is wanted now; the old watches last until the new ones stand.
    fn set_watches(&mut self) {
        // A directory that disappears here is not in the list of the next attempt.
        let settled = (0..WATCH_ATTEMPTS).any(|_| self.try_watches());
        if !settled {
            self.needs_full_reload.store(true, Ordering::Relaxed);
        }
    }

    /// Returns false if a directory disappeared meanwhile. Where the kernel refuses watches there is no other attempt.
    fn try_watches(&mut self) -> bool {
        self.wanted = Arc::new(Wanted::by(&self.registry));
        let wanted = Arc::clone(&self.wanted);
        let (signals, needs_full_reload) =
            (self.signals.clone(), Arc::clone(&self.needs_full_reload));
        let handler = move |event: notify::Result<Event>| {
            let event = event.unwrap_or_else(|_| Event::new(EventKind::Other));
            // Most of what happens in a workspace is no skill's; the thread sleeps through it.
            if !Batch::default().take(event.clone(), &wanted) {
                return;
            }
            if let Err(TrySendError::Full(_)) = signals.try_send(Signal::Happened(event)) {
                needs_full_reload.store(true, Ordering::Relaxed);
            }
        };
        let made = notify::recommended_watcher(handler).and_then(|mut watcher| {
            for tree in &self.wanted.trees {
                watcher.watch(tree, RecursiveMode::Recursive)?;
            }
            for directory in &self.wanted.above {
                watcher.watch(directory, RecursiveMode::NonRecursive)?;
            }
            Ok(watcher)
        });
        match made {
            Ok(watcher) => self.watcher = Some(watcher),
            Err(error) if gone(&error) => return false,
            Err(error) => {
                if self.watcher.take().is_some() {
                    tracing::warn!(
                        "Skills are looked at every {} s instead of watched: {error}",
                        POLL.as_secs()
                    );
                }
            }
        }
        true
    }
}

fn gone(error: &notify::Error) -> bool {
    match &error.kind {
        notify::ErrorKind::PathNotFound | notify::ErrorKind::WatchNotFound => true,
        notify::ErrorKind::Io(error) => error.kind() == std::io::ErrorKind::NotFound,
        _ => false,
    }
}

/// What has to be watched.
#[derive(Default, PartialEq, Eq)]
struct Wanted {
    /// Skill directories, and folders that links in them lead to: everything below counts.
    trees: BTreeSet<PathBuf>,
    /// Directories above, which matter only for what leads to a skill path.
    above: BTreeSet<PathBuf>,
    /// Where skills are or would be.
    skill_paths: BTreeSet<PathBuf>,
}

impl Wanted {
    fn by(registry: &SkillRegistry) -> Self {
        let mut wanted = Self::default();
        for (place, scope) in registry.places() {
            wanted.add(place);
            for target in links_in(place, *scope) {
                wanted.add(&target);
            }
        }
        let trees = &wanted.trees;
        wanted.above.retain(|directory| !trees.iter().any(|tree| directory.starts_with(tree)));
        wanted
    }

    fn add(&mut self, skill_path: &Path) {
        let real = std::fs::canonicalize(skill_path);
        if let Ok(real) = real.as_deref().map(ToOwned::to_owned)
            && real.is_dir()
        {
            self.trees.insert(real);
        }
        let above = skill_path.ancestors().skip(1).find(|above| above.is_dir());
        self.above.extend(above.map(ToOwned::to_owned));
        self.skill_paths.extend([skill_path.to_owned()].into_iter().chain(real.ok()));
    }

    fn leads_to_a_skill_path(&self, path: &Path) -> bool {
        self.skill_paths.iter().any(|skill| skill.starts_with(path))
    }

    fn is_below(&self, path: &Path) -> bool {
        self.trees.iter().any(|tree| path.starts_with(tree))
    }
}

/// Where links in a skill directory lead, as far as a skill is there and may be read.
fn links_in(place: &Path, scope: Scope) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(place) else { return Vec::new() };
    let project = place.ancestors().nth(2).and_then(|path| std::fs::canonicalize(path).ok());
    entries
        .flatten()
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_symlink()))
        .filter_map(|entry| std::fs::canonicalize(entry.path()).ok())
        .filter(|target| target.is_file() || target.join("SKILL.md").is_file())
        .filter(|target| {
            scope != Scope::Project || project.as_ref().is_some_and(|top| target.starts_with(top))
        })
        .collect()
}

/// Changes that are read together.
#[derive(Default)]
struct Batch {
    paths: BTreeSet<PathBuf>,
    /// Whether a directory that is watched came, went or was moved.
    moved: bool,
}

impl Batch {
    /// Takes in what concerns skills, and says whether it does.
    fn take(&mut self, event: Event, wanted: &Wanted) -> bool {
        if event.need_rescan() || matches!(event.kind, EventKind::Other) {
            self.moved = true;
            return true;
        }
        let structural = match event.kind {
            // Our own reads cause these events too.
            EventKind::Access(_) => return false,
            EventKind::Any | EventKind::Create(_) | EventKind::Remove(_) => true,
            EventKind::Modify(ModifyKind::Name(_) | ModifyKind::Any) => true,
            EventKind::Modify(_) | EventKind::Other => false,
        };
        let mut concerns = false;
        for path in event.paths {
            let moved = structural && wanted.leads_to_a_skill_path(&path);
            if moved || wanted.skill_paths.contains(&path) || wanted.is_below(&path) {
                concerns = true;
                self.moved |= moved;
                self.paths.insert(path);
            }
        }
        concerns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// AX-081: what comes within 100 ms of what came before is read with it.
    #[test]
    fn changes_close_together_are_one_reload() {
        assert_eq!(DEBOUNCE, Duration::from_millis(100));
        let (signals, received) = mpsc::sync_channel(QUEUE);
        let place = PathBuf::from("/skills");
        let registry = SkillRegistry::fixed(crate::Skills::empty());
        let wanted = Arc::new(Wanted { trees: [place.clone()].into(), ..Wanted::default() });
        let needs_full_reload = Arc::new(AtomicBool::new(false));
        let follower = Follower {
            registry,
            signals: signals.clone(),
            received,
            needs_full_reload,
            watcher: None,
            wanted,
        };
        let kind = EventKind::Modify(ModifyKind::Data(notify::event::DataChange::Content));
        for number in 0..10 {
            let path = place.join(format!("{number}.md"));
            signals.send(Signal::Happened(Event::new(kind).add_path(path))).unwrap();
        }
        let mut batch = Batch::default();
        assert_eq!(follower.gather(&mut batch), Some(()));
        assert_eq!(batch.paths.len(), 10);
        assert!(follower.received.try_recv().is_err(), "nothing is left for a second reload");
        signals.send(Signal::Stop).unwrap();
        assert_eq!(follower.gather(&mut batch), None);
    }
}
