//! The table of slash commands: every command answers, wrong ones are told apart, documents agree.

use windlass_coordinator::slash::{self, Complete, TABLE};
use windlass_coordinator::{Error, NewCommitment};

use windlass_core::commitment::Order;

use crate::conversations::Talking;

const REPLIES: &str = "goal: unused\nreplies: [{say: one}, {say: two}, {say: three}]";

/// MS-172, MS-205: each command of the table answers.
#[tokio::test]
async fn every_command_of_the_table_answers() {
    for command in TABLE {
        let talking = Talking::begin(REPLIES).await;
        talking.say("hello").await;
        if command.name == "executor" {
            let ledger = talking.stage.coordinator.commitments();
            let new = NewCommitment { title: "it".to_owned(), ..NewCommitment::default() };
            let id = ledger.open(new, "eve").await.unwrap().id;
            ledger.act(id, Order::Claim, "ada").await.unwrap();
        }
        let line = match command.name {
            "mode" => "/mode build".to_owned(),
            "control" => "/control assisted".to_owned(),
            "permission-profile" => "/permission-profile restricted".to_owned(),
            "model-mode" => "/model-mode fast".to_owned(),
            "steer" => "/steer use tabs".to_owned(),
            "rate" => "/rate 5".to_owned(),
            name => format!("/{name}"),
        };
        let answered = talking.try_run(&line).await;
        if command.name == "plans" {
            let error = answered.unwrap_err();
            assert!(matches!(error, Error::NoPlan { .. }), "{line}: {error}");
            continue;
        }
        let words = answered.unwrap_or_else(|error| panic!("{line}: {error}"));
        assert!(!words.trim().is_empty(), "{line}");
    }
}

/// MS-172: the roots are there; MS-174: and no product prefix.
#[tokio::test]
async fn help_lists_the_table_and_there_is_no_product_prefix() {
    let talking = Talking::begin(REPLIES).await;
    let help = talking.run("/help").await;
    for command in TABLE {
        assert!(help.contains(&command.usage()), "{}", command.name);
        assert!(help.contains(command.help), "{}", command.name);
    }
    for root in "status autonomous doctor rate session-report parallel remote tasks".split(' ') {
        assert!(slash::find(root).is_some(), "{root}");
    }
    let unknown = talking.try_run("/sf").await.unwrap_err();
    assert_eq!(unknown.to_string(), "`/sf` is not a command");
    let near = talking.try_run("/stear left").await.unwrap_err();
    assert_eq!(near.to_string(), "`/stear` is not a command; did you mean `/steer`?");
    let about = talking.run("/help steer").await;
    assert!(about.starts_with("/steer AXIS VALUE [SCOPE] | TEXT"), "{about}");
}

/// The table that `/help` prints and the one in the documents are one.
#[test]
fn the_commands_in_the_documents_are_the_table() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/commands.md");
    let document = std::fs::read_to_string(path).unwrap();
    let made = slash::markdown();
    let begin = document.find("## Slash commands").expect("docs/commands.md has the part");
    let rest = &document[begin..];
    let end = rest.find("<!-- end of the table -->").expect("the part has an end");
    assert_eq!(rest[..end].trim_end(), made.trim_end(), "put the made part into docs/commands.md");
}

#[test]
fn a_path_is_not_a_command() {
    for line in ["/mode", "/mode build", "  /help", "/a-skill:name x"] {
        assert!(slash::is_command(line), "{line}");
    }
    for line in ["mode", "/", "/ mode", "/etc/hosts is wrong", "/usr/bin", "see /mode", "/größe"]
    {
        assert!(!slash::is_command(line), "{line}");
    }
}

#[test]
fn completions_follow_what_is_typed() {
    let of = |name: &str, before: &[&str]| slash::find(name).unwrap().completions(before).join(" ");
    assert_eq!(of("mode", &[]), "chat plan build review repair research");
    assert_eq!(
        of("mode", &["build", "--permission-profile"]),
        "restricted normal trusted unrestricted"
    );
    assert_eq!(of("steer", &[]), "mode control permission-profile model-mode");
    assert_eq!(of("steer", &["model-mode"]), "fast smart deep");
    assert!(of("steer", &["mode", "build"]).contains("for-next-unit"));
    assert!(of("help", &[]).contains("session-report"));
    assert!(TABLE.iter().filter(|one| one.complete == Complete::Task).count() >= 4);
}

/// MS-146: the tasks of the session, in the order in which they start.
#[tokio::test]
async fn the_queue_names_the_sessions_tasks() {
    let talking = Talking::begin(REPLIES).await;
    assert_eq!(talking.run("/queue").await, "The queue is empty.");
    let task = talking.say("count the sheep").await;
    let queue = talking.run("/queue").await;
    assert!(queue.contains(&task.to_string()) && queue.contains("count the sheep"), "{queue}");
}

/// MS-120, MS-145: the whole overview, and how much runs and waits.
#[tokio::test]
async fn tasks_and_status_show_what_waits_for_a_person() {
    let talking = Talking::begin(REPLIES).await;
    let task = talking.say("count the sheep").await;
    let tasks = talking.run("/tasks").await;
    assert!(tasks.contains(&task.to_string()) && tasks.contains("waiting for you"), "{tasks}");
    let status = talking.run("/status").await;
    assert!(status.contains("waiting for you        1"), "{status}");
    assert!(status.contains("service                not running"), "{status}");
}

/// MS-149, MS-150: the last events of a task, and why it stands where it stands.
#[tokio::test]
async fn logs_and_forensics_read_the_journal() {
    let talking = Talking::begin(REPLIES).await;
    let task = talking.say("count the sheep").await;
    let logs = talking.run("/logs").await;
    assert!(logs.contains("llm_response") && logs.contains("one"), "{logs}");
    let forensics = talking.run(&format!("/forensics {task}")).await;
    for words in
        ["paused (awaiting_message)", "chat | manual | normal | smart", "driven by", "turns"]
    {
        assert!(forensics.contains(words), "{words} in {forensics}");
    }
}

/// MS-148, MS-184, MS-188: tokens and cost of the session, by civil date.
#[tokio::test]
async fn a_session_report_sums_by_civil_date() {
    let talking = Talking::begin(REPLIES).await;
    for (day, words) in [("2026-11-14T12:00:00Z", "one"), ("2026-11-15T12:00:00Z", "two")] {
        talking.stage.set_clock(day.parse().unwrap());
        talking.say(words).await;
    }
    let report = talking.run("/session-report").await;
    let days = talking.session().spending().unwrap();
    assert_eq!(days.len(), 2, "{report}");
    for (day, sum) in &days {
        assert_eq!(sum.replies, 1);
        assert!(report.contains(&day.to_string()), "{report}");
    }
    let first = days.keys().next().unwrap();
    let one = talking.run(&format!("/session-report {first}")).await;
    assert!(
        one.contains(&first.to_string()) && !one.contains(&days.keys().nth(1).unwrap().to_string())
    );
    let wrong = talking.try_run("/session-report yesterday").await.unwrap_err();
    assert!(wrong.to_string().contains("is not a date"), "{wrong}");
}

/// MS-199: the sums of `/cost` are those of the journal.
#[tokio::test]
async fn cost_sums_what_the_journal_has() {
    let talking = Talking::begin(REPLIES).await;
    let task = talking.say("hello").await;
    let total = talking.stage.coordinator.costs().of(task).unwrap().total;
    let cost = talking.run("/cost").await;
    let row = cost.lines().find(|line| line.starts_with("total")).unwrap();
    assert!(row.contains(&total.input_tokens.to_string()), "{row}");
}
