//! From rules to the program that the kernel runs for every system call.
//!
//! Numbers are found by binary search, not one after the other. When a program is installed, the kernel runs it for
//! every number to learn which calls it always allows; a list of ninety would take a third of a millisecond of every
//! command.

use std::collections::BTreeMap;

use libc::{c_long, sock_filter};

/// What commands get for the calls that are named here, by number. Other calls are allowed.
pub type Rules = BTreeMap<c_long, Vec<Rule>>;

/// An answer, given when all tests hold. The first rule of a call that does so counts.
#[derive(Clone)]
pub struct Rule {
    pub tests: Vec<Test>,
    pub answer: u32,
}

/// A test of the low half of an argument, all that the kernel reads of flags, modes and kinds.
#[derive(Clone, Copy)]
pub struct Test {
    argument: u8,
    mask: u32,
    value: u32,
    is_equal: bool,
}

impl Test {
    /// The argument has any of these bits.
    pub fn has_any(argument: u8, bits: u32) -> Self {
        Self { argument, mask: bits, value: 0, is_equal: false }
    }

    /// The argument, of which only the bits of the mask count, is this value.
    pub fn is(argument: u8, mask: u32, value: u32) -> Self {
        Self { argument, mask, value, is_equal: true }
    }

    /// The argument, of which only the bits of the mask count, is another value.
    pub fn is_not(argument: u8, mask: u32, value: u32) -> Self {
        Self { argument, mask, value, is_equal: false }
    }
}

/// How many calls are looked at one after the other before halving is worth it.
const MAX_IN_A_ROW: usize = 3;

/// Numbers from here on are the x32 forms of all calls: their architecture is that of 64 bit, and no rule names them.
const X32_NUMBERS: u32 = 0x4000_0000;

#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: u32 = 0xc000_00b7;

/// The program for these rules. A call of another architecture (32 bit on a 64 bit kernel) kills its process.
pub fn assemble(rules: &Rules) -> Vec<sock_filter> {
    const NUMBER_AT: u32 = 0;
    const ARCHITECTURE_AT: u32 = 4;
    let calls: Vec<(u32, &[Rule])> =
        rules.iter().map(|(&number, rules)| (number as u32, rules.as_slice())).collect();
    let mut program = vec![
        load(ARCHITECTURE_AT),
        jump(libc::BPF_JEQ, ARCHITECTURE, 1, 0),
        answer(libc::SECCOMP_RET_KILL_PROCESS),
        load(NUMBER_AT),
        jump(libc::BPF_JGE, X32_NUMBERS, 0, 1),
        answer(libc::SECCOMP_RET_ERRNO | libc::EPERM as u32),
    ];
    program.extend(find(&calls));
    program
}

/// Finds the call among these and answers it. They are sorted.
fn find(calls: &[(u32, &[Rule])]) -> Vec<sock_filter> {
    if calls.len() <= MAX_IN_A_ROW {
        let mut program = Vec::new();
        for (number, rules) in calls {
            let decided = decide(rules);
            program.extend(unless(libc::BPF_JEQ, *number, decided.len()));
            program.extend(decided);
        }
        program.push(answer(libc::SECCOMP_RET_ALLOW));
        return program;
    }
    let (low, high) = calls.split_at(calls.len() / 2);
    let first_high = high[0].0;
    let (low, high) = (find(low), find(high));
    let past_high = unless(libc::BPF_JGE, first_high, high.len());
    [past_high, high, low].concat()
}

/// Continues if what was loaded compares so, else past so many instructions.
fn unless(comparison: u32, value: u32, past: usize) -> Vec<sock_filter> {
    match u8::try_from(past) {
        Ok(past) => vec![jump(comparison, value, 0, past)],
        Err(_) => vec![jump(comparison, value, 1, 0), skip(past)],
    }
}

/// Answers one call by its arguments.
fn decide(rules: &[Rule]) -> Vec<sock_filter> {
    let mut program = Vec::new();
    for rule in rules {
        let mut left = vec![answer(rule.answer)];
        // From the last test back, since a test that fails skips all that follows in its rule.
        for test in rule.tests.iter().rev() {
            let past = left.len() as u8;
            let (held, failed) = if test.is_equal { (0, past) } else { (past, 0) };
            let mut checked = vec![load(16 + 8 * u32::from(test.argument))];
            if test.mask != u32::MAX {
                checked.push(instruction(libc::BPF_ALU | libc::BPF_AND | libc::BPF_K, test.mask));
            }
            checked.push(jump(libc::BPF_JEQ, test.value, held, failed));
            left.splice(0..0, checked);
        }
        program.extend(left);
        if rule.tests.is_empty() {
            return program;
        }
    }
    program.push(answer(libc::SECCOMP_RET_ALLOW));
    program
}

fn load(at: u32) -> sock_filter {
    instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, at)
}

fn answer(value: u32) -> sock_filter {
    instruction(libc::BPF_RET | libc::BPF_K, value)
}

fn skip(count: usize) -> sock_filter {
    instruction(libc::BPF_JMP | libc::BPF_JA, count as u32)
}

/// Compares what was loaded, and skips so many instructions by the outcome.
fn jump(comparison: u32, value: u32, held: u8, failed: u8) -> sock_filter {
    let compare = instruction(libc::BPF_JMP | comparison | libc::BPF_K, value);
    sock_filter { jt: held, jf: failed, ..compare }
}

fn instruction(code: u32, k: u32) -> sock_filter {
    sock_filter { code: code as u16, jt: 0, jf: 0, k }
}
