//! Pages over the whole screen: the mode in their header, what keys do in their bottom line.

use windlass_term::wrap::cut_columns;

use super::{body_rows, look};
use crate::app::App;
use crate::overlay::{List, Overlay, Page, Target};
use crate::screen::Frame;
use crate::text::{padded, painted_width};

/// With fewer rows a list has no preview below it.
const PREVIEW_FROM: usize = 14;

/// The page that is open.
pub fn overlay(app: &mut App) -> Option<Frame> {
    let (size, paint) = (app.size, app.settings.paint);
    let mut overlay = app.overlay.take()?;
    let rows = body_rows(size);
    let (title, body, status, column) = match &mut overlay {
        Overlay::Page(page) => {
            page.lay_out(size.room(), rows);
            let body = page.visible(rows);
            (page.title.clone(), body, page.status(rows), Page::search_column(page))
        }
        Overlay::List(list) => {
            let body = list_rows(app, list, rows);
            (list.title.clone(), body, list.status(), list.search_column())
        }
    };
    app.overlay = Some(overlay);
    let header = header(app, &title);
    let mut all = vec![header];
    all.extend(body);
    all.resize(size.rows.saturating_sub(1).max(1), String::new());
    let bottom = all.len();
    if size.rows > 1 {
        all.push(paint.dim(&cut_columns(&status, size.room())));
    }
    let cursor = column.filter(|_| size.rows > 1).map(|column| (bottom, column.min(size.room())));
    Some(Frame { rows: all, cursor })
}

fn header(app: &App, title: &str) -> String {
    let (paint, room) = (app.settings.paint, app.size.room());
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
        return vec![paint.dim("nothing here")];
    }
    let preview = match list.current().filter(|_| rows >= PREVIEW_FROM) {
        Some(item) => item.preview.clone(),
        None => Vec::new(),
    };
    let below: Vec<String> =
        preview.iter().flat_map(|line| crate::text::rows(line, room)).take(rows / 2).collect();
    let for_items = rows - if below.is_empty() { 0 } else { below.len() + 1 };
    let first = list.first(for_items);
    let line = |(at, item): (usize, &&crate::overlay::Item)| {
        let line = cut_columns(&item.line, room.saturating_sub(2));
        match (item.target, at == list.selected()) {
            (Target::Heading, _) => paint.bold(&line),
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
