//! The whole of what a call printed, by the call's id (AX-074).

use std::io::Read as _;

use maud::{Markup, html};
use windlass_coordinator::Error;
use windlass_coordinator::outputs::Stream;
use windlass_core::shown::shown_line;
use windlass_term::{numbers, strip_controls};

use super::live::PageContent;
use super::view::{Reading, View};

/// Bytes of a stream on the page; the rest is a download away.
const MAX_BYTES: u64 = 2 * 1024 * 1024;

pub struct OutputPage {
    call: String,
}

impl OutputPage {
    pub fn new(call: &str) -> Self {
        Self { call: call.to_owned() }
    }
}

impl View for OutputPage {
    fn content(&mut self, reading: &Reading<'_>) -> Result<Option<PageContent>, Error> {
        let may_see = match reading.coordinator.artifacts().outputs().task_of(&self.call)? {
            Some(task) => reading.may_see_task(task)?,
            // An output of no task is the owner's.
            None => reading.user.may_see(None),
        };
        if !may_see {
            return Ok(None);
        }
        let mut streams = Vec::new();
        for &stream in Stream::ALL {
            let Ok(mut readers) =
                reading.coordinator.artifacts().outputs().open(&self.call, &[stream])
            else {
                continue;
            };
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
        Ok(Some(live.with_fragment("output", draw(&self.call, &streams))))
    }

    fn frame(&self, live: &PageContent) -> Markup {
        html! {
            header.page-head {
                div.page-title {
                    h1 { "Full output" }
                    div.controls { a.button href=(format!("/v1/outputs/{}", self.call)) download { "Download" } }
                }
                p.page-facts { code { (shown_line(&self.call)) } }
            }
            (live.place("output"))
        }
    }
}

fn draw(call: &str, streams: &[(Stream, Vec<u8>)]) -> Markup {
    html! {
        @for (stream, bytes) in streams.iter().filter(|(_, bytes)| !bytes.is_empty()) {
            section.whole-output aria-label=(stream) {
                h2 { (stream) span.count { (numbers::count(bytes.len() as u64)) " bytes" } }
                pre tabindex="0" { (strip_controls(&String::from_utf8_lossy(bytes))) }
                @if bytes.len() as u64 > MAX_BYTES {
                    p.truncated { "The page shows the first 2 MiB. " a href=(format!("/v1/outputs/{call}")) download { "Download the whole" } }
                }
            }
        }
        @if streams.iter().all(|(_, bytes)| bytes.is_empty()) { p.nothing { "It printed nothing." } }
    }
}
