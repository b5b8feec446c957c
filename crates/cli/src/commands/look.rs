//! `show`, `events`, `result`, `inbox`: reading only.

use windlass_coordinator::{Compaction, Update};
use windlass_core::command::TaskResult;
use windlass_core::event::{Event, Record};
use windlass_core::id::TaskId;
use windlass_store::Store;
use windlass_term::{event_lines, numbers, strip_controls};

use super::{Setting, ask, cost};
use crate::args::{Events, Listing, One, Show};
use crate::failure::Failure;
use crate::show::{self, out, task_page};

pub(super) fn show(setting: &Setting, args: &Show) -> Result<u8, Failure> {
    let coordinator = &setting.coordinator;
    let task = coordinator.store().ids().task(&args.task)?;
    if args.compactions {
        return compactions(setting, task, args.json);
    }
    let state = coordinator.state(task)?;
    let driven = coordinator.store().driving_process(task)?;
    let records = coordinator.store().journal().of(task)?;
    let gauge = task_page::gauge(&records, &state);
    let spent = state.known_cost();
    if args.json {
        let row = coordinator.store().tasks().get(task)?;
        let mut shown =
            row.map(|row| task_page::task_json(&row, driven, spent)).unwrap_or_default();
        shown["context"] = serde_json::json!(gauge);
        shown["working_memory"] = task_page::working_memory(&state);
        out(&shown.to_string());
    } else {
        let cost = cost::words(&records, spent);
        let open = ask::open_below(setting, task)?;
        out(&task_page::task_page(&state, driven, gauge, &cost, &open));
    }
    Ok(0)
}

/// What was dropped from a task's context, and where it can be read.
fn compactions(setting: &Setting, task: TaskId, json: bool) -> Result<u8, Failure> {
    let found = setting.coordinator.compactions(task)?;
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

pub(super) fn result(setting: &Setting, args: &One) -> Result<u8, Failure> {
    let store = setting.coordinator.store();
    let task = store.ids().task(&args.task)?;
    match last_result(setting, task)? {
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

/// What the last segment of a task handed back.
pub(super) fn last_result(setting: &Setting, task: TaskId) -> Result<Option<TaskResult>, Failure> {
    let records = setting.coordinator.store().journal().of(task)?;
    let result = |record: Record| match record.event {
        Event::AgentEnd(result) => Some(*result),
        _ => None,
    };
    Ok(records.into_iter().rev().find_map(result))
}

pub(super) fn events(setting: &Setting, args: &Events) -> Result<u8, Failure> {
    let coordinator = &setting.coordinator;
    let task = coordinator.store().ids().task(&args.task)?;
    let mut following = coordinator.follow(task, args.after);
    let (zone, width) = (jiff::tz::TimeZone::system(), setting.style.line_width());
    let print = |record: &Record| {
        out(&if args.json {
            windlass_agent::trace::entry(record)
        } else {
            event_lines::line(record, &zone, width)
        });
    };
    while let Some(record) = following.committed()? {
        print(&record);
    }
    if !args.follow {
        return Ok(0);
    }
    setting.runtime.block_on(async {
        while !has_ended(coordinator.store(), task)? && !show::reader_is_gone() {
            tokio::select! {
                update = following.next() => {
                    if let Update::Event(record) = update? {
                        print(&record);
                    }
                }
                () = show::reader_gone() => return Ok(0),
            }
        }
        while let Some(record) = following.committed()? {
            print(&record);
        }
        Ok(0)
    })
}

fn has_ended(store: &Store, task: TaskId) -> Result<bool, Failure> {
    Ok(store.tasks().get(task)?.is_none_or(|row| row.status.is_terminal()))
}

pub(super) fn inbox(setting: &Setting, args: &Listing) -> Result<u8, Failure> {
    let rows = setting.coordinator.store().questions().open()?;
    let now = setting.coordinator.now();
    for row in &rows {
        out(&match args.json {
            true => task_page::question_json(row),
            false => {
                let asks = setting.coordinator.store().tasks().get(row.task)?;
                task_page::question_page(row, asks.as_ref(), &numbers::age(row.asked_at, now))
                    + "\n"
            }
        });
    }
    if rows.is_empty() && !args.json {
        show::note("nothing waits for you");
    }
    Ok(0)
}
