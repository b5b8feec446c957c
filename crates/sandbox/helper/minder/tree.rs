//! Who descends from whom, as `/proc` tells.

use std::fs;
use std::os::unix::ffi::OsStrExt;

/// All descendants of a process. Quickly from the lists the kernel keeps, which may miss one while others
/// end; when they show none, from everything there is in `/proc`. Who must find all asks until none is left.
pub fn descendants(of: i32) -> Vec<i32> {
    let listed = walk(of, children);
    if listed.is_empty() { search(of) } else { listed }
}

/// Everyone below a process, by a way to find each one's children.
fn walk(of: i32, children: impl Fn(i32) -> Vec<i32>) -> Vec<i32> {
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
pub fn children(of: i32) -> Vec<i32> {
    let Ok(threads) = fs::read_dir(format!("/proc/{of}/task")) else { return Vec::new() };
    threads
        .flatten()
        .filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok())
        .flat_map(|list| list.split_whitespace().flat_map(str::parse).collect::<Vec<i32>>())
        .collect()
}

fn search(of: i32) -> Vec<i32> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let parents: Vec<(i32, i32)> = entries
        .flatten()
        .filter_map(|entry| {
            let pid = std::str::from_utf8(entry.file_name().as_bytes()).ok()?.parse().ok()?;
            // The name may hold anything; what follows its last parenthesis does not.
            let stat = fs::read(entry.path().join("stat")).ok()?;
            let end = stat.iter().rposition(|&byte| byte == b')')?;
            let mut fields = std::str::from_utf8(&stat[end + 1..]).ok()?.split_whitespace();
            Some((pid, fields.nth(1)?.parse().ok()?))
        })
        .collect();
    walk(of, |parent| parents.iter().filter(|(_, of)| *of == parent).map(|(pid, _)| *pid).collect())
}
