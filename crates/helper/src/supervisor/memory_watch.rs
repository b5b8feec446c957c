//! Ends a command that uses too much memory, where no control group does.
//!
//! The kernel's own limit for one process counts neither shared nor anonymous shared memory, and counts address
//! space that a thread only reserves. So what is resident is looked at, often enough to stay near the limit.

use std::fs;
use std::time::{Duration, Instant};

use rustix::process::Pid;

use crate::process_tree::descendants;

/// Between two looks: in this time a process fills a few hundred megabytes.
const INTERVAL: Duration = Duration::from_millis(100);

pub struct MemoryWatch {
    limit_bytes: u64,
    next: Instant,
}

impl MemoryWatch {
    pub fn new(limit_bytes: u64) -> Self {
        Self { limit_bytes, next: Instant::now() + INTERVAL }
    }

    /// How long until the next look.
    pub fn wait(&self) -> Duration {
        self.next.saturating_duration_since(Instant::now()) + Duration::from_millis(1)
    }

    /// Whether a process of the command, or what its processes share by System V segments, is over the limit now.
    /// Looks only when it is time to.
    pub fn is_over(&mut self) -> bool {
        if Instant::now() < self.next {
            return false;
        }
        self.next = Instant::now() + INTERVAL;
        let over = |bytes: u64| bytes > self.limit_bytes;
        over(segment_bytes())
            || descendants(rustix::process::getpid()).into_iter().any(|pid| {
                over(resident_bytes(pid)) && over(own_bytes(pid)) || over(unnamed_bytes(pid))
            })
    }
}

/// What of a process is in memory, pages of files with it.
fn resident_bytes(pid: Pid) -> u64 {
    let pages = fs::read_to_string(format!("/proc/{}/statm", pid.as_raw_nonzero()))
        .ok()
        .and_then(|statm| statm.split_whitespace().nth(1)?.parse::<u64>().ok());
    pages.unwrap_or(0) * rustix::param::page_size() as u64
}

/// The same without pages of files, which the kernel can drop.
fn own_bytes(pid: Pid) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", pid.as_raw_nonzero()));
    let status = status.unwrap_or_default();
    let kibibytes = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or(0)
    };
    (kibibytes("RssAnon:") + kibibytes("RssShmem:")) * 1024
}

/// The shared memory without a name that a process may have filled. What it filled and gave up again is no longer counted
/// as its own and still takes memory, so all that is mapped counts.
fn unnamed_bytes(pid: Pid) -> u64 {
    let mapped = |line: &str| {
        let mut words = line.split_whitespace();
        let (from, to) = words.next()?.split_once('-')?;
        let rights = words.next()?;
        let is_unnamed = line.ends_with("/dev/zero (deleted)") && rights.ends_with('s');
        let parse = |text| u64::from_str_radix(text, 16).ok();
        (is_unnamed && rights.contains('w'))
            .then(|| Some(parse(to)?.saturating_sub(parse(from)?)))?
    };
    let maps = fs::read_to_string(format!("/proc/{}/maps", pid.as_raw_nonzero()));
    maps.unwrap_or_default().lines().filter_map(mapped).sum()
}

/// The System V segments of this command. They may be attached by nobody.
fn segment_bytes() -> u64 {
    /// The column of `/proc/sysvipc/shm` with the bytes in memory.
    const RESIDENT: usize = 14;
    let table = fs::read_to_string("/proc/sysvipc/shm").unwrap_or_default();
    let rows = table.lines().skip(1);
    rows.filter_map(|row| row.split_whitespace().nth(RESIDENT)?.parse::<u64>().ok()).sum()
}
