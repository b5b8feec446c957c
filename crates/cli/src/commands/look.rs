//! `show`, `events`, `result`, `inbox`: reading only.

use windlass_coordinator::Update;
use windlass_coordinator::views::Compaction;
use windlass_core::event::Record;
use windlass_core::id::TaskId;
use windlass_term::{event_lines, numbers, strip_controls};

use super::{AppContext, cost};
use crate::args::{Events, Listing, One, Show};
use crate::failure::Failure;
use crate::show::{self, out, task_page};

pub(super) fn show(app: &AppContext, args: &Show) -> Result<u8, Failure> {
    let coordinator = &app.coordinator;
    let task = coordinator.tasks().find(&args.task)?;
    if args.compactions {
        return compactions(app, task, args.json);
    }
    let details = coordinator.tasks().details(task)?;
    if args.json {
        let mut shown = task_page::task_json(&details.view);
        shown["context"] = serde_json::json!(details.gauge);
        shown["working_memory"] = task_page::working_memory(&details.state);
        out(&shown.to_string());
    } else {
        out(&task_page::task_page(&details, &cost::words(&details.cost)));
    }
    Ok(0)
}

/// What was dropped from a task's context, and where it can be read.
fn compactions(app: &AppContext, task: TaskId, json: bool) -> Result<u8, Failure> {
    let found = app.coordinator.tasks().compactions(task)?;
    if found.is_empty() && !json {
        show::note("its context was never shortened");
    }
    for Compaction { at, end } in found {
        if json {
            out(&serde_json::json!({ "at": at, "compaction": end }).to_string());
            continue;
        }
        out(&format!(
            "compaction {} at {at}\n  turns      {} summarized, {} kept\n  tokens     {} → {}\n  \
             summary    by {}\n  in full    {}\n",
            end.number,
            end.summarized_turns,
            end.kept_turns,
            end.tokens_before,
            end.tokens_after,
            end.source,
            end.file.as_deref().unwrap_or("not kept"),
        ));
        end.summary.lines().for_each(|line| out(&format!("    {}", strip_controls(line))));
        out("");
    }
    Ok(0)
}

pub(super) fn result(app: &AppContext, args: &One) -> Result<u8, Failure> {
    let tasks = app.coordinator.tasks();
    let task = tasks.find(&args.task)?;
    match tasks.last_result(task)? {
        Some(result) => {
            out(&serde_json::to_string_pretty(&result).unwrap_or_default());
            Ok(0)
        }
        None => Err(Failure::usage(
            format!("`{task}` has no result yet"),
            format!("follow it with `windlass events --follow {task}`"),
        )),
    }
}

pub(super) fn events(app: &AppContext, args: &Events) -> Result<u8, Failure> {
    let coordinator = &app.coordinator;
    let task = coordinator.tasks().find(&args.task)?;
    let mut feed = coordinator.feed().follow(task, args.after);
    let (zone, width) = (jiff::tz::TimeZone::system(), app.style.line_width());
    let print = |record: &Record| {
        out(&if args.json {
            windlass_agent::trace::entry(record)
        } else {
            event_lines::line(record, &zone, width)
        });
    };
    while let Some(record) = feed.committed()? {
        print(&record);
    }
    if !args.follow {
        return Ok(0);
    }
    app.runtime.block_on(async {
        while !coordinator.tasks().has_ended(task)? && !show::reader_is_gone() {
            tokio::select! {
                update = feed.next() => {
                    if let Update::Event(record) = update? {
                        print(&record);
                    }
                }
                () = show::reader_gone() => return Ok(0),
            }
        }
        while let Some(record) = feed.committed()? {
            print(&record);
        }
        Ok(0)
    })
}

pub(super) fn inbox(app: &AppContext, args: &Listing) -> Result<u8, Failure> {
    let open = app.coordinator.inbox().open()?;
    let now = app.coordinator.now();
    for asked in &open {
        out(&match args.json {
            true => task_page::question_json(&asked.row),
            false => task_page::question_page(asked, &numbers::age(asked.row.asked_at, now)) + "\n",
        });
    }
    if open.is_empty() && !args.json {
        show::note("nothing waits for you");
    }
    Ok(0)
}
