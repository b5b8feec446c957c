//! Skills that change while they are used.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;
use windlass_skills::{SkillMirror, SkillRegistry, Skills, places};

/// How long a test may wait for anything before it is a failure.
const PATIENCE: Duration = Duration::from_secs(30);

/// A home, a project, and a shelf over both that is watched.
struct Desk {
    shelf: SkillRegistry,
    room: TempDir,
}

fn skill(name: &str, body: &str) -> String {
    format!("---\nname: {name}\ndescription: About {name}\n---\n{body}\n")
}

fn put(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

impl Desk {
    fn new(prepare: impl FnOnce(&Path)) -> Self {
        let room = tempfile::tempdir().unwrap();
        let (home, project) = (room.path().join("home"), room.path().join("project"));
        fs::create_dir_all(&home).unwrap();
        fs::create_dir_all(&project).unwrap();
        prepare(room.path());
        let merged = SkillMirror::open(room.path().join("merged")).unwrap();
        // Without the skills of the container image, which this machine may have.
        let places = places(Some(&home), &project).split_off(1);
        let shelf = SkillRegistry::follow(places, Arc::new(|_| true), Some(merged));
        Self { shelf, room }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.room.path().join(name)
    }

    fn put(&self, name: &str, text: &str) {
        put(&self.path(name), text);
    }

    fn until(&self, what: &str, wanted: impl FnMut(&Skills) -> bool) -> Arc<Skills> {
        let found = self.shelf.wait_until(wanted, PATIENCE);
        found.unwrap_or_else(|| panic!("never: {what}; now: {:?}", self.shelf.current()))
    }

    fn until_says(&self, name: &str, body: &str) -> Arc<Skills> {
        let says = |skills: &Skills| skills.get(name).is_some_and(|s| s.body.trim() == body);
        self.until(&format!("`{name}` says `{body}`"), says)
    }

    /// The file as agents see it under `/skills`.
    fn shown(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.shelf.shown().unwrap().join(name)).ok()
    }
}

/// AX-003, AX-018, AX-044…047, AX-089…092
#[test]
fn a_skill_is_created_edited_renamed_and_deleted_while_we_watch() {
    let desk = Desk::new(|room| fs::create_dir_all(room.join("project/.windlass/skills")).unwrap());
    assert!(desk.shelf.current().list().next().is_none());
    desk.put("project/.windlass/skills/deploy/SKILL.md", &skill("deploy", "one"));
    desk.until_says("deploy", "one");
    desk.put("project/.windlass/skills/deploy/SKILL.md", &skill("deploy", "two"));
    desk.until_says("deploy", "two");
    assert!(desk.shown("deploy/SKILL.md").unwrap().ends_with("two\n"));
    // In a nested folder.
    desk.put("project/.windlass/skills/deploy/scripts/go.sh", "echo go");
    desk.until("the script is there", |skills| !skills.get("deploy").unwrap().resources.is_empty());
    assert_eq!(desk.shown("deploy/scripts/go.sh").unwrap(), "echo go");
    let folder = desk.path("project/.windlass/skills");
    fs::rename(folder.join("deploy"), folder.join("ship")).unwrap();
    desk.put("project/.windlass/skills/ship/SKILL.md", &skill("ship", "three"));
    desk.until("renamed", |skills| skills.get("ship").is_some() && skills.get("deploy").is_none());
    assert!(desk.shown("deploy/SKILL.md").is_none() && desk.shown("ship/SKILL.md").is_some());
    fs::remove_dir_all(folder.join("ship")).unwrap();
    desk.until("gone", |skills| skills.list().next().is_none());
    assert_eq!(fs::read_dir(desk.shelf.shown().unwrap()).unwrap().count(), 0);
}

/// AX-047, O-40
#[test]
fn a_directory_that_appears_later_is_found_also_after_it_was_removed() {
    let desk = Desk::new(|_| {});
    for round in ["first", "second"] {
        desk.put("home/.agents/skills/late.md", &skill("late", round));
        desk.until_says("late", round);
        fs::remove_dir_all(desk.path("home/.agents")).unwrap();
        desk.until("gone", |skills| skills.get("late").is_none());
    }
}

/// AX-016, AX-017, C-26
#[test]
fn the_nearest_directory_wins_and_removing_uncovers_the_next() {
    let directories = [
        "home/.claude",
        "home/.agents",
        "home/.windlass",
        "project/.claude",
        "project/.agents",
        "project/.windlass",
    ];
    let desk = Desk::new(|room| {
        for directory in directories {
            put(&room.join(directory).join("skills/x/SKILL.md"), &skill("x", directory));
        }
    });
    for directory in directories.iter().rev() {
        desk.until_says("x", directory);
        fs::remove_dir_all(desk.path(directory).join("skills/x")).unwrap();
    }
    desk.until("gone", |skills| skills.get("x").is_none());
}

/// AX-048: a broken skill keeps its last good version, and the problem says where it is wrong.
#[test]
fn a_broken_file_keeps_its_last_good_version() {
    let file = "project/.windlass/skills/x.md";
    let desk = Desk::new(|room| put(&room.join(file), &skill("x", "good")));
    desk.put(file, "---\nname: x\ndescription: y\nuser-invocable: perhaps\n---\nbad\n");
    let skills = desk.until("broken", |skills| !skills.problems().is_empty());
    assert_eq!(skills.get("x").unwrap().body, "good\n");
    assert!(desk.shown("x/SKILL.md").unwrap().ends_with("good\n"));
    let problem = skills.problems()[0].to_string();
    assert!(problem.ends_with("/project/.windlass/skills/x.md:4: invalid boolean"), "{problem}");
    desk.put(file, &skill("x", "fixed"));
    let skills = desk.until_says("x", "fixed");
    assert!(skills.problems().is_empty());
    desk.put(file, "garbage");
    desk.until("broken again", |skills| !skills.problems().is_empty());
    fs::remove_file(desk.path(file)).unwrap();
    let skills = desk.until("gone", |skills| skills.get("x").is_none());
    assert!(skills.problems().is_empty(), "what is deleted is not broken");
}

#[test]
fn an_editor_that_saves_by_renaming_is_followed() {
    let desk = Desk::new(|room| {
        put(&room.join("home/.windlass/skills/x/SKILL.md"), &skill("x", "one"));
    });
    let folder = desk.path("home/.windlass/skills/x");
    // A new file over the old one.
    fs::write(folder.join(".SKILL.md.swp"), skill("x", "two")).unwrap();
    fs::rename(folder.join(".SKILL.md.swp"), folder.join("SKILL.md")).unwrap();
    desk.until_says("x", "two");
    // The old one out of the way, the new one written in its place.
    fs::rename(folder.join("SKILL.md"), folder.join("SKILL.md~")).unwrap();
    fs::write(folder.join("SKILL.md"), skill("x", "three")).unwrap();
    desk.until_says("x", "three");
}

#[test]
fn a_linked_skill_is_followed_where_it_really_is() {
    let desk = Desk::new(|room| {
        put(&room.join("elsewhere/x/SKILL.md"), &skill("x", "one"));
        put(&room.join("elsewhere/lone.md"), &skill("lone", "one"));
        let skills = room.join("home/.windlass/skills");
        fs::create_dir_all(&skills).unwrap();
        symlink(room.join("elsewhere/x"), skills.join("x")).unwrap();
        symlink(room.join("elsewhere/lone.md"), skills.join("lone.md")).unwrap();
    });
    desk.until_says("x", "one");
    desk.put("elsewhere/x/SKILL.md", &skill("x", "two"));
    desk.until_says("x", "two");
    // Saved by renaming, so that what the link leads to is another file.
    desk.put("elsewhere/new", &skill("lone", "two"));
    fs::rename(desk.path("elsewhere/new"), desk.path("elsewhere/lone.md")).unwrap();
    desk.until_says("lone", "two");
    assert!(!desk.shelf.shown().unwrap().join("x").is_symlink(), "real files, no links");
}

#[test]
fn five_hundred_skills_at_once_are_all_there() {
    let desk = Desk::new(|_| {});
    for number in 0..500 {
        let name = format!("skill-{number}");
        desk.put(&format!("project/.agents/skills/{name}/SKILL.md"), &skill(&name, "x"));
    }
    let skills = desk.until("500", |skills| skills.list().count() == 500);
    assert!(skills.problems().is_empty());
    let viewer = windlass_skills::Viewer::default();
    let bytes: usize = skills.listing(viewer).iter().map(|(n, d)| n.len() + d.len()).sum();
    assert!(bytes <= 16 * 1024, "a prompt has room for its list: {bytes}");
    fs::remove_dir_all(desk.path("project/.agents/skills")).unwrap();
    desk.until("none", |skills| skills.list().next().is_none());
}

/// AX-049
#[test]
fn readers_hold_one_consistent_set_while_it_is_replaced() {
    let desk = Desk::new(|room| {
        put(&room.join("home/.windlass/skills/a.md"), &skill("a", "0"));
        put(&room.join("home/.windlass/skills/b.md"), &skill("b", "0"));
    });
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            loop {
                let skills = desk.shelf.current();
                let (a, b) = (skills.get("a").unwrap(), skills.get("b").unwrap());
                assert!(a.content.starts_with("---") && b.content.starts_with("---"));
                if a.body.trim() == "20" {
                    return;
                }
            }
        });
        for round in 1..=20 {
            for name in ["b", "a"] {
                let new = desk.path("home/new");
                put(&new, &skill(name, &round.to_string()));
                fs::rename(&new, desk.path(&format!("home/.windlass/skills/{name}.md"))).unwrap();
            }
            desk.until_says("a", &round.to_string());
        }
        reader.join().unwrap();
    });
}

/// MS-169, ES-244
#[test]
fn agents_are_shown_real_files_and_never_the_evals() {
    let desk = Desk::new(|room| {
        let folder = room.join("home/.claude/skills/x");
        put(&folder.join("SKILL.md"), &skill("x", "one"));
        put(&folder.join("evals/case-1/hidden/answer.txt"), "42");
        put(&folder.join("scripts/run.sh"), "#!/bin/sh\n");
        symlink("/etc/hostname", folder.join("outside")).unwrap();
        put(&room.join("home/.claude/skills/y.yaml"), "description: 'About: y'\ncontent: Do it.\n");
    });
    let shown = desk.shelf.shown().unwrap();
    let mut names: Vec<_> = walk(shown);
    names.sort();
    assert_eq!(names, ["x/SKILL.md", "x/scripts/run.sh", "y/SKILL.md"]);
    assert_eq!(
        desk.shown("y/SKILL.md").unwrap(),
        "---\nname: y\ndescription: \"About: y\"\n---\n\nDo it."
    );
}

/// A project's agent may swap its own files while we copy them; it never gets another's.
#[test]
fn files_cannot_be_swapped_for_links_to_outside_during_a_copy() {
    let desk = Desk::new(|room| {
        put(&room.join("secrets/run.sh"), "outside");
        let folder = room.join("project/.windlass/skills/x");
        put(&folder.join("SKILL.md"), &skill("x", "one"));
        put(&folder.join("scripts/run.sh"), "inside");
    });
    assert_eq!(desk.shown("x/scripts/run.sh").unwrap(), "inside");
    // As a swap between listing and copying leaves it: what was listed is now behind a link.
    let skills = desk.shelf.current();
    let scripts = desk.path("project/.windlass/skills/x/scripts");
    fs::rename(&scripts, desk.path("project/away")).unwrap();
    symlink(desk.path("secrets"), &scripts).unwrap();
    let merged = SkillMirror::open(desk.path("other")).unwrap();
    merged.sync(&skills);
    assert!(!merged.shown().join("x/scripts/run.sh").exists(), "nothing from outside");
    let folder = desk.path("project/.windlass/skills/x");
    fs::rename(&folder, desk.path("project/gone")).unwrap();
    put(&desk.path("secrets/scripts/run.sh"), "outside");
    symlink(desk.path("secrets"), &folder).unwrap();
    let merged = SkillMirror::open(desk.path("third")).unwrap();
    assert_eq!(merged.sync(&skills).len(), 1);
    assert!(!merged.shown().join("x").exists());
}

fn walk(directory: &Path) -> Vec<String> {
    let mut names = Vec::new();
    for entry in fs::read_dir(directory).unwrap().map(Result::unwrap) {
        let name = entry.file_name().into_string().unwrap();
        match entry.file_type().unwrap().is_dir() {
            true => names.extend(walk(&entry.path()).iter().map(|below| format!("{name}/{below}"))),
            false => names.push(name),
        }
    }
    names
}

/// How many watchers of the kernel this process has; a user has 128 of them in all.
fn kernel_watchers() -> usize {
    let links = fs::read_dir("/proc/self/fd").unwrap().flatten();
    links
        .filter_map(|fd| fs::read_link(fd.path()).ok())
        .filter(|to| to.to_string_lossy().contains("inotify"))
        .count()
}

fn threads_named(name: &str) -> usize {
    let threads = fs::read_dir("/proc/self/task").unwrap().flatten();
    let names = threads.filter_map(|thread| fs::read_to_string(thread.path().join("comm")).ok());
    names.filter(|found| found.trim_end() == name).count()
}

#[test]
fn many_registries_share_one_watcher() {
    let desks: Vec<_> = (0..60).map(|_| Desk::new(|_| ())).collect();
    assert_eq!((threads_named("skills"), kernel_watchers()), (1, 1));
    for (number, desk) in desks.iter().enumerate() {
        let body = number.to_string();
        desk.put("project/.windlass/skills/deploy/SKILL.md", &skill("deploy", &body));
    }
    for (number, desk) in desks.iter().enumerate() {
        desk.until_says("deploy", &number.to_string());
    }
}

#[test]
fn a_storm_of_renames_makes_no_second_watcher() {
    let desk = Desk::new(|_| ());
    desk.put("project/one", "");
    let (one, two) = (desk.path("project/one"), desk.path("project/two"));
    let over = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let ends = Arc::clone(&over);
    let storm = std::thread::spawn(move || {
        while !ends.load(std::sync::atomic::Ordering::Relaxed) {
            fs::rename(&one, &two).unwrap();
            fs::rename(&two, &one).unwrap();
        }
    });
    // Whoever begins to follow meanwhile is not held up, and sees what is there.
    for number in 0..20 {
        let other = Desk::new(|room| {
            put(&room.join("project/.windlass/skills/deploy/SKILL.md"), &skill("deploy", "here"));
        });
        assert!(other.shelf.current().get("deploy").is_some(), "{number}");
        assert_eq!((threads_named("skills"), kernel_watchers()), (1, 1));
    }
    over.store(true, std::sync::atomic::Ordering::Relaxed);
    storm.join().unwrap();
    desk.put("project/.windlass/skills/deploy/SKILL.md", &skill("deploy", "after"));
    desk.until_says("deploy", "after");
}

#[test]
fn skills_that_were_read_lately_are_not_read_again() {
    let room = tempfile::tempdir().unwrap();
    let places = places(Some(room.path()), &room.path().join("project")).split_off(1);
    let shelf = SkillRegistry::open(places, Arc::new(|_| true), None);
    put(&room.path().join(".windlass/skills/a/SKILL.md"), &skill("a", "new"));
    shelf.refresh(Duration::from_secs(3600));
    assert!(shelf.current().get("a").is_none());
    shelf.refresh(Duration::ZERO);
    assert!(shelf.current().get("a").is_some());
}
