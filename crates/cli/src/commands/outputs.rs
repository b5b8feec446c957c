//! `logs`, `trace`, `outputs`: what commands printed.

use std::io::{self, Write as _};

use anyhow::Context as _;
use serde_json::json;
use windlass_core::event::{Event, Record, ToolCall};
use windlass_store::outputs::{OutputStore, Stream, TruncatedOutput};
use windlass_term::{strip_controls, tool_lines};

use super::Setting;
use crate::args::{One, Outputs, Trace};
use crate::failure::Failure;
use crate::show::{note, out};

/// Prints every command of a task with what the store keeps of its output.
pub(super) fn logs(setting: &Setting, args: &One) -> Result<u8, Failure> {
    let store = setting.coordinator.store();
    let task = store.ids().task(&args.task)?;
    let outputs = store.outputs();
    let mut any = false;
    for record in store.journal().of(task)? {
        let Event::ToolCall(call) = &record.event else { continue };
        let kept = kept(&outputs, &call.call.to_string())?;
        any |= !kept.is_empty();
        match args.json {
            true => {
                kept.iter().for_each(|(stream, kept)| out(&log_json(&record, call, *stream, kept)));
            }
            false if kept.is_empty() => {}
            false => log_page(setting, call, &kept),
        }
    }
    if !any && !args.json {
        note(&format!("`{task}` ran no commands; see `windlass events {task}`"));
    }
    Ok(0)
}

fn kept(outputs: &OutputStore, id: &str) -> Result<Vec<(Stream, TruncatedOutput)>, Failure> {
    let mut found = Vec::new();
    for &stream in Stream::ALL {
        found.extend(outputs.kept(id, stream)?.map(|kept| (stream, kept)));
    }
    Ok(found)
}

fn log_json(record: &Record, call: &ToolCall, stream: Stream, kept: &TruncatedOutput) -> String {
    json!({
        "call": call.call,
        "tool": call.tool,
        "arguments": call.arguments,
        "at": record.at,
        "stream": stream,
        "content": kept.content,
        "truncated": kept.truncated,
        "original_size": kept.original_size,
    })
    .to_string()
}

/// One command with what it printed; a stream that stayed silent is left out.
fn log_page(setting: &Setting, call: &ToolCall, kept: &[(Stream, TruncatedOutput)]) {
    let paint = setting.style.results;
    let what = tool_lines::call(&call.tool, &call.arguments, 100);
    out(&format!("{}  {}", paint.bold(&what), paint.dim(&call.call.to_string())));
    let spoke = || kept.iter().filter(|(_, kept)| kept.original_size > 0);
    if spoke().next().is_none() {
        out(&paint.dim("(no output)"));
    }
    for (stream, kept) in spoke() {
        if *stream == Stream::Stderr {
            out(&paint.dim("stderr:"));
        }
        out(strip_controls(&kept.content).trim_end());
        if kept.truncated {
            let whole = format!("View full output: windlass outputs {}", call.call);
            out(&paint.dim(&format!("[Output truncated]  {whole}")));
        }
    }
    out("");
}

/// Prints the journal as the trace file has it, or where that file is.
pub(super) fn trace(setting: &Setting, args: &Trace) -> Result<u8, Failure> {
    let store = setting.coordinator.store();
    let task = store.ids().task(&args.task)?;
    if args.path {
        let root = store.tasks().get(task)?.map_or(task, |row| row.root_id);
        let file = store.dir().traces().join(root.to_string()).join(format!("{task}.jsonl"));
        out(&file.display().to_string());
        return Ok(0);
    }
    for record in store.journal().of(task)? {
        out(&windlass_agent::trace::entry(&record));
    }
    Ok(0)
}

/// Prints a whole output: byte for byte into a pipe, harmless on a terminal.
pub(super) fn outputs(setting: &Setting, args: &Outputs) -> Result<u8, Failure> {
    let outputs = setting.coordinator.store().outputs();
    let wanted: Vec<Stream> = match args.stream {
        Some(stream) => vec![stream],
        None => Stream::ALL.to_vec(),
    };
    let mut missing = None;
    let mut found = false;
    for stream in wanted {
        match outputs.open_output(&args.id, stream) {
            Ok(mut reader) => {
                found = true;
                copy(setting, &mut reader).context("the output cannot be read")?;
            }
            Err(error @ windlass_store::Error::UnknownOutput(_)) => missing = Some(error),
            Err(error) => return Err(error.into()),
        }
    }
    match missing {
        Some(error) if !found => Err(error.into()),
        _ => Ok(0),
    }
}

/// A reader that has gone away is no error of ours.
fn copy(setting: &Setting, reader: &mut impl io::Read) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    if setting.style.is_stdout_terminal {
        let mut bytes = Vec::new();
        reader.read_to_end(&mut bytes)?;
        let _ = stdout.write_all(strip_controls(&String::from_utf8_lossy(&bytes)).as_bytes());
        return Ok(());
    }
    match io::copy(reader, &mut stdout) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error),
        _ => Ok(()),
    }
}
