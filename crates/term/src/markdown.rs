//! Markdown for a terminal: headings, lists, code, emphasis, links, tables; wrapped to its width.
//!
//! It is a small renderer for replies, not a typesetter: what it does not know comes out as text.

use crate::columns::width as columns_of;
use crate::wrap as prose;
use crate::{Paint, Table, strip_controls};
use pulldown_cmark::{CowStr, Event, Options, Parser, Tag, TagEnd};

/// Text as it should look on a terminal of this width. The text has no control characters.
pub fn render(text: &str, paint: Paint, width: usize) -> String {
    let options =
        Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let mut page = Page { paint, width: width.max(20), ..Page::default() };
    for event in Parser::new_ext(text, options).map(plain_event) {
        page.take(event);
    }
    page.end_paragraph();
    page.lines.join("\n").trim_end().to_owned()
}

/// The same event without control characters. Markdown can write any character as a number (`&#27;`), which is a
/// character only once it is read.
pub fn plain_event(event: Event<'_>) -> Event<'_> {
    let plain = |text: CowStr<'_>| CowStr::from(strip_controls(&text));
    match event {
        Event::Text(text) => Event::Text(plain(text)),
        Event::Code(text) => Event::Code(plain(text)),
        Event::Html(text) => Event::Html(plain(text)),
        Event::InlineHtml(text) => Event::InlineHtml(plain(text)),
        Event::InlineMath(text) => Event::InlineMath(plain(text)),
        Event::DisplayMath(text) => Event::DisplayMath(plain(text)),
        Event::FootnoteReference(name) => Event::FootnoteReference(plain(name)),
        Event::Start(Tag::Link { link_type, dest_url, title, id }) => {
            let (dest_url, title, id) = (plain(dest_url), plain(title), plain(id));
            Event::Start(Tag::Link { link_type, dest_url, title, id })
        }
        Event::Start(Tag::Image { link_type, dest_url, title, id }) => {
            let (dest_url, title, id) = (plain(dest_url), plain(title), plain(id));
            Event::Start(Tag::Image { link_type, dest_url, title, id })
        }
        event @ (Event::Start(_)
        | Event::End(_)
        | Event::SoftBreak
        | Event::HardBreak
        | Event::Rule
        | Event::TaskListMarker(_)) => event,
    }
}

/// Stands before an item of a list that does not count.
const BULLET: &str = "• ";

#[derive(Default)]
struct Page {
    paint: Paint,
    width: usize,
    lines: Vec<String>,
    /// The words of the paragraph in hand: text and style.
    words: Vec<(String, String)>,
    styles: Vec<&'static str>,
    /// The lists around this place.
    lists: Vec<List>,
    /// What stands before the next line instead of its indentation.
    bullet: Option<String>,
    quotes: usize,
    link: Option<String>,
    code: Option<String>,
    table: Option<(Vec<Vec<String>>, String)>,
}

struct List {
    /// The number of its next item, if it counts.
    next: Option<u64>,
    /// Columns of the mark of the item in hand: its further lines stand below its text.
    mark: usize,
}

impl Page {
    fn take(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.open(tag),
            Event::End(tag) => self.close(tag),
            Event::Text(text) => self.text(&text),
            Event::Code(text) => self.push(&text, "36"),
            Event::SoftBreak => self.text(" "),
            Event::HardBreak => self.break_line(),
            Event::Rule => {
                self.space();
                let rule = "─".repeat(self.width.min(40));
                self.lines.push(self.paint.dim(&rule));
            }
            Event::TaskListMarker(done) => self.text(if done { "[x] " } else { "[ ] " }),
            Event::Html(text) | Event::InlineHtml(text) => self.text(&text),
            Event::InlineMath(text) | Event::DisplayMath(text) => self.text(&text),
            Event::FootnoteReference(name) => self.text(&format!("[{name}]")),
        }
    }

    fn open(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Paragraph if self.bullet.is_none() => self.space(),
            Tag::Heading { .. } => {
                self.space();
                self.styles.push("1");
            }
            Tag::BlockQuote(_) => {
                self.space();
                self.quotes += 1;
            }
            Tag::CodeBlock(_) => {
                self.end_paragraph();
                self.space();
                self.code = Some(String::new());
            }
            Tag::List(first) => {
                self.end_paragraph();
                if self.lists.is_empty() {
                    self.space();
                }
                self.lists.push(List { next: first, mark: BULLET.chars().count() });
            }
            Tag::Item => {
                let number = self.lists.last_mut().and_then(|list| list.next.as_mut());
                let bullet = match number {
                    Some(number) => {
                        *number += 1;
                        format!("{}. ", *number - 1)
                    }
                    None => BULLET.to_owned(),
                };
                if let Some(list) = self.lists.last_mut() {
                    list.mark = bullet.chars().count();
                }
                self.bullet = Some(bullet);
            }
            Tag::Table(_) => {
                self.space();
                self.table = Some((Vec::new(), String::new()));
            }
            Tag::TableHead | Tag::TableRow => {
                if let Some((rows, _)) = &mut self.table {
                    rows.push(Vec::new());
                }
            }
            Tag::Emphasis => self.styles.push("3"),
            Tag::Strong => self.styles.push("1"),
            Tag::Strikethrough => self.styles.push("9"),
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => {
                self.link = Some(dest_url.into_string());
                self.styles.push("4");
            }
            _ => {}
        }
    }

    fn close(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph | TagEnd::Item => self.end_paragraph(),
            TagEnd::Heading(_) => {
                self.end_paragraph();
                self.styles.pop();
            }
            TagEnd::BlockQuote(_) => {
                self.end_paragraph();
                self.quotes = self.quotes.saturating_sub(1);
            }
            TagEnd::CodeBlock => {
                let margin = self.margin();
                for line in self.code.take().unwrap_or_default().lines() {
                    self.lines.push(format!("{margin}  {}", self.paint.with("36", line)));
                }
            }
            TagEnd::List(_) => {
                self.end_paragraph();
                self.lists.pop();
            }
            TagEnd::TableCell => {
                if let Some((rows, cell)) = &mut self.table
                    && let Some(row) = rows.last_mut()
                {
                    row.push(std::mem::take(cell).trim().to_owned());
                }
            }
            TagEnd::Table => self.end_table(),
            TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough => {
                self.styles.pop();
            }
            TagEnd::Link | TagEnd::Image => {
                self.styles.pop();
                let shown: String = self.words.iter().map(|(text, _)| text.as_str()).collect();
                if let Some(address) = self.link.take()
                    && !shown.ends_with(&address)
                {
                    self.push(&format!(" ({address})"), "2");
                }
            }
            _ => {}
        }
    }

    fn text(&mut self, text: &str) {
        match &mut self.code {
            Some(code) => code.push_str(text),
            None => {
                let style = self.styles.join(";");
                self.push(text, &style);
            }
        }
    }

    fn push(&mut self, text: &str, style: &str) {
        match &mut self.table {
            Some((_, cell)) => cell.push_str(text),
            None => self.words.push((text.to_owned(), style.to_owned())),
        }
    }

    fn break_line(&mut self) {
        let bullet = self.bullet.is_some();
        self.end_paragraph();
        if bullet {
            self.bullet = None;
        }
    }

    /// One empty line before a block that is not the first.
    fn space(&mut self) {
        self.end_paragraph();
        if self.lines.last().is_some_and(|line| !line.is_empty()) && self.bullet.is_none() {
            self.lines.push(String::new());
        }
    }

    /// Quote marks and the indentation of the lists around this place.
    fn margin(&self) -> String {
        format!("{}{}", self.paint.dim("│ ").repeat(self.quotes), " ".repeat(self.indent()))
    }

    /// Columns that the lists around this place take.
    fn indent(&self) -> usize {
        self.lists.iter().map(|list| list.mark).sum()
    }

    /// Wraps the words in hand and puts them on the page.
    fn end_paragraph(&mut self) {
        if self.words.is_empty() {
            return;
        }
        let margin = self.margin();
        let first = match self.bullet.take() {
            Some(bullet) => {
                let indent = " ".repeat(self.indent().saturating_sub(bullet.chars().count()));
                format!("{}{indent}{bullet}", self.paint.dim("│ ").repeat(self.quotes))
            }
            None => margin.clone(),
        };
        let indent = 2 * self.quotes + self.indent();
        let room = self.width.saturating_sub(indent).max(10);
        let lines = wrap(&std::mem::take(&mut self.words), room, self.paint);
        let margins = std::iter::once(first).chain(std::iter::repeat(margin));
        self.lines.extend(margins.zip(lines).map(|(margin, line)| format!("{margin}{line}")));
    }

    fn end_table(&mut self) {
        let Some((rows, _)) = self.table.take() else { return };
        let mut rows = rows.into_iter();
        let headings = rows.next().unwrap_or_default();
        let headings: Vec<&str> = headings.iter().map(String::as_str).collect();
        let mut table = Table::new(&headings, &[]);
        let rows: Vec<Vec<String>> = rows.by_ref().collect();
        rows.iter().for_each(|row| table.row(row.clone()));
        let lines = table.lines();
        let widest = lines.iter().map(|line| columns_of(line)).max().unwrap_or(0);
        if widest > self.width {
            return self.end_wide_table(&headings, &rows);
        }
        for (number, line) in lines.iter().enumerate() {
            self.lines.push(if number == 0 { self.paint.bold(line) } else { line.clone() });
            if number == 0 {
                self.lines.push(self.paint.dim(&"─".repeat(widest)));
            }
        }
    }
}

impl Page {
    /// A table that does not fit: a block a row, a line a cell.
    fn end_wide_table(&mut self, headings: &[&str], rows: &[Vec<String>]) {
        for (number, row) in rows.iter().enumerate() {
            if number > 0 {
                self.lines.push(String::new());
            }
            for (heading, cell) in headings.iter().zip(row) {
                let cell =
                    prose::wrap(&format!("{}: {cell}", self.paint.bold(heading)), self.width);
                self.lines.push(cell);
            }
        }
    }
}

/// Breaks styled text at spaces; a word longer than the width stays whole, so that it can be copied.
fn wrap(words: &[(String, String)], width: usize, paint: Paint) -> Vec<String> {
    let mut lines = Vec::new();
    let (mut line, mut used) = (String::new(), 0);
    let mut space = false;
    for (text, style) in words {
        for (index, word) in text.split(' ').enumerate() {
            space |= index > 0;
            if word.is_empty() {
                continue;
            }
            let wide = columns_of(word);
            if used > 0 && space && used + 1 + wide > width {
                lines.push(std::mem::take(&mut line));
                used = 0;
            } else if used > 0 && space {
                line.push(' ');
                used += 1;
            }
            line += &paint.with(style, word);
            used += wide;
            space = false;
        }
    }
    if used > 0 {
        lines.push(line);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPLY: &str = "\
# Fixed the sum

The loop **skipped** the *last* line, see `sum.sh` and [the manual](https://example.org/read).

1. read the file
2. fix it
   - quote `$1`
   - count ~~all~~ lines

> a quote

```sh
sh test.sh
```

| file | lines |
|---|---|
| sum.sh | 12 |
| a longer name | 3 |

Done.
";

    #[test]
    fn a_reply_reads_well_without_colours() {
        insta::assert_snapshot!(render(REPLY, Paint { on: false }, 60), @r"
        Fixed the sum

        The loop skipped the last line, see sum.sh and the manual
        (https://example.org/read).

        1. read the file
        2. fix it
           • quote $1
           • count all lines

        │ a quote

          sh test.sh

        file           lines
        ────────────────────
        sum.sh         12
        a longer name  3

        Done.
        ");
    }

    #[test]
    fn items_of_a_long_list_fit_and_stand_below_their_text() {
        let items = |number: u64| format!("{number}. several words that need more than one row\n");
        let list: String = (9..=10).map(items).collect();
        insta::assert_snapshot!(render(&list, Paint { on: false }, 28), @r"
        9. several words that need
           more than one row
        10. several words that need
            more than one row
        ");
    }

    #[test]
    fn characters_written_as_numbers_control_nothing() {
        let text =
            "x &#27;]0;title&#7; &#x202e;abc &#155;31m `&#27;[2J` [a](https://a.example/&#27;[2J)";
        let shown = render(text, Paint { on: false }, 80);
        let is_control = |char: char| char.is_control() && char != '\n' || char == '\u{202e}';
        assert!(!shown.contains(is_control), "{shown:?}");
    }

    #[test]
    fn a_table_that_does_not_fit_is_shown_row_by_row() {
        let table = "| name | what it does |\n|---|---|\n| total | adds up all prices of a file |\n| x | y |";
        insta::assert_snapshot!(render(table, Paint { on: false }, 26), @r"
        name: total
        what it does: adds up all
          prices of a file

        name: x
        what it does: y
        ");
    }

    #[test]
    fn styles_begin_and_end_around_each_word() {
        let shown = render("a **b c** `d`", Paint { on: true }, 60);
        assert_eq!(shown, "a \u{1b}[1mb\u{1b}[0m \u{1b}[1mc\u{1b}[0m \u{1b}[36md\u{1b}[0m");
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_rendered(text in "[\\s#*_`>|\\-0-9.a-z\\[\\]()!~]{0,120}", width in 0usize..90) {
            render(&text, Paint { on: false }, width);
        }
    }
}
