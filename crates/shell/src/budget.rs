//! How much of a text is read: commands, arguments, bytes and levels, each with a limit.

use super::findings::Findings;
use super::guard;
use super::syntax::ParseFailure;

/// The most commands followed in one text, loops and function calls counted each time.
const MOST_COMMANDS: usize = 2_000;

/// The most arguments looked into in one text, counted again wherever they may be a command.
const MOST_ARGUMENTS: usize = 20_000;

/// The deepest commands inside commands: `sh -c "env nice sh -c '…'"`. Fits a 2 MiB stack.
const DEEPEST_TEXT: usize = 40;

/// The most bytes parsed for one reading; a text read again in a loop counts again.
const MOST_BYTES: usize = 4 * guard::LONGEST_TEXT;

/// How much stack there is to recurse on.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Stack {
    Usual,
    Deep,
}

pub(super) struct Budget {
    stack: Stack,
    depth: usize,
    commands: usize,
    arguments: usize,
    bytes: usize,
}

impl Budget {
    pub(super) fn new(stack: Stack) -> Self {
        Self { stack, depth: 0, commands: 0, arguments: 0, bytes: 0 }
    }

    /// Whether this is the text itself, not one that a command in it runs.
    pub(super) fn is_outermost(&self) -> bool {
        self.depth == 0
    }

    /// Goes one level deeper, if that is allowed; a refusal is a finding. Pairs with [`Self::leave`].
    pub(super) fn enter(&mut self, findings: &mut Findings) -> bool {
        if self.depth >= DEEPEST_TEXT {
            findings.note_unreadable("…", "commands are nested too deeply");
            return false;
        }
        self.depth += 1;
        true
    }

    pub(super) fn leave(&mut self) {
        self.depth -= 1;
    }

    /// Whether one more command is followed; the first refusal is a finding.
    pub(super) fn spend_command(&mut self, findings: &mut Findings) -> bool {
        self.commands += 1;
        if self.commands == MOST_COMMANDS {
            findings.note_unreadable("…", "there are too many commands in it");
        }
        self.commands < MOST_COMMANDS
    }

    /// Whether a command with this many arguments is looked into.
    pub(super) fn spend_arguments(&mut self, arguments: usize) -> bool {
        self.arguments += 1 + arguments;
        self.arguments <= MOST_ARGUMENTS
    }

    /// Counts what is about to be parsed.
    pub(super) fn spend_text(&mut self, script: &str) -> Result<(), ParseFailure> {
        if script.len() > guard::LONGEST_TEXT {
            return guard::before_tokens(script);
        }
        self.bytes += script.len();
        if self.bytes > MOST_BYTES {
            return Err(ParseFailure::because("there is too much text in it"));
        }
        if self.stack == Stack::Usual && guard::needs_room(script) {
            return Err(ParseFailure::because("it is too deeply nested"));
        }
        Ok(())
    }
}
