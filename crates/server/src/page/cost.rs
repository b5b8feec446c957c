//! What was spent: by day, by model, by session.

use std::collections::BTreeMap;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use maud::{Markup, html};
use windlass_coordinator::Error;
use windlass_coordinator::views::{CostSum, Filter, TaskRow, is_simulated};
use windlass_core::id::SessionId;
use windlass_core::shown::shown_line;
use windlass_term::numbers;

use super::chart::{self, Bar};
use super::live::PageContent;
use super::pieces;
use super::view::{PageSources, Query, View};

/// Days of the chart.
const DAYS: i32 = 30;
/// Tasks that are added up for days and sessions, the newest, until somebody asks for all.
const TASKS: usize = 2000;
/// Sessions that are listed, the dearest, until somebody asks for all.
const SESSIONS: usize = 15;

pub struct CostPage {
    /// Whether all tasks are added up, and all sessions listed.
    all: bool,
}

impl CostPage {
    pub fn new(query: &Query<'_>) -> Self {
        Self { all: query.get("all") == "1" }
    }

    /// The tasks that are added up, without those of scripts in place of a model, and whether the reader has older ones.
    fn rows(&self, reading: &PageSources<'_>) -> Result<(Vec<TaskRow>, bool), Error> {
        let limit = (!self.all).then_some(TASKS + 1);
        let filter = Filter { user: reading.user.limited_to(), limit, ..Filter::default() };
        let mut rows = reading.coordinator.tasks().rows(&filter)?;
        let has_older = !self.all && rows.len() > TASKS;
        rows.truncate(if has_older { TASKS } else { rows.len() });
        rows.retain(|row| !row.model.as_deref().is_some_and(is_simulated));
        Ok((rows, has_older))
    }
}

impl View for CostPage {
    fn content(&mut self, reading: &PageSources<'_>) -> Result<Option<PageContent>, Error> {
        let (rows, has_older) = self.rows(reading)?;
        let today = reading.coordinator.now().to_zoned(TimeZone::UTC).date();
        let live = PageContent::new("Cost")
            .with_fragment("older", older_tasks(has_older))
            .with_fragment("days", chart::columns("Cost by day", &by_day(&rows, today)))
            .with_fragment("by-session", sessions_table(&rows, self.all));
        // Sums over everybody's tasks are for those who may see everybody's.
        Ok(Some(if reading.user.limited_to().is_some() {
            live.with_fragment("sums", own_sums(&rows)).with_fragment("models", html! {
                p.nothing { "Sums by model are over everybody's tasks, and shown to viewers and admins." }
            })
        } else {
            let report = reading.coordinator.costs().total(0)?;
            let models: Vec<(&String, &CostSum)> = report.models.iter().collect();
            live.with_fragment("sums", html! { (sums(&report.total)) (made_up(&report.simulated)) })
                .with_fragment("models", models_table(&models))
        }))
    }

    fn frame(&self, live: &PageContent) -> Markup {
        html! {
            header.page-head { div.page-title { h1 { "Cost" } } }
            (live.place("sums"))
            (live.place("older"))
            section.card { h2 { "By day" span.count { "of the task's start, UTC" } } (live.place("days")) }
            section.card { h2 { "By model" } (live.place("models")) }
            section.card { h2 { "By session" } (live.place("by-session")) }
        }
    }
}

/// What is not counted below, and where it is.
fn older_tasks(has_older: bool) -> Markup {
    html! {
        @if has_older {
            p.earlier { "By day and by session: only the newest " (numbers::count(TASKS as u64)) " tasks are counted. " a href="?all=1" { "Count all" } }
        }
    }
}

/// What somebody's own tasks took.
fn own_sums(rows: &[TaskRow]) -> Markup {
    let tokens = rows.iter().map(|row| row.usage.total_tokens).sum();
    html! {
        div.figures {
            div { span.figure { (numbers::dollars(rows.iter().map(|row| row.cost_spent).sum())) } span { "for your tasks" } }
            div { span.figure { (numbers::count(tokens)) } span { "tokens" } }
        }
    }
}

fn sums(total: &CostSum) -> Markup {
    let cached = match total.input_tokens {
        0 => 0.0,
        all => total.cached_tokens as f64 * 100.0 / all as f64,
    };
    let cost = total.cost_usd.or_else(|| (total.replies == 0).then_some(0.0));
    html! {
        div.figures {
            div { span.figure { (pieces::spent(cost, 0)) } span { "in all" } }
            div { span.figure { (numbers::count(total.replies)) } span { "replies" } }
            div { span.figure { (numbers::count(total.input_tokens + total.output_tokens)) } span { "tokens" } }
            div { span.figure { (format!("{cached:.0} %")) } span { "of prompts from the cache" } }
        }
        @if total.unpriced_replies > 0 {
            p.hint { "The price of " (numbers::plural(total.unpriced_replies, "request")) " is not known and not counted." }
        }
    }
}

/// What scripts have made up is nobody's money, and in none of the sums.
fn made_up(simulated: &CostSum) -> Markup {
    html! {
        @if simulated.replies > 0 {
            p.hint {
                (numbers::plural(simulated.replies, "request")) " to scripts in place of a model: not counted"
                @if let Some(cost) = simulated.cost_usd { ", nor the " (numbers::dollars(cost)) " that they name" }
                "."
            }
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
                    thead { tr { th { "Model" } th.num { "Replies" } th.num.wide-only { "In" } th.num.wide-only { "Cached" } th.num { "Out" } th.num { "Cost" } th.share-cell { span.visually-hidden { "Share" } } } }
                    @for (model, sum) in models {
                        tr {
                            td { (shown_line(model)) }
                            td.num { (sum.replies) }
                            td.num.wide-only { (numbers::count(sum.input_tokens)) }
                            td.num.wide-only { (numbers::count(sum.cached_tokens)) }
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

fn sessions_table(rows: &[TaskRow], all: bool) -> Markup {
    let mut sessions: BTreeMap<SessionId, (f64, u64, &str)> = BTreeMap::new();
    // The newest come first, so the goal that stays is the session's first.
    for row in rows {
        let entry = sessions.entry(row.session_id).or_default();
        *entry = (entry.0 + row.cost_spent, entry.1 + row.usage.total_tokens, &row.goal);
    }
    let mut sessions: Vec<_> = sessions.into_iter().collect();
    sessions.sort_by(|(_, one), (_, other)| other.0.total_cmp(&one.0).then(other.1.cmp(&one.1)));
    let most = sessions.first().map_or(0.0, |(_, (cost, ..))| *cost);
    let shown = if all { sessions.len() } else { SESSIONS.min(sessions.len()) };
    let hidden = sessions.len() - shown;
    html! {
        @if sessions.is_empty() { p.nothing { "No session has asked a model yet." } } @else {
            div.scroll tabindex="0" {
                table.figures-table {
                    thead { tr { th { "Session" } th.num { "Tokens" } th.num { "Cost" } th.share-cell { span.visually-hidden { "Share" } } } }
                    @for (id, (cost, tokens, goal)) in sessions.iter().take(shown) {
                        tr {
                            td dir="auto" { a href=(format!("/sessions/{id}")) { (pieces::goal_line(goal)) } }
                            td.num { (numbers::count(*tokens)) }
                            td.num { (numbers::dollars(*cost)) }
                            td.share-cell { (chart::share(*cost, most)) }
                        }
                    }
                }
            }
            @if hidden > 0 { p.earlier { (numbers::plural(hidden, "session")) " that took less " (if hidden == 1 { "is" } else { "are" }) " not shown. " a href="?all=1" { "Show all" } } }
        }
    }
}
