//! Which turns stay after a compaction: as many recent ones as fit under the trigger, with their results shortened
//! where necessary.

use windlass_core::compaction::{Trigger, WindowLimits};
use windlass_core::error::{ErrorDetails, ErrorType, Remedy};
use windlass_core::message::Message;
use windlass_core::state::TaskState;

use crate::context::{Context, hypothetical};

/// Results over these sizes are shortened, tried in order.
const SHRINK_BYTES: [usize; 3] = [8_192, 2_048, 512];
/// A shorter summary than this is useless.
const MIN_SUMMARY_TOKENS: u64 = 200;
/// How far under the trigger a compaction aims, so that the next one is some turns away.
const AIM: f64 = 0.75;
/// How much of a context that the provider refused may be left.
const FORCED: f64 = 0.6;

/// What stays, and how long the summary may be.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Fit {
    pub kept: usize,
    /// Results over this size shrink.
    pub shrink: Option<usize>,
    /// What is left for the summary.
    pub summary_tokens: u64,
}

/// Finds what stays, or says what is too large.
pub(super) fn fit(
    context: &Context,
    state: &TaskState,
    limits: &WindowLimits,
    trigger: Trigger,
    used: u64,
) -> Result<Fit, ErrorDetails> {
    let most = limits.trigger_tokens();
    let aim = match trigger {
        Trigger::Tokens | Trigger::PlanStep | Trigger::Pictures => most as f64 * AIM,
        Trigger::ContextLength => (most as f64 * AIM).min(used as f64 * FORCED),
    };
    let size = |kept, shrink, summary| size(context, state, kept, shrink, summary);
    let least = size(0, None, 0);
    [aim as u64, most]
        .into_iter()
        .find_map(|target| plan_for(context, limits, target, least, size))
        .ok_or_else(|| too_large(context, state, limits, least))
}

fn plan_for(
    context: &Context,
    limits: &WindowLimits,
    target: u64,
    least: u64,
    size: impl Fn(usize, Option<usize>, u64) -> u64,
) -> Option<Fit> {
    let room = target.checked_sub(least)?;
    let summary_tokens = limits.max_summary.min(room / 2);
    if summary_tokens < MIN_SUMMARY_TOKENS {
        return None;
    }
    let fits = |kept, shrink| size(kept, shrink, summary_tokens) <= target;
    let work = context.turns().recent().iter().filter(|turn| !turn.flush).count();
    let wanted = work.min(limits.preserve_recent_turns as usize);
    let whole = std::iter::once((wanted, None));
    let shrunk = SHRINK_BYTES.map(|bytes| (wanted, Some(bytes)));
    let fewer = (0..wanted)
        .rev()
        .flat_map(|kept| SHRINK_BYTES[1..].iter().map(move |bytes| (kept, Some(*bytes))));
    let (kept, shrink) =
        whole.chain(shrunk).chain(fewer).find(|&(kept, shrink)| fits(kept, shrink))?;
    Some(Fit { kept, shrink, summary_tokens })
}

/// How large a context would be, in tokens.
fn size(
    context: &Context,
    state: &TaskState,
    kept: usize,
    shrink: Option<usize>,
    summary_tokens: u64,
) -> u64 {
    let summary = "x".repeat(context.estimate().bytes(summary_tokens));
    let end = hypothetical(super::count(kept), shrink, summary);
    let after = context.transcript_after(&end, state);
    after.map_or(0, |transcript| context.estimate().tokens(transcript.text_bytes()))
}

/// Says which of the parts that stay is too large for the window.
fn too_large(
    context: &Context,
    state: &TaskState,
    limits: &WindowLimits,
    least: u64,
) -> ErrorDetails {
    let opening = context.turns().opening().iter().map(|message| match message {
        Message::User { text, .. }
        | Message::Tool { text, .. }
        | Message::Assistant { text, .. } => text.len(),
    });
    let said: usize = context.turns().human_words().map(String::len).sum();
    let plan = state.plan.as_ref().map_or(0, |plan| plan.markdown().len());
    let files: usize = state.files.changed.iter().map(String::len).sum();
    let parts = [
        ("the system prompt and the tools", context.size().prelude_bytes()),
        ("the task message", opening.sum()),
        ("what the user said", said),
        ("the working plan", plan),
        ("the list of changed files", files),
    ];
    let largest = parts.iter().max_by_key(|(_, bytes)| *bytes).map_or("", |(name, _)| name);
    let list: Vec<_> = parts
        .iter()
        .map(|(name, bytes)| format!("{name}: {} tokens", context.estimate().tokens(*bytes)))
        .collect();
    let message = format!(
        "the context window of {} tokens is too small: what must stay takes {least} tokens and at most \
         {} may be used; the largest part is {largest}",
        limits.window,
        limits.trigger_tokens(),
    );
    ErrorDetails::new(ErrorType::ContextLength, message)
        .with_diagnostic(list.join(", "))
        .with_remedy(Remedy::ShrinkContext)
}
