//! Runs of workflows, worktrees and workers on the page.

use windlass_testkit::{Answer, Gate, ModelServer, by_hand};

use crate::desk::{Desk, assert_live_equals_reload};
use crate::program::Program;

const WORKFLOW: &str = "
steps:
  - {name: look, type: script, command: \"echo 'seen <b>it</b>'\", output: seen}
  - {name: choose, type: ask, question: 'Which way?', options: [left, right]}
  - {name: break, type: script, command: 'echo too bad >&2; exit 3', on_fail: continue}
";

/// A repository with a workflow whose commands are approved.
fn repository(server: ModelServer) -> Program {
    let program = Program::with(server);
    let place = program.workspace().join(".windlass/workflows");
    std::fs::create_dir_all(&place).unwrap();
    std::fs::write(place.join("w.yaml"), WORKFLOW).unwrap();
    by_hand(
        program.workspace(),
        "git init -q -b main && git config user.name Ada && git config user.email ada@example.com
         echo one > a.txt && git add -A && git commit -qm start",
    );
    program.windlass(&["trust", "--yes"]).expect(0);
    program
}

/// A run is watched step by step, and what it asks is answered where it is watched.
#[test]
fn a_run_of_a_workflow_is_watched_and_answered_on_its_page() {
    let mut desk = Desk::of(repository(ModelServer::start("replies: []")));
    let (_context, page) = desk.sign_in();
    desk.go(&page, "/workflows");
    page.shows("No workflow has run");
    desk.program.windlass(&["workflow", "run", "w", "the <i>login</i>", "--detach"]).expect(0);
    page.shows("w: the <i>login</i>");
    // What is in the document must be in sight too.
    page.until("document.querySelector('#runs .row').getBoundingClientRect().height > 20");
    page.click("#runs a", "login");
    page.until("location.pathname.startsWith('/workflows/task_')");
    page.shows("Which way?");
    // It is the run that asks, and it waits in the words of a task that asks.
    page.until("document.querySelector('.question-kind').textContent === 'Decision'");
    page.until("document.querySelector('.page-facts .chip').textContent === 'Waiting for you'");
    page.click(".question .answers button", "left");
    page.shows("exit code 3");
    page.until("document.querySelector('.page-facts .chip').textContent === 'Done'");
    page.shows("Worktrees");
    assert_live_equals_reload(&page);
    page.click("details.more summary", "Output");
    page.shows("seen <b>it</b>");
    assert_eq!(page.complaints(), Vec::<String>::new());
}

/// Two workers side by side are seen in their worktrees while they work; afterwards their run is there.
#[test]
fn workers_are_seen_in_their_worktrees_while_they_work() {
    let gate = Gate::default();
    let server = ModelServer::start_empty();
    let waits = gate.clone();
    server.answer_with(move |_| {
        let done = "say: |\n  ```json\n  {\"success\": true, \"summary\": \"did it\"}\n  ```\n";
        Some(Answer::script(done).gated(0, &waits))
    });
    let mut desk = Desk::of(repository(server));
    let (_context, page) = desk.sign_in();
    let tasks = ["parallel", "run", "write the docs", "write the tests", "--no-merge", "--detach"];
    desk.program.windlass(&tasks).expect(0);
    desk.go(&page, "/workflows");
    page.shows("At work in worktrees");
    page.shows("work.worker_1: write the docs");
    page.shows("work.worker_2: write the tests");
    // Lists are for people: what wraps a step for its agent is in none of them.
    let listed = desk.program.windlass(&["tasks"]).expect(0).stdout;
    assert!(listed.contains("work.worker_1: write the docs"), "{listed}");
    assert!(!listed.contains("You work on one step"), "{listed}");
    page.shows("-worktrees/");
    page.until("document.querySelectorAll('#workers .row').length === 2");
    desk.go(&page, "/tasks");
    page.shows("Workers in worktrees");
    page.until("document.querySelectorAll('#workers .row').length === 2");
    desk.go(&page, "/workflows");
    gate.open();
    page.until("document.querySelector('#runs .chip')?.textContent === 'Done'");
    page.hides("At work in worktrees");
    assert_live_equals_reload(&page);
}

const LEAVES: &str = "
worktree: {base: head, sparse: [src]}
steps:
  - {name: work, type: script, command: 'echo precious > src/new.txt'}
";

/// A run that is over, and whose worktree has work that is nowhere else, says so in the list and on its own page.
#[test]
fn a_run_that_is_not_cleaned_up_says_so() {
    let program = repository(ModelServer::start("replies: []"));
    std::fs::write(program.workspace().join(".windlass/workflows/w.yaml"), LEAVES).unwrap();
    by_hand(
        program.workspace(),
        "mkdir src && echo x > src/a.txt && git add -A && git commit -qm src",
    );
    program.windlass(&["trust", "--yes"]).expect(0);
    let mut desk = Desk::of(program);
    let (_context, page) = desk.sign_in();
    desk.program.windlass(&["workflow", "run", "w", "the shop", "--detach"]).expect(0);
    desk.go(&page, "/workflows");
    let chips = |selector: &str| {
        format!(
            "[...document.querySelectorAll('{selector} .chip')].map(one => one.textContent).join()"
        )
    };
    page.until(&format!("{} === 'Done,Not cleaned up'", chips("#runs .row")));
    page.click("#runs a", "the shop");
    page.until("location.pathname.startsWith('/workflows/task_')");
    page.until(&format!("{} === 'Kept,Not cleaned up'", chips("#places .row")));
    page.shows("only src");
    page.shows("not committed: src/new.txt");
    page.shows("windlass workflow prune --dry-run");
    assert_live_equals_reload(&page);
    desk.program.windlass(&["workflow", "prune", "--save"]).expect(0);
    page.until(&format!("{} === 'Removed'", chips("#places .row")));
    page.hides("Not cleaned up");
    assert_eq!(page.complaints(), Vec::<String>::new());
}
