//! What is refused before it is parsed, so that reading a command has a bound in time and stack.
//!
//! The grammar that [`super::syntax`] uses backtracks: a `;` under `n` parentheses costs it 2ⁿ steps, as do
//! nested `case` and nested quotes in an array index, and it recurses once per opener. Commands that
//! people write stay far below these limits.

use brush_parser::Token;

use super::syntax::{ParseFailure, token_text};

/// The longest text that is parsed; a longer one is opaque.
pub(super) const LONGEST_TEXT: usize = 64 * 1024;

/// The most `$(`, `${` and `$[`: each may be one more frame of the tokenizer.
const MOST_EXPANSIONS: usize = 1_000;

/// The most compound commands inside one another: each is a dozen frames of the grammar.
const DEEPEST_COMPOUND: usize = 200;

/// The most open parentheses at once: reading `((` as arithmetic first costs 2ⁿ.
const DEEPEST_PARENTHESES: usize = 10;

/// The most `case` inside one another: the last arm is parsed twice, so n cost 2ⁿ and more.
const DEEPEST_CASE: usize = 4;

/// The most expansions and quotes in an array index: parsed twice a level.
const MOST_IN_INDEX: usize = 8;

/// Openers in a text up to which a 2 MiB stack is enough, in debug builds too.
const FEW_OPENERS: usize = 48;

/// Whether reading `text` may need more stack than a thread has by default.
pub(super) fn needs_room(text: &str) -> bool {
    let bytes = text.as_bytes();
    let openers = bytes.iter().filter(|b| matches!(b, b'(' | b'{' | b'`' | b'[')).count();
    let keywords = ["if", "while", "until", "for", "case", "do"];
    openers > FEW_OPENERS
        || keywords.iter().map(|word| text.matches(word).count()).sum::<usize>() > FEW_OPENERS
}

/// Refuses text that the tokenizer must not see.
pub(super) fn before_tokens(text: &str) -> Result<(), ParseFailure> {
    if text.len() > LONGEST_TEXT {
        return Err(ParseFailure::because(format!("it is longer than {LONGEST_TEXT} bytes")));
    }
    if text.contains('\0') {
        return Err(ParseFailure::because("it holds a NUL character"));
    }
    let bytes = text.as_bytes();
    let expansions =
        bytes.windows(2).filter(|pair| matches!(pair, [b'$', b'(' | b'{' | b'['])).count();
    if expansions > MOST_EXPANSIONS {
        return Err(ParseFailure::because(format!(
            "it has more than {MOST_EXPANSIONS} expansions"
        )));
    }
    if here_document_in_expansion(bytes) {
        return Err(ParseFailure::because("it has a here-document in an expansion"));
    }
    // The grammar panics on a descriptor number beyond 32 bits.
    let mut digits = 0;
    for byte in bytes {
        match byte {
            b'0'..=b'9' => digits += 1,
            b'<' | b'>' if digits > 9 => {
                return Err(ParseFailure::because("it names a file descriptor beyond any limit"));
            }
            _ => digits = 0,
        }
    }
    Ok(())
}

/// Whether `<<` is in `${…}`. To bash it is text there; the tokenizer looks for the rest of the document and
/// panics where it does not come.
fn here_document_in_expansion(bytes: &[u8]) -> bool {
    let mut open = 0_usize;
    for pair in bytes.windows(2) {
        match pair {
            [b'$', b'{'] => open += 1,
            [b'}', _] => open = open.saturating_sub(1),
            [b'<', b'<'] if open > 0 => return true,
            _ => {}
        }
    }
    false
}

/// Refuses tokens that the grammar must not see.
pub(super) fn before_grammar(tokens: &[Token]) -> Result<(), ParseFailure> {
    let (mut parentheses, mut cases, mut compounds) = (0_usize, 0_usize, 0_usize);
    for token in tokens {
        let (text, operator) = token_text(token);
        match (text, operator) {
            ("(", true) => (parentheses, compounds) = (parentheses + 1, compounds + 1),
            (")", true) => {
                parentheses = parentheses.saturating_sub(1);
                compounds = compounds.saturating_sub(1);
            }
            ("case", false) => (cases, compounds) = (cases + 1, compounds + 1),
            ("esac", false) => {
                cases = cases.saturating_sub(1);
                compounds = compounds.saturating_sub(1);
            }
            ("{" | "if" | "do" | "while" | "until" | "for" | "[[" | "!" | "coproc", false) => {
                compounds += 1;
            }
            ("}" | "fi" | "]]", false) => compounds = compounds.saturating_sub(1),
            // Closes the `do` and the `for`, `while` or `until` before it.
            ("done", false) => compounds = compounds.saturating_sub(2),
            (word, false) if index_is_costly(word) => {
                return Err(ParseFailure::because("an array index in it is too deeply nested"));
            }
            _ => {}
        }
        if parentheses > DEEPEST_PARENTHESES || cases > DEEPEST_CASE || compounds > DEEPEST_COMPOUND
        {
            return Err(ParseFailure::because("it is too deeply nested"));
        }
    }
    Ok(())
}

/// Whether `word` starts like `name[` and nests much in the brackets.
fn index_is_costly(word: &str) -> bool {
    let name = word.bytes().take_while(|b| b.is_ascii_alphanumeric() || *b == b'_').count();
    word.as_bytes().get(name) == Some(&b'[')
        && word.bytes().filter(|b| matches!(b, b'"' | b'$' | b'(' | b'[' | b'`')).count()
            > MOST_IN_INDEX
}
