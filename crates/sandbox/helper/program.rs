//! Starting a program from this process's own memory, which is quicker than copying the process first.
//!
//! Invariant: until the child has become the program it shares our memory and we stand still, so it makes
//! calls and allocates nothing; everything it needs is laid out before it exists.

use std::ffi::{CString, c_char, c_int, c_void};
use std::io;
use std::rc::Rc;

use crate::sys;

unsafe extern "C" {
    fn clone(
        run: extern "C" fn(*mut c_void) -> c_int,
        stack: *mut c_void,
        flags: c_int,
        argument: *mut c_void,
        ...
    ) -> c_int;
    fn execve(path: *const c_char, argv: *const *const c_char, env: *const *const c_char) -> c_int;
}

const CLONE_VM: c_int = 0x100;
const CLONE_FS: c_int = 0x200;
const CLONE_VFORK: c_int = 0x4000;

/// What a child on our memory may take of stack: it makes a few calls and becomes another program.
const CHILD_STACK_BYTES: usize = 32 * 1024;

/// Starts the first of these programs that there is, after the child has done `prepare`. Its working directory
/// stays ours (`CLONE_FS`); descriptors and signals are its own.
pub fn start(prepare: &dyn Fn(), programs: &[Program]) -> io::Result<i32> {
    struct Job<'a> {
        prepare: &'a dyn Fn(),
        programs: &'a [Program],
        refused: c_int,
    }
    extern "C" fn run(job: *mut c_void) -> c_int {
        // SAFETY: `start` gave it, and stands still until this process is gone from its memory.
        let job = unsafe { &mut *job.cast::<Job<'_>>() };
        (job.prepare)();
        job.refused = sys::errno(&become_first(job.programs));
        sys::_exit(127)
    }
    // Words of 16 bytes, because that is how a stack is aligned; not filled, because each page touched costs.
    let mut stack: Vec<u128> = Vec::with_capacity(CHILD_STACK_BYTES / size_of::<u128>());
    let mut job = Job { prepare, programs, refused: 0 };
    let flags = CLONE_VM | CLONE_VFORK | CLONE_FS | sys::SIGCHLD;
    // SAFETY: the stack grows down from its end and, like the job, outlives the child's use of our memory.
    let top = unsafe { stack.as_mut_ptr().add(stack.capacity()) };
    let pid = sys::check(unsafe { clone(run, top.cast(), flags, (&raw mut job).cast()) })?;
    // Written by the child behind the compiler's back.
    // SAFETY: the job is ours again.
    match unsafe { (&raw const job.refused).read_volatile() } {
        0 => Ok(pid),
        refused => {
            sys::wait_for(pid);
            Err(io::Error::from_raw_os_error(refused))
        }
    }
}

/// A program to become: everything in the form the kernel takes.
pub struct Program {
    path: CString,
    argv: Rc<Texts>,
    env: Rc<Texts>,
}

/// Texts, and the null-ended list of where they are.
pub struct Texts {
    _texts: Vec<CString>,
    list: Vec<*const c_char>,
}

impl Texts {
    pub fn new(texts: &[String]) -> io::Result<Rc<Self>> {
        let texts = texts.iter().map(sys::text).collect::<io::Result<Vec<_>>>()?;
        let list = texts.iter().map(|text| text.as_ptr()).chain([std::ptr::null()]).collect();
        Ok(Rc::new(Self { _texts: texts, list }))
    }
}

impl Program {
    pub fn new(path: &str, argv: &Rc<Texts>, env: &Rc<Texts>) -> io::Result<Self> {
        Ok(Self { path: sys::text(path)?, argv: argv.clone(), env: env.clone() })
    }

    /// Becomes the program; returns only the error.
    fn become_it(&self) -> io::Error {
        // SAFETY: all strings and both null-ended lists live through the call.
        unsafe { execve(self.path.as_ptr(), self.argv.list.as_ptr(), self.env.list.as_ptr()) };
        io::Error::last_os_error()
    }
}

/// Becomes the first of these that there is; returns only the error that says most.
fn become_first(programs: &[Program]) -> io::Error {
    const ENOTDIR: i32 = 20;
    let mut worst = sys::ENOENT;
    for program in programs {
        match sys::errno(&program.become_it()) {
            sys::ENOENT | ENOTDIR => {}
            sys::EACCES => worst = sys::EACCES,
            other => return io::Error::from_raw_os_error(other),
        }
    }
    io::Error::from_raw_os_error(worst)
}
