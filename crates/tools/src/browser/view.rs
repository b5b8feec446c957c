//! A page as the model reads it: text and elements in their order, each element with its role, its name and a ref.
//!
//! Invariants:
//! - A ref names the same element again after the page is loaded again: it follows from the element's role and name.
//! - What a page says is data: it comes after a line that says so, and cannot end its own line.

use serde::Deserialize;
use windlass_core::text::BYTES_PER_TOKEN;

use super::saved::Element;
use crate::output::neutralize;

/// The most tokens of a view, whatever a result may be: an agent looks at many pages.
const MAX_VIEW_TOKENS: u64 = 6_000;
/// Lines of one document, and nodes of it that are looked at. A larger page is cut, and says so.
pub(super) const MAX_LINES: usize = 1_500;
pub(super) const MAX_NODES: usize = 40_000;

/// One document as `view.js` gives it.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Document {
    pub title: String,
    pub url: String,
    pub lines: Vec<Line>,
    pub elements: Vec<Element>,
    /// What was left out.
    #[serde(default)]
    pub more: f64,
}

/// A text, or an element.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Line {
    text: Option<String>,
    role: String,
    name: String,
    #[serde(rename = "ref")]
    reference: Option<String>,
    level: Option<u8>,
    href: Option<String>,
    value: Option<String>,
    options: Vec<String>,
    checked: Option<bool>,
    disabled: bool,
    submits: bool,
}

impl Line {
    /// One line, whatever the page says.
    fn render(&self, page: &str) -> String {
        if let Some(text) = &self.text {
            return neutralize(text);
        }
        let mut line = self.role.clone();
        if let Some(level) = self.level {
            line += &format!(" {level}");
        }
        line += &format!(" {}", quoted(&self.name));
        if let Some(reference) = &self.reference {
            line += &format!(" [{reference}]");
        }
        if let Some(href) = &self.href {
            line += &format!(" → {}", neutralize(&shortened(href, page)));
        }
        if let Some(value) = &self.value {
            line += &format!(" = {}", quoted(value));
        }
        if !self.options.is_empty() {
            let options: Vec<String> = self.options.iter().map(|option| quoted(option)).collect();
            line += &format!(" of {}", options.join(", "));
        }
        let flags = [
            (self.checked == Some(true), " (checked)"),
            (self.disabled, " (disabled)"),
            (self.submits, " (submits)"),
        ];
        for (_, words) in flags.iter().filter(|(is, _)| *is) {
            line += words;
        }
        line
    }
}

/// The documents of a page, in order, as many lines as fit.
pub(super) fn render(documents: &[Document], limit_tokens: u64) -> String {
    let limit = limit_tokens.min(MAX_VIEW_TOKENS).saturating_mul(BYTES_PER_TOKEN);
    let limit = usize::try_from(limit).unwrap_or(usize::MAX).saturating_sub(200);
    let mut text = String::new();
    let mut left_out = 0_usize;
    for (at, document) in documents.iter().enumerate() {
        let intro = (at > 0).then(|| format!("frame {}:", neutralize(&document.url)));
        let lines = document.lines.iter().map(|line| line.render(&document.url));
        for line in intro.into_iter().chain(lines) {
            match left_out == 0 && text.len() + line.len() < limit {
                true => {
                    text.push_str(&line);
                    text.push('\n');
                }
                false => left_out += 1,
            }
        }
        left_out += document.more as usize;
    }
    if left_out > 0 {
        text.push_str(&format!(
            "[{left_out} more lines are left out; `text` gives all text, `links` all links]\n"
        ));
    }
    if text.is_empty() { "(the page is empty)\n".to_owned() } else { text }
}

/// A text in quotes, in one line.
pub(super) fn quoted(text: &str) -> String {
    format!("\"{}\"", neutralize(text).replace(['"', '\n', '\r'], "'"))
}

/// An address without what it shares with its page's.
fn shortened(href: &str, page: &str) -> String {
    let origin = url::Url::parse(page).map(|url| url.origin().ascii_serialization());
    match origin.ok().and_then(|origin| href.strip_prefix(&origin)) {
        Some(path) if path.starts_with('/') => path.to_owned(),
        _ => href.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn document(lines: serde_json::Value) -> Document {
        let page =
            json!({ "title": "t", "url": "https://a.example/x", "lines": lines, "elements": [] });
        serde_json::from_value(page).unwrap()
    }

    #[test]
    fn a_page_reads_as_its_elements_in_order() {
        let page = document(json!([
            { "role": "heading", "name": "Sign \"in\"", "level": 1 },
            { "text": "Who are you?" },
            { "role": "textbox", "name": "Name", "ref": "t1", "value": "Ann" },
            { "role": "checkbox", "name": "Stay", "ref": "c1", "checked": true },
            { "role": "combobox", "name": "Colour", "ref": "c2", "value": "Red", "options": ["Red", "Blue"] },
            { "role": "link", "name": "Help", "ref": "l1", "href": "https://a.example/help" },
            { "role": "button", "name": "Go", "ref": "b1", "submits": true, "disabled": true },
        ]));
        insta::assert_snapshot!(render(&[page], 1_000), @r#"
        heading 1 "Sign 'in'"
        Who are you?
        textbox "Name" [t1] = "Ann"
        checkbox "Stay" [c1] (checked)
        combobox "Colour" [c2] = "Red" of "Red", "Blue"
        link "Help" [l1] → /help
        button "Go" [b1] (disabled) (submits)
        "#);
    }

    #[test]
    fn a_long_page_is_cut_and_says_so() {
        let lines: Vec<_> = (0..2_000).map(|at| json!({ "text": format!("line {at}") })).collect();
        let text = render(&[document(json!(lines))], 500);
        assert!(text.len() <= 2_000 && text.contains(" more lines are left out"), "{}", text.len());
    }
}
