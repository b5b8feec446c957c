//! The way to the writer's thread, which sleeps at a socket.
//!
//! Who writes to a socket is about to wait for an answer, and the kernel knows: it lets the reader go on where the
//! writer was. A reader asleep at a channel is woken where it slept, which may be behind a command that has just
//! been started there.
//!
//! Invariant: nothing sent is slept over. The reader says that it sleeps, looks once more, and only then does.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, TryRecvError, channel};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Who sends.
pub(super) struct Sender<T> {
    channel: mpsc::Sender<T>,
    asleep: Arc<AtomicBool>,
    call: UnixStream,
}

/// Who receives.
pub(super) struct Queue<T> {
    channel: Receiver<T>,
    asleep: Arc<AtomicBool>,
    call: UnixStream,
}

/// Both ends.
pub(super) fn queue<T>() -> std::io::Result<(Sender<T>, Queue<T>)> {
    let (calls, heard) = UnixStream::pair()?;
    calls.set_nonblocking(true)?;
    heard.set_nonblocking(true)?;
    let (send, receive) = channel();
    let asleep = Arc::new(AtomicBool::new(false));
    let sender = Sender { channel: send, asleep: asleep.clone(), call: calls };
    Ok((sender, Queue { channel: receive, asleep, call: heard }))
}

impl<T> Sender<T> {
    pub(super) fn send(&self, value: T) -> Result<(), mpsc::SendError<T>> {
        self.channel.send(value)?;
        if self.asleep.swap(false, Ordering::SeqCst) {
            // One that is full of calls wakes its reader as well.
            let _ = (&self.call).write(&[0]);
        }
        Ok(())
    }
}

impl<T> Queue<T> {
    pub(super) fn try_next(&self) -> Option<T> {
        self.channel.try_recv().ok()
    }

    /// The next, waited for until then at the most.
    pub(super) fn next(&self, until: Option<Instant>) -> Result<T, RecvTimeoutError> {
        loop {
            self.asleep.store(true, Ordering::SeqCst);
            match self.channel.try_recv() {
                Ok(value) => {
                    self.asleep.store(false, Ordering::SeqCst);
                    return Ok(value);
                }
                Err(TryRecvError::Disconnected) => return Err(RecvTimeoutError::Disconnected),
                Err(TryRecvError::Empty) => {}
            }
            let wait = until.map(|until| until.saturating_duration_since(Instant::now()));
            if wait == Some(Duration::ZERO) {
                return Err(RecvTimeoutError::Timeout);
            }
            let wait = wait.and_then(|wait| Timespec::try_from(wait).ok());
            // The other end's being dropped wakes as well. An interrupted wait looks again.
            let _ = poll(&mut [PollFd::new(&self.call, PollFlags::IN)], wait.as_ref());
            let _ = (&self.call).read(&mut [0; 64]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_many_send_is_slept_over() {
        const EACH: usize = 20_000;
        let (sender, queue) = queue::<usize>().unwrap();
        let sender = Arc::new(sender);
        let senders: Vec<_> = (0..4)
            .map(|_| {
                let sender = sender.clone();
                std::thread::spawn(move || (0..EACH).for_each(|at| sender.send(at).unwrap()))
            })
            .collect();
        drop(sender);
        let mut count = 0;
        while queue.next(None).is_ok() {
            count += 1;
        }
        assert_eq!(count, 4 * EACH);
        senders.into_iter().for_each(|sender| sender.join().unwrap());
    }

    #[test]
    fn a_reader_that_sleeps_wakes_for_each_message_one_by_one() {
        let (sender, queue) = queue::<u32>().unwrap();
        let (answer, answers) = channel();
        let reader = std::thread::spawn(move || {
            while let Ok(value) = queue.next(None) {
                answer.send(value).unwrap();
            }
        });
        for value in 0..10_000 {
            sender.send(value).unwrap();
            assert_eq!(answers.recv().unwrap(), value);
        }
        drop(sender);
        reader.join().unwrap();
    }

    #[test]
    fn the_wait_ends_when_its_time_is_up_and_when_nobody_is_left_to_send() {
        let (sender, queue) = queue::<u32>().unwrap();
        let soon = Instant::now() + Duration::from_millis(5);
        assert_eq!(queue.next(Some(soon)), Err(RecvTimeoutError::Timeout));
        assert!(Instant::now() >= soon);
        assert_eq!(queue.next(Some(soon)), Err(RecvTimeoutError::Timeout));
        sender.send(7).unwrap();
        assert_eq!(queue.next(Some(soon)), Ok(7));
        sender.send(8).unwrap();
        drop(sender);
        assert_eq!(queue.try_next(), Some(8));
        assert_eq!(queue.next(None), Err(RecvTimeoutError::Disconnected));
    }
}
