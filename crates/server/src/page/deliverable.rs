//! A file that an agent hands over: what it is, a look at it where that is possible, and the file itself.

use maud::{Markup, html};
use windlass_core::command::Deliverable;
use windlass_core::id::TaskId;
use windlass_core::shown::shown_line;
use windlass_term::{numbers, strip_controls};

use super::markdown;

/// How the names of pictures end that a browser draws. An SVG is a document and not among them.
const PICTURES: [&str; 5] = [".png", ".jpg", ".jpeg", ".gif", ".webp"];

/// A file of a task's; `place` is unique on the page.
pub fn draw(task: TaskId, file: &Deliverable, place: &str) -> Markup {
    let mut query = url::form_urlencoded::Serializer::new(String::new());
    let query = query.append_pair("path", &file.filepath).finish();
    let address = format!("/v1/tasks/{task}/deliverables/content?{query}");
    let name = file.filepath.rsplit('/').next().unwrap_or(&file.filepath);
    let ending = file.filepath.to_ascii_lowercase();
    html! {
        section.deliverable {
            p.deliverable-name {
                span.tag { (file.kind) } " " strong { (shown_line(&file.filepath)) } " "
                a.download href=(address) download=(shown_line(name)) {
                    "Download"
                    @if let Some(size) = file.size_bytes { " (" (numbers::count(size)) " bytes)" }
                }
            }
            p dir="auto" { (shown_line(&file.description)) }
            @if PICTURES.iter().any(|picture| ending.ends_with(picture)) {
                div.pictures { img src=(address) alt=(shown_line(&file.description)) loading="lazy"; }
            } @else if let Some(content) = &file.content {
                details id=(format!("f-{place}")) {
                    summary { "Preview" }
                    @if ending.ends_with(".md") { (markdown::render(content)) }
                    @else { pre tabindex="0" { (strip_controls(content)) } }
                }
            }
        }
    }
}
