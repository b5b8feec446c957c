//! Bytes of a program cut into lines, whatever the program sends.

/// The longest line that is kept. A message with a whole file in it is far shorter.
const MAX_LINE_BYTES: usize = 16 * 1024 * 1024;

/// What was read and is not yet a line.
#[derive(Debug, Default)]
pub(super) struct Lines {
    partial: Vec<u8>,
    /// Whether the rest of the present line is dropped.
    too_long: bool,
}

impl Lines {
    /// The lines that these bytes complete. A line that is too long is dropped whole.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<String> {
        let mut lines = Vec::new();
        let mut rest = bytes;
        while let Some(end) = rest.iter().position(|&byte| byte == b'\n') {
            self.extend(&rest[..end]);
            rest = &rest[end + 1..];
            let line = std::mem::take(&mut self.partial);
            if !std::mem::take(&mut self.too_long) {
                lines.push(String::from_utf8_lossy(&line).trim_end_matches('\r').to_owned());
            }
        }
        self.extend(rest);
        lines
    }

    fn extend(&mut self, bytes: &[u8]) {
        if self.too_long || self.partial.len() + bytes.len() > MAX_LINE_BYTES {
            self.too_long = true;
            self.partial = Vec::new();
        } else {
            self.partial.extend_from_slice(bytes);
        }
    }
}
