//! The bodies that windlass sent, written down for the floor to send again.

use std::path::Path;

use anyhow::{Result, ensure};
use windlass_testkit::{messages, messages_array};

/// A conversation in pieces: what all bodies begin and end with, and what each turn adds.
struct Pieces<'a> {
    head: &'a [u8],
    turns: Vec<Vec<u8>>,
    tail: &'a [u8],
}

/// Writes the bodies of a whole conversation, found in its last one: messages only grow, so every earlier
/// body is a beginning of it. Fails where that does not give the lengths that were seen.
pub fn write(path: &Path, last: &[u8], seen: &[u64]) -> Result<()> {
    let pieces = Pieces::of(last);
    let lengths = pieces.lengths();
    ensure!(lengths == seen, "windlass's messages did not just grow: {lengths:?}, seen {seen:?}");
    let mut file = Vec::new();
    let turns = pieces.turns.iter().map(Vec::as_slice);
    for piece in [pieces.head, pieces.tail].into_iter().chain(turns) {
        file.extend_from_slice(&(piece.len() as u64).to_le_bytes());
        file.extend_from_slice(piece);
    }
    Ok(std::fs::write(path, file)?)
}

/// The lengths that the bodies of a conversation had, found in its last one.
pub fn lengths(last: &[u8]) -> Vec<u64> {
    Pieces::of(last).lengths()
}

impl<'a> Pieces<'a> {
    fn of(last: &'a [u8]) -> Self {
        let array = messages_array(last);
        let at = array.as_ptr().addr() - last.as_ptr().addr();
        let (head, tail) = (&last[..=at], &last[at + array.len() - 1..]);
        let (mut turns, mut turn) = (Vec::new(), Vec::new());
        for (number, message) in messages(last).iter().enumerate() {
            if message.role == "assistant" {
                turns.push(std::mem::take(&mut turn));
            }
            if number > 0 {
                turn.push(b',');
            }
            turn.extend_from_slice(message.raw.as_bytes());
        }
        turns.push(turn);
        Self { head, turns, tail }
    }

    fn lengths(&self) -> Vec<u64> {
        let mut length = self.head.len() + self.tail.len();
        let grow = |turn: &Vec<u8>| {
            length += turn.len();
            length as u64
        };
        self.turns.iter().map(grow).collect()
    }
}
