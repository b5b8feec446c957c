//! The whole of what a call printed, by the call's id (AX-074).

use std::io::Read as _;

use maud::{Markup, html};
use serde_json::Value;
use windlass_coordinator::Error;
use windlass_coordinator::outputs::Stream;
use windlass_core::event::Event;
use windlass_core::id::TaskId;
use windlass_core::shown::{shown, shown_line};
use windlass_core::tool_name;
use windlass_term::{numbers, strip_controls, tool_lines};

use super::live::PageContent;
use super::view::{PageSources, View};

/// Bytes of a stream on the page; the rest is a download away.
const MAX_BYTES: u64 = 2 * 1024 * 1024;
/// Lines of the command that printed it; its event has the whole.
const COMMAND_LINES: usize = 8;
/// Columns of the line of another call.
const CALL_WIDTH: usize = 200;

pub struct OutputPage {
    call: String,
}

impl OutputPage {
    pub fn new(call: &str) -> Self {
        Self { call: call.to_owned() }
    }

    /// What has printed the output: a call of a task.
    fn source(&self, reading: &PageSources<'_>, task: TaskId) -> Result<Option<Source>, Error> {
        let journal = reading.coordinator.journals().readable(task)?;
        let found = journal.into_iter().find_map(|record| match record.event {
            Event::ToolCall(call) if call.call.to_string() == self.call => {
                Some(Source { task, seq: record.seq, tool: call.tool, arguments: call.arguments })
            }
            _ => None,
        });
        Ok(found)
    }
}

/// The call that has printed an output.
struct Source {
    task: TaskId,
    seq: u64,
    tool: String,
    arguments: Value,
}

impl Source {
    fn draw(&self) -> Markup {
        let command = self.arguments.get("command").and_then(Value::as_str);
        let command = shown(command.filter(|_| self.tool == tool_name::BASH).unwrap_or_default());
        let lines: Vec<&str> = command.lines().take(COMMAND_LINES + 1).collect();
        html! {
            @match lines.as_slice() {
                [] => p.path { (tool_lines::call(&self.tool, &self.arguments, CALL_WIDTH)) },
                all if all.len() > COMMAND_LINES => pre.command tabindex="0" { code { (all[..COMMAND_LINES].join("\n")) "\n…" } },
                all => pre.command tabindex="0" { code { (all.join("\n")) } },
            }
            p.page-facts {
                a href=(format!("/tasks/{0}/events?at={1}#e{1}", self.task, self.seq)) { "The call in its task" }
                a href=(format!("/tasks/{}/outputs", self.task)) { "All outputs of the task" }
            }
        }
    }
}

impl View for OutputPage {
    fn content(&mut self, reading: &PageSources<'_>) -> Result<Option<PageContent>, Error> {
        let outputs = reading.coordinator.artifacts().outputs();
        let task = outputs.task_of(&self.call)?;
        let may_see = match task {
            Some(task) => reading.may_see_task(task)?,
            // An output of no task is the owner's.
            None => reading.user.may_see(None),
        };
        if !may_see {
            return Ok(None);
        }
        let source = task.map(|task| self.source(reading, task)).transpose()?.flatten();
        let mut streams = Vec::new();
        for &stream in Stream::ALL {
            let Ok(mut readers) = outputs.open(&self.call, &[stream]) else { continue };
            let Some(reader) = readers.pop() else { continue };
            let mut bytes = Vec::new();
            // What cannot be read any more is shown as far as it could be.
            let _ = reader.take(MAX_BYTES + 1).read_to_end(&mut bytes);
            streams.push((stream, bytes));
        }
        if streams.is_empty() {
            return Ok(None);
        }
        let live = PageContent::new("Output");
        let live = live
            .with_fragment("source", html! { @if let Some(source) = source { (source.draw()) } });
        Ok(Some(live.with_fragment("output", draw(&self.call, &streams))))
    }

    fn frame(&self, live: &PageContent) -> Markup {
        html! {
            header.page-head {
                div.page-title {
                    h1 { "Full output" }
                    div.controls { a.button href=(format!("/v1/outputs/{}", self.call)) download { "Download" } }
                }
                p.page-facts { "Call " code { (shown_line(&self.call)) } }
            }
            (live.place("source"))
            (live.place("output"))
        }
    }
}

fn draw(call: &str, streams: &[(Stream, Vec<u8>)]) -> Markup {
    html! {
        @for (stream, bytes) in streams.iter().filter(|(_, bytes)| !bytes.is_empty()) {
            section.whole-output aria-label=(stream) {
                h2 {
                    (stream) " " span.count { (numbers::count(bytes.len() as u64)) " bytes" } " "
                    button.small type="button" data-copy-from=(format!("#text-{stream}")) { "Copy" }
                }
                pre id=(format!("text-{stream}")) tabindex="0" { (strip_controls(&String::from_utf8_lossy(bytes))) }
                @if bytes.len() as u64 > MAX_BYTES {
                    p.truncated { "The page shows the first 2 MiB. " a href=(format!("/v1/outputs/{call}")) download { "Download the whole" } }
                }
            }
        }
        @if streams.iter().all(|(_, bytes)| bytes.is_empty()) { p.nothing { "It printed nothing." } }
    }
}
