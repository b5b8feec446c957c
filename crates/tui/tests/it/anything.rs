//! Ten thousand random keys, pastes, resizes and answers of the terminal, as many with the keys of vi: nothing breaks,
//! nothing is answered by accident, nothing that was written is lost.

use std::time::Duration;

use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use windlass_core::id::{QuestionId, TaskId};
use windlass_tui::app::{Binding, Effect, Input, Phase, SavedDrafts, Settings};
use windlass_tui::completion::Command;
use windlass_tui::composer::Draft;
use windlass_tui::dialog::QUIET;
use windlass_tui::keys::{Code, Decoder, Direction, Event, Key};
use windlass_tui::overlay::{Item, List, Overlay, Page, PageLine, Target, ViewKind};
use windlass_tui::screen::Size;
use windlass_tui::view;

use crate::world::{PLAIN, World, permission, settings};

/// Inputs of one case; 50 cases of 200 are ten thousand.
const INPUTS: usize = 200;
const CASES: u32 = 50;

#[derive(Clone, Debug)]
enum Step {
    Bytes(Vec<u8>),
    Key(Key),
    Paste(String),
    Resize(usize, usize),
    Wait(u64),
    Ask,
    AskAnother,
    Answered,
    /// Somebody else answers the first one.
    Settled,
    Phase(Phase),
    Reply(String),
    NotSent,
    Edited(Option<String>),
    /// What a terminal answers or reports, each by itself.
    Answer(&'static [u8]),
    Wheel(Direction, usize),
}

/// Answers of real terminals to questions that somebody may have asked, a report of the focus, and clicks.
const ANSWERS: &[&[u8]] = &[
    b"\x1b[?5u",
    b"\x1b[?62;22c",
    b"\x1b[>1;10;0c",
    b"\x1b]11;rgb:1e1e/1e1e/1e1e\x07",
    b"\x1b]10;rgb:ffff/ffff/ffff\x1b\\",
    b"\x1bP>|tmux 3.5a\x1b\\",
    b"\x1b[12;40R",
    b"\x1b[?2026;2$y",
    b"\x1b[I",
    b"\x1b[O",
    b"\x1b[<0;5;12M",
    b"\x1b[<0;5;12m",
];

fn key() -> impl Strategy<Value = Key> {
    let code = prop_oneof![
        6 => prop::char::any().prop_filter("typed", |c| !c.is_control()).prop_map(Code::Char),
        6 => "[a-z0-9 /@!?y1]".prop_map(|text| Code::Char(text.chars().next().unwrap())),
        // Words that begin so can be completed.
        2 => prop::sample::select(vec!['/', '@', ' ']).prop_map(Code::Char),
        6 => prop::sample::select(vec![
            Code::Enter, Code::Tab, Code::Backspace, Code::Escape, Code::Up, Code::Down,
            Code::Left, Code::Right, Code::Home, Code::End, Code::PageUp, Code::PageDown,
            Code::Insert, Code::Delete, Code::F(1),
        ]),
    ];
    (code, prop::bool::weighted(0.25), prop::bool::weighted(0.15), prop::bool::weighted(0.1))
        .prop_map(|(code, ctrl, alt, shift)| Key { code, ctrl, alt, shift })
}

fn step() -> impl Strategy<Value = Step> {
    let phase =
        prop::sample::select(vec![Phase::Idle, Phase::Working, Phase::Blocked, Phase::Stopping]);
    prop_oneof![
        30 => key().prop_map(Step::Key),
        4 => prop::collection::vec(any::<u8>(), 0..20).prop_map(Step::Bytes),
        3 => ".{0,40}".prop_map(Step::Paste),
        1 => Just(Step::Paste("line\n".repeat(30))),
        2 => (1usize..130, 1usize..50).prop_map(|(columns, rows)| Step::Resize(columns, rows)),
        6 => (0u64..2500).prop_map(Step::Wait),
        2 => Just(Step::Ask),
        2 => Just(Step::AskAnother),
        1 => Just(Step::Settled),
        1 => Just(Step::Answered),
        2 => phase.prop_map(Step::Phase),
        2 => ".{0,60}".prop_map(Step::Reply),
        1 => Just(Step::NotSent),
        1 => prop::option::of(".{0,20}").prop_map(Step::Edited),
        2 => prop::sample::select(ANSWERS).prop_map(Step::Answer),
        2 => (prop::bool::ANY, 0usize..50).prop_map(|(up, row)| {
            Step::Wheel(if up { Direction::Up } else { Direction::Down }, row)
        }),
    ]
}

/// What a key may answer: the question that could be read, and what was typed before it.
struct Watch {
    /// When the text was last changed.
    last_typed: Duration,
    /// The question that an arrow key has led into since then.
    entered: Option<QuestionId>,
    /// The question in sight, and since when.
    seen: Option<(QuestionId, Duration)>,
}

impl Watch {
    fn look(&mut self, world: &World) {
        let first = world.app.questions.first().map(|dialog| dialog.id());
        if self.seen.map(|(question, _)| question) != first {
            self.seen = first.map(|question| (question, world.now));
        }
    }
}

fn play(steps: &[Step], vim: bool) -> Result<(), TestCaseError> {
    let mut world = World::with(Settings { vim, ..settings(PLAIN) }, 80, 24);
    world.input(Input::Commands(Command::of_terminal().collect()));
    let task = world.begin("go");
    let mut decoder = Decoder::default();
    let mut watch = Watch { last_typed: Duration::ZERO, entered: None, seen: None };
    let mut is_rebound = false;
    for step in steps {
        let before = everything(&world);
        let is_key = matches!(step, Step::Key(_));
        let asides = asides(&world);
        let written = world.app.writing.composer.draft().clone();
        let was_elsewhere = world.app.outgoing.queue.selected().is_some()
            || world.app.writing.searching.is_some()
            || world.app.writing.completing.list.is_some();
        let was_answering = world.app.writing.answering.is_some();
        if let Step::Key(Key { code: Code::Up | Code::Down, .. }) = step {
            watch.entered = world.app.questions.first().map(|dialog| dialog.id());
        }
        match step {
            Step::Key(key) => world.key(*key),
            Step::Bytes(bytes) => {
                let mut events = decoder.push(bytes);
                events.extend(decoder.expire());
                events.retain(|event| !matches!(event, Event::Key(_)));
                events.into_iter().for_each(|event| world.input(Input::Terminal(event)));
            }
            Step::Paste(text) => world.paste(text),
            Step::Resize(columns, rows) => {
                world.input(Input::Resize(Size { columns: *columns, rows: *rows }));
            }
            Step::Wait(millis) => world.wait(Duration::from_millis(*millis)),
            Step::Ask => world.input(Input::Questions(vec![permission("rm x")])),
            Step::AskAnother => {
                let open = world.app.questions.first().map(|first| first.asked.clone());
                let open = open.into_iter().chain([permission("rm y")]).collect();
                world.input(Input::Questions(open));
            }
            Step::Settled => {
                if let Some(question) = world.app.questions.first().map(|first| first.id()) {
                    let (by, text) = ("bo".to_owned(), "Deny".to_owned());
                    world.input(Input::Settled { question, by, text });
                }
            }
            Step::Answered => world.input(Input::Questions(Vec::new())),
            Step::Phase(phase) => world.input(Input::Phase(*phase)),
            Step::Reply(text) => world.reply(task, text),
            Step::NotSent => {
                if let Some(draft) = world.app.outgoing.sending.clone() {
                    world.input(Input::NotSent { draft, why: "no".to_owned() });
                }
            }
            Step::Edited(text) => world.input(Input::Edited(text.clone())),
            Step::Answer(bytes) => {
                let mut events = decoder.push(bytes);
                events.extend(decoder.expire());
                events.into_iter().for_each(|event| world.input(Input::Terminal(event)));
                prop_assert_eq!(&written, world.app.writing.composer.draft(), "{:?} typed", step);
            }
            Step::Wheel(direction, row) => world.wheel(*direction, *row),
        }
        let mut sent = Vec::new();
        for effect in std::mem::take(&mut world.effects) {
            if let Effect::Answer { question, .. } = &effect {
                prop_assert!(is_key, "{step:?} answered");
                prop_assert!(!was_elsewhere, "{step:?} was for the queue, a search or a list");
                let (seen, since) = watch.seen.unwrap();
                prop_assert_eq!(seen, *question, "another one was in sight");
                let is_read = world.now.saturating_sub(since) >= QUIET;
                prop_assert!(is_read, "answered before it could be read");
                // Words that were written as the answer need no pause: they are the answer.
                if let (false, Step::Key(key)) = (was_answering, step) {
                    let is_quiet = world.now.saturating_sub(watch.last_typed) >= QUIET;
                    prop_assert!(is_quiet, "{key:?} answered while a text was being typed");
                    let is_choice = matches!(key.code, Code::Enter | Code::Char('1'..='9'));
                    let is_meant = is_choice && watch.entered == Some(*question);
                    prop_assert!(
                        written.is_empty() || is_meant,
                        "{key:?} answered instead of {written:?}"
                    );
                }
            }
            if let Effect::Send(draft) | Effect::Steer(draft) = &effect {
                sent.push(draft.expanded());
            }
            match effect {
                Effect::Edit(_) => world.input(Input::Edited(None)),
                Effect::Load(kind) => {
                    let page = match kind {
                        ViewKind::Help => Overlay::Keys(world.app.key_list()),
                        kind => page(kind),
                    };
                    world.input(Input::Loaded(Box::new(page)));
                }
                Effect::Bind(Binding { action, keys }) => {
                    let keymap = world.app.settings.keymap.rebound(action, keys.as_deref());
                    is_rebound = true;
                    let (keymap, kept) = (Box::new(keymap.unwrap()), Ok(String::new()));
                    world.input(Input::Bound { keymap, kept });
                }
                Effect::IndexFiles => {
                    let files = ["notes.txt", "src/main.rs"].map(str::to_owned);
                    world.input(Input::Files(files.to_vec()));
                }
                _ => {}
            }
        }
        if let Step::Key(key) = step
            && !(vim || is_rebound)
            && keeps_everything(*key)
        {
            let after = kept(&world);
            for text in &before {
                let is_kept = after.iter().any(|one| one.contains(text.as_str()))
                    || world.app.writing.history.search(text, 0).is_some();
                prop_assert!(is_kept, "{key:?} lost {text:?}; there is {after:?}");
            }
        }
        watch.look(&world);
        for text in asides {
            let is_kept = sent.contains(&text)
                || kept(&world).contains(&text)
                || world.app.writing.history.search(&text, 0).is_some();
            prop_assert!(is_kept, "{step:?} lost {text:?}, which was put aside");
        }
        if !is_key && !matches!(step, Step::Edited(_)) {
            let after = everything(&world);
            // Words for a question that is gone are in the history, where Ctrl+R finds them.
            let is_kept = |text: &String| world.app.writing.history.search(text, 0).is_some();
            let before: Vec<_> = before.into_iter().filter(|text| !is_kept(text)).collect();
            // A paste goes into the middle of what is written.
            let is_pasted = matches!(step, Step::Paste(_) | Step::Bytes(_));
            let length = |all: &[String]| all.iter().map(String::len).sum::<usize>();
            prop_assert!(
                length(&after) >= length(&before),
                "{step:?} lost of {before:?}: {after:?}"
            );
            for text in before.into_iter().filter(|_| !is_pasted) {
                let is_kept = after.contains(&text) || after.iter().any(|one| one.contains(&text));
                prop_assert!(is_kept, "{step:?} lost {text:?}; there is {after:?}");
            }
        }
        if world.app.writing.composer.draft() != &written {
            watch.entered = None;
            if is_key || matches!(step, Step::Paste(_)) {
                watch.last_typed = world.now;
            }
        }
        check_frame(&mut world)?;
    }
    Ok(())
}

/// A page as it is opened: a list where the kind is one.
fn page(kind: ViewKind) -> Overlay {
    let lists = [
        ViewKind::Tasks,
        ViewKind::Inbox,
        ViewKind::Agents,
        ViewKind::Workers,
        ViewKind::Workflows,
    ];
    if !lists.contains(&kind) && !matches!(kind, ViewKind::Sessions(_)) {
        let lines = (0..60).map(|n| PageLine::heading(format!("line {n} of 漢字")));
        return Overlay::Page(Page::new(kind, "a page", lines.collect()));
    }
    let item = |n: i64| Item {
        target: Target::Task(TaskId::new(jiff::Timestamp::from_second(n).unwrap_or_default())),
        line: format!("task {n}"),
        preview: vec!["more about it".to_owned()],
    };
    Overlay::List(List::new(kind, "a list", (0..60).map(item).collect()))
}

/// Keys that edit nothing: what was written is still written, queued, put aside, on its way or in the history.
fn keeps_everything(key: Key) -> bool {
    let Key { code, ctrl, alt, .. } = key;
    match code {
        Code::Escape | Code::PageUp | Code::PageDown | Code::F(_) | Code::Insert => true,
        Code::Up | Code::Down => true,
        Code::Char(char) if ctrl => "cglnopqrstvz".contains(char),
        Code::Char(char) if alt => "acegilmnoqrstvw".contains(char),
        _ => false,
    }
}

/// Every text that is kept besides the one that is written in: no key may lose one.
fn asides(world: &World) -> Vec<String> {
    let saved = serde_json::to_value(SavedDrafts::of(&world.app)).unwrap();
    let aside: Option<Draft> = serde_json::from_value(saved["aside"].clone()).unwrap();
    let app = &world.app;
    let answering = app.writing.answering.iter().map(|answering| answering.aside.clone());
    let waiting = app.outgoing.queue.iter().cloned();
    let all = aside.into_iter().chain(answering).chain(waiting);
    let all = all.chain(app.writing.history.first().cloned()).map(|draft| draft.expanded());
    all.filter(|text| !text.trim().is_empty()).collect()
}

/// Every text that is kept somewhere: besides those that are written, what was put aside.
fn kept(world: &World) -> Vec<String> {
    let saved = serde_json::to_value(SavedDrafts::of(&world.app)).unwrap();
    let mut all = everything(world);
    all.extend(asides(world));
    let aside: Option<Draft> = serde_json::from_value(saved["aside"].clone()).unwrap();
    all.extend(aside.map(|draft| draft.expanded()));
    all.extend(world.app.writing.searching.iter().map(|_| {
        let draft: Draft = serde_json::from_value(saved["draft"].clone()).unwrap();
        draft.expanded()
    }));
    all
}

/// Every text that is written and not sent.
fn everything(world: &World) -> Vec<String> {
    let app = &world.app;
    let mut all = vec![app.writing.composer.draft().expanded()];
    all.extend(app.writing.answering.iter().map(|answering| answering.aside.expanded()));
    all.extend(app.outgoing.queue.iter().map(|draft| draft.expanded()));
    all.extend(app.outgoing.sending.iter().map(|draft| draft.expanded()));
    all.retain(|text| !text.trim().is_empty());
    all
}

/// A frame fits its terminal, and its cursor is in it.
fn check_frame(world: &mut World) -> Result<(), TestCaseError> {
    let size = world.app.size;
    let frame = match view::overlay(&mut world.app) {
        Some(frame) => frame,
        None => view::zone(&world.app),
    };
    prop_assert!(frame.rows.len() <= size.rows.max(1), "{} rows of {size:?}", frame.rows.len());
    if let Some((row, _)) = frame.cursor {
        prop_assert!(row < frame.rows.len(), "cursor in row {row} of {}", frame.rows.len());
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: CASES, ..ProptestConfig::default() })]
    #[test]
    fn nothing_breaks_is_answered_or_lost(steps in prop::collection::vec(step(), INPUTS)) {
        play(&steps, false)?;
    }

    #[test]
    fn nothing_breaks_is_answered_or_lost_in_vi(steps in prop::collection::vec(step(), INPUTS)) {
        play(&steps, true)?;
    }
}

#[test]
fn quick_keys_answer_nothing_whatever_they_are() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let keys = prop::collection::vec(key(), 40);
    for _ in 0..100 {
        let keys = keys.new_tree(&mut runner).unwrap().current();
        let mut world = World::new(80, 24);
        world.key(Key::plain(Code::Char('a')));
        world.ask("rm x");
        for key in keys {
            world.now += Duration::from_millis(990);
            world.key(key);
            let answered = |effect: &Effect| matches!(effect, Effect::Answer { .. });
            assert!(!world.effects.iter().any(answered), "{key:?}");
        }
    }
}
