//! What a worker says that it will edit, so that others leave it alone (MS-137, O-52).

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A part of a file that a worker will edit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// The file, from the root of its repository.
    pub path: String,
    /// The lines, from 1; the whole file where there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lines: Option<LineRange>,
    /// What the lines are, where that is known: the name of a function or type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub symbol: Option<String>,
}

/// Lines of a file, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LineRange {
    pub first: u32,
    pub last: u32,
}

/// Text that is not a claim.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a claim; write `PATH`, `PATH:10-50` or `PATH#symbol`")]
pub struct BadClaim(String);

impl Claim {
    /// Whether both would edit the same place. Two symbols of a file are two places wherever their lines are: lines
    /// move when somebody else has edited above them.
    pub fn overlaps(&self, other: &Self) -> bool {
        if self.path != other.path {
            return false;
        }
        match (&self.symbol, &other.symbol) {
            (Some(own), Some(theirs)) => own == theirs,
            _ => match (self.lines, other.lines) {
                (Some(own), Some(theirs)) => own.first <= theirs.last && theirs.first <= own.last,
                (None, _) | (_, None) => true,
            },
        }
    }
}

impl fmt::Display for LineRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.first == self.last {
            return write!(f, "line {}", self.first);
        }
        write!(f, "lines {}-{}", self.first, self.last)
    }
}

/// As a person reads it: `src/foo.ts lines 10-50 (parse)`.
impl fmt::Display for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.path)?;
        if let Some(lines) = self.lines {
            write!(f, " {lines}")?;
        }
        match &self.symbol {
            Some(symbol) => write!(f, " ({symbol})"),
            None => Ok(()),
        }
    }
}

impl FromStr for Claim {
    type Err = BadClaim;

    fn from_str(text: &str) -> Result<Self, BadClaim> {
        let bad = || BadClaim(text.to_owned());
        let whole = |path: &str| Self { path: path.to_owned(), lines: None, symbol: None };
        let claim = match (text.rsplit_once('#'), text.rsplit_once(':')) {
            (Some((path, symbol)), _) if !symbol.is_empty() => {
                Self { symbol: Some(symbol.to_owned()), ..whole(path) }
            }
            (None, Some((path, lines))) => {
                let (first, last) = lines.split_once('-').unwrap_or((lines, lines));
                let number = |text: &str| text.parse::<u32>().ok().filter(|number| *number > 0);
                let (first, last) = (number(first).ok_or_else(bad)?, number(last).ok_or_else(bad)?);
                let lines = (first <= last).then_some(LineRange { first, last }).ok_or_else(bad)?;
                Self { lines: Some(lines), ..whole(path) }
            }
            (None, None) => whole(text),
            _ => return Err(bad()),
        };
        let is_inside = !claim.path.starts_with('/')
            && !claim.path.is_empty()
            && claim.path.split('/').all(|part| !["", ".", ".."].contains(&part));
        is_inside.then_some(claim).ok_or_else(bad)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(text: &str) -> Claim {
        text.parse().unwrap()
    }

    /// MS-137, O-52
    #[test]
    fn claims_overlap_where_their_lines_or_symbols_do() {
        let overlap = |a: &str, b: &str| claim(a).overlaps(&claim(b));
        assert!(overlap("src/foo.ts:10-50", "src/foo.ts:50-60"));
        assert!(!overlap("src/foo.ts:10-50", "src/foo.ts:51-60"));
        assert!(!overlap("src/foo.ts:10-50", "src/bar.ts:10-50"));
        assert!(overlap("src/foo.ts", "src/foo.ts:1-2"));
        assert!(overlap("a.rs#parse", "a.rs#parse"));
        assert!(!overlap("a.rs#parse", "a.rs#print"));
        assert!(
            overlap("a.rs#parse", "a.rs:1-2"),
            "without lines of its own a symbol may be anywhere"
        );
    }

    #[test]
    fn a_claim_reads_as_a_sentence() {
        assert_eq!(claim("src/foo.ts:10-50").to_string(), "src/foo.ts lines 10-50");
        assert_eq!(claim("src/foo.ts:7").to_string(), "src/foo.ts line 7");
        let bad = ["", "/etc/passwd", "a/../b", "a:0-3", "a:5-3", "a:x", "a#"];
        for text in bad {
            assert!(text.parse::<Claim>().is_err(), "{text}");
        }
    }
}
