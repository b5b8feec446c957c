//! What a segment hands back: the `TaskResult`, its evidence, and errors that a person can act on.

use std::path::Path;

use windlass_core::command::{
    DeliverableType, EvidenceRef, EvidenceType, ResultStatus, TaskResult, UsageMetrics,
    WorkingMemory,
};
use windlass_core::ending::Ending;
use windlass_core::error::{ErrorDetails, ErrorType, Remedy};
use windlass_core::event::StatusChanged;
use windlass_core::layout::{LayoutKind, Own, file_uri};
use windlass_core::state::{Next, TaskState, Unfinished};
use windlass_model::Fault;

/// Replies in a row that may be cut at the output limit: a long answer comes in parts, and an agent that
/// cannot be brief must end at some point.
const MAX_CUT_REPLIES: u32 = 3;

/// What a task that ends like this hands back. `traces` is where its traces are on this machine.
pub(crate) fn result_of(
    state: &TaskState,
    active_ms: u64,
    ending: &Ending,
    traces: &Path,
) -> TaskResult {
    let StatusChanged { to, reason, error, .. } = ending.status_change(state);
    let status = ResultStatus::of(to, reason).unwrap_or(ResultStatus::Failed);
    let blocked = status == ResultStatus::BlockedUser;
    TaskResult {
        task_id: state.id(),
        session_id: state.command().session_id,
        command_id: state.command().command_id,
        status,
        partial: matches!(ending, Ending::Partial(_)),
        deliverables: state.files.deliverables.values().cloned().collect(),
        final_message: match state.next() {
            Next::Finish(text) => Some(text),
            Next::AskModel | Next::Compact | Next::RunCalls | Next::Wait(_) | Next::StartPlan => {
                None
            }
        },
        evidence_refs: evidence(state, traces),
        working_memory: Some(state.working_memory())
            .filter(|kept| *kept != WorkingMemory::default()),
        usage: UsageMetrics { duration_ms: active_ms, ..state.spending.usage },
        cost_usd: state.spending.known_cost(),
        error_details: error,
        hitl_request: blocked.then(|| state.open_questions.hitl_request()).flatten(),
        contract: state.verification.result(),
    }
}

/// Where the proof is: the trace, every deliverable, cut outputs, and what calls came across (ES-305).
fn evidence(state: &TaskState, traces: &Path) -> Vec<EvidenceRef> {
    let layout = state.created.layout();
    let file = format!("{}.jsonl", state.id());
    let trace = EvidenceRef {
        ref_id: "trace".to_owned(),
        kind: EvidenceType::Log,
        uri: match layout.kind() {
            LayoutKind::Service => layout.uri(&format!("{}/{file}", layout.path(Own::Trace))),
            // In a person's directory only commands in the sandbox find it below the workspace.
            LayoutKind::Personal => {
                let root = traces.join(state.created.root.to_string());
                file_uri(&root.join(file).display().to_string())
            }
        },
        description: Some("every event of this task".to_owned()),
    };
    let files =
        state.files.deliverables.values().enumerate().map(|(index, deliverable)| EvidenceRef {
            ref_id: format!("deliverable-{}", index + 1),
            kind: match deliverable.kind {
                DeliverableType::Screenshot => EvidenceType::Screenshot,
                DeliverableType::Report
                | DeliverableType::Code
                | DeliverableType::Data
                | DeliverableType::Other => EvidenceType::File,
            },
            uri: layout.uri(&deliverable.filepath),
            description: Some(deliverable.description.clone()),
        });
    let outputs = state.files.outputs.iter().enumerate().map(|(index, path)| EvidenceRef {
        ref_id: format!("output-{}", index + 1),
        kind: EvidenceType::Log,
        uri: layout.uri(path),
        description: Some("the whole of an output that was cut".to_owned()),
    });
    let seen = state.files.evidence.iter().enumerate().map(|(index, evidence)| EvidenceRef {
        ref_id: format!("{}-{}", evidence.kind, index + 1),
        kind: evidence.kind,
        uri: match evidence.kind {
            EvidenceType::Url => evidence.location.clone(),
            EvidenceType::Screenshot | EvidenceType::File | EvidenceType::Log => {
                layout.uri(&evidence.location)
            }
        },
        description: Some(evidence.description.clone()),
    });
    std::iter::once(trace).chain(files).chain(outputs).chain(seen).collect()
}

/// Why a task whose last reply is incomplete cannot continue. After a cut reply the rest is requested, a few
/// times; what a provider withholds it would withhold again.
pub fn incomplete_reply_error(state: &TaskState) -> Option<ErrorDetails> {
    match state.last_reply.unfinished.as_ref()? {
        Unfinished::Cut { times, .. } if *times <= MAX_CUT_REPLIES => None,
        Unfinished::Cut { times, .. } => {
            let message = format!("{times} replies in a row were cut at the model's output limit");
            let error = ErrorDetails::new(ErrorType::ModelProtocol, message);
            Some(error.with_remedy(Remedy::AskForLess))
        }
        Unfinished::Withheld => {
            let message = "the provider's content filter stopped the reply";
            let error = ErrorDetails::new(ErrorType::ModelRefused, message);
            Some(error.with_remedy(Remedy::RephraseGoal))
        }
    }
}

/// A model's failure as the task's, with what to do about it.
pub fn model_error(error: &windlass_model::Error) -> ErrorDetails {
    let (kind, remedy) = match &error.fault {
        Fault::Refused
        | Fault::Unreachable { .. }
        | Fault::Dropped { .. }
        | Fault::Stalled { .. } => (ErrorType::ModelUnreachable, Remedy::CheckModelServer),
        Fault::Overloaded { .. } | Fault::Server { .. } | Fault::Truncated { .. } => {
            (ErrorType::ModelUnreachable, Remedy::WaitForModelServer)
        }
        Fault::Tls { .. } => (ErrorType::ModelUnreachable, Remedy::CheckCertificate),
        Fault::Unauthorized { .. } | Fault::Forbidden { .. } => {
            (ErrorType::ModelUnauthorized, Remedy::SetModelKey)
        }
        Fault::ModelUnavailable { .. } => (ErrorType::ModelUnavailable, Remedy::CheckModelName),
        Fault::RateLimited { .. } | Fault::OutOfCredit { .. } => {
            (ErrorType::ModelRateLimited, Remedy::RaiseAccountLimit)
        }
        Fault::BadRequest { .. } | Fault::ReasoningRefused { .. } | Fault::ContentFilter { .. } => {
            (ErrorType::ModelRefused, Remedy::ReadServerMessage)
        }
        Fault::ContextLength { .. } => (ErrorType::ContextLength, Remedy::SetContextWindow),
        Fault::Garbled { .. } | Fault::EmptyReply | Fault::TooLarge { .. } => {
            (ErrorType::ModelProtocol, Remedy::ChangeModel)
        }
        Fault::NotAModelServer { .. } => (ErrorType::ModelProtocol, Remedy::CheckModelAddress),
        Fault::Script { .. } => (ErrorType::ModelProtocol, Remedy::FixScript),
        Fault::Recording { .. } => (ErrorType::ModelProtocol, Remedy::CheckRecording),
    };
    let mut details = ErrorDetails::new(kind, error.to_string()).with_remedy(remedy);
    details.retryable = error.retryable();
    details
}
