//! Markdown as HTML: what a model wrote, drawn without trusting it.
//!
//! Invariants:
//! - Raw HTML in the text is shown as text.
//! - Nothing is fetched: a picture is a link with its description.
//! - A link leads to `http`, `https` or `mailto`; any other address is shown as text.

use maud::{Markup, PreEscaped, html};
use pulldown_cmark::{Alignment, CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag, TagEnd};
use windlass_term::markdown::plain_event;
use windlass_term::strip_controls;

/// How deep blocks may be nested; what is deeper is drawn at this depth.
const MAX_DEPTH: usize = 32;

/// Bytes of a cell of a table that make it a sentence.
const LONG_CELL: usize = 32;

/// Markdown as HTML.
pub fn render(text: &str) -> Markup {
    let text = strip_controls(text);
    let options =
        Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let mut writer = Writer::default();
    Parser::new_ext(&text, options).map(plain_event).for_each(|event| writer.event(event));
    html! { div.md dir="auto" { (PreEscaped(writer.finish())) } }
}

#[derive(Default)]
struct Writer {
    html: String,
    /// The end tags of what is open.
    open: Vec<&'static str>,
    /// Blocks that were too deep to be opened.
    skipped: usize,
    in_table_head: bool,
    alignments: Vec<Alignment>,
    column: usize,
    /// Where the start tag of the open cell is, and where it ends.
    cell_start: (usize, usize),
}

impl Writer {
    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) | Event::Html(text) | Event::InlineHtml(text) => self.text(&text),
            Event::InlineMath(text) | Event::DisplayMath(text) | Event::Code(text) => {
                self.html += &html! { code { (&*text) } }.0;
            }
            Event::SoftBreak => self.html.push('\n'),
            Event::HardBreak => self.html += "<br>",
            Event::Rule => self.html += "<hr>",
            Event::FootnoteReference(name) => self.text(&format!("[{name}]")),
            Event::TaskListMarker(done) => self.html += if done { "☑ " } else { "☐ " },
        }
    }

    fn text(&mut self, text: &str) {
        self.html += &html! { (text) }.0;
    }

    /// Writes a start tag and remembers its end tag.
    fn push(&mut self, start: &str, end: &'static str) {
        if self.open.len() >= MAX_DEPTH {
            self.skipped += 1;
            return;
        }
        self.html += start;
        self.open.push(end);
    }

    fn pop(&mut self) {
        match self.skipped {
            0 => self.html += self.open.pop().unwrap_or_default(),
            _ => self.skipped -= 1,
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Paragraph => self.push("<p>", "</p>"),
            // A page has one heading of the first level, and it is not the model's.
            Tag::Heading { level: HeadingLevel::H1 | HeadingLevel::H2, .. } => {
                self.push("<h3>", "</h3>");
            }
            Tag::Heading { level: HeadingLevel::H3, .. } => self.push("<h4>", "</h4>"),
            Tag::Heading { .. } => self.push("<h5>", "</h5>"),
            Tag::BlockQuote(_) => self.push("<blockquote>", "</blockquote>"),
            Tag::CodeBlock(CodeBlockKind::Fenced(language)) if !language.is_empty() => {
                let language: String =
                    language.chars().take_while(|char| char.is_alphanumeric()).collect();
                let start = html! { span.lang { (language) } }.0;
                self.push(&format!("<pre tabindex=\"0\">{start}<code>"), "</code></pre>");
            }
            Tag::CodeBlock(_) => self.push("<pre tabindex=\"0\"><code>", "</code></pre>"),
            Tag::List(Some(first)) => self.push(&format!("<ol start=\"{first}\">"), "</ol>"),
            Tag::List(None) => self.push("<ul>", "</ul>"),
            Tag::Item => self.push("<li>", "</li>"),
            Tag::Table(alignments) => {
                self.alignments = alignments;
                self.push("<div class=\"scroll\" tabindex=\"0\"><table>", "</table></div>");
            }
            Tag::TableHead => {
                (self.in_table_head, self.column) = (true, 0);
                self.push("<thead><tr>", "</tr></thead>");
            }
            Tag::TableRow => {
                self.column = 0;
                self.push("<tr>", "</tr>");
            }
            Tag::TableCell => self.cell(),
            Tag::Emphasis => self.push("<em>", "</em>"),
            Tag::Strong => self.push("<strong>", "</strong>"),
            Tag::Strikethrough => self.push("<del>", "</del>"),
            Tag::Link { dest_url, .. } => self.link(&dest_url, ""),
            Tag::Image { dest_url, .. } => self.link(&dest_url, "picture: "),
            Tag::FootnoteDefinition(_)
            | Tag::HtmlBlock
            | Tag::MetadataBlock(_)
            | Tag::DefinitionList
            | Tag::DefinitionListTitle
            | Tag::DefinitionListDefinition
            | Tag::Superscript
            | Tag::Subscript => self.push("", ""),
        }
    }

    fn cell(&mut self) {
        let alignment = self.alignments.get(self.column).copied().unwrap_or(Alignment::None);
        self.column += 1;
        let class = match alignment {
            Alignment::Right => " class=\"num\"",
            Alignment::Center => " class=\"center\"",
            Alignment::None | Alignment::Left => "",
        };
        let at = self.html.len();
        match self.in_table_head {
            true => self.push(&format!("<th{class}>"), "</th>"),
            false => self.push(&format!("<td{class}>"), "</td>"),
        }
        self.cell_start = (at, self.html.len());
    }

    /// Marks the cell that ends if it holds a sentence: its column keeps a width in which it can be read.
    fn end_cell(&mut self) {
        let (at, content) = self.cell_start;
        if self.html.len() - content <= LONG_CELL {
            return;
        }
        match self.html[at..content].find('"') {
            Some(quote) => self.html.insert_str(at + quote + 1, "long "),
            None => self.html.insert_str(at + "<td".len(), " class=\"long\""),
        }
    }

    fn link(&mut self, address: &str, before: &str) {
        let scheme = address.split_once(':').map(|(scheme, _)| scheme.to_ascii_lowercase());
        match scheme.as_deref() {
            Some("http" | "https" | "mailto") => {
                let start = html! {
                    a href=(address) rel="noopener noreferrer nofollow" target="_blank" title=(address) {
                        (before)
                    }
                };
                self.push(start.0.trim_end_matches("</a>"), "</a>");
            }
            _ => {
                let start = html! { span.address title=(address) { (before) } };
                self.push(start.0.trim_end_matches("</span>"), "</span>");
            }
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::TableHead => self.in_table_head = false,
            TagEnd::TableCell => self.end_cell(),
            _ => {}
        }
        self.pop();
    }

    fn finish(mut self) -> String {
        while let Some(end) = self.open.pop() {
            self.html += end;
        }
        self.html
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_in_a_table_are_marked() {
        let text = "| n | a heading made of several long words |\n|---|--:|\n| a sentence that wraps in a cell of it | 1 |\n";
        let drawn = render(text).0;
        assert!(drawn.contains(r#"<th>n</th><th class="long num">a heading"#), "{drawn}");
        assert!(drawn.contains(r#"<td class="long">a sentence"#), "{drawn}");
    }

    #[test]
    fn a_reply_becomes_html() {
        let text = "# Fixed\n\nThe **last** `line`:\n\n- a\n- b\n\n```sh\nls <x>\n```\n\n\
                    | n | v |\n|---|--:|\n| a | 1 |\n";
        let drawn = render(text).0;
        for part in [
            "<h3>Fixed</h3><p>The <strong>last</strong> <code>line</code>:</p>",
            "<ul><li>a</li><li>b</li></ul>",
            r#"<span class="lang">sh</span><code>ls &lt;x&gt;"#,
            r#"<tr><th>n</th><th class="num">v</th></tr></thead><tr><td>a</td><td class="num">1</td></tr>"#,
        ] {
            assert!(drawn.contains(part), "{part}: {drawn}");
        }
    }

    #[test]
    fn hostile_markdown_is_text() {
        let hostile = [
            "<script>alert(1)</script>",
            "a <img src=x onerror=alert(1)> b",
            "![x](https://evil.example/?secret)",
            "[x](javascript:alert(1))",
            "[x](JaVaScRiPt:alert(1))",
            "[x](data:text/html,hi)",
            "<svg onload=alert(1)>",
            "[x](https://a.example/\"onmouseover=\"alert(1))",
            "```\"><script>\nx\n```",
            "\u{202e}gnp.exe",
            "x &#x202e;gnp.exe &#27;]0;title&#7; [a](https://a.example/&#x202e;b)",
        ];
        for text in hostile {
            let drawn = render(text).0;
            for bad in [
                "<script", "<img", "<svg", "href=\"j", "href=\"J", "href=\"d", "\u{202e}", "\u{1b}",
            ] {
                assert!(!drawn.contains(bad), "{text}: {drawn}");
            }
            assert!(!drawn.contains("\"onmouseover"), "{drawn}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_drawn_with_every_tag_closed(text in "[\\s#*_`>|\\-0-9.a-z\\[\\]()!~<]{0,200}") {
            let drawn = render(&text).0;
            for tag in ["div", "p", "ul", "ol", "li", "table", "pre", "code", "em", "blockquote"] {
                let opened = drawn.matches(&format!("<{tag}>")).count()
                    + drawn.matches(&format!("<{tag} ")).count();
                proptest::prop_assert_eq!(opened, drawn.matches(&format!("</{tag}>")).count());
            }
        }
    }
}
