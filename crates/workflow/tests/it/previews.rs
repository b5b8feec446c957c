//! What a workflow would do, shown without running anything.

use windlass_core::event::WorkflowSource;
use windlass_workflow::definition::Workflow;
use windlass_workflow::render;

const WHOLE: &str = "
target: main
runner: codex
steps:
  - name: fix
    type: loop
    max: 3
    until: .test.success
    steps:
      - {name: test, type: script, command: 'make {{.bead.title}}', on_fail: continue}
      - {name: repair, type: agent, spell: \"Repair\\n{{.test.output}}\", when: .test.failed, runner: claude}
  - name: both
    type: parallel
    workers: 2
    steps:
      - {name: docs, type: script, command: make docs, rerun: true}
      - {name: code, type: script, command: make code, timeout: 2m}
  - {name: check, type: ask, question: 'Land {{.bead.title}}?', options: ['yes', 'no']}
  - {name: land, type: merge, strategy: rebase, gates: [make test, make lint]}
  - {name: again, type: merge, target: next, message: 'More of {{.bead.title}}', conflicts: ask}
";

/// The last line of a text stands for it: prompts are long.
fn shown(text: &str) -> String {
    let workflow = Workflow::read(text, "w").unwrap();
    let title = "the shop".to_owned();
    let source = WorkflowSource { name: "w".to_owned(), title, ..WorkflowSource::default() };
    let mut lines = Vec::new();
    for step in render(&workflow, &source) {
        assert_eq!(step.error, None, "{}", step.step);
        let within = step.within.map(|outer| format!(" in {outer}")).unwrap_or_default();
        lines.push(format!("{} ({}){within}", step.step, step.kind));
        let settings = step.settings.iter().map(|one| format!("  {}: {}", one.name, one.value));
        lines.extend(settings);
        let text = match step.kind {
            "agent" => step.text.lines().find(|line| line.contains("<test.output>")),
            _ => step.text.lines().last(),
        };
        lines.extend(text.map(|text| format!("  | {text}")));
    }
    lines.join("\n")
}

/// WF-040
#[test]
fn every_step_is_shown_in_its_final_form() {
    let expected = "\
fix (loop)
  max: 3
  until: .test.success
  steps: test, repair
test (script) in fix
  on_fail: continue
  | make 'the shop'
repair (agent) in fix
  runner: claude
  when: .test.failed
  | <test.output>
both (parallel)
  workers: 2
  join: true
  steps: docs, code
docs (script) in both
  rerun: true
  | make docs
code (script) in both
  timeout: 120s
  | make code
check (ask)
  options: yes, no
  | Land the shop?
land (merge)
  target: main
  strategy: rebase
  gate: make test
  gate: make lint
  conflicts: agent
  | the shop
again (merge)
  target: next
  strategy: squash
  conflicts: ask
  | More of the shop";
    assert_eq!(shown(WHOLE), expected);
}

fn errors(text: &str) -> Vec<String> {
    let workflow = Workflow::read(text, "w").unwrap();
    let source = WorkflowSource { name: "w".to_owned(), ..WorkflowSource::default() };
    let wrong = |step: windlass_workflow::Rendered| Some(format!("{}: {}", step.step, step.error?));
    render(&workflow, &source).into_iter().filter_map(wrong).collect()
}

/// What runs well is not refused beforehand, although its values are not known yet.
#[test]
fn templates_that_work_with_values_are_right_without_them() {
    let text = "
inputs: {issue: {}}
steps:
  - {name: skipped, type: script, command: 'true', when: 'eq .bead.title \"no such\"'}
  - {name: s0, type: script, command: 'echo {{.inputs.issue}} {{.issue}}'}
  - {name: a, type: agent, spell: \"Work on {{.inputs.issue}}\\n{{if eq .s0.exit_code 0}}well{{end}}\"}
  - {name: files, type: script, command: 'echo {{range .a.changed_files}}{{.}} {{end}}'}
  - {name: count, type: script, command: 'echo {{if gt .a.outputs.count 3}}many{{end}}'}
  - name: fix
    type: loop
    max: 2
    until: .again.success
    steps:
      - {name: again, type: script, command: '{{if gt .loop.round 1}}make clean; {{end}}make'}
";
    assert_eq!(errors(text), Vec::<String>::new());
    let workflow = Workflow::read(text, "w").unwrap();
    let rendered = render(&workflow, &WorkflowSource::default());
    let shown = |name: &str| rendered.iter().find(|one| one.step == name).unwrap().text.clone();
    assert_eq!(shown("files"), "echo '<a.changed_files>' ");
    assert_eq!(shown("count"), "echo {{if gt .a.outputs.count 3}}many{{end}}", "as it is written");
}

/// What a later step leaves is not there yet, except in a loop, from the round before.
#[test]
fn what_a_later_step_leaves_is_wrong() {
    let text = "
steps:
  - {name: one, type: script, command: 'echo {{.two.output}}', when: eq .said \"yes\"}
  - {name: two, type: script, command: 'echo {{.one.output}}'}
  - {name: three, type: ask, question: 'Is it right?', output: said}
  - name: fix
    type: loop
    max: 2
    until: .late.success
    steps:
      - {name: early, type: script, command: '{{if gt .loop.round 1}}echo {{.late.output}}{{end}} {{.fix.rounds}}'}
      - {name: late, type: script, command: 'echo {{.early.output}}'}
";
    assert_eq!(
        errors(text),
        [
            "one: the variable `two.output` is not set: step `two` runs later; \
             `when`: the variable `said` is not set: step `three` runs later",
            "early: the variable `fix.rounds` is not set: step `fix` runs later",
        ]
    );
}

/// A command is shown as it runs: what comes of a value is one word for the shell.
#[test]
fn a_command_is_shown_with_its_values_quoted() {
    let text = "steps:\n  - {name: a, type: script, command: 'make {{.bead.title}}'}\n";
    let workflow = Workflow::read(text, "w").unwrap();
    let title = "the $(shop)".to_owned();
    let rendered = render(&workflow, &WorkflowSource { title, ..WorkflowSource::default() });
    assert_eq!(rendered[0].text, "make 'the $(shop)'");
}

#[test]
fn conditions_that_name_what_nobody_sets_are_wrong() {
    let text = "
steps:
  - {name: one, type: script, command: 'true', when: .nobody.success}
  - name: two
    type: loop
    max: 2
    until: .noone.success
    steps:
      - {name: inner, type: script, command: 'true'}
  - {name: three, type: merge, from: '{{.nothing.answer}}'}
";
    let expected = [
        "one: `when`: the variable `nobody.success` is not set",
        "two: `until`: the variable `noone.success` is not set",
        "three: `from`: the variable `nothing.answer` is not set",
    ];
    assert_eq!(errors(text), expected);
}

/// Of a command, `output` names the text that it printed, and a text has no fields.
#[test]
fn fields_of_a_named_text_are_wrong() {
    let text = "
steps:
  - {name: test, type: script, command: make, output: seen}
  - {name: plan, type: agent, spell: \"Plan\\nit.\", output: planned}
  - {name: use, type: script, command: 'echo {{.seen}} {{.planned.summary}}', when: .seen.failed}
";
    let expected =
        "use: `when`: the variable `seen.failed` is not set, did you mean `test.failed`?";
    assert_eq!(errors(text), [expected]);
}

#[test]
fn the_title_of_a_pull_request_is_shown_and_checked() {
    let text = "
steps:
  - {name: test, type: script, command: make}
  - {name: offer, type: pull_request, title: 'Fix {{.test.output}}', body: 'By {{.nobody.summary}}'}
";
    let workflow = Workflow::read(text, "w").unwrap();
    let rendered = render(&workflow, &WorkflowSource::default());
    let title = rendered[1].settings.iter().find(|one| one.name == "title").unwrap();
    assert_eq!(title.value, "Fix <test.output>");
    assert_eq!(errors(text), ["offer: `body`: the variable `nobody.summary` is not set"]);
}

/// O-35: everything that nobody sets is named at once, with what was probably meant.
#[test]
fn all_unknown_variables_are_named_with_what_is_near() {
    let text = "
inputs: {issue: {}}
steps:
  - {name: test, type: script, command: 'echo {{.inputs.isue}}', output: seen}
  - {name: use, type: script, command: 'echo {{.tset.output}} {{.test.outpt}} {{.sen}} {{.bead.titel}}', when: .nobody.success}
  - {name: answer, type: ask, question: 'Was it {{.previous.exit_code}}? {{.use.answer}}'}
";
    let expected = [
        "test: the variable `inputs.isue` is not set, did you mean `inputs.issue`?",
        "use: the variable `tset.output` is not set, did you mean `test.output`?; \
         the variable `test.outpt` is not set, did you mean `test.output`?; \
         the variable `sen` is not set, did you mean `seen`?; \
         the variable `bead.titel` is not set, did you mean `bead.title`?; \
         `when`: the variable `nobody.success` is not set",
        "answer: the variable `use.answer` is not set",
    ];
    assert_eq!(errors(text), expected);
}

/// Nobody has given a title yet: its place is named, as that of an input is.
#[test]
fn a_title_that_is_not_given_is_named() {
    let text = "
inputs: {issue: {}}
steps:
  - {name: fix, type: script, command: 'fix {{.issue}}'}
  - {name: check, type: ask, question: 'Land {{.bead.title}}?'}
";
    let workflow = Workflow::read(text, "w").unwrap();
    let source = WorkflowSource { name: "w".to_owned(), ..WorkflowSource::default() };
    let texts: Vec<_> = render(&workflow, &source).into_iter().map(|step| step.text).collect();
    assert_eq!(texts, ["fix '<issue>'", "Land <title>?"]);
}
