//! The gate at its own seam: a state and a prepared call in, a ruling out.

use windlass_core::axes::{PermissionProfile, RunControl, WorkMode};
use windlass_core::event::MemoryFlush;
use windlass_core::outcome::{CallEnding, Outcome, Recovery};
use windlass_core::policy::{Assessment, Class, Decision, Pattern};
use windlass_core::question::Answer;
use windlass_core::state::Stage;
use windlass_skills::{SkillRegistry, Skills};

use super::*;
use crate::testing::{open_call, state};

fn gate() -> Gate {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().to_owned();
    let sandbox = windlass_sandbox::Host::new(path.clone(), path, &[], &[]).unwrap();
    Gate {
        registry: Arc::new(Registry::builtin()),
        rule_set: RuleSet::none(),
        max_depth: 1,
        shows_ledger: false,
        skills: SkillLimits {
            skills: SkillRegistry::fixed(Skills::empty()),
            bound_by: Vec::new(),
            trusted: Arc::new(|_| true),
        },
        hooks: Hooks { sandbox: Arc::new(sandbox) },
    }
}

fn prepared(class: Class) -> Prepared {
    let act = Box::new(|| -> futures_util::future::BoxFuture<'static, Outcome> {
        unreachable!("the gate runs nothing")
    });
    Prepared::new(Assessment::of(class, "a test"), Recovery::Rerun, act)
}

fn denial(ruling: &Ruling) -> &str {
    match ruling {
        Ruling::Denied(check, outcome) => {
            assert_eq!((check.decision, outcome.ending), (Decision::Deny, CallEnding::Denied));
            &check.reason
        }
        Ruling::Allowed(_) | Ruling::Ask(..) => panic!("{ruling:?}"),
    }
}

#[test]
fn reading_is_allowed_under_every_profile() {
    for profile in PermissionProfile::ALL {
        let mut state = state("goal");
        state.axes.permission_profile = *profile;
        let ruling = gate().decide(&state, &open_call("read", "{}"), &prepared(Class::Read));
        assert!(matches!(ruling, Ruling::Allowed(_)), "{profile}: {ruling:?}");
    }
}

#[test]
fn under_manual_control_an_edit_waits_for_a_person() {
    let mut state = state("goal");
    state.axes.run_control = RunControl::Manual;
    let open = open_call("edit", "{}");
    let ruling = gate().decide(&state, &open, &prepared(Class::Edit));
    let Ruling::Ask(check, question) = &ruling else { panic!("{ruling:?}") };
    assert_eq!((check.call, question.call), (open.request.id, Some(open.request.id)));
}

#[test]
fn an_answer_counts_only_for_the_call_it_was_asked_about() {
    let mut state = state("goal");
    state.axes.run_control = RunControl::Manual;
    let mut open = open_call("edit", r#"{"path":"a"}"#);
    let Ruling::Ask(_, question) = gate().decide(&state, &open, &prepared(Class::Edit)) else {
        panic!("a person is asked")
    };
    let at = jiff::Timestamp::UNIX_EPOCH;
    let answer = Answer { text: question.options[0].clone(), by: "ada".to_owned(), at };
    open.stage = Stage::Answered(Box::new(question), answer);
    let ruling = gate().decide(&state, &open, &prepared(Class::Edit));
    assert!(matches!(ruling, Ruling::Allowed(_)), "{ruling:?}");

    open.request.arguments = r#"{"path":"b"}"#.to_owned();
    let ruling = gate().decide(&state, &open, &prepared(Class::Edit));
    assert!(matches!(ruling, Ruling::Ask(..)), "other arguments are asked about again: {ruling:?}");
}

#[test]
fn no_rule_and_no_server_has_an_effect_in_read_only_modes() {
    let mut state = state("goal");
    state.axes.permission_profile = PermissionProfile::Unrestricted;
    state.axes.work_mode = WorkMode::Review;
    state.allow_rules = vec![AllowRule::Class { class: Class::Publish }];
    let gate = Gate {
        rule_set: RuleSet { standing: vec![Pattern::new("mcp*").unwrap()], ..RuleSet::none() },
        ..gate()
    };
    for tool in ["write", "mcp__files__write", "spawn_agent", "bash", "forged"] {
        for class in [Class::Edit, Class::LocalCommand, Class::Build, Class::Publish] {
            let ruling = gate.decide(&state, &open_call(tool, "{}"), &prepared(class));
            let reason = denial(&ruling);
            assert!(reason.contains("work mode `review` is read-only"), "{tool}: {reason}");
        }
    }
    let ruling = gate.decide(&state, &open_call("read", "{}"), &prepared(Class::Read));
    assert!(matches!(ruling, Ruling::Allowed(_)), "{ruling:?}");
}

#[test]
fn while_notes_are_saved_only_tools_that_keep_notes_run() {
    let mut state = state("goal");
    state.compaction.on_flush(&MemoryFlush {
        number: 1,
        estimated_tokens: 0,
        message: String::new(),
        excerpt: None,
    });
    let ruling = gate().decide(&state, &open_call("read", "{}"), &prepared(Class::Read));
    let reason = denial(&ruling);
    assert!(reason.contains("notes are being saved: only `update_plan`"), "{reason}");
    let ruling = gate().decide(&state, &open_call("save_memo", "{}"), &prepared(Class::Note));
    assert!(matches!(ruling, Ruling::Allowed(_)), "{ruling:?}");
}

#[test]
fn an_agent_at_the_deepest_level_cannot_start_others() {
    let mut state = state("goal");
    assert!(gate().shows_spawning(&state) && gate().can_spawn(&state));
    state.created.depth = 1;
    assert!(!gate().shows_spawning(&state));
    assert!(gate().specs(&state).iter().all(|tool| tool.name != "spawn_agent"));
    let open = open_call("spawn_agent", "{}");
    let ruling = gate().decide(&state, &open, &prepared(Class::Delegate));
    assert!(denial(&ruling).contains("depth 1 is the limit"), "{ruling:?}");
}

#[test]
fn a_tool_that_does_not_exist_is_not_available() {
    let open = open_call("teleport", "{}");
    let ruling = gate().decide(&state("goal"), &open, &prepared(Class::Read));
    assert!(denial(&ruling).contains("`teleport` is not available"), "{ruling:?}");
}
