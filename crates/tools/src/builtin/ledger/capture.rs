//! `capture`: records evidence or an observation.

use schemars::JsonSchema;
use serde::Deserialize;
use windlass_core::commitment::{EvidenceKind, MAX_EVIDENCE_BYTES, check_evidence};
use windlass_core::id::EvidenceId;
use windlass_core::outcome::Outcome;
use windlass_core::policy::{Class, Risk};
use windlass_core::tool_name;
use windlass_store::NewProof;

use super::{failure, find, prepared, signature};
use crate::builtin::{Builtin, path_error};
use crate::tool::{Call, Category, Prepared, ToolContext};

pub(in crate::builtin) struct Capture;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::builtin) struct Arguments {
    /// The commitment that it proves: cmt_…. Without one it is an observation.
    commitment: Option<String>,
    r#type: EvidenceWord,
    /// The text itself, of test output, a diff or a note.
    content: Option<String>,
    /// A file of the workspace.
    path: Option<String>,
    url: Option<String>,
    /// What it shows.
    description: Option<String>,
}

/// What it is.
#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum EvidenceWord {
    TestOutput,
    Diff,
    File,
    Url,
    Screenshot,
    Note,
}

impl From<EvidenceWord> for EvidenceKind {
    fn from(kind: EvidenceWord) -> Self {
        match kind {
            EvidenceWord::TestOutput => Self::TestOutput,
            EvidenceWord::Diff => Self::Diff,
            EvidenceWord::File => Self::File,
            EvidenceWord::Url => Self::Url,
            EvidenceWord::Screenshot => Self::Screenshot,
            EvidenceWord::Note => Self::Note,
        }
    }
}

impl Builtin for Capture {
    type Arguments = Arguments;
    const NAME: &'static str = tool_name::CAPTURE;
    const DESCRIPTION: &'static str = include_str!("../descriptions/capture.md");
    const CATEGORY: Category = Category::Orchestration;
    const MIN_CLASS: (Class, Risk) = (Class::Ledger, Risk::Low);
    const ALIASES: &'static [&'static str] = &["mentu_capture"];

    fn prepare(context: ToolContext, call: Call, given: Arguments) -> Result<Prepared, Outcome> {
        let by = signature(&call)?;
        let kind = EvidenceKind::from(given.r#type);
        check_evidence(kind, given.path.as_deref(), given.url.as_deref(), given.content.as_deref())
            .map_err(|refusal| Outcome::failure(refusal.to_string()))?;
        let commitment = given.commitment.map(|text| find(&context, &text)).transpose()?;
        let (content, uri) = match (given.content.filter(|_| !kind.is_file()), given.path) {
            (Some(text), path) => {
                // What is kept is for people, and holds no key of ours.
                let text = context.ledger.store.secrets().known().redact(&text).into_owned();
                (Some(text.into_bytes()), path)
            }
            (None, Some(path)) if kind != EvidenceKind::Url => {
                let limit = MAX_EVIDENCE_BYTES as u64;
                let content = context.workspace.read_all(&path, limit).map_err(path_error)?;
                (Some(content), Some(path))
            }
            (None, _) => (None, given.url),
        };
        let new = NewProof {
            id: EvidenceId::derived(&call.id.to_string(), "evidence"),
            kind,
            uri,
            content,
            description: given.description.unwrap_or_default(),
            task: Some(by.task),
        };
        let key = Some(call.id.to_string());
        Ok(prepared(format!("records evidence of type {kind}"), move || {
            Box::pin(async move {
                let ledger = &context.ledger;
                let at = (ledger.clock)();
                let kept =
                    ledger.store.commitments().capture(commitment, at, by.actor(), new, key).await;
                match kept {
                    Ok(evidence) => Outcome::ok(format!(
                        "Recorded `{}` ({}, sha256 {}).",
                        evidence.id, evidence.kind, evidence.sha256
                    )),
                    Err(error) => failure(error),
                }
            })
        }))
    }
}
