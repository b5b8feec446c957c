//! The checks of the data directory and their fixes.

use windlass_core::text::{plural, with_causes};
use windlass_store::{Difference, DriftKind, SchemaDrift};

use super::{Advice, Check, FixReport, Health};
use crate::Error;

/// A database larger than this deserves a word, in bytes.
const LARGE_STORE: u64 = 5_000_000_000;
/// Less than this on the disk is soon used up, in bytes.
const LITTLE_SPACE: u64 = 200_000_000;

impl Health<'_> {
    pub(super) async fn storage_checks(self) -> Vec<Check> {
        let coordinator = self.coordinator.clone();
        // The journal is replayed, which takes long.
        let job = tokio::task::spawn_blocking(move || {
            let health = coordinator.health();
            vec![
                Check::timed(|| health.store()),
                Check::timed(|| health.schema()),
                Check::timed(|| health.locks()),
                Check::timed(|| health.processes()),
                Check::timed(|| health.leftovers()),
                Check::timed(|| health.disk()),
            ]
        });
        job.await.unwrap_or_else(|error| vec![Check::wrong("store", error.to_string())])
    }

    fn store(self) -> Check {
        let storage = self.coordinator.storage();
        let place = storage.database().display().to_string();
        let differences = match storage.verify() {
            Ok(differences) => differences,
            Err(error) => {
                let words = format!("{place} cannot be checked: {}", with_causes(&error));
                return Check::wrong("store", words).blocking();
            }
        };
        if differences.is_empty() {
            let words = format!("{place} agrees with its journal");
            return self.with_size(Check::ok("store", words));
        }
        let places = plural(differences.len(), "place");
        let check = Check::wrong("store", format!("{place} differs from its journal in {places}"))
            .with(differences.iter().map(ToString::to_string));
        match differences.iter().all(is_derived) {
            true => check.fixable("rebuild the tables from the journal"),
            false => check
                .with_hint("the journal itself is damaged; restore a backup of the data directory"),
        }
    }

    /// A check that also says when the database has grown large.
    fn with_size(self, check: Check) -> Check {
        let bytes = self.coordinator.storage().retention().database_bytes();
        match bytes > LARGE_STORE {
            true => check
                .with([format!("it takes {:.1} GB", bytes as f64 / 1e9)])
                .with_advice(Advice::LimitStore),
            false => check,
        }
    }

    fn schema(self) -> Check {
        let drifts = match self.coordinator.store.health().schema_drift() {
            Ok(drifts) => drifts,
            Err(error) => return Check::wrong("schema", with_causes(&error)).blocking(),
        };
        if drifts.is_empty() {
            return Check::ok("schema", "every table and index is as this program makes it");
        }
        let parts = plural(drifts.len(), "part");
        let mut check = Check::wrong("schema", format!("{parts} of the database differ"))
            .with(drifts.iter().map(drift_words));
        check.blocks = drifts.iter().any(|drift| drift.problem != DriftKind::Unknown);
        match drifts.iter().any(|drift| drift.is_derived) {
            true => check.fixable("make indexes and derived tables again, and fill them"),
            false => check.with_hint("another program may have changed it; restore a backup"),
        }
    }

    fn locks(self) -> Check {
        match self.coordinator.store.health().stale_locks() {
            Ok(stale) if stale.is_empty() => Check::ok("locks", "every lock has its holder"),
            Ok(stale) => {
                let words = format!("nobody holds {}", plural(stale.len(), "lock file"));
                let paths = stale.iter().map(|path| path.display().to_string());
                Check::wrong("locks", words).with(paths).fixable("remove them")
            }
            Err(error) => Check::wrong("locks", with_causes(&error)),
        }
    }

    /// Whether the processes that work here run the program that is installed.
    fn processes(self) -> Check {
        let pids = match self.coordinator.store.health().processes() {
            Ok(pids) => pids,
            Err(error) => return Check::wrong("processes", with_causes(&error)),
        };
        let is_replaced = |pid: &&u32| {
            let program = std::fs::read_link(format!("/proc/{pid}/exe"));
            program.is_ok_and(|path| path.to_string_lossy().ends_with(" (deleted)"))
        };
        let replaced: Vec<_> = pids.iter().filter(is_replaced).collect();
        match replaced.is_empty() {
            true => {
                let words = match pids.len() {
                    0 => "no other process works in the data directory".to_owned(),
                    1 => "1 process works in the data directory".to_owned(),
                    count => format!("{count} processes work in the data directory"),
                };
                Check::ok("processes", words)
            }
            false => {
                let words = replaced.iter().map(|pid| {
                    format!("process {pid} runs a program that was replaced or removed")
                });
                Check::wrong("processes", "the installed program is not the one that runs")
                    .with(words)
                    .with_advice(Advice::RestartProcesses)
            }
        }
    }

    fn leftovers(self) -> Check {
        match self.coordinator.store.health().orphaned_directories() {
            Ok(found) if found.is_empty() => {
                Check::ok("leftovers", "every workspace and trace belongs to a task")
            }
            Ok(found) => {
                let count = plural(found.len(), "leftover");
                let paths = found.iter().map(|path| path.display().to_string());
                Check::wrong("leftovers", format!("{count} of tasks that do not exist"))
                    .with(paths)
                    .fixable("remove traces, and workspaces that are empty")
            }
            Err(error) => Check::wrong("leftovers", with_causes(&error)),
        }
    }

    fn disk(self) -> Check {
        let free = self.coordinator.store.health().free_bytes();
        let words = format!("{:.1} GB are free", free as f64 / 1e9);
        if !self.coordinator.store.tasks().retention().has_room() {
            return Check::wrong("disk", "no space is left for the journal")
                .fixable("remove outputs that are older than they are kept")
                .with_advice(Advice::RemoveTasks)
                .blocking();
        }
        match free < LITTLE_SPACE {
            true => Check::ok("disk", words).with(["that is soon used up".to_owned()]),
            false => Check::ok("disk", words),
        }
    }

    pub(super) async fn fix_storage(self) -> Vec<FixReport> {
        let mut fixed = Vec::new();
        fixed.extend(outcome("schema", self.fix_schema().await));
        fixed.extend(outcome("store", self.fix_projections().await));
        let store = self.coordinator.store.health();
        let count = |count: usize, what: &str| {
            (count > 0).then(|| format!("removed {}", plural(count, what)))
        };
        let locks = store.remove_stale_locks().map(|removed| count(removed, "stale lock"));
        fixed.extend(outcome("locks", locks.map_err(Error::from)));
        let leftovers = store.remove_orphaned_directories();
        let leftovers = leftovers.map(|removed| count(removed, "leftover"));
        fixed.extend(outcome("leftovers", leftovers.map_err(Error::from)));
        let outputs = store.remove_old_outputs(self.coordinator.now());
        let outputs = outputs
            .map(|removed| count(usize::try_from(removed).unwrap_or(usize::MAX), "old output"));
        fixed.extend(outcome("disk", outputs.map_err(Error::from)));
        fixed
    }

    async fn fix_schema(self) -> Result<Option<String>, Error> {
        let store = &self.coordinator.store;
        if !store.health().schema_drift()?.iter().any(|drift| drift.is_derived) {
            return Ok(None);
        }
        let restored = store.health().restore_schema().await?;
        let events = store.projections().rebuild().await?;
        Ok(Some(format!("made {} again from {events} events", plural(restored, "part"))))
    }

    /// A rebuild changes what every process sees, so it is made only where something is wrong.
    async fn fix_projections(self) -> Result<Option<String>, Error> {
        let differences = self.coordinator.storage().verify()?;
        if differences.is_empty() {
            return Ok(None);
        }
        let events = self.coordinator.store.projections().rebuild().await?;
        Ok(Some(format!("rebuilt the tables from {events} events")))
    }
}

/// Whether the rows are wrong and not the journal.
fn is_derived(difference: &Difference) -> bool {
    match difference {
        Difference::Pages { .. } | Difference::Event { .. } => false,
        Difference::Missing { .. } | Difference::Surplus { .. } | Difference::Value { .. } => true,
    }
}

fn drift_words(drift: &SchemaDrift) -> String {
    let what = match drift.problem {
        DriftKind::Missing => "is missing",
        DriftKind::Changed => "is not as this program makes it",
        DriftKind::Unknown => "is not one of ours",
    };
    format!("{} `{}` {what}", drift.kind, drift.name)
}

fn outcome(name: &'static str, done: Result<Option<String>, Error>) -> Option<FixReport> {
    match done {
        Ok(what) => what.map(|what| FixReport::done(name, what)),
        Err(error) => Some(FixReport::failed(name, with_causes(&error))),
    }
}
