//! The whole context that a model sees, at the moments that matter. One page each, for review.

use windlass_testkit::{play, play_context, play_first_request};

/// ES-124, ES-125, ES-405…415
#[tokio::test]
async fn the_first_request_has_prompt_goal_and_tools() {
    let script = "
        goal: paint the door
        constraints: [use no red, be done by noon]
        instructions: Two coats are enough.
        skills:
          painting: \"---\\nname: painting\\ndescription: How to paint.\\n---\\nStir first.\\n\"
        replies: [{say: painted}]
    ";
    insta::assert_snapshot!(play_first_request(script).await);
}

#[tokio::test]
async fn a_result_follows_its_call() {
    let script = "
        goal: fix the build
        replies:
          - {text: Let me see., calls: [{bash: echo no such name; exit 101}]}
          - say: renamed it
    ";
    insta::assert_snapshot!(play_context(script).await);
}

#[tokio::test]
async fn parallel_calls_are_followed_by_all_their_results() {
    let script = "
        goal: read both
        files: {a.txt: first, b.txt: second}
        replies:
          - calls: [{read: a.txt}, {read: b.txt}]
          - say: read
    ";
    insta::assert_snapshot!(play_context(script).await);
}

/// ES-116, AX-037
#[tokio::test]
async fn a_denial_says_why_and_what_else_to_try() {
    let script = "
        goal: clean up
        replies:
          - bash: rm -rf /
          - say: I leave it
    ";
    insta::assert_snapshot!(play_context(script).await);
}

#[tokio::test]
async fn a_person_who_denies_is_quoted() {
    let script = "
        goal: clean up
        files: {old.txt: x}
        replies:
          - bash: rm old.txt
          - say: I leave it
        then: [{answer: Deny}]
    ";
    insta::assert_snapshot!(play_context(script).await);
}

/// ES-073, ES-216
#[tokio::test]
async fn an_answer_follows_the_question_as_a_message() {
    let script = "
        goal: paint
        replies:
          - ask_user: {question: which colour?, options: [blue, red]}
          - say: painted blue
        then: [{answer: blue}]
    ";
    insta::assert_snapshot!(play_context(script).await);
}

/// ES-072, ES-119
#[tokio::test]
async fn a_message_of_the_user_is_marked_as_theirs() {
    let script = "
        goal: paint
        replies:
          - bash: echo one coat
          - say: painted blue
        at_request: {1: [{send: make it blue}]}
    ";
    insta::assert_snapshot!(play_context(script).await);
}

/// ES-045, ES-075: a task that was paused continues with the same messages.
#[tokio::test]
async fn a_resumed_task_sees_what_it_saw_before() {
    let script = "
        goal: paint
        replies:
          - bash: echo one coat
          - say: painted
        at_request: {1: [pause]}
        then: [resume]
    ";
    insta::assert_snapshot!(play_context(script).await);
}

#[tokio::test]
async fn after_a_crash_the_unknown_outcome_is_said_in_words() {
    let script = "
        goal: start it
        replies:
          - bash: echo up > started; sleep 600
          - say: I check first
        crash_when_written: started
    ";
    insta::assert_snapshot!(play_context(script).await);
}

/// ES-229, ES-230
#[tokio::test]
async fn a_large_output_is_cut_and_names_its_file() {
    let script = "
        goal: count
        limits: {output_tokens: 60}
        replies:
          - bash: seq -f 'line %04g of the output' 1 300
          - say: counted
    ";
    insta::assert_snapshot!(play_context(script).await);
}

#[tokio::test]
async fn a_malformed_call_is_answered_with_what_is_wrong() {
    let script = "
        goal: look
        replies:
          - calls: [{name: bash, id: call_7, arguments: '{\"command\": \"ls'}]
          - say: sorry
    ";
    insta::assert_snapshot!(play_context(script).await);
}

/// ES-267
#[tokio::test]
async fn a_nudge_follows_the_third_identical_result() {
    let script = "
        goal: look
        replies:
          - glob: '*.x'
          - glob: '*.x'
          - glob: '*.x'
          - say: nothing there
    ";
    insta::assert_snapshot!(play_context(script).await);
}

/// ES-238, ES-239: a fresh context, the short prompt, and the piece of work.
#[tokio::test]
async fn a_sub_agent_begins_with_its_own_task() {
    let script = "
        goal: paint both
        match:
          - {task: paint the left, say: left is blue}
        replies:
          - spawn_agent: {task: paint the left in blue, label: left}
          - say: both are painted
        show: 2
    ";
    insta::assert_snapshot!(play_context(script).await);
}

/// ES-221, ES-243
#[tokio::test]
async fn a_parent_sees_only_the_last_message_of_its_sub_agent() {
    let script = "
        goal: paint both
        match:
          - task: paint the left
            replies: [{bash: echo a secret}, {say: left is blue}]
        replies:
          - spawn_agent: {task: paint the left in blue, label: left}
          - say: both are painted
    ";
    insta::assert_snapshot!(play_context(script).await);
}

/// ES-245, ES-246
#[tokio::test]
async fn a_skill_is_read_when_it_is_needed() {
    let script = "
        goal: paint
        skills:
          painting: \"---\\nname: painting\\ndescription: How to paint.\\n---\\nStir first.\\n\"
        replies:
          - list_skills: {}
          - read_skill: painting
          - say: stirred
    ";
    insta::assert_snapshot!(play_context(script).await);
}

/// AX-022
#[tokio::test]
async fn the_words_of_a_hook_are_the_reason_of_its_denial() {
    let script = r#"
        goal: paint
        skills:
          careful: |
            ---
            name: careful
            description: How to paint.
            hooks:
              - {event: before_tool, tools: [bash], command: 'echo wear gloves >&2; exit 2'}
            ---
            Wear gloves.
        replies:
          - read_skill: careful
          - bash: echo paint > door
          - say: I need gloves
    "#;
    insta::assert_snapshot!(play_context(script).await);
}

/// ES-044: the plan comes back as it was understood.
#[tokio::test]
async fn the_plan_is_shown_with_its_progress() {
    let script = "
        goal: paint
        replies:
          - update_plan:
              steps:
                - {id: a, description: stir, status: done}
                - {id: b, description: paint, status: in_progress}
          - say: painted
    ";
    insta::assert_snapshot!(play_context(script).await);
}

#[tokio::test]
async fn a_background_command_has_a_handle() {
    let script = "
        goal: start it
        replies:
          - bash: {command: sleep 600, background: true}
          - say: started
    ";
    insta::assert_snapshot!(play_context(script).await);
}

/// What a turn leaves running ends with it, and both the person and the agent read so.
#[tokio::test]
async fn a_background_command_that_ends_with_its_task_is_reported() {
    let script = "
        goal: start it
        replies:
          - bash: {command: sleep 600, background: true}
          - say: started
    ";
    let journal = play(script).await;
    let line = journal.lines().find(|line| line.contains("command_exited")).unwrap();
    assert!(line.contains("(`sleep 600`) has ended: s"), "{line}");
}
