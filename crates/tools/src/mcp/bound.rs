//! The bound of one message of a server, checked before anything is made of it: a value of JSON takes a hundred times
//! the memory of its text.

/// The largest single message.
pub(super) const MAX_MESSAGE_BYTES: usize = 16 << 20;
/// The most values in one message.
pub(super) const MAX_VALUES: usize = 200_000;

/// What was seen of one message so far.
#[derive(Clone, Default)]
pub(super) struct MessageBound {
    bytes: usize,
    values: usize,
    is_in_string: bool,
    is_escaped: bool,
}

impl MessageBound {
    /// Counts a piece of the message; whether it is within the bound with it.
    pub fn holds_with(&mut self, piece: &[u8]) -> bool {
        self.bytes = self.bytes.saturating_add(piece.len());
        for byte in piece {
            match byte {
                _ if self.is_escaped => self.is_escaped = false,
                b'\\' => self.is_escaped = self.is_in_string,
                b'"' => self.is_in_string = !self.is_in_string,
                // No string of JSON continues in the next line.
                b'\n' => self.is_in_string = false,
                b',' | b'[' | b'{' if !self.is_in_string => self.values += 1,
                _ => {}
            }
        }
        self.bytes <= MAX_MESSAGE_BYTES && self.values <= MAX_VALUES
    }
}

/// Messages as lines, without those that pass the bound.
#[derive(Default)]
pub(super) struct BoundedLines {
    message: MessageBound,
    is_over: bool,
}

impl BoundedLines {
    /// What may be read of a piece; of a line that passes the bound only its beginning and its end. And whether
    /// a line passes it here.
    pub fn take(&mut self, piece: &[u8]) -> (Vec<u8>, bool) {
        let (mut kept, mut passes) = (Vec::with_capacity(piece.len()), false);
        for line in piece.split_inclusive(|byte| *byte == b'\n') {
            if !self.is_over && !self.message.holds_with(line) {
                (self.is_over, passes) = (true, true);
            }
            let is_end = line.ends_with(b"\n");
            match self.is_over {
                false => kept.extend_from_slice(line),
                true if is_end => kept.push(b'\n'),
                true => {}
            }
            if is_end {
                *self = Self::default();
            }
        }
        (kept, passes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_over_the_bound_is_cut_and_the_next_one_kept() {
        let mut lines = BoundedLines::default();
        assert_eq!(lines.take(b"{}\n{\"a\": \""), (b"{}\n{\"a\": \"".to_vec(), false));
        assert!(!lines.take(&vec![b','; MAX_VALUES + 1]).1, "they are in a string");
        let (kept, passes) = lines.take(&[b"\": [".as_slice(), &b"0,".repeat(MAX_VALUES)].concat());
        assert!(kept.is_empty() && passes);
        assert_eq!(lines.take(b"0]}\n{}\n"), (b"\n{}\n".to_vec(), false));
        assert!(!lines.take(&vec![b'x'; MAX_MESSAGE_BYTES]).1);
        assert_eq!(lines.take(b"x"), (Vec::new(), true));
    }
}
