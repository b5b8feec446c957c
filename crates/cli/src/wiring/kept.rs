//! What the starts of many tasks have in common, kept by the process for as long as it holds.

use std::collections::HashMap;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use windlass_skills::SkillRegistry;

/// Searches that are remembered. A process makes a few different ones.
const MAX_SEARCHES: usize = 64;

/// A directory that changed less long ago than this may change once more without showing it by its time.
const SETTLED: Duration = Duration::from_secs(1);

/// How long the skills that were read count as those of now. Whoever follows them is as late.
const FRESH: Duration = Duration::from_millis(100);

/// What is kept. All clones are one.
#[derive(Clone, Default)]
pub struct Kept {
    inner: Arc<Inner>,
}

#[derive(Default)]
struct Inner {
    searches: Mutex<HashMap<Search, Found>>,
    skills: Mutex<HashMap<PathBuf, SkillRegistry>>,
}

/// Directories, and names that are looked for in them.
type Search = (Vec<PathBuf>, Vec<String>);

struct Found {
    stamps: Vec<Option<Stamp>>,
    files: Vec<Option<PathBuf>>,
}

/// A directory, and when something was last added to it or removed from it.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Stamp {
    device: u64,
    number: u64,
    changed: SystemTime,
}

impl Stamp {
    fn of(directory: &Path) -> Option<Self> {
        let found = std::fs::metadata(directory).ok()?;
        let changed = found.modified().ok()?;
        Some(Self { device: found.dev(), number: found.ino(), changed })
    }

    fn is_settled(self) -> bool {
        self.changed.elapsed().is_ok_and(|age| age > SETTLED)
    }
}

impl Kept {
    /// For each name the first file of that name in these directories. Looked for again when one of the directories has
    /// changed.
    pub fn programs(&self, directories: &[PathBuf], names: &[&str]) -> Vec<Option<PathBuf>> {
        let stamps: Vec<_> = directories.iter().map(|directory| Stamp::of(directory)).collect();
        let search = (directories.to_vec(), names.iter().map(ToString::to_string).collect());
        let mut searches = self.inner.searches.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = searches.get(&search).filter(|known| known.stamps == stamps) {
            return known.files.clone();
        }
        let first = |name: &&str| {
            directories.iter().map(|place| place.join(name)).find(|file| file.is_file())
        };
        let files: Vec<_> = names.iter().map(first).collect();
        if stamps.iter().flatten().all(|stamp| stamp.is_settled()) {
            if searches.len() >= MAX_SEARCHES {
                searches.clear();
            }
            searches.insert(search, Found { stamps, files: files.clone() });
        }
        files
    }

    /// The skills that are collected in `root`, which tasks without skills of their own share: followed by one registry,
    /// made when it is first needed.
    pub fn shared_skills<E>(
        &self,
        root: &Path,
        make: impl FnOnce() -> Result<SkillRegistry, E>,
    ) -> Result<SkillRegistry, E> {
        let mut skills = self.inner.skills.lock().unwrap_or_else(PoisonError::into_inner);
        // Somebody may have removed what is collected.
        let is_there = |known: &&SkillRegistry| known.shown().is_some_and(Path::is_dir);
        if let Some(known) = skills.get(root).filter(is_there).cloned() {
            drop(skills);
            known.refresh(FRESH);
            return Ok(known);
        }
        let made = make()?;
        skills.insert(root.to_owned(), made.clone());
        Ok(made)
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};

    use std::convert::Infallible;

    use windlass_skills::SkillMirror;

    use super::*;

    #[test]
    fn tasks_without_skills_of_their_own_share_one_registry() {
        let top = tempfile::tempdir().unwrap();
        let root = top.path().join("merged");
        let kept = Kept::default();
        let mut made = 0;
        let mut start = || {
            let make = || {
                made += 1;
                let mirror = SkillMirror::open(root.clone()).unwrap();
                let never: windlass_skills::ApprovalFn = Arc::new(|_| false);
                Ok::<_, Infallible>(SkillRegistry::open(Vec::new(), never, Some(mirror)))
            };
            kept.shared_skills(&root, make).unwrap().shown().unwrap().to_owned()
        };
        assert_eq!(start(), start());
        // What was collected is gone: it is collected again.
        fs::remove_dir_all(&root).unwrap();
        assert!(start().is_dir());
        assert_eq!(made, 2);
    }

    #[test]
    fn programs_are_looked_for_again_when_a_directory_changes() {
        let top = tempfile::tempdir().unwrap();
        let (first, second) = (top.path().join("a"), top.path().join("b"));
        fs::create_dir(&first).unwrap();
        fs::create_dir(&second).unwrap();
        let settle = |directory: &PathBuf, hours: u64| {
            let time = SystemTime::UNIX_EPOCH + Duration::from_secs(hours * 3600);
            File::open(directory).unwrap().set_modified(time).unwrap();
        };
        fs::write(second.join("make"), "").unwrap();
        settle(&first, 3);
        settle(&second, 3);
        let (kept, directories) = (Kept::default(), [first.clone(), second.clone()]);
        let look = || kept.programs(&directories, &["make", "git"]);
        assert_eq!(look(), [Some(second.join("make")), None]);
        assert_eq!(look(), [Some(second.join("make")), None]);
        fs::remove_file(second.join("make")).unwrap();
        fs::write(first.join("git"), "").unwrap();
        settle(&first, 2);
        settle(&second, 2);
        assert_eq!(look(), [None, Some(first.join("git"))]);
        // One that changed just now is not relied on.
        fs::write(first.join("make"), "").unwrap();
        assert_eq!(look()[0], Some(first.join("make")));
        fs::remove_file(first.join("make")).unwrap();
        assert_eq!(look()[0], None);
    }
}
