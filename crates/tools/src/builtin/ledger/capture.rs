//! `capture`: records evidence or an observation.

use std::sync::Arc;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use windlass_core::commitment::{EvidenceKind, MAX_EVIDENCE_BYTES, check_evidence};
use windlass_core::id::EvidenceId;
use windlass_core::outcome::{Outcome, Recovery};
use windlass_core::policy::{Assessment, Class, Risk};
use windlass_core::tool_name;
use windlass_store::NewProof;

use super::{failure, find, signature};
use crate::builtin::{Builtin, path_error, prepare_read};
use crate::tool::{Act, Call, Category, Prepared, ToolContext};

pub(in crate::builtin) struct Capture;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::builtin) struct Arguments {
    /// The commitment that it proves: cmt_…. Without one it is an observation.
    commitment: Option<String>,
    #[schemars(schema_with = "evidence_kinds")]
    r#type: EvidenceKind,
    /// The text itself, of test output, a diff or a note.
    content: Option<String>,
    /// A file of the workspace.
    path: Option<String>,
    url: Option<String>,
    /// What it shows.
    description: Option<String>,
}

/// The kinds of evidence, as the model reads them.
fn evidence_kinds(_: &mut SchemaGenerator) -> Schema {
    let words: Vec<_> = EvidenceKind::ALL.iter().map(|kind| kind.as_str()).collect();
    json_schema!({ "description": "What it is.", "type": "string", "enum": words })
}

impl Builtin for Capture {
    type Arguments = Arguments;
    const NAME: &'static str = tool_name::CAPTURE;
    const DESCRIPTION: &'static str = include_str!("../descriptions/capture.md");
    const CATEGORY: Category = Category::Orchestration;
    const MIN_CLASS: (Class, Risk) = (Class::Ledger, Risk::Low);
    const ALIASES: &'static [&'static str] = &["mentu_capture"];

    fn prepare(
        context: ToolContext,
        call: Call,
        arguments: Arguments,
    ) -> Result<Prepared, Outcome> {
        let by = signature(&call)?;
        let kind = arguments.r#type;
        check_evidence(
            kind,
            arguments.path.as_deref(),
            arguments.url.as_deref(),
            arguments.content.as_deref(),
        )
        .map_err(|refusal| Outcome::failure(refusal.to_string()))?;
        let commitment = arguments.commitment.map(|text| find(&context, &text)).transpose()?;
        let (workspace, read) = (Arc::clone(&context.workspace), arguments.path.clone());
        let read = read.filter(|_| arguments.content.is_none() || kind.is_file());
        let (content, uri) = match (arguments.content.filter(|_| !kind.is_file()), arguments.path) {
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
            (None, _) => (None, arguments.url),
        };
        let new = NewProof {
            id: EvidenceId::derived(&call.id.to_string(), "evidence"),
            kind,
            uri,
            content,
            description: arguments.description.unwrap_or_default(),
            task: Some(by.task),
        };
        let key = Some(call.id.to_string());
        let what = format!("records evidence of type {kind}");
        let act: Act = Box::new(move || {
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
        });
        let usual = Assessment::of(Class::Ledger, what);
        // By its key it takes effect once, so it can be run again.
        Ok(match read {
            Some(path) => prepare_read(&workspace, &path, usual, Recovery::Rerun, act),
            None => Prepared::new(usual, Recovery::Rerun, act),
        })
    }
}
