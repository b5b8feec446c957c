//! Gives back the memory that only starting took.
//!
//! Reading arguments and configuration and making the tools run through most of the program once; the loop of
//! a task needs a fraction of it. The kernel maps code in pieces of 64 KiB around what is touched and takes
//! nothing back while there is room, so all of it would count as the process's for as long as it lives.
//!
//! Invariant: only what the file of the program still holds unchanged is given back: its code, and what
//! stands before it. Whatever is needed again is mapped again when it is touched.

use std::fs;
use std::sync::Once;

use rustix::mm::{Advice, madvise};

/// Gives back the program's code once; whoever comes later finds it done.
pub fn give_back() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // Where there is no such list there is nothing to be had.
        let Ok(maps) = fs::read_to_string("/proc/self/maps") else { return };
        for Span { start, end } in unchanged(&maps, give_back as *const () as usize) {
            // SAFETY: the span is mapped from the program's file, privately and not writable, and was never
            // written to: what is dropped is read again from the same file.
            let _ = unsafe { madvise(start as *mut _, end - start, Advice::LinuxDontNeed) };
        }
    });
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Span {
    start: usize,
    end: usize,
}

struct Mapping<'a> {
    span: Span,
    permissions: &'a str,
    offset: usize,
    path: &'a str,
}

/// The mapping that holds our code at `address`, and the one with which the program's file begins. The
/// linker's tables and constants are in that one; what the loader has written to comes after the code.
fn unchanged(maps: &str, address: usize) -> Vec<Span> {
    let mappings: Vec<Mapping<'_>> = maps.lines().filter_map(mapping).collect();
    let holds = |one: &&Mapping<'_>| (one.span.start..one.span.end).contains(&address);
    let Some(code) = mappings.iter().find(holds).filter(|code| code.permissions == "r-xp") else {
        return Vec::new();
    };
    let begins =
        |one: &&Mapping<'_>| one.path == code.path && one.offset == 0 && one.permissions == "r--p";
    mappings.iter().find(begins).into_iter().chain([code]).map(|one| one.span).collect()
}

/// One line: `start-end permissions offset device inode path`.
fn mapping(line: &str) -> Option<Mapping<'_>> {
    let mut fields = line.split_ascii_whitespace();
    let (start, end) = fields.next()?.split_once('-')?;
    let number = |text| usize::from_str_radix(text, 16).ok();
    let span = Span { start: number(start)?, end: number(end)? };
    let (permissions, offset) = (fields.next()?, number(fields.next()?)?);
    let path = fields.nth(2).filter(|path| path.starts_with('/'))?;
    Some(Mapping { span, permissions, offset, path })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAPS: &str = "\
1000-5000 r--p 00000000 fe:00 12 /usr/bin/windlass
5000-9000 r-xp 00004000 fe:00 12 /usr/bin/windlass
9000-a000 r--p 00008000 fe:00 12 /usr/bin/windlass
a000-b000 rw-p 00009000 fe:00 12 /usr/bin/windlass
b000-c000 rw-p 00000000 00:00 0 [heap]
c000-d000 r--p 00000000 fe:00 99 /usr/lib/libc.so.6
d000-e000 r-xp 00001000 fe:00 99 /usr/lib/libc.so.6
";

    #[test]
    fn only_the_code_and_what_stands_before_it_is_given_back() {
        let (before, code) =
            (Span { start: 0x1000, end: 0x5000 }, Span { start: 0x5000, end: 0x9000 });
        assert_eq!(unchanged(MAPS, 0x6000), [before, code]);
    }

    #[test]
    fn an_address_outside_of_code_gives_nothing_back() {
        assert_eq!(unchanged(MAPS, 0x9800), []);
        assert_eq!(unchanged("", 0x6000), []);
    }

    #[test]
    fn the_program_goes_on_after_it() {
        give_back();
        assert_eq!(
            format!("{:?}", "still here".split(' ').collect::<Vec<_>>()),
            r#"["still", "here"]"#
        );
    }
}
