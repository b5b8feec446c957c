//! Go templates, as spells and conditions use them.

use proptest::prelude::*;
use serde_json::{Map, Value, json};
use windlass_workflow::template::{self, Error};

fn variables() -> Map<String, Value> {
    let value = json!({
        "bead": {"title": "Fix the login"},
        "test_output": "2 failed",
        "previous": {"failed": true, "success": false},
        "fix": {"outputs": {"branch": "b1", "files": ["a.rs", "b.rs"]}},
        "empty": "",
    });
    value.as_object().unwrap().clone()
}

fn render(text: &str) -> Result<String, Error> {
    template::render(text, &variables())
}

/// WF-040, WF-045, WF-046, WF-047, WF-056
#[test]
fn variables_conditions_and_lists_are_rendered() {
    let cases = [
        ("{{.bead.title}}: {{.test_output}}", "Fix the login: 2 failed"),
        ("{{if .previous.failed}}again{{else}}done{{end}}", "again"),
        ("{{range .fix.outputs.files}}<{{.}}>{{end}}", "<a.rs><b.rs>"),
        ("{{if and (eq .fix.outputs.branch \"b1\") (not .previous.success)}}x{{end}}", "x"),
        ("{{if or .empty (ne .test_output \"\")}}y{{end}}", "y"),
        (
            "{{.empty | default \"none\"}} {{default \"none\" .missing}} {{default \"none\" .fix.outputs.pr}}",
            "none none none",
        ),
        ("no variables", "no variables"),
    ];
    for (text, expected) in cases {
        assert_eq!(render(text).as_deref(), Ok(expected), "{text}");
    }
}

#[test]
fn an_unknown_variable_is_named_in_full() {
    assert_eq!(render("{{.nobody}}"), Err(Error::Unknown("nobody".to_owned())));
    let nested = render("{{.fix.outputs.pull_request}}");
    assert_eq!(nested, Err(Error::Unknown("fix.outputs.pull_request".to_owned())));
}

#[test]
fn what_a_template_would_drop_is_refused() {
    for text in ["a {{end}} b", "{{else}}", "{{if .x}}a", "{{.x", "{{shout .bead.title}}"] {
        assert!(matches!(template::check(text), Err(Error::Syntax(_))), "{text}");
    }
    let said = template::check("{{shout .x}}").unwrap_err().to_string();
    assert!(said.starts_with("there is no function `shout`; allowed: and, or"), "{said}");
}

#[test]
fn braces_that_are_not_closed_are_named() {
    for text in ["echo {{.name", "{{if .name}}yes{{end"] {
        assert_eq!(render(text).unwrap_err().to_string(), "a `{{` has no `}}`", "{text}");
    }
}

#[test]
fn a_condition_may_be_written_without_braces() {
    let is_true = |text: &str| template::is_true(&render(&template::condition(text)).unwrap());
    assert!(is_true(".previous.failed"));
    assert!(!is_true(".previous.success"));
    assert!(is_true("{{.previous.failed}}"));
    assert!(!is_true(""));
    assert!(is_true("eq .fix.outputs.branch \"b1\""));
}

/// What an agent said cannot become a command.
#[test]
fn values_in_commands_are_quoted() {
    let mut given = variables();
    given.insert("said".to_owned(), "x'; rm -rf / #".into());
    given.insert("flag".to_owned(), "--force".into());
    given.insert("changed".to_owned(), json!(["a b", "c"]));
    let render = |text: &str| template::render_command(text, &given).unwrap();
    let command = render("echo {{.said}} {{.flag}} {{.fix.outputs.branch}}");
    assert_eq!(command, r"echo 'x'\''; rm -rf / #' '--force' b1");
    assert_eq!(render("{{slice .said 2}}"), "'; rm -rf / #'", "a part of a value is a word too");
    assert_eq!(render(r#"{{printf "%s!" .said}}"#), r"'x'\''; rm -rf / #!'");
    let within = "{{define \"d\"}}{{.}}{{end}}{{template \"d\" .said}}{{with .said}} {{.}}{{end}}";
    assert_eq!(render(within), r"'x'\''; rm -rf / #' 'x'\''; rm -rf / #'");
    assert_eq!(
        render("{{$x := .said}}{{range .changed}}{{.}} {{end}}{{$x}}"),
        r"'a b' c 'x'\''; rm -rf / #'"
    );
    assert_eq!(render("echo {{\"{{\"}}.x}}"), "echo {{.x}}", "its author wrote this");
}

/// Conditions and functions in commands see values as they are, not as words of a shell.
#[test]
fn conditions_in_commands_see_the_values_themselves() {
    let mut given = variables();
    given.insert("empty".to_owned(), "".into());
    given.insert("nothing".to_owned(), serde_json::Value::Null);
    given.insert("said".to_owned(), "the big one".into());
    let render = |text: &str| template::render_command(text, &given).unwrap();
    assert_eq!(render("{{if .empty}}set{{else}}empty{{end}}"), "empty");
    assert_eq!(render(r#"{{if eq .said "the big one"}}same{{end}}"#), "same");
    assert_eq!(render(r#"{{default "none" .empty}} {{len .said}}"#), "none 11");
    assert_eq!(render("echo {{.empty}} {{.nothing}}"), "echo '' ''");
}

proptest! {
    #[test]
    fn no_template_makes_it_panic(text in "(\\{\\{|\\}\\}|end|if|range|\\.|[a-z ]|\"|\\||\\(|\\)|\\$x|:=){0,24}") {
        let _ = template::render(&text, &variables());
        let _ = template::render_command(&text, &variables());
    }

    #[test]
    fn a_quoted_text_is_one_word(text in "\\PC{0,20}") {
        let quoted = template::quote(&text);
        let is_plain = quoted == text && !text.is_empty();
        let inner = quoted.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\''));
        prop_assert!(is_plain || inner.is_some_and(|inner| inner.replace(r"'\''", "'") == text));
    }
}
