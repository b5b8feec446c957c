//! Which model writes summaries, and what happens to a task whose summaries are useless.

use std::collections::BTreeSet;

use serde_json::Value;
use windlass_testkit::{Answer, ModelServer, Request};

use crate::long_compaction::{
    BYTES_PER_TOKEN, SUMMARY, Windowed, compacted, events, is_summary, last_text, notes, quoted,
    reply,
};
use crate::program::Program;

/// A summarizer that answers with nothing, garbage or an error. ES-162, ES-171
#[test]
fn a_summarizer_that_fails_costs_the_summary_and_not_the_task() {
    let long = "## Tool failures\n".to_owned() + &"word ".repeat(20_000);
    type Said = Box<dyn Fn(&Request) -> Answer + Send>;
    let bad: [(&str, Said); 4] = [
        ("nothing", Box::new(|request: &Request| reply(request, "say: ''"))),
        ("garbage", Box::new(|request: &Request| reply(request, "say: 'lorem ipsum'"))),
        (
            "too much",
            Box::new(move |request: &Request| reply(request, &format!("say: {}", quoted(&long)))),
        ),
        ("an error", Box::new(|_: &Request| Answer::error(403, "no summaries today"))),
    ];
    for (name, answer) in bad {
        let (program, ran) = compacted(answer, 30);
        let ran = ran.expect(0);
        let ended = events(&ran, "compaction_end");
        assert!(!ended.is_empty(), "{name}: it was compacted");
        assert!(ended.iter().all(|end| end["source"] == "extract"), "{name}: {ended:?}");
        let summary = ended[0]["summary"].as_str().unwrap();
        assert!(summary.contains("it broke: E4711"), "{name}: exact text of failures: {summary}");
        assert!(summary.contains("made.txt"), "{name}: files: {summary}");
        assert!(summary.contains("echo it broke"), "{name}: commands: {summary}");
        let asked = program.server.requests().iter().filter(|request| is_summary(request)).count();
        assert!(asked >= 2 * ended.len(), "{name}: each was asked for once more");
    }
}

/// MS-199, ES-335: summaries are paid for too, so what `cost` adds up is what the task has used.
#[test]
fn cost_counts_the_summaries() {
    let (program, ran) =
        compacted(|request| reply(request, &format!("say: {}", quoted(SUMMARY))), 30);
    let used = ran.expect(0).result()["usage"]["total_tokens"].as_u64().unwrap();
    let sums = program.windlass(&["cost", &program.task(), "--json"]).expect(0).json_lines();
    let total = &sums[0]["total"];
    let tokens = |name: &str| total[name].as_u64().unwrap();
    assert_eq!(tokens("input_tokens") + tokens("output_tokens"), used);
    assert!(sums[0]["models"]["(summaries)"]["replies"].as_u64().unwrap() >= 1, "{sums:?}");
    let metrics = program.windlass(&["metrics"]).expect(0).stdout;
    let counted = format!("agent_llm_tokens{{direction=\"input\"}} {}\n", tokens("input_tokens"));
    assert!(metrics.contains(&counted), "{counted} in\n{metrics}");
}

/// ES-169: where no model is named for summaries, the fast one writes them.
#[test]
fn the_fast_model_summarizes_unless_another_is_named() {
    let program = Program::with(ModelServer::start_empty());
    let directory = program.data.path().join(".config/windlass");
    std::fs::create_dir_all(&directory).unwrap();
    std::fs::write(directory.join("config.toml"), "[models]\nfast = \"litellm/quick\"\n").unwrap();
    notes(&program, 50, 20);
    let windowed = Windowed::new(16_000);
    let summary = |request: &Request| reply(request, &format!("say: {}", quoted(SUMMARY)));
    windowed.serve(&program.server, summary, |turn, request| match turn {
        30.. => reply(request, "say: Done."),
        turn => reply(request, &format!("read: notes-{turn}.txt")),
    });
    program.windlass(&["run", "count", "--json", "--context-window", "16000"]).expect(0);
    let requests = program.server.requests();
    let by = |summary: bool| -> BTreeSet<String> {
        let of = requests.iter().filter(|request| is_summary(request) == summary);
        of.map(|request| request.model.clone()).collect()
    };
    assert_eq!(by(true), ["quick".to_owned()].into());
    assert_eq!(by(false), ["gpt-4o".to_owned()].into());
}

/// ES-169, ES-170
#[test]
fn summaries_are_asked_of_the_model_that_is_named_for_them() {
    let program = Program::with(ModelServer::start_empty());
    let directory = program.data.path().join(".config/windlass");
    std::fs::create_dir_all(&directory).unwrap();
    let named = "[compaction]\nsummarization_model = \"litellm/tiny\"\n[models.\"tiny\"]\n\
                 context_window = 5000\n";
    std::fs::write(directory.join("config.toml"), named).unwrap();
    notes(&program, 50, 60);
    program.server.answer_with(|request| {
        if is_summary(request) {
            assert!(request.body.len() / BYTES_PER_TOKEN < 5_000, "within its own window");
            return Some(reply(request, &format!("say: {}", quoted(SUMMARY))));
        }
        if last_text(request).starts_with("You are approaching") {
            return Some(reply(request, "say: ok"));
        }
        let body = String::from_utf8_lossy(&request.body).into_owned();
        // Only names in calls: the first message lists all files.
        let read = |n: usize| body.contains(&format!("notes-{n}.txt\\\""));
        let more = read(30);
        let seen = (0..=30).filter(|n| read(*n)).max();
        Some(match more {
            true => reply(request, "say: Done."),
            false => reply(request, &format!("read: notes-{}.txt", seen.map_or(0, |n| n + 1))),
        })
    });
    let ran = program.windlass(&["run", "count", "--json", "--context-window", "32000"]).expect(0);
    let joined = format!("{SUMMARY}\n\n---\n\n{SUMMARY}");
    let summaries = events(&ran, "compaction_end");
    let has_joint = |end: &Value| end["summary"].as_str().unwrap().contains(&joined);
    assert!(summaries.iter().any(has_joint), "chunks are summarized apart: {summaries:?}");
    let models: BTreeSet<_> = program
        .server
        .requests()
        .iter()
        .map(|request| (is_summary(request), request.model.clone()))
        .collect();
    assert!(models.contains(&(true, "tiny".into())) && models.contains(&(false, "gpt-4o".into())));
    assert_eq!(models.len(), 2, "{models:?}");
}
