//! Where planning ends: a question, and what becomes of each answer.

use windlass_core::event::Event;
use windlass_core::id::TaskId;
use windlass_core::question::ProposedPlan;
use windlass_testkit::{Stage, play, play_context};

/// A model that plans, and would write a file in whatever mode it is.
const SCENE: &str = "
    goal: paint the door
    mode: plan
    control: assisted
    files: {door.txt: grey}
    replies:
      - read: {path: door.txt}
      - say: Paint door.txt blue.
      - write: {path: door.txt, content: blue}
      - say: painted
";

fn stage(more: &str) -> Stage {
    Stage::set(&format!("{SCENE}{more}"))
}

fn door(stage: &Stage) -> String {
    std::fs::read_to_string(stage.workspace().join("door.txt")).unwrap()
}

/// The plan that is asked about now.
fn proposed(stage: &Stage) -> ProposedPlan {
    let open = stage.coordinator.inbox().open().unwrap();
    *open.last().expect("a question").row.question.plan.clone().expect("a plan")
}

/// MS-022, MS-024, MS-028
#[tokio::test]
async fn planning_ends_in_a_question_and_an_accepted_plan_is_built() {
    let script = format!("{SCENE}    then: [{{answer: accept}}]\n");
    insta::assert_snapshot!(play(&script).await, @r#"
     1 status_changed     todo → running (user)
     2 agent_start        paint the door
     3 llm_response       read: {"path":"door.txt"}
     4 risk_check         read read allow
     5 tool_call          read
     6 tool_result        ok:      1	grey
     7 llm_response       say: Paint door.txt blue.
     8 question_asked     Accept this plan?
     9 status_changed     running → blocked (question)
    10 agent_end          BLOCKED_USER
    11 question_answered  Accept
    12 plan_accepted      ada
    13 mode_changed       plan accepted by ada
    14 status_changed     blocked → running (user)
    15 agent_start        paint the door
    16 llm_response       write: {"content":"blue","path":"door.txt"}
    17 risk_check         write edit allow
    18 tool_call          write
    19 tool_result        ok: Replaced `door.txt` (4 bytes, 1 line).
    20 llm_response       say: painted
    21 status_changed     running → paused (awaiting_message)
    22 agent_end          PAUSED
    "#);
}

/// What the model reads after the change: other tools, another mode, and that the plan holds.
#[tokio::test]
async fn an_accepted_plan_begins_an_epoch_with_the_tools_of_build() {
    let stage = stage("    then: [{answer: '2'}]\n");
    let task = stage.play().await;
    assert_eq!(door(&stage), "blue");
    let requests = stage.server.requests();
    let tools = |number: usize| requests[number].json()["tools"].to_string();
    assert!(!tools(1).contains("\"write\""), "{}", tools(1));
    assert!(tools(2).contains("\"write\""), "{}", tools(2));
    let prompt = requests[2].json()["messages"][0]["content"].to_string();
    assert!(prompt.contains("You work in mode `build`"), "{prompt}");
    let axes = stage.coordinator.tasks().state(task).unwrap().axes;
    assert_eq!(axes.to_string(), "build | autonomous | trusted | smart");
}

#[tokio::test]
async fn what_the_agent_reads_of_an_acceptance() {
    let script = format!("{SCENE}    then: [{{answer: accept}}]\n    show: 3\n");
    insta::assert_snapshot!(play_context(&script).await, @r#"
    >>> system: Agent Identity · Tools · Planning · Working on Code · File System · Context Management · Sub-Agents · Events from outside · Deliverables · Safety · Work Mode · On Permission Denials · Completion
    >>> user
    # Goal

    paint the door
    >>> assistant
    calls read {"path":"door.txt"}
    >>> tool read
         1	grey
    >>> assistant
    Paint door.txt blue.
    >>> user
    The user has accepted your plan. You now work in mode `build` with run control `assisted` and profile
    `trusted`. Carry the plan out. It is kept in `.proposal.md`, as it was accepted. Where you find that it cannot
    be carried out as it is, say so and ask before you do something else.
    "#);
}

/// The words of a person go to the agent, which proposes another plan.
#[tokio::test]
async fn a_plan_that_is_to_be_revised_is_asked_about_again() {
    let script = "
        goal: paint the door
        mode: plan
        control: assisted
        files: {door.txt: grey}
        replies:
          - say: Paint it blue.
          - say: Paint it red.
          - bash: cat door.txt
          - say: painted
        then: [{answer: 'no, red'}, {answer: yes}]
    ";
    insta::assert_snapshot!(play(script).await, @r#"
     1 status_changed     todo → running (user)
     2 agent_start        paint the door
     3 llm_response       say: Paint it blue.
     4 question_asked     Accept this plan?
     5 status_changed     running → blocked (question)
     6 agent_end          BLOCKED_USER
     7 question_answered  Revise: red
     8 injection_received Revise: red
     9 status_changed     blocked → running (user)
    10 agent_start        paint the door
    11 llm_response       say: Paint it red.
    12 question_asked     Accept this plan?
    13 status_changed     running → blocked (question)
    14 agent_end          BLOCKED_USER
    15 question_answered  Accept
    16 plan_accepted      ada
    17 mode_changed       plan accepted by ada
    18 status_changed     blocked → running (user)
    19 agent_start        paint the door
    20 llm_response       bash: {"command":"cat door.txt"}
    21 risk_check         bash read allow
    22 tool_call          bash
    23 tool_result        ok: grey
    24 llm_response       say: painted
    25 status_changed     running → paused (awaiting_message)
    26 agent_end          PAUSED
    "#);
}

#[tokio::test]
async fn an_edited_plan_is_shown_again_before_it_holds() {
    let stage = stage("");
    let task = stage.play().await;
    let plan = proposed(&stage);
    let file = stage.workspace().join(&plan.path);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "Paint door.txt blue.\n");
    std::fs::write(&file, "Paint door.txt green.").unwrap();
    answer(&stage, task, "accept").await;
    let again = proposed(&stage);
    assert_eq!(again.text, "Paint door.txt green.");
    assert!(again.changed[0].ends_with("was edited"), "{:?}", again.changed);
    assert_eq!(door(&stage), "grey");
    answer(&stage, task, "accept").await;
    assert_eq!(door(&stage), "blue");
    let request = stage.server.requests()[2].json().to_string();
    assert!(request.contains("This is the plan that holds:"), "{request}");
}

#[tokio::test]
async fn an_agent_that_revises_reads_what_a_person_edited() {
    let stage = Stage::set(
        "
        goal: paint the door
        mode: plan
        control: assisted
        replies:
          - say: Paint it blue.
          - say: Paint it green and dry it.
        ",
    );
    let task = stage.play().await;
    let file = stage.workspace().join(proposed(&stage).path);
    std::fs::write(&file, "Paint it green.").unwrap();
    answer(&stage, task, "also dry it").await;
    let request = stage.server.requests()[1].json().to_string();
    assert!(request.contains("Paint it green.") && request.contains("also dry it"), "{request}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "Paint it green and dry it.\n");
}

#[tokio::test]
async fn a_file_that_changed_since_voids_an_acceptance() {
    let stage = stage("");
    let task = stage.play().await;
    std::fs::write(stage.workspace().join("door.txt"), "rusty").unwrap();
    answer(&stage, task, "accept").await;
    let changed = proposed(&stage).changed;
    assert_eq!(changed, ["files of the workspace were changed: door.txt"]);
    assert_eq!(door(&stage), "rusty");
    // Read and accepted again, it holds for the files as they are now.
    answer(&stage, task, "accept").await;
    assert!(stage.journal(task).contains("plan_accepted"), "{}", stage.journal(task));
}

#[tokio::test]
async fn a_file_that_is_removed_voids_an_acceptance() {
    let stage = stage("");
    let task = stage.play().await;
    std::fs::remove_file(stage.workspace().join("door.txt")).unwrap();
    answer(&stage, task, "accept").await;
    assert!(proposed(&stage).changed[0].contains("were removed"), "{:?}", proposed(&stage));
}

/// MS-027
#[tokio::test]
async fn headless_work_that_is_autonomous_accepts_its_own_plan() {
    let script = SCENE.replace("control: assisted", "control: autonomous");
    let stage = Stage::set(&script);
    let task = stage.play().await;
    assert_eq!(door(&stage), "blue");
    let journal = stage.journal(task);
    assert!(!journal.contains("question_asked"), "{journal}");
    let accepted = accepted(&stage, task);
    assert_eq!((accepted.question, accepted.by.as_str()), (None, "run control `autonomous`"));
}

/// The approval is one record: the plan, the files, the axes and the budget.
#[tokio::test]
async fn an_acceptance_says_what_it_is_bound_to() {
    let stage = stage("    then: [{answer: accept}]\n");
    let task = stage.play().await;
    let accepted = accepted(&stage, task);
    assert_eq!(accepted.digest, ProposedPlan::digest_of("Paint door.txt blue."));
    assert_eq!((accepted.text.as_str(), accepted.by.as_str()), ("Paint door.txt blue.", "ada"));
    assert_eq!(accepted.axes.to_string(), "build | assisted | trusted | smart");
    assert_eq!(accepted.tree.len(), 64);
}

/// A compaction drops the turns in which the plan was made, and not the plan.
#[tokio::test]
async fn an_accepted_plan_outlives_a_compaction() {
    let script = "
        goal: paint the door
        mode: plan
        control: assisted
        limits: {window: 14000, recent_turns: 1, flush: false}
        match:
          - system: You summarize
            say: a summary
        replies:
          - say: Paint door.txt blue, and not red.
          - bash: seq -f 'line %04g of a long file' 1 400
          - bash: seq -f 'line %04g of another long file' 1 400
          - bash: seq -f 'line %04g of a third long file' 1 400
          - say: painted
        then: [{answer: '2'}]
    ";
    let stage = Stage::set(script);
    let task = stage.play().await;
    let journal = stage.journal(task);
    assert!(journal.contains("compaction_end"), "{journal}");
    let last = stage.server.requests().last().unwrap().json().to_string();
    assert!(last.contains("The plan that the user accepted"), "{last}");
    assert!(last.contains("Paint door.txt blue, and not red."), "{last}");
}

async fn answer(stage: &Stage, task: TaskId, text: &str) {
    let open = stage.coordinator.inbox().open().unwrap();
    let question = open.last().expect("a question").row.question.id;
    stage.coordinator.inbox().answer(question, text, "ada").await.unwrap();
    stage.drive(task).await;
}

fn accepted(stage: &Stage, task: TaskId) -> windlass_core::event::PlanAccepted {
    let journal = stage.store.journal().of(task).unwrap();
    let found = journal.into_iter().find_map(|record| match record.event {
        Event::PlanAccepted(accepted) => Some(*accepted),
        _ => None,
    });
    found.expect("a plan was accepted")
}
