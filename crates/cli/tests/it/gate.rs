//! The gate: what is refused, what is asked, and what an answer does.

use serde_json::Value;
use windlass_testkit::ModelServer;

use crate::program::{Program, Ran, Tested};

fn playing(script: &str) -> Program {
    let program = Program::with(ModelServer::start(script));
    std::fs::write(program.workspace().join("old.txt"), "x").unwrap();
    program
}

fn risk_checks(ran: &Ran) -> Vec<Value> {
    let events = ran.json_lines().into_iter();
    events.filter(|event| event["event_type"] == "risk_check").map(|e| e["data"].clone()).collect()
}

/// ES-012, ES-319: every call has its decision journaled, with all five axes.
#[test]
fn one_gate_every_call_is_decided_and_journaled_with_the_axes() {
    let program =
        playing("replies: [{bash: cat old.txt}, {write: {path: a, content: b}}, {say: ok}]");
    let ran = program.windlass(&["run", "x", "--json"]).expect(0);
    let checks = risk_checks(&ran);
    assert_eq!(checks.len(), 2);
    assert_eq!(checks[0]["class"], "read");
    assert_eq!(checks[1]["class"], "edit");
    assert_eq!(checks[1]["risk"], "MEDIUM");
    let axes = checks[0]["axes"].as_object().unwrap();
    let names: Vec<_> = axes.keys().map(String::as_str).collect();
    assert_eq!(names, ["modelMode", "permissionProfile", "runControl", "surface", "workMode"]);
    let kinds = ran.kinds();
    for (place, kind) in kinds.iter().enumerate() {
        assert!(kind != "tool_call" || kinds[place - 1] == "risk_check", "{kinds:?}");
    }
}

/// ES-117, ES-252: killed while blocked, allowed from another process.
#[test]
fn an_allowed_call_runs_exactly_once_after_the_process_was_killed() {
    let program = playing("replies: [{bash: rm old.txt && echo gone >> log}, {say: done}]");
    let ran = program.windlass(&["run", "clean up", "--json"]).expect(3);
    assert_eq!(ran.result()["status"], "BLOCKED_USER");
    let asked = ran.result()["hitl_request"].clone();
    assert!(
        asked["context"].as_str().unwrap().contains("rm old.txt"),
        "the call that waits: {asked}"
    );
    assert_eq!(
        asked["options"],
        serde_json::json!(["Allow", "Deny"]),
        "never a rule for destruction"
    );
    assert!(program.workspace().join("old.txt").exists(), "nothing ran before the answer");

    let task = program.task();
    program.windlass(&["answer", &task, "maybe"]).expect(2);
    program.windlass(&["answer", &task, "Allow"]).expect(0);
    let ran = program.windlass(&["resume", &task, "--json"]).expect(0);
    assert_eq!(ran.result()["status"], "COMPLETED");
    assert!(!program.workspace().join("old.txt").exists());
    assert_eq!(program.file("log"), "gone\n");
    let check = risk_checks(&ran).pop().unwrap();
    assert_eq!(check["decision"], "allow");
    assert!(check["reason"].as_str().unwrap().contains("approved by a person"), "{check}");
}

/// AX-005, AX-025, AX-099, AX-101: a refusal is feedback, and the task finds another way.
#[test]
fn a_denied_call_does_not_run_and_the_task_finishes_another_way() {
    let program =
        playing("replies: [{bash: rm old.txt}, {bash: mv old.txt aside}, {say: moved it}]");
    program.windlass(&["run", "clean up", "--json"]).expect(3);
    let task = program.task();
    program.windlass(&["answer", &task, "Deny: move it aside instead"]).expect(0);
    let ran = program.windlass(&["resume", &task, "--json"]).expect(0);
    assert_eq!(ran.result()["final_message"], "moved it");
    let request = program.server.requests()[1].json();
    let result = request["messages"].as_array().unwrap().last().unwrap()["content"].clone();
    let result = result.as_str().unwrap();
    assert!(result.starts_with("DENIED: This action is not permitted.\n"), "{result}");
    let feedback: Value = serde_json::from_str(result.lines().nth(1).unwrap()).unwrap();
    assert!(feedback["reason"].as_str().unwrap().contains("move it aside instead"), "{feedback}");
    assert!(program.workspace().join("aside").exists());
}

/// ES-116, ES-253, ES-263, AX-022, AX-023, AX-037, AX-084, AX-098: nothing makes it try again.
#[test]
fn catastrophic_and_privileged_commands_are_denied_under_every_profile() {
    for profile in ["restricted", "normal", "trusted", "unrestricted"] {
        for command in ["sudo ls", "rm -rf build"] {
            let calls = format!("calls: [{{bash: {command}}}, {{read: old.txt}}]");
            let script = format!("replies: [{{{calls}}}, {{say: understood}}]");
            let program = playing(&script);
            let config = program.data.path().join(".config/windlass/config.toml");
            std::fs::create_dir_all(config.parent().unwrap()).unwrap();
            std::fs::write(&config, "[policy]\nallow_unrestricted = true\n").unwrap();
            let run = ["run", "x", "--permission-profile", profile, "--json"];
            let ran = program.windlass(&run).expect(0);
            assert_eq!(risk_checks(&ran)[0]["decision"], "deny", "{command} under {profile}");
            assert_eq!(risk_checks(&ran)[0]["risk"], "CRITICAL", "{command} under {profile}");
            let body = program.server.requests().last().unwrap().json();
            let messages = body["messages"].as_array().unwrap();
            let [denied, next] = &messages[messages.len() - 2..] else { panic!("{body}") };
            assert_eq!(next["content"], "     1\tx\n", "the next call of the reply runs");
            let result = denied["content"].as_str().unwrap();
            let (first, rest) = result.split_once('\n').unwrap();
            assert_eq!(first, "DENIED: This action is not permitted.");
            let feedback: Value = serde_json::from_str(rest).unwrap();
            let keys: Vec<_> = feedback.as_object().unwrap().keys().map(String::as_str).collect();
            assert_eq!(keys, ["can_retry", "reason", "suggestions", "tool"]);
            assert!(!feedback["suggestions"].as_array().unwrap().is_empty());
        }
    }
}

/// MS-065: `unrestricted` needs an explicit opt-in.
#[test]
fn unrestricted_is_refused_without_the_opt_in() {
    let program = playing("replies: [{say: hi}]");
    let refused = program.windlass(&["run", "x", "--permission-profile", "unrestricted"]).expect(2);
    assert!(refused.stderr.contains("allow_unrestricted"), "{refused:?}");
}

/// MS-046: manual control asks for an edit even where the profile allows it, and for each.
#[test]
fn manual_control_asks_for_an_edit_under_trusted() {
    let edit = |from: &str, to: &str| {
        format!("{{edit: {{path: old.txt, old_string: {from}, new_string: {to}}}}}")
    };
    let edits = [edit("x", "b"), edit("b", "c"), edit("c", "d")].join(", ");
    let program = playing(&format!("replies: [{{read: old.txt}}, {edits}, {{say: done}}]"));
    let ran = program.windlass(&["run", "x", "--control", "manual", "--json"]).expect(3);
    assert!(
        ran.result()["hitl_request"]["question"].as_str().unwrap().starts_with("Make this change?")
    );
    assert_eq!(program.file("old.txt"), "x", "looking is not asked about, editing is");
    let task = program.task();
    program.windlass(&["answer", &task, "Allow"]).expect(0);
    program.windlass(&["resume", &task, "--json"]).expect(3);
    assert_eq!(program.file("old.txt"), "b", "one answer, one call");
    program.windlass(&["answer", &task, "Allow All"]).expect(0);
    program.windlass(&["resume", &task, "--json"]).expect(0);
    assert_eq!(program.file("old.txt"), "d");
}

/// MS-062: what the configuration names runs under `restricted`, and nothing beside it.
#[test]
fn restricted_runs_what_is_allowlisted() {
    let program =
        playing("replies: [{bash: touch made.txt}, {bash: touch other.txt}, {say: done}]");
    let config = program.data.path().join(".config/windlass/config.toml");
    std::fs::create_dir_all(config.parent().unwrap()).unwrap();
    std::fs::write(&config, "[policy]\nallow = ['touch made.txt']\n").unwrap();
    let run = ["run", "x", "--permission-profile", "restricted", "--json"];
    let ran = program.windlass(&run).expect(0);
    let decisions: Vec<_> = risk_checks(&ran).iter().map(|it| it["decision"].clone()).collect();
    assert_eq!(decisions, ["allow", "deny"]);
    assert!(program.workspace().join("made.txt").exists());
    assert!(!program.workspace().join("other.txt").exists());
}

/// ES-203, MS-066: not offered, and a forged call is refused.
#[test]
fn restricted_offers_no_editing_tools_and_refuses_a_forged_call() {
    let program = playing("replies: [{write: {path: a, content: b}}, {say: ok}]");
    let run = ["run", "x", "--permission-profile", "restricted", "--json"];
    let ran = program.windlass(&run).expect(0);
    let body = program.server.requests()[0].json();
    let tools = body["tools"].as_array().unwrap().iter();
    let names: Vec<_> = tools.map(|tool| tool["function"]["name"].as_str().unwrap()).collect();
    assert!(!names.contains(&"write") && !names.contains(&"edit"), "{names:?}");
    assert!(names.contains(&"read"));
    assert_eq!(risk_checks(&ran)[0]["decision"], "deny");
    assert!(!program.workspace().join("a").exists());
}

/// WF-017, WF-018: the rule of `Allow All` covers the same command, but nothing appended to it.
#[test]
fn allow_all_covers_the_same_command_and_nothing_appended_to_it() {
    let script = "replies: [{bash: make test}, {bash: make test}, {bash: 'make test; rm old.txt'}, \
                  {say: done}]";
    let program = playing(script);
    std::fs::write(program.workspace().join("Makefile"), "test:\n\techo tested >> log\n").unwrap();
    let run = ["run", "x", "--permission-profile", "normal", "--json"];
    let ran = program.windlass(&run).expect(3);
    let asked = ran.result()["hitl_request"].clone();
    assert_eq!(asked["options"], serde_json::json!(["Allow", "Deny", "Allow All"]));
    let inbox = program.windlass(&["inbox", "--json"]).expect(0).json_lines();
    assert_eq!(inbox[0]["question"]["kind"], "permission");
    assert!(asked["context"].as_str().unwrap().contains("`Allow All` allows"), "{asked}");
    let task = program.task();
    program.windlass(&["answer", &task, "Allow All"]).expect(0);
    let ran = program.windlass(&["resume", &task, "--json"]).expect(3);
    let asked = ran.result()["hitl_request"].clone();
    assert!(asked["question"].as_str().unwrap().contains("removes files"), "{asked}");
    assert!(asked["context"].as_str().unwrap().contains("rm old.txt"), "{asked}");
    let started = ran.kinds().into_iter().filter(|kind| kind == "tool_call").count();
    assert_eq!(started, 2, "the second was not asked about again, the third did not run");
    let rules = program.windlass(&["permissions"]).expect(0);
    assert!(rules.stdout.contains("make test"), "{rules:?}");
    program.windlass(&["permissions", "--revoke", "1"]).expect(0);
    assert_eq!(program.windlass(&["permissions"]).expect(0).stdout, "");
}

/// AX-119, MS-017: the denylist's own reason reaches the model.
#[test]
fn a_denylist_entry_refuses_with_its_reason() {
    let program = playing("replies: [{bash: git push origin main}, {say: ok}]");
    let config = program.data.path().join(".config/windlass/config.toml");
    std::fs::create_dir_all(config.parent().unwrap()).unwrap();
    let text = "[[policy.deny]]\npattern = \"git push *\"\n\
                reason = \"Executors cannot push directly. Create a PR for review.\"\n";
    std::fs::write(&config, text).unwrap();
    program.windlass(&["run", "x", "--json"]).expect(0);
    let result = program.last_message_sent();
    assert!(result.contains("Executors cannot push directly. Create a PR for review."), "{result}");
}

#[test]
fn explain_says_what_a_command_would_do_under_each_profile() {
    let program = playing("replies: []");
    let plain = program.windlass(&["explain", "echo hi && rm -rf build | cat"]).expect(0);
    insta::assert_snapshot!(plain.stdout);
    let json = program.windlass(&["explain", "--json", "git push origin topic"]).expect(0);
    let value = &json.json_lines()[0];
    let keys: Vec<_> = value.as_object().unwrap().keys().map(String::as_str).collect();
    let promised =
        ["class", "command", "commands", "decisions", "parsed", "profile", "reason", "risk"];
    assert_eq!(keys, promised);
    assert_eq!(value["risk"], "HIGH");
    assert_eq!(value["decisions"]["unrestricted"], "allow");
}

/// A force push is called one wherever somebody is asked about it.
#[test]
fn a_force_push_is_named_as_one() {
    let program = playing("replies: []");
    for (command, reason) in [
        ("git push --force origin topic", "force-pushes: replaces history elsewhere"),
        ("git push origin +topic", "force-pushes: replaces history elsewhere"),
        (
            "git push -f origin main",
            "force-pushes to `main`, a protected branch: replaces its history",
        ),
        ("git push origin main", "pushes to `main`, a protected branch"),
    ] {
        let said = program.windlass(&["explain", "--json", command]).expect(0).json_lines();
        assert_eq!(said[0]["reason"], reason, "{command}");
    }
}

/// MS-047, MS-048: assisted control pauses after the unit, and the reason a run ended is recorded.
#[test]
fn assisted_control_waits_for_a_person_after_the_unit() {
    let program = playing("replies: [{say: finished}, {say: fixed}]");
    let ran = program.windlass(&["run", "x", "--control", "assisted", "--json"]).expect(4);
    assert_eq!(ran.result()["final_message"], "finished");
    let task = program.task();
    program.windlass(&["send", &task, "not quite"]).expect(0);
    program.windlass(&["resume", &task, "--json"]).expect(4);
    let ran = program.windlass(&["resume", &task, "--json"]).expect(0);
    assert_eq!(ran.result()["final_message"], "fixed");
    let moved = ran.json_lines().into_iter().find(|e| e["event_type"] == "status_changed");
    assert_eq!(moved.unwrap()["data"]["reason"], "finished");
}

/// AX-007, AX-026, AX-100: the reason is journaled, another way is tried, and an agent that finds none asks a person;
/// no denial ends the task.
#[test]
fn an_agent_that_is_denied_may_ask_a_person() {
    let program = playing(
        "replies: [{bash: sudo reboot}, {bash: sudo shutdown}, {ask_user: {question: may somebody reboot it?}}, \
         {say: ok}]",
    );
    let ran = program.windlass(&["run", "x", "--json"]).expect(3);
    let checks = risk_checks(&ran);
    for check in &checks[..2] {
        assert_eq!(check["decision"], "deny");
        assert!(!check["reason"].as_str().unwrap().is_empty(), "{check}");
    }
    let kinds = ran.kinds();
    let steps = ["risk_check", "tool_result", "question_asked", "status_changed", "agent_end"];
    let order: Vec<_> = kinds.iter().filter(|kind| steps.contains(&kind.as_str())).collect();
    let expected = [
        "status_changed",
        "risk_check",
        "tool_result",
        "risk_check",
        "tool_result",
        "risk_check",
        "question_asked",
        "status_changed",
        "agent_end",
    ];
    assert_eq!(order, expected);
    assert_eq!(ran.result()["status"], "BLOCKED_USER");
    assert_eq!(ran.result()["hitl_request"]["question"], "may somebody reboot it?");
    let task = program.task();
    program.windlass(&["answer", &task, "no", "--resume", "-q"]).expect(0);
}

/// MS-048: the reason why an autonomous run ended is always recorded.
#[test]
fn the_reason_an_autonomous_run_ended_is_recorded() {
    let ended = |script: &str, args: &[&str], code: i32| {
        let program = playing(script);
        let run = [&["run", "x", "--control", "autonomous", "--json"], args].concat();
        let ran = program.windlass(&run).expect(code);
        let moved = ran.json_lines().into_iter().rfind(|e| e["event_type"] == "status_changed");
        let moved = moved.unwrap()["data"].clone();
        let [to, reason] = ["to", "reason"].map(|field| moved[field].as_str().unwrap().to_owned());
        format!("{to} {reason}")
    };
    assert_eq!(ended("replies: [{say: done}]", &[], 0), "done finished");
    assert_eq!(ended("replies: [{ask_user: {question: a?}}]", &[], 3), "blocked question");
    let two = "replies: [{read: old.txt}, {glob: '*'}, {say: done}]";
    assert_eq!(ended(two, &["--max-iterations", "1"], 1), "failed error");
}

/// MS-015, MS-016, MS-018, MS-019, MS-196: a profile sets no other axis and not the sandbox, which is none.
#[test]
fn axes_are_independent_and_every_decision_names_all_of_them() {
    let program = playing("replies: [{read: old.txt}, {say: ok}]");
    let run = ["run", "x", "--permission-profile", "restricted", "--json"];
    let ran = program.windlass(&run).expect(0);
    let check = &risk_checks(&ran)[0];
    let axes = serde_json::json!({
        "workMode": "build", "runControl": "autonomous", "permissionProfile": "restricted",
        "modelMode": "smart", "surface": "headless",
    });
    assert_eq!(check["axes"], axes);
    let start = ran.json_lines().into_iter().find(|e| e["event_type"] == "agent_start").unwrap();
    let place = if crate::SANDBOX == Tested::Local { "local" } else { "docker" };
    assert_eq!(start["data"]["container"], place);

    let program = playing("replies: [{read: old.txt}, {say: ok}]");
    let config = program.data.path().join(".config/windlass/config.toml");
    std::fs::create_dir_all(config.parent().unwrap()).unwrap();
    std::fs::write(&config, "[policy]\nallow_unrestricted = true\n").unwrap();
    let run = ["run", "x", "--json", "--permission-profile", "unrestricted", "--control", "manual"];
    let ran = program.windlass(&run).expect(0);
    let axes = risk_checks(&ran)[0]["axes"].clone();
    assert_eq!(axes["permissionProfile"], "unrestricted");
    assert_eq!((&axes["runControl"], &axes["modelMode"]), (&"manual".into(), &"smart".into()));
}

/// AX-024, AX-062…068, AX-073, AX-084, ES-412: the prompt tells what to do about a denial; the rules are the profile's.
#[test]
fn the_prompt_speaks_of_denials_and_of_the_rules_in_force() {
    let section = |profile: &str, heading: &str| {
        let program = playing("replies: [{say: ok}]");
        program.windlass(&["run", "x", "--permission-profile", profile, "--json"]).expect(0);
        let body = program.server.requests()[0].json();
        let system = body["messages"][0]["content"].as_str().unwrap();
        let (_, rest) = system.split_once(&format!("# {heading}\n")).expect("the section");
        let section = rest.split("\n# ").next().unwrap();
        section.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let denials = section("normal", "On Permission Denials");
    for words in [
        "A denial is feedback, not the end of the task",
        "1. Note the reason: read what the denial says.",
        "2. Consider other ways: a different command, the same goal in smaller steps that are allowed, \
         another tool that is permitted.",
        "3. Try the one that fits best.",
        "4. If there is none, explain what you want to achieve and why the denied way seemed necessary, \
         and ask the user with `ask_user` how to continue.",
        "5. Never just give up because of a denial.",
        "Example: `git push` is denied. Create a pull request instead, or ask the user to push.",
    ] {
        assert!(denials.contains(words), "{words}: {denials}");
    }
    let rules = ["restricted", "normal", "trusted"].map(|profile| section(profile, "Safety"));
    for (profile, rules) in ["restricted", "normal", "trusted"].iter().zip(&rules) {
        assert!(rules.contains(&format!("permission profile `{profile}`")), "{rules}");
    }
    let without = |at: usize, name: &str| rules[at].replace(name, "");
    assert_ne!(without(0, "restricted"), without(1, "normal"), "more than the name differs");
    assert_ne!(without(1, "normal"), without(2, "trusted"), "more than the name differs");
}

/// The profile that a person has set holds for every task that does not say otherwise.
#[test]
fn the_configured_profile_holds_unless_a_flag_says_otherwise() {
    let program = Program::playing("replies: [{bash: touch made.txt}, {say: done}]");
    let directory = program.data.path().join(".config/windlass");
    std::fs::create_dir_all(&directory).unwrap();
    std::fs::write(directory.join("config.toml"), "[policy]\nprofile = \"restricted\"\n").unwrap();
    let axes = |args: &[&str]| {
        program.windlass(args).expect(0);
        let page = program.windlass(&["show", &program.task()]).expect(0).stdout;
        page.lines().find_map(|line| line.strip_prefix("  settings   ")).unwrap().to_owned()
    };
    assert_eq!(
        axes(&["run", "touch", "-q"]),
        "mode build, control autonomous, profile restricted, model smart"
    );
    assert!(!program.workspace().join("made.txt").exists(), "restricted denies it");
    let trusted = axes(&["run", "touch", "-q", "--permission-profile", "trusted"]);
    assert_eq!(trusted, "mode build, control autonomous, profile trusted, model smart");
    assert!(program.workspace().join("made.txt").exists());
    // The same holds for tasks of a service.
    let watch = ["schedule", "add", "--monitor", "watch", "--check", "done?", "--every", "1h"];
    assert_eq!(axes(&watch), "mode build, control autonomous, profile restricted, model smart");
}

/// A typo in a command costs one turn; the task does not wait for a person.
#[test]
fn a_command_with_a_syntax_error_parks_no_task() {
    let program = Program::playing(
        "replies: [{bash: 'echo \"never closed'}, {bash: 'echo closed > closed'}, {say: fixed}]",
    );
    let ran = program.windlass(&["run", "say something"]).expect(0);
    assert_eq!(ran.stdout.trim(), "fixed");
    assert_eq!(program.file("closed"), "closed\n");
    let request = program.server.requests()[1].json().to_string();
    assert!(request.contains("bash cannot read this command"), "{request}");
}
