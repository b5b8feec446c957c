//! What was spent: by day, by model, by session.

use std::collections::BTreeMap;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use maud::{Markup, html};
use windlass_coordinator::Error;
use windlass_coordinator::views::{CostSum, Filter, TaskRow};
use windlass_core::id::SessionId;
use windlass_core::shown::shown_line;
use windlass_term::numbers;

use super::chart::{self, Bar};
use super::live::PageContent;
use super::pieces;
use super::view::{Reading, View};

/// Days of the chart.
const DAYS: i32 = 30;
/// Tasks that are added up for days and sessions.
const TASKS: usize = 2000;
/// Sessions that are listed, the dearest.
const SESSIONS: usize = 15;

pub struct CostPage;

impl View for CostPage {
    fn content(&mut self, reading: &Reading<'_>) -> Result<Option<PageContent>, Error> {
        let report = reading.coordinator.costs().total(0)?;
        let filter = Filter { limit: Some(TASKS), ..Filter::default() };
        let mut rows = Vec::new();
        let mut owners: BTreeMap<SessionId, bool> = BTreeMap::new();
        for row in reading.coordinator.tasks().rows(&filter)? {
            let known = owners.get(&row.session_id).copied();
            let may_see = match known {
                Some(may_see) => may_see,
                None => reading.may_see_session(row.session_id)?,
            };
            owners.insert(row.session_id, may_see);
            if may_see {
                rows.push(row);
            }
        }
        let today = reading.coordinator.now().to_zoned(TimeZone::UTC).date();
        let models: Vec<(&String, &CostSum)> = report.models.iter().collect();
        Ok(Some(
            PageContent::new("Cost")
                .with_fragment("sums", sums(&report.total))
                .with_fragment("days", chart::columns("Cost by day", &by_day(&rows, today)))
                .with_fragment("models", models_table(&models))
                .with_fragment("by-session", sessions_table(&rows)),
        ))
    }

    fn frame(&self, live: &PageContent) -> Markup {
        html! {
            header.page-head { div.page-title { h1 { "Cost" } } }
            (live.place("sums"))
            section.card { h2 { "By day" span.count { "of the task's start, UTC" } } (live.place("days")) }
            section.card { h2 { "By model" } (live.place("models")) }
            section.card { h2 { "By session" } (live.place("by-session")) }
        }
    }
}

fn sums(total: &CostSum) -> Markup {
    let cached = match total.input_tokens {
        0 => 0.0,
        all => total.cached_tokens as f64 * 100.0 / all as f64,
    };
    html! {
        div.figures {
            div { span.figure { (pieces::spent(total.cost_usd, 0)) } span { "in all" } }
            div { span.figure { (numbers::count(total.replies)) } span { "replies" } }
            div { span.figure { (numbers::count(total.input_tokens + total.output_tokens)) } span { "tokens" } }
            div { span.figure { (format!("{cached:.0} %")) } span { "of prompts from the cache" } }
        }
        @if total.unpriced_replies > 0 {
            p.hint { "The price of " (numbers::plural(total.unpriced_replies, "reply")) " is not known and not counted." }
        }
    }
}

fn by_day(rows: &[TaskRow], today: Date) -> Vec<Bar> {
    let mut days: BTreeMap<Date, f64> = BTreeMap::new();
    for row in rows {
        *days.entry(row.created_at.to_zoned(TimeZone::UTC).date()).or_default() += row.cost_spent;
    }
    let day = |back: i32| {
        let date = today.saturating_sub(jiff::Span::new().days(back));
        let amount = days.get(&date).copied().unwrap_or(0.0);
        Bar { label: date.strftime("%d %b").to_string(), amount, words: numbers::dollars(amount) }
    };
    (0..DAYS).rev().map(day).collect()
}

fn models_table(models: &[(&String, &CostSum)]) -> Markup {
    let most = models.iter().filter_map(|(_, sum)| sum.cost_usd).fold(0.0, f64::max);
    html! {
        @if models.is_empty() { p.nothing { "No model was asked yet." } } @else {
            div.scroll tabindex="0" {
                table.figures-table {
                    thead { tr { th { "Model" } th.num { "Replies" } th.num { "In" } th.num { "Cached" } th.num { "Out" } th.num { "Cost" } th.share-cell { span.visually-hidden { "Share" } } } }
                    @for (model, sum) in models {
                        tr {
                            td { (shown_line(model)) }
                            td.num { (sum.replies) }
                            td.num { (numbers::count(sum.input_tokens)) }
                            td.num { (numbers::count(sum.cached_tokens)) }
                            td.num { (numbers::count(sum.output_tokens)) }
                            td.num { @match sum.cost_usd { Some(cost) => (numbers::dollars(cost)), None => "not known" } }
                            td.share-cell { (chart::share(sum.cost_usd.unwrap_or(0.0), most)) }
                        }
                    }
                }
            }
        }
    }
}

fn sessions_table(rows: &[TaskRow]) -> Markup {
    let mut sessions: BTreeMap<SessionId, (f64, u64, &str)> = BTreeMap::new();
    // The newest come first, so the goal that stays is the session's first.
    for row in rows {
        let entry = sessions.entry(row.session_id).or_default();
        *entry = (entry.0 + row.cost_spent, entry.1 + row.usage.total_tokens, &row.goal);
    }
    let mut sessions: Vec<_> = sessions.into_iter().collect();
    sessions.sort_by(|(_, one), (_, other)| other.0.total_cmp(&one.0).then(other.1.cmp(&one.1)));
    let most = sessions.first().map_or(0.0, |(_, (cost, ..))| *cost);
    html! {
        @if sessions.is_empty() { p.nothing { "There are no sessions yet." } } @else {
            div.scroll tabindex="0" {
                table.figures-table {
                    thead { tr { th { "Session" } th.num { "Tokens" } th.num { "Cost" } th.share-cell { span.visually-hidden { "Share" } } } }
                    @for (id, (cost, tokens, goal)) in sessions.iter().take(SESSIONS) {
                        tr {
                            td dir="auto" { a href=(format!("/sessions/{id}")) { (pieces::goal_line(goal)) } }
                            td.num { (numbers::count(*tokens)) }
                            td.num { (numbers::dollars(*cost)) }
                            td.share-cell { (chart::share(*cost, most)) }
                        }
                    }
                }
            }
        }
    }
}
