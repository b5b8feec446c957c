//! Columns of text: one width for everything that is drawn, counted by what a reader takes for one character. A heart
//! in colour takes two columns, a family of five as many, and neither is ever cut in half.

use unicode_segmentation::UnicodeSegmentation as _;
use unicode_width::UnicodeWidthStr as _;

/// Columns of a text without escapes.
pub fn width(text: &str) -> usize {
    text.graphemes(true).map(grapheme_width).sum()
}

/// Columns of one character as a reader sees it.
pub fn grapheme_width(grapheme: &str) -> usize {
    grapheme.width().min(2)
}
