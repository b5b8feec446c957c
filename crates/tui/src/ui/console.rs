//! The terminal as a person uses it: keys in, frames out, and what is handed to other programs meanwhile.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use tokio::time::Instant;

use super::painter::Painter;
use crate::host::{Options, Signal};
use crate::keys::{Decoder, Event};
use crate::screen::Size;
use crate::terminal::Keyboard;

/// The longest text that terminals take for their clipboard.
const CLIPBOARD_BYTES: usize = 100_000;
/// GNU screen drops a longer string than this, and less than twice as much.
const HANDED_ON_BYTES: usize = 200;

/// The keyboard, and what is drawn.
pub(super) struct Console {
    pub painter: Painter,
    keyboard: Keyboard,
    decoder: Decoder,
    decode_by: Option<Instant>,
    editor: Vec<String>,
    workspace: PathBuf,
    signal: Signal,
    is_tmux: bool,
    is_gnu_screen: bool,
    /// Whether the signal to continue is still to come that ends our own suspension.
    is_back: bool,
}

impl Console {
    pub fn open(options: &Options, size: Size, log: &Path) -> io::Result<Self> {
        Ok(Self {
            painter: Painter::open(options, size, log)?,
            keyboard: Keyboard::open()?,
            decoder: Decoder::default(),
            decode_by: None,
            editor: options.editor.clone(),
            workspace: options.workspace.clone(),
            signal: options.signal,
            is_tmux: options.key_modes.is_tmux,
            is_gnu_screen: options.is_gnu_screen,
            is_back: false,
        })
    }

    /// What comes next from the keyboard; `None` when the terminal has gone.
    pub async fn next(&mut self) -> Option<Vec<Event>> {
        let bytes = self.keyboard.next().await?;
        let events = self.decoder.push(&bytes);
        self.decode_by = self.decoder.patience().map(|patience| Instant::now() + patience);
        Some(events)
    }

    /// What was begun and not continued in time.
    pub fn expired(&mut self) -> Vec<Event> {
        match self.decode_by.take_if(|by| *by <= Instant::now()) {
            Some(_) => self.decoder.expire(),
            None => Vec::new(),
        }
    }

    /// When something is due.
    pub fn wake(&self) -> Option<Instant> {
        self.painter.wake().into_iter().chain(self.decode_by).min()
    }

    /// Gives the terminal back to the shell until the person returns.
    pub fn suspend(&mut self) -> io::Result<()> {
        self.painter.give()?;
        rustix::process::kill_current_process_group(rustix::process::Signal::TSTP)?;
        // Here again after `fg`.
        self.is_back = true;
        self.painter.take()
    }

    /// This process was stopped and continues. Stopped from outside, it had no chance to give the terminal back, and
    /// the shell has set its own modes meanwhile.
    pub fn continued(&mut self) -> io::Result<()> {
        match std::mem::take(&mut self.is_back) {
            true => Ok(()),
            false => self.painter.renew(),
        }
    }

    /// Another directory is worked in.
    pub fn enter(&mut self, directory: &Path) {
        directory.clone_into(&mut self.workspace);
    }

    /// Lets the person write a file in their own editor; whether it ended well.
    pub async fn edit(&mut self, path: &Path) -> io::Result<Result<bool, String>> {
        self.painter.give()?;
        // Our reader would take its keys.
        let keyboard = std::mem::replace(&mut self.keyboard, Keyboard::closed());
        drop(keyboard);
        let ran = self.run_editor(path).await;
        self.keyboard = Keyboard::open()?;
        self.painter.take()?;
        Ok(ran)
    }

    async fn run_editor(&self, path: &Path) -> Result<bool, String> {
        let Some((program, arguments)) = self.editor.split_first() else {
            return Err("no editor: set `EDITOR`".to_owned());
        };
        let mut command = tokio::process::Command::new(program);
        command.args(arguments).arg(path).current_dir(&self.workspace);
        if let Some(stderr) = self.painter.stderr() {
            command.stderr(Stdio::from(stderr));
        }
        let status = command.status().await;
        let status = status.map_err(|error| format!("`{program}` does not start: {error}"))?;
        Ok(status.success())
    }

    /// Hands a text to the terminal's own clipboard; what to say about it.
    pub fn copy(&self, text: &str) -> io::Result<&'static str> {
        let is_whole = text.len() <= CLIPBOARD_BYTES;
        let text = windlass_core::text::prefix(text, CLIPBOARD_BYTES);
        self.send(format!("\u{1b}]52;c;{}\u{7}", base64(text.as_bytes())))?;
        Ok(match is_whole {
            true => "sent to the terminal's clipboard",
            false => "only the first 100 kB fit into the terminal's clipboard",
        })
    }

    /// Tells a person who looks elsewhere.
    pub fn notify(&self, words: &str) -> io::Result<()> {
        match self.signal {
            Signal::Off => Ok(()),
            Signal::Bell => self.painter.write("\u{7}"),
            // tmux hands it on only where it is allowed to, and always rings its bell.
            Signal::Desktop if self.is_tmux => self
                .painter
                .write(&format!("\u{1b}Ptmux;\u{1b}\u{1b}]9;windlass: {words}\u{7}\u{1b}\\\u{7}")),
            Signal::Desktop => self.send(format!("\u{1b}]9;windlass: {words}\u{7}")),
        }
    }

    /// Sends a sequence that is meant for the person's own terminal.
    fn send(&self, sequence: String) -> io::Result<()> {
        match self.is_gnu_screen {
            true => self.painter.write(&through_gnu_screen(&sequence)),
            false => self.painter.write(&sequence),
        }
    }
}

/// A sequence of ASCII in the wrapping that GNU screen takes off, in pieces that it does not drop.
fn through_gnu_screen(sequence: &str) -> String {
    let pieces = sequence.as_bytes().chunks(HANDED_ON_BYTES).map(String::from_utf8_lossy);
    pieces.map(|piece| format!("\u{1b}P{piece}\u{1b}\\")).collect()
}

/// The form that OSC 52 wants.
fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let bits = group.iter().fold(0u32, |bits, byte| bits << 8 | u32::from(*byte));
        let bits = bits << (8 * (3 - group.len()));
        for place in 0..4 {
            let letter = LETTERS[(bits >> (18 - 6 * place) & 63) as usize];
            text.push(if place <= group.len() { char::from(letter) } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{base64, through_gnu_screen};

    #[test]
    fn gnu_screen_hands_a_long_sequence_on_in_pieces() {
        let sequence = format!("\u{1b}]52;c;{}\u{7}", "QUJD".repeat(200));
        let wrapped = through_gnu_screen(&sequence);
        let pieces: Vec<&str> = wrapped.split_terminator("\u{1b}\\").collect();
        let bare = pieces.iter().map(|piece| piece.strip_prefix("\u{1b}P").unwrap());
        assert!(pieces.iter().all(|piece| piece.len() < 256), "{pieces:?}");
        assert_eq!(bare.collect::<String>(), sequence);
    }

    #[test]
    fn the_clipboard_gets_the_usual_form() {
        let texts = ["", "f", "fo", "foo", "foob"].map(|text| base64(text.as_bytes()));
        assert_eq!(texts, ["", "Zg==", "Zm8=", "Zm9v", "Zm9vYg=="]);
    }
}
