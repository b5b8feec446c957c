//! The trace: a task's journal as JSON lines, for people and programs that read files (ES-307…322).
//!
//! It is a projection: written after the commit, caught up when a task is opened, never read back.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;

use serde_json::json;
use windlass_core::event::Record;

/// One line of a trace: `{"timestamp","iteration","event_type","data"}`.
pub fn entry(record: &Record) -> String {
    let (event_type, data) = record.event.parts();
    let (at, iteration) = (json!(record.at.to_string()), record.iteration);
    format!(
        r#"{{"timestamp":{at},"iteration":{iteration},"event_type":"{event_type}","data":{data}}}"#
    )
}

/// A trace file that is being written.
pub struct Trace {
    file: File,
}

impl Trace {
    /// Opens the file and adds what a crash kept from being written.
    pub fn catch_up(path: &Path, records: &[Record]) -> io::Result<Self> {
        // Nothing is made where it is there: that would lock the directory of all traces, also for other tasks.
        if let Some(parent) = path.parent().filter(|parent| !parent.is_dir()) {
            std::fs::create_dir_all(parent)?;
        }
        let whole = whole_lines(path)?;
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        file.set_len(whole.bytes)?;
        let mut trace = Self { file };
        trace.append(records.get(whole.lines..).unwrap_or_default())?;
        Ok(trace)
    }

    /// Adds what was committed.
    pub fn append(&mut self, records: &[Record]) -> io::Result<()> {
        let lines: String = records.iter().map(|record| entry(record) + "\n").collect();
        self.file.write_all(lines.as_bytes())
    }
}

struct Whole {
    lines: usize,
    bytes: u64,
}

/// How much of the file is whole lines; a crash may have left half of one.
fn whole_lines(path: &Path) -> io::Result<Whole> {
    let mut whole = Whole { lines: 0, bytes: 0 };
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(whole),
        Err(error) => return Err(error),
    };
    let mut reader = BufReader::new(file);
    let mut line = Vec::new();
    while reader.read_until(b'\n', &mut line)? > 0 && line.ends_with(b"\n") {
        whole.lines += 1;
        whole.bytes += line.len() as u64;
        line.clear();
    }
    Ok(whole)
}
