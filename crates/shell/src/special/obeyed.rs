//! Programs that obey commands in what they read, some of which run other programs.

use crate::classify::opaque;
use crate::invocation::Invocation;
use crate::state::{Input, UNKNOWN};
use crate::walk::Walk;
use windlass_core::policy::class::Assessment;

/// Beginnings of `socat` addresses that run a command.
const RUNNING_ADDRESSES: &[&str] = &["exec:", "system:", "shell:"];

/// A program whose input is a list of commands.
pub(super) fn judge(walk: &Walk<'_>, call: &Invocation) -> Option<Assessment> {
    // Of these only `!` leaves the program.
    let is_calculator = call.program == "dc";
    let is_transfer = matches!(call.program, "ftp" | "sftp" | "lftp");
    let acts = |text: &str| !(is_calculator || is_transfer) || text.contains(['!', UNKNOWN]);
    let by_input = match &walk.state.input {
        Input::Text(text) => acts(text),
        Input::File(_) | Input::Pipe => !is_transfer,
        Input::Inherited => false,
    };
    let by_option = is_calculator
        && (call.args.iter().any(|arg| arg.text.contains(['!', UNKNOWN])) || call.has("-f|--file"));
    (by_input || by_option).then(|| opaque(format!("`{}` obeys what it reads", call.program)))
}

/// `socat - EXEC:command` runs a command.
pub(super) fn socat(walk: &mut Walk<'_>, call: &Invocation) -> Option<Assessment> {
    let mut found = None;
    for arg in call.args {
        let lower = arg.text.to_ascii_lowercase();
        if let Some(start) = RUNNING_ADDRESSES.iter().find(|start| lower.starts_with(**start)) {
            walk.follow_argument(&arg.text[start.len()..], "socat");
            found = Some(opaque("gives a connection a program"));
        }
    }
    found
}
