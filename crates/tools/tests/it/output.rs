//! Cutting outputs to size and making them harmless.

use proptest::prelude::*;
use windlass_core::outcome::Truncation;
use windlass_tools::output::{fit, neutralize, readable};

use crate::bench::Bench;

/// ES-228
#[test]
fn a_text_at_the_limit_passes_unchanged() {
    let mut bench = Bench::new();
    let text = "x".repeat(32_000);
    let call = bench.next_call();
    assert_eq!(fit(text.clone(), call, 8_000, &bench.world.workspace), (text, None));
    assert!(std::fs::read_dir(bench.path(".scratch")).unwrap().next().is_none());
}

/// ES-229, ES-230, ES-209
#[test]
fn a_text_over_the_limit_is_cut_in_the_middle_and_saved() {
    let mut bench = Bench::new();
    let call = bench.next_call();
    let whole: String = (1..=100).map(|n| format!("line {n} é\n")).collect();
    let (cut, truncated) = fit(whole.clone(), call, 100, &bench.world.workspace);
    let path = format!("/workspace/.scratch/tool-output-{call}.txt");
    let notice =
        format!("\n\n[OUTPUT TRUNCATED — full output saved to {path}. Use read tool to access.]");
    assert!(cut.ends_with(&notice), "{cut}");
    assert!(cut.len() <= 400, "{} bytes", cut.len());
    insta::assert_snapshot!(cut.strip_suffix(&notice).unwrap());
    let original_size = whole.len() as u64;
    assert_eq!(truncated, Some(Truncation { full_output_path: path, original_size }));
    assert_eq!(bench.text(&format!(".scratch/tool-output-{call}.txt")), whole);
    // The same call cut again, as after a crash.
    assert!(fit(whole, call, 100, &bench.world.workspace).1.is_some());
}

#[test]
fn an_output_that_cannot_be_saved_says_so() {
    let mut bench = Bench::new();
    std::fs::remove_dir(bench.path(".scratch")).unwrap();
    std::fs::write(bench.path(".scratch"), "in the way").unwrap();
    let (cut, truncated) = fit("x".repeat(99), bench.next_call(), 1, &bench.world.workspace);
    assert!(truncated.is_none() && cut.contains("could not be saved"), "{cut}");
}

/// What could not be kept whole leaves nothing behind.
#[test]
fn a_stream_that_breaks_off_leaves_no_file() {
    struct Broken;
    impl std::io::Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
            Err(std::io::Error::other("no more"))
        }
    }
    let mut bench = Bench::new();
    let call = bench.next_call();
    let mut halfway = std::io::Read::chain(&b"half of it"[..], Broken);
    let kept = bench.world.workspace.keep(call, ".scratch/out.txt", &mut halfway);
    assert!(kept.unwrap_err().to_string().contains("no more"));
    assert_eq!(std::fs::read_dir(bench.path(".scratch")).unwrap().count(), 0);
}

#[test]
fn escapes_are_shown_not_obeyed() {
    insta::assert_snapshot!(
        readable(b"\x1b[31mred\x1b[0m \x1b]0;title\x07 a\0b \xff c\r\nd\re\x08\x7f\xc2\x9b31m\ttab"),
        @"
    ␛[31mred␛[0m ␛]0;title␇ a�b � c
    d␍e␈␡�31m	tab
    ");
}

proptest! {
    #[test]
    fn no_control_character_is_left(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let clean = readable(&bytes);
        prop_assert!(!clean.chars().any(|c| c.is_control() && c != '\n' && c != '\t'));
        prop_assert_eq!(neutralize(&clean), clean);
    }
}
