//! Sockets of the host's processes in directories that commands see.
//!
//! A socket file can be connected to through any mount, read-only ones too, and speaks for the process behind it. So
//! those of other processes are covered. Sockets that commands make themselves are of another network namespace, which
//! the kernel's list of this one does not show.

use std::collections::{HashSet, VecDeque};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};

use rustix::io::Errno;

/// The kernel's list of the local sockets in this network namespace.
const LIST: &str = "/proc/net/unix";

/// The most entries that are looked at to find a socket whose directory is not known.
const MAX_ENTRIES: usize = 50_000;

/// The same for the first look, which covers whatever socket it comes upon. Sockets are near the top mostly.
const MAX_FIRST_ENTRIES: usize = 5_000;

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
    /// Directories of the system, seen at their own paths. Too large to search: a socket there is found by its name in
    /// the list alone.
    system: Vec<PathBuf>,
    /// Sockets that a person shows by name.
    listed: Vec<PathBuf>,
    /// Lines of the list that were looked at, by number and name.
    seen: HashSet<(Vec<u8>, Vec<u8>)>,
    has_looked: bool,
}

impl HostSockets {
    pub(crate) fn new(shown: Vec<VisibleDirectory>, listed: &[PathBuf]) -> Self {
        let listed = listed.iter().filter_map(|path| fs::canonicalize(path).ok()).collect();
        Self { shown, system: Vec::new(), listed, seen: HashSet::new(), has_looked: false }
    }

    /// The same, where commands also see these directories of the system.
    pub(crate) fn with_system(self, directories: &[&str]) -> Self {
        // One that is a link (`/bin`) leads to another of them.
        let is_directory =
            |path: &&&str| fs::symlink_metadata(path).is_ok_and(|found| found.is_dir());
        let system = directories.iter().filter(is_directory).map(PathBuf::from).collect();
        Self { system, ..self }
    }

    /// The sockets that were not there at the last look, as commands would name them.
    pub(crate) fn find_new(&mut self) -> Vec<PathBuf> {
        let list = read_list().unwrap_or_default();
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
            let wanted: HashSet<&OsStr> =
                unknown.iter().filter_map(|name| name.file_name()).collect();
            found.extend(self.search(MAX_ENTRIES, |path| {
                path.file_name().is_some_and(|name| wanted.contains(name))
            }));
        }
        // Before the first command none is ours. One that was renamed, linked or made in another network namespace, as
        // by a container, is not in the list under its name.
        if !std::mem::replace(&mut self.has_looked, true) {
            found.extend(self.search(MAX_FIRST_ENTRIES, is_listened_on));
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
        let seen = self.shown.iter().find_map(below).or_else(|| {
            self.system.iter().any(|system| path.starts_with(system)).then(|| path.clone())
        })?;
        let is_socket =
            fs::symlink_metadata(&path).is_ok_and(|found| found.file_type().is_socket());
        (is_socket && !self.listed.contains(&path)).then_some(seen)
    }

    /// Sockets that are wanted, from the top downwards: what their owner named relative to its own directory
    /// is not found by the list.
    fn search(&self, entries: usize, is_wanted: impl Fn(&Path) -> bool) -> Vec<PathBuf> {
        let mut left = entries;
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
                } else if kind.is_socket() && is_wanted(&entry.path()) {
                    found.extend(self.seen_as(&entry.path()));
                }
            }
        }
        found
    }
}

/// The kernel does not say how long the list is, and builds it again for each part that is read.
fn read_list() -> io::Result<Vec<u8>> {
    const USUAL_BYTES: usize = 32 << 10;
    let mut list = Vec::with_capacity(USUAL_BYTES);
    File::open(LIST)?.read_to_end(&mut list)?;
    Ok(list)
}

/// Whether a process listens on a socket file. A stale file would block a server that creates the socket again.
/// Nothing is connected: a socket of another kind is refused as such, and one for datagrams notices nothing.
fn is_listened_on(path: &Path) -> bool {
    match UnixDatagram::unbound().and_then(|probe| probe.connect(path)) {
        Ok(()) => true,
        Err(error) => error.raw_os_error() == Some(Errno::PROTOTYPE.raw_os_error()),
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
    use std::os::unix::net::UnixListener;

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
        let found = sockets.search(MAX_ENTRIES, |path| path.ends_with("x.sock"));
        assert_eq!(found, [Path::new("/seen/sub/x.sock")]);
    }

    #[test]
    fn renamed_and_linked_sockets_are_found_and_a_dead_one_is_not() {
        let top = tempfile::tempdir().unwrap();
        let source = fs::canonicalize(top.path()).unwrap();
        let _renamed = UnixListener::bind(source.join("before")).unwrap();
        fs::rename(source.join("before"), source.join("after")).unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        let _linked = UnixListener::bind(elsewhere.path().join("x")).unwrap();
        fs::hard_link(elsewhere.path().join("x"), source.join("linked")).unwrap();
        let _datagram = UnixDatagram::bind(source.join("data")).unwrap();
        fs::rename(source.join("data"), source.join("datagram")).unwrap();
        drop(UnixListener::bind(source.join("stale")).unwrap());
        let shown = vec![VisibleDirectory { source, target: PathBuf::from("/seen") }];
        let found = HostSockets::new(shown, &[]).find_new();
        assert_eq!(found, ["/seen/after", "/seen/datagram", "/seen/linked"].map(Path::new));
    }
}
