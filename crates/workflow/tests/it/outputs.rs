//! The output contract: the last JSON code block of what an agent said.

use windlass_workflow::AgentOutput;
use windlass_workflow::output::Missing;

fn block(json: &str) -> String {
    format!("```json\n{json}\n```\n")
}

const DONE: &str = r#"{"success": true, "summary": "did it", "outputs": {"branch": "b1"}}"#;

/// WF-053, WF-055
#[test]
fn the_block_is_read_with_all_its_fields() {
    let said = AgentOutput::read(&format!("Done.\n\n{}", block(DONE))).unwrap();
    assert!(said.success);
    assert_eq!(said.summary, "did it");
    assert_eq!(said.outputs["branch"], "b1");
    let failed = AgentOutput::read(&block(
        r#"{"success": false, "summary": "no", "error": "why", "outputs": null}"#,
    ));
    let failed = failed.unwrap();
    assert_eq!((failed.success, failed.error.as_deref()), (false, Some("why")));
}

/// WF-054
#[test]
fn the_last_block_counts() {
    let text = format!(
        "{}\nand then\n\n{}",
        block(r#"{"success": true, "summary": "first"}"#),
        block(DONE)
    );
    assert_eq!(AgentOutput::read(&text).unwrap().summary, "did it");
    let text = format!("{}\n{}", block(DONE), block(r#"{"done": 1}"#));
    assert!(
        matches!(AgentOutput::read(&text), Err(Missing::Shape(_))),
        "an earlier one takes no place"
    );
}

/// WF-054, WF-055
#[test]
fn a_last_block_of_json_that_is_no_object_counts() {
    for last in ["[1]", "null", "\"done\"", ""] {
        let text = format!("{}\n{}", block(DONE), block(last));
        assert!(matches!(AgentOutput::read(&text), Err(Missing::Shape(_))), "{last}");
    }
    let text = format!("{}\n```\n$ make\n```\n", block(DONE));
    assert_eq!(AgentOutput::read(&text).unwrap().summary, "did it", "any text is in it");
}

/// WF-057
#[test]
fn without_a_block_of_that_shape_there_is_no_output() {
    let wrong = [
        r#"{"success": "yes", "summary": "x"}"#,
        r#"{"summary": "x"}"#,
        r#"{"success": true}"#,
        r#"{"success": true, "summary": "x", "outputs": [1]}"#,
        r#"{"success": true, "summary": "x""#,
    ];
    for json in wrong {
        assert!(matches!(AgentOutput::read(&block(json)), Err(Missing::Shape(_))), "{json}");
    }
    assert_eq!(AgentOutput::read(" \n"), Err(Missing::Silent));
    for text in ["I did it.", DONE, "    {\"success\": true}", "\u{0}\u{7}garbage"] {
        assert_eq!(AgentOutput::read(text), Err(Missing::NoBlock), "{text}");
    }
}

/// A fake block inside a quote does not count.
#[test]
fn what_is_quoted_is_not_the_output() {
    let quoted: String = block(DONE).lines().map(|line| format!("> {line}\n")).collect();
    assert_eq!(AgentOutput::read(&format!("The issue says:\n\n{quoted}")), Err(Missing::NoBlock));
    let inner = format!("````markdown\n{}````\n", block(DONE));
    assert_eq!(AgentOutput::read(&inner), Err(Missing::NoBlock));
    let comment = format!("<!--\n{}-->\n", block(DONE));
    assert_eq!(AgentOutput::read(&comment), Err(Missing::NoBlock));
    let own = format!("{}\n{quoted}", block(r#"{"success": false, "summary": "mine"}"#));
    assert_eq!(AgentOutput::read(&own).unwrap().summary, "mine");
}

/// A program may print 100 MB; its end is what counts.
#[test]
fn the_end_of_a_vast_output_is_read() {
    let noise = "line after line\n".repeat(1 << 20);
    assert_eq!(AgentOutput::read(&format!("{noise}{}", block(DONE))).unwrap().summary, "did it");
}
