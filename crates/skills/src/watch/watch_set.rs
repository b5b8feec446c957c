//! What has to be watched for a registry, and which changes concern it.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use crate::registry::SkillRegistry;
use crate::skill::Scope;

/// What has to be watched for one registry.
#[derive(Clone, Default, PartialEq, Eq)]
pub(super) struct WatchSet {
    /// Skill directories, and folders that links in them lead to: everything below counts.
    pub trees: BTreeSet<PathBuf>,
    /// Directories above, which matter only for what leads to a skill path.
    pub above: BTreeSet<PathBuf>,
    /// Where skills are or would be.
    pub skill_paths: BTreeSet<PathBuf>,
}

impl WatchSet {
    pub fn by(registry: &SkillRegistry) -> Self {
        let mut watch_set = Self::default();
        for (place, scope) in registry.places() {
            watch_set.add(place);
            for target in links_in(place, *scope) {
                watch_set.add(&target);
            }
        }
        let trees = &watch_set.trees;
        watch_set.above.retain(|directory| !trees.iter().any(|tree| directory.starts_with(tree)));
        watch_set
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

    /// Whether what happened to this path may change a skill.
    pub fn concerns(&self, path: &Path) -> bool {
        self.skill_paths.contains(path) || self.trees.iter().any(|tree| path.starts_with(tree))
    }

    pub fn leads_to_a_skill_path(&self, path: &Path) -> bool {
        self.skill_paths.iter().any(|skill| skill.starts_with(path))
    }
}

/// What any registry wants to know of, found without asking each of them. Counted, because registries begin
/// and end to follow.
#[derive(Default)]
pub(super) struct Interest {
    trees: HashMap<PathBuf, usize>,
    /// Skill paths, and everything that leads to one.
    ways: HashMap<PathBuf, usize>,
}

impl Interest {
    pub fn add(&mut self, watch_set: &WatchSet) {
        for tree in &watch_set.trees {
            *self.trees.entry(tree.clone()).or_default() += 1;
        }
        for way in ways(watch_set) {
            *self.ways.entry(way.to_owned()).or_default() += 1;
        }
    }

    pub fn remove(&mut self, watch_set: &WatchSet) {
        watch_set.trees.iter().for_each(|tree| count_down(&mut self.trees, tree));
        ways(watch_set).for_each(|way| count_down(&mut self.ways, way));
    }

    pub fn concerns(&self, path: &Path) -> bool {
        self.ways.contains_key(path) || path.ancestors().any(|above| self.trees.contains_key(above))
    }
}

fn ways(watch_set: &WatchSet) -> impl Iterator<Item = &Path> {
    watch_set.skill_paths.iter().flat_map(|path| path.ancestors())
}

fn count_down(counts: &mut HashMap<PathBuf, usize>, path: &Path) {
    if let Some(count) = counts.get_mut(path) {
        *count -= 1;
        if *count == 0 {
            counts.remove(path);
        }
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
