//! Saving notes before a compaction: an agent that does not stop to save notes continues its work, and loses
//! nothing of what it did last.

use serde_json::Value;

use crate::program::Program;

/// Replies that always have a call, as models that are busy give them: steps, each with a long output.
fn busy(steps: usize) -> String {
    let step = |n: usize| {
        format!(
            "  - {{text: At step {n}., calls: [{{bash: 'printf %01200d {n}; echo {n} >> steps.txt'}}]}}\n"
        )
    };
    let steps: String = (0..steps).map(step).collect();
    format!("replies:\n{steps}  - say: done\n")
}

/// ES-158, ES-166: three turns are for notes. What comes after them is work: it is kept, the agent reads that
/// it may work again, and nothing that was refused counts as done.
#[test]
fn work_after_the_turns_for_notes_is_kept_by_the_compaction() {
    let program = Program::playing(&busy(34));
    program.server.in_order();
    let run = ["run", "work", "--json", "--context-window", "16000", "--sandbox", "host"];
    let ran = program.windlass(&run).expect(0);
    let events = ran.json_lines();
    let place = |kind: &str| events.iter().position(|event| event["event_type"] == kind);
    let (flush, start) = (place("memory_flush").unwrap(), place("compaction_start").unwrap());
    let said = |event: &Value| {
        let reply = event["event_type"] == "llm_response";
        reply.then(|| event["data"]["text"].as_str().unwrap().to_owned())
    };
    let between: Vec<_> = events[flush..start].iter().filter_map(said).collect();
    assert!(between.len() > 4, "work between the notes and the compaction: {between:?}");

    let end = &events[place("compaction_end").unwrap()]["data"];
    assert_eq!(end["source"], "extract", "{end}");
    let kept = end["kept_turns"].as_u64().unwrap() as usize;
    assert!(kept >= 1, "{end}");
    let summary = end["summary"].as_str().unwrap();
    assert!(!summary.contains("notes are being saved"), "{summary}");
    for refused in &between[..3] {
        let number = refused.trim_start_matches("At step ").trim_end_matches('.');
        assert!(!summary.contains(&format!("echo {number} >>")), "{refused} ran not: {summary}");
    }

    let requests: Vec<Value> = program.server.requests().iter().map(|one| one.json()).collect();
    let texts = |request: &Value, role: &str| -> Vec<String> {
        let messages = request["messages"].as_array().unwrap().iter();
        let of = messages.filter(|message| message["role"] == role);
        of.filter_map(|message| message["content"].as_str().map(str::to_owned)).collect()
    };
    let compacted = requests
        .iter()
        .find(|request| texts(request, "user").iter().any(|text| text.contains(summary)));
    let seen = texts(compacted.expect("a request after the compaction"), "assistant");
    assert_eq!(seen, between[between.len() - kept..], "the newest turns are those that stay");
    let notice = "Noted. Continue the task where you left off.";
    let after_notes = requests.iter().filter(|one| texts(one, "user").iter().any(|t| t == notice));
    assert!(after_notes.count() > 0, "it reads that it may work again");
}
