//! The health of the installation: what `windlass doctor` finds, and what to do about it.

use std::time::Duration;

use maud::{Markup, html};
use windlass_coordinator::Error;
use windlass_coordinator::health::{Check, CheckStatus};
use windlass_core::shown::{shown, shown_line};

use super::live::{Fragment, PageContent};
use super::pieces::{self, Tone};
use super::view::{PageSources, Query, View};
use crate::auth::Access;
use crate::checkup::CheckReport;

/// How old a report may be that is shown, and one that a person asks for again.
const USUAL_AGE: Duration = Duration::from_secs(60);
const LEAST_AGE: Duration = Duration::from_secs(5);

pub struct HealthPage {
    max_age: Duration,
    /// Whether the reader may have the checks made.
    may_check: bool,
    /// What is shown. An open page does not check again by itself.
    report: Option<CheckReport>,
}

impl HealthPage {
    pub fn new(query: &Query<'_>) -> Self {
        let max_age = if query.get("again").is_empty() { USUAL_AGE } else { LEAST_AGE };
        Self { max_age, may_check: false, report: None }
    }

    fn report(&mut self, reading: &PageSources<'_>) -> CheckReport {
        let (checkup, coordinator, max_age) = (reading.checkup, reading.coordinator, self.max_age);
        // Pages are drawn on a thread that may wait.
        let check = || {
            let report = checkup.report(coordinator, max_age);
            tokio::runtime::Handle::current().block_on(report)
        };
        self.report.get_or_insert_with(check).clone()
    }
}

impl View for HealthPage {
    fn content(&mut self, reading: &PageSources<'_>) -> Result<Option<PageContent>, Error> {
        let live = PageContent::new("Health");
        self.may_check = reading.user.access == Access::Admin;
        if !self.may_check {
            let words = html! { "It shows what belongs to everybody." };
            let nothing = pieces::nothing("This page is for admins", words);
            return Ok(Some(
                live.with_fragment("summary", nothing).with_list("checks", Vec::new()),
            ));
        }
        let report = self.report(reading);
        let fragment = |check: &Check| Fragment::new(format!("check-{}", check.name), row(check));
        let checks = report.checks.iter().map(fragment).collect();
        Ok(Some(live.with_fragment("summary", summary(&report)).with_list("checks", checks)))
    }

    fn frame(&self, live: &PageContent) -> Markup {
        html! {
            header.page-head {
                div.page-title {
                    h1 { "Health" }
                    @if self.may_check { div.controls { a.button href="/health?again=1" { "Check again" } } }
                }
            }
            (live.place("summary"))
            div.rows { (live.place("checks")) }
        }
    }
}

fn summary(report: &CheckReport) -> Markup {
    let wrong = report.checks.iter().filter(|check| check.is_problem());
    let (fixable, rest): (Vec<_>, Vec<_>) = wrong.partition(|check| check.fix.is_some());
    let count = fixable.len() + rest.len();
    html! {
        p.page-facts {
            @match count {
                0 => span.chip.good { "Everything is sound" },
                1 => span.chip.bad { "One thing needs attention" },
                count => span.chip.bad { (count) " things need attention" },
            }
            span.fact { "checked " (pieces::time(report.at)) }
        }
        @if !fixable.is_empty() { p.hint { code { "windlass doctor fix" } " repairs what needs no model." } }
        @if rest.iter().any(|check| check.status == CheckStatus::Wrong) {
            p.hint { code { "windlass doctor heal" } " has an agent look at the rest." }
        }
    }
}

fn row(check: &Check) -> Markup {
    let tone = match check.status {
        CheckStatus::Ok => Tone::Good,
        CheckStatus::Wrong => Tone::Bad,
        CheckStatus::Missing => Tone::Warning,
        CheckStatus::Skipped => Tone::Quiet,
    };
    html! {
        div.row.check {
            (pieces::chip(tone, &check.status.to_string()))
            div.row-main {
                p { strong { (check.name) } " " span dir="auto" { (pieces::with_code(&shown(&check.message))) } }
                @if !check.details.is_empty() {
                    ul { @for line in &check.details { li dir="auto" { (pieces::with_code(&shown_line(line))) } } }
                }
                @if let Some(hint) = &check.hint { p.hint dir="auto" { (pieces::with_code(&shown(hint))) } }
                @if let Some(fix) = &check.fix { p.hint dir="auto" { code { "windlass doctor fix" } ": " (pieces::with_code(&shown_line(fix))) } }
            }
        }
    }
}
