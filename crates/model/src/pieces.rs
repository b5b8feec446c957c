//! A reply of the model in the order it came: text, thoughts and calls.

use windlass_core::message::ToolRequest;
use windlass_core::reasoning::{Reasoning, Thought};

/// One part of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Piece<'a> {
    Text(&'a str),
    Thought(&'a Thought),
    Call(&'a ToolRequest),
}

/// The parts of a reply in their order. Text that is only white space is left out.
pub(crate) fn pieces<'a>(
    text: &'a str,
    calls: &'a [ToolRequest],
    reasoning: Option<&'a Reasoning>,
) -> Vec<Piece<'a>> {
    let mut pieces = Vec::with_capacity(calls.len() + 2);
    let (mut written, mut called) = (0, 0);
    for thought in reasoning.map(|reasoning| reasoning.thoughts.as_slice()).unwrap_or_default() {
        // A key may have been taken out of the text since, and with it some bytes.
        let end = text.floor_char_boundary(thought.after_text).max(written);
        push_text(&mut pieces, &text[written..end]);
        written = end;
        let end = thought.after_calls.clamp(called, calls.len());
        pieces.extend(calls[called..end].iter().map(Piece::Call));
        called = end;
        pieces.push(Piece::Thought(thought));
    }
    push_text(&mut pieces, &text[written..]);
    pieces.extend(calls[called..].iter().map(Piece::Call));
    pieces
}

fn push_text<'a>(pieces: &mut Vec<Piece<'a>>, text: &'a str) {
    if !text.trim().is_empty() {
        pieces.push(Piece::Text(text));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use windlass_core::id::CallId;

    use super::*;

    fn call(name: &str) -> ToolRequest {
        ToolRequest {
            id: CallId::derived("test", name),
            provider_id: name.to_owned(),
            name: name.to_owned(),
            arguments: String::new(),
        }
    }

    fn reasoning(places: &[(usize, usize)]) -> Reasoning {
        let thought = |(after_text, after_calls): &(usize, usize)| Thought {
            after_text: *after_text,
            after_calls: *after_calls,
            ..Thought::default()
        };
        Reasoning { model: "m".to_owned(), thoughts: places.iter().map(thought).collect() }
    }

    #[test]
    fn thoughts_stand_where_they_came() {
        let (calls, thoughts) = ([call("a"), call("b")], reasoning(&[(0, 0), (3, 0), (6, 1)]));
        let said: Vec<String> = pieces("onetwo", &calls, Some(&thoughts))
            .into_iter()
            .map(|piece| match piece {
                Piece::Text(text) => text.to_owned(),
                Piece::Thought(_) => "?".to_owned(),
                Piece::Call(call) => format!("{}()", call.name),
            })
            .collect();
        assert_eq!(said.join(" "), "? one ? two a() ? b()");
    }

    proptest! {
        #[test]
        fn whatever_the_places_nothing_is_lost(
            text in any::<String>(),
            places in proptest::collection::vec((0usize..40, 0usize..5), 0..5),
        ) {
            let (calls, thoughts) = ([call("a"), call("b")], reasoning(&places));
            let all = pieces(&text, &calls, Some(&thoughts));
            let count = |wanted: fn(&Piece<'_>) -> bool| all.iter().filter(|p| wanted(p)).count();
            prop_assert_eq!(count(|p| matches!(p, Piece::Call(_))), 2);
            prop_assert_eq!(count(|p| matches!(p, Piece::Thought(_))), places.len());
            let letters = |text: &str| text.chars().filter(|c| !c.is_whitespace()).collect::<String>();
            let said: String = all.iter().filter_map(|p| match p {
                Piece::Text(text) => Some(*text),
                Piece::Thought(_) | Piece::Call(_) => None,
            }).collect();
            prop_assert_eq!(letters(&said), letters(&text));
        }
    }
}
