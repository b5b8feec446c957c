//! How every view looks, at each size.

use std::time::Duration;

use serde_json::json;
use windlass_coordinator::{Preview, PreviewContent, StreamEvent};
use windlass_core::axes::{PermissionProfile, RunControl, WorkMode};
use windlass_core::id::{CallId, TaskId};
use windlass_core::role::Role;
use windlass_tui::app::{Input, Phase, SessionFacts};
use windlass_tui::completion::Command;
use windlass_tui::keys::{Code, Key};
use windlass_tui::overlay::{
    Conversations, DiffOf, Item, List, Overlay, Page, PageLine, Target, ViewKind,
};

use crate::world::{World, axes, call, event};

const SIZES: [(usize, usize); 5] = [(20, 6), (60, 16), (80, 24), (120, 30), (200, 40)];

/// The same at every size, one below the other.
fn at_every_size(play: impl Fn(&mut World)) -> String {
    let look = |(columns, rows): (usize, usize)| {
        let mut world = World::new(columns, rows);
        play(&mut world);
        format!("{columns}×{rows}\n{}\n", world.shown())
    };
    SIZES.map(look).join("\n")
}

fn work(world: &mut World) -> TaskId {
    let task = world.begin("The test in test.sh fails. Find out why and fix it.");
    world.input(Input::Phase(Phase::Working));
    world.record(
        task,
        event(
            "llm_request",
            json!({
                "model": "test/model", "messages": 2, "estimated_tokens": 900, "hash": "x",
            }),
        ),
    );
    world.reply(task, "I look at the **test** first, then at `total.sh`.");
    let id = CallId::new(jiff::Timestamp::UNIX_EPOCH);
    world.record(task, call(id, "sh test.sh"));
    world.wait(Duration::from_secs(3));
    task
}

#[test]
fn a_new_conversation() {
    insta::assert_snapshot!(at_every_size(|_| {}));
}

#[test]
fn work_in_progress_with_a_queue() {
    insta::assert_snapshot!(at_every_size(|world| {
        work(world);
        world.types("then write a test\n");
        world.types("and a note");
    }));
}

#[test]
fn a_question() {
    insta::assert_snapshot!(at_every_size(|world| {
        work(world);
        world.input(Input::Phase(Phase::Blocked));
        world.ask("rm -r build/output && rm notes.txt");
        world.wait(Duration::from_secs(2));
    }));
}

#[test]
fn a_question_before_its_keys_count() {
    insta::assert_snapshot!(at_every_size(|world| {
        world.ask("rm -r build/output");
    }));
}

#[test]
fn a_list_of_files() {
    insta::assert_snapshot!(at_every_size(|world| {
        world.types("see @");
        let name = |n: usize| format!("src/a/rather/long/path/of/file{n}.rs");
        world.input(Input::Files((0..20).map(name).collect()));
        world.key(Key::plain(Code::Down));
    }));
}

#[test]
fn leaving_while_it_works() {
    insta::assert_snapshot!(at_every_size(|world| {
        work(world);
        world.key(Key::ctrl('c'));
        world.key(Key::ctrl('c'));
    }));
}

#[test]
fn a_list_of_tasks() {
    insta::assert_snapshot!(at_every_size(|world| {
        let item = |n: i64| Item {
            target: Target::Task(TaskId::new(jiff::Timestamp::from_second(n).unwrap())),
            line: format!("7K2M{n:03} running       3m  $0.0123  fix the flaky test number {n}"),
            preview: vec![format!("task {n}"), "next: it works; Enter watches it".to_owned()],
        };
        let list = List::new(ViewKind::Tasks, "tasks", (1..=30).map(item).collect());
        world.input(Input::Loaded(Box::new(Overlay::List(list))));
        world.key(Key::plain(Code::Down));
    }));
}

#[test]
fn a_page_of_text() {
    insta::assert_snapshot!(at_every_size(|world| {
        let lines = (0..100)
            .map(|n| PageLine::of(format!("{n} a line that may be too long for this terminal")));
        let page = Page::new(ViewKind::Help, "keys", lines.collect());
        world.input(Input::Loaded(Box::new(Overlay::Page(page))));
    }));
}

#[test]
fn a_plan_with_a_comment_on_a_line() {
    insta::assert_snapshot!(at_every_size(|world| {
        world.input(Input::Questions(vec![plan()]));
        world.wait(Duration::from_secs(2));
        world.types("c");
        world.key(Key::plain(Code::Down));
        world.types("\nfirst the tests");
    }));
}

fn plan() -> windlass_coordinator::views::OpenQuestion {
    let question = json!({
        "id": windlass_core::id::QuestionId::new(jiff::Timestamp::UNIX_EPOCH),
        "kind": "plan",
        "question": "Accept this plan?",
        "options": ["Accept", "Accept and run autonomously", "Revise"],
        "context": "# Plan\n\n1. Read `total.sh`\n2. Fix the sum\n3. Run the test\n",
    });
    crate::world::open(question, None)
}

#[test]
fn a_question_of_the_agent_and_its_answer() {
    insta::assert_snapshot!(at_every_size(|world| {
        let question = json!({
            "id": windlass_core::id::QuestionId::new(jiff::Timestamp::UNIX_EPOCH),
            "kind": "ask_user",
            "question": "Which of the two formats should the report have?",
            "options": ["CSV", "JSON"],
        });
        world.input(Input::Questions(vec![crate::world::open(question, None)]));
        world.wait(Duration::from_secs(2));
        world.types("3");
        world.types("both, one after the other");
    }));
}

#[test]
fn the_queue_while_it_is_edited() {
    insta::assert_snapshot!(at_every_size(|world| {
        work(world);
        world.types("write a test\n");
        world.types("then a note\n");
        world.key(Key::alt(Code::Up));
    }));
}

#[test]
fn a_search_in_the_history() {
    insta::assert_snapshot!(at_every_size(|world| {
        world.types("fix the parser\n");
        world.app.outgoing.sending = None;
        world.key(Key::ctrl('r'));
        world.types("pars");
    }));
}

#[test]
fn a_list_of_commands() {
    insta::assert_snapshot!(at_every_size(|world| {
        let names = ["/tasks", "/transcript", "/tui"];
        let commands = names.map(|name| Command::plain(name, "What it is for, in a sentence."));
        world.input(Input::Commands(commands.to_vec()));
        world.types("/t");
    }));
}

#[test]
fn a_reply_on_its_way_and_sub_agents_at_work() {
    insta::assert_snapshot!(at_every_size(|world| {
        let task = work(world);
        let child = TaskId::new(jiff::Timestamp::from_second(7).unwrap());
        let spawn = json!({
            "call": CallId::new(jiff::Timestamp::UNIX_EPOCH), "task_id": child, "label": "the left half",
            "task": "look at the left half", "timeout_ms": 60_000, "model": "test/model",
            "axes": axes(WorkMode::Build, RunControl::Manual, PermissionProfile::Normal), "depth": 1,
        });
        world.record(task, event("sub_agent_spawn", spawn));
        let request = json!({
            "model": "test/model", "messages": 2, "estimated_tokens": 900, "hash": "x",
        });
        world.record(task, event("llm_request", request));
        let text = "The sum is **wrong**:\n\n- it begins at one\n- it ends too early\n";
        let live = PreviewContent::Reply(StreamEvent::Text(text.to_owned()));
        world.input(Input::Preview(Box::new(Preview { task, live })));
        world.wait(Duration::from_secs(2));
    }));
}

#[test]
fn an_autonomous_session_that_is_paused() {
    insta::assert_snapshot!(at_every_size(|world| facts(world, WorkMode::Build, true)));
}

/// MS-100: said in full at any width.
#[test]
fn a_session_in_repair() {
    insta::assert_snapshot!(at_every_size(|world| facts(world, WorkMode::Repair, false)));
}

fn facts(world: &mut World, mode: WorkMode, is_paused: bool) {
    let axes = axes(mode, RunControl::Autonomous, PermissionProfile::Trusted);
    let role = Some("executor".to_owned());
    let (model, effort) = ("anthropic/claude".to_owned(), Some("high".to_owned()));
    world.input(Input::Facts(SessionFacts { axes, role, model, effort, is_paused }));
}

#[test]
fn commands_of_vi_and_what_is_marked() {
    insta::assert_snapshot!(at_every_size(|world| {
        world.types("/vim\none two three");
        world.key(Key::plain(Code::Escape));
        world.types("viw");
        world.wait(Duration::from_secs(5));
    }));
}

#[test]
fn what_waits_for_a_person() {
    let items = vec![
        item(
            Target::Question(windlass_core::id::QuestionId::new(jiff::Timestamp::UNIX_EPOCH)),
            "  3m  Run this command? It removes files.  clean up",
        ),
        item(Target::Text, "  2h  proposed skill `run-the-tests`"),
    ];
    insta::assert_snapshot!(list(ViewKind::Inbox, "waits for you", &items));
}

#[test]
fn other_conversations() {
    let session = windlass_core::id::SessionId::new(jiff::Timestamp::UNIX_EPOCH);
    let items = vec![item(Target::Session(session), "  3m  paused     fix the flaky test")];
    let kind = ViewKind::Sessions(Conversations::OfDirectory);
    insta::assert_snapshot!(list(kind, "conversations of this directory", &items));
}

#[test]
fn sub_agents_and_background_commands() {
    let items = vec![
        item(task_target(1), "running     look at the left half"),
        item(Target::Heading, "& python3 -m http.server"),
    ];
    insta::assert_snapshot!(list(ViewKind::Agents, "sub-agents and background commands", &items));
}

#[test]
fn workflows_and_their_runs() {
    let items = vec![
        item(Target::Heading, "Workflows of this directory"),
        item(Target::Text, "ship             build, review, merge"),
        item(Target::Heading, "Runs"),
        item(task_target(1), "7K2M001 running     3m  ship             at review"),
    ];
    insta::assert_snapshot!(list(ViewKind::Workflows, "workflows", &items));
}

#[test]
fn workers_in_worktrees() {
    let items = vec![item(task_target(1), "7K2M001 windlass    $0.02  $ cargo test")];
    insta::assert_snapshot!(list(ViewKind::Workers, "workers in worktrees", &items));
}

#[test]
fn commitments_and_roles() {
    let promised = vec![item(Target::Text, "7K2M001 open       use JWT")];
    let roles = vec![item(Target::Role(Role::Auditor), "auditor    reviews, changes nothing")];
    let both = [
        list(ViewKind::Commitments, "commitments", &promised),
        list(ViewKind::Roles, "roles", &roles),
    ];
    insta::assert_snapshot!(both.join("\n"));
}

#[test]
fn pages_to_read() {
    let pages = [
        (ViewKind::Transcript { task: None }, "transcript"),
        (ViewKind::Diff(DiffOf::Turn), "changes of this turn"),
        (ViewKind::Plan, "plan"),
        (ViewKind::Run { run: TaskId::new(jiff::Timestamp::UNIX_EPOCH) }, "run of a workflow"),
    ];
    let all = pages.map(|(kind, title)| {
        at_every_size(|world| {
            let mut lines =
                vec![PageLine::heading("src/total.sh"), PageLine::of("@@ -1,3 +1,3 @@")];
            lines.extend(
                (0..40).map(|n| PageLine::of(format!("+a line that was added, number {n}"))),
            );
            lines.push(PageLine::folded("what is seen when it is unfolded"));
            let page = Page::new(kind.clone(), title, lines);
            world.input(Input::Loaded(Box::new(Overlay::Page(page))));
        })
    });
    insta::assert_snapshot!(all.join("\n"));
}

fn task_target(n: i64) -> Target {
    Target::Task(TaskId::new(jiff::Timestamp::from_second(n).unwrap()))
}

fn item(target: Target, line: &str) -> Item {
    let preview = vec!["more about it".to_owned(), "and what to do next".to_owned()];
    Item { target, line: line.to_owned(), preview }
}

fn list(kind: ViewKind, title: &str, items: &[Item]) -> String {
    at_every_size(|world| {
        let list = List::new(kind.clone(), title, items.to_vec());
        world.input(Input::Loaded(Box::new(Overlay::List(list))));
    })
}

#[test]
fn which_key_does_what() {
    insta::assert_snapshot!(at_every_size(|world| {
        let page = Overlay::Keys(world.app.key_list());
        world.input(Input::Loaded(Box::new(page)));
        world.key(Key::plain(Code::Down));
    }));
}

#[test]
fn a_key_that_is_being_bound() {
    insta::assert_snapshot!(at_every_size(|world| {
        let page = Overlay::Keys(world.app.key_list());
        world.input(Input::Loaded(Box::new(page)));
        world.types("\n");
        world.key(Key::ctrl('r'));
    }));
}
