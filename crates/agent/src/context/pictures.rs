//! Pictures in a context: how many are shown, and what happens to them at a compaction.

use windlass_core::message::Message;
use windlass_core::picture::Picture;

use super::{ContextSize, Turn};
use crate::prompt;

/// Pictures that one request shows; providers take a hundred.
const MAX_SHOWN: usize = 80;
/// Their bytes together. Encoded they are a third more, and providers take requests of about 32 MB.
const MAX_SHOWN_BYTES: u64 = 20 << 20;
/// The newest pictures of the turns that a compaction keeps stay.
const KEPT: usize = 6;
/// As many stay where the results of these turns have to be shortened too.
const KEPT_WHEN_SHORTENED: usize = 1;

impl ContextSize<'_> {
    /// Whether it shows as many pictures as it may. A compaction turns the older ones into notes.
    pub fn is_full_of_pictures(self) -> bool {
        let shown = || self.context.transcript.iter().flat_map(|transcript| transcript.pictures());
        shown().count() > MAX_SHOWN
            || shown().map(|picture| picture.bytes).sum::<u64>() > MAX_SHOWN_BYTES
    }
}

/// Turns as they stay after a compaction: the newest pictures, and a note in place of each older one.
pub(super) fn replace_older_pictures(turns: &mut [Turn], shrink: Option<usize>) {
    let mut left = if shrink.is_some() { KEPT_WHEN_SHORTENED } else { KEPT };
    for entry in turns.iter_mut().rev().flat_map(|turn| turn.entries.iter_mut().rev()) {
        let Message::User { text, pictures } = &mut entry.message else { continue };
        let older = pictures.len().saturating_sub(left);
        left = left.saturating_sub(pictures.len());
        for picture in pictures.drain(..older) {
            *text = format!("{}\n{}", text.trim_end(), picture.note(prompt::FADED.trim_end()));
        }
    }
}

/// The pictures that turns show.
pub(super) fn of<'a>(turns: &'a [&Turn]) -> impl Iterator<Item = &'a Picture> {
    turns.iter().flat_map(|turn| &turn.entries).flat_map(|entry| pictures_of(&entry.message))
}

/// The pictures that a message shows.
fn pictures_of(message: &Message) -> &[Picture] {
    match message {
        Message::User { pictures, .. } => pictures,
        Message::Assistant { .. } | Message::Tool { .. } => &[],
    }
}
