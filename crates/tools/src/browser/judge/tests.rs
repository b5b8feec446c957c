//! How calls are judged, without a browser.

use serde_json::{Value, json};
use windlass_sandbox::network::{AddressRules, HostRules};

use super::*;

fn judged(arguments: Value, saved: &BrowsingState) -> Result<CallEffect, String> {
    let reach = Reach::new(AddressRules { allowed: Vec::new() }, HostRules::Any);
    let given: Arguments = serde_json::from_value(arguments).unwrap();
    judge(&reach, &given, saved).map_err(|outcome| outcome.text)
}

fn page() -> BrowsingState {
    let form = Form {
        method: "POST".into(),
        url: "https://a.example/send".into(),
        fields: vec![("name".into(), "Ann".into())],
    };
    let element = |reference: &str, role: &str, submits, form: Option<&Form>| Element {
        reference: reference.into(),
        role: role.into(),
        name: "x".into(),
        submits,
        form: form.cloned(),
    };
    let mut saved = BrowsingState::default();
    saved.set_elements([
        element("b1", "button", true, Some(&form)),
        element("t1", "textbox", false, Some(&form)),
        element("l1", "link", false, None),
    ]);
    saved
}

/// ES-190, ES-249, ES-260, ES-261
#[test]
fn each_action_has_the_class_and_risk_of_what_it_would_do() {
    let saved = page();
    let cases = [
        json!({ "action": "navigate", "url": "https://a.example/" }),
        json!({ "action": "click", "ref": "l1" }),
        json!({ "action": "click", "ref": "[b1]" }),
        json!({ "action": "type", "ref": "t1", "text": "" }),
        json!({ "action": "submit", "ref": "t1" }),
        json!({ "action": "select", "ref": "t1", "text": "a" }),
        json!({ "action": "scroll" }),
        json!({ "action": "wait", "text": "done" }),
        json!({ "action": "text" }),
        json!({ "action": "links" }),
        json!({ "action": "screenshot" }),
        json!({ "action": "evaluate", "text": "document.title" }),
        json!({ "action": "evaluate", "text": "document.forms[0].submit()" }),
        json!({ "action": "tabs" }),
        json!({ "action": "back" }),
        json!({ "action": "close" }),
    ];
    let mut table = String::new();
    for case in cases {
        let CallEffect { assessment, recovery, .. } = judged(case.clone(), &saved).unwrap();
        let again = if recovery == Recovery::Rerun { "rerun" } else { "unknown" };
        table += &format!("{case} {} {} {again}\n", assessment.risk, assessment.class);
    }
    insta::assert_snapshot!(table, @r#"
    {"action":"navigate","url":"https://a.example/"} MEDIUM read rerun
    {"action":"click","ref":"l1"} MEDIUM build unknown
    {"action":"click","ref":"[b1]"} HIGH publish unknown
    {"action":"type","ref":"t1","text":""} MEDIUM build unknown
    {"action":"submit","ref":"t1"} HIGH publish unknown
    {"action":"select","ref":"t1","text":"a"} MEDIUM build unknown
    {"action":"scroll"} MEDIUM read rerun
    {"action":"wait","text":"done"} MEDIUM read rerun
    {"action":"text"} MEDIUM read rerun
    {"action":"links"} MEDIUM read rerun
    {"action":"screenshot"} MEDIUM read rerun
    {"action":"evaluate","text":"document.title"} MEDIUM read rerun
    {"action":"evaluate","text":"document.forms[0].submit()"} HIGH publish unknown
    {"action":"tabs"} MEDIUM read rerun
    {"action":"back"} MEDIUM read rerun
    {"action":"close"} MEDIUM read rerun
    "#);
}

#[test]
fn files_and_private_addresses_are_refused_before_anything_starts() {
    for url in
        ["file:///etc/passwd", "http://127.0.0.1/", "http://169.254.169.254/", "chrome://gpu", "x"]
    {
        let refused =
            judged(json!({ "action": "navigate", "url": url }), &BrowsingState::default());
        assert!(refused.is_err(), "{url}");
    }
}

#[test]
fn an_element_that_was_not_seen_cannot_be_used() {
    for action in ["click", "type", "submit", "select"] {
        let refused = judged(json!({ "action": action, "ref": "zz", "text": "a" }), &page());
        assert!(refused.unwrap_err().contains("there is no element [zz]"), "{action}");
        let refused = judged(json!({ "action": action, "text": "a" }), &page());
        assert!(refused.unwrap_err().contains("needs `ref`"), "{action}");
    }
}

#[test]
fn a_person_reads_what_a_form_would_send() {
    let judged = judged(json!({ "action": "submit", "ref": "b1" }), &page()).unwrap();
    assert_eq!(judged.assessment.reason, "submits a form to https://a.example/send (POST)");
    assert_eq!(judged.form.unwrap().text(), "POST https://a.example/send\n+ name: Ann\n");
}
