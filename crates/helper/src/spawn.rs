//! Starts a program that shares its working directory with us.
//!
//! `CLONE_FS` is why this is not `std::process::Command`: when a command ends, however it ends, its last
//! working directory is ours, and nothing the command prints can forge it. `CLONE_VM` with `CLONE_VFORK`
//! saves the copy of our page tables, a few hundred microseconds for each command.
//!
//! Invariant: until the child has become the program, it uses our memory while we are suspended. So it only
//! makes system calls and allocates nothing; everything it needs is prepared before it exists.

use std::ffi::{CString, c_char, c_int, c_void};
use std::io;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicI32, Ordering};

use rustix::process::{Pid, WaitOptions};

use crate::sys;

/// What the child may use of stack: it makes a few calls and becomes another program.
const CHILD_STACK_BYTES: usize = 32 * 1024;

struct Child<'a> {
    prepare: &'a dyn Fn(),
    program: &'a Program,
    /// Why it could not become the program; 0 while that is not known.
    errno: AtomicI32,
}

/// Starts a program, after the child has run `prepare`. Its working directory is ours; its descriptors and
/// signals are its own.
pub fn spawn(prepare: &dyn Fn(), program: &Program) -> io::Result<Pid> {
    extern "C" fn run(child: *mut c_void) -> c_int {
        // SAFETY: `spawn` passes a `Child` and is suspended for as long as this process uses it.
        let child = unsafe { &*child.cast::<Child<'_>>() };
        (child.prepare)();
        child.errno.store(sys::errno(&child.program.exec()), Ordering::SeqCst);
        127
    }
    // Words of 16 bytes, because a stack is aligned so. Not filled, because each page that is touched costs.
    let mut stack: Vec<u128> = Vec::with_capacity(CHILD_STACK_BYTES / size_of::<u128>());
    let top: *mut MaybeUninit<u128> = stack.spare_capacity_mut().as_mut_ptr_range().end;
    let mut child = Child { prepare, program, errno: AtomicI32::new(0) };
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::CLONE_FS | libc::SIGCHLD;
    // SAFETY: the stack grows down from its end. Stack and child outlive the new process's use of our memory.
    let pid = unsafe { libc::clone(run, top.cast(), flags, (&raw mut child).cast()) };
    let Some(pid) = Pid::from_raw(pid.max(0)) else { return Err(io::Error::last_os_error()) };
    match child.errno.load(Ordering::SeqCst) {
        0 => Ok(pid),
        errno => {
            while let Err(rustix::io::Errno::INTR) =
                rustix::process::waitpid(Some(pid), WaitOptions::empty())
            {}
            Err(io::Error::from_raw_os_error(errno))
        }
    }
}

/// A program to become, in the form the kernel takes.
pub struct Program {
    /// Where it may be; the first that exists is taken.
    paths: Vec<CString>,
    argv: StringList,
    env: StringList,
}

impl Program {
    /// The program that `argv` names: a path, or a file in one of the directories of the command's `PATH`.
    pub fn new(argv: &[String], env: &[String]) -> io::Result<Self> {
        let name = &argv[0];
        let path = env.iter().find_map(|entry| entry.strip_prefix("PATH="));
        let paths = match name.contains('/') {
            true => vec![c_string(name)?],
            false => path
                .unwrap_or("/usr/bin:/bin")
                .split(':')
                .filter(|directory| !directory.is_empty())
                .map(|directory| c_string(&format!("{directory}/{name}")))
                .collect::<io::Result<_>>()?,
        };
        Ok(Self { paths, argv: StringList::new(argv)?, env: StringList::new(env)? })
    }

    /// Becomes the program; returns only the error that says most.
    fn exec(&self) -> io::Error {
        let mut found = libc::ENOENT;
        for path in &self.paths {
            // SAFETY: the path and both null-ended lists live through the call.
            unsafe {
                libc::execve(
                    path.as_ptr(),
                    self.argv.pointers.as_ptr(),
                    self.env.pointers.as_ptr(),
                );
            }
            let error = io::Error::last_os_error();
            match sys::errno(&error) {
                libc::ENOENT | libc::ENOTDIR => {}
                libc::EACCES => found = libc::EACCES,
                _ => return error,
            }
        }
        io::Error::from_raw_os_error(found)
    }
}

/// Strings, and the null-ended list of where they are.
struct StringList {
    _strings: Vec<CString>,
    pointers: Vec<*const c_char>,
}

impl StringList {
    fn new(texts: &[String]) -> io::Result<Self> {
        let strings = texts.iter().map(|text| c_string(text)).collect::<io::Result<Vec<_>>>()?;
        let pointers = strings.iter().map(|text| text.as_ptr()).chain([std::ptr::null()]).collect();
        Ok(Self { _strings: strings, pointers })
    }
}

fn c_string(text: &str) -> io::Result<CString> {
    CString::new(text).map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))
}
