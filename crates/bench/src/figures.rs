//! Figures, and how they are shown: ratios and aims first, absolute figures as information.

use std::fmt::Write as _;
use std::time::Duration;

use serde::Serialize;

/// One measured thing.
#[derive(Clone, Debug, Serialize)]
pub struct Figure {
    /// What was measured.
    pub what: String,
    /// The figure that is judged: a ratio to the floor, or an absolute one where there is no floor.
    pub value: f64,
    pub unit: Unit,
    /// What it should not exceed.
    pub aim: Option<f64>,
    /// What it comes from.
    pub detail: String,
}

/// What a figure counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Windlass divided by the floor.
    Times,
    Milliseconds,
    Microseconds,
    /// Kilobytes of 2¹⁰ bytes.
    Kilobytes,
    /// Megabytes of 2²⁰ bytes.
    Megabytes,
    /// Gigabytes of 10⁹ bytes.
    Gigabytes,
}

impl Figure {
    /// A figure without an aim.
    pub fn new(what: impl Into<String>, value: f64, unit: Unit) -> Self {
        Self { what: what.into(), value, unit, aim: None, detail: String::new() }
    }

    /// How windlass compares with the floor.
    pub fn ratio(what: impl Into<String>, ours: Duration, floor: Duration) -> Self {
        let ratio = ours.as_secs_f64() / floor.as_secs_f64();
        Self::new(what, ratio, Unit::Times).from(format!("{} / {}", ms(ours), ms(floor)))
    }

    /// With what it should not exceed.
    pub fn at_most(mut self, aim: f64) -> Self {
        self.aim = Some(aim);
        self
    }

    /// With where it comes from.
    pub fn from(mut self, detail: impl Into<String>) -> Self {
        self.detail = detail.into();
        self
    }

    /// Whether it is within its aim; a figure without one always is.
    pub fn is_met(&self) -> bool {
        self.aim.is_none_or(|aim| self.value <= aim)
    }
}

/// A duration in milliseconds, with a precision that fits.
pub fn ms(time: Duration) -> String {
    format!("{:.2} ms", time.as_secs_f64() * 1e3)
}

/// The middle of some times.
pub fn median(times: &[Duration]) -> Duration {
    quantile(times, 0.5)
}

/// The time that this share of the times does not exceed.
pub fn quantile(times: &[Duration], share: f64) -> Duration {
    let mut sorted = times.to_vec();
    sorted.sort();
    let rank = (share * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or_default()
}

/// All figures as a table.
pub fn table(figures: &[Figure]) -> String {
    let width = figures.iter().map(|figure| figure.what.chars().count()).max().unwrap_or(0);
    let mut text = String::new();
    for figure in figures {
        let value = format_value(figure.value, figure.unit);
        let aim = figure
            .aim
            .map_or_else(String::new, |aim| format!("≤ {}", format_value(aim, figure.unit)));
        let mark = match figure.aim {
            Some(_) if figure.is_met() => "ok",
            Some(_) => "OVER",
            None => "",
        };
        let line = format!(
            "{:<width$}  {value:>10}  {aim:<10}  {mark:<4}  {}",
            figure.what, figure.detail
        );
        let _ = writeln!(text, "{}", line.trim_end());
    }
    text
}

fn format_value(value: f64, unit: Unit) -> String {
    match unit {
        Unit::Times if value < 0.1 => format!("{value:.3} ×"),
        Unit::Times => format!("{value:.2} ×"),
        Unit::Milliseconds => format!("{value:.1} ms"),
        Unit::Microseconds => format!("{value:.0} µs"),
        Unit::Kilobytes => format!("{value:.1} KB"),
        Unit::Megabytes => format!("{value:.2} MB"),
        Unit::Gigabytes => format!("{value:.1} GB"),
    }
}
