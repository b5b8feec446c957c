//! A started command.
//!
//! Invariants:
//! - Output waits in the command's own pipe once a window of it is unread: a slow reader costs no memory.
//! - Dropping a foreground command before its end ends its whole tree.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, mpsc, oneshot};

use crate::api::{Chunk, Command, CommandEnd, Exit, Stdin};
use crate::channel::Request;
use windlass_helper::protocol::{MAX_CHUNK_BYTES, WINDOW, cost};

/// A started command: read its output with [`next`](Self::next), then [`wait`](Self::wait).
#[derive(Debug)]
pub struct Running {
    pub(crate) killer: KillHandle,
    pub(crate) output: mpsc::UnboundedReceiver<Chunk>,
    pub(crate) ended: oneshot::Receiver<CommandEnd>,
    pub(crate) input: Option<Input>,
    pub(crate) on_drop: OnDrop,
}

/// What happens to a command whose handle is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OnDrop {
    Kill(Duration),
    LetRun,
}

/// The other ends of a started command: what carries its output and its end.
pub(crate) struct Carrier {
    pub(crate) output: mpsc::UnboundedSender<Chunk>,
    pub(crate) ended: oneshot::Sender<CommandEnd>,
    /// What may still be written to its input.
    pub(crate) credit: Arc<Semaphore>,
}

impl Running {
    /// A command that is about to be started, and the other ends of it.
    pub(crate) fn new(killer: KillHandle, command: &Command) -> (Self, Carrier) {
        // Bounded by the credit of the command: its supervisor sends no more than a window that was not read.
        let (output, chunks) = mpsc::unbounded_channel();
        let (ended, end) = oneshot::channel();
        let credit = Arc::new(Semaphore::new(WINDOW as usize));
        let input = Input { killer: killer.clone(), credit: credit.clone() };
        let running = Self {
            killer,
            output: chunks,
            ended: end,
            input: (command.stdin == Stdin::Piped).then_some(input),
            on_drop: match command.background {
                true => OnDrop::LetRun,
                false => OnDrop::Kill(command.grace),
            },
        };
        (running, Carrier { output, ended, credit })
    }

    /// The next part of the output in written order; `None` once the command and all it started are gone.
    pub async fn next(&mut self) -> Option<Chunk> {
        let chunk = self.output.recv().await?;
        self.killer
            .send(Request::OutputCredit { id: self.killer.id, credit: cost(chunk.bytes.len()) });
        Some(chunk)
    }

    /// Waits for the end; output not read so far is dropped.
    pub async fn wait(mut self) -> CommandEnd {
        while self.next().await.is_some() {}
        self.on_drop = OnDrop::LetRun;
        (&mut self.ended).await.unwrap_or(CommandEnd {
            exit: Exit::Lost,
            cwd: None,
            refused: Vec::new(),
        })
    }

    /// A way to end the command, to be kept elsewhere.
    pub fn killer(&self) -> KillHandle {
        self.killer.clone()
    }

    /// The command's standard input, once, if it was to have one. Dropping it closes it.
    pub fn take_input(&mut self) -> Option<Input> {
        self.input.take()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let OnDrop::Kill(grace) = self.on_drop {
            self.killer.kill(grace);
        }
    }
}

/// Ends one command's tree.
#[derive(Clone, Debug)]
pub struct KillHandle {
    pub(crate) id: u32,
    pub(crate) requests: mpsc::UnboundedSender<Request>,
}

impl KillHandle {
    /// Asks everything the command started to end, and forces it after `grace`. Returns at once; the end is
    /// seen with [`Running::wait`]. A command that has ended already is left alone.
    pub fn kill(&self, grace: Duration) {
        self.send(Request::Kill { id: self.id, grace });
    }

    fn send(&self, request: Request) {
        // A channel that is gone has ended the command already.
        let _ = self.requests.send(request);
    }
}

/// A command's standard input.
#[derive(Debug)]
pub struct Input {
    pub(crate) killer: KillHandle,
    pub(crate) credit: Arc<Semaphore>,
}

impl Input {
    /// Hands bytes over; waits while the command does not read. Bytes for a command that is gone vanish.
    pub async fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(MAX_CHUNK_BYTES) {
            let Ok(permit) = self.credit.acquire_many(cost(chunk.len()) as u32).await else {
                return;
            };
            permit.forget();
            self.killer.send(Request::Input { id: self.killer.id, bytes: chunk.to_vec() });
        }
    }
}

impl Drop for Input {
    fn drop(&mut self) {
        self.killer.send(Request::Input { id: self.killer.id, bytes: Vec::new() });
    }
}
