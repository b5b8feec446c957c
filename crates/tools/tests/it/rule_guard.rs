//! Files with rules for agents are after a command what they were before it, unless a person approved their change.

use serde_json::json;
use windlass_core::outcome::Outcome;

use crate::bench::Bench;

async fn ran(bench: &mut Bench, command: &str) -> Outcome {
    bench.call("bash", json!({ "command": command })).await
}

#[tokio::test]
async fn a_program_does_not_change_an_agents_rules() {
    for (command, kept) in [
        ("python3 evil.py", "AGENTS.md"),
        ("sh -c \"$(cat evil.txt)\"", "AGENTS.md"),
        ("python3 -c \"import evil\"", "AGENTS.md"),
    ] {
        let mut bench = Bench::new();
        bench.put("AGENTS.md", "be kind\n");
        bench.put(
            "evil.txt",
            "echo evil > AGENTS.md; mkdir -p .claude; echo evil > .claude/settings.json",
        );
        let text = "import os\nos.makedirs('.claude')\n\
            for n in ('AGENTS.md', '.claude/settings.json', '.mcp.json'): open(n, 'w').write('evil')\n";
        bench.put("evil.py", text);
        let outcome = ran(&mut bench, command).await;
        assert_eq!(bench.text("AGENTS.md"), "be kind\n", "{command}: {}", outcome.text);
        for made in [".claude/settings.json", ".mcp.json"] {
            assert!(!bench.path(made).exists(), "{command}: {made}");
        }
        assert!(outcome.text.contains(&format!("- `{kept}`; what it was changed to is kept in")));
    }
}

#[tokio::test]
async fn rules_that_are_removed_or_replaced_come_back() {
    for script in [
        "rm AGENTS.md; rm -r .claude",
        "rm AGENTS.md; ln -s other AGENTS.md; rm -r .claude; ln -s elsewhere .claude",
        "rm AGENTS.md; mkdir AGENTS.md; rm -r .claude; mkfifo .claude",
    ] {
        let mut bench = Bench::new();
        bench.put("AGENTS.md", "be kind\n");
        bench.put(".claude/skills/x/SKILL.md", "x\n");
        bench.put("elsewhere/skills/x/SKILL.md", "evil\n");
        bench.put("other", "evil\n");
        bench.put("s.sh", script);
        let outcome = ran(&mut bench, "sh s.sh").await;
        assert_eq!(bench.text("AGENTS.md"), "be kind\n", "{script}: {}", outcome.text);
        assert_eq!(bench.text(".claude/skills/x/SKILL.md"), "x\n", "{script}: {}", outcome.text);
        assert_eq!(bench.text("elsewhere/skills/x/SKILL.md"), "evil\n", "{script}");
        assert_eq!(bench.text("other"), "evil\n", "{script}");
    }
}

/// However many files it makes, in old directories and in new ones, and even if it closes them.
#[tokio::test]
async fn no_flood_of_rules_hides_one_of_them() {
    let mut bench = Bench::new();
    bench.put(".claude/skills/mine/SKILL.md", "mine\n");
    let script = "import os\n\
        for n in range(1300):\n    \
            os.makedirs(f'.claude/skills/z{n}'); open(f'.claude/skills/z{n}/SKILL.md', 'w').write('evil')\n    \
            open(f'.claude/skills/mine/{n}', 'w').write('evil')\n\
        os.makedirs('.claude/skills/worktrees'); open('.claude/skills/worktrees/SKILL.md', 'w').write('evil')\n\
        os.makedirs('.agents/skills/deep/a/b/c/d/e/f/g/h')\n\
        open('.agents/skills/deep/a/b/c/d/e/f/g/h/SKILL.md', 'w').write('evil')\n\
        open('.claude/skills/mine/SKILL.md', 'w').write('evil')\n\
        os.chmod('.claude/skills/mine', 0o555)\n\
        os.chmod('.claude/skills/z7', 0o555)\n";
    bench.put("flood.py", script);
    let outcome = ran(&mut bench, "python3 flood.py").await;
    let files = |directory: &str| std::fs::read_dir(bench.path(directory)).unwrap().count();
    assert_eq!(files(".claude/skills"), 1, "{}", outcome.text);
    assert_eq!(files(".claude/skills/mine"), 1, "{}", outcome.text);
    assert_eq!(bench.text(".claude/skills/mine/SKILL.md"), "mine\n");
    assert!(!bench.path(".agents/skills").exists(), "{}", outcome.text);
    assert!(outcome.text.contains("- and ") && outcome.text.lines().count() < 40);
}

#[tokio::test]
async fn a_command_that_is_known_to_change_rules_changes_them() {
    let mut bench = Bench::new();
    bench.put("AGENTS.md", "be kind\n");
    let outcome = ran(&mut bench, "echo new > AGENTS.md").await;
    assert_eq!(bench.text("AGENTS.md"), "new\n");
    assert!(!outcome.text.contains("put back"), "{}", outcome.text);
}

#[tokio::test]
async fn commands_that_leave_the_rules_alone_say_nothing() {
    let mut bench = Bench::new();
    bench.put("AGENTS.md", "be kind\n");
    let outcome = ran(&mut bench, "echo x > a; mkdir .agents").await;
    assert_eq!(outcome.text, "(no output)");
}

#[tokio::test]
async fn a_command_in_the_background_does_not_change_rules_either() {
    let mut bench = Bench::new();
    bench.put("AGENTS.md", "be kind\n");
    bench.put("s.sh", "echo evil > AGENTS.md");
    bench.ok("bash", json!({ "command": "sh s.sh", "background": true })).await;
    let id = bench.last_call().to_string();
    let text = bench.poll("bash_output", json!({ "id": id }), "exit code 0").await;
    assert!(text.contains("- `AGENTS.md`; what it was changed to is kept in"), "{text}");
    assert_eq!(bench.text("AGENTS.md"), "be kind\n");
}

#[tokio::test]
async fn an_approved_change_beside_a_running_command_stays() {
    let mut bench = Bench::new();
    bench.put("AGENTS.md", "be kind\n");
    bench.ok("bash", json!({ "command": "sleep 600", "background": true })).await;
    let id = bench.last_call().to_string();
    bench.ok("write", json!({ "path": "CLAUDE.md", "content": "written\n" })).await;
    bench.ok("bash", json!({ "command": "echo approved > AGENTS.md" })).await;
    bench.ok("bash", json!({ "command": "echo x > other.txt" })).await;
    bench.ok("bash_kill", json!({ "id": id })).await;
    let text = bench.poll("bash_output", json!({ "id": id }), "[stopped").await;
    assert!(!text.contains("put back"), "{text}");
    assert_eq!(bench.text("AGENTS.md"), "approved\n");
    assert_eq!(bench.text("CLAUDE.md"), "written\n");
}

/// A process that is killed puts nothing back itself.
#[tokio::test]
async fn rules_changed_before_a_kill_are_put_back_afterwards() {
    let mut bench = Bench::new();
    bench.put("AGENTS.md", "be kind\n");
    bench.put("s.sh", "echo evil > AGENTS.md; echo evil > CLAUDE.md; echo up > started; sleep 600");
    let prepared = bench.prepare("bash", json!({ "command": "sh s.sh" })).await.ok().unwrap();
    let call = bench.last_call();
    let mut calling = tokio::task::JoinSet::new();
    calling.spawn(async move { (prepared.act)().await });
    let mut again = tokio::time::interval(std::time::Duration::from_millis(5));
    while !bench.path("started").exists() {
        again.tick().await;
    }
    calling.shutdown().await;
    assert_eq!(bench.text("AGENTS.md"), "evil\n");

    let (shell, workspace) = (&bench.world.shell, &bench.world.workspace);
    let note = shell.put_back_rules(workspace, call).unwrap();
    assert!(note.contains("- `AGENTS.md`; what it was changed to is kept in"), "{note}");
    assert_eq!(bench.text("AGENTS.md"), "be kind\n");
    assert!(!bench.path("CLAUDE.md").exists());
    assert_eq!(shell.put_back_rules(workspace, call), None, "it is done once");
}

#[tokio::test]
async fn nothing_is_kept_of_a_command_that_has_ended() {
    let mut bench = Bench::new();
    bench.put("AGENTS.md", "be kind\n");
    ran(&mut bench, "echo x > a").await;
    bench.put("AGENTS.md", "edited by its owner\n");
    let (call, shell) = (bench.last_call(), &bench.world.shell);
    assert_eq!(shell.put_back_rules(&bench.world.workspace, call), None);
    assert_eq!(bench.text("AGENTS.md"), "edited by its owner\n");
}
