//! `events`: the journal of a task, a line each.

use clap::Args;
use windlass_coordinator::Update;
use windlass_coordinator::views::Attendance;
use windlass_core::event::Record;
use windlass_term::event_lines;

use super::attendance::{self, Looks};
use super::{AppContext, Execute, Start, named_task};
use crate::args::values::whole;
use crate::failure::Failure;
use crate::show::{self, out, out_json};

/// Print a task's events
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Events {
    /// The task: its id or any unique suffix of it; without, the last one of this directory
    pub task: Option<String>,
    /// Keep printing new events until the task ends
    #[arg(long, short)]
    pub follow: bool,
    /// Start after the event with this number
    #[arg(long, value_name = "SEQ", default_value_t = 0, value_parser = whole::<u64>, allow_hyphen_values = true)]
    pub after: u64,
    /// Print each event as a line of JSON
    #[arg(long)]
    pub json: bool,
}

const EXAMPLES: &str = "\
Examples:
  windlass events                     of the last task of this directory
  windlass events 7K2M                what has happened
  windlass events 7K2M --follow       and what happens next, until it ends
  windlass events 7K2M --after 40     from event 41 on";

impl Execute for Events {
    fn execute(self, start: Start) -> Result<u8, Failure> {
        events(&start.app()?, &self)
    }
}

pub(super) fn events(app: &AppContext, args: &Events) -> Result<u8, Failure> {
    let coordinator = &app.coordinator;
    let task = named_task::find_or_last(app, args.task.as_deref())?;
    let mut feed = coordinator.feed().follow(task, args.after);
    if args.follow {
        feed = feed.with_fast_poll();
    }
    let (zone, width) = (jiff::tz::TimeZone::system(), app.style.line_width());
    let print = |record: &Record| match args.json {
        true => out_json(&windlass_coordinator::trace::entry(record)),
        false => out(&event_lines::line(record, &zone, width)),
    };
    while let Some(record) = feed.next_committed()? {
        print(&record);
    }
    if !args.follow {
        return Ok(0);
    }
    app.runtime.block_on(async {
        let (mut looks, mut before) = (Looks::at(task), Attendance::Attended);
        while !coordinator.tasks().has_ended(task)? && !show::reader_is_gone() {
            tokio::select! {
                found = looks.next(app) => {
                    let found = found?;
                    let words = attendance::words(found, task).filter(|_| found != before);
                    if let Some(words) = words {
                        show::note(&app.style.wrap_note(&words));
                    }
                    before = found;
                }
                update = feed.next() => {
                    if let Update::Event(record) = update? {
                        print(&record);
                    }
                }
                () = show::reader_gone() => return Ok(0),
            }
        }
        while let Some(record) = feed.next_committed()? {
            print(&record);
        }
        Ok(0)
    })
}
