//! What must hold when the storm is over.

use std::collections::{HashMap, HashSet};

use windlass_core::event::{Event, Record};
use windlass_core::id::{QuestionId, TaskId};
use windlass_core::outcome::CallEnding;
use windlass_core::state::TaskState;
use windlass_core::status::TaskStatus;
use windlass_store::OutStream;

use crate::storm::Storm;

pub fn check(storm: &Storm) {
    let journals: HashMap<TaskId, Vec<Record>> =
        storm.tasks.iter().map(|task| (*task, storm.world.journal(*task))).collect();
    for (task, journal) in &journals {
        states_agree(storm, *task, journal);
        effects_happened_once(storm, *task, journal);
    }
    messages_were_seen_once(storm, &journals);
    questions_were_asked_and_answered_once(storm, &journals);
    results_were_published(storm);
    assert_eq!(
        storm.world.store.projections().verify().unwrap(),
        [],
        "projections equal the journal"
    );
}

/// Every task is in the state its log implies, and in the one that was meant.
fn states_agree(storm: &Storm, task: TaskId, journal: &[Record]) {
    let events = journal.iter().map(|record| (record.at, &record.event));
    let state = TaskState::fold(events).unwrap().unwrap();
    let row = storm.world.task(task).unwrap();
    assert_eq!(row.status, state.status, "{task}");
    let meant = match storm.cancelled.contains(&task) {
        true => TaskStatus::Cancelled,
        false => TaskStatus::Done,
    };
    let failures = || -> Vec<_> {
        let failed = |record: &&Record| matches!(&record.event, Event::ToolResult(result) if result.outcome.ending != CallEnding::Ok);
        journal.iter().filter(failed).map(|record| (record.seq, &record.event)).collect()
    };
    assert_eq!(row.status, meant, "{task}: {:?}; {:#?}", row.error, failures());
    assert_eq!(storm.world.store.owners().driving_process(task).unwrap(), None, "{task} is let go");
}

/// No line was written twice, and every one whose result says so was written.
fn effects_happened_once(storm: &Storm, task: TaskId, journal: &[Record]) {
    let path = storm.world.workspace(task).join("lines.txt");
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    let written: HashSet<&str> = lines.iter().copied().collect();
    assert_eq!(lines.len(), written.len(), "{task}: something was done twice: {lines:?}");
    let mut asked = HashMap::new();
    for record in journal {
        match &record.event {
            Event::ToolCall(call) if call.tool == "bash" => {
                let command = call.arguments["command"].as_str().unwrap();
                let line = command.split_whitespace().nth(1).unwrap().to_owned();
                let before = asked.insert(call.call, line);
                assert_eq!(before, None, "{task}: a call was started twice");
            }
            Event::ToolResult(result) if result.outcome.ending == CallEnding::Ok => {
                if let Some(line) = asked.get(&result.call) {
                    assert!(written.contains(line.as_str()), "{task}: {line} is missing");
                }
            }
            _ => {}
        }
    }
}

/// Every acknowledged message is in the journal of its task exactly once. A task that was cancelled or had
/// ended may have refused it, but then it said so.
fn messages_were_seen_once(storm: &Storm, journals: &HashMap<TaskId, Vec<Record>>) {
    let mut seen: HashMap<&str, Vec<TaskId>> = HashMap::new();
    for (task, journal) in journals {
        for record in journal {
            if let Event::InjectionReceived(injection) = &record.event {
                seen.entry(&injection.content).or_default().push(*task);
            }
        }
    }
    for (words, task) in &storm.sent {
        let at: &[TaskId] = seen.get(words.as_str()).map_or(&[], Vec::as_slice);
        match storm.cancelled.contains(task) {
            true => assert!(at.len() <= 1, "{words} was seen {at:?}"),
            false => assert_eq!(at, [*task], "{words}"),
        }
    }
}

/// Every question reached the stream, and every one that its task still needed was answered, once.
fn questions_were_asked_and_answered_once(storm: &Storm, journals: &HashMap<TaskId, Vec<Record>>) {
    let published = storm.world.published(OutStream::HitlRequest);
    let published: HashSet<&str> =
        published.iter().filter_map(|one| one["request_id"].as_str()).collect();
    for (task, journal) in journals {
        let mut answers: HashMap<QuestionId, usize> = HashMap::new();
        for record in journal {
            match &record.event {
                Event::QuestionAsked(question) => {
                    assert!(answers.insert(question.id, 0).is_none(), "{task} asks twice");
                    let id = question.id.to_string();
                    assert!(published.contains(id.as_str()), "{task}: {id} was not published");
                }
                Event::QuestionAnswered(answered) => {
                    *answers.get_mut(&answered.question).unwrap() += 1;
                }
                _ => {}
            }
        }
        for (question, count) in answers {
            match storm.cancelled.contains(task) {
                true => assert!(count <= 1, "{question}"),
                false => assert_eq!(count, 1, "{task}: {question}"),
            }
        }
    }
}

/// The last result of every task says how it ended.
fn results_were_published(storm: &Storm) {
    let results = storm.world.published(OutStream::TaskResult);
    for task in &storm.tasks {
        let last = results.iter().rfind(|one| one["task_id"] == task.to_string());
        let meant = if storm.cancelled.contains(task) { "CANCELLED" } else { "COMPLETED" };
        assert_eq!(last.map(|one| &one["status"]), Some(&meant.into()), "{task}");
    }
}
