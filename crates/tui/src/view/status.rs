//! The header and the bottom line: mode, current activity, what was used.

use windlass_term::{Paint, StatusPart, numbers, wrap::cut_columns};

use super::look;
use crate::app::{App, Phase};
use crate::composer::vim::{Mode, Vim};
use crate::host::Layout;
use crate::story::Story;
use crate::text::{broken, cut, painted_width, width};

const SPINNER: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
/// Columns that stay for the current activity.
const ACTIVITY: usize = 20;
/// Columns in which a notice can be understood.
const NOTICE: usize = 40;

/// What turns while something runs.
pub fn spinner(app: &App) -> String {
    let paint = app.settings.paint;
    if !app.settings.animation {
        return paint.cyan("•");
    }
    let frame = app.now.as_millis() / crate::app::FRAME.as_millis();
    let at = usize::try_from(frame % SPINNER.len() as u128).unwrap_or(0);
    paint.cyan(SPINNER[at])
}

/// The mode after the name of the program, a rule, and the project (MS-101). Repair and review are said in full, in as
/// many rows as that takes (MS-100).
pub fn header(app: &App) -> Vec<String> {
    let paint = app.settings.paint;
    let room = app.size.room();
    let line = app.facts.mode().line(paint, look(app));
    // The mode comes before the name of the program.
    let mode = match painted_width(&line) <= room {
        true => line,
        false => app.facts.mode().badge(paint, look(app)),
    };
    if painted_width(&mode) > room {
        // The text and something of what was printed have the rest of the window.
        return broken(&mode, room).into_iter().take((app.size.rows / 3).max(1)).collect();
    }
    let project = cut(&windlass_core::shown::shown_line(&app.settings.project), room / 3);
    let used = painted_width(&mode) + width(&project) + 2;
    let rule = "─".repeat(room.saturating_sub(used));
    vec![match rule.is_empty() {
        true => mode,
        false => format!("{mode} {} {}", paint.dim(&rule), paint.dim(&project)),
    }]
}

/// The bottom line; the badge first, where there is no header.
pub fn bottom(app: &App, has_header: bool) -> Vec<String> {
    let paint = app.settings.paint;
    let room = app.size.room();
    if has_header {
        return vec![cut_columns(&line(app, room), room)];
    }
    let badge = app.facts.mode().badge(paint, look(app));
    let used = painted_width(&badge) + 1;
    if used > room {
        // Repair and review are said in full, in as many rows as that takes (MS-100).
        let most = (app.size.rows / 2).max(1);
        return broken(&badge, room).into_iter().take(most).collect();
    }
    let rest = room - used;
    if rest < ACTIVITY / 2 {
        return vec![badge];
    }
    vec![format!("{badge} {}", cut_columns(&line(app, rest), rest))]
}

/// Whether the bottom line has room for a notice beside the badge. With so little that it would be cut, the row of the
/// text has it.
pub fn has_room_for_notice(app: &App) -> bool {
    let has_header = app.size.rows >= super::HEADER_ROWS;
    let badge = painted_width(&app.facts.mode().badge(app.settings.paint, look(app)));
    has_header || app.size.rows >= 2 && app.size.room() >= badge + 1 + NOTICE
}

fn line(app: &App, room: usize) -> String {
    let paint = app.settings.paint;
    if let Some(words) = app.chord.words() {
        return paint.cyan(&cut(&words, room));
    }
    if let Some(notice) = app.notice.text() {
        return paint.yellow(&cut(notice, room));
    }
    let lead = format!("{}{}", rows_below(app), vim_mode(app));
    let rest = activity_and_usage(app, room.saturating_sub(width(&lead)));
    format!("{}{rest}", paint.bold(&lead))
}

/// How much is below what is in sight, where that is not the end.
fn rows_below(app: &App) -> String {
    match app.scrolling.rows_below() {
        Some(below) if app.layout == Layout::Full => {
            format!("{} below · ", numbers::plural(below, "row"))
        }
        _ => String::new(),
    }
}

/// What keys mean, where they are not typed.
fn vim_mode(app: &App) -> &'static str {
    match app.writing.vim.as_ref().map(Vim::mode) {
        None | Some(Mode::Insert) => "",
        Some(Mode::Normal) => "NORMAL · ",
        Some(Mode::Visual { by_lines: false, .. }) => "VISUAL · ",
        Some(Mode::Visual { by_lines: true, .. }) => "VISUAL LINE · ",
    }
}

fn activity_and_usage(app: &App, room: usize) -> String {
    let paint = app.settings.paint;
    let plain = parts(app, Paint { on: false });
    let painted = parts(app, paint);
    let activity = activity(app);
    // What a person is waited for is said whole.
    let least = match app.phase {
        Phase::Working | Phase::Stopping => width(&activity).min(ACTIVITY),
        Phase::Idle | Phase::Blocked => width(&activity),
    };
    let mut used = least + 2;
    let fits = |part: &&String| {
        used += width(part) + 3;
        used <= room
    };
    let count = plain.iter().take_while(fits).count();
    let taken: usize = plain[..count].iter().map(|part| width(part) + 3).sum();
    let activity = cut(&activity, room.saturating_sub(taken + 2).max(1));
    let lead = match app.phase {
        Phase::Working | Phase::Stopping => format!("{} {activity}", spinner(app)),
        Phase::Blocked => paint.yellow(&activity),
        Phase::Idle => paint.dim(&activity),
    };
    let rest = painted[..count].iter().map(|part| paint.dim(part));
    std::iter::once(lead).chain(rest).collect::<Vec<_>>().join(&paint.dim(" · "))
}

/// Whether what it does has rows of its own above.
fn has_rows(story: Option<&Story>) -> bool {
    let is_own = |story: &Story| story.running.values().any(|one| one.task == story.task());
    story.is_some_and(|story| is_own(story) || !story.agents.is_empty())
}

fn activity(app: &App) -> String {
    let story = app.story.as_ref();
    match app.phase {
        Phase::Idle if story.is_none() => "ready".to_owned(),
        Phase::Idle => {
            let held = story.and_then(Story::held_agents).map(|held| format!("waits for {held}"));
            let parked = held.or_else(|| story.and_then(Story::parked_words));
            parked.unwrap_or_else(|| "waiting for you".to_owned())
        }
        Phase::Blocked => "a question waits for you".to_owned(),
        Phase::Stopping => "stopping".to_owned(),
        // A sub-agent may ask while others work.
        Phase::Working if !app.questions.is_empty() => "a question waits for you".to_owned(),
        Phase::Working if app.size.rows >= super::HEADER_ROWS && has_rows(story) => {
            "working".to_owned()
        }
        Phase::Working => {
            let activity = story.map_or("starting", |story| story.activity());
            let activity = windlass_term::strip_controls(activity);
            activity.lines().next().unwrap_or_default().to_owned()
        }
    }
}

/// The parts that the person wants to see, in their order.
fn parts(app: &App, paint: Paint) -> Vec<String> {
    app.settings.status.iter().filter_map(|part| self::part(app, *part, paint)).collect()
}

fn part(app: &App, part: StatusPart, paint: Paint) -> Option<String> {
    let story = app.story.as_ref();
    match part {
        StatusPart::Time if !app.phase.is_working() => None,
        StatusPart::Model => {
            let model = story.and_then(|story| story.model.as_ref()).unwrap_or(&app.facts.model);
            let name = model.strip_prefix("script:").and_then(|path| path.rsplit('/').next());
            let name = name.map_or_else(|| model.clone(), |name| format!("script:{name}"));
            Some(windlass_core::shown::shown_line(&name)).filter(|name| !name.is_empty())
        }
        StatusPart::Effort => app.facts.effort.as_ref().map(|effort| format!("effort {effort}")),
        part => story?.usage(part, app.elapsed(app.working_since), paint),
    }
}
