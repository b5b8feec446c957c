//! `tasks`, `show`, `logs`, `trace`, `cost`, `outputs`, `exec`, `headless`: looking at work.

use std::path::Path;

use jiff::{SignedDuration, Timestamp};

use crate::program::{Program, Ran};

const WORK: &str = r"
replies:
  - bash: seq 1 20000
    usage: {input: 1000, output: 10, cost: 0.5}
  - bash: echo fine; echo broken >&2
    usage: {input: 2000, output: 20, cached: 900}
  - say: done
    usage: {input: 3000, output: 30, cost: 0.25}
";

fn worked() -> Program {
    let program = Program::playing(WORK);
    let run = ["run", "count", "--quiet", "--sandbox", "host", "--model", "litellm/unpriced"];
    program.windlass(&run).expect(0);
    program
}

/// The calls of the only task, in order.
fn calls(program: &Program) -> Vec<String> {
    let trace = program.windlass(&["trace", &program.task()]).expect(0).json_lines();
    let calls = trace.iter().filter(|entry| entry["event_type"] == "tool_call");
    calls.map(|entry| entry["data"]["call"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn tasks_are_an_aligned_table_with_filters() {
    let program = Program::playing("replies: [{say: done}]");
    program.windlass(&["run", "first", "-q"]).expect(0);
    program.windlass(&["run", "second goal", "-q"]).expect(0);
    let listed = program.windlass(&["tasks"]).expect(0).stdout;
    let lines: Vec<&str> = listed.lines().collect();
    assert_eq!(lines.len(), 3, "{listed}");
    let column = lines[0].find("GOAL").unwrap();
    assert!(lines[0].starts_with("TASK") && lines[1][column..].starts_with("second"), "{listed}");
    assert!(lines[2][column..].starts_with("first"), "{listed}");
    let count = |args: &[&str]| program.windlass(args).expect(0).stdout.lines().count();
    assert_eq!(count(&["tasks", "--limit", "1"]), 2);
    assert_eq!(count(&["tasks", "--all", "--json"]), 2);
    assert_eq!(count(&["tasks", "--status", "done", "--status", "failed"]), 3);
    let none = program.windlass(&["tasks", "--status", "failed"]).expect(0);
    assert_eq!((none.stdout.as_str(), none.stderr.contains("no such tasks")), ("", true));
}

/// PL-034: the gauge is part of a task's page.
#[test]
fn show_tells_usage_and_how_full_the_context_is() {
    let program = worked();
    let page = program.windlass(&["show", &program.task()]).expect(0).stdout;
    assert!(page.contains("used       2 steps, 2 calls, 6060 tokens, $0.75"), "{page}");
    assert!(page.contains("context    2 % full"), "{page}");
    let shown = program.windlass(&["show", &program.task(), "--json"]).expect(0).json_lines();
    // 3030 tokens of the 128,000 without the 4,096 that are kept for a reply.
    let gauge = serde_json::json!({"level": "ok", "percent": 2.4, "recommendation": "continue"});
    assert_eq!(shown[0]["context"], gauge);
}

/// A server may report no usage.
#[test]
fn show_says_that_the_tokens_of_a_reply_are_unknown() {
    let program = Program::playing("replies: [{say: done, usage: {input: 0, output: 0}}]");
    program.windlass(&["run", "x", "-q", "--model", "litellm/unpriced"]).expect(0);
    let page = program.windlass(&["show"]).expect(0).stdout;
    assert!(page.contains("used       0 steps, 0 calls, tokens unknown, cost unknown"), "{page}");
    let listed = program.windlass(&["tasks", "--json"]).expect(0).json_lines();
    assert!(listed[0]["cost_usd"].is_null(), "{listed:?}");
    let result = program.windlass(&["result"]).expect(0).stdout;
    assert!(!result.contains("\"cost_usd\": 0"), "{result}");
}

/// PL-034, PL-035, PL-036: the page, the JSON and the journal agree.
#[test]
fn a_full_context_is_reported_with_what_to_do() {
    for (input, level, percent, advice) in [
        (8_270, "ok", 69.8, "continue"),
        (8_320, "warning", 70.3, "save-state"),
        (10_100, "critical", 85.2, "save-and-yield"),
    ] {
        let script = format!("replies: [{{say: done, usage: {{input: {input}, output: 50}}}}]");
        let program = Program::playing(&script);
        let run = ["run", "count", "-q", "--sandbox", "host", "--context-window", "16000"];
        program.windlass(&run).expect(0);
        let shown = program.windlass(&["show", &program.task(), "--json"]).expect(0).json_lines();
        let gauge =
            serde_json::json!({"level": level, "percent": percent, "recommendation": advice});
        assert_eq!(shown[0]["context"], gauge);
        let page = program.windlass(&["show", &program.task()]).expect(0).stdout;
        let line = page.lines().find(|line| line.starts_with("  context ")).unwrap();
        match level {
            "ok" => assert_eq!(line, "  context    69 % full"),
            level => assert!(line.ends_with(&format!(" % full, {level}: {advice}")), "{line}"),
        }
    }
}

/// ES-106: what an agent has put down for itself is part of what it leaves.
#[test]
fn show_tells_the_working_memory() {
    let program = Program::playing(
        "replies: [{update_plan: {steps: [{id: '1', description: look, status: done}]}}, \
         {save_memo: {filename: a.md, content: seen}}, {say: done}]",
    );
    program.windlass(&["run", "look", "-q"]).expect(0);
    let shown = program.windlass(&["show", &program.task(), "--json"]).expect(0).json_lines();
    let memory = &shown[0]["working_memory"];
    let memo = format!(".windlass/tasks/{}/memo/a.md", program.task());
    assert_eq!(memory["memos"], serde_json::json!([memo]));
    assert_eq!(memory["plan"]["steps"][0]["description"], "look");
    let result = program.windlass(&["result", &program.task()]).expect(0).stdout;
    let result: serde_json::Value = serde_json::from_str(&result).unwrap();
    assert_eq!(&result["working_memory"], memory, "it is part of the result");
}

/// MS-199: totals equal the sum of the journal; a price nobody knows is unknown, not zero.
#[test]
fn cost_sums_what_is_known_and_says_what_is_not() {
    let program = worked();
    let task = program.task();
    let page = program.windlass(&["cost", &task, "--turns"]).expect(0);
    insta::assert_snapshot!(page.stdout, @r"
    EVENT  MODEL     INPUT  CACHED  OUTPUT     COST
        5  unpriced   1000       0      10    $0.50
       10  unpriced   2000     900      20  unknown
       15  unpriced   3000       0      30    $0.25

    MODEL     REPLIES  INPUT  CACHED  OUTPUT               COST
    unpriced        3   6000     900      60  $0.75 + 1 unknown
    total           3   6000     900      60  $0.75 + 1 unknown
    ");
    assert!(page.stderr.contains("set prices"), "{page:?}");
    let all = program.windlass(&["cost", "--json"]).expect(0).json_lines().remove(0);
    let database =
        rusqlite::Connection::open(program.data_directory().join("windlass.db")).unwrap();
    let sum: (i64, i64, f64) = database
        .query_row(
            "SELECT sum(body ->> '$.usage.input_tokens'), sum(body ->> '$.usage.output_tokens'),
                    sum(body ->> '$.usage.cost_usd') FROM events WHERE kind = 'llm_response'",
            (),
            |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
        )
        .unwrap();
    assert_eq!(all["total"]["input_tokens"], sum.0);
    assert_eq!(all["total"]["output_tokens"], sum.1);
    assert_eq!(all["total"]["cost_usd"], sum.2);
    assert_eq!(all["total"]["unpriced_replies"], 1);
    assert_eq!(all["tasks"][task.as_str()]["replies"], 3);
}

/// `windlass forensics` and `/forensics` are one report: state, error and the newest events.
#[test]
fn forensics_tell_why_a_task_is_in_its_state() {
    let server = windlass_testkit::ModelServer::start_empty();
    server.answer_with(|_| Some(windlass_testkit::Answer::error(401, "who are you?")));
    let program = Program::with(server);
    program.windlass(&["run", "count", "-q", "--sandbox", "host"]).expect(1);
    let report = program.windlass(&["forensics", &program.task()]).expect(0).stdout;
    for wanted in ["failed (error)", "who are you?", "driven by", "nobody", "status_changed"] {
        assert!(report.contains(wanted), "{wanted} is missing in:\n{report}");
    }
    let data = program.windlass(&["forensics", &program.task(), "--json"]).expect(0).json_lines();
    assert_eq!(data[0][0]["block"], "fields", "{data:?}");
    let unknown = program.windlass(&["forensics", "nowhere"]).expect(2).stderr;
    assert!(unknown.contains("nowhere"), "{unknown}");
}

/// A person looks at what they have just run; they need not copy its id.
#[test]
fn without_an_id_the_last_task_of_this_directory_is_meant() {
    let program = Program::playing(
        "
replies:
  - {turn: 0, task: first, say: one}
  - {turn: 0, task: second, bash: echo two}
  - {turn: 1, task: second, say: done}
",
    );
    for goal in ["first", "second"] {
        program.windlass(&["run", goal, "-q", "--sandbox", "host"]).expect(0);
    }
    let which = format!("the last task of this directory: {} “second” (done, ", program.task());
    for command in ["show", "diff", "events", "result", "logs", "trace", "forensics", "assist"] {
        let last = program.windlass(&[command]).expect(0);
        assert!(last.stderr.starts_with(&which), "{command}: {last:?}");
        let named = program.windlass(&[command, &program.task()]).expect(0);
        assert!(!named.stderr.contains("last task"), "{command}: {named:?}");
        let mut elsewhere = program.command(&[command]);
        elsewhere.current_dir(program.data.path());
        let none = Ran::from(elsewhere.output().unwrap()).expect(2);
        assert!(none.stderr.contains("no task was started in `"), "{command}: {none:?}");
        assert!(none.stderr.contains("windlass tasks") && none.stdout.is_empty(), "{none:?}");
    }
}

/// AX-087
#[test]
fn logs_show_every_command_and_name_what_was_cut() {
    let program = worked();
    let page = program.windlass(&["logs", &program.task()]).expect(0).stdout;
    let calls = calls(&program);
    assert!(page.starts_with("$ seq 1 20000"), "{page}");
    let whole = format!("[Output truncated]  View full output: windlass outputs {}", calls[0]);
    assert!(page.lines().any(|line| line == whole), "{page}");
    assert_eq!(page.matches("View full output").count(), 1, "what is whole is not said to be cut");
    assert!(page.contains("\nfine\n") && page.contains("\nbroken\n"), "{page}");
    let entries = program.windlass(&["logs", &program.task(), "--json"]).expect(0).json_lines();
    assert_eq!(entries[0]["truncated"], true);
    assert_eq!(entries[0]["original_size"], 108_894);
}

/// A person who reads a log looks for what went wrong.
#[test]
fn logs_say_which_commands_failed_and_how() {
    let program = Program::playing(
        "replies: [{bash: echo seen; exit 3}, {bash: 'true'}, {bash: {command: sleep 600, timeout: 1}}, \
         {say: done}]",
    );
    program.windlass(&["run", "try", "-q"]).expect(0);
    let page = program.windlass(&["logs"]).expect(0).stdout;
    let calls = calls(&program);
    let heading = |at: usize, command: &str| format!("$ {command}  {}", calls[at]);
    for line in [
        heading(0, "echo seen; exit 3") + "  exit 3",
        heading(1, "true"),
        heading(2, "sleep 600") + "  killed: it took too long",
    ] {
        assert!(page.lines().any(|shown| shown == line), "{line} in\n{page}");
    }
    let entries = program.windlass(&["logs", "--json"]).expect(0).json_lines();
    let of = |at: usize| entries.iter().find(|entry| entry["call"] == calls[at].as_str()).unwrap();
    assert_eq!((&of(0)["exit_code"], &of(0)["ending"]), (&3.into(), &"error".into()));
    assert_eq!((&of(1)["exit_code"], &of(1)["ending"]), (&0.into(), &"ok".into()));
    assert_eq!(of(2)["aborted_by"], "timeout");
}

#[test]
fn outputs_gives_the_whole_byte_for_byte() {
    let program = worked();
    let calls = calls(&program);
    let whole = program.windlass(&["outputs", &calls[0]]).expect(0).stdout;
    assert_eq!(whole.lines().count(), 20_000);
    let stderr = program.windlass(&["outputs", &calls[1], "--stream", "stderr"]).expect(0);
    assert_eq!(stderr.stdout, "broken\n");
}

/// AX-080: whoever works in the data directory removes what is too old, once a day.
#[test]
fn outputs_are_gone_after_a_week() {
    let program = Program::playing(
        "
replies:
  - {turn: 0, task: count, bash: seq 1 20000}
  - {turn: 1, task: count, say: done}
  - {turn: 0, task: look, say: nothing to see}
",
    );
    program.windlass(&["run", "count", "--json"]).expect(0);
    let outputs = program.data_directory().join("outputs");
    let files = || {
        let entries = std::fs::read_dir(&outputs).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name.ends_with(".txt")).count()
    };
    let aged = |path: &Path, days: i64| {
        let file = std::fs::File::options().write(true).open(path).unwrap();
        let then = Timestamp::now() - SignedDuration::from_hours(24 * days);
        file.set_modified(then.into()).unwrap();
    };
    assert_eq!(files(), 1);
    for entry in std::fs::read_dir(&outputs).unwrap() {
        aged(&entry.unwrap().path(), 8);
    }
    aged(&outputs.join(".cleaned"), 0);
    program.windlass(&["run", "look", "--json"]).expect(0);
    assert_eq!(files(), 1, "it was looked for today");
    aged(&outputs.join(".cleaned"), 2);
    program.windlass(&["run", "look again", "--json"]).expect(0);
    assert_eq!(files(), 0);
}

#[test]
fn trace_is_the_file_that_the_agent_sees() {
    let program = worked();
    let task = program.task();
    let printed = program.windlass(&["trace", &task]).expect(0).stdout;
    let path = program.windlass(&["trace", &task, "--path"]).expect(0).stdout;
    assert_eq!(printed, std::fs::read_to_string(path.trim_end()).unwrap());
}

/// AX-102
#[test]
fn exec_runs_one_command_and_keeps_its_output() {
    let program = Program::playing("replies: [{say: done}]");
    let ran =
        program.windlass(&["exec", "--test", "seq 1 20000; echo no >&2", "--sandbox", "host"]);
    let ran = ran.expect(0);
    assert!(ran.stdout.contains("[Output truncated at 30KB"), "{}", ran.stdout);
    assert!(ran.stdout.len() < 31_500, "{}", ran.stdout.len());
    assert!(
        ran.stderr.starts_with("no\nexit 0 · 108897 bytes · all of it: windlass outputs "),
        "{ran:?}"
    );
    let id = ran.stderr.trim_end().rsplit(' ').next().unwrap();
    let whole = program.windlass(&["outputs", id, "--stream", "stdout"]).expect(0).stdout;
    assert_eq!(whole.len(), 108_894);
    program.windlass(&["exec", "--test", "exit 3", "--sandbox", "host"]).expect(3);
    assert_eq!(program.windlass(&["tasks", "--json"]).stdout, "", "it is not a task");
}

/// MS-177, MS-178
#[test]
fn headless_is_run_by_another_name() {
    for args in [
        &["headless", "greet", "-p"][..],
        &["headless", "autonomous", "greet", "-p"],
        &["headless", "--autonomous", "greet", "-p"],
    ] {
        let program = Program::playing("replies: [{say: hello}]");
        assert_eq!(program.windlass(args).expect(0).stdout, "hello\n");
        let page = program.windlass(&["show", &program.task()]).stdout;
        assert!(page.contains("goal       greet") && page.contains("autonomous"), "{page}");
    }
}

/// MS-070…073: the mode chooses the model; an explicit model wins.
#[test]
fn the_model_mode_chooses_the_model_and_an_explicit_model_wins() {
    let program = Program::playing("replies: [{say: done}]");
    let directory = program.data.path().join(".config/windlass");
    std::fs::create_dir_all(&directory).unwrap();
    let text =
        "[models]\nfast = \"litellm/small\"\nsmart = \"litellm/usual\"\ndeep = \"litellm/large\"\n";
    std::fs::write(directory.join("config.toml"), text).unwrap();
    let asked = |args: &[&str]| {
        let mut command = program.command(args);
        let ran = command.env_remove("LITELLM_MODEL").output().unwrap();
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
        let body = program.server.requests().last().unwrap().json();
        body["model"].as_str().unwrap().to_owned()
    };
    assert_eq!(asked(&["run", "x", "-q"]), "usual");
    assert_eq!(asked(&["run", "x", "-q", "--model-mode", "fast"]), "small");
    assert_eq!(asked(&["run", "x", "-q", "--model-mode", "deep"]), "large");
    let explicit = ["run", "x", "-q", "--model-mode", "fast", "--model", "litellm/chosen"];
    assert_eq!(asked(&explicit), "chosen");
}

/// A price that nobody knows is not zero, wherever a cost is shown.
#[test]
fn an_unknown_price_is_not_shown_as_nothing() {
    let program = Program::playing("replies: [{say: done}]");
    assert!(program.windlass(&["status"]).expect(0).stdout.contains("cost       $0.00 for"));
    program.windlass(&["run", "greet", "-q", "--model", "litellm/unpriced"]).expect(0);
    let listed = program.windlass(&["tasks"]).expect(0).stdout;
    assert!(!listed.contains('$'), "{listed}");
    let page = program.windlass(&["show", &program.task()]).expect(0).stdout;
    assert!(page.contains(" tokens, cost unknown\n"), "{page}");
}

/// The inbox shows the whole command and how to answer, so nobody allows what they have not read.
#[test]
fn the_inbox_shows_what_is_asked_about_and_how_to_answer() {
    let program = Program::playing("replies: [{bash: git push origin main}, {say: pushed}]");
    program.windlass(&["run", "publish", "--json"]).expect(3);
    let page = program.windlass(&["inbox"]).expect(0).stdout;
    assert!(page.contains("\n  │ $ git push origin main\n"), "{page}");
    assert!(page.contains("\n  1. Allow\n  2. Deny\n"), "{page}");
    let command = page.lines().find_map(|line| line.strip_prefix("  Answer with: windlass "));
    let question = command.unwrap().split(' ').nth(1).unwrap().to_owned();
    program.windlass(&["answer", &question, "7"]).expect(2);
    program.windlass(&["answer", &question, " "]).expect(2);
    program.windlass(&["answer", &question, "2"]).expect(0);
    program.windlass(&["resume", &program.task(), "-q"]).expect(0);
    assert!(program.last_message_sent().contains("denied"), "{}", program.last_message_sent());
}

#[test]
fn following_ends_when_nobody_reads_any_more() {
    use std::io::BufRead as _;
    let program = Program::playing("replies: [{ask_user: {question: sure?}}]");
    program.windlass(&["run", "ask", "--json"]).expect(3);
    let task = program.task();
    let mut following = program.start(&["events", &task, "--follow"]);
    let mut first = String::new();
    let mut output = std::io::BufReader::new(following.stdout.take().unwrap());
    output.read_line(&mut first).unwrap();
    assert!(first.contains("task_created"), "{first}");
    drop(output);
    // An event that does not end the task; printing it shows that the reader is gone.
    program.windlass(&["pause", &task]).expect(0);
    assert_eq!(following.wait().unwrap().code(), Some(0));
}

/// Eighty columns are enough, and what stands in the first names the task everywhere.
#[test]
fn the_list_fits_a_terminal() {
    let program = Program::playing("replies: [{ask_user: {question: sure?}}]");
    program.windlass(&["run", &"a long goal ".repeat(20), "--json"]).expect(3);
    let mut command = program.command(&["tasks"]);
    command.env("TERM", "xterm");
    let (written, code) = crate::terminal::Terminal::start(command, 80).end();
    let shown = crate::terminal::remains(&written);
    let lines: Vec<&str> = shown.lines().collect();
    assert_eq!((code, lines.len()), (0, 5), "{shown}");
    assert!(lines.iter().all(|line| line.chars().count() <= 80), "{shown}");
    assert!(lines[0].ends_with("GOAL") && lines[1].contains("a long goal"), "{shown}");
    let short = lines[1].split(' ').next().unwrap();
    let page = program.windlass(&["show", short]).expect(0).stdout;
    assert!(page.starts_with(&program.task()), "{page}");
}

#[test]
fn events_read_as_a_story() {
    let program = Program::playing(
        "replies: [{text: I look., calls: [{bash: 'echo one; exit 3'}]}, {ask_user: {question: sure?}}, {say: done}]",
    );
    program.windlass(&["run", "look around", "--json", "--sandbox", "host"]).expect(3);
    let task = program.task();
    program.windlass(&["answer", &task, "yes", "--resume", "-q"]).expect(0);
    let story = program.windlass(&["events", &task]).expect(0).stdout;
    // Times, sizes and ids vary; sandboxes differ by machine.
    let masked = story.lines().filter(|line| !line.contains(" sandbox_")).map(|line| {
        let words = line.split_whitespace().skip(2).map(|word| {
            let id = ["call_", "q_", "(q_"].iter().any(|start| word.starts_with(start));
            let number = word.trim_end_matches('k').parse::<f64>().is_ok();
            match (id, number) {
                (true, _) => "ID",
                (_, true) => "N",
                _ => word,
            }
        });
        words.collect::<Vec<_>>().join(" ")
    });
    insta::assert_snapshot!(masked.collect::<Vec<_>>().join("\n"));
    let call = calls(&program).remove(0);
    assert!(story.contains(&call), "the id that `outputs` takes is whole: {story}");
    assert!(story.lines().all(|line| line.chars().count() <= 160), "{story}");
}

/// A task that stands still says what a person can do about it.
#[test]
fn show_names_the_command_that_continues() {
    let next = |script: &str, code| {
        let program = Program::playing(script);
        program.windlass(&["run", "work", "-q"]).expect(code);
        let page = program.windlass(&["show", &program.task()]).expect(0).stdout;
        let line = page.lines().find_map(|line| line.strip_prefix("  next       windlass "));
        line.map(|line| line.replace(&program.task(), "TASK"))
    };
    assert_eq!(next("replies: [{say: done}]", 0), None);
    assert_eq!(next("replies: []", 1).as_deref(), Some("retry TASK"));
    let asked = next("replies: [{ask_user: {question: sure?}}]", 3).unwrap();
    assert!(asked.starts_with("answer q_") && asked.ends_with(" --resume"), "{asked}");
}

/// O-45, MS-199: what nobody knows the price of has no cost in any JSON; what is free costs nothing.
#[test]
fn a_cost_that_nobody_knows_is_null() {
    let script = "
replies:
  - spawn_agent: {task: 'look AROUND'}
    task: work
  - {say: done, task: work}
  - {turn: 0, task: AROUND, say: seen}
";
    let program = Program::playing(script);
    let run = ["run", "work", "--json", "--model", "litellm/unpriced"];
    let ran = program.windlass(&run).expect(0);
    let events = ran.json_lines();
    let below = events.iter().find(|event| event["event_type"] == "sub_agent_complete").unwrap();
    assert_eq!(below["data"]["cost_usd"], serde_json::Value::Null);
    let rows = program.windlass(&["tasks", "--json"]).expect(0).json_lines();
    assert!(rows.iter().all(|row| row["cost_usd"].is_null()), "{rows:?}");
    let total = program.windlass(&["cost", "--json"]).expect(0).json_lines().remove(0);
    assert!(total["total"]["cost_usd"].is_null(), "{total}");
    assert_eq!(total["total"]["unpriced_replies"], 3);
    let task = rows.iter().find(|row| row["parent_id"].is_null()).unwrap();
    let shown = program.windlass(&["show", task["task_id"].as_str().unwrap(), "--json"]).expect(0);
    assert!(shown.json_lines()[0]["cost_usd"].is_null(), "{shown:?}");
    let settings = "[models.\"unpriced\"]\ninput = 0\noutput = 0\n";
    let config = program.data.path().join(".config/windlass");
    std::fs::create_dir_all(&config).unwrap();
    std::fs::write(config.join("config.toml"), settings).unwrap();
    program.windlass(&run).expect(0);
    let newest = program.windlass(&["tasks", "--json"]).expect(0).json_lines().remove(0);
    assert_eq!(newest["cost_usd"], 0.0, "{newest}");
}

/// MS-120: the rounds and calls of a running task are shown as they are.
#[test]
fn the_figures_of_a_running_task_are_those_of_now() {
    let gate = windlass_testkit::Gate::new();
    let server = windlass_testkit::ModelServer::start("replies: [{bash: 'true'}, {say: done}]");
    server.next(windlass_testkit::Answer::script("bash: 'true'"));
    server.next(windlass_testkit::Answer::script("say: done").gated(0, &gate));
    let program = Program::with(server);
    let mut run = program.start(&["run", "work"]);
    gate.reached_blocking();
    let row = program.windlass(&["tasks", "--json"]).expect(0).json_lines().remove(0);
    assert_eq!((&row["usage"]["iterations"], &row["usage"]["tool_calls"]), (&1.into(), &1.into()));
    gate.open();
    assert!(run.wait().unwrap().success());
}
