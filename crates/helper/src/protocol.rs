//! The messages that windlass and its helper exchange, each with its bytes.
//!
//! Invariants:
//! - The first frame of each side carries [`VERSION`]; anything else first, or another version, ends it.
//! - Bytes flow only against credit ([`WINDOW`]), so neither side ever holds more than a window per flow.

#![allow(missing_docs, reason = "messages whose fields say what they carry")]

use std::io;

use crate::wire::{Frame, FrameReader, bad, frame};

/// Changes whenever a message changes its bytes or meaning.
pub const VERSION: u32 = 4;

/// The directories that make up a system, as far as they exist. A local sandbox shows them.
pub const SYSTEM_DIRECTORIES: [&str; 12] = [
    "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/nix", "/gnu",
    "/snap",
];

/// Stands before a script. A shell becomes the last program of a script instead of starting it, and that program would
/// then move the directory that the supervisor shares with the shell (`git -C sub log`). It starts every program while a
/// trap is set. On the script's first line, so that line numbers stay; the kernel ignores this signal by default, nobody
/// sends it, and scripts do not reset it as they do `EXIT`.
pub const KEEPS_SHELL: &str = "trap : URG; ";

/// Unacknowledged bytes one flow (a command's output, its input, one direction of a connection) may
/// have under way: enough to keep a pipe busy, small enough for hundreds of flows.
pub const WINDOW: i64 = 256 * 1024;

/// What a chunk costs beyond its bytes, so that a million one-byte writes are bounded too.
pub const CHUNK_OVERHEAD: i64 = 256;

/// The largest chunk put into one frame.
pub const MAX_CHUNK_BYTES: usize = 32 * 1024;

/// Proxy connections open at once in one sandbox; more wait in the listener's queue.
pub const MAX_CONNECTIONS: usize = 128;

/// What a chunk of `length` bytes takes from a flow's window.
pub fn cost(length: usize) -> i64 {
    length as i64 + CHUNK_OVERHEAD
}

/// How far the helper isolates commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Isolation {
    Host = 0,
    /// Namespaces with a root of their own, and everything `Landlock` does.
    Namespaces = 1,
    /// File rules, system-call filter and limits on the real root.
    Landlock = 2,
    /// The helper runs in a container already; everything `Landlock` does, as far as the container allows it.
    Container = 3,
}

/// What commands may reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum NetworkMode {
    /// A loopback of their own, with the proxy on it.
    Proxy = 0,
    Nothing = 1,
    /// Whatever the host reaches.
    Everything = 2,
}

/// What commands may do with something of the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Access {
    ReadOnly = 0,
    /// They write to a layer of their own over it, gone with the sandbox.
    Layered = 1,
    /// What they write reaches the host.
    Writable = 2,
}

/// A directory or file of the host shown inside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bind {
    /// Where it is on the host.
    pub source: String,
    /// Where it is seen.
    pub target: String,
    pub access: Access,
}

/// A file that is written when the sandbox starts, if there is none at its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewFile {
    /// Where, as commands see it.
    pub path: String,
    pub content: String,
}

/// Everything the helper needs to know before the first command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setup {
    pub isolation: Isolation,
    pub network: NetworkMode,
    /// The user that commands run as when the helper is root.
    pub uid: u32,
    /// The group of that user.
    pub gid: u32,
    /// The workspace on the host.
    pub workspace: String,
    /// Where commands see it.
    pub workspace_at: String,
    /// Another name of it inside, empty for none.
    pub workspace_alias: String,
    /// The home directory as commands see it.
    pub home: String,
    pub binds: Vec<Bind>,
    /// Files of the sandbox's own.
    pub files: Vec<NewFile>,
    /// Covered by something empty, as commands would name it.
    pub hidden: Vec<String>,
    /// Bytes of memory for the whole task (per process without a control group).
    pub memory_bytes: u64,
    /// Processes at once.
    pub processes: u64,
    /// Open files per process.
    pub open_files: u64,
    /// The largest file a command may write.
    pub file_bytes: u64,
    /// What all temporary directories hold together.
    pub scratch_bytes: u64,
    /// The name of the control group to make, empty for none.
    pub control_group: String,
    /// Whether the memory of the helper may be looked at, as measurements do.
    pub dumpable: bool,
}

impl Setup {
    /// A helper that isolates nothing and bounds nothing, in this directory of the host.
    pub fn for_host(workspace: String) -> Self {
        Self {
            isolation: Isolation::Host,
            network: NetworkMode::Everything,
            uid: 0,
            gid: 0,
            workspace,
            workspace_at: String::new(),
            workspace_alias: String::new(),
            home: String::new(),
            binds: Vec::new(),
            files: Vec::new(),
            hidden: Vec::new(),
            memory_bytes: 0,
            processes: 0,
            open_files: 0,
            file_bytes: 0,
            scratch_bytes: 0,
            control_group: String::new(),
            dumpable: false,
        }
    }
}

/// One command to start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Start {
    /// The number this command has on the channel.
    pub id: u32,
    /// Program and arguments; empty for a script.
    pub argv: Vec<String>,
    /// Run by the shell when `argv` is empty.
    pub script: String,
    /// Where it starts.
    pub cwd: String,
    /// Its whole environment as `NAME=value`.
    pub env: Vec<String>,
    /// Whether input will be sent.
    pub stdin: bool,
    /// Whether what it leaves behind may continue to run.
    pub background: bool,
    /// Milliseconds until it is ended, 0 for never.
    pub timeout_ms: u64,
    /// Milliseconds between SIGTERM and SIGKILL.
    pub grace_ms: u64,
    /// Sockets that are covered before it starts.
    pub hidden: Vec<String>,
}

/// From windlass to the helper.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Order {
    /// The first order, and only once.
    Setup(Setup),
    /// Starts a command.
    Start(Start),
    /// Ends a command's whole tree.
    Kill {
        id: u32,
        /// Milliseconds between SIGTERM and SIGKILL.
        grace_ms: u64,
    },
    /// Bytes for a command's standard input; empty bytes close it.
    Input { id: u32, bytes: Vec<u8> },
    /// Output was read: so much of the window is free again.
    OutputCredit {
        id: u32,
        /// How much, as [`cost`] counts.
        credit: i64,
    },
    /// Bytes for a connection; empty bytes mean that no more will come.
    Reply { connection: u32, bytes: Vec<u8> },
    /// Bytes of a connection were read: so much of its window is free again.
    ConnectionCredit {
        connection: u32,
        /// How much, as [`cost`] counts.
        credit: i64,
    },
    /// Ends a connection once the replies sent so far are written.
    Hangup { connection: u32 },
    /// Windlass lives. Unless it says so again within this time, the helper ends everything: a windlass that is
    /// stopped keeps its end of the channel open, and another one takes its task over.
    Lease { milliseconds: u64 },
}

/// How a command's main process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Cause {
    /// It exited with a code.
    Code = 0,
    /// A signal that the helper did not send killed it.
    Signal = 1,
    /// Its time was up.
    TimedOut = 2,
    /// Windlass asked to kill it.
    Killed = 3,
    /// The kernel killed it for its use of memory.
    OutOfMemory = 4,
}

/// What the helper could arrange.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ready {
    /// Where the proxy listens on loopback inside, 0 for no proxy.
    pub proxy_port: u16,
    /// Landlock's version as enforced, 0 for none.
    pub landlock: u32,
    /// Whether the whole task shares one bound on memory.
    pub memory_bounded: bool,
    /// Whether the whole task shares one bound on processes.
    pub processes_bounded: bool,
    /// Whether the system-call filter is in force.
    pub filtered: bool,
    /// Whether commands run as root, without rights but as the owner of root's files.
    pub runs_as_root: bool,
    /// The shell scripts are run by.
    pub shell: String,
}

/// From the helper to windlass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Report {
    /// The sandbox is ready.
    Ready(Ready),
    /// The sandbox cannot be made; the helper ends.
    Failed {
        /// What was being done.
        stage: String,
        /// The system's error number.
        errno: i32,
    },
    /// A command runs.
    Started { id: u32 },
    /// A command could not be started.
    Refused {
        id: u32,
        /// What was being done.
        stage: String,
        /// The system's error number.
        errno: i32,
    },
    /// A command wrote something.
    Output {
        id: u32,
        /// 1 or 2, as descriptors are numbered.
        stream: u8,
        bytes: Vec<u8>,
    },
    /// Input was written: so much of its window is free again.
    InputCredit {
        id: u32,
        /// How much, as [`cost`] counts.
        credit: i64,
    },
    /// A command ended, its tree with it, and all its output was sent before this.
    Ended {
        id: u32,
        cause: Cause,
        /// Exit code or signal number.
        value: i32,
        /// The main process's last working directory, empty when unknown.
        cwd: String,
    },
    /// A program inside connected to the proxy.
    Connected { connection: u32 },
    /// Bytes from a connection; empty bytes mean that no more will come.
    Request { connection: u32, bytes: Vec<u8> },
    /// Bytes for a connection were written: so much of its window is free again.
    ConnectionCredit {
        connection: u32,
        /// How much, as [`cost`] counts.
        credit: i64,
    },
    /// A connection is gone.
    Closed { connection: u32 },
}

impl Order {
    /// Appends the frame of this message.
    pub fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Setup(setup) => frame(out, 1, |w| {
                w.u32(VERSION);
                w.u8(setup.isolation as u8);
                w.u8(setup.network as u8);
                w.u32(setup.uid);
                w.u32(setup.gid);
                w.text(&setup.workspace);
                w.text(&setup.workspace_at);
                w.text(&setup.workspace_alias);
                w.text(&setup.home);
                w.u32(setup.binds.len() as u32);
                for bind in &setup.binds {
                    w.text(&bind.source);
                    w.text(&bind.target);
                    w.u8(bind.access as u8);
                }
                w.u32(setup.files.len() as u32);
                for file in &setup.files {
                    w.text(&file.path);
                    w.text(&file.content);
                }
                w.texts(&setup.hidden);
                w.u64(setup.memory_bytes);
                w.u64(setup.processes);
                w.u64(setup.open_files);
                w.u64(setup.file_bytes);
                w.u64(setup.scratch_bytes);
                w.text(&setup.control_group);
                w.u8(setup.dumpable.into());
            }),
            Self::Start(start) => frame(out, 2, |w| {
                w.u32(start.id);
                w.texts(&start.argv);
                w.text(&start.script);
                w.text(&start.cwd);
                w.texts(&start.env);
                w.u8(start.stdin.into());
                w.u8(start.background.into());
                w.u64(start.timeout_ms);
                w.u64(start.grace_ms);
                w.texts(&start.hidden);
            }),
            Self::Kill { id, grace_ms } => frame(out, 3, |w| {
                w.u32(*id);
                w.u64(*grace_ms);
            }),
            Self::Input { id, bytes } => frame(out, 4, |w| w.flow(*id, bytes)),
            Self::OutputCredit { id, credit } => frame(out, 5, |w| w.credit(*id, *credit)),
            Self::Reply { connection, bytes } => frame(out, 6, |w| w.flow(*connection, bytes)),
            Self::ConnectionCredit { connection, credit } => {
                frame(out, 7, |w| w.credit(*connection, *credit));
            }
            Self::Hangup { connection } => frame(out, 8, |w| w.u32(*connection)),
            Self::Lease { milliseconds } => frame(out, 9, |w| w.u64(*milliseconds)),
        }
    }

    /// Reads the message of a frame.
    pub fn read((kind, body): Frame<'_>) -> io::Result<Self> {
        let mut r = FrameReader::new(body);
        let order = match kind {
            1 => {
                let version = r.u32()?;
                if version != VERSION {
                    return Err(bad("protocol version"));
                }
                Self::Setup(Setup {
                    isolation: match r.u8()? {
                        0 => Isolation::Host,
                        1 => Isolation::Namespaces,
                        2 => Isolation::Landlock,
                        3 => Isolation::Container,
                        _ => return Err(bad("isolation")),
                    },
                    network: match r.u8()? {
                        0 => NetworkMode::Proxy,
                        1 => NetworkMode::Nothing,
                        2 => NetworkMode::Everything,
                        _ => return Err(bad("network mode")),
                    },
                    uid: r.u32()?,
                    gid: r.u32()?,
                    workspace: r.text()?,
                    workspace_at: r.text()?,
                    workspace_alias: r.text()?,
                    home: r.text()?,
                    binds: r.list(|r| {
                        let (source, target) = (r.text()?, r.text()?);
                        let access = match r.u8()? {
                            0 => Access::ReadOnly,
                            1 => Access::Layered,
                            2 => Access::Writable,
                            _ => return Err(bad("access")),
                        };
                        Ok(Bind { source, target, access })
                    })?,
                    files: r.list(|r| Ok(NewFile { path: r.text()?, content: r.text()? }))?,
                    hidden: r.list(FrameReader::text)?,
                    memory_bytes: r.u64()?,
                    processes: r.u64()?,
                    open_files: r.u64()?,
                    file_bytes: r.u64()?,
                    scratch_bytes: r.u64()?,
                    control_group: r.text()?,
                    dumpable: r.u8()? != 0,
                })
            }
            2 => Self::Start(Start {
                id: r.u32()?,
                argv: r.list(FrameReader::text)?,
                script: r.text()?,
                cwd: r.text()?,
                env: r.list(FrameReader::text)?,
                stdin: r.u8()? != 0,
                background: r.u8()? != 0,
                timeout_ms: r.u64()?,
                grace_ms: r.u64()?,
                hidden: r.list(FrameReader::text)?,
            }),
            3 => Self::Kill { id: r.u32()?, grace_ms: r.u64()? },
            4 => Self::Input { id: r.u32()?, bytes: r.remaining() },
            5 => Self::OutputCredit { id: r.u32()?, credit: r.u64()? as i64 },
            6 => Self::Reply { connection: r.u32()?, bytes: r.remaining() },
            7 => Self::ConnectionCredit { connection: r.u32()?, credit: r.u64()? as i64 },
            8 => Self::Hangup { connection: r.u32()? },
            9 => Self::Lease { milliseconds: r.u64()? },
            _ => return Err(bad("kind of order")),
        };
        r.end(order)
    }
}

impl Report {
    /// Appends the frame of this message.
    pub fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Ready(ready) => frame(out, 1, |w| {
                w.u32(VERSION);
                w.u32(ready.proxy_port.into());
                w.u32(ready.landlock);
                w.u8(ready.memory_bounded.into());
                w.u8(ready.processes_bounded.into());
                w.u8(ready.filtered.into());
                w.u8(ready.runs_as_root.into());
                w.text(&ready.shell);
            }),
            Self::Failed { stage, errno } => frame(out, 2, |w| {
                w.text(stage);
                w.u32(*errno as u32);
            }),
            Self::Started { id } => frame(out, 3, |w| w.u32(*id)),
            Self::Refused { id, stage, errno } => frame(out, 4, |w| {
                w.u32(*id);
                w.text(stage);
                w.u32(*errno as u32);
            }),
            Self::Output { id, stream, bytes } => frame(out, 5, |w| {
                w.u8(*stream);
                w.flow(*id, bytes);
            }),
            Self::InputCredit { id, credit } => frame(out, 6, |w| w.credit(*id, *credit)),
            Self::Ended { id, cause, value, cwd } => frame(out, 7, |w| {
                w.u32(*id);
                w.u8(*cause as u8);
                w.u32(*value as u32);
                w.text(cwd);
            }),
            Self::Connected { connection } => frame(out, 8, |w| w.u32(*connection)),
            Self::Request { connection, bytes } => frame(out, 9, |w| w.flow(*connection, bytes)),
            Self::ConnectionCredit { connection, credit } => {
                frame(out, 10, |w| w.credit(*connection, *credit));
            }
            Self::Closed { connection } => frame(out, 11, |w| w.u32(*connection)),
        }
    }

    /// Reads the message of a frame.
    pub fn read((kind, body): Frame<'_>) -> io::Result<Self> {
        let mut r = FrameReader::new(body);
        let report = match kind {
            1 => {
                let version = r.u32()?;
                if version != VERSION {
                    return Err(bad("protocol version"));
                }
                Self::Ready(Ready {
                    proxy_port: r.u32()? as u16,
                    landlock: r.u32()?,
                    memory_bounded: r.u8()? != 0,
                    processes_bounded: r.u8()? != 0,
                    filtered: r.u8()? != 0,
                    runs_as_root: r.u8()? != 0,
                    shell: r.text()?,
                })
            }
            2 => Self::Failed { stage: r.text()?, errno: r.u32()? as i32 },
            3 => Self::Started { id: r.u32()? },
            4 => Self::Refused { id: r.u32()?, stage: r.text()?, errno: r.u32()? as i32 },
            5 => {
                let stream = r.u8()?;
                if stream != 1 && stream != 2 {
                    return Err(bad("stream"));
                }
                Self::Output { stream, id: r.u32()?, bytes: r.remaining() }
            }
            6 => Self::InputCredit { id: r.u32()?, credit: r.u64()? as i64 },
            7 => Self::Ended {
                id: r.u32()?,
                cause: match r.u8()? {
                    0 => Cause::Code,
                    1 => Cause::Signal,
                    2 => Cause::TimedOut,
                    3 => Cause::Killed,
                    4 => Cause::OutOfMemory,
                    _ => return Err(bad("cause")),
                },
                value: r.u32()? as i32,
                cwd: r.text()?,
            },
            8 => Self::Connected { connection: r.u32()? },
            9 => Self::Request { connection: r.u32()?, bytes: r.remaining() },
            10 => Self::ConnectionCredit { connection: r.u32()?, credit: r.u64()? as i64 },
            11 => Self::Closed { connection: r.u32()? },
            _ => return Err(bad("kind of report")),
        };
        r.end(report)
    }
}

#[cfg(test)]
#[path = "protocol/tests.rs"]
mod tests;
