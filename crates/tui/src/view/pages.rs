//! Pages over the whole screen: the mode in their header, what keys do in their bottom line.

use windlass_term::wrap::cut_columns;

use super::{look, spoken};
use crate::app::App;
use crate::overlay::{List, Overlay, Target};
use crate::screen::{Frame, Size};
use crate::text::{padded, painted_width, width};

/// With fewer rows a list has no preview below it.
const PREVIEW_FROM: usize = 12;

/// With fewer rows the keys of a page have one row, else what they need.
const KEYS_FROM: usize = 12;
const MOST_KEYS: usize = 3;
const BETWEEN: &str = " · ";

/// Rows of a page between its header and its keys.
pub fn body_rows(overlay: &Overlay, size: Size) -> usize {
    size.rows.saturating_sub(1 + keys(overlay, size).len()).max(1)
}

/// What keys do on a page, below what is searched for in it.
fn keys(overlay: &Overlay, size: Size) -> Vec<String> {
    let (status, room) = (overlay.status(size.rows.saturating_sub(2).max(1)), size.room());
    if size.rows <= 1 {
        return Vec::new();
    }
    match (search_row(overlay, room), size.rows) {
        (Some(search), 0..KEYS_FROM) => vec![beside(search, &status, room)],
        (None, 0..KEYS_FROM) => vec![in_one_row(&status, room)],
        (search, _) => broken(search, &status, room).into_iter().take(MOST_KEYS).collect(),
    }
}

/// Stands between a search, where the cursor is, and the keys.
fn gap(search: &str) -> &'static str {
    if search.ends_with(' ') { " " } else { "  " }
}

/// A search with what keys do after it, where there is room for the way out.
fn beside(search: String, status: &str, room: usize) -> String {
    let gap = gap(&search);
    let left = room.saturating_sub(width(&search) + width(gap));
    let keys = in_one_row(status, left);
    match keys.contains("Esc") && !keys.ends_with('…') {
        true => format!("{search}{gap}{keys}"),
        false => search,
    }
}

/// The words that are typed to search for: their end, where a row has no room for all of them.
fn search_row(overlay: &Overlay, room: usize) -> Option<String> {
    let (label, words) = overlay.search()?;
    let words = crate::text::prose_line(words);
    Some(match room <= width(label) {
        true => crate::text::cut_start(&words, room),
        false => format!("{label}{}", crate::text::cut_start(&words, room - width(label))),
    })
}

/// As many keys as one row has room for. The way out, which comes last, is always one of them.
fn in_one_row(status: &str, room: usize) -> String {
    let parts = status.rsplit_once(BETWEEN).filter(|_| width(status) > room);
    let Some((others, out)) = parts.filter(|(_, out)| out.starts_with("Esc ")) else {
        return cut_columns(status, room);
    };
    let mut row = String::new();
    for part in others.split(BETWEEN) {
        if width(&row) + width(part) + width(BETWEEN) + width(out) > room {
            break;
        }
        row += &format!("{part}{BETWEEN}");
    }
    cut_columns(&(row + out), room)
}

/// Rows of keys, each with what it does beside it, after a search; what is none is broken between words.
fn broken(search: Option<String>, status: &str, room: usize) -> Vec<String> {
    let mut between = search.as_deref().map_or(BETWEEN, gap);
    let mut done: Vec<String> = search.into_iter().collect();
    for part in status.split(BETWEEN) {
        match done.last_mut() {
            Some(row) if width(row) + width(between) + width(part) <= room => {
                *row += &format!("{between}{part}");
            }
            _ => done.extend(crate::text::broken(part, room)),
        }
        between = BETWEEN;
    }
    done
}

/// The page that is open.
pub fn overlay(app: &mut App) -> Option<Frame> {
    let (size, paint) = (app.size, app.settings.paint);
    let mut overlay = app.overlay.take()?;
    let rows = body_rows(&overlay, size);
    if let Overlay::Page(page) = &mut overlay {
        page.lay_out(size.room(), rows);
    }
    let mut keys = keys(&overlay, size);
    let column = search_row(&overlay, size.room()).map(|row| width(&row));
    if let (Some(notice), Some(first), None) = (app.notice.text(), keys.first_mut(), column) {
        *first = cut_columns(notice, size.room());
    }
    let mut all = vec![header(app, overlay.title())];
    all.extend(match &overlay {
        Overlay::Page(page) => page.visible(rows, paint),
        Overlay::List(list) => list_rows(app, list, rows),
        Overlay::Keys(keys) => list_rows(app, &keys.list, rows),
    });
    app.overlay = Some(overlay);
    all.resize(size.rows.saturating_sub(keys.len()).max(1), String::new());
    let bottom = all.len();
    let cursor = column.filter(|_| !keys.is_empty());
    all.extend(keys.iter().map(|row| paint.dim(row)));
    let cursor = cursor.map(|column| (bottom, column.min(size.room())));
    Some(match app.settings.screen_reader {
        true => spoken::page(app, all, cursor),
        false => Frame { rows: all, cursor },
    })
}

fn header(app: &App, title: &str) -> String {
    let (paint, room) = (app.settings.paint, app.size.room());
    if app.settings.screen_reader {
        return cut_columns(&format!("{title}; {}", app.facts.mode().words()), room);
    }
    let badge = app.facts.mode().badge(paint, look(app));
    let title = paint.bold(&crate::text::cut(title, room));
    let used = painted_width(&badge) + painted_width(&title) + 2;
    match used <= room {
        true => format!("{badge}  {title}"),
        false => cut_columns(&format!("{badge} {title}"), room),
    }
}

fn list_rows(app: &App, list: &List, rows: usize) -> Vec<String> {
    let (paint, room) = (app.settings.paint, app.size.room());
    let seen = list.seen();
    if seen.is_empty() {
        let words = crate::text::broken(list.empty_words(), room);
        return words.iter().take(rows).map(|row| paint.dim(row)).collect();
    }
    let preview = match list.current().filter(|_| rows >= PREVIEW_FROM) {
        Some(item) => item.preview.clone(),
        None => Vec::new(),
    };
    let below: Vec<String> =
        preview.iter().flat_map(|line| crate::text::broken(line, room)).take(rows / 2).collect();
    let for_items = rows - if below.is_empty() { 0 } else { below.len() + 1 };
    let first = list.first(for_items);
    let line = |(at, item): (usize, &&crate::overlay::Item)| {
        let line = cut_columns(&item.line, room.saturating_sub(2));
        match (item.target, at == list.selected()) {
            (Target::Heading, _) => paint.bold(&line),
            (_, true) if app.settings.screen_reader => format!("{}{line}", spoken::SELECTED),
            (_, true) => format!("{} {}", paint.cyan("❯"), paint.bold(&line)),
            (_, false) => format!("  {line}"),
        }
    };
    let mut all: Vec<String> =
        seen.iter().enumerate().skip(first).take(for_items).map(line).collect();
    if !below.is_empty() {
        all.resize(for_items, String::new());
        all.push(paint.dim(&"─".repeat(room)));
        all.extend(below.iter().map(|line| padded(line, 0)));
    }
    all
}
