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
  | make the shop
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
