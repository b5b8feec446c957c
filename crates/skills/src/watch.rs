//! Noticing that skill files change: by the kernel's events, and by a scan every few minutes.
//!
//! Invariants:
//! - One watcher per process, whatever the number of registries: a user has few of the kernel's instances.
//! - Files are read once more after watches are set, so nothing falls between.
//! - A directory that is not there yet is noticed when it appears: its nearest ancestor is watched (O-40).
//! - Many changes close together are one reload (AX-081). Events that were lost are one scan, and no new watcher.

mod watch_set;
mod watches;

use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender, TrySendError};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use notify::event::{AccessKind, AccessMode, Event, EventKind, ModifyKind};

use crate::registry::SkillRegistry;
use watch_set::{Interest, WatchSet};
use watches::{Set, Watches};

/// How long files must be quiet before they are read.
const DEBOUNCE: Duration = Duration::from_millis(100);
/// How long a stream of changes may put reading off.
const MAX_WAIT: Duration = Duration::from_secs(1);
/// How often everything is scanned anyway: kernels drop events, and network disks send none.
const RESCAN: Duration = Duration::from_secs(180);
/// The same where the kernel refuses watches (its limit per user is reached): for the first registries, and
/// longer for each further one.
const POLL: Duration = Duration::from_secs(2);
const POLL_PER_REGISTRY: Duration = Duration::from_millis(20);
/// The shortest time between two scans because events were lost: whoever floods the queue keeps doing so.
const LOST_PAUSE: Duration = Duration::from_secs(2);
/// How long a start waits for its watches. A storm of changes holds them up longer; the files are read again then.
const START_WAIT: Duration = Duration::from_millis(200);
/// Events on their way to the reader; when more come at once, everything is read anyway.
const QUEUE: usize = 4096;

/// Follows the files of one [`SkillRegistry`] for as long as it lives.
#[derive(Debug)]
pub(crate) struct Watch {
    id: u64,
}

impl Drop for Watch {
    fn drop(&mut self) {
        if let Some(hub) = HUB.get() {
            hub.lock().remove(self.id);
        }
    }
}

/// Reads the files of a registry for the first time and starts to follow them.
pub(crate) fn start(registry: SkillRegistry) -> Watch {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let (id, hub) = (NEXT.fetch_add(1, Ordering::Relaxed), HUB.get_or_init(Hub::start));
    let events = hub.lock().add(id, registry.clone());
    registry.read();
    // The thread sets the watches and reads once more after that. Not here: the kernel's events go first, and
    // somebody who makes very many of them must not hold up who begins to follow.
    events.wake();
    hub.wait_for_watches(id);
    Watch { id }
}

/// The one watcher of this process. It belongs to the process as the kernel's instance does.
static HUB: OnceLock<Hub> = OnceLock::new();

struct Hub {
    followed: Arc<Mutex<Followed>>,
    /// Notified when watches were set.
    watched: Arc<Condvar>,
}

impl Hub {
    fn start() -> Self {
        let (signals, received) = mpsc::sync_channel(QUEUE);
        let events = Events { signals, lost: Arc::default(), interest: Arc::default() };
        let (lost, receive) = (Arc::clone(&events.lost), events.clone());
        let registries = HashMap::new();
        let followed = Followed { registries, released: Vec::new(), refused: false, events };
        let followed = Arc::new(Mutex::new(followed));
        let watches = Watches::new(move |event| receive.receive(event));
        let watched = Arc::<Condvar>::default();
        let thread = WatchThread {
            followed: Arc::clone(&followed),
            watched: Arc::clone(&watched),
            received,
            watches,
            lost,
            scanned: None,
        };
        let spawned =
            std::thread::Builder::new().name("skills".to_owned()).spawn(move || thread.follow());
        if let Err(error) = &spawned {
            tracing::warn!("Skills are not watched: {error}");
        }
        Self { followed, watched }
    }

    /// Waits until a registry is watched, so that a change right after a start is noticed as one.
    fn wait_for_watches(&self, id: u64) {
        let waits = |followed: &mut Followed| {
            let follower = followed.registries.get(&id);
            !followed.refused && follower.is_some_and(|one| !one.is_watched)
        };
        // Whether the time was up makes no difference: the files are read once more after the watches are set.
        let _ = self.watched.wait_timeout_while(self.lock(), START_WAIT, waits);
    }

    fn lock(&self) -> MutexGuard<'_, Followed> {
        self.followed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where the kernel's events go first.
#[derive(Clone)]
struct Events {
    signals: SyncSender<Event>,
    /// Events were lost: set watches again and read everything.
    lost: Arc<AtomicBool>,
    /// What anybody wants to know of. Its lock is never held while the watcher is spoken to.
    interest: Arc<Mutex<Interest>>,
}

impl Events {
    fn receive(&self, event: notify::Result<Event>) {
        let event = event.unwrap_or_else(|_| Event::new(EventKind::Other));
        if is_only_a_look(&event) {
            return;
        }
        let is_lost = event.need_rescan() || matches!(event.kind, EventKind::Other);
        if is_lost && self.lost.swap(true, Ordering::Relaxed) {
            return;
        }
        // Most changes in a workspace are not about skills; the thread ignores them.
        let concerns = |path: &PathBuf| self.interest().concerns(path);
        if (is_lost || event.paths.iter().any(concerns))
            && let Err(TrySendError::Full(_)) = self.signals.try_send(event)
        {
            self.lost.store(true, Ordering::Relaxed);
        }
    }

    /// Lets the thread look for who has begun to follow.
    fn wake(&self) {
        // With a full queue the thread is awake.
        let _ = self.signals.try_send(Event::new(EventKind::Any));
    }

    fn interest(&self) -> MutexGuard<'_, Interest> {
        self.interest.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Every command and every read opens directories, which changes nothing. A file that was open for writing may have
/// changed.
fn is_only_a_look(event: &Event) -> bool {
    let EventKind::Access(access) = event.kind else { return false };
    !event.need_rescan() && access != AccessKind::Close(AccessMode::Write)
}

/// Every registry that is followed. Its lock is held for moments only, and never while the watcher is spoken to.
struct Followed {
    registries: HashMap<u64, Follower>,
    /// What was watched for registries that are no longer followed.
    released: Vec<WatchSet>,
    /// Whether the kernel refuses watches.
    refused: bool,
    events: Events,
}

#[derive(Clone)]
struct Follower {
    registry: SkillRegistry,
    watch_set: WatchSet,
    is_watched: bool,
}

impl Followed {
    fn add(&mut self, id: u64, registry: SkillRegistry) -> Events {
        let watch_set = WatchSet::by(&registry);
        self.events.interest().add(&watch_set);
        self.registries.insert(id, Follower { registry, watch_set, is_watched: false });
        self.events.clone()
    }

    fn remove(&mut self, id: u64) {
        if let Some(follower) = self.registries.remove(&id) {
            self.events.interest().remove(&follower.watch_set);
            if follower.is_watched {
                self.released.push(follower.watch_set);
            }
        }
    }

    /// Takes over what is watched for a registry now; returns what is to be released.
    fn replace(&mut self, id: u64, watch_set: WatchSet) -> Option<WatchSet> {
        let Some(follower) = self.registries.get_mut(&id) else { return Some(watch_set) };
        self.events.interest().add(&watch_set);
        self.events.interest().remove(&follower.watch_set);
        let old = std::mem::replace(&mut follower.watch_set, watch_set);
        std::mem::replace(&mut follower.is_watched, true).then_some(old)
    }
}

/// How often watches are set again when a directory disappears meanwhile. After that the next change or the
/// next scan sets them.
const WATCH_ATTEMPTS: usize = 3;

/// The thread that reads what changed.
struct WatchThread {
    followed: Arc<Mutex<Followed>>,
    watched: Arc<Condvar>,
    received: Receiver<Event>,
    watches: Watches,
    lost: Arc<AtomicBool>,
    /// When everything was last scanned because events were lost.
    scanned: Option<Instant>,
}

impl WatchThread {
    fn follow(mut self) {
        loop {
            let mut batch = Batch::default();
            match self.received.recv_timeout(self.patience()) {
                Ok(event) => {
                    // Who begins to follow waits for it.
                    let is_wake = event.kind == EventKind::Any && event.paths.is_empty();
                    batch.take(event);
                    if !is_wake && gather(&self.received, &mut batch).is_none() {
                        return;
                    }
                }
                Err(RecvTimeoutError::Timeout) => batch.scan = true,
                Err(RecvTimeoutError::Disconnected) => return,
            }
            if self.lost.load(Ordering::Relaxed) && self.may_scan() {
                self.lost.store(false, Ordering::Relaxed);
                batch.scan = true;
            }
            self.read(&batch);
        }
    }

    /// How long nothing may happen before everything is looked at.
    fn patience(&self) -> Duration {
        let followed = self.followed.lock().unwrap_or_else(PoisonError::into_inner);
        if self.lost.load(Ordering::Relaxed) {
            return LOST_PAUSE;
        }
        match followed.refused {
            false => RESCAN,
            true => {
                let many = u32::try_from(followed.registries.len()).unwrap_or(u32::MAX);
                POLL.max(POLL_PER_REGISTRY.saturating_mul(many))
            }
        }
    }

    fn may_scan(&mut self) -> bool {
        let now = Instant::now();
        let may = self.scanned.is_none_or(|last| now.duration_since(last) >= LOST_PAUSE);
        if may {
            self.scanned = Some(now);
        }
        may
    }

    /// Sets watches where they are needed, and reads the registries that the changes concern.
    fn read(&mut self, batch: &Batch) {
        for path in &batch.paths {
            tracing::info!("Detected change: {}", path.display());
        }
        let (released, concerned) = {
            let mut followed = self.lock();
            let all = followed.registries.iter().map(|(id, one)| (*id, one, batch.concerns(one)));
            let concerned = all.filter(|(.., concern)| *concern != Concern::Nothing);
            let concerned: Vec<_> =
                concerned.map(|(id, one, concern)| (id, one.clone(), concern)).collect();
            (std::mem::take(&mut followed.released), concerned)
        };
        released.iter().for_each(|watch_set| self.watches.release(watch_set));
        for (id, follower, concern) in concerned {
            let registry = follower.registry;
            if concern == Concern::Moved || follower.watch_set != WatchSet::by(&registry) {
                self.set_watches(id, &registry);
            }
            registry.reload();
        }
        let refused = self.watches.is_refused();
        self.lock().refused = refused;
        self.watched.notify_all();
    }

    /// Watches what a registry wants now; the old watches last until the new ones are set. A directory that disappears
    /// meanwhile is not in the next list.
    fn set_watches(&mut self, id: u64, registry: &SkillRegistry) {
        let mut watch_set = WatchSet::by(registry);
        let settled = (0..WATCH_ATTEMPTS).any(|_| match self.watches.add(&watch_set) {
            Set::Done => true,
            Set::Gone => {
                watch_set = WatchSet::by(registry);
                false
            }
        });
        if !settled {
            self.lost.store(true, Ordering::Relaxed);
            return;
        }
        let old = self.lock().replace(id, watch_set);
        if let Some(old) = old {
            self.watches.release(&old);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Followed> {
        self.followed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Takes what else comes until it is quiet; `None` when nobody sends any more.
fn gather(received: &Receiver<Event>, batch: &mut Batch) -> Option<()> {
    let begun = Instant::now();
    let mut quiet = begun + DEBOUNCE;
    loop {
        let until = quiet.min(begun + MAX_WAIT);
        match received.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(event) => {
                if batch.take(event) {
                    quiet = Instant::now() + DEBOUNCE;
                }
            }
            Err(RecvTimeoutError::Timeout) => return Some(()),
            Err(RecvTimeoutError::Disconnected) => return None,
        }
    }
}

/// What changes mean for one registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Concern {
    Nothing,
    /// Files are to be read again.
    Changed,
    /// A directory that is watched came, went or was moved: watches are to be set again too.
    Moved,
}

/// Changes that are read together.
#[derive(Default)]
struct Batch {
    paths: BTreeSet<PathBuf>,
    /// Those that came, went or were moved.
    structural: BTreeSet<PathBuf>,
    /// Everything is to be looked at.
    scan: bool,
}

impl Batch {
    /// Takes in a change; whether it is one.
    fn take(&mut self, event: Event) -> bool {
        let structural = match event.kind {
            // Our own reads cause these events too, and what was lost has its own mark.
            EventKind::Access(_) | EventKind::Other => return false,
            EventKind::Any | EventKind::Create(_) | EventKind::Remove(_) => true,
            EventKind::Modify(ModifyKind::Name(_) | ModifyKind::Any) => true,
            EventKind::Modify(_) => false,
        };
        if structural {
            self.structural.extend(event.paths.iter().cloned());
        }
        self.paths.extend(event.paths);
        true
    }

    fn concerns(&self, follower: &Follower) -> Concern {
        let watch_set = &follower.watch_set;
        let moved = |path: &PathBuf| watch_set.leads_to_a_skill_path(path);
        if self.scan || !follower.is_watched || self.structural.iter().any(moved) {
            return Concern::Moved;
        }
        match self.paths.iter().any(|path| watch_set.concerns(path)) {
            true => Concern::Changed,
            false => Concern::Nothing,
        }
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
        let kind = EventKind::Modify(ModifyKind::Data(notify::event::DataChange::Content));
        for number in 0..10 {
            let path = PathBuf::from(format!("/skills/{number}.md"));
            signals.send(Event::new(kind).add_path(path)).unwrap();
        }
        let mut batch = Batch::default();
        assert_eq!(gather(&received, &mut batch), Some(()));
        assert_eq!(batch.paths.len(), 10);
        assert!(received.try_recv().is_err(), "nothing is left for a second reload");
        drop(signals);
        assert_eq!(gather(&received, &mut batch), None);
    }
}
