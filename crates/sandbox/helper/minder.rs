//! One process per command that starts it, outlives all it started, and ends with the last of them.
//!
//! Invariants:
//! - Every descendant is found: in a process namespace of its own the minder is process 1 and the kernel
//!   ends all with it; elsewhere it is the reaper of orphans, so none leaves its tree.
//! - The minder gave up everything the command gives up, before the command exists.
//! - One that waits for its command has given everything up already, and knows nothing to run yet.
//! - It shares its working directory with the command's main process (`CLONE_FS`), so the last one is
//!   known however that process ended, and nothing the command prints can forge it.

use std::fs;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::time::{Duration, Instant};

use crate::confine::Confinement;
use crate::program::{self, Program, Texts};
use crate::protocol::{Isolation, Order, Start};
use crate::{root, sys, wire};

/// How long what a foreground command left behind may take to end by itself (a `tee` still writing),
/// and then once more after it was asked to.
const LINGER: Duration = Duration::from_millis(250);

/// How long one that has told of the end stays: taking its namespaces down keeps a processor busy just when
/// windlass goes on.
const LEAVE_MS: i32 = 3;

/// Rounds in which nothing but processes of other users is left before they are given up.
const HOPELESS_ROUNDS: u32 = 200;

/// From the minder to its inner.
pub enum Word {
    Started,
    Refused { stage: String, errno: i32 },
    Ended { status: i32, cwd: String },
}

impl Word {
    fn send(&self, to: &OwnedFd) {
        let packet = match self {
            Self::Started => vec![b'S'],
            Self::Refused { stage, errno } => {
                // A packet holds any path the system takes; a longer text is no path.
                let stage: String = stage.chars().take(1000).collect();
                [b"R", errno.to_le_bytes().as_slice(), stage.as_bytes()].concat()
            }
            Self::Ended { status, cwd } => {
                [b"E", status.to_le_bytes().as_slice(), cwd.as_bytes()].concat()
            }
        };
        let _ = sys::send(to, &packet);
    }

    pub fn parse(packet: &[u8]) -> Option<Self> {
        let (kind, rest) = packet.split_first()?;
        if *kind == b'S' {
            return Some(Self::Started);
        }
        let (number, text) = rest.split_first_chunk()?;
        let (number, text) = (i32::from_le_bytes(*number), String::from_utf8(text.to_vec()).ok()?);
        match kind {
            b'R' => Some(Self::Refused { stage: text, errno: number }),
            b'E' => Some(Self::Ended { status: number, cwd: text }),
            _ => None,
        }
    }
}

/// What a command's process is made from.
pub struct Plan<'a> {
    pub what: What<'a>,
    pub shell: &'a str,
    pub isolation: Isolation,
    pub confinement: Option<&'a Confinement>,
    /// The limit on open files as windlass has it, for commands that have no other.
    pub open_files: [u64; 2],
    /// Standard input, output and error as the command gets them.
    pub streams: [OwnedFd; 3],
    /// The way to the inner.
    pub control: OwnedFd,
}

/// What to run, or where that will be said.
pub enum What<'a> {
    Now(&'a Start),
    /// One order in a pipe; its end means that none will come.
    Later(OwnedFd),
}

impl What<'_> {
    /// Waits until it is known; `None` when nothing will be run.
    fn known(self) -> Option<Start> {
        let orders = match self {
            Self::Now(start) => return Some(start.clone()),
            Self::Later(orders) => orders,
        };
        rehearse();
        let mut received = Vec::new();
        let mut piece = [0; 4096];
        loop {
            if let Some((frame, _)) = wire::cut(&received).ok()? {
                return match Order::read(frame).ok()? {
                    Order::Start(start) => Some(start),
                    _ => None,
                };
            }
            match sys::receive(&orders, &mut piece) {
                Ok(count) if count > 0 => received.extend_from_slice(&piece[..count]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(_) | Err(_) => return None,
            }
        }
    }
}

/// The life of a minder. Never returns into the inner's code.
pub fn mind(plan: Plan<'_>) -> ! {
    let (control, first) = (plan.control.as_raw_fd(), plan.isolation == Isolation::Namespaces);
    match Minder::begin(plan) {
        Ok(minder) => {
            minder.run();
            if first {
                sys::wait(&mut [], LEAVE_MS);
            }
        }
        Err((stage, error, to)) => {
            debug_assert_eq!(to.as_raw_fd(), control);
            Word::Refused { stage, errno: sys::errno(&error) }.send(&to);
        }
    }
    sys::_exit(0)
}

type Refusal = (String, io::Error, OwnedFd);

struct Minder {
    control: OwnedFd,
    /// The command's output, let go of when all is over: its end and the word of it come to the inner at once.
    held: Option<[OwnedFd; 2]>,
    signals: OwnedFd,
    main: i32,
    first: bool,
    background: bool,
    state: State,
    status: Option<i32>,
    known: Vec<i32>,
    hopeless: u32,
}

/// How far the tree's end has come.
#[derive(Clone, Copy)]
enum State {
    Living,
    /// The main process of a foreground command ended; the rest may end by itself until then.
    Leaving(Instant),
    /// All were asked to end and have until then.
    Asked(Instant),
    Forcing,
}

impl Minder {
    fn begin(plan: Plan<'_>) -> Result<Self, Refusal> {
        let Plan { what, shell, isolation, confinement, open_files, streams, control } = plan;
        if confinement.is_none() {
            sys::restore_open_files(open_files);
        }
        let first = isolation == Isolation::Namespaces;
        let signals = match prepare(first, confinement, &streams, &control, &what) {
            Ok(signals) => signals,
            Err((stage, error)) => return Err((stage, error, control)),
        };
        let Some(start) = what.known() else { sys::_exit(0) };
        match enter(&start).and_then(|()| spawn(&start, shell, &streams)) {
            Ok(main) => {
                let [_, out, err] = streams;
                Word::Started.send(&control);
                Ok(Self {
                    control,
                    held: Some([out, err]),
                    signals,
                    main,
                    first,
                    background: start.background,
                    state: State::Living,
                    status: None,
                    known: Vec::new(),
                    hopeless: 0,
                })
            }
            Err((stage, error)) => Err((stage, error, control)),
        }
    }

    fn run(mut self) {
        loop {
            if !self.reap() {
                return self.tell();
            }
            let timeout = match self.state {
                State::Living => -1,
                State::Leaving(until) | State::Asked(until) => {
                    until.saturating_duration_since(Instant::now()).as_millis() as i32 + 1
                }
                // Each end wakes us; this is for what could not be seen the last time.
                State::Forcing => 5,
            };
            let poll = |fd: RawFd| sys::PollFd { fd, events: sys::POLLIN, revents: 0 };
            let mut fds = [poll(self.signals.as_raw_fd()), poll(self.control.as_raw_fd())];
            if self.control_is_over() {
                fds[1].fd = -1;
            }
            sys::wait(&mut fds, timeout);
            sys::pending(&self.signals, |_, _| {});
            if fds[1].revents != 0 {
                self.obey();
            }
            self.advance();
        }
    }

    fn control_is_over(&self) -> bool {
        matches!(self.state, State::Forcing)
    }

    /// Takes ended children; false when none is left.
    fn reap(&mut self) -> bool {
        loop {
            match sys::reap() {
                Ok(Some(reaped)) if reaped.pid == self.main => self.main_ended(reaped.status),
                Ok(Some(_)) => {}
                Ok(None) => return true,
                Err(()) => return false,
            }
        }
    }

    fn main_ended(&mut self, status: i32) {
        self.status = Some(status);
        self.main = 0;
        if matches!(self.state, State::Living) && !self.background {
            self.state = State::Leaving(Instant::now() + LINGER);
        }
    }

    /// An order to end the tree, or the inner's own end.
    fn obey(&mut self) {
        let mut packet = [0; 16];
        match sys::receive(&self.control, &mut packet) {
            Ok(9) => {
                let grace = packet[1..9].try_into().map_or(0, u64::from_le_bytes);
                let until = Instant::now() + Duration::from_millis(grace);
                // A second order may shorten the wait, never lengthen it.
                let until = match self.state {
                    State::Asked(earlier) => until.min(earlier),
                    _ => until,
                };
                if !matches!(self.state, State::Asked(_)) && grace > 0 {
                    self.ask();
                }
                self.state = State::Asked(until);
            }
            Err(error) if sys::errno(&error) == sys::EAGAIN => {}
            _ => self.state = State::Forcing,
        }
    }

    fn advance(&mut self) {
        let now = Instant::now();
        match self.state {
            State::Leaving(until) if now >= until => {
                self.ask();
                self.state = State::Asked(now + LINGER);
            }
            State::Asked(until) if now >= until => self.state = State::Forcing,
            State::Living | State::Leaving(_) | State::Asked(_) | State::Forcing => {}
        }
        if matches!(self.state, State::Forcing) {
            self.force();
        }
    }

    fn ask(&self) {
        // A stopped process takes the signal only once it goes on.
        for signal in [sys::SIGTERM, sys::SIGCONT] {
            if self.first {
                sys::kill(-1, signal);
            } else {
                for pid in descendants(sys::getpid()) {
                    sys::kill(pid, signal);
                }
            }
        }
    }

    /// One round of ending everything. As process 1 one call reaches all at once, and leaving ends what
    /// was being born. Elsewhere processes are stopped until no new one appears, then ended.
    fn force(&mut self) {
        if self.first {
            sys::kill(-1, sys::SIGKILL);
            return;
        }
        let found = descendants(sys::getpid());
        let fresh = found.iter().any(|pid| !self.known.contains(pid));
        let signal = if fresh { sys::SIGSTOP } else { sys::SIGKILL };
        let reached = found.iter().filter(|&&pid| sys::kill(pid, signal) == 0).count();
        self.hopeless = if reached == 0 && !found.is_empty() { self.hopeless + 1 } else { 0 };
        if self.hopeless > HOPELESS_ROUNDS {
            self.tell();
            sys::_exit(0);
        }
        self.known = found;
        if fresh {
            self.force_again();
        }
    }

    /// The next round without waiting, as long as new processes appear.
    fn force_again(&mut self) {
        let found = descendants(sys::getpid());
        for &pid in &found {
            sys::kill(pid, sys::SIGSTOP);
        }
        let fresh = found.iter().any(|pid| !self.known.contains(pid));
        self.known = found;
        if !fresh {
            for &pid in &self.known {
                sys::kill(pid, sys::SIGKILL);
            }
        }
    }

    fn tell(&mut self) {
        self.held = None;
        let cwd = std::env::current_dir().ok();
        let cwd =
            cwd.as_deref().and_then(|path| path.to_str()).filter(|path| path.starts_with('/'));
        let status = self.status.unwrap_or(sys::SIGKILL);
        Word::Ended { status, cwd: cwd.unwrap_or_default().to_owned() }.send(&self.control);
    }
}

/// Everything up to the fork that can fail, in the order that makes it safe.
fn prepare(
    first: bool,
    confinement: Option<&Confinement>,
    streams: &[OwnedFd; 3],
    control: &OwnedFd,
    what: &What<'_>,
) -> Result<OwnedFd, (String, io::Error)> {
    // Ends first when memory runs out; asked of the /proc that still shows us. Refusal changes nothing.
    let _ = fs::write("/proc/self/oom_score_adj", "500");
    if first {
        root::own_proc().map_err(|error| ("mount proc".to_owned(), error))?;
    } else {
        sys::set_process(sys::PR_SET_CHILD_SUBREAPER, 1)
            .map_err(|error| ("adopt orphans".to_owned(), error))?;
    }
    sys::block(&[sys::SIGCHLD]);
    let signals = sys::signals(&[sys::SIGCHLD]).map_err(|error| ("signals".to_owned(), error))?;
    if let Some(confinement) = confinement {
        confinement.put_on().map_err(|(stage, error)| (stage.to_owned(), error))?;
    }
    let mut kept: Vec<RawFd> = streams.iter().map(AsRawFd::as_raw_fd).collect();
    kept.extend([control.as_raw_fd(), signals.as_raw_fd()]);
    if let What::Later(orders) = what {
        kept.push(orders.as_raw_fd());
    }
    close_all_but(kept);
    sys::umask(0o022);
    // All but the one that would end us when the inner is gone.
    sys::heed((1..32).filter(|&signal| signal != sys::SIGPIPE));
    Ok(signals)
}

/// Goes through what an order will take: a process just copied, and the one it was copied from, get their
/// memory page by page as they touch it, and now nobody waits.
pub fn rehearse() {
    let words = vec!["rehearsal".to_owned(); 24];
    let start = Start { script: "x".repeat(1024), env: words, ..Start::default() };
    let mut order = Vec::new();
    Order::Start(start).write(&mut order);
    if let Ok(Some((frame, _))) = wire::cut(&order)
        && let Ok(Order::Start(start)) = Order::read(frame)
    {
        let _ = programs(&["/bin/true".to_owned(), start.script], &start.env);
    }
}

fn enter(start: &Start) -> Result<(), (String, io::Error)> {
    std::env::set_current_dir(&start.cwd).map_err(|error| (format!("enter `{}`", start.cwd), error))
}

/// Starts the main process and waits until it is the program asked for.
fn spawn(start: &Start, shell: &str, streams: &[OwnedFd; 3]) -> Result<i32, (String, io::Error)> {
    let script = [shell.to_owned(), "-c".to_owned(), start.script.clone()];
    let argv = if start.argv.is_empty() { &script[..] } else { &start.argv[..] };
    let prepare = || {
        sys::setsid();
        sys::unblock();
        sys::heed(std::iter::once(sys::SIGPIPE));
        for (number, stream) in streams.iter().enumerate() {
            sys::dup2(stream.as_raw_fd(), number as i32);
        }
        sys::close_from(3, true);
    };
    programs(argv, &start.env)
        .and_then(|programs| program::start(&prepare, &programs))
        .map_err(|error| (format!("run `{}`", argv[0]), error))
}

/// What to run: the program as named, or in each directory of the command's own `PATH`.
fn programs(argv: &[String], env: &[String]) -> io::Result<Vec<Program>> {
    let name = &argv[0];
    let path = env.iter().find_map(|entry| entry.strip_prefix("PATH=")).unwrap_or("/usr/bin:/bin");
    let (argv, env) = (Texts::new(argv)?, Texts::new(env)?);
    if name.contains('/') {
        return Ok(vec![Program::new(name, &argv, &env)?]);
    }
    path.split(':')
        .filter(|directory| !directory.is_empty())
        .map(|directory| Program::new(&format!("{directory}/{name}"), &argv, &env))
        .collect()
}

/// Closes every descriptor but these and the standard ones, which must be harmless already.
fn close_all_but(mut kept: Vec<RawFd>) {
    kept.sort_unstable();
    let mut next = 3;
    for fd in kept {
        sys::close_span(next, fd - 1);
        next = fd + 1;
    }
    sys::close_from(next as u32, false);
}

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
