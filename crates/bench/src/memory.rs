//! The memory of a process and of everything below it, read from `/proc`.

use std::collections::HashMap;
use std::fs;
use std::io::ErrorKind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, ensure};

/// How often a tree is looked at: a command lives about this long.
const PERIOD: Duration = Duration::from_millis(2);

/// Bytes of memory, counted in two ways.
#[derive(Clone, Copy, Debug, Default)]
pub struct Memory {
    /// Resident, pages shared between processes counted in each.
    pub resident: u64,
    /// Proportional: a page shared by n processes counts 1/n in each.
    pub proportional: u64,
}

/// The memory of one process now; nothing for one that has ended. A process that hides it is an error.
pub fn of(process: u32) -> Result<Memory> {
    let path = format!("/proc/{process}/smaps_rollup");
    let rollup = match fs::read_to_string(&path) {
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            return Err(error).with_context(|| format!("cannot read `{path}`"));
        }
        text => text.unwrap_or_default(),
    };
    let sum = |name: &str| {
        let line = rollup.lines().find(|line| line.starts_with(name));
        let kib = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
        kib.unwrap_or(0) * 1024
    };
    Ok(Memory { resident: sum("Rss:"), proportional: sum("Pss:") })
}

/// The memory of a process and all its descendants now, and how many they are.
pub fn of_tree(root: u32) -> Result<(Memory, usize)> {
    let mut sum = Memory::default();
    let tree = tree(root);
    for process in &tree {
        let memory = of(*process)?;
        sum.resident += memory.resident;
        sum.proportional += memory.proportional;
    }
    Ok((sum, tree.len()))
}

fn tree(root: u32) -> Vec<u32> {
    let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(process) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        let Ok(stat) = fs::read_to_string(entry.path().join("stat")) else { continue };
        // The name may hold spaces and brackets; the fields after it do not.
        let fields = stat.rsplit_once(')').map(|(_, fields)| fields).unwrap_or_default();
        if let Some(parent) = fields.split_whitespace().nth(1).and_then(|field| field.parse().ok())
        {
            children.entry(parent).or_default().push(process);
        }
    }
    let mut found = vec![root];
    let mut at = 0;
    while at < found.len() {
        found.extend(children.remove(&found[at]).unwrap_or_default());
        at += 1;
    }
    found
}

/// Looks at a tree again and again and keeps the most it saw.
pub struct Watch {
    stop: Arc<AtomicBool>,
    resident: Arc<AtomicU64>,
    proportional: Arc<AtomicU64>,
    thread: JoinHandle<Result<()>>,
}

impl Watch {
    /// Begins to look.
    pub fn start(root: u32) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let (resident, proportional) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let (ended, most, shared) =
            (Arc::clone(&stop), Arc::clone(&resident), Arc::clone(&proportional));
        let thread = thread::spawn(move || {
            while !ended.load(Ordering::SeqCst) {
                let (memory, _) = of_tree(root)?;
                most.fetch_max(memory.resident, Ordering::SeqCst);
                shared.fetch_max(memory.proportional, Ordering::SeqCst);
                thread::sleep(PERIOD);
            }
            Ok(())
        });
        Self { stop, resident, proportional, thread }
    }

    /// Stops looking; the most that was seen.
    pub fn end(self) -> Result<Memory> {
        self.stop.store(true, Ordering::SeqCst);
        self.thread.join().map_err(|_| anyhow!("the watch of the memory panicked"))??;
        let memory = Memory {
            resident: self.resident.load(Ordering::SeqCst),
            proportional: self.proportional.load(Ordering::SeqCst),
        };
        ensure!(memory.resident > 0 && memory.proportional > 0, "no memory figure could be read");
        Ok(memory)
    }
}

/// Bytes as megabytes.
pub fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / (1024.0 * 1024.0)
}
