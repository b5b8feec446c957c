//! Questions: only a key that a person meant answers.

use std::time::Duration;

use serde_json::json;
use windlass_coordinator::views::OpenQuestion;
use windlass_core::id::QuestionId;
use windlass_core::question::{BoundFile, PLAN_OPTIONS};
use windlass_tui::app::{Effect, Input, Phase, SavedDrafts};
use windlass_tui::completion::Command;
use windlass_tui::keys::{Code, Key};
use windlass_tui::screen::Size;

use crate::world::{World, event, open, permission};

const SECOND: Duration = Duration::from_secs(1);

fn answers(world: &mut World) -> Vec<String> {
    let text = |effect| match effect {
        Effect::Answer { text, .. } => Some(text),
        _ => None,
    };
    world.take_effects().into_iter().filter_map(text).collect()
}

#[test]
fn what_is_typed_for_the_message_answers_nothing() {
    let mut world = World::new(80, 24);
    world.types("you ");
    world.ask("rm -r build");
    world.types("yes 1");
    world.key(Key::plain(Code::Enter));
    assert_eq!(answers(&mut world), Vec::<String>::new());
    assert!(!world.app.questions.is_empty());
}

#[test]
fn a_key_answers_after_a_second_without_typing() {
    let mut world = World::new(80, 24);
    world.ask("rm -r build");
    world.wait(SECOND / 2);
    world.types("y");
    world.key(Key::plain(Code::Backspace));
    world.wait(SECOND - Duration::from_millis(1));
    world.types("y");
    world.key(Key::plain(Code::Backspace));
    assert_eq!(answers(&mut world), Vec::<String>::new());
    world.wait(SECOND);
    world.types("y");
    assert_eq!(answers(&mut world), ["Allow"]);
}

/// A pause in the middle of a message is not the end of it: Enter is for the message, whatever it was paused for.
#[test]
fn enter_queues_the_message_that_is_written_at_a_question() {
    let mut world = World::new(80, 24);
    world.begin("clean up");
    world.input(Input::Phase(Phase::Blocked));
    world.ask("rm notes.txt");
    world.types("wait, also think");
    world.wait(2 * SECOND);
    assert!(world.shown().contains("Enter queues your message · ↑ ↓ answer"), "{}", world.shown());
    for key in [Code::Char('1'), Code::Char('y'), Code::Enter] {
        world.key(Key::plain(key));
        world.wait(2 * SECOND);
    }
    assert_eq!(answers(&mut world), Vec::<String>::new());
    assert!(world.shown().contains("queued: wait, also think1y"), "{}", world.shown());
    assert!(!world.app.questions.is_empty());
}

/// An arrow key leads from the message into the question: then its numbers and Enter count, and letters are text.
#[test]
fn an_arrow_key_leads_from_the_message_into_the_question() {
    let mut world = World::new(80, 24);
    world.types("my draft");
    world.ask("rm notes.txt");
    world.wait(2 * SECOND);
    world.key(Key::plain(Code::Down));
    assert!(world.shown().contains("❯ 1. Allow"), "it moves no further:\n{}", world.shown());
    world.types("y");
    assert_eq!(answers(&mut world), Vec::<String>::new());
    assert_eq!(world.app.writing.composer.text(), "my drafty");
    world.wait(2 * SECOND);
    world.types("2");
    assert_eq!(world.app.writing.composer.text(), "my drafty2", "the letter led back to the text");
    world.wait(2 * SECOND);
    world.key(Key::plain(Code::Up));
    world.key(Key::plain(Code::Escape));
    world.key(Key::plain(Code::Up));
    world.key(Key::plain(Code::Down));
    world.key(Key::plain(Code::Enter));
    assert_eq!(answers(&mut world), ["Deny"]);
    assert_eq!(world.app.writing.composer.text(), "my drafty2");
}

/// Esc does not answer; it says what would.
#[test]
fn escape_at_a_question_says_how_to_refuse() {
    let mut world = World::new(80, 24);
    world.begin("clean up");
    world.input(Input::Phase(Phase::Blocked));
    world.ask("rm notes.txt");
    world.wait(2 * SECOND);
    world.key(Key::plain(Code::Escape));
    assert!(world.shown().contains("to refuse it, answer Deny"), "{}", world.shown());
    assert_eq!(world.take_effects(), []);
}

#[test]
fn a_paste_never_answers() {
    let mut world = World::new(80, 24);
    world.ask("rm -r build");
    world.wait(2 * SECOND);
    world.paste("y");
    world.paste("1\n");
    assert_eq!(answers(&mut world), Vec::<String>::new());
    assert_eq!(world.app.writing.composer.text(), "y1\n");
}

#[test]
fn a_denial_can_carry_a_word_and_the_draft_comes_back() {
    let mut world = World::new(80, 24);
    world.types("my draft");
    world.ask("rm -r build");
    world.wait(2 * SECOND);
    world.key(Key::plain(Code::Down));
    world.types("3");
    world.types("move it aside\n");
    assert_eq!(answers(&mut world), ["Deny: move it aside"]);
    assert_eq!(world.app.writing.composer.text(), "my draft");
}

/// A command of git is bound to the absence of every hook: that is one line. Names are those of the workspace.
#[test]
fn files_that_do_not_exist_are_counted_where_they_are_many() {
    let mut world = World::new(80, 24);
    let mut asked = permission("git push");
    let file = |path: String, hash: Option<&str>| BoundFile { path, hash: hash.map(str::to_owned) };
    let binding = asked.row.question.binding.as_mut().unwrap();
    binding.files = vec![file("/workspace/.git/config".to_owned(), Some("x"))];
    binding.files.extend((0..9).map(|n| file(format!("/workspace/.git/hooks/{n}"), None)));
    world.input(Input::Questions(vec![asked.clone()]));
    let shown = world.shown();
    assert!(shown.contains("\n  file .git/config\n"), "{shown}");
    assert!(
        shown.contains("\n  9 files that do not exist: .git/hooks/0 … .git/hooks/8\n"),
        "{shown}"
    );
    let mut world = World::new(80, 24);
    asked.row.question.binding.as_mut().unwrap().files.truncate(2);
    world.input(Input::Questions(vec![asked]));
    let shown = world.shown();
    assert!(shown.contains("\n  file .git/hooks/0 (does not exist)\n"), "{shown}");
}

/// A question leaves little room: what is queued is seen before the hint about its keys.
#[test]
fn a_queued_message_is_seen_below_a_long_question() {
    let mut world = World::new(60, 16);
    world.begin("go");
    world.input(Input::Phase(Phase::Working));
    world.types("wait for me\n");
    let lines: Vec<String> = (0..3).map(|n| format!("echo {n}")).collect();
    world.ask(&lines.join("\n"));
    let shown = world.shown();
    assert!(shown.contains("queued: wait for me"), "{shown}");
}

#[test]
fn several_questions_are_walked_through() {
    let mut world = World::new(80, 24);
    let (first, mut second) = (permission("rm a"), permission("rm b"));
    second.row.question.id = QuestionId::new(jiff::Timestamp::from_second(9).unwrap());
    world.input(Input::Questions(vec![first, second]));
    world.wait(2 * SECOND);
    assert!(world.shown().contains("1 of 2, Tab next"), "{}", world.shown());
    world.key(Key::plain(Code::Tab));
    assert!(world.shown().contains("$ rm b"), "{}", world.shown());
    world.wait(SECOND);
    world.types("n");
    world.types("y");
    assert_eq!(answers(&mut world), ["Deny"], "the second needs a quiet second of its own");
    world.key(Key::plain(Code::Backspace));
    world.wait(SECOND);
    world.types("1");
    assert_eq!(answers(&mut world), ["Allow"]);
}

/// Questions of the conversation come and go; one that was chosen from the inbox is of another.
#[test]
fn a_question_chosen_from_the_inbox_stays_until_it_is_settled() {
    let mut world = World::new(80, 24);
    world.begin("count");
    let asked = permission("rm old.txt");
    let id = asked.row.question.id;
    world.input(Input::ShowQuestion(Box::new(asked)));
    world.input(Input::Questions(Vec::new()));
    assert!(world.shown().contains("rm old.txt"), "{}", world.shown());
    let (by, text) = ("bob".to_owned(), "Deny".to_owned());
    world.input(Input::Settled { question: id, by, text });
    assert!(!world.shown().contains("rm old.txt"), "{}", world.shown());
    assert!(world.shown().contains("answered by bob: Deny"), "{}", world.shown());
}

#[test]
fn a_question_answered_elsewhere_disappears_and_says_by_whom() {
    let mut world = World::new(80, 24);
    let question = world.ask("rm -r build");
    world.input(Input::Settled { question, by: "bob".to_owned(), text: "Allow".to_owned() });
    assert!(world.app.questions.is_empty());
    assert!(world.shown().contains("answered by bob: Allow"), "{}", world.shown());
}

#[test]
fn writing_answers_a_question_without_choices() {
    let mut world = World::new(80, 24);
    world.input(Input::Phase(Phase::Blocked));
    let asked = json!({
        "id": QuestionId::new(jiff::Timestamp::UNIX_EPOCH),
        "kind": "ask_user",
        "question": "Which database?",
    });
    world.input(Input::Questions(vec![open(asked, None)]));
    world.wait(2 * SECOND);
    world.types("staging\n");
    assert_eq!(answers(&mut world), ["staging"]);
}

/// MS-025
#[test]
fn a_plan_is_accepted_with_a_key_also_to_run_autonomously() {
    let mut world = World::new(80, 30);
    world.input(Input::Questions(vec![plan("# Plan\n\n1. read\n2. write")]));
    world.wait(2 * SECOND);
    insta::assert_snapshot!(world.shown());
    world.types("3");
    assert!(world.shown().contains("what should the plan say instead?"), "{}", world.shown());
    world.key(Key::plain(Code::Escape));
    world.wait(2 * SECOND);
    world.types("2");
    assert_eq!(answers(&mut world), ["Accept and run autonomously"]);
}

/// A plan as an agent proposes it.
fn plan(text: &str) -> OpenQuestion {
    let asked = json!({
        "id": QuestionId::new(jiff::Timestamp::UNIX_EPOCH),
        "kind": "plan",
        "question": "Accept this plan?",
        "options": PLAN_OPTIONS,
        "plan": {
            "path": ".windlass/plan.md",
            "text": text,
            "digest": "x",
            "tree": "y",
            "at": jiff::Timestamp::UNIX_EPOCH,
        },
    });
    open(asked, None)
}

#[test]
fn a_long_line_of_a_plan_is_broken_between_words() {
    let mut world = World::new(40, 24);
    let text = "1. read everything that is there and remember it";
    world.input(Input::Questions(vec![plan(text)]));
    let shown = world.shown();
    let rows = "  │ 1. read everything that is there\n  ┊ and remember it\n";
    assert!(shown.contains(rows), "{shown}");
}

#[test]
fn comments_on_lines_of_a_plan_become_the_answer() {
    let mut world = World::new(80, 30);
    world.input(Input::Questions(vec![plan("# Plan\n\n1. read\n2. write")]));
    world.wait(2 * SECOND);
    world.types("c");
    // The empty line is passed over.
    world.key(Key::plain(Code::Down));
    assert!(world.shown().contains("❯ │ 1. read"), "{}", world.shown());
    world.types("\nwhich file?\n");
    world.key(Key::plain(Code::Down));
    world.types("\nand test\n");
    world.key(Key::plain(Code::Escape));
    assert!(world.shown().contains("» which file?"), "{}", world.shown());
    assert!(world.shown().contains("3. Revise, with your 2 comments"), "{}", world.shown());
    assert_eq!(answers(&mut world), Vec::<String>::new());
    world.wait(2 * SECOND);
    world.types("3");
    let wanted = "Revise: > 1. read\nwhich file?\n\n> 2. write\nand test";
    assert_eq!(answers(&mut world), [wanted]);
}

/// What was said to lines survives a restart, and a question that somebody else has answered.
#[test]
fn comments_on_a_plan_are_never_lost() {
    let asked = plan("1. read\n2. write");
    let mut world = World::new(80, 30);
    world.input(Input::Questions(vec![asked.clone()]));
    world.wait(2 * SECOND);
    world.types("c\nwhich file?\n");
    let saved = SavedDrafts::of(&world.app);
    let mut later = World::new(80, 30);
    later.input(Input::Questions(vec![asked]));
    saved.clone().restore(&mut later.app, false);
    assert!(later.shown().contains("» which file?"), "{}", later.shown());
    let mut without = World::new(80, 30);
    saved.restore(&mut without.app, false);
    assert!(without.app.writing.history.search("which file?", 0).is_some());
    world.input(Input::Questions(Vec::new()));
    assert!(world.app.writing.history.search("which file?", 0).is_some());
}

/// Every line of a long plan comes into sight, in any window.
#[test]
fn the_line_that_is_commented_on_is_in_sight() {
    let text: String = (1..=60).map(|n| format!("{n}. step of the plan\n")).collect();
    for (columns, rows) in [(20, 6), (60, 12), (120, 24)] {
        let mut world = World::new(columns, rows);
        world.input(Input::Questions(vec![plan(&text)]));
        world.wait(2 * SECOND);
        world.types("c");
        for n in 1..=60 {
            assert!(world.shown().contains(&format!("│ {n}. step")), "{}", world.shown());
            world.key(Key::plain(Code::Down));
        }
    }
}

#[test]
fn a_question_is_headed_once_while_it_is_open() {
    let mut world = World::new(80, 24);
    let task = world.begin("clean up");
    let asked = permission("rm -r build");
    let question = serde_json::to_value(&asked.row.question).unwrap();
    world.record(task, event("question_asked", question));
    let id = asked.row.question.id;
    world.input(Input::Questions(vec![asked]));
    assert_eq!(world.all().matches("Run this command?").count(), 1, "{}", world.all());
    let answer = json!({ "by": "ada", "text": "Allow", "at": jiff::Timestamp::UNIX_EPOCH });
    world.record(task, event("question_answered", json!({ "question": id, "answer": answer })));
    world.input(Input::Questions(Vec::new()));
    assert_eq!(world.all().matches("? Run this command?").count(), 1, "{}", world.all());
    assert!(world.all().contains("  → Allow"), "{}", world.all());
}

#[test]
fn an_edited_plan_becomes_the_answer_in_words() {
    let mut world = World::new(80, 30);
    world.input(Input::Questions(vec![plan("1. read")]));
    world.wait(2 * SECOND);
    world.types("e");
    assert_eq!(world.take_effects(), [Effect::Edit("1. read".to_owned())]);
    world.input(Input::Edited(Some("1. read\n   # and tests?".to_owned())));
    world.wait(2 * SECOND);
    world.key(Key::plain(Code::Enter));
    assert_eq!(answers(&mut world), ["Revise: 1. read\n   # and tests?"]);
}

#[test]
fn everything_that_is_approved_can_be_seen_in_a_small_window() {
    let mut world = World::new(40, 10);
    let command: String = (0..20).map(|n| format!("rm -r part{n}\n")).collect();
    world.ask(&command);
    world.wait(2 * SECOND);
    let mut seen = String::new();
    for _ in 0..30 {
        seen += &world.shown();
        world.key(Key::plain(Code::PageDown));
    }
    for n in 0..20 {
        assert!(seen.contains(&format!("rm -r part{n}")), "part{n} was never seen:\n{seen}");
    }
}

/// In a window that has no room for all choices, the one that Enter takes is named whole.
#[test]
fn a_small_window_names_the_choice_that_enter_takes() {
    let mut world = World::new(20, 6);
    world.ask("rm -r build");
    world.wait(SECOND);
    assert!(world.shown().contains("❯ 1/4 Allow\n"), "{}", world.shown());
    world.key(Key::plain(Code::Down));
    assert!(world.shown().contains("❯ 2/4 Deny\n"), "{}", world.shown());
    world.key(Key::plain(Code::Enter));
    assert_eq!(answers(&mut world), ["Deny"]);
}

/// A second question has not been read while the first one was in sight.
#[test]
fn a_question_that_becomes_visible_waits_a_second_of_its_own() {
    let two = || vec![permission("rm -r build"), permission("rm -r /")];
    type Comes = fn(&mut World);
    let comes: [(&str, Comes); 4] = [
        ("answered elsewhere", |world| {
            let question = world.app.questions.first().unwrap().id();
            let (by, text) = ("bo".to_owned(), "Deny".to_owned());
            world.input(Input::Settled { question, by, text });
        }),
        ("turned to", |world| world.key(Key::plain(Code::Tab))),
        ("answered here", |world| world.types("n")),
        ("shown again by a larger window", |world| {
            world.input(Input::Resize(Size { columns: 80, rows: 1 }));
            world.wait(2 * SECOND);
            world.input(Input::Resize(Size { columns: 80, rows: 24 }));
        }),
    ];
    for (how, come) in comes {
        let mut world = World::new(80, 24);
        world.input(Input::Questions(two()));
        world.wait(2 * SECOND);
        come(&mut world);
        answers(&mut world);
        world.wait(SECOND - Duration::from_millis(1));
        world.types("y");
        world.key(Key::plain(Code::Backspace));
        assert_eq!(answers(&mut world), Vec::<String>::new(), "{how}");
        world.wait(SECOND);
        world.types("y");
        assert_eq!(answers(&mut world), ["Allow"], "{how}");
    }
}

/// Several keys in one read were typed ahead or are a paste.
#[test]
fn keys_that_come_at_once_answer_nothing() {
    let mut world = World::new(80, 24);
    world.ask("rm -r build");
    world.wait(2 * SECOND);
    world.input(Input::Burst);
    world.types("yes");
    assert_eq!(answers(&mut world), Vec::<String>::new());
    assert_eq!(world.app.writing.composer.text(), "yes");
}

/// The question may be another one after a crash; the words are in the history.
#[test]
fn words_to_a_question_survive_a_crash() {
    let mut world = World::new(80, 24);
    world.types("my draft");
    world.ask("rm -r build");
    world.wait(2 * SECOND);
    world.key(Key::plain(Code::Down));
    world.types("3");
    world.types("move it aside");
    let mut later = World::new(80, 24);
    SavedDrafts::of(&world.app).restore(&mut later.app, false);
    assert_eq!(later.app.writing.composer.text(), "my draft");
    assert!(later.app.writing.history.search("move it aside", 0).is_some());
}

/// Enter edits the message, takes what was found or completes the word: it answers nothing, however long it waits.
#[test]
fn keys_for_the_queue_a_search_or_a_list_answer_nothing() {
    let of = |text: &str| text.chars().map(|char| Key::plain(Code::Char(char))).collect();
    let opened: [(&str, Vec<Key>); 3] = [
        ("❯ a queued message", vec![Key::alt(Code::Up)]),
        ("history: ", vec![Key::ctrl('r')]),
        ("❯ /diff", of("/dif")),
    ];
    for (seen, keys) in opened {
        for key in [Key::plain(Code::Enter), Key::plain(Code::Char('1')), Key::plain(Code::Down)] {
            let mut world = World::new(80, 24);
            world.input(Input::Commands(Command::of_terminal().collect()));
            world.begin("clean up");
            world.input(Input::Phase(Phase::Blocked));
            world.types("a queued message\n");
            world.ask("rm -r build");
            world.wait(2 * SECOND);
            keys.iter().for_each(|key| world.key(*key));
            world.wait(2 * SECOND);
            let shown = world.shown();
            assert!(shown.contains(seen) && shown.contains("then answer"), "{shown}");
            world.key(key);
            assert_eq!(answers(&mut world), Vec::<String>::new(), "{key:?} with {seen}");
        }
    }
}
