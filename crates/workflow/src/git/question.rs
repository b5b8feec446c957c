//! What git is asked about a directory before anything is known of the repository there. Whoever packed a project may
//! have put a pipe in place of one of git's files, which git would wait for without an end.

use std::ffi::OsStr;
use std::io::{self, Read as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::{GitError, Result, command, not_started};

/// How long git may take for an answer that it reads from a few small files.
const ANSWER_WAIT: Duration = Duration::from_secs(10);

/// The files that git reads for every answer.
const FILES: [&str; 2] = ["HEAD", "config"];

/// Refuses a repository in which something else lies in place of one of git's own files.
pub(super) fn check_files(directory: &Path) -> Result<()> {
    let above = directory.ancestors().map(|above| above.join(".git"));
    let Some(found) = above.into_iter().find(|git| git.is_dir()) else { return Ok(()) };
    let odd = |path: &PathBuf| std::fs::metadata(path).is_ok_and(|about| !about.is_file());
    match FILES.map(|name| found.join(name)).into_iter().find(odd) {
        Some(path) => Err(GitError::file(&path, io::Error::other("it is not a regular file"))),
        None => Ok(()),
    }
}

/// What git prints in answer, without the end of its line; `None` where it has no answer.
pub(super) fn ask(directory: &Path, question: &[&str]) -> Result<Option<PathBuf>> {
    let asked = command()
        .current_dir(directory)
        .args(question)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn();
    let mut git = asked.map_err(|error| not_started(directory, error))?;
    let failed = |error| GitError::file(directory, error);
    // An answer is one path or word, which a pipe holds, so git never waits for it to be read.
    if !has_ended(&git).map_err(failed)? {
        let _ = git.kill();
        let _ = git.wait();
        let waited = ANSWER_WAIT.as_secs();
        let problem = format!("git has not answered within {waited} s; is a pipe among its files?");
        return Err(failed(io::Error::other(problem)));
    }
    let mut printed = Vec::new();
    if let Some(output) = &mut git.stdout {
        output.read_to_end(&mut printed).map_err(failed)?;
    }
    let is_answer = git.wait().map_err(failed)?.success();
    // A path may have any byte in it, the end of a line too.
    let line = printed.strip_suffix(b"\n").filter(|line| is_answer && !line.is_empty());
    Ok(line.map(|line| PathBuf::from(OsStr::from_bytes(line))))
}

/// Waits until a program has ended, at most for as long as it may take.
fn has_ended(program: &Child) -> io::Result<bool> {
    // A kernel that cannot tell leaves only to wait for it.
    let Ok(ended) = pidfd_open(Pid::from_child(program), PidfdFlags::empty()) else {
        return Ok(true);
    };
    let wait = Timespec::try_from(ANSWER_WAIT).ok();
    loop {
        match poll(&mut [PollFd::new(&ended, PollFlags::IN)], wait.as_ref()) {
            Ok(ready) => return Ok(ready > 0),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}
