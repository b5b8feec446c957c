//! Budgets of tasks and their sub-agents through the real program.

use windlass_testkit::{Answer, ModelServer};

use crate::long_agents::{machine, of_kind, task_message};
use crate::program::Program;

fn priced(program: &Program) {
    let directory = program.data.path().join(".config/windlass");
    std::fs::create_dir_all(&directory).unwrap();
    let prices = "[models.\"gpt-4o\"]\ninput = 10.0\noutput = 10.0\n";
    std::fs::write(directory.join("config.toml"), prices).unwrap();
}

/// Turns that cost 3 cents each and look at something new every time.
fn spending(program: &Program, turns: usize) {
    for number in 0..turns {
        std::fs::write(program.workspace().join(format!("{number}.txt")), format!("{number}"))
            .unwrap();
    }
    program.server.answer_with(move |request| {
        let turn = request.replies;
        let work = if turn < turns { format!("read: {turn}.txt") } else { "say: done".to_owned() };
        Some(Answer::script(&format!("{work}\nusage: {{input: 2900, output: 100}}")))
    });
}

/// MS-134: a budget warns, then blocks with a question; a raise resumes the task, a stop ends it.
#[test]
fn a_budget_is_overspent_by_at_most_one_call_and_asks() {
    let program = Program::with(ModelServer::start_empty());
    priced(&program);
    spending(&program, 8);
    let ran = program.windlass(&["run", "read on", "--json", "--budget", "0.10"]).expect(6);
    assert_eq!(program.server.request_count(), 4, "three fit, the fourth goes over");
    let hits = of_kind(&ran, "budget_hit");
    assert_eq!((&hits[0]["level"], &hits[1]["level"]), (&"warning".into(), &"exceeded".into()));
    assert_eq!(ran.result()["status"], "BLOCKED_USER");
    let asked = &ran.result()["hitl_request"];
    assert_eq!(asked["question"], "The cost budget is used up: $0.12 of $0.10. Raise it, or stop?");
    assert_eq!(asked["options"], serde_json::json!(["Raise by 0.10", "Stop"]));
    let question = asked["request_id"].as_str().unwrap().to_owned();

    program.windlass(&["resume", &program.task()]).expect(6);
    assert_eq!(program.server.request_count(), 4, "nothing is spent while it waits");
    let refused = program.windlass(&["answer", &question, "maybe"]).expect(2);
    assert!(refused.stderr.contains("maybe"), "{}", refused.stderr);
    let refused = program.windlass(&["answer", &question, "9e99"]).expect(2).stderr;
    assert!(refused.contains("`9e99` is not an answer"), "{refused}");
    program.windlass(&["answer", &question, "raise by 0.05"]).expect(0);
    let ran = program.windlass(&["resume", &program.task(), "--json"]).expect(6);
    assert_eq!(program.server.request_count(), 5);
    let question = ran.result()["hitl_request"]["request_id"].as_str().unwrap().to_owned();
    program.windlass(&["answer", &question, "Raise by 1.00"]).expect(0);
    let ran = program.windlass(&["resume", &program.task(), "--json"]).expect(0);
    assert_eq!(ran.result()["final_message"], "done");
    // What people have added is part of what it may cost.
    let page = program.windlass(&["tasks", "--all"]).expect(0).stdout;
    assert!(page.contains(" of $1.15"), "{page}");
    let sent = program.server.requests();
    assert!(
        !String::from_utf8_lossy(&sent.last().unwrap().body).contains("Raise by"),
        "not the model's"
    );
}

#[test]
fn a_budget_that_a_person_does_not_raise_ends_the_task() {
    let program = Program::with(ModelServer::start_empty());
    priced(&program);
    spending(&program, 8);
    let ran = program.windlass(&["run", "read on", "--json", "--budget", "0.05"]).expect(6);
    let question = ran.result()["hitl_request"]["request_id"].as_str().unwrap().to_owned();
    program.windlass(&["answer", &question, "Stop"]).expect(0);
    let ran = program.windlass(&["resume", &program.task(), "--json"]).expect(6);
    assert_eq!(ran.result()["error_details"]["error_type"], "budget");
}

#[test]
fn a_budget_without_a_price_is_a_usage_error() {
    let program = machine("replies: [{say: hello}]");
    let run = ["run", "greet", "--budget", "1", "--model", "litellm/unpriced"];
    let ran = program.windlass(&run).expect(2);
    assert!(ran.stderr.contains("no price for"), "{}", ran.stderr);
    assert_eq!(program.server.request_count(), 0);
}

/// The built-in table knows what current models cost, so that a budget needs no settings.
#[test]
fn a_budget_on_a_well_known_model_needs_no_settings() {
    let program = machine("replies: [{say: hello, usage: {input: 1000, output: 100}}]");
    let run = ["run", "greet", "--json", "--budget", "1", "--model", "litellm/gpt-4o"];
    let ran = program.windlass(&run).expect(0);
    let reply = of_kind(&ran, "llm_response").remove(0);
    let cost = reply["usage"]["cost_usd"].as_f64().unwrap();
    assert!((cost - 0.0035).abs() < 1e-9, "1,000 x $2.50 + 100 x $10 a million: {cost}");
}

/// Sub-agents spend from their parent's budget, and the question is asked once, at the top.
#[test]
fn a_tree_shares_one_budget() {
    let program = Program::with(ModelServer::start_empty());
    priced(&program);
    for number in 0..10 {
        std::fs::write(program.workspace().join(format!("{number}.txt")), format!("{number}"))
            .unwrap();
    }
    program.server.answer_with(|request| {
        let text = task_message(&request.json());
        let work = match (text.contains("share it"), request.replies) {
            (true, 0) => "calls: [{spawn_agent: {task: A}}, {spawn_agent: {task: B}}]".to_owned(),
            (true, _) => "say: shared".to_owned(),
            (false, turn @ 0..3) => format!("read: {turn}.txt"),
            (false, _) => "say: piece done".to_owned(),
        };
        Some(Answer::script(&format!("{work}\nusage: {{input: 2900, output: 100}}")))
    });
    let ran = program.windlass(&["run", "share it", "--json", "--budget", "0.15"]).expect(6);
    assert!(program.server.request_count() <= 6, "{}", program.server.request_count());
    let inbox = program.windlass(&["inbox", "--json"]).json_lines();
    assert_eq!(inbox.len(), 1, "asked once: {inbox:?}");
    let question = ran.result()["hitl_request"]["request_id"].as_str().unwrap().to_owned();
    program.windlass(&["answer", &question, "Raise by 5"]).expect(0);
    let root = ran.result()["task_id"].as_str().unwrap().to_owned();
    let ran = program.windlass(&["resume", &root, "--json"]).expect(0);
    assert_eq!(ran.result()["final_message"], "shared");
    assert_eq!(program.server.request_count(), 10);
}
