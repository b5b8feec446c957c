//! Keys that nothing printed by this process holds: results, remarks, errors, log lines and recordings.
//!
//! What is read from the journal holds none. This is for what is printed as it is read: log lines of libraries, what a
//! server says of itself, files of skills.

use std::borrow::Cow;
use std::io;
use std::sync::{LazyLock, PoisonError, RwLock};

use windlass_core::secrets::Secrets;

static KEYS: LazyLock<RwLock<Secrets>> = LazyLock::new(RwLock::default);

/// Adds keys, each with its name.
pub fn hide<'a>(named: impl IntoIterator<Item = (&'a str, &'a str)>) {
    let mut keys = KEYS.write().unwrap_or_else(PoisonError::into_inner);
    *keys = keys.with(named);
}

/// A text without them.
pub fn clean(text: &str) -> Cow<'_, str> {
    KEYS.read().unwrap_or_else(PoisonError::into_inner).redact(text)
}

/// Where log lines go. Each comes in one piece.
pub struct LogLines;

impl io::Write for LogLines {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(line);
        io::stderr().lock().write_all(clean(&text).as_bytes())?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().lock().flush()
    }
}
