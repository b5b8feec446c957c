//! Charts, drawn as SVG on the server.

use maud::{Markup, html};

/// One column of a chart.
#[derive(Clone, Debug)]
pub struct Bar {
    pub label: String,
    pub amount: f64,
    /// The amount as people read it.
    pub words: String,
}

const WIDTH: f64 = 980.0;
const HEIGHT: f64 = 170.0;
/// Room for the labels, which are larger on a phone.
const AXIS: f64 = 32.0;

/// Columns side by side. Their amounts are also in words, for readers who do not see them.
pub fn columns(title: &str, bars: &[Bar]) -> Markup {
    let most = bars.iter().map(|bar| bar.amount).fold(0.0, f64::max);
    if most <= 0.0 {
        return html! { p.nothing { "Nothing was spent in this time." } };
    }
    let step = WIDTH / bars.len().max(1) as f64;
    let dearest = bars.iter().find(|bar| bar.amount >= most).map(|bar| bar.words.as_str());
    html! {
        svg.chart viewBox=(format!("0 0 {WIDTH} {}", HEIGHT + AXIS)) role="img" aria-label=(title) {
            line.grid x1="0" x2=(WIDTH) y1=(HEIGHT) y2=(HEIGHT) {}
            line.grid.faint x1="0" x2=(WIDTH) y1="14" y2="14" {}
            text.tick x="0" y="10" { (dearest.unwrap_or_default()) }
            @for (number, bar) in bars.iter().enumerate() {
                @let x = step * number as f64 + step * 0.15;
                @let tall = bar.amount / most * (HEIGHT - 14.0);
                @if bar.amount > 0.0 {
                    rect.column x=(format!("{x:.1}")) y=(format!("{:.1}", HEIGHT - tall.max(1.0)))
                        width=(format!("{:.1}", step * 0.7)) height=(format!("{:.1}", tall.max(1.0))) rx="2" {
                        title { (bar.label) ": " (bar.words) }
                    }
                }
                @if number % 7 == bars.len().saturating_sub(1) % 7 {
                    text.tick x=(format!("{:.1}", x + step * 0.35)) y=(HEIGHT + 26.0)
                        text-anchor=(if number + 1 == bars.len() { "end" } else { "middle" }) { (bar.label) }
                }
            }
        }
        details.chart-words {
            summary { "In words" }
            ul { @for bar in bars.iter().filter(|bar| bar.amount > 0.0) { li { (bar.label) ": " (bar.words) } } }
        }
    }
}

/// One amount beside the largest of its list.
pub fn share(amount: f64, most: f64) -> Markup {
    let part = if most > 0.0 { (amount / most * 100.0).clamp(0.0, 100.0) } else { 0.0 };
    html! {
        svg.share viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true" {
            rect.track width="100" height="8" rx="2" {}
            rect.fill width=(format!("{part:.1}")) height="8" rx="2" {}
        }
    }
}
