//! Input made to hurt gets an answer: opaque, HIGH, with the reason. Never a panic or a hang.
//!
//! Each of these would cost the grammar exponential time, its stack or a panic if it were parsed, so a
//! limit that stops working shows as a test that does not end.

use windlass_core::policy::{Class, Risk};
use windlass_shell::analyze;

use crate::corpus::context;

fn is_refused(text: &str, reason: &str) {
    let found = analyze(text, &context()).assessment;
    let start: String = text.chars().take(40).collect();
    assert!(found.class >= Class::Opaque && found.risk >= Risk::High, "{start}: {found:?}");
    assert!(found.reason.contains(reason), "{start}: {found:?}");
}

#[test]
fn a_megabyte_of_nested_quotes_is_refused_by_its_length() {
    is_refused(&"\"'".repeat(512 * 1024), "longer than");
    is_refused(&"\"$(".repeat(350_000), "longer than");
    is_refused(&"a".repeat(1 << 20), "longer than");
}

#[test]
fn quotes_nested_as_deep_as_the_length_allows_are_refused() {
    is_refused(&"\"$(".repeat(20_000), "expansions");
    is_refused(&"${x:-".repeat(13_000), "expansions");
    analyze(&"`".repeat(60_000), &context());
}

#[test]
fn deep_nesting_is_refused_on_the_stack_of_an_ordinary_thread() {
    let nested =
        |open: &str, close: &str, n: usize| format!("{}ls{}", open.repeat(n), close.repeat(n));
    for n in [20, 150, 5_000] {
        for (open, close) in [
            ("{ ", "; }"),
            ("( ", " )"),
            ("(", ")"),
            ("if true; then ", "; fi"),
            ("while true; do ", "; done"),
            ("case x in x) ", " ;; esac"),
            ("case x in x) ", " esac"),
            ("! ", ""),
            ("f() { ", "; }"),
            ("coproc ", ""),
            ("$(", ")"),
            ("\"$(", ")\""),
            ("\"x$(echo ", ")\""),
            ("${x:-", "}"),
            ("$((", "))"),
            ("`", "`"),
            ("<(", ")"),
            ("[[ ( ", " ) ]]"),
            ("[[ ! ", " ]]"),
            ("while ", ""),
            ("if ", ""),
            ("a[", "]=1"),
            ("a[\"x$(", ")\"]=1"),
            ("env ", ""),
            ("eval ", ""),
            ("{a,", "}"),
            ("function f ", ""),
            ("time ", ""),
        ] {
            analyze(&nested(open, close, n), &context());
        }
    }
}

#[test]
fn unbalanced_parentheses_do_not_cost_exponential_time() {
    is_refused(&"(".repeat(60), "nested");
    is_refused(&format!("{}a;b{}", "(".repeat(40), ")".repeat(40)), "nested");
    is_refused(&format!("[[ x =~ {} ]]", "(".repeat(40)), "nested");
    is_refused(&format!("for (({};;)); do ls; done", "(".repeat(40)), "nested");
}

#[test]
fn a_script_that_quotes_itself_is_followed_only_so_far() {
    let mut text = "rm -rf x".to_owned();
    for _ in 0..12 {
        text = format!("sh -c '{}'", text.replace('\'', r"'\''"));
        let found = analyze(&text, &context()).assessment;
        assert!(found.risk >= Risk::High, "{found:?}");
    }
}

#[test]
fn loops_and_functions_that_multiply_are_followed_only_so_far() {
    let mut text = "a() { c=ls; $c; }\n".to_owned();
    for (from, to) in ["ab", "bc", "cd", "de", "ef", "fg"].iter().map(|pair| pair.split_at(1)) {
        text.push_str(&format!("{to}() {{ {} }}\n", format!("{from}; ").repeat(8)));
    }
    text.push('g');
    is_refused(&text, "too many");
    let loops = format!("{}c=ls; $c{}", "for i in 1 2; do x=$i; ".repeat(20), "; done".repeat(20));
    analyze(&loops, &context());
}

#[test]
fn a_descriptor_beyond_any_limit_is_refused() {
    is_refused("ls 99999999999>x", "descriptor");
}

/// The tokenizer panicked on it.
#[test]
fn a_here_document_in_an_expansion_is_refused() {
    is_refused("${x:-<<E\n}\nE\n", "here-document in an expansion");
    is_refused("echo ${x:-${y:-<<-'E'\n}}", "here-document in an expansion");
    let found = analyze("cat <<E\n${x:-y}\nE\necho ${z} <<<${w}", &context()).assessment;
    assert_eq!(found.risk, Risk::Low, "{found:?}");
}

#[test]
fn a_large_file_in_a_here_document_is_read() {
    let body = "fn main() { println!(\"{}\", f(g(1)));\n } // `x` (y) {z}\n".repeat(800);
    let found = analyze(&format!("cat > src/a.rs <<'END'\n{body}END\n"), &context()).assessment;
    assert_eq!((found.class, found.risk), (Class::Edit, Risk::Medium), "{}", found.reason);
}
