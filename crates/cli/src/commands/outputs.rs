//! `logs`, `trace`, `outputs`: what commands printed.

use std::io::{self, Write as _};

use anyhow::Context as _;
use serde_json::json;
use windlass_coordinator::outputs::{CallOutput, Stream, TruncatedOutput};
use windlass_core::event::ToolCall;
use windlass_term::{strip_controls, tool_lines};

use super::AppContext;
use crate::args::{One, Outputs, Trace};
use crate::failure::Failure;
use crate::show::{note, out};

/// Prints every command of a task with what the store keeps of its output.
pub(super) fn logs(app: &AppContext, args: &One) -> Result<u8, Failure> {
    let task = app.coordinator.tasks().find(&args.task)?;
    let calls = app.coordinator.outputs().of(task)?;
    for call in &calls {
        match args.json {
            true => log_lines(call).iter().for_each(|line| out(line)),
            false => log_page(app, &call.call, &call.kept),
        }
    }
    if calls.is_empty() && !args.json {
        note(&format!("`{task}` ran no commands; see `windlass events {task}`"));
    }
    Ok(0)
}

/// One line of JSON for each stream of a call.
fn log_lines(output: &CallOutput) -> Vec<String> {
    let CallOutput { at, call, kept } = output;
    let line = |(stream, kept): &(Stream, TruncatedOutput)| {
        let line = json!({
            "call": call.call,
            "tool": call.tool,
            "arguments": call.arguments,
            "at": at,
            "stream": stream,
            "content": kept.content,
            "truncated": kept.truncated,
            "original_size": kept.original_size,
        });
        line.to_string()
    };
    kept.iter().map(line).collect()
}

/// One command with what it printed; a stream that stayed silent is left out.
fn log_page(app: &AppContext, call: &ToolCall, kept: &[(Stream, TruncatedOutput)]) {
    let paint = app.style.results;
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
pub(super) fn trace(app: &AppContext, args: &Trace) -> Result<u8, Failure> {
    let coordinator = &app.coordinator;
    let task = coordinator.tasks().find(&args.task)?;
    if args.path {
        out(&coordinator.storage().trace_file(task)?.display().to_string());
        return Ok(0);
    }
    for record in coordinator.tasks().journal(task)? {
        out(&windlass_agent::trace::entry(&record));
    }
    Ok(0)
}

/// Prints a whole output: byte for byte into a pipe, harmless on a terminal.
pub(super) fn outputs(app: &AppContext, args: &Outputs) -> Result<u8, Failure> {
    let wanted: Vec<Stream> = match args.stream {
        Some(stream) => vec![stream],
        None => Stream::ALL.to_vec(),
    };
    for mut reader in app.coordinator.outputs().open(&args.id, &wanted)? {
        copy(app, &mut reader).context("the output cannot be read")?;
    }
    Ok(0)
}

/// A reader that has gone away is not an error of ours.
fn copy(app: &AppContext, reader: &mut impl io::Read) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    if app.style.is_stdout_terminal {
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
