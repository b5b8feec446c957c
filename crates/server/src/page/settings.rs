//! The configuration in force, and where each value comes from. Read-only: a file or a flag changes it.

use maud::{Markup, html};
use windlass_coordinator::Error;
use windlass_core::shown::shown_line;

use super::live::PageContent;
use super::pieces;
use super::view::{PageSources, View};
use crate::about::Setting;

/// Settings whose value is as good as a key: whoever knows where notices go can read and send them.
const HIDDEN: &[&str] = &["server.notify_url"];

pub struct SettingsPage;

impl View for SettingsPage {
    fn content(&mut self, reading: &PageSources<'_>) -> Result<Option<PageContent>, Error> {
        let live = PageContent::new("Settings");
        Ok(Some(live.with_fragment("settings", draw(&reading.about.settings, reading))))
    }

    fn frame(&self, live: &PageContent) -> Markup {
        html! {
            header.page-head {
                div.page-title { h1 { "Settings" } div.controls { button type="button" data-post="/v1/logout" data-own data-body="{}" data-then="/login" { "Sign out" } } }
                p.hint { "As this server was started. Change them with " code { "windlass config set" } " or in a file, and start it again." }
            }
            (live.place("settings"))
        }
    }
}

/// The settings by table, those that somebody has set first in sight.
fn draw(settings: &[Setting], reading: &PageSources<'_>) -> Markup {
    let table = |setting: &Setting| setting.key.split('.').next().unwrap_or_default().to_owned();
    html! {
        @for group in settings.chunk_by(|one, other| table(one) == table(other)) {
            @if let Some(first) = group.first() { h2 { (table(first)) } }
            div.rows {
                @for setting in group {
                    div.row.setting {
                        code { (shown_line(&setting.key)) }
                        span dir="auto" { (drawn_value(setting)) }
                        span.chip.info[setting.source != "default"] { (shown_line(&setting.source)) }
                    }
                }
            }
        }
        h2 { "You" }
        div.rows { div.row.setting { span { "Signed in as" } span { (shown_line(&reading.user.name)) } span.chip { (reading.user.access) } } }
    }
}

/// What a default says of others stands between backticks. What a person has set is theirs.
fn drawn_value(setting: &Setting) -> Markup {
    let value = value(setting);
    if setting.source == "default" {
        pieces::with_code(&value)
    } else {
        html! { (value) }
    }
}

fn value(setting: &Setting) -> String {
    let is_hidden = setting.source != "default" && HIDDEN.contains(&setting.key.as_str());
    if is_hidden { "set (hidden)".to_owned() } else { shown_line(&setting.value) }
}
