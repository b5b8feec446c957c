//! What happens by itself, and when.

use maud::{Markup, html};
use serde_json::json;
use windlass_coordinator::Error;
use windlass_coordinator::views::ScheduleRow;
use windlass_core::schedule::{Rhythm, ScheduleState};
use windlass_core::shown::shown_line;
use windlass_term::numbers;

use super::live::{Fragment, PageContent};
use super::pieces::{self, Action, Tone};
use super::view::{PageSources, View};

/// Schedules that have ended and are shown, the newest.
const ENDED: usize = 20;

pub struct SchedulesPage;

impl View for SchedulesPage {
    fn content(&mut self, reading: &PageSources<'_>) -> Result<Option<PageContent>, Error> {
        let rows = reading.coordinator.schedules().list()?;
        let rows = rows.iter().filter(|row| reading.user.may_see(row.schedule.user_id.as_deref()));
        let (ended, live): (Vec<_>, Vec<_>) =
            rows.partition(|row| row.state == ScheduleState::Ended);
        let hidden = ended.len().saturating_sub(ENDED);
        let fragments: Vec<Fragment> = live
            .into_iter()
            .chain(ended.into_iter().rev().take(ENDED))
            .map(|one| Fragment::new(one.schedule.id.to_string(), row(one)))
            .collect();
        let none = fragments.is_empty();
        Ok(Some(
            PageContent::new("Schedules")
                .with_fragment("no-schedules", html! {
                    @if none {
                        (pieces::nothing("Nothing is scheduled", html! { "Make one with " code { "windlass schedule add" } "." }))
                    }
                })
                .with_list("schedules", fragments)
                .with_fragment("ended", html! {
                    @if hidden > 0 { p.earlier { (numbers::plural(hidden, "older schedule")) " that ended: not shown." } }
                }),
        ))
    }

    fn frame(&self, live: &PageContent) -> Markup {
        html! {
            header.page-head { div.page-title { h1 { "Schedules" } } }
            (live.place("no-schedules"))
            div.rows { (live.place("schedules")) }
            (live.place("ended"))
        }
    }
}

/// A schedule in a list.
pub fn row(row: &ScheduleRow) -> Markup {
    let schedule = &row.schedule;
    let what = schedule.goal.as_ref().or(schedule.check_prompt.as_ref());
    let what = what.map(|text| pieces::goal_line(text)).unwrap_or_default();
    let (words, tone) = match row.state {
        ScheduleState::Active => ("Active", Tone::Good),
        ScheduleState::Paused => ("Paused", Tone::Quiet),
        ScheduleState::Ended => ("Ended", Tone::Quiet),
    };
    let path = |verb: &str| format!("/v1/schedules/{}/{verb}", schedule.id);
    let action = |label: &'static str, verb: &str| {
        Action { label, path: path(verb), body: json!({}), class: "small" }.button()
    };
    html! {
        div.row {
            span.row-main {
                span.row-title dir="auto" { (schedule.action) ": " (what) }
                span.row-sub {
                    span { (rhythm(&schedule.rhythm)) @if has_time_of_day(&schedule.rhythm) { " (" (shown_line(&schedule.time_zone)) ")" } }
                    @if let Some(next) = &row.next_at { span { "next " (pieces::time(next.timestamp())) } }
                    @if let Some(last) = row.last_at { span { "last " (pieces::time(last)) } }
                    span { (numbers::plural(row.runs, "run")) @if row.missed > 0 { ", " (row.missed) " missed" } }
                    @if let Some(task) = schedule.task_id { a href=(format!("/tasks/{task}")) { "task" } }
                    @if let Some(reason) = &row.ended_reason { span { (shown_line(reason)) } }
                }
            }
            @match row.state {
                ScheduleState::Active => (action("Pause", "pause")),
                ScheduleState::Paused => (action("Resume", "resume")),
                ScheduleState::Ended => {},
            }
            @if row.state != ScheduleState::Ended {
                button.small.danger type="button" data-post=(format!("/v1/schedules/{}", schedule.id)) data-method="DELETE" data-body="null" { "Remove" }
            }
            span.chip.(tone.class()) { (words) }
        }
    }
}

/// Whether it depends on a time zone when it happens.
const fn has_time_of_day(rhythm: &Rhythm) -> bool {
    match rhythm {
        Rhythm::Every { .. } => false,
        Rhythm::Cron { .. } | Rhythm::Daily { .. } | Rhythm::Once { .. } => true,
    }
}

fn rhythm(rhythm: &Rhythm) -> String {
    match rhythm {
        Rhythm::Every { interval_seconds } => match interval_seconds {
            seconds if seconds % 3600 == 0 => {
                format!("every {}", numbers::plural(seconds / 3600, "hour"))
            }
            seconds if seconds % 60 == 0 => {
                format!("every {}", numbers::plural(seconds / 60, "minute"))
            }
            seconds => format!("every {}", numbers::plural(*seconds, "second")),
        },
        Rhythm::Cron { cron } => format!("cron {}", shown_line(cron)),
        Rhythm::Daily { daily_at } => format!("daily at {daily_at}"),
        Rhythm::Once { date, time } => format!("once, {date} {time}"),
    }
}
