//! Runners with programs that behave well and badly. The programs are scripts; processes, sandbox and
//! pseudo-terminal are real.

use std::time::Duration;

use serde_json::json;
use windlass_workflow::output::{AgentOutput, Missing};
use windlass_workflow::runner::{
    Activity, Asks, Claude, Codex, Command, Edit, GivenAnswer, Job, Order, Report, RunnerEnding,
    RunnerLimits,
};

use crate::runner_place::{Place, always, silent};

const RESULT: &str = r#"{"type":"result","subtype":"success","is_error":false,"result":"done","total_cost_usd":0.25,"usage":{"input_tokens":7,"output_tokens":3}}"#;

const ASK: &str = r#"{"type":"control_request","request_id":"r7","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{"command":"make"},"permission_suggestions":[{"type":"addRules","destination":"localSettings"}]}}"#;

fn claude(place: &Place, script: &str) -> Claude {
    let script = script.replace("RESULT", RESULT).replace("ASK", ASK);
    Claude { program: place.program("fake-claude", &script), arguments: Vec::new() }
}

/// Limits that a test can wait for.
fn short() -> RunnerLimits {
    let moment = Duration::from_millis(300);
    RunnerLimits {
        stall: Duration::from_secs(2),
        silence_after_tool: moment,
        linger: moment,
        interrupt: moment,
        grace: moment,
        ..RunnerLimits::DEFAULT
    }
}

fn failure(how: &RunnerEnding) -> &str {
    match how {
        RunnerEnding::Failed(why) | RunnerEnding::TimedOut(why) => why,
        RunnerEnding::Finished | RunnerEnding::Stopped => panic!("{how:?}"),
    }
}

#[tokio::test]
async fn a_program_that_prints_nothing_fails_its_step() {
    let place = Place::new();
    let run = place.run(&claude(&place, "exit 0"), place.job("go"), silent).await;
    let why = failure(&run.ended.how);
    assert!(why.contains("it printed nothing; it ended with code 0"), "{why}");
}

#[tokio::test]
async fn a_program_that_prints_garbage_fails_its_step() {
    let place = Place::new();
    let runner = claude(&place, r"printf '\x00\xff{{{ not json\n[1,2\n'; echo oh >&2; exit 3");
    let run = place.run(&runner, place.job("go"), silent).await;
    let why = failure(&run.ended.how);
    assert!(why.contains("it printed no message of Claude Code"), "{why}");
    assert!(why.contains("code 3") && why.contains("oh"), "{why}");
}

#[tokio::test]
async fn a_program_that_prints_too_much_is_ended() {
    let place = Place::new();
    let runner =
        claude(&place, "yes xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx | head -c 100000000; echo RESULT");
    let limits = RunnerLimits { output_bytes: 1024 * 1024, ..RunnerLimits::DEFAULT };
    let run = place.run(&runner, Job { limits, ..place.job("go") }, silent).await;
    assert_eq!(failure(&run.ended.how), "it printed more than 1 MiB");
}

#[tokio::test]
async fn a_missing_program_is_answered_with_how_to_install_it() {
    let place = Place::new();
    for (program, package) in
        [("/nowhere/claude", "@anthropic-ai/claude-code"), ("/nowhere/codex", "@openai/codex")]
    {
        let claude = Claude { program: program.to_owned(), arguments: Vec::new() };
        let codex = Codex { program: program.to_owned(), arguments: Vec::new() };
        for run in [
            place.run(&claude, place.job("go"), silent).await,
            place.run(&codex, place.job("go"), silent).await,
        ] {
            let why = failure(&run.ended.how);
            assert!(why.contains("npm install -g") && why.contains(package), "{why}");
        }
    }
    let argv = vec!["no-such-agent".to_owned()];
    let command = Command { name: "other".to_owned(), argv };
    let run = place.run(&command, place.job("go"), silent).await;
    let why = failure(&run.ended.how);
    assert!(why.contains("install `no-such-agent`"), "{why}");
    let own = Command { name: "own".to_owned(), argv: vec!["./agent.sh".to_owned()] };
    let run = place.run(&own, place.job("go"), silent).await;
    let why = failure(&run.ended.how);
    assert!(why.contains("`./agent.sh` is not in the worktree"), "{why}");
}

/// WF-010: the step counts by its result, although the program stays.
#[tokio::test]
async fn a_program_that_stays_after_its_result_is_ended() {
    let place = Place::new();
    let runner = claude(&place, "read; echo 'RESULT'; sleep 1000");
    let job = Job { limits: short(), ..place.job("go") };
    let run = place.run(&runner, job, silent).await;
    assert_eq!(run.ended.how, RunnerEnding::Finished);
    assert_eq!(run.ended.text, "done");
    assert_eq!(run.ended.usage.cost_usd, Some(0.25));
    assert_eq!(run.ended.notes, ["it did not end after its result and was ended"]);
}

#[tokio::test]
async fn silence_after_a_tool_result_ends_the_run() {
    let place = Place::new();
    let tool = r#"{"type":"user","message":{"content":[{"type":"tool_result","content":"ok"}]}}"#;
    let runner = claude(&place, &format!("echo '{tool}'; sleep 1000"));
    let job = Job { limits: short(), ..place.job("go") };
    let run = place.run(&runner, job, silent).await;
    assert_eq!(
        run.ended.how,
        RunnerEnding::TimedOut("it said nothing for 0 s after a tool's result".to_owned())
    );
}

#[tokio::test]
async fn a_result_before_the_children_have_ended_is_not_the_end() {
    let place = Place::new();
    let children = |tasks: &str| {
        format!(
            r#"echo '{{"type":"system","subtype":"background_tasks_changed","tasks":{tasks}}}'"#
        )
    };
    let last = RESULT.replace("done", "done after the tests");
    let script = format!(
        "read; {}; echo 'RESULT'; sleep 0.6; {}; echo '{last}'; cat >/dev/null",
        children(r#"[{"task_id":"b1"}]"#),
        children("[]"),
    );
    let job = Job { limits: short(), ..place.job("go") };
    let run = place.run(&claude(&place, &script), job, silent).await;
    assert_eq!(run.ended.how, RunnerEnding::Finished);
    assert_eq!(run.ended.text, "done after the tests");
}

/// WF-023: silence ends a program, and any output puts that off.
#[tokio::test]
async fn a_silent_program_is_ended_and_a_chatty_one_is_not() {
    let place = Place::new();
    let limits = RunnerLimits { stall: Duration::from_secs(1), ..short() };
    let job = || Job { limits, ..place.job("go") };
    let quiet = place.run(&claude(&place, "sleep 1000"), job(), silent).await;
    assert_eq!(quiet.ended.how, RunnerEnding::TimedOut("it printed nothing for 1 s".to_owned()));
    let chatty =
        "for i in $(seq 15); do echo '{\"type\":\"keep_alive\"}'; sleep 0.1; done; echo 'RESULT'";
    let chatty = place.run(&claude(&place, chatty), job(), silent).await;
    assert_eq!(chatty.ended.how, RunnerEnding::Finished);
}

/// WF-012…WF-016: kind, options, the person's words to its standard input, and it continues.
#[tokio::test]
async fn a_permission_is_asked_and_the_answer_is_written_back() {
    let place = Place::new();
    let runner =
        claude(&place, "read; echo 'ASK'; read answer; echo \"$answer\" > answer; echo 'RESULT'");
    let run = place.run(&runner, place.job("go"), always("Allow All")).await;
    assert_eq!(run.ended.how, RunnerEnding::Finished);
    let questions = run.questions();
    assert_eq!(questions.len(), 1);
    assert_eq!(questions[0].asks, Asks::Permission);
    assert_eq!(questions[0].options, ["Allow", "Deny", "Allow All"]);
    assert_eq!(questions[0].context.as_deref(), Some("make"));
    let answer: serde_json::Value = serde_json::from_str(&place.read("answer")).unwrap();
    let response = &answer["response"];
    assert_eq!(response["request_id"], "r7");
    assert_eq!(response["response"]["behavior"], "allow");
    assert_eq!(response["response"]["updatedInput"], json!({"command": "make"}));
    // Nothing that a person allows here is written into a settings file.
    assert_eq!(response["response"]["updatedPermissions"][0]["destination"], "session");
    assert!(run.activities().contains(&Activity::Waiting.to_string()));
}

#[tokio::test]
async fn an_answer_that_is_no_clear_yes_denies_with_the_words() {
    let place = Place::new();
    let runner =
        claude(&place, "read; echo 'ASK'; read answer; echo \"$answer\" > answer; echo 'RESULT'");
    place.run(&runner, place.job("go"), always("use cargo instead")).await;
    let answer: serde_json::Value = serde_json::from_str(&place.read("answer")).unwrap();
    let response = &answer["response"]["response"];
    assert_eq!(*response, json!({"behavior": "deny", "message": "use cargo instead"}));
}

#[tokio::test]
async fn a_waiting_question_stops_the_clocks() {
    let place = Place::new();
    let runner = claude(&place, "read; echo 'ASK'; read answer; echo 'RESULT'");
    let limits = RunnerLimits { stall: Duration::from_millis(400), ..short() };
    let job = Job { limits, ..place.job("go") };
    let run = place
        .run(&runner, job, |report| {
            let order = always("Allow")(report);
            if order.is_some() {
                // Longer than every clock of the job.
                std::thread::sleep(Duration::from_millis(1000));
            }
            order
        })
        .await;
    assert_eq!(run.ended.how, RunnerEnding::Finished);
}

#[tokio::test]
async fn an_answer_given_before_a_restart_is_used_once() {
    let place = Place::new();
    let twice = "read; echo 'ASK'; read a; echo 'ASK'; read b; echo \"$a\" > a; echo 'RESULT'";
    let runner = claude(&place, twice);
    let first = place.run(&runner, place.job("go"), always("Allow")).await;
    let fingerprint = first.questions()[0].fingerprint.clone();
    let answers = vec![GivenAnswer { fingerprint, text: "Deny: no".to_owned() }];
    let resume = Some("own-session".to_owned());
    let job = Job { answers, resume, ..place.job("go") };
    let run = place.run(&runner, job, always("Allow")).await;
    // The second time it asks, a person is asked.
    assert_eq!(run.questions().len(), 1);
    assert!(place.read("a").contains("deny"), "{}", place.read("a"));
}

/// WF-020: its own interrupt first, then SIGTERM; what it has written stays.
#[tokio::test]
async fn a_stopped_program_is_interrupted_first_and_its_work_is_kept() {
    let place = Place::new();
    let script = "read; echo half > work.txt; echo '{\"type\":\"system\",\"subtype\":\"init\",\"session_id\":\"s1\"}'
        while read line; do case $line in *interrupt*) echo saved > saved; echo 'RESULT'; exit;; esac; done";
    let stop = |report: &Report| matches!(report, Report::Session(_)).then_some(Order::Stop);
    let run = place.run(&claude(&place, script), place.job("go"), stop).await;
    assert_eq!(run.ended.how, RunnerEnding::Stopped);
    assert_eq!(run.ended.session.as_deref(), Some("s1"));
    assert_eq!((place.read("work.txt").trim(), place.read("saved").trim()), ("half", "saved"));
}

/// WF-020: a program that ignores everything is killed, after 10 seconds by default.
#[tokio::test]
async fn a_program_that_ignores_the_signal_is_killed() {
    assert_eq!(RunnerLimits::DEFAULT.grace, Duration::from_secs(10));
    let place = Place::new();
    let script =
        "trap '' TERM INT; echo '{\"type\":\"system\",\"subtype\":\"init\",\"session_id\":\"s1\"}'
        while true; do sleep 0.1; done";
    let stop = |report: &Report| matches!(report, Report::Session(_)).then_some(Order::Stop);
    let job = Job { limits: short(), ..place.job("go") };
    let run = place.run(&claude(&place, script), job, stop).await;
    assert_eq!(run.ended.how, RunnerEnding::Stopped);
}

/// WF-031: the servers of a task are in a file that nobody else can read; arguments are seen by every process.
#[tokio::test]
async fn mcp_servers_are_passed_without_showing_their_keys() {
    let place = Place::new();
    let script =
        "printf '%s\\n' \"$@\" > args; cp -p $STATE_FILE servers; stat -c %a $STATE_FILE > mode
        echo 'RESULT'";
    let servers =
        json!({"files": {"command": "npx", "args": ["-y", "server"], "env": {"KEY": "k-1"}}});
    let mcp_servers = servers.as_object().unwrap().clone();
    let job = Job { mcp_servers, ..place.job("go") };
    let script_of = |file: &str| script.replace("$STATE_FILE", file);
    let runner = claude(&place, &script_of("$CLAUDE_CONFIG_DIR/windlass-mcp.json"));
    place.run(&runner, job.clone(), silent).await;
    let args = place.read("args");
    assert!(!args.contains("k-1") && args.contains("--strict-mcp-config"), "{args}");
    assert!(args.contains("--mcp-config=/"), "{args}");
    let read: serde_json::Value = serde_json::from_str(&place.read("servers")).unwrap();
    assert_eq!(read, json!({"mcpServers": servers}));
    assert_eq!(place.read("mode"), "600\n");
    let program = place.program("fake-codex", &script_of("$CODEX_HOME/config.toml"));
    place.run(&Codex { program, arguments: Vec::new() }, job, silent).await;
    assert!(!place.read("args").contains("k-1"), "{}", place.read("args"));
    let expected = "mcp_servers.files = {args = [\"-y\", \"server\"], command = \"npx\", env = {KEY = \"k-1\"}}\n";
    assert!(place.read("servers").starts_with(expected), "{}", place.read("servers"));
    assert_eq!(place.read("mode"), "600\n");
}

fn bash(script: &str) -> Command {
    Command {
        name: "script".to_owned(),
        argv: ["bash", "-c", script, "script", "{prompt}"].map(str::to_owned).to_vec(),
    }
}

/// WF-008, WF-011…WF-016 on a screen.
#[tokio::test]
async fn a_question_on_a_terminal_is_asked_and_its_answer_typed() {
    let place = Place::new();
    let script = "[ -t 0 ] && [ -t 1 ] && echo \"a terminal of $(stty size)\"; echo \"prompt: $1\"
        read -p 'Overwrite made.txt? [y/N] ' answer; echo \"got $answer\" | tee made.txt";
    let run = place.run(&bash(script), place.job("do it"), always("Allow")).await;
    assert_eq!(run.ended.how, RunnerEnding::Finished, "{}", run.output());
    let questions = run.questions();
    assert_eq!(questions.len(), 1, "{}", run.output());
    assert_eq!(questions[0].asks, Asks::Permission);
    assert_eq!(questions[0].options, ["Allow", "Deny"]);
    assert_eq!(questions[0].question, "Overwrite made.txt?");
    assert_eq!(place.read("made.txt"), "got y\n");
    assert!(run.ended.text.contains("a terminal of 50 140\nprompt: do it"), "{}", run.ended.text);
    assert_eq!(run.activities().last().map(String::as_str), Some("ended"));
}

/// Nothing that is typed is echoed, the end of the line neither: what comes next begins a line all the same.
#[tokio::test]
async fn what_follows_an_answer_begins_a_line() {
    let place = Place::new();
    let script = r#"read -p 'Overwrite a.txt? [y/N] ' a; read -p 'Overwrite b.txt? [y/N] ' b
        printf '```json\n{"success": true, "summary": "%s"}\n```\n' "$a$b""#;
    let run = place.run(&bash(script), place.job("go"), always("Allow")).await;
    let asked: Vec<_> = run.questions().iter().map(|asked| asked.question.clone()).collect();
    assert_eq!(asked, ["Overwrite a.txt?", "Overwrite b.txt?"]);
    let said = AgentOutput::read(&run.ended.text).unwrap();
    assert_eq!((said.success, said.summary.as_str()), (true, "yy"));
}

#[tokio::test]
async fn a_menu_on_a_terminal_is_answered_by_its_number() {
    let place = Place::new();
    let script =
        "PS3='Choose a colour: '; select colour in red blue; do echo picked $colour; break; done";
    let run = place.run(&bash(script), place.job("go"), always("blue")).await;
    assert_eq!(run.ended.how, RunnerEnding::Finished);
    assert_eq!(run.questions()[0].options, ["red", "blue"]);
    assert!(run.ended.text.contains("picked blue"), "{}", run.ended.text);
}

#[tokio::test]
async fn a_prompt_that_no_argument_takes_is_typed() {
    let place = Place::new();
    let program = place.program("agent", "read line; echo \"worked on: $line\"");
    let command = Command { name: "agent".to_owned(), argv: vec![program] };
    let run = place.run(&command, place.job("paint it blue"), silent).await;
    assert_eq!(run.ended.how, RunnerEnding::Finished);
    assert!(run.ended.text.contains("worked on: paint it blue"), "{}", run.ended.text);
}

/// An error above the last words of an idle program does not hide what it says at its end.
#[tokio::test]
async fn an_idle_program_ends_with_its_output_below_an_error() {
    let place = Place::new();
    let script = "echo '⠋ Thinking…'; sleep 0.6; printf '\\033[2J\\033[H'
        echo 'error: the first attempt failed'; echo '```json'
        echo '{\"success\": true, \"summary\": \"done\"}'; echo '```'; sleep 1000";
    let limits = RunnerLimits { stall: Duration::from_secs(60), ..short() };
    let job = Job { limits, ..place.job("go") };
    let run = place.run(&bash(script), job, silent).await;
    assert_eq!(run.ended.how, RunnerEnding::Finished);
    assert_eq!(AgentOutput::read(&run.ended.text).unwrap().summary, "done");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_is_not_typed_when_the_screen_has_changed() {
    let place = Place::new();
    let script = "read -t 1 -p 'Delete everything? [y/N] ' a; echo; echo \"first: [$a]\"
        read -p 'Keep everything? [y/N] ' b; echo \"second: [$b]\"";
    let mut first = true;
    let run = place
        .run(&bash(script), place.job("go"), |report| match report {
            Report::Question(question) => {
                if std::mem::take(&mut first) {
                    // By now the program has given up on its first question.
                    std::thread::sleep(Duration::from_millis(2500));
                    return Some(Order::Answer {
                        question: question.id.clone(),
                        text: "Allow".to_owned(),
                    });
                }
                let text = if question.question.starts_with("Keep") { "No" } else { "Allow" };
                Some(Order::Answer { question: question.id.clone(), text: text.to_owned() })
            }
            _ => None,
        })
        .await;
    let text = &run.ended.text;
    assert!(text.contains("first: []") && text.contains("second: [n]"), "{text}");
}

/// A prompt as steps get it: it shows the block that the agent is to end with.
const PROMPT: &str = "Do it.\n\n```json\n{\"success\": true, \"summary\": \"what you did\"}\n```\n\n- Without the block it counts as failed.";

/// WF-053…058: a program that repeats its prompt has not said that it was successful; what it says itself counts.
#[tokio::test]
async fn the_example_of_a_repeated_prompt_is_not_the_output() {
    let place = Place::new();
    let run = place.run(&bash("printf '%s\n' \"$1\""), place.job(PROMPT), silent).await;
    assert_eq!(run.ended.how, RunnerEnding::Finished, "{}", run.output());
    assert!(run.output().contains("what you did"), "{}", run.output());
    assert_eq!(AgentOutput::read(&run.ended.text), Err(Missing::NoBlock), "{}", run.ended.text);
    let own =
        "printf '%s\n' \"$1\" '```json' '{\"success\": false, \"summary\": \"could not\"}' '```'";
    let run = place.run(&bash(own), place.job(PROMPT), silent).await;
    let output = AgentOutput::read(&run.ended.text).unwrap();
    assert_eq!((output.success, output.summary.as_str()), (false, "could not"));
    // Typed into a terminal, the prompt is echoed.
    let typed = place.program("agent", "while read -t 2 line; do :; done; echo worked");
    let typed = Command { name: "agent".to_owned(), argv: vec![typed] };
    let run = place.run(&typed, place.job(PROMPT), silent).await;
    assert!(run.ended.text.contains("worked"), "{}", run.ended.text);
    assert_eq!(AgentOutput::read(&run.ended.text), Err(Missing::NoBlock), "{}", run.ended.text);
}

/// The same words about another command are another question: an answer from before a restart is not used for it.
#[tokio::test]
async fn an_answer_on_a_screen_is_for_what_was_shown_above_it() {
    let place = Place::new();
    let asking = |command: &str| {
        bash(&format!(
            "echo '$ {command}'; read -p 'Run this command? [y/N] ' a; echo \"got [$a]\""
        ))
    };
    let first = place.run(&asking("make"), place.job("go"), always("Allow")).await;
    let fingerprint = first.questions()[0].fingerprint.clone();
    let answers = vec![GivenAnswer { fingerprint, text: "Allow".to_owned() }];
    let again = Job { answers: answers.clone(), ..place.job("go") };
    let again = place.run(&asking("make"), again, silent).await;
    assert!(
        again.questions().is_empty() && again.ended.text.contains("got [y]"),
        "{:?}",
        again.ended
    );
    let other = Job { answers, ..place.job("go") };
    let other = place.run(&asking("rm -r src"), other, always("Deny")).await;
    assert_eq!(other.questions().len(), 1, "a person is asked");
    assert!(other.ended.text.contains("got [n]"), "{:?}", other.ended);
}

#[tokio::test]
async fn a_command_that_fails_says_its_last_line() {
    let place = Place::new();
    let run = place
        .run(&bash("echo reading; echo 'no key found'; exit 4"), place.job("go"), silent)
        .await;
    assert_eq!(failure(&run.ended.how), "`script`: no key found; it ended with code 4");
    let said = r#"printf '```json\n{"success": true, "summary": "x"}\n```\n'; exit 3"#;
    let run = place.run(&bash(said), place.job("go"), silent).await;
    assert_eq!(failure(&run.ended.how), "`script`: after its result it ended with code 3");
}

/// One yes elsewhere switched every later question off; here it allows what was asked, whatever the program suggests.
#[tokio::test]
async fn no_answer_takes_all_brakes_off() {
    let place = Place::new();
    let ask = ASK.replace("Bash", "ExitPlanMode").replace(
        r#"{"type":"addRules","destination":"localSettings"}"#,
        r#"{"type":"setMode","mode":"bypassPermissions","destination":"session"}"#,
    );
    let script =
        format!("read; echo '{ask}'; read answer; echo \"$answer\" > answer; echo 'RESULT'");
    for answer in ["Allow", "Allow All"] {
        place.run(&claude(&place, &script), place.job("go"), always(answer)).await;
        let said = place.read("answer");
        assert!(said.contains(r#""behavior":"allow""#) && !said.contains("bypass"), "{said}");
    }
}

/// A Claude Code that started windlass leaves marks by which a second one would think that it runs inside it.
#[tokio::test]
async fn claude_code_does_not_see_another_one_around_it() {
    let place = Place::with_variables(&[
        ("CLAUDECODE", "1"),
        ("CLAUDE_CODE_ENTRYPOINT", "cli"),
        ("CLAUDE_CODE_SSE_PORT", "4711"),
    ]);
    let marks = "[$CLAUDECODE][$CLAUDE_CODE_ENTRYPOINT][$CLAUDE_CODE_SSE_PORT]";
    let other = bash(&format!("echo \"{marks}\" > marks"));
    place.run(&other, place.job("go"), silent).await;
    assert_eq!(place.read("marks"), "[1][cli][4711]\n", "any other program finds them");
    let script = format!("echo \"{marks}\" > marks; read; echo 'RESULT'");
    place.run(&claude(&place, &script), place.job("go"), silent).await;
    assert_eq!(place.read("marks"), "[][][]\n");
}

/// A program that asks to edit a file says which, so that it can be claimed first.
#[tokio::test]
async fn a_question_names_the_file_that_it_would_edit() {
    let place = Place::new();
    let ask = ASK
        .replace("Bash", "Edit")
        .replace(r#"{"command":"make"}"#, r#"{"file_path":"/w/a.rs","old_string":"one"}"#);
    let script = format!("read; echo '{ask}'; read answer; echo 'RESULT'");
    let run = place.run(&claude(&place, &script), place.job("go"), always("Allow")).await;
    let edit = Edit { path: "/w/a.rs".to_owned(), old: Some("one".to_owned()) };
    assert_eq!(run.questions()[0].edits, [edit]);
}
