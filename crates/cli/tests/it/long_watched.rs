//! What is seen of sub-agents while they work.

use crate::program::Program;

const TWO_LEVELS: &str = "
replies:
  - calls:
      - spawn_agent: {task: 'count the APPLES', label: apples}
      - spawn_agent: {task: 'count the PEARS', label: pears}
    task: count the fruit
  - {say: 'Counted it all.', task: count the fruit}
  - {turn: 0, task: APPLES, write: {path: apples.txt, content: three}}
  - {turn: 1, task: APPLES, say: There are 3 apples.}
  - {turn: 0, task: PEARS, spawn_agent: {task: 'look at the BASKET', label: basket}}
  - {turn: 1, task: PEARS, say: There are 4 pears.}
  - {turn: 0, task: BASKET, bash: echo basket >> basket.txt}
  - {turn: 1, task: BASKET, say: It is full.}
";

fn place(said: &str, line: &str) -> usize {
    said.lines()
        .position(|found| found.starts_with(line))
        .unwrap_or_else(|| panic!("{line}: {said}"))
}

#[test]
fn work_of_sub_agents_is_shown_live_with_their_names() {
    let program = Program::playing(TWO_LEVELS);
    let said = program.windlass(&["run", "count the fruit"]).expect(0).stderr;
    let [spawned, wrote, ended] =
        ["↳ apples: count the APPLES", "  apples: write apples.txt", "↲ apples completed"]
            .map(|line| place(&said, line));
    assert!(spawned < wrote && wrote < ended, "{said}");
    let [spawned, below, ran, ended] = [
        "↳ pears: count the PEARS",
        "  pears: ↳ basket: look at the BASKET",
        "  basket: $ echo basket >> basket.txt",
        "↲ pears completed",
    ]
    .map(|line| place(&said, line));
    assert!(spawned < below && below < ran && ran < ended, "{said}");
    // Each call once, and nothing of theirs taken for the task's own.
    assert_eq!(said.matches("write apples.txt").count(), 1, "{said}");
    assert_eq!(said.matches("echo basket").count(), 1, "{said}");
}

#[test]
fn events_for_programs_are_those_of_the_task_alone() {
    let program = Program::playing(TWO_LEVELS);
    let ran = program.windlass(&["run", "count the fruit", "--json"]).expect(0);
    let events = ran.json_lines();
    let calls = events.iter().filter(|event| event["event_type"] == "tool_call");
    let tools: Vec<_> = calls.map(|event| event["data"]["tool"].as_str().unwrap()).collect();
    assert_eq!(tools, ["spawn_agent", "spawn_agent"]);
    let ends = events.iter().filter(|event| event["event_type"] == "agent_end").count();
    assert_eq!(ends, 1);
    assert_eq!(events.last().unwrap()["event_type"], "agent_end");
    let quiet = Program::playing(TWO_LEVELS);
    assert_eq!(quiet.windlass(&["run", "count the fruit", "--quiet"]).expect(0).stderr, "");
}

#[test]
fn a_resumed_sub_agent_is_shown_by_its_name() {
    let program = Program::playing(
        "
replies:
  - {spawn_agent: {task: 'count the APPLES', label: apples}, task: count the fruit}
  - {say: 'Counted it all.', task: count the fruit}
  - {turn: 0, task: APPLES, ask_user: {question: 'Which basket?'}}
  - {turn: 1, task: APPLES, write: {path: apples.txt, content: three}}
  - {turn: 2, task: APPLES, say: There are 3 apples.}
",
    );
    let asked = program.windlass(&["run", "count the fruit"]).stderr;
    let (_, question) = asked.split_once("windlass answer ").expect(&asked);
    let question = question.split_whitespace().next().unwrap();
    let ran = program.windlass(&["answer", question, "the red one", "--resume"]).expect(0);
    place(&ran.stderr, "  apples: write apples.txt");
}
