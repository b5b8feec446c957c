//! A task's events, a line each, in words a person reads; `--json` and `trace` have everything.

use jiff::tz::TimeZone;
use windlass_core::event::{Event, Record, ToolCall};
use windlass_core::shown::shown;
use windlass_core::text::one_line;

use crate::{strip_controls, tool_lines};

/// Columns before the words: number, time, kind.
const BEFORE: usize = 38;
/// Fewer than this say nothing.
const LEAST: usize = 30;
/// From here on there is room for a call's id beside its words; `windlass logs` names it too.
const ROOM_FOR_ID: usize = 60;

/// One line for an event: its number, when it was, its kind and what it says.
pub fn line(record: &Record, zone: &TimeZone, width: usize) -> String {
    let at = record.at.to_zoned(zone.clone()).strftime("%H:%M:%S");
    let room = width.saturating_sub(BEFORE).max(LEAST);
    let (kind, said) = (record.event.kind(), words(&record.event, room));
    format!("{:>5}  {at}  {kind:<20} {said}", record.seq).trim_end().to_owned()
}

/// What an event says, in one line of at most `room` characters.
pub fn words(event: &Event, room: usize) -> String {
    let said = match event {
        Event::ToolCall(call) => call_line(call, room),
        // What a call printed may have colours, which say nothing here.
        Event::ToolResult(_) => shown(strip_controls(&event.words()).trim_end()),
        event => shown(event.words().trim_end()),
    };
    one_line(&said, room)
}

/// A call, and its id where there is room: it is what `windlass outputs` takes, so it is there whole or not
/// at all.
fn call_line(call: &ToolCall, room: usize) -> String {
    if room < ROOM_FOR_ID {
        return tool_lines::call(&call.tool, &call.arguments, room);
    }
    let id = call.call.to_string();
    let room = room - id.len() - 2;
    format!("{}  {id}", tool_lines::call(&call.tool, &call.arguments, room))
}
