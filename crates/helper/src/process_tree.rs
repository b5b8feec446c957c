//! Which processes descend from which, as `/proc` shows it.

use std::fs;
use std::os::unix::ffi::OsStrExt;

use rustix::process::Pid;

/// All descendants of a process. They come from the lists that the kernel keeps, which is quick but may miss
/// one while others end; when those show none, from everything in `/proc`. A caller that must find all
/// of them asks until none is left.
pub fn descendants(of: Pid) -> Vec<Pid> {
    let listed = walk(of, children);
    if listed.is_empty() { search(of) } else { listed }
}

/// Everyone below a process, by a way to find each one's children.
fn walk(of: Pid, children: impl Fn(Pid) -> Vec<Pid>) -> Vec<Pid> {
    let mut found = vec![of];
    let mut at = 0;
    while at < found.len() {
        found.extend(children(found[at]));
        at += 1;
    }
    found.remove(0);
    found
}

/// The children of all threads of a process, as the kernel lists them; none where it keeps no lists.
pub fn children(of: Pid) -> Vec<Pid> {
    let of = of.as_raw_nonzero();
    let Ok(threads) = fs::read_dir(format!("/proc/{of}/task")) else { return Vec::new() };
    threads
        .flatten()
        .filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok())
        .flat_map(|list| list.split_whitespace().filter_map(pid).collect::<Vec<_>>())
        .collect()
}

fn pid(text: &str) -> Option<Pid> {
    Pid::from_raw(text.parse().ok()?)
}

fn search(of: Pid) -> Vec<Pid> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let parents: Vec<(Pid, Pid)> = entries
        .flatten()
        .filter_map(|entry| {
            let process = pid(std::str::from_utf8(entry.file_name().as_bytes()).ok()?)?;
            // The name may hold anything; what follows its last parenthesis does not.
            let stat = fs::read(entry.path().join("stat")).ok()?;
            let end = stat.iter().rposition(|&byte| byte == b')')?;
            let mut fields = std::str::from_utf8(&stat[end + 1..]).ok()?.split_whitespace();
            Some((process, pid(fields.nth(1)?)?))
        })
        .collect();
    walk(of, |parent| {
        parents.iter().filter(|(_, of)| *of == parent).map(|(process, _)| *process).collect()
    })
}
