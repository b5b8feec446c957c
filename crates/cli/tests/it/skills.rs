//! Skills as a running task meets them.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::Value;
use windlass_testkit::{Answer, Gate, ModelServer};

use crate::program::{Program, Ran};

/// How long a test may wait for anything before it is a failure.
const PATIENCE: Duration = Duration::from_secs(60);

/// A task that runs, whose model waits at every turn and whose log is read as it comes.
struct Running {
    program: Program,
    child: Child,
    log: Receiver<String>,
    seen: String,
}

impl Running {
    fn start(program: Program) -> Self {
        let mut command = program.command(&["run", "work", "--json"]);
        command.env("RUST_LOG", "windlass_skills=info");
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let (send, log) = channel();
        std::thread::spawn(move || {
            lines.map_while(Result::ok).try_for_each(|line| send.send(line))
        });
        Self { program, child, log, seen: String::new() }
    }

    /// Reads the log up to a line that holds this, and returns it.
    fn logs(&mut self, wanted: &str) -> String {
        loop {
            let line = self.log.recv_timeout(PATIENCE);
            let line =
                line.unwrap_or_else(|_| panic!("never `{wanted}` in the log:\n{}", self.seen));
            self.seen += &format!("{line}\n");
            if line.contains(wanted) {
                return line;
            }
        }
    }

    fn put(&self, body: &str) {
        let path = self.program.workspace().join(".windlass/skills/deploy/SKILL.md");
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, body).unwrap();
    }

    /// The skill as agents see it.
    fn shown(&self) -> String {
        let merged = std::fs::read_dir(self.program.data_directory().join("skills")).unwrap();
        let mut merged = merged.map(|entry| entry.unwrap().path());
        let merged = merged.find(|path| path.is_dir()).unwrap();
        std::fs::read_to_string(merged.join("shown/deploy/SKILL.md")).unwrap()
    }

    fn end(self) -> (Program, Ran) {
        let ran: Ran = self.child.wait_with_output().unwrap().into();
        (self.program, ran.expect(0))
    }
}

fn contents(request: &windlass_testkit::Request) -> Vec<String> {
    let body = request.json();
    let messages = body["messages"].as_array().unwrap();
    let text = |message: &Value| message["content"].as_str().unwrap_or_default().to_owned();
    messages.iter().map(text).collect()
}

fn skill(body: &str) -> String {
    format!("---\nname: deploy\ndescription: Ship it\n---\n{body}\n")
}

/// AX-003, AX-018, AX-070, AX-045, AX-046, AX-048, AX-089…092, AX-113, ES-008, ES-131
#[test]
fn a_running_task_sees_every_change_of_a_skill_within_a_turn() {
    let server = ModelServer::start_empty();
    let gates: Vec<_> = (0..6).map(|_| Gate::new()).collect();
    for gate in &gates[..5] {
        server.next(Answer::script("read_skill: {name: deploy}").gated(0, gate));
    }
    server.next(Answer::script("say: done").gated(0, &gates[5]));
    let mut task = Running::start(Program::with(server));
    let mut turn = gates.iter();
    let mut next = || {
        let gate = turn.next().unwrap();
        gate.reached_blocking();
        gate
    };

    let gate = next();
    task.put(&skill("Version one."));
    // A line each, with its time and its level, the path before the name (AX-113).
    let seen = task.logs("Detected change: ");
    let loaded = task.logs("Reloaded skill: deploy");
    for (line, words) in [(&seen, "Detected change: /"), (&loaded, "Reloaded skill: deploy")] {
        let (time, rest) = line.split_once(' ').unwrap();
        time.parse::<jiff::Timestamp>().unwrap_or_else(|error| panic!("{error}: {line}"));
        assert!(rest.trim_start().starts_with("INFO ") && rest.contains(words), "{line}");
    }
    assert!(seen.contains("/.windlass"), "it names what changed: {seen}");
    gate.open();

    // Many saves close together are read together (AX-081).
    let gate = next();
    for number in 0..10 {
        task.put(&skill(&format!("Version between, {number}.")));
    }
    task.put(&skill("Version two."));
    let mut reloads = 0;
    while !task.shown().contains("Version two.") || reloads == 0 {
        task.logs("Reloaded skill: deploy");
        reloads += 1;
    }
    assert!(reloads < 10, "{}", task.seen);
    gate.open();

    let gate = next();
    task.put("---\nname: deploy\ndescription: [\n---\nVersion three.\n");
    task.logs(".windlass/skills/deploy/SKILL.md:");
    gate.open();

    let gate = next();
    task.put(&skill("Version four."));
    task.logs("Reloaded skill: deploy");
    gate.open();

    let gate = next();
    std::fs::remove_dir_all(task.program.workspace().join(".windlass/skills/deploy")).unwrap();
    assert!(task.logs("Unloaded skill: deploy").contains(" INFO "));
    gate.open();
    next().open();
    let (program, _) = task.end();

    let requests = program.server.requests();
    let sent: Vec<_> = requests.iter().map(contents).collect();
    // Nothing was sent twice, and the prefix stays as it was, byte for byte.
    for pair in requests.windows(2) {
        pair[1].assert_extends(&pair[0]);
        assert_eq!(pair[0].json()["messages"][0], pair[1].json()["messages"][0]);
    }
    let last = |turn: usize| sent[turn].last().unwrap().as_str();
    let read = |turn: usize| sent[turn].iter().rev().find(|text| text.contains("Version")).unwrap();
    assert!(last(1).contains("- new: `deploy`: Ship it"), "{}", last(1));
    assert!(sent[1].iter().any(|text| text.contains("Version one.")), "read in the same turn");
    assert!(last(2).contains("- changed: `deploy`"), "{}", last(2));
    assert!(read(2).contains("Version two."), "{}", read(2));
    // A broken skill is not announced, and agents read its last good version.
    assert!(last(3).contains("Version two."), "{}", last(3));
    assert!(last(4).contains("- changed: `deploy`"), "{}", last(4));
    assert!(read(4).contains("Version four."), "{}", read(4));
    assert!(last(5).contains("- gone: `deploy`"), "{}", last(5));
    let answered = &sent[5][sent[5].len() - 2];
    assert!(answered.contains("there is no skill `deploy`"), "{answered}");
}

fn put(program: &Program, name: &str, text: &str) {
    let path = program.workspace().join(".windlass/skills").join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// The hashes of skills in what calls came to, one for each reading.
fn hashes_read(value: &Value) -> Vec<String> {
    match value {
        Value::Array(items) => items.iter().flat_map(hashes_read).collect(),
        Value::Object(fields) if fields.get("fact").is_some_and(|fact| fact == "skill_read") => {
            vec![value["hash"].as_str().unwrap().to_owned()]
        }
        Value::Object(fields) => fields.values().flat_map(hashes_read).collect(),
        _ => Vec::new(),
    }
}

#[test]
fn the_journal_names_the_hash_of_each_skill_that_was_read() {
    let program = Program::playing("replies: [{read_skill: {name: deploy}}, {say: done}]");
    let hash_of = |body: &str| {
        put(&program, "deploy.md", &skill(body));
        program.windlass(&["run", "ship it", "-q"]).expect(0);
        let events = program.windlass(&["events", &program.task(), "--json"]).expect(0);
        let hashes: Vec<_> = events.json_lines().iter().flat_map(hashes_read).collect();
        assert_eq!(hashes.len(), 1, "{events:?}");
        hashes[0].clone()
    };
    let (first, other, again) = (hash_of("One."), hash_of("Two."), hash_of("One."));
    assert_ne!(first, other);
    assert_eq!(first, again);
}

/// AX-114, MS-154
#[test]
fn a_goal_and_a_message_call_a_skill_by_name() {
    let server = ModelServer::start("replies: [{read: notes.txt}, {say: understood}]");
    let gate = Gate::new();
    server.next(Answer::script("read: notes.txt").gated(0, &gate));
    let program = Program::with(server);
    put(&program, "deploy.md", &skill("Deploy $ARGUMENTS carefully."));
    put(&program, "quiet.md", "---\ndescription: x\nuser-invocable: false\n---\nx\n");
    let child = program.start(&["run", "/deploy the shop", "--json"]);
    gate.reached_blocking();
    let first = contents(&program.server.requests()[0]);
    assert!(first[1].contains("Deploy the shop carefully."), "{}", first[1]);
    // A change counts at once.
    put(&program, "deploy.md", &skill("Deploy $ARGUMENTS at night."));
    program.windlass(&["send", &program.task(), "/deploy the blog"]).expect(0);
    gate.open();
    let ran: Ran = child.wait_with_output().unwrap().into();
    ran.expect(0);
    let listed = program.windlass(&["tasks"]).expect(0).stdout;
    assert!(listed.ends_with("  /deploy\n"), "as a person calls it: {listed}");
    let second = contents(&program.server.requests()[1]);
    let said = second.iter().find(|text| text.starts_with("User says: Follow the skill"));
    assert!(said.unwrap().contains("Deploy the blog at night."), "{second:?}");

    let refused = program.windlass(&["run", "/quiet", "--json"]).expect(2);
    assert!(refused.stderr.contains("is not for people to call"), "{refused:?}");
    let unknown = program.windlass(&["run", "/nope", "--json"]).expect(2);
    assert!(unknown.stderr.contains("there is no skill `nope`"), "{unknown:?}");
    let sent = program.windlass(&["send", &program.task(), "/nope"]).expect(2);
    assert!(sent.stderr.contains("there is no skill `nope`"), "{sent:?}");
    assert!(sent.stderr.contains("the message `/help` the commands"), "{sent:?}");
}

/// AX-105…107, AX-030, MS-153, MS-156
#[test]
fn skills_are_listed_shown_and_checked() {
    let program = Program::playing("replies: [{say: hello}]");
    let home = program.data.path().join(".windlass/skills/review.md");
    std::fs::create_dir_all(home.parent().unwrap()).unwrap();
    std::fs::write(&home, "---\ndescription: Look closely\nauthor_type: auditor\n---\nLook.\n")
        .unwrap();
    put(
        &program,
        "ship.yaml",
        "description: Ship it\nside-effects: production-mutation\ncontent: Push.\n",
    );
    let listed = program.windlass(&["skills", "list"]).expect(0);
    insta::assert_snapshot!(listed.stdout, @"
    SKILL   FROM     CALLED BY   ABOUT
    review  user     agent, you  Look closely
    ship    project  you         Ship it
    ");
    let shown = program.windlass(&["skills", "show", "review", "--json"]).expect(0);
    let shown = shown.json_lines().remove(0);
    assert_eq!((&shown["name"], &shown["description"]), (&"review".into(), &"Look closely".into()));
    assert_eq!(shown["author_type"], "auditor");
    assert_eq!(shown["context"], "inline");
    assert_eq!(shown["genesis_scope"], Value::Null);
    assert_eq!(shown["side_effects"], "none");
    assert!(shown["content"].as_str().unwrap().ends_with("---\nLook.\n"), "{shown}");
    let ship = program.windlass(&["skills", "show", "ship", "--json"]).expect(0);
    assert_eq!(ship.json_lines()[0]["side_effects"], "production-mutation");
    std::fs::write(&home, "---\ndescription: Look closely\n---\nUpdated\n").unwrap();
    assert!(program.windlass(&["skills", "show", "review"]).expect(0).stdout.contains("Updated"));
    program.windlass(&["skills", "check"]).expect(0);

    put(&program, "broken.md", "---\ndescription: x\ncontext: sideways\n---\n");
    let checked = program.windlass(&["skills", "check"]).expect(1);
    assert!(checked.stdout.contains("broken.md:3: `context` may not be `sideways`"), "{checked:?}");
    let missing = program.windlass(&["skills", "show", "nope"]).expect(2);
    assert!(missing.stderr.contains("the skills here are: review, ship"), "{missing:?}");
    let broken = program.windlass(&["skills", "show", "broken"]).expect(2);
    assert!(broken.stderr.contains("broken.md:3:"), "{broken:?}");
}

/// ES-131, ES-244: the merged skills are one directory, in the sandbox and for file tools alike.
#[test]
fn commands_and_file_tools_see_the_same_merged_skills() {
    let script = "
replies:
  - bash: ls -A /skills/deploy && cat /skills/deploy/scripts/go.sh
  - read: /skills/deploy/SKILL.md
  - write: {path: /skills/deploy/SKILL.md, content: mine now}
  - say: done
";
    let program = Program::playing(script);
    put(&program, "deploy/SKILL.md", &skill("Deploy it."));
    put(&program, "deploy/scripts/go.sh", "echo going");
    put(&program, "deploy/evals/case-1/hidden/answer", "42");
    program.windlass(&["run", "look", "--json"]).expect(0);
    let sent = contents(program.server.requests().last().unwrap());
    assert!(sent.iter().any(|text| text.contains("SKILL.md\nscripts\necho going")), "{sent:?}");
    assert!(sent.iter().any(|text| text.contains("Deploy it.")), "{sent:?}");
    let (_, section) = sent[0].split_once("# Skills\n").expect("skills are part of the prompt");
    assert!(section.contains("- `deploy`: Ship it\n"), "by name and description: {section}");
    assert!(!sent[0].contains("Deploy it."), "and not with their text");
    assert!(!sent.last().unwrap().contains("mine now"), "read-only: {sent:?}");
}

/// MS-168…171, MS-213, MS-225: a person runs it where they want it; nothing else does.
#[test]
fn an_eval_tells_whether_a_skill_helps_and_keeps_what_failed() {
    let program = Program::with(ModelServer::start_empty());
    program.server.answer_with(|request| {
        let sent = contents(request);
        let has_skill = sent[0].contains("`greet`");
        let reply = match (has_skill, request.replies) {
            (true, 0) if sent[1].contains("politely") => "glob: '**/*'",
            (true, 1) => "write: {path: greeting.txt, content: good morning}",
            _ => "say: done",
        };
        Some(Answer::script(reply))
    });
    let made =
        program.windlass(&["skills", "new", "greet", "--description", "How to greet"]).expect(0);
    assert!(made.stdout.contains(".windlass/skills/greet"), "{made:?}");
    let cases = ".windlass/skills/greet/evals";
    assert!(program.workspace().join(cases).join("case-1/grader.sh").exists());
    put(&program, "greet/evals/case-1/task.md", "Greet politely.");
    put(&program, "greet/evals/case-1/work/names.txt", "Ada");
    put(&program, "greet/evals/case-1/hidden/expected.txt", "good morning");
    let grader = "test -f \"$WINDLASS_EVAL_TRACE\" || exit 9\ngrep -q COMPLETED \"$WINDLASS_EVAL_RESULT\" || exit 8\n\
        cmp greeting.txt \"$WINDLASS_EVAL_HIDDEN/expected.txt\"\n";
    put(&program, "greet/evals/case-1/grader.sh", grader);
    put(&program, "greet/evals/case-2/task.md", "Greet rudely.");
    put(&program, "greet/evals/case-2/grader.sh", "echo there is no rude greeting; exit 1\n");
    program.windlass(&["trust", "--yes"]).expect(0);
    let ran = program.windlass(&["skills", "eval", "greet"]).expect(1);
    insta::assert_snapshot!(ran.stdout, @"
    CASE    WITH  WITHOUT
    case-1  1/1   0/1
    case-2  0/1   0/1
    ");
    assert!(ran.stderr.contains("there is no rude greeting"), "{}", ran.stderr);
    let kept: Vec<_> = ran.stderr.lines().filter_map(|line| line.strip_prefix("kept ")).collect();
    assert_eq!(kept.len(), 3, "{}", ran.stderr);
    for line in kept {
        let directory = std::path::Path::new(line.split_once(": ").unwrap().0);
        assert!(
            directory.join("work").is_dir() && directory.join("trace.jsonl").is_file(),
            "{line}"
        );
    }
    // What the agent could see of the case: a copy of work/, nothing hidden, no grader, no answer.
    let seen: Vec<_> = program.server.requests().iter().flat_map(contents).collect();
    assert!(seen.iter().any(|text| text.contains("names.txt")));
    for secret in ["expected.txt", "grader", "task.md"] {
        assert!(!seen.iter().any(|text| text.contains(secret)), "{secret}");
    }
    assert!(!program.workspace().join("greeting.txt").exists(), "the case itself is untouched");
    let one =
        program.windlass(&["skills", "eval", "greet", "--case", "case-1", "--only-with"]).expect(0);
    assert!(one.stdout.contains("case-1  1/1"), "{one:?}");
    put(&program, "lone.md", "---\ndescription: x\n---\nx\n");
    let none = program.windlass(&["skills", "eval", "lone"]).expect(2);
    assert!(none.stderr.contains("has no evals"), "{none:?}");
}

/// AX-034: a task that is a skill uses only the skill's tools.
#[test]
fn a_skill_that_names_its_tools_is_denied_all_others() {
    let script = "
replies:
  - read: notes.txt
  - write: {path: made.txt, content: x}
  - say: done
";
    let program = Program::playing(script);
    std::fs::write(program.workspace().join("notes.txt"), "a note").unwrap();
    put(&program, "look.md", "---\ndescription: x\nallowed-tools: Read, Grep\n---\nOnly look.\n");
    program.windlass(&["run", "/look", "--json"]).expect(0);
    let sent = contents(program.server.requests().last().unwrap());
    assert!(sent.iter().any(|text| text.contains("a note")), "{sent:?}");
    let denied = sent.last().unwrap();
    assert!(
        denied.starts_with("DENIED") && denied.contains("the skill `look` uses only"),
        "{denied}"
    );
    assert!(!program.workspace().join("made.txt").exists());
}

/// AX-034, C-12: an agent that follows a skill cannot avoid its tool limits through another agent.
#[test]
fn a_sub_agent_is_bound_by_the_skill_above_it() {
    let program = Program::playing(
        "
replies:
  - {spawn_agent: {task: 'write the FILE'}, task: Only look}
  - {say: done, task: Only look}
  - {turn: 0, task: FILE, write: {path: made.txt, content: x}}
  - {turn: 1, task: FILE, say: could not, expect: the skill `look` uses only}
",
    );
    put(&program, "look.md", "---\ndescription: x\nallowed-tools: Read, Task\n---\nOnly look.\n");
    program.windlass(&["run", "/look", "--json"]).expect(0);
    assert!(!program.workspace().join("made.txt").exists());
}

/// AX-032: a skill that forks is followed in a conversation of its own.
#[test]
fn a_skill_that_forks_is_followed_by_a_sub_agent() {
    let program = Program::with(ModelServer::start_empty());
    program.server.answer_with(|request| {
        let sent = contents(request);
        let is_child = sent[1].contains("Follow the skill `apart`");
        Some(Answer::script(match (is_child, request.replies) {
            (true, _) => "say: looked at it from outside",
            (false, 0) => "read_skill: {name: apart}",
            (false, 1) => "spawn_agent: {task: /apart the parser}",
            (false, _) => "say: done",
        }))
    });
    put(&program, "apart.md", "---\ndescription: x\ncontext: fork\n---\nThe secret handshake.\n");
    program.windlass(&["run", "work", "--json"]).expect(0);
    let all: Vec<_> = program.server.requests().iter().map(contents).collect();
    let child = all.iter().find(|sent| sent[1].contains("Follow the skill `apart`")).unwrap();
    assert!(child[1].contains("The secret handshake.") && child[1].contains("the parser"));
    let parent = all.last().unwrap();
    assert!(!parent.iter().any(|text| text.contains("handshake")), "{parent:?}");
    assert!(parent.last().unwrap().contains("looked at it from outside"), "{parent:?}");
}

/// A resumed task reads which skills changed while nobody drove it.
#[test]
fn a_resumed_task_reads_which_skills_changed_while_it_waited() {
    let program = Program::playing("replies: [{ask_user: {question: go on?}}, {say: done}]");
    put(&program, "deploy.md", &skill("One."));
    program.windlass(&["run", "work", "--json"]).expect(3);
    put(&program, "deploy.md", &skill("Two."));
    put(&program, "fresh.md", "---\ndescription: Fresh\n---\nx\n");
    let task = program.task();
    program.windlass(&["answer", &task, "yes"]).expect(0);
    program.windlass(&["resume", &task, "--json"]).expect(0);
    let sent = contents(program.server.requests().last().unwrap());
    let notice = sent.iter().find(|text| text.starts_with("The skills have changed")).unwrap();
    assert!(
        notice.contains("- changed: `deploy`") && notice.contains("- new: `fresh`"),
        "{notice}"
    );
}

/// AX-022, AX-023, AX-034: a hook's words are the reason of a denial; a project's runs only when approved.
#[test]
fn trusted_hooks_of_a_followed_skill_refuse_and_remark() {
    let script = "{bash: {command: 'echo kept > kept.txt'}}, \
                  {write: {path: secret.txt, content: x}}, {say: done}";
    let program = Program::playing(&format!("replies: [{script}, {script}]"));
    let path = program.workspace().join(".windlass/skills/careful/SKILL.md");
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let hooked = "---\nname: careful\ndescription: Works with care\nhooks:\n\
                  \x20 - event: before_tool\n    tools: [write]\n\
                  \x20   command: 'grep -q secret && echo no secrets here >&2 && exit 2; true'\n\
                  \x20 - event: after_tool\n    tools: [Bash]\n\
                  \x20   command: 'cat > seen.json; echo mind the gap; exit 1'\n---\nWork.\n";
    std::fs::write(&path, hooked).unwrap();

    let unapproved = program.windlass(&["run", "/careful now"]).expect(0);
    let notice = "notice: the hooks of the skill `careful` do not run until you approve it";
    assert!(unapproved.stderr.contains(notice), "{}", unapproved.stderr);
    assert!(program.workspace().join("secret.txt").exists(), "{}", unapproved.stdout);
    assert!(!program.workspace().join("seen.json").exists());

    std::fs::remove_file(program.workspace().join("secret.txt")).unwrap();
    program.windlass(&["trust", "--yes"]).expect(0);
    let ran = program.windlass(&["run", "/careful now", "--json"]).expect(0);
    assert!(!program.workspace().join("secret.txt").exists(), "{}", ran.stdout);
    let input: Value = serde_json::from_str(&program.file("seen.json")).unwrap();
    assert_eq!(input["event"], "after_tool");
    assert_eq!(input["tool_input"]["command"], "echo kept > kept.txt");
    let refused = "a hook of the skill `careful` refused: no secrets here";
    assert!(ran.stdout.contains(refused), "{}", ran.stdout);
    assert!(ran.stdout.contains("A hook of the skill `careful` says: mind the gap"));
    let check = ran.json_lines().into_iter().rfind(|line| line["event_type"] == "risk_check");
    assert_eq!(check.unwrap()["data"]["decision"], "deny");
}

/// AX-022, AX-034: an agent that reads a skill while it works on something larger is held to its hooks, not
/// to its tools.
#[test]
fn hooks_bind_an_agent_once_it_reads_their_skill() {
    let program = Program::playing(
        "
replies:
  - write: {path: before.txt, content: secret}
  - read_skill: {name: careful}
  - write: {path: after.txt, content: secret}
  - bash: echo other tools continue > other.txt
  - ask_user: {question: go on?}
  - write: {path: called.txt, content: public}
  - say: done
",
    );
    put(&program, "careful.md", &guarding("careful", "secret"));
    put(&program, "strict.md", &guarding("strict", "public"));
    program.windlass(&["trust", "--yes"]).expect(0);
    let ran = program.windlass(&["run", "write it down", "--json"]).expect(3);
    assert!(program.workspace().join("before.txt").exists(), "it had not read it yet");
    assert!(!program.workspace().join("after.txt").exists(), "{}", ran.stdout);
    assert!(ran.stdout.contains("a hook of the skill `careful` refused: no secret here"));
    assert_eq!(program.file("other.txt"), "other tools continue\n");

    let task = program.task();
    program.windlass(&["send", &task, "/strict from now on"]).expect(0);
    program.windlass(&["answer", &task, "yes"]).expect(0);
    let ran = program.windlass(&["resume", &task, "--json"]).expect(0);
    assert!(!program.workspace().join("called.txt").exists(), "{}", ran.stdout);
    assert!(ran.stdout.contains("a hook of the skill `strict` refused: no public here"));
}

/// A skill that uses one tool and whose hook refuses to write a word.
fn guarding(name: &str, word: &str) -> String {
    format!(
        "---\nname: {name}\ndescription: Works with care\nallowed-tools: Write\nhooks:\n  - event: \
         before_tool\n    tools: [write]\n    command: 'grep -q {word} && echo no {word} here >&2 && exit \
         2; true'\n---\nWork.\n"
    )
}
