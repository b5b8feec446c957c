//! `config`, `models`, `trust`, `doctor`: what is set, and whether it works.

use crate::program::Program;
use crate::terminal::Terminal;

fn program() -> Program {
    Program::playing("replies: [{say: pong}]")
}

fn with_project_file(text: &str) -> Program {
    let program = program();
    std::fs::create_dir_all(program.workspace().join(".windlass")).unwrap();
    std::fs::write(program.workspace().join(".windlass/config.toml"), text).unwrap();
    program
}

#[test]
fn config_names_every_value_and_where_it_came_from() {
    let program = program();
    let page = program.windlass(&["config"]).expect(0);
    let line = page.stdout.lines().find(|line| line.starts_with("models.smart")).unwrap();
    assert!(
        line.contains("litellm/gpt-4o") && line.ends_with("environment LITELLM_MODEL"),
        "{line}"
    );
    assert!(page.stdout.contains("agent.max_iterations"), "{}", page.stdout);
    assert!(page.stdout.contains("server.listen"), "{}", page.stdout);
    assert!(page.stdout.contains("policy.profile") && !page.stdout.contains("  -  "), "{page:?}");
    let rows = program.windlass(&["config", "--json"]).expect(0).json_lines();
    assert!(rows.len() > 50 && rows.iter().all(|row| row["source"].is_string()));
    let changed = program.windlass(&["config", "--changed", "--json"]).expect(0).json_lines();
    assert!(changed.iter().all(|row| row["source"] != "default"), "{changed:?}");
}

#[test]
fn models_lists_the_modes_and_tests_a_connection() {
    let program = program();
    let page = program.windlass(&["models", "--test"]).expect(0).stdout;
    let base = program.server.base();
    assert!(page.contains("smart  litellm/gpt-4o") && page.contains(&base), "{page}");
    assert!(page.contains("128.0k  $2.5/$10"), "{page}");
    let tested: Vec<_> = page.lines().filter(|line| line.starts_with("works  ")).collect();
    assert_eq!(tested.len(), 1, "one model for all modes is tested once: {page}");
    assert!(tested[0].starts_with("works  litellm/gpt-4o: it answered `pong` in "), "{page}");
}

#[test]
fn models_says_what_goes_wrong() {
    let program = Program::with(windlass_testkit::ModelServer::start_empty());
    program.server.next(windlass_testkit::Answer::status(
        401,
        "application/json",
        r#"{"error":{"message":"no such key"}}"#,
    ));
    let ran = program.windlass(&["models", "--test"]).expect(1);
    let last = ran.stdout.lines().last().unwrap();
    assert!(
        last.starts_with("fails  litellm/gpt-4o: ")
            && last.contains("does not accept the key: no such key")
            && last.contains("with the key in LITELLM_API_KEY"),
        "{ran:?}"
    );
}

#[test]
fn trust_shows_what_a_file_sets_and_wants_a_yes() {
    let program =
        with_project_file("[models]\nsmart = \"litellm/theirs\"\n\n[agent]\nmax_iterations = 7\n");
    let refused = program.windlass(&["trust"]).expect(2);
    assert!(refused.stdout.contains("agent.max_iterations"), "{refused:?}");
    assert!(refused.stderr.contains("windlass trust --yes"), "{refused:?}");

    let mut command = program.command(&["trust"]);
    command.env("TERM", "xterm");
    let mut terminal = Terminal::start(command, 100);
    terminal.until("[y/N] ");
    terminal.types("y\n");
    let (written, code) = terminal.end();
    assert_eq!(code, 0, "{written}");
    let again = program.windlass(&["trust"]).expect(0);
    assert!(again.stderr.contains("already approved"), "{again:?}");

    let file = program.workspace().join(".windlass/config.toml");
    std::fs::write(file, "[models]\nsmart = \"litellm/other\"\n").unwrap();
    program.windlass(&["trust"]).expect(2);
    program.windlass(&["trust", "--yes"]).expect(0);
}

#[test]
fn doctor_finds_nothing_wrong_with_a_sound_machine() {
    let program = program();
    program.windlass(&["run", "greet", "-q"]).expect(0);
    let page = program.windlass(&["doctor", "--sandbox", "host"]).expect(0).stdout;
    let found: Vec<_> = page.lines().filter_map(|line| line.split("  ").next()).collect();
    assert!(page.contains("agrees with its journal") && !found.contains(&"wrong"), "{page}");
}

#[test]
fn doctor_finds_a_projection_that_lies() {
    let program = program();
    program.windlass(&["run", "greet", "-q"]).expect(0);
    let database =
        rusqlite::Connection::open(program.data_directory().join("windlass.db")).unwrap();
    database.execute("UPDATE tasks SET status = 'failed'", ()).unwrap();
    drop(database);
    let page = program.windlass(&["doctor", "--sandbox", "host"]).expect(1).stdout;
    assert!(page.contains("wrong    store"), "{page}");
}

/// §15.13: what an unapproved project file sets is ignored, with a notice.
#[test]
fn a_run_says_what_it_ignores_of_a_project() {
    let program = with_project_file("[models]\nsmart = \"litellm/theirs\"\n");
    let ran = program.windlass(&["run", "greet"]).expect(0);
    assert!(ran.stderr.contains("notice: ") && ran.stderr.contains("windlass trust"), "{ran:?}");
    assert_eq!(program.windlass(&["run", "greet", "-q"]).expect(0).stderr, "");
}

/// AX-080: whole outputs go when they have been kept long enough, as the user's file says.
#[test]
fn old_outputs_are_removed_and_the_store_is_where_the_file_says() {
    let script = "replies: [{bash: seq 1 20000}, {say: done}]";
    let program = Program::playing(script);
    let directory = program.data.path().join(".config/windlass");
    std::fs::create_dir_all(&directory).unwrap();
    let text = "[store]\ndata_dir = \"~/elsewhere\"\noutputs_keep_days = 1\n";
    std::fs::write(directory.join("config.toml"), text).unwrap();
    let run = |goal: &str| {
        let mut command = program.command(&["run", goal, "-q", "--sandbox", "host"]);
        let ran = command.env_remove("WINDLASS_DATA").output().unwrap();
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    };
    run("first");
    assert!(!program.data_directory().exists());
    let outputs = program.data.path().join("elsewhere/outputs");
    let kept = || {
        let entries = std::fs::read_dir(&outputs).unwrap().map(|entry| entry.unwrap().path());
        entries.filter(|path| path.extension().is_some_and(|end| end == "txt"))
    };
    let old = kept().next().unwrap();
    let file = std::fs::File::options().write(true).open(&old).unwrap();
    let written = file.metadata().unwrap().modified().unwrap();
    file.set_modified(written - std::time::Duration::from_secs(100_000)).unwrap();
    // It is looked for once a day; a new day begins.
    let _ = std::fs::remove_file(outputs.join(".cleaned"));
    run("second");
    assert!(!old.exists() && kept().count() == 1, "{:?}", kept().collect::<Vec<_>>());
}

#[test]
fn one_key_is_all_it_needs() {
    for (key, model) in
        [("OPENAI_API_KEY", "openai/gpt-5.5"), ("ANTHROPIC_API_KEY", "anthropic/claude-sonnet-5")]
    {
        let program = program();
        let mut command = program.command(&["models", "--test"]);
        command.env_remove("LITELLM_MODEL").env_remove("LITELLM_API_BASE").env(key, "sk-none");
        command.env("OPENAI_BASE_URL", program.server.base());
        command.env("ANTHROPIC_BASE_URL", program.server.base());
        let ran: crate::program::Ran = command.output().unwrap().into();
        let page = ran.expect(0).stdout;
        assert!(page.contains(&format!("works  {model}: it answered `pong`")), "{page}");
    }
}

#[test]
fn a_model_that_is_not_configured_can_be_tested() {
    let program = program();
    let page = program.windlass(&["models", "--test", "--model", "litellm/other"]).expect(0).stdout;
    assert!(
        page.contains("any   litellm/other")
            && page.contains("works  litellm/other")
            && !page.contains("anthropic"),
        "{page}"
    );
}

#[test]
fn the_script_of_the_documentation_plays() {
    let program = program();
    let page = include_str!("../../../../docs/scripts.md");
    let script = page.split("```yaml\n").nth(1).unwrap().split("```").next().unwrap();
    std::fs::write(program.workspace().join("replies.yaml"), script).unwrap();
    let ran = program.windlass(&["run", "what is here?", "--model", "script:replies.yaml", "-p"]);
    assert_eq!(ran.expect(0).stdout, "There is **one** file.\n");
    assert_eq!(program.file("found.txt"), "one file\n");
}
