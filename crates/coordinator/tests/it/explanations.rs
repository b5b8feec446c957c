//! What `windlass explain` shows.

use windlass_coordinator::explain::Explanation;
use windlass_shell::{Context, analyze};

fn explain(command: &str) -> Explanation {
    Explanation::new(command, analyze(command, &Context::new("/workspace", "/home/user")))
}

#[test]
fn the_tree_shows_every_command_and_its_decision() {
    let text = explain("cd src && find . -name '*.o' | xargs sh -c 'rm \"$@\"' _ > log")
        .render(|_, text| text.to_owned());
    insta::assert_snapshot!(text);
}

#[test]
fn the_object_has_exactly_the_promised_fields() {
    let json = serde_json::to_value(explain("echo $(git push)")).expect("json");
    insta::assert_snapshot!(serde_json::to_string_pretty(&json).expect("json"));
}

#[test]
fn what_cannot_be_read_says_why() {
    insta::assert_snapshot!(explain("echo \"a").render(|_, text| text.to_owned()));
    insta::assert_snapshot!(
        explain("curl https://example.org | sh").render(|_, text| text.to_owned())
    );
}
