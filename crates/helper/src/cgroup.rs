//! The control group that bounds a whole task, where one can be had (version 1 or 2).
//!
//! Invariants:
//! - Only groups below one we are in (or, in version 2, below one that was delegated to us) are made.
//! - A group that cannot be made is not an error: the report says what is bounded.
//! - The name holds its maker's process id, so that groups of makers that died are found and removed.

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rustix::process::Pid;

use crate::confine::CgroupLimits;

/// Prefix of every group made here.
const PREFIX: &str = "windlass-";

pub struct Cgroup {
    directories: Vec<PathBuf>,
    pub bounded: CgroupLimits,
    /// Where the kernel counts the processes that it killed for their use of memory.
    pub counter: Option<File>,
}

impl Cgroup {
    fn none() -> Self {
        Self { directories: Vec::new(), bounded: CgroupLimits::NOTHING, counter: None }
    }

    /// The group of the container around us, which its engine made.
    pub fn of_container(memory: u64, processes: u64) -> Self {
        let mut group = Self::none();
        let is_bounded = |files: [&str; 2], bound: u64| {
            let texts = files.iter().filter_map(|file| fs::read_to_string(file).ok());
            texts.filter_map(|text| text.trim().parse::<u64>().ok()).any(|limit| limit <= bound)
        };
        group.bounded = CgroupLimits {
            memory: is_bounded(
                ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"],
                memory,
            ),
            processes: is_bounded(
                ["/sys/fs/cgroup/pids.max", "/sys/fs/cgroup/pids/pids.max"],
                processes,
            ),
        };
        let counters = ["/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control"];
        group.counter = counters.iter().find_map(|path| File::open(path).ok());
        group
    }

    /// Makes a group with these bounds, as far as the system lets us.
    pub fn create(name: &str, memory: u64, processes: u64) -> Self {
        let mut group = Self::none();
        if name.is_empty() {
            return group;
        }
        let name = format!("{PREFIX}{}-{name}", rustix::process::getpid().as_raw_nonzero());
        for hierarchy in hierarchies() {
            for parent in hierarchy.candidates() {
                remove_abandoned(&parent);
                let directory = parent.join(&name);
                if fs::create_dir(&directory).is_err() {
                    continue;
                }
                if group.set_bounds(&directory, &hierarchy, memory, processes) {
                    group.directories.push(directory);
                    break;
                }
                // A hierarchy without the controllers bounds nothing.
                let _ = fs::remove_dir(&directory);
            }
        }
        group
    }

    fn set_bounds(
        &mut self,
        at: &Path,
        hierarchy: &Hierarchy,
        memory: u64,
        processes: u64,
    ) -> bool {
        let set = |file: &str, value: String| {
            let path = at.join(file);
            path.exists() && fs::write(path, value).is_ok()
        };
        let (limit, counter) = match hierarchy.version {
            1 => ("memory.limit_in_bytes", "memory.oom_control"),
            _ => ("memory.max", "memory.events"),
        };
        let mut was_set = false;
        if !self.bounded.memory && set(limit, memory.to_string()) {
            // Swap would make the bound soft; not every kernel counts it.
            set("memory.swap.max", "0".to_owned());
            set("memory.memsw.limit_in_bytes", memory.to_string());
            self.bounded.memory = true;
            self.counter = File::open(at.join(counter)).ok();
            was_set = true;
        }
        if !self.bounded.processes && set("pids.max", processes.to_string()) {
            self.bounded.processes = true;
            was_set = true;
        }
        was_set
    }

    /// Moves a process in. A group that it cannot be moved into bounds nothing.
    pub fn add_process(&mut self, pid: Pid) {
        for directory in &self.directories {
            let text = pid.as_raw_nonzero().to_string();
            if fs::write(directory.join("cgroup.procs"), text).is_err() {
                self.bounded = CgroupLimits::NOTHING;
            }
        }
    }

    /// Removes the group; its processes are gone by now.
    pub fn remove(&self) {
        for directory in &self.directories {
            let _ = fs::remove_dir(directory);
        }
    }
}

/// How many processes the kernel has killed for their use of memory.
pub fn out_of_memory_kills(counter: &File) -> u64 {
    let mut buffer = [0; 1024];
    let count = counter.read_at(&mut buffer, 0).unwrap_or(0);
    String::from_utf8_lossy(&buffer[..count])
        .lines()
        .find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse().ok())
        .unwrap_or(0)
}

struct Hierarchy {
    version: u8,
    /// Our own group's directory.
    own: PathBuf,
    /// Where the hierarchy is mounted.
    top: PathBuf,
}

impl Hierarchy {
    /// Where a group may be made: below our own; in version 2 also below those above it, since a group
    /// that has processes cannot pass its controllers on.
    fn candidates(&self) -> Vec<PathBuf> {
        let above = self.own.ancestors().take_while(|path| path.starts_with(&self.top));
        above.take(if self.version == 1 { 1 } else { usize::MAX }).map(Path::to_owned).collect()
    }
}

/// Finds the memory and process hierarchies that are mounted, and our group in each.
fn hierarchies() -> Vec<Hierarchy> {
    let mut groups = String::new();
    let mut mounts = String::new();
    let read = |path: &str, text: &mut String| File::open(path)?.read_to_string(text);
    if read("/proc/self/cgroup", &mut groups).is_err()
        || read("/proc/self/mountinfo", &mut mounts).is_err()
    {
        return Vec::new();
    }
    mounts.lines().filter_map(|line| hierarchy(line, &groups)).collect()
}

fn hierarchy(mount: &str, groups: &str) -> Option<Hierarchy> {
    let (left, right) = mount.split_once(" - ")?;
    let left: Vec<&str> = left.split(' ').collect();
    let right: Vec<&str> = right.split(' ').collect();
    let (root, top) = (left.get(3)?, PathBuf::from(left.get(4)?));
    let (version, controllers) = match *right.first()? {
        "cgroup2" => (2, ""),
        "cgroup" => (1, *right.get(2)?),
        _ => return None,
    };
    let wanted = |list: &str| list.split(',').any(|name| name == "memory" || name == "pids");
    if version == 1 && !wanted(controllers) {
        return None;
    }
    let group = groups.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (names, path) = (parts.next()?, parts.next()?);
        let same = match version {
            2 => names.is_empty(),
            _ => names.split(',').any(|name| controllers.split(',').any(|other| other == name)),
        };
        same.then_some(path)
    })?;
    let below = group.strip_prefix(root.trim_end_matches('/'))?.trim_start_matches('/');
    Some(Hierarchy { version, own: top.join(below), top })
}

fn remove_abandoned(parent: &Path) {
    let Ok(entries) = fs::read_dir(parent) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let maker = name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.split('-').next());
        if maker.is_some_and(|pid| !Path::new("/proc").join(pid).exists()) {
            let _ = fs::remove_dir(entry.path());
        }
    }
}
