//! The floor: the least that a turn can be. It posts the bodies that windlass posted, spawns the command
//! that windlass ran, and appends and syncs one record; nothing is read, checked, guarded or isolated.
//!
//! `floor ADDRESS BODIES COMMAND WORKSPACE JOURNAL TASKS`; `{n}` in the command is the turn's number.
//! With several tasks, each is a thread that does the same with a journal of its own.

use std::env;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread;

/// What every loop is given.
struct Job {
    address: String,
    bodies: Bodies,
    command: String,
    workspace: PathBuf,
    journal: PathBuf,
}

/// Request bodies as what they have in common and what each turn adds.
struct Bodies {
    head: Vec<u8>,
    turns: Vec<Vec<u8>>,
    tail: Vec<u8>,
}

fn main() -> io::Result<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [address, bodies, command, workspace, journal, tasks] = arguments.as_slice() else {
        return Err(wrong("ADDRESS BODIES COMMAND WORKSPACE JOURNAL TASKS"));
    };
    let job = Arc::new(Job {
        address: address.clone(),
        bodies: Bodies::read(&fs::read(bodies)?)?,
        command: command.clone(),
        workspace: workspace.into(),
        journal: journal.into(),
    });
    let tasks: usize = tasks.parse().map_err(|_| wrong("TASKS is a number"))?;
    if tasks == 1 {
        return job.run(0);
    }
    let start = |task| {
        let job = Arc::clone(&job);
        thread::Builder::new().stack_size(256 * 1024).spawn(move || job.run(task))
    };
    let threads = (0..tasks).map(start).collect::<io::Result<Vec<_>>>()?;
    threads.into_iter().try_for_each(|one| one.join().unwrap_or(Err(wrong("a task panicked"))))
}

impl Job {
    fn run(&self, task: usize) -> io::Result<()> {
        let mut server = TcpStream::connect(&self.address)?;
        server.set_nodelay(true)?;
        let journal = format!("{}-{task}", self.journal.display());
        let mut journal = OpenOptions::new().create(true).append(true).open(journal)?;
        let (mut said, mut reply) = (Vec::new(), Vec::new());
        let last = self.bodies.turns.len() - 1;
        for (turn, news) in self.bodies.turns.iter().enumerate() {
            said.extend_from_slice(news);
            self.post(&mut server, &said, &mut reply)?;
            if turn < last {
                self.act(turn, &mut journal, &reply)?;
            }
        }
        Ok(())
    }

    fn post(&self, server: &mut TcpStream, said: &[u8], reply: &mut Vec<u8>) -> io::Result<()> {
        let Bodies { head, tail, .. } = &self.bodies;
        let mut request = format!(
            "POST /chat/completions HTTP/1.1\r\nhost: floor\r\ncontent-length: {}\r\n\r\n",
            head.len() + said.len() + tail.len()
        )
        .into_bytes();
        request.extend_from_slice(head);
        request.extend_from_slice(said);
        request.extend_from_slice(tail);
        server.write_all(&request)?;
        reply.clear();
        let mut piece = [0; 16 * 1024];
        while !reply.ends_with(b"\r\n0\r\n\r\n") {
            match server.read(&mut piece)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                count => reply.extend_from_slice(&piece[..count]),
            }
        }
        Ok(())
    }

    fn act(&self, turn: usize, journal: &mut File, reply: &[u8]) -> io::Result<()> {
        let output = Command::new("bash")
            .args(["-c", &self.command.replace("{n}", &turn.to_string())])
            .current_dir(&self.workspace)
            .stdin(Stdio::null())
            .output()?;
        if !output.status.success() {
            return Err(wrong("the command failed"));
        }
        let mut record = reply.to_vec();
        record.extend_from_slice(&output.stdout);
        record.push(b'\n');
        journal.write_all(&record)?;
        journal.sync_data()
    }
}

impl Bodies {
    /// Pieces with their lengths before them: the head, the tail, then one for each turn.
    fn read(mut file: &[u8]) -> io::Result<Self> {
        let mut pieces = Vec::new();
        while let Some((length, rest)) = file.split_first_chunk::<8>() {
            let length = usize::try_from(u64::from_le_bytes(*length)).map_err(io::Error::other)?;
            let (piece, rest) = rest.split_at_checked(length).ok_or_else(|| wrong("cut short"))?;
            pieces.push(piece.to_vec());
            file = rest;
        }
        let mut pieces = pieces.into_iter();
        let (Some(head), Some(tail)) = (pieces.next(), pieces.next()) else {
            return Err(wrong("there are no bodies"));
        };
        let turns: Vec<_> = pieces.collect();
        if turns.is_empty() {
            Err(wrong("there are no turns"))
        } else {
            Ok(Self { head, turns, tail })
        }
    }
}

fn wrong(what: &str) -> io::Error {
    io::Error::other(what)
}
