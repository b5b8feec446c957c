//! Templates: both bookends, or refused.

use windlass_plan::{GUIDANCE, TEMPLATES, check_bookends, check_prompts};

use crate::read;

/// PL-053, PL-058, PL-060, PL-061, PL-062
#[test]
fn every_template_has_step_0_and_step_99_in_every_task() {
    for template in TEMPLATES {
        let plan = check_bookends(template.name, template.text).unwrap();
        for (_, task) in plan.tasks() {
            let (first, last) = (&task.steps[0], task.steps.last().unwrap());
            assert!(first.text.starts_with("LOAD CONTEXT: Check for snapshot from previous task"));
            assert!(last.text.starts_with("SAVE STATE: Before finishing this task:"));
            assert!(last.text.ends_with("/clear is now safe."));
            for word in ["log-issue", "log-decision", "save-snapshot"] {
                assert!(last.text.contains(word), "{word}");
            }
        }
        let (plan, document) = read(template.text).unwrap();
        assert_eq!(check_prompts(&plan, &document), [], "{}", template.name);
    }
}

/// PL-054
#[test]
fn a_template_without_bookends_is_refused() {
    let whole = TEMPLATES[0].text;
    for (from, to, wrong) in [
        ("\"step\": 0,", "\"step\": 2,", "step 0 (`LOAD CONTEXT: …`) must be the first step"),
        ("LOAD CONTEXT", "BEGIN", "step 0 (`LOAD CONTEXT: …`) must be the first step"),
        ("SAVE STATE", "END", "step 99 (`SAVE STATE: …`) must be the last step"),
        ("\"step\": 99,", "\"step\": 98,", "step 99 (`SAVE STATE: …`) must be the last step"),
    ] {
        let refused = check_bookends("mine.json", &whole.replacen(from, to, 1)).unwrap_err();
        assert!(refused.to_string().contains(wrong), "{from}: {refused}");
        assert!(refused.to_string().contains("phases[0].tasks[0].steps"), "{refused}");
    }
    let none = r#"{"phases": [{"tasks": [{"bestPatternPrompt": "/x"}]}]}"#;
    assert!(
        check_bookends("mine.json", none).unwrap_err().to_string().contains("task `t01`: step 0")
    );
}

/// PL-055: the section for the guidance file says the same as the steps.
#[test]
fn the_guidance_has_the_task_boundary() {
    for step in [windlass_core::planning::STEP_0, windlass_core::planning::STEP_99] {
        assert!(GUIDANCE.contains(step.replace("{{task}}", "<id>").trim_end()), "{step}");
    }
}
