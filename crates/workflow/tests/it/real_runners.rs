//! The real Claude Code and codex, as npm has them, against the scripted model server: offline, in a sandbox that
//! reaches that server and nothing else.

use windlass_testkit::{ModelServer, git};
use windlass_workflow::runner::{Asks, Claude, Codex, Job, Order, Report, Runner, RunnerEnding};

use crate::runner_place::{Place, Run, always, installed};

const CLAUDE_SCRIPT: &str = "
replies:
  - text: I make the file.
    calls:
      - Bash: {command: \"printf 'made by claude\\n' > made.txt\", description: make a file}
  - say: |
      Done.

      ```json
      {\"success\": true, \"summary\": \"made a file\"}
      ```
";

const CODEX_SCRIPT: &str = "
replies:
  - text: I make the file.
    calls:
      - exec_command: {cmd: \"printf 'made by codex\\n' > made.txt\"}
  - say: |
      Done.

      ```json
      {\"success\": true, \"summary\": \"made a file\"}
      ```
";

fn claude() -> Claude {
    Claude { program: installed(".bin/claude"), arguments: Vec::new() }
}

fn codex(server: &ModelServer) -> Codex {
    let base = server.base();
    let provider = format!(
        "model_providers.scripted={{name=\"scripted\", base_url=\"{base}/v1\", wire_api=\"responses\", \
         env_key=\"OPENAI_API_KEY\"}}"
    );
    let arguments = ["-c", &provider, "-c", "model_provider=\"scripted\"", "-c", "model=\"gpt-5\""];
    Codex { program: installed(".bin/codex"), arguments: arguments.map(str::to_owned).to_vec() }
}

/// What a person's configuration gives the programs: their key, their server, and that it is reached by the proxy.
fn job(place: &Place, server: &ModelServer) -> Job {
    let environment = [
        ("ANTHROPIC_BASE_URL", server.base()),
        ("ANTHROPIC_API_KEY", "test-key".to_owned()),
        ("OPENAI_API_KEY", "test-key".to_owned()),
        ("NO_PROXY", String::new()),
        ("no_proxy", String::new()),
    ];
    let environment = environment.map(|(name, value)| (name.to_owned(), value)).to_vec();
    Job { environment, ..place.job("make a file") }
}

fn assert_made(place: &Place, run: &Run, content: &str) {
    assert_eq!(run.ended.how, RunnerEnding::Finished, "{:?}\n{}", run.ended, run.output());
    assert_eq!(place.read("made.txt"), content);
    let questions = run.questions();
    assert_eq!(questions.len(), 1, "{questions:?}");
    assert_eq!(questions[0].asks, Asks::Permission);
    assert_eq!(questions[0].options, ["Allow", "Deny", "Allow All"]);
    assert!(questions[0].context.as_deref().unwrap().contains("> made.txt"), "{questions:?}");
    assert!(run.ended.text.contains(r#"{"success": true"#), "{}", run.ended.text);
    assert!(run.ended.usage.input_tokens > 0 && run.ended.usage.output_tokens > 0);
    let activities = run.activities();
    for expected in ["thinking", "running_command", "waiting", "writing", "ended"] {
        assert!(activities.iter().any(|activity| activity == expected), "{activities:?}");
    }
}

/// WF-008…WF-016 with the real program.
#[tokio::test]
async fn the_real_claude_code_asks_before_it_changes_a_file() {
    let server = ModelServer::start(CLAUDE_SCRIPT);
    let place = Place::reaching(&server);
    let run = place.run(&claude(), job(&place, &server), always("Allow")).await;
    assert_made(&place, &run, "made by claude\n");
    assert!(run.ended.usage.cost_usd.is_some());
}

/// WF-008…WF-016 with the real program.
#[tokio::test]
async fn the_real_codex_asks_before_it_changes_a_file() {
    let server = ModelServer::start(CODEX_SCRIPT);
    let place = Place::reaching(&server);
    let run = place.run(&codex(&server), job(&place, &server), always("Allow")).await;
    assert_made(&place, &run, "made by codex\n");
}

#[tokio::test]
async fn a_denied_permission_reaches_the_real_programs() {
    let scripts =
        [CLAUDE_SCRIPT.replace("say: |", "expect: not today\n    say: |"), CODEX_SCRIPT.to_owned()];
    for (number, script) in scripts.iter().enumerate() {
        let server = ModelServer::start(script);
        let place = Place::reaching(&server);
        let (claude, codex) = (claude(), codex(&server));
        let runner: &dyn Runner = if number == 0 { &claude } else { &codex };
        let run = place.run(runner, job(&place, &server), always("Deny: not today")).await;
        assert_eq!(run.ended.how, RunnerEnding::Finished, "{:?}\n{}", run.ended, run.output());
        assert!(!place.work.join("made.txt").exists());
    }
}

/// A run that is stopped while it waits is resumed by the program's own session.
#[tokio::test]
async fn a_question_of_the_real_codex_survives_a_restart() {
    let script = CODEX_SCRIPT.replace(
        "  - say: |",
        "  - exec_command: {cmd: \"printf 'made by codex\\n' > made.txt\"}\n  - say: |",
    );
    let server = ModelServer::start(&script);
    let place = Place::reaching(&server);
    let codex = codex(&server);
    let stop = |report: &Report| matches!(report, Report::Question(_)).then_some(Order::Stop);
    let first = place.run(&codex, job(&place, &server), stop).await;
    assert_eq!(first.ended.how, RunnerEnding::Stopped);
    assert!(!place.work.join("made.txt").exists());
    let job = Job { resume: first.ended.session.clone(), ..job(&place, &server) };
    let second = place.run(&codex, job, always("Allow")).await;
    assert_eq!(second.ended.how, RunnerEnding::Finished, "{:?}", second.ended);
    assert_eq!(second.ended.session, first.ended.session);
    let asked = |run: &Run| run.questions()[0].fingerprint.clone();
    assert_eq!(asked(&second), asked(&first), "the same question was asked again");
    assert_eq!(place.read("made.txt"), "made by codex\n");
}

/// Settings of a project that nobody has approved would start a command.
#[tokio::test]
async fn the_real_codex_starts_no_server_of_an_untrusted_project() {
    let server = ModelServer::start(CODEX_SCRIPT);
    let place = Place::reaching(&server);
    let evil = "[mcp_servers.evil]\ncommand = \"bash\"\nargs = [\"-c\", \"touch started.txt\"]\n";
    let settings = place.work.join(".codex");
    std::fs::create_dir(&settings).unwrap();
    std::fs::write(settings.join("config.toml"), evil).unwrap();
    git(&place.work, &["init", "-q"]);
    let run = place.run(&codex(&server), job(&place, &server), always("Allow")).await;
    assert_made(&place, &run, "made by codex\n");
    assert!(!place.work.join("started.txt").exists(), "the project's server has run");
    let own = place.read(".windlass/runner/config.toml");
    assert!(!own.contains("\"trusted\""), "{own}");
}

/// WF-006: neither program reads them by itself, for we let it read no settings of a project.
#[tokio::test]
async fn instructions_of_the_project_reach_the_real_programs() {
    for script in [CLAUDE_SCRIPT, CODEX_SCRIPT] {
        let server = ModelServer::start(script);
        let place = Place::reaching(&server);
        let (claude, codex) = (claude(), codex(&server));
        let runner: &dyn Runner = if script == CLAUDE_SCRIPT { &claude } else { &codex };
        let instructions = Some("Paint every door green.".to_owned());
        let job = Job { instructions, ..job(&place, &server) };
        let run = place.run(runner, job, always("Allow")).await;
        assert_eq!(run.ended.how, RunnerEnding::Finished, "{:?}", run.ended);
        let sent = server.requests().iter().any(|request| {
            String::from_utf8_lossy(&request.body).contains("Paint every door green.")
        });
        assert!(sent, "{}: the instructions are in no request", runner.name());
    }
}
