//! Writing: editing, pastes, history, completion.

use windlass_coordinator::files;
use windlass_tui::app::{Effect, Input, OwnCommand, Phase, SavedDrafts};
use windlass_tui::completion::Command;
use windlass_tui::composer::Draft;
use windlass_tui::dialog::QUIET;
use windlass_tui::keys::{Code, Key};
use windlass_tui::state_files::StateFiles;

use crate::world::World;

pub fn sent(effects: &[Effect]) -> Vec<String> {
    let text = |effect: &Effect| match effect {
        Effect::Send(draft) => Some(draft.expanded()),
        _ => None,
    };
    effects.iter().filter_map(text).collect()
}

#[test]
fn enter_sends_and_every_newline_key_breaks_the_line() {
    let mut world = World::new(80, 24);
    world.types("a");
    world.key(Key::shift(Code::Enter));
    world.types("b");
    world.key(Key::alt(Code::Enter));
    world.types("c");
    world.key(Key::ctrl('j'));
    world.types("d\\\ne\n");
    assert_eq!(sent(&world.take_effects()), ["a\nb\nc\nd\ne"]);
}

#[test]
fn a_large_paste_is_a_placeholder_and_sent_whole() {
    let mut world = World::new(80, 24);
    let text: String = (0..30).map(|n| format!("line {n}\n")).collect();
    world.types("look: ");
    world.paste(&text);
    world.paste(&text);
    insta::assert_snapshot!(world.shown().lines().find(|l| l.starts_with('❯')).unwrap(),
        @"❯ look: [pasted text 1: 30 lines][pasted text 2: 30 lines]");
    world.key(Key::ctrl('w'));
    world.types("\n");
    assert_eq!(sent(&world.take_effects()), [format!("look: {text}")]);
}

#[test]
fn an_unfolded_paste_can_be_edited() {
    let mut world = World::new(80, 24);
    world.paste(&"x\n".repeat(12));
    world.key(Key::ctrl('o'));
    world.types("end\n");
    assert_eq!(sent(&world.take_effects()), [format!("{}end", "x\n".repeat(12))]);
}

#[test]
fn a_cleared_draft_comes_back_from_the_history() {
    let mut world = World::new(80, 24);
    world.types("important");
    world.key(Key::ctrl('c'));
    assert!(world.app.writing.composer.is_empty());
    world.key(Key::plain(Code::Up));
    assert_eq!(world.app.writing.composer.text(), "important");
}

#[test]
fn history_is_searched_and_the_draft_survives() {
    let mut world = World::new(80, 24);
    for text in ["fix the parser\n", "write docs\n"] {
        world.types(text);
        world.app.outgoing.sending = None;
    }
    world.types("half");
    world.key(Key::ctrl('r'));
    world.types("pars");
    assert_eq!(world.app.writing.composer.text(), "fix the parser");
    world.key(Key::plain(Code::Escape));
    assert_eq!(world.app.writing.composer.text(), "half");
}

#[test]
fn a_message_that_was_not_sent_comes_back() {
    let mut world = World::new(80, 24);
    world.types("hello\n");
    world.take_effects();
    let why = "no model is configured".to_owned();
    world.input(Input::NotSent { draft: Draft::of("hello"), why });
    assert_eq!(world.app.writing.composer.text(), "hello");
    assert!(world.all().contains("not sent: no model is configured"), "{}", world.all());
}

#[test]
fn files_are_completed_by_their_letters() {
    let mut world = World::new(80, 24);
    world.types("see @");
    assert_eq!(world.take_effects(), [Effect::IndexFiles]);
    let files = ["src/main.rs", "src/parser.rs", "docs/parse.md"].map(str::to_owned);
    world.input(Input::Files(files.to_vec()));
    world.types("psr");
    world.key(Key::plain(Code::Tab));
    assert_eq!(world.app.writing.composer.text(), "see @src/parser.rs ");
}

#[test]
fn a_command_is_found_by_a_later_word_of_its_name() {
    let mut world = World::new(80, 24);
    let table = windlass_coordinator::slash::TABLE.iter().map(Command::of);
    world.input(Input::Commands(table.collect()));
    world.types("/prof");
    world.key(Key::plain(Code::Tab));
    assert_eq!(world.app.writing.composer.text(), "/permission-profile ");
    let mut world = World::new(80, 24);
    let table = windlass_coordinator::slash::TABLE.iter().map(Command::of);
    world.input(Input::Commands(table.collect()));
    world.types("/re");
    let shown = world.shown();
    let names: Vec<&str> = shown.lines().filter_map(|line| line.split('/').nth(1)).collect();
    let (begin, within): (Vec<&str>, Vec<&str>) =
        names[..names.len() - 1].iter().copied().partition(|name| name.starts_with("re"));
    assert!(!begin.is_empty() && names.starts_with(&begin), "{shown}");
    assert!(within.iter().all(|name| name.contains("-re")), "{shown}");
}

/// Enter completes what was begun. What is only offered behind it is not taken: it could be `--autonomous`.
#[test]
fn enter_sends_a_command_whose_further_arguments_are_only_offered() {
    let with_commands = || {
        let mut world = World::new(80, 24);
        let table = windlass_coordinator::slash::TABLE.iter().map(Command::of);
        world.input(Input::Commands(table.collect()));
        world
    };
    let mut world = with_commands();
    world.types("/mode pl");
    world.key(Key::plain(Code::Tab));
    assert!(world.shown().contains("❯ --autonomous"), "{}", world.shown());
    world.key(Key::plain(Code::Enter));
    assert_eq!(world.take_effects(), [Effect::Slash("/mode plan".to_owned())]);
    let mut world = with_commands();
    world.types("/mode pl\n\n");
    assert_eq!(world.take_effects(), [Effect::Slash("/mode plan".to_owned())]);
    // What was chosen is taken.
    let mut world = with_commands();
    world.types("/mode plan ");
    world.key(Key::plain(Code::Down));
    world.key(Key::plain(Code::Up));
    world.types("\n\n");
    assert_eq!(world.take_effects(), [Effect::Slash("/mode plan --autonomous".to_owned())]);
    // A whole word is sent, also where others begin with it.
    for line in ["/help mode", "/plan", "/model"] {
        let mut world = with_commands();
        world.types(&format!("{line}\n"));
        assert_eq!(world.take_effects(), [Effect::Slash(line.to_owned())], "{line}");
    }
}

#[test]
fn a_path_outside_the_project_is_completed_from_its_directory() {
    let mut world = World::new(80, 24);
    world.types("see @");
    assert_eq!(world.take_effects(), [Effect::IndexFiles]);
    world.types("~/pi");
    assert_eq!(world.take_effects(), [Effect::ListPlace("~/".to_owned())]);
    let names = [".pics/", "notes.txt", "pictures/"].map(str::to_owned).to_vec();
    world.input(Input::Place { place: "~/".to_owned(), names });
    world.key(Key::plain(Code::Tab));
    assert_eq!(world.app.writing.composer.text(), "see @~/pictures/");
    assert_eq!(world.take_effects(), [Effect::ListPlace("~/pictures/".to_owned())]);
    let names = vec!["shot.png".to_owned()];
    world.input(Input::Place { place: "~/pictures/".to_owned(), names });
    world.key(Key::plain(Code::Tab));
    assert_eq!(world.app.writing.composer.text(), "see @~/pictures/shot.png ");
    for place in ["/tmp/", "../", "./"] {
        world.take_effects();
        world.types(&format!("@{place}"));
        let listed = Effect::ListPlace(place.to_owned());
        assert!(world.take_effects().contains(&listed), "{place}");
        world.types("x ");
    }
}

#[test]
fn a_command_of_the_person_is_seen_and_cancelled_before_the_turn() {
    let mut world = World::new(80, 24);
    let (command, time) = ("make test".to_owned(), std::time::Duration::from_secs(67));
    let last_line = Some("step 3".to_owned());
    let own = OwnCommand { command, time, last_line, is_stopping: false };
    world.input(Input::Phase(Phase::Working));
    world.input(Input::OwnCommands(vec![own]));
    let shown = world.shown();
    assert!(shown.contains("• ! make test 1:07 · Esc cancels\n  step 3"), "{shown}");
    world.key(Key::plain(Code::Escape));
    assert_eq!(world.take_effects(), [Effect::StopShell]);
    assert!(world.shown().contains("1:07 · stopping"), "{}", world.shown());
    world.key(Key::plain(Code::Escape));
    assert_eq!(world.take_effects(), [Effect::Interrupt]);
    world.input(Input::OwnCommands(Vec::new()));
    assert!(!world.shown().contains("make test"), "{}", world.shown());
}

#[test]
fn a_hundred_thousand_files_are_searched() {
    let names: Vec<String> =
        (0..100_000).map(|n| format!("crates/part{n}/src/file{n}.rs")).collect();
    assert_eq!(files::best(&names, "file77777", 3)[0], "crates/part77777/src/file77777.rs");
    assert_eq!(files::best(&names, "nosuchname", 3), Vec::<&str>::new());
}

#[test]
fn ignored_files_are_not_offered_unless_they_are_pictures() {
    let directory = tempfile::tempdir().unwrap();
    let ignored = ("target/x.o", "");
    for (name, text) in [(".gitignore", "target\n*.png\n"), ("a.rs", ""), ignored, ("b.png", "")] {
        let path = directory.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    assert_eq!(files::list(directory.path()), [".gitignore", "a.rs", "b.png"]);
    assert_eq!(files::entries(directory.path()), [".gitignore", "a.rs", "b.png", "target/"]);
}

/// An agent could put it there, and so hold up every search for a file.
#[test]
fn a_pipe_in_place_of_ignore_rules_holds_no_search_up() {
    let directory = tempfile::tempdir().unwrap();
    let inside = |name: &str| directory.path().join(name);
    std::fs::create_dir_all(inside("sub")).unwrap();
    std::fs::write(inside("a.rs"), "").unwrap();
    let pipe = |name: &str| {
        let mode = rustix::fs::Mode::from_raw_mode(0o644);
        let kind = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(rustix::fs::CWD, inside(name), kind, mode, 0).unwrap();
    };
    pipe("sub/.gitignore");
    std::fs::write(inside("sub/b.rs"), "").unwrap();
    assert_eq!(files::list(directory.path()), ["a.rs"]);
    pipe(".ignore");
    assert_eq!(files::list(directory.path()), [".ignore", "a.rs"]);
}

#[test]
fn leaving_takes_two_presses_and_offers_the_background() {
    let mut world = World::new(80, 24);
    world.input(Input::Phase(Phase::Working));
    world.key(Key::ctrl('c'));
    assert_eq!(world.take_effects(), []);
    world.key(Key::ctrl('c'));
    assert!(
        world.shown().contains("b  leave; it continues in the background"),
        "{}",
        world.shown()
    );
    world.key(Key::plain(Code::Char('b')));
    let leave = Effect::Leave(windlass_tui::app::Leaving::Background);
    assert_eq!(world.take_effects(), [leave]);
    // While the running step ends, nothing is asked that was answered.
    assert!(!world.shown().contains("it continues in the background"), "{}", world.shown());
}

#[test]
fn the_end_of_input_leaves_only_where_nothing_is_written() {
    let mut world = World::new(80, 24);
    world.types("ab");
    world.key(Key::plain(Code::Left));
    world.key(Key::ctrl('d'));
    assert_eq!((world.take_effects(), world.app.writing.composer.text()), (vec![], "a"));
    world.key(Key::ctrl('d'));
    assert_eq!(world.take_effects(), []);
    world.key(Key::plain(Code::Backspace));
    world.key(Key::ctrl('d'));
    assert_eq!(world.take_effects(), [Effect::Leave(windlass_tui::app::Leaving::Park)]);
}

#[test]
fn a_path_is_a_message_and_a_command_is_not() {
    let mut world = World::new(80, 24);
    world.types("/etc/hosts is wrong\n");
    assert_eq!(sent(&world.take_effects()), ["/etc/hosts is wrong"]);
    world.app.outgoing.sending = None;
    world.types("/status\n");
    assert_eq!(world.take_effects(), [Effect::Slash("/status".to_owned())]);
    world.types("!ls -l\n");
    assert_eq!(world.take_effects(), [Effect::Shell("ls -l".to_owned())]);
}

/// The rows of the text as they are drawn.
fn written(world: &mut World) -> Vec<String> {
    let shown = world.shown();
    let rows = shown.lines().skip_while(|line| !line.starts_with('❯'));
    rows.take_while(|line| !line.starts_with("ready")).map(str::to_owned).collect()
}

#[test]
fn rows_of_the_text_are_broken_between_words() {
    let mut world = World::new(30, 24);
    world.types("please look at the totals of the shop again ");
    assert_eq!(written(&mut world), ["❯ please look at the totals", "  of the shop again"]);
    world.types(&"x".repeat(40));
    let long = format!("  {}", "x".repeat(27));
    assert_eq!(written(&mut world)[2..], [long, format!("  {}", "x".repeat(13))]);
    world.key(Key::ctrl('w'));
    world.types("日本語の長い文字列もここで折り返します");
    let rows = written(&mut world);
    assert_eq!(
        rows[1..],
        ["  of the shop again 日本語の", "  長い文字列もここで折り返し", "  ます"]
    );
}

#[test]
fn the_cursor_goes_up_and_down_rows_broken_between_words() {
    let mut world = World::new(30, 24);
    world.types("please look at the totals of the shop again");
    world.key(Key::plain(Code::Up));
    world.types("!");
    let text = "please look at th!e totals of the shop again";
    assert_eq!(world.app.writing.composer.text(), text);
    world.key(Key::plain(Code::Down));
    world.types("?");
    assert_eq!(world.app.writing.composer.text(), format!("{text}?"));
}

#[test]
fn a_message_sent_twice_is_in_the_history_once() {
    let mut world = World::new(80, 24);
    for text in ["first\n", "again\n", "again\n"] {
        world.types(text);
        world.app.outgoing.sending = None;
    }
    world.key(Key::plain(Code::Up));
    assert_eq!(world.app.writing.composer.text(), "again");
    world.key(Key::plain(Code::Up));
    assert_eq!(world.app.writing.composer.text(), "first");
}

/// A draft that is as long as a draft can be is not lost by Ctrl+C either, and is written to the file.
#[test]
fn a_long_draft_that_is_cleared_is_kept() {
    let mut world = World::new(80, 24);
    let text = "a line of a long draft\n".repeat(8_000);
    world.paste(&text);
    world.key(Key::ctrl('c'));
    assert!(world.app.writing.composer.is_empty());
    let kept = Effect::Remember(text.clone());
    assert!(std::mem::take(&mut world.effects).contains(&kept));
    world.key(Key::plain(Code::Up));
    assert_eq!(world.app.writing.composer.draft().expanded(), text);
}

/// What has arrived is not offered again, whatever was attached to it on its way.
#[test]
fn a_message_that_arrived_before_a_crash_is_not_offered_again() {
    let mut world = World::new(80, 24);
    world.types("hello\n");
    world.types("and then");
    let saved = SavedDrafts::of(&world.app);
    let mut later = World::new(80, 24);
    saved.restore(&mut later.app, true);
    assert_eq!(later.app.writing.composer.text(), "and then");
    assert!(later.app.outgoing.queue.is_empty());
}

/// A paste that is folded is one character of the text: what is behind it is no command and names no file.
#[test]
fn a_folded_paste_is_never_a_command() {
    for first in ["!rm -r build", "/stop", "/quit"] {
        let mut world = World::new(80, 24);
        world.paste(&format!("{first}\n{}", "line @src\n".repeat(20)));
        let draft = world.app.writing.composer.draft().clone();
        assert_eq!(draft.own_words().trim(), "");
        world.key(Key::plain(Code::Enter));
        assert_eq!(world.take_effects(), [Effect::Send(draft)], "{first}");
    }
    let mut world = World::new(80, 24);
    world.types("/");
    world.paste(&"stop\n".repeat(20));
    world.key(Key::plain(Code::Enter));
    assert!(matches!(world.take_effects().as_slice(), [Effect::Send(_)]));
    // Who writes the sign themselves means it.
    world.types("!");
    world.paste(&"true\n".repeat(20));
    world.key(Key::plain(Code::Enter));
    assert!(matches!(world.take_effects().as_slice(), [Effect::Shell(_)]));
}

#[test]
fn a_draft_survives_a_change_to_an_older_message() {
    let mut world = World::new(80, 24);
    world.types("from before\n");
    world.types("my draft");
    world.key(Key::plain(Code::Up));
    assert_eq!(world.app.writing.composer.text(), "from before");
    let mut later = World::new(80, 24);
    SavedDrafts::of(&world.app).restore(&mut later.app, true);
    assert_eq!(later.app.writing.composer.text(), "my draft");
    world.types("!");
    assert!(world.shown().contains("your draft is put aside"), "{}", world.shown());
    world.key(Key::ctrl('q'));
    assert_eq!(world.app.writing.composer.text(), "my draft");
}

#[test]
fn a_search_in_the_history_keeps_what_was_put_aside() {
    let mut world = World::new(80, 24);
    world.types("from before\n");
    world.types("first draft");
    world.key(Key::ctrl('q'));
    world.types("second draft");
    world.key(Key::ctrl('r'));
    world.types("before\n");
    assert_eq!(world.app.writing.composer.text(), "from before");
    world.key(Key::ctrl('q'));
    assert_eq!(world.app.writing.composer.text(), "second draft");
    assert!(world.app.writing.history.search("first draft", 0).is_some());
}

#[test]
fn an_editor_that_closes_during_a_search_ends_the_search() {
    let mut world = World::new(80, 24);
    world.types("from before\n");
    world.types("a draft");
    world.key(Key::ctrl('r'));
    world.input(Input::Edited(Some("what the editor saved\n".to_owned())));
    world.key(Key::plain(Code::Escape));
    assert_eq!(world.app.writing.composer.text(), "what the editor saved");
}

#[test]
fn a_question_that_goes_during_a_search_gives_the_draft_back() {
    let mut world = World::new(80, 24);
    world.types("from before\n");
    world.types("a draft");
    world.ask("rm x");
    world.wait(2 * QUIET);
    world.key(Key::plain(Code::Down));
    world.types("3");
    world.wait(2 * QUIET);
    world.types("not this file");
    world.key(Key::ctrl('r'));
    world.input(Input::Questions(Vec::new()));
    world.key(Key::plain(Code::Escape));
    assert_eq!(world.app.writing.composer.text(), "a draft");
    assert!(world.app.writing.history.search("not this file", 0).is_some());
}

/// What a command printed goes with the next message that arrives.
#[test]
fn a_message_that_is_not_sent_gives_back_what_was_run() {
    let mut world = World::new(80, 24);
    let (command, printed) = ("ls".to_owned(), "a.txt".to_owned());
    world.input(Input::Ran { command, printed });
    assert!(world.app.writing.ran.send_with("look".to_owned()).contains("a.txt"));
    let mut later = World::new(80, 24);
    SavedDrafts::of(&world.app).restore(&mut later.app, false);
    assert!(later.app.writing.ran.send_with("look".to_owned()).contains("a.txt"));
    world.input(Input::NotSent { draft: Draft::of("look"), why: "no".to_owned() });
    assert!(world.app.writing.ran.send_with("look".to_owned()).contains("a.txt"));
    world.input(Input::Sent);
    assert_eq!(world.app.writing.ran.send_with("and?".to_owned()), "and?");
}

/// Files come and go: each new word looks for them again.
#[test]
fn a_new_word_looks_for_files_again() {
    let mut world = World::new(80, 24);
    world.types("@");
    assert_eq!(world.take_effects(), [Effect::IndexFiles]);
    world.input(Input::Files(vec!["old.rs".to_owned()]));
    world.types("ol");
    assert_eq!(world.take_effects(), []);
    world.types("d.rs and @");
    assert_eq!(world.take_effects(), [Effect::IndexFiles]);
    assert!(world.shown().contains("old.rs"), "{}", world.shown());
}

/// Two terminals in one directory write to files of their own; what one that has gone left is found by the next.
#[test]
fn each_terminal_in_a_directory_has_a_draft_of_its_own() {
    let directory = tempfile::tempdir().unwrap();
    let files = StateFiles::open(directory.path()).unwrap();
    let (first, second) = (files.claim("/shop"), files.claim("/shop"));
    assert_ne!(first.name, second.name);
    let mut world = World::new(80, 24);
    world.types("of the second");
    files.save(&second.name, &SavedDrafts::of(&world.app)).unwrap();
    assert!(files.drafts(&first.name).is_empty());
    drop((first, second));
    let next = files.claim("/shop");
    let mut later = World::new(80, 24);
    files.drafts(&next.name).restore(&mut later.app, false);
    assert_eq!(later.app.writing.composer.text(), "of the second");
    assert_ne!(files.claim("/shop").name, next.name);
}

#[test]
fn directories_with_similar_names_have_drafts_of_their_own() {
    let directory = tempfile::tempdir().unwrap();
    let files = StateFiles::open(directory.path()).unwrap();
    let mut world = World::new(80, 24);
    world.types("for one of them");
    let _first = files.claim("/shop/old");
    let second = files.claim("/shop/old");
    files.save(&second.name, &SavedDrafts::of(&world.app)).unwrap();
    for other in ["/shop-old", "/shop/old_1", "/shop old", "/shop/old-1", "/shop.old"] {
        let claim = files.claim(other);
        assert!(files.drafts(&claim.name).is_empty(), "{other}");
    }
    assert!(!files.drafts(&second.name).is_empty());
}

/// Also a paste that is too small for a placeholder; what is typed before it may be a command.
#[test]
fn pasted_text_is_never_a_command_and_attaches_nothing() {
    for text in ["/mode plan", "!rm notes.txt", "/quit"] {
        let mut world = World::new(80, 24);
        world.paste(text);
        world.types(" is what it says\n");
        let effects = world.take_effects();
        assert_eq!(sent(&effects), [format!("{text} is what it says")], "{effects:?}");
    }
    let mut world = World::new(80, 24);
    world.types("see @a and ");
    world.paste("ada@example.com @b");
    world.types("@c ");
    world.key(Key::plain(Code::Home));
    world.types("so: ");
    let own = world.app.writing.composer.draft().own_words();
    assert!(own.starts_with("so: see @a and ") && own.ends_with("@c "), "{own:?}");
    assert!(!own.contains("@b") && !own.contains("ada"), "{own:?}");
    let mut world = World::new(80, 24);
    world.types("!");
    world.paste("ls");
    world.types("\n");
    assert_eq!(world.take_effects(), [Effect::Shell("ls".to_owned())]);
}

/// A name with spaces is put into quotes, so that it is attached as one.
#[test]
fn a_file_with_spaces_is_completed_in_quotes() {
    let mut world = World::new(80, 24);
    world.input(Input::Files(vec!["my notes.txt".to_owned()]));
    world.types("see @not");
    world.key(Key::plain(Code::Tab));
    assert_eq!(world.app.writing.composer.text(), "see @\"my notes.txt\" ");
}

#[test]
fn a_directory_with_spaces_is_completed_further_in_its_quotes() {
    let mut world = World::new(80, 24);
    let names = ["my dir/", "my dir/first one.txt", "my dir/second.txt", "other.txt"];
    world.input(Input::Files(names.map(str::to_owned).to_vec()));
    world.types("see @my");
    world.key(Key::plain(Code::Tab));
    assert_eq!(world.app.writing.composer.text(), "see @\"my dir/");
    world.types("fir");
    world.key(Key::plain(Code::Tab));
    assert_eq!(world.app.writing.composer.text(), "see @\"my dir/first one.txt\" ");
    // A quote that is closed is no longer completed in.
    world.types("and @sec");
    world.key(Key::plain(Code::Tab));
    let text = "see @\"my dir/first one.txt\" and @\"my dir/second.txt\" ";
    assert_eq!(world.app.writing.composer.text(), text);
    // Chosen once more, it is the directory itself.
    world.types("in @my d");
    world.key(Key::plain(Code::Backspace));
    world.key(Key::plain(Code::Backspace));
    world.key(Key::plain(Code::Tab));
    world.key(Key::plain(Code::Enter));
    assert!(world.app.writing.composer.text().ends_with("in @\"my dir/\" "));
}

#[test]
fn a_command_of_the_terminal_says_that_nothing_follows_it() {
    let mut world = World::new(80, 24);
    world.types("/diff main\n");
    assert!(world.take_effects().is_empty());
    assert!(world.shown().contains("nothing can follow `/diff`"), "{}", world.shown());
    world.key(Key::plain(Code::Up));
    assert_eq!(world.app.writing.composer.text(), "/diff main");
}
