//! Commands that run in the background of a task: since when, and what they printed last.

use maud::{Markup, html};
use windlass_coordinator::views::TaskView;
use windlass_core::shown::shown_line;
use windlass_term::strip_controls;

use super::conversation::Conversation;
use super::pieces;
use super::previews::Partial;

/// Lines of what a command printed.
const LINES: usize = 6;

/// The card of a task's background commands; empty where none runs. They end with the process that drives the task.
pub fn card(task: &TaskView, conversation: &Conversation, partial: Option<&Partial>) -> Markup {
    let processes = &conversation.processes;
    if task.driven_by.is_none() || processes.is_empty() {
        return html! {};
    }
    html! {
        section.card.processes {
            h2 { "Running commands" span.count { (processes.len()) } }
            ul {
                @for (call, process) in processes {
                    li {
                        p { span.dot.pulse.t-info aria-hidden="true" {} code { (shown_line(&process.command)) } (pieces::since(process.since)) }
                        @if let Some(printed) = partial.and_then(|partial| partial.outputs.get(call)) {
                            pre tabindex="0" { (last_lines(&strip_controls(printed))) }
                        }
                    }
                }
            }
        }
    }
}

fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.trim_end().lines().collect();
    lines[lines.len().saturating_sub(LINES)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_what_was_printed_the_last_lines_are_shown() {
        assert_eq!(last_lines("1\n2\n3\n4\n5\n6\n7\n8\n"), "3\n4\n5\n6\n7\n8");
        assert_eq!(last_lines("one"), "one");
        assert_eq!(last_lines(""), "");
    }
}
