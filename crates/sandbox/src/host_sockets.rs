//! Sockets of the host's processes in directories that commands see.
//!
//! A socket file can be connected to through any mount, read-only ones too, and speaks for the process behind it. So
//! those of other processes are covered. Sockets that commands make themselves are of another network namespace, which
//! the kernel's list of this one does not show.

use std::collections::{HashSet, VecDeque};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

/// The kernel's list of the local sockets in this network namespace.
const LIST: &str = "/proc/net/unix";

/// The most entries that are looked at to find a socket whose directory is not known.
const MAX_ENTRIES: usize = 50_000;

/// A directory of the host and where commands see it.
#[derive(Clone, Debug)]
pub(crate) struct VisibleDirectory {
    pub source: PathBuf,
    pub target: PathBuf,
}

/// What was found so far.
#[derive(Debug)]
pub(crate) struct HostSockets {
    shown: Vec<VisibleDirectory>,
    /// Sockets that a person shows by name.
    listed: Vec<PathBuf>,
    /// Lines of the list that were looked at, by number and name.
    seen: HashSet<(Vec<u8>, Vec<u8>)>,
}

impl HostSockets {
    pub(crate) fn new(shown: Vec<VisibleDirectory>, listed: &[PathBuf]) -> Self {
        let listed = listed.iter().filter_map(|path| fs::canonicalize(path).ok()).collect();
        Self { shown, listed, seen: HashSet::new() }
    }

    /// The sockets that were not there at the last look, as commands would name them.
    pub(crate) fn find_new(&mut self) -> Vec<PathBuf> {
        let list = fs::read(LIST).unwrap_or_default();
        let mut names = HashSet::new();
        for (number, name) in list.split(|&byte| byte == b'\n').filter_map(bound_name) {
            if self.seen.insert((number.to_vec(), name.to_vec())) {
                names.insert(PathBuf::from(OsStr::from_bytes(name)));
            }
        }
        let (known, unknown): (Vec<_>, Vec<_>) =
            names.into_iter().partition(|name| name.is_absolute());
        let mut found: Vec<PathBuf> = known.iter().filter_map(|path| self.seen_as(path)).collect();
        if !unknown.is_empty() {
            found.extend(self.search(&unknown));
        }
        found.sort();
        found.dedup();
        found
    }

    /// Where commands see a socket of the host, if they do.
    fn seen_as(&self, path: &Path) -> Option<PathBuf> {
        let directory = fs::canonicalize(path.parent()?).ok()?;
        let path = directory.join(path.file_name()?);
        let below = |shown: &VisibleDirectory| {
            Some(shown.target.join(path.strip_prefix(&shown.source).ok()?))
        };
        let seen = self.shown.iter().find_map(below)?;
        let is_socket =
            fs::symlink_metadata(&path).is_ok_and(|found| found.file_type().is_socket());
        (is_socket && !self.listed.contains(&path)).then_some(seen)
    }

    /// Sockets whose owner named them relative to its own directory, which the list does not say.
    fn search(&self, names: &[PathBuf]) -> Vec<PathBuf> {
        let wanted: HashSet<&OsStr> = names.iter().filter_map(|name| name.file_name()).collect();
        let mut left = MAX_ENTRIES;
        let mut found = Vec::new();
        let mut waiting: VecDeque<PathBuf> =
            self.shown.iter().map(|shown| shown.source.clone()).collect();
        while let Some(directory) = waiting.pop_front() {
            for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
                if left == 0 {
                    return found;
                }
                left -= 1;
                let Ok(kind) = entry.file_type() else { continue };
                if kind.is_dir() {
                    waiting.push_back(entry.path());
                } else if kind.is_socket() && wanted.contains(entry.file_name().as_os_str()) {
                    found.extend(self.seen_as(&entry.path()));
                }
            }
        }
        found
    }
}

/// The number and the path of a socket that others can connect or send to.
fn bound_name(line: &[u8]) -> Option<(&[u8], &[u8])> {
    /// The columns before the path: address, users, protocol, flags, kind, state, number.
    const COLUMNS: usize = 7;
    const ACCEPTS: u32 = 0x1_0000;
    const DATAGRAM: &[u8] = b"0002";
    let mut columns = [b"".as_slice(); COLUMNS];
    let mut rest = line;
    for column in &mut columns {
        rest = rest.trim_ascii_start();
        let end = rest.iter().position(|&byte| byte == b' ').unwrap_or(rest.len());
        (*column, rest) = rest.split_at(end);
    }
    let name = rest.strip_prefix(b" ")?;
    let [_, _, _, flags, kind, _, number] = columns;
    let flags = u32::from_str_radix(std::str::from_utf8(flags).ok()?, 16).ok()?;
    // Names that begin with `@` are not files.
    let is_file = !name.is_empty() && !name.starts_with(b"@");
    (is_file && (flags & ACCEPTS != 0 || kind == DATAGRAM)).then_some((number, name))
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::{UnixDatagram, UnixListener};

    use super::*;

    #[test]
    fn sockets_of_others_are_found_once_unless_listed() {
        let top = tempfile::tempdir().unwrap();
        let source = fs::canonicalize(top.path()).unwrap();
        let shown =
            vec![VisibleDirectory { source: source.clone(), target: PathBuf::from("/seen") }];
        fs::create_dir(source.join("sub")).unwrap();
        std::os::unix::fs::symlink(&source, source.join("link")).unwrap();
        let _stream = UnixListener::bind(source.join("link/sub/a b.sock")).unwrap();
        let _listed = UnixListener::bind(source.join("listed")).unwrap();
        drop(UnixListener::bind(source.join("stale")).unwrap());
        let mut sockets = HostSockets::new(shown, &[source.join("listed")]);
        assert_eq!(sockets.find_new(), [Path::new("/seen/sub/a b.sock")]);
        assert!(sockets.find_new().is_empty());
        let _datagram = UnixDatagram::bind(source.join("datagram")).unwrap();
        assert_eq!(sockets.find_new(), [Path::new("/seen/datagram")]);
    }

    #[test]
    fn a_socket_with_a_relative_name_is_searched_for() {
        let top = tempfile::tempdir().unwrap();
        let source = fs::canonicalize(top.path()).unwrap();
        fs::create_dir(source.join("sub")).unwrap();
        let _socket = UnixListener::bind(source.join("sub/x.sock")).unwrap();
        let shown = vec![VisibleDirectory { source, target: PathBuf::from("/seen") }];
        let sockets = HostSockets::new(shown, &[]);
        let names = [PathBuf::from("x.sock")];
        assert_eq!(sockets.search(&names), [Path::new("/seen/sub/x.sock")]);
    }
}
