//! What is drawn: pure functions of the state. The live zone from here down, pages in `view/pages`.

mod pages;
mod spoken;
mod status;
mod whole_screen;

use std::ops::Range;

use windlass_core::text::suffix;
use windlass_term::{Paint, numbers};

use crate::app::{App, Purpose, QuestionKeys};
use crate::completion::{Completion, SHOWN};
use crate::composer::Draft;
use crate::dialog::Dialog;
use crate::keymap::Action;
use crate::mode_line::ModeLineStyle;
use crate::screen::{Frame, Size};
use crate::story::{Story, preview_rows};
use crate::text::{cut, padded, painted_width};

pub use pages::{body_rows, overlay};
pub use whole_screen::WholeScreen;

/// With fewer rows there is no header; its badge stands in the bottom line (MS-102).
const HEADER_ROWS: usize = 10;
/// Rows of a reply on its way that are shown.
const PREVIEW_ROWS: usize = 12;
/// Bytes of it that are looked at: its end.
const PREVIEW_BYTES: usize = 4 * 1024;
/// Calls, sub-agents and queued messages that are shown.
const MOST_RUNNING: usize = 4;
const MOST_AGENTS: usize = 5;
const MOST_QUEUED: usize = 4;
const PROMPT: &str = "❯ ";
/// In fewer columns a hint says one thing.
const NARROW: usize = 40;

/// Rows that a question is scrolled by: fewer than are seen of it, so that none is passed over.
pub fn dialog_page(size: Size) -> usize {
    (size.rows / 5).max(1)
}

/// Whether there is room for a question and its choices.
pub fn can_ask(size: Size) -> bool {
    size.rows >= 4
}

/// Columns that the text is written in.
pub fn composer_columns(size: Size) -> usize {
    size.room().saturating_sub(2).max(2)
}

pub(crate) fn look(app: &App) -> ModeLineStyle {
    // One pulse in about two seconds.
    let beat = app.now.as_millis() / 960;
    let is_bright = !app.settings.animation || !app.phase.is_working() || beat.is_multiple_of(2);
    ModeLineStyle { columns: app.size.columns, is_bright }
}

/// The live zone.
pub fn zone(app: &App) -> Frame {
    if app.settings.screen_reader {
        return spoken::zone(app);
    }
    let Fixed { header, text, cursor, bottom, room } = fixed(app);
    let mut rows = middle(app, room);
    rows.extend(header);
    let above = rows.len();
    rows.extend(text);
    rows.extend(bottom);
    Frame { rows, cursor: Some((above + cursor.0, cursor.1)) }
}

/// What the live zone always has, and the room that this leaves.
struct Fixed {
    header: Vec<String>,
    text: Vec<String>,
    cursor: (usize, usize),
    bottom: Vec<String>,
    room: usize,
}

fn fixed(app: &App) -> Fixed {
    let size = app.size;
    let has_header = size.rows >= HEADER_ROWS;
    let header = if has_header { status::header(app) } else { Vec::new() };
    let bottom = if size.rows >= 2 { status::bottom(app, has_header) } else { Vec::new() };
    let used = header.len() + bottom.len();
    let (text, cursor) = composer(app, size.rows.saturating_sub(used).clamp(1, most_text(size)));
    let room = size.rows.saturating_sub(used + text.len());
    // Something of what was printed stays in sight.
    let room = if size.rows >= HEADER_ROWS { room.saturating_sub(2) } else { room };
    Fixed { header, text, cursor, bottom, room }
}

/// How far the text of the first question can be scrolled.
pub fn last_question_top(app: &App) -> usize {
    let laid = app.questions.first().map(|dialog| lay_out(app, dialog, fixed(app).room));
    laid.map_or(0, |laid| laid.last_top())
}

fn most_text(size: Size) -> usize {
    (size.rows / 3).max(1)
}

/// The rows of the text and the place of the cursor in them.
fn composer(app: &App, most: usize) -> (Vec<String>, (usize, usize)) {
    let paint = app.settings.paint;
    // With one row there is no other place for the badge.
    let badge = match app.size.rows {
        0 | 1 => format!("{} ", app.facts.mode().badge(paint, look(app))),
        _ => String::new(),
    };
    let prompt = match (&app.writing.answering, &app.writing.searching) {
        (Some(_), _) => paint.yellow(PROMPT),
        (None, Some(_)) => paint.cyan(PROMPT),
        (None, None) => paint.bold(PROMPT),
    };
    let prompt = format!("{badge}{prompt}");
    let indent = painted_width(&prompt);
    let columns = app.size.room().saturating_sub(indent).max(2);
    let laid = app.writing.composer.draft().lay_out(columns, &app.writing.mark());
    let first = (laid.row + 1).saturating_sub(most);
    let shown = laid.rows.iter().skip(first).take(most).enumerate().map(|(at, row)| match at {
        0 => format!("{prompt}{row}"),
        _ => format!("{}{row}", " ".repeat(indent)),
    });
    let mut rows: Vec<String> = shown.collect();
    if app.writing.composer.is_empty() {
        let notice = app.notice.text().filter(|_| !status::has_room_for_notice(app));
        let words = match notice {
            Some(notice) => crate::text::broken(&paint.yellow(notice), columns),
            None => vec![paint.dim(&cut(&placeholder(app), columns))],
        };
        let before = std::iter::once(prompt).chain(std::iter::repeat(" ".repeat(indent)));
        rows = before.zip(words).take(most).map(|(before, row)| before + &row).collect();
    }
    (rows, (laid.row - first, indent + laid.column))
}

fn placeholder(app: &App) -> String {
    if let Some(answering) = &app.writing.answering {
        let words = match answering.purpose {
            Purpose::Answer { prefix: "", .. } => "your answer; ",
            Purpose::Answer { prefix: "Revise: ", .. } => "what should the plan say instead? ",
            Purpose::Answer { .. } => "what should it do instead? ",
            Purpose::Comment { .. } => "about this line; ",
            Purpose::Steer { .. } => "to the sub-agent; ",
        };
        return format!("{words}{}", answer_keys(app, answering.purpose, ", "));
    }
    // Other keys are named above.
    if app.departure.is_asked || app.outgoing.queue.selected().is_some() {
        return String::new();
    }
    if !app.questions.is_empty() {
        let unseen = "a question waits: make the window larger";
        return if can_ask(app.size) { String::new() } else { unseen.to_owned() };
    }
    match app.phase.is_working() {
        true => {
            let [send, now, stop] =
                [Action::Send, Action::SendNow, Action::Interrupt].map(|action| way(app, action));
            format!("{send} queues, {now} sends now, {stop} interrupts")
        }
        false => "a message, /command, @file or !command; ? for keys".to_owned(),
    }
}

/// The key of an action as it is bound now.
fn way(app: &App, action: Action) -> String {
    app.settings.keymap.way(action)
}

/// What the keys do while an answer or a comment is written.
fn answer_keys(app: &App, purpose: Purpose, between: &str) -> String {
    let (send, back) = (way(app, Action::Send), way(app, Action::Interrupt));
    let does = match purpose {
        Purpose::Answer { .. } | Purpose::Steer { .. } => "sends",
        Purpose::Comment { .. } => "keeps",
    };
    format!("{send} {does} it{between}{back} goes back")
}

/// What stands above the text, by importance: the last parts get what room the first leave.
fn middle(app: &App, room: usize) -> Vec<String> {
    let columns = app.size.room();
    let asked = prompts(app, columns, room);
    let mut left = room.saturating_sub(asked.len());
    let queue = queue(app, columns, left);
    left -= queue.len();
    let mut take = |rows: Vec<String>| {
        let kept = rows.len().min(left);
        left -= kept;
        rows[rows.len() - kept..].to_vec()
    };
    let sending = take(sending(app, columns));
    let own = take(own_commands(app, columns));
    let running = take(app.story.as_ref().map(|story| running(app, story)).unwrap_or_default());
    let agents = take(app.story.as_ref().map(|story| agents(app, story)).unwrap_or_default());
    let preview = app.story.as_ref().map(|story| preview(story, columns, app.settings.paint));
    let preview = take(preview.unwrap_or_default());
    [preview, running, agents, own, sending, queue, asked].concat()
}

/// What wants a key now: leaving, a question, a list of completions, a search.
fn prompts(app: &App, columns: usize, room: usize) -> Vec<String> {
    let paint = app.settings.paint;
    if app.departure.is_asked {
        let words = match columns < 50 {
            true => ["still working", "p  park it, leave", "b  background", "Esc  stay"],
            false => [
                "the agent is still working",
                "  p  park it and leave; `windlass -c` continues it",
                "  b  leave; it continues in the background",
                "  Esc  stay",
            ],
        };
        let first = paint.yellow(words[0]);
        let rest = words[1..].iter().map(|&line| line.to_owned());
        return std::iter::once(first).chain(rest).take(room).collect();
    }
    let typed = typed(app, columns, room);
    if let Some(dialog) = app.questions.first() {
        let mut rows = question(app, dialog, room.saturating_sub(typed.len()));
        rows.extend(typed);
        return rows;
    }
    if let Some(purpose @ Purpose::Steer { agent }) =
        app.writing.answering.as_ref().map(|answering| answering.purpose)
    {
        let label = app.story.as_ref().and_then(|story| story.agents.get(&agent));
        let label = label.map_or_else(|| agent.to_string(), |agent| agent.label.clone());
        let keys = paint.dim(&answer_keys(app, purpose, " · "));
        return vec![format!("to the sub-agent {label}  {keys}")].into_iter().take(room).collect();
    }
    typed
}

/// What is typed besides a message: a search in the history, or a list of completions. With a question in sight each
/// has half of the room.
fn typed(app: &App, columns: usize, room: usize) -> Vec<String> {
    let paint = app.settings.paint;
    let room = if app.questions.is_empty() { room } else { room / 2 };
    if let Some(searching) = &app.writing.searching {
        let [older, send, back] =
            [Action::HistorySearch, Action::Send, Action::Interrupt].map(|action| way(app, action));
        let keys = paint.dim(&format!("{older} older · {send} takes it · {back} back"));
        let words = crate::text::prose_line(&searching.words);
        let label = match searching.is_found {
            true => "history: ",
            false if words.is_empty() => "the history is empty",
            false => "not in the history: ",
        };
        let words = crate::text::cut_start(&words, columns.saturating_sub(label.len()));
        let line = format!("{label}{words}");
        // What is typed is seen, whatever there is room for besides.
        let has_room = crate::text::width(&line) + NARROW / 2 < columns;
        let line = if has_room { format!("{line}  {keys}") } else { line };
        return vec![line].into_iter().take(room).collect();
    }
    match &app.writing.completing.list {
        Some(list) => completions(list, columns, room.min(SHOWN), paint),
        None => Vec::new(),
    }
}

/// A question with its choices. Its text is scrolled where there is no room for all of it; its choices come first.
fn question(app: &App, dialog: &Dialog, room: usize) -> Vec<String> {
    let laid = lay_out(app, dialog, room);
    let mut top = dialog.top.min(laid.last_top());
    if let Some(focus) = &laid.focus {
        top = top.max(focus.end.saturating_sub(laid.for_body)).min(focus.start);
    }
    let below = laid.last_top().saturating_sub(top);
    let mut rows: Vec<String> = laid.body.into_iter().skip(top).take(laid.for_body).collect();
    rows.extend(laid.choices);
    if laid.has_hint && room > rows.len() {
        rows.push(hint(app, dialog, below));
    }
    rows.truncate(room);
    rows
}

/// A question for the room that there is.
struct LaidQuestion {
    body: Vec<String>,
    /// The rows of it that must be in sight.
    focus: Option<Range<usize>>,
    choices: Vec<String>,
    /// Rows of the body that are in sight.
    for_body: usize,
    has_hint: bool,
}

impl LaidQuestion {
    fn last_top(&self) -> usize {
        self.body.len().saturating_sub(self.for_body)
    }
}

fn lay_out(app: &App, dialog: &Dialog, room: usize) -> LaidQuestion {
    let (paint, columns) = (app.settings.paint, app.size.room());
    // While the person goes through a plan, nothing else is chosen.
    let can_choose = app.question_keys() == QuestionKeys::Answering && !dialog.is_commenting();
    // What a choice allows is read whole.
    let mut choices: Vec<String> = dialog
        .choice_lines(paint, can_choose)
        .iter()
        .flat_map(|line| crate::text::broken(line, columns))
        .collect();
    let (body, focus) = dialog.body_and_focus(columns, paint);
    if room < choices.len() + 2 {
        // One line of them, so that something of the question is seen.
        choices = vec![choices_in_a_line(dialog, columns, can_choose)];
    }
    let fixed = choices.len() + usize::from(room > choices.len() + 1);
    let for_body = room.saturating_sub(fixed).max(1);
    LaidQuestion { body, focus, choices, for_body, has_hint: fixed > 1 }
}

/// The choices side by side; where they do not fit, the one that Enter takes, and how many there are.
fn choices_in_a_line(dialog: &Dialog, columns: usize, can_choose: bool) -> String {
    let all: Vec<String> = dialog.choice_lines(Paint { on: false }, can_choose);
    let words = all.iter().map(|line| {
        let line = line.trim_start();
        line.split(':').next().unwrap_or(line).to_owned()
    });
    let words: Vec<String> = words.collect();
    let line = words.join(" ");
    if crate::text::width(&line) <= columns {
        return line;
    }
    let chosen = words.get(dialog.selected()).map_or("", String::as_str);
    let mark = if can_choose { "❯ " } else { "" };
    let (_, text) = chosen.split_once(". ").unwrap_or_default();
    cut(&format!("{mark}{}/{} {text}", dialog.selected() + 1, words.len()), columns)
}

fn hint(app: &App, dialog: &Dialog, below: usize) -> String {
    let (paint, count) = (app.settings.paint, app.questions.len());
    let more = match below {
        0 => String::new(),
        _ if dialog.is_commenting() => String::new(),
        _ if app.question_keys() == QuestionKeys::Elsewhere => String::new(),
        below => format!("PgDn: {} · ", numbers::plural(below, "more line")),
    };
    let several = if count > 1 { format!("1 of {count}, Tab next · ") } else { String::new() };
    let purpose = app.writing.answering.as_ref().map(|answering| answering.purpose);
    let keys = match purpose {
        Some(purpose @ Purpose::Answer { .. }) => {
            format!("writing the answer · {}", answer_keys(app, purpose, " · "))
        }
        Some(purpose @ Purpose::Comment { .. }) => {
            format!("writing a comment · {}", answer_keys(app, purpose, " · "))
        }
        Some(purpose @ Purpose::Steer { .. }) => {
            format!("writing to a sub-agent · {}", answer_keys(app, purpose, " · "))
        }
        None => waiting_keys(app, dialog),
    };
    // While a message is written, the keys that lead into the question are what it needs to say.
    match app.question_keys() == QuestionKeys::Entering && !more.is_empty() {
        true => paint.dim(&format!("{keys} · {several}{}", more.trim_end_matches(" · "))),
        false => paint.dim(&format!("{more}{several}{keys}")),
    }
}

/// What the keys do while no answer is written.
fn waiting_keys(app: &App, dialog: &Dialog) -> String {
    let is_written = !app.writing.composer.is_empty();
    let words = match app.question_keys() {
        QuestionKeys::Elsewhere => {
            let back = way(app, Action::Interrupt);
            return match (app.outgoing.queue.selected(), &app.writing.searching) {
                _ if app.size.columns < NARROW => format!("{back}, then answer"),
                (Some(_), _) => format!("the keys are for the queue · {back}, then answer"),
                (None, Some(_)) => format!("the keys are for the search · {back}, then answer"),
                (None, None) => format!("the keys are for the list · {back}, then answer"),
            };
        }
        _ if dialog.is_commenting() => "↑ ↓ line · Enter comment · x remove · Esc back",
        QuestionKeys::Waiting => "keys count after a second without typing",
        QuestionKeys::Entering if app.size.columns < NARROW => "↑ ↓ answer",
        QuestionKeys::Entering => {
            return format!("{} queues your message · ↑ ↓ answer", way(app, Action::Send));
        }
        QuestionKeys::Answering if !dialog.has_options() => "write your answer",
        QuestionKeys::Answering if is_written => {
            "a number, or ↑ ↓ and Enter · Esc back to your text"
        }
        QuestionKeys::Answering => "press a number, or ↑ ↓ and Enter",
    };
    words.to_owned()
}

fn completions(list: &Completion, columns: usize, room: usize, paint: Paint) -> Vec<String> {
    let window = list.window(room);
    let widest = list.items[window.clone()].iter().map(|(text, _)| crate::text::width(text)).max();
    let widest = widest.unwrap_or(0).min(columns.saturating_sub(2));
    let line = |at: usize| {
        let (text, about) = &list.items[at];
        let text = windlass_core::shown::shown_line(text);
        let text = padded(&cut(&text, widest.max(8)), widest);
        let about = cut(about, columns.saturating_sub(widest + 4));
        match at == list.selected {
            true => format!("{} {}  {}", paint.cyan("❯"), paint.bold(&text), paint.dim(&about)),
            false => format!("  {text}  {}", paint.dim(&about)),
        }
    };
    window.map(line).take(room).collect()
}

/// The messages that wait, and where there is room what their keys are.
fn queue(app: &App, columns: usize, room: usize) -> Vec<String> {
    let paint = app.settings.paint;
    if app.outgoing.queue.is_empty() || room == 0 {
        return Vec::new();
    }
    let selected = app.outgoing.queue.selected();
    let most = MOST_QUEUED.min(room);
    let first = selected.map_or(0, |at| (at + 1).saturating_sub(most));
    let shown = app.outgoing.queue.iter().enumerate().skip(first).take(most).map(|(at, draft)| {
        let text = crate::text::prose_line(draft.expanded().trim());
        let text = cut(&text, columns.saturating_sub(14));
        match selected == Some(at) {
            true => format!("{} {}", paint.cyan("❯"), paint.bold(&text)),
            false => paint.dim(&format!("  queued: {text}")),
        }
    });
    let more = app.outgoing.queue.len().saturating_sub(first + most);
    let (edit, send) = (way(app, Action::Queue), way(app, Action::Send));
    let hint = match (selected, app.outgoing.is_held) {
        (Some(_), _) => "Enter edit · x remove · Shift+↑↓ move · s send · Esc back".to_owned(),
        (None, true) => format!("the queue is on hold: {send} sends it, {edit} edits it"),
        (None, false) if more > 0 => format!("and {more} more; {edit} edits the queue"),
        (None, false) => format!("{edit} edits the queue"),
    };
    let hint = paint.dim(&format!("  {}", cut(&hint, columns.saturating_sub(2))));
    shown.chain([hint]).take(room).collect()
}

/// What is on its way, and what the agent has not read yet.
fn sending(app: &App, columns: usize) -> Vec<String> {
    let line = |mark: &str, draft: &Draft| {
        let text = crate::text::prose_line(draft.expanded().trim());
        app.settings.paint.dim(&cut(&format!("{mark}{text}"), columns))
    };
    let steered = app.outgoing.steered.iter().filter(|_| app.story.is_some());
    let steered = steered.map(|message| line("  sent, not read yet: ", &message.draft));
    app.outgoing.sending.iter().map(|draft| line(PROMPT, draft)).chain(steered).collect()
}

/// The calls that run, how long, and the last line of what each has printed.
fn running(app: &App, story: &Story) -> Vec<String> {
    let (paint, columns) = (app.settings.paint, app.size.room());
    let own = story.running.values().filter(|running| running.task == story.task());
    let mut rows = Vec::new();
    for running in own.take(MOST_RUNNING) {
        let took = numbers::elapsed(app.elapsed(running.since));
        let call = cut(&running.call, columns.saturating_sub(took.len() + 5));
        rows.push(format!("{} {call} {}", status::spinner(app), paint.dim(&took)));
        if let Some(last) = running.last_line() {
            rows.push(paint.dim(&format!("  {}", cut(&last, columns.saturating_sub(2)))));
        }
    }
    rows
}

/// The commands that the person runs.
fn own_commands(app: &App, columns: usize) -> Vec<String> {
    let (paint, key) = (app.settings.paint, way(app, Action::Interrupt));
    let mut rows = Vec::new();
    for own in app.own_commands.iter().take(MOST_RUNNING) {
        let hint = if own.is_stopping { "stopping".to_owned() } else { format!("{key} cancels") };
        let took = numbers::elapsed(own.time);
        let hint = format!("{took} · {hint}");
        // What runs matters most.
        let hint = if columns < crate::text::width(&hint) + NARROW / 2 { took } else { hint };
        let room = columns.saturating_sub(crate::text::width(&hint) + 5);
        let command = cut(&windlass_core::shown::shown_line(&own.command), room);
        rows.push(format!("{} ! {command} {}", status::spinner(app), paint.dim(&hint)));
        let last = own.last_line.as_ref();
        rows.extend(
            last.map(|last| paint.dim(&format!("  {}", cut(last, columns.saturating_sub(2))))),
        );
    }
    rows
}

fn agents(app: &App, story: &Story) -> Vec<String> {
    let (paint, columns) = (app.settings.paint, app.size.room());
    let line = |agent: &crate::story::Agent| {
        let took = numbers::elapsed(app.elapsed(agent.since));
        let text = format!("{}: {}", agent.label, agent.activity);
        let text = cut(&text, columns.saturating_sub(took.len() + 5));
        format!("{} {text} {}", paint.cyan("↳"), paint.dim(&took))
    };
    let more = story.agents.len().saturating_sub(MOST_AGENTS);
    let way = way(app, Action::Agents);
    let more = (more > 0).then(|| paint.dim(&format!("  and {more} more sub-agents ({way})")));
    story.agents.values().take(MOST_AGENTS).map(line).chain(more).collect()
}

/// The end of the reply that is on its way.
fn preview(story: &Story, columns: usize, paint: Paint) -> Vec<String> {
    if story.reply.trim().is_empty() {
        return Vec::new();
    }
    let rows = preview_rows(&end_of(&story.reply), columns, paint);
    rows[rows.len().saturating_sub(PREVIEW_ROWS)..].to_vec()
}

/// The end of a text from the beginning of a line; a fence that was opened before stays open.
fn end_of(text: &str) -> String {
    let end = suffix(text, PREVIEW_BYTES);
    if end.len() == text.len() {
        return text.to_owned();
    }
    let cut = text.len() - end.len();
    let line = end.find('\n').map_or(0, |at| at + 1);
    let is_fence = |line: &&str| line.trim_start().starts_with("```");
    let is_open = text[..cut + line].lines().filter(is_fence).count() % 2 == 1;
    format!("{}{}", if is_open { "```\n" } else { "" }, &end[line..])
}
