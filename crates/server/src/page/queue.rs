//! Messages that wait in a session: seen, changed, reordered, removed, or sent now.

use maud::{Markup, html};
use serde_json::{Value, json};
use windlass_core::id::SessionId;
use windlass_core::shown::{shown, shown_line};

use super::live::Fragment;
use crate::queue::Queued;

/// The messages that wait, the next first.
pub fn fragments(session: SessionId, queue: &[Queued]) -> Vec<Fragment> {
    let count = queue.len();
    let fragment = |(at, queued): (usize, &Queued)| {
        Fragment::new(queued.id.to_string(), message(session, queued, at, count))
    };
    queue.iter().enumerate().map(fragment).collect()
}

fn message(session: SessionId, queued: &Queued, at: usize, count: usize) -> Markup {
    let path = format!("/v1/sessions/{session}/queue/{}", queued.id);
    let button = |label: &str, method: &str, path: &str, body: &Value| {
        html! {
            button.small type="button" data-post=(path) data-method=(method) data-body=(body) { (label) }
        }
    };
    html! {
        section.queued aria-label="A message that waits" {
            div.queued-head {
                span.chip { @if at == 0 { "Next" } @else { "Waits" } }
                p.queued-text dir="auto" { (shown(&queued.text)) }
            }
            @if !queued.pictures.is_empty() {
                p.queued-text { @for picture in &queued.pictures { span.chip { (shown_line(&picture.name)) } } }
            }
            @if let Some(problem) = &queued.problem { p.note.warn { span { "Not sent: " (shown_line(problem)) } } }
            div.queued-actions {
                (button("Send now", "POST", &format!("{path}/send"), &json!({})))
                @if at > 0 { (button("Up", "PATCH", &path, &json!({ "place": at }))) }
                @if at + 1 < count { (button("Down", "PATCH", &path, &json!({ "place": at + 2 }))) }
                (button("Remove", "DELETE", &path, &Value::Null))
                details id=(format!("edit-{}", queued.id)) {
                    summary.button.small { "Edit" }
                    form.own-words data-change=(path) data-was=(queued.text) {
                        label.visually-hidden for=(format!("text-{}", queued.id)) { "Message" }
                        textarea.field id=(format!("text-{}", queued.id)) name="text" rows="2" { (queued.text) }
                        button type="submit" { "Save" }
                    }
                }
            }
        }
    }
}
